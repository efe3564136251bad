"""`python -m viewgrad.operators list` and `... show mul`: the table of operators, and generated code."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys

from .define import OPERATORS
from .listing import described, listed, view_operators


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Arguments:
        arguments: the arguments of the command line; by default, those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m viewgrad.operators", description=__doc__)
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module that defines operators",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="print the table of operators")
    show = commands.add_parser("show", help="print an operator's declaration and the code generated from it")
    show.add_argument("name", help="the name of an operator")
    given = parser.parse_args(arguments)
    for module in given.modules:
        importlib.import_module(module)
    if given.command == "list":
        print(listed())
        return 0
    try:
        print(described(given.name))
    except KeyError:
        near = difflib.get_close_matches(given.name, [*OPERATORS, *view_operators()])
        print(
            f"there is no operator {given.name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""),
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader has closed the pipe, as in `... list | head`
        sys.stderr.close()
