"""The kit from the command line.

python -m viewgrad.testing my_package.operators:softclip --call "np.linspace(-2, 2, 5), limit=1.5"
python -m viewgrad.testing compare --programs 10000 --backends viewgrad torch jax
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

import numpy as np

import viewgrad

from ..autograd.function import Function
from ..progress import ProgressBar
from .backends import BACKENDS, compare_many
from .kit import Failure, check_operator
from .kit.operator_under_test import declared

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Check an operator, or compare backends; returns 1 where something is wrong.

    Arguments:
        argv: the arguments of the command line; those of the process where left out.
    """
    given = sys.argv[1:] if argv is None else argv
    return _compare(given[1:]) if given[:1] == ["compare"] else _check(given)


def _check(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m viewgrad.testing", description="Check an operator of your own.")
    parser.add_argument("operator", help="module:name, or `compare`, which has a help of its own")
    parser.add_argument("--call", default="", metavar="ARGUMENTS", help="Python, in which np and vg are known")
    parser.add_argument(
        "--only", action="append", metavar="PROPERTY", help="look at this property alone; may be repeated"
    )
    options = parser.parse_args(given)
    sys.path.insert(0, "")
    module, _, name = options.operator.partition(":")
    operator: Any = importlib.import_module(module)
    for part in name.split("."):
        operator = getattr(operator, part)
    args, kwargs = _arguments(operator, options.call)
    bar = ProgressBar()
    try:
        report = check_operator(operator, arguments=args, options=kwargs, only=options.only, progress=bar.update)
    except Failure as failure:
        bar.finish()
        print(failure)
        return 1
    bar.finish()
    print(report)
    return 0


def _arguments(operator: Any, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the call: those given, those of the declaration, or ordinary numbers."""

    def capture(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    if text:
        names = {"np": np, "vg": viewgrad, "capture": capture}
        call: tuple[tuple[Any, ...], dict[str, Any]] = eval(f"capture({text})", names)
        return call
    if declared(operator) is not None:
        return (), {}
    number = 1
    if not (isinstance(operator, type) and issubclass(operator, Function)) and hasattr(operator, "__code__"):
        number = operator.__code__.co_argcount - len(operator.__defaults__ or ())
    generator = np.random.default_rng(0)
    return tuple(generator.uniform(0.2, 2.0, (2, 3)) for _ in range(max(number, 1))), {}


def _compare(given: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m viewgrad.testing compare", description="Run drawn programs on several backends, and compare."
    )
    parser.add_argument("--programs", type=int, default=1000, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="draw others (default: %(default)s)")
    parser.add_argument("--backends", nargs="+", choices=sorted(BACKENDS), help="all that are installed where left out")
    options = parser.parse_args(given)
    bar = ProgressBar()
    summary = compare_many(options.programs, seed=options.seed, backends=options.backends, progress=bar.update)
    bar.finish()
    print(summary)
    return int(bool(summary.failures))


if __name__ == "__main__":
    raise SystemExit(main())
