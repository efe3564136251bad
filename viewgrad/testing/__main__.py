"""The command line of the kit.

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
from .kit.contract import near_matches
from .kit.operator_under_test import declared


def main(argv: list[str] | None = None) -> int:
    """Check an operator or compare backends; return 1 if something is wrong.

    Arguments:
        argv: the arguments of the command line; by default, those of the process.
    """
    given = sys.argv[1:] if argv is None else argv
    return _compare(given[1:]) if given[:1] == ["compare"] else _check(given)


def _check(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m viewgrad.testing", description="Check an operator of your own.")
    parser.add_argument("operator", help="module:name, or `compare`, which has its own --help")
    parser.add_argument("--call", default="", metavar="ARGUMENTS", help="Python code; np and vg are available")
    parser.add_argument("--only", action="append", metavar="PROPERTY", help="check this property; may be repeated")
    parser.add_argument("--seconds", type=float, help="CPU time for derived calls (default: 2)")
    parser.add_argument("--order", type=int, choices=(1, 2), help="1 to leave out second derivatives")
    parser.add_argument(
        "--fail-fast", action="store_true", help="stop at the first property that does not hold, and report it alone"
    )
    options = parser.parse_args(given)
    sys.path.insert(0, "")
    operator = _operator_named(parser, options.operator)
    try:
        args, kwargs = _arguments(operator, options.call)
    except Exception as error:
        parser.error(f"--call {options.call!r}: {type(error).__name__}: {error}")
    chosen = {name: getattr(options, name) for name in ("only", "seconds", "order")}
    bar = ProgressBar()
    try:
        report = check_operator(
            operator, arguments=args, keywords=kwargs, keep_going=not options.fail_fast, progress=bar.update, **chosen
        )
    except Failure as failure:
        bar.finish()
        print(failure)
        return 1
    except ValueError as error:
        bar.finish()
        parser.error(str(error))
    bar.finish()
    print(report)
    return 0


def _operator_named(parser: argparse.ArgumentParser, text: str) -> Any:
    """Return the operator that `module:name` refers to, or exit with a command line error."""
    module_name, _, name = text.partition(":")
    if "/" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        parser.error(f"{module_name} is a file; give the module, as in {dotted}:{name or 'name'}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise  # raised by an import in the module
        parser.error(f"there is no module called {error.name!r} in the current folder or among the installed packages")
    operators = [key for key, value in vars(module).items() if _is_operator(value, module_name)]
    there_are = f"{module_name} has {', '.join(operators)}" if operators else f"{module_name} has no operators"
    if not name:
        parser.error(f"specify the operator, as in {module_name}:{operators[0] if operators else 'name'}; {there_are}")
    operator: Any = module
    for part in name.split("."):
        if not hasattr(operator, part):
            near = near_matches(part, operators if operator is module else list(vars(operator)))
            told = near if near.startswith("did you mean") else ""
            parser.error(f"{module_name} has no {name!r}; {told}{there_are}")
        operator = getattr(operator, part)
    if not callable(operator):
        parser.error(f"{text} is not an operator but {type(operator).__name__}; {there_are}")
    return operator


def _is_operator(value: Any, module_name: str) -> bool:
    """Return whether a module's value can be checked: a declared operator, a custom `Function`, or a function."""
    if declared(value) is not None:
        return True
    own = getattr(value, "__module__", None) == module_name
    if isinstance(value, type):
        return own and issubclass(value, Function)
    return own and callable(value)


def _arguments(operator: Any, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of the call: those on the command line, those of the declaration, or typical numbers."""

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
        prog="python -m viewgrad.testing compare", description="Run random programs on several backends and compare."
    )
    parser.add_argument("--programs", type=int, default=1000, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random programs (default: %(default)s)")
    parser.add_argument("--backends", nargs="+", choices=sorted(BACKENDS), help="which to run (default: all installed)")
    options = parser.parse_args(given)
    bar = ProgressBar()
    summary = compare_many(options.programs, seed=options.seed, backends=options.backends, progress=bar.update)
    bar.finish()
    print(summary)
    return int(bool(summary.failures))


if __name__ == "__main__":
    raise SystemExit(main())
