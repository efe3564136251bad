"""Compiled functions pushed forward: a program of its own gives their output, and its derivative along a direction.

That is what forward mode does, recorded and compiled as any other function. Its gradient is a second derivative of the
function, so that products with Hessians run by programs too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ...func.transforms import jvp
from ...func.tree import Branch, Structure
from .arguments import Arguments, leaves_of, owners

if TYPE_CHECKING:
    from ..api import Compiled

__all__ = ["pushed_forward"]


def pushed_forward(compiled: Compiled) -> Compiled:
    """The compiled function of `(args, keywords, numbers, tangents, has_aux)` that pushes another one forward.

    It gives what `func.jvp` gives, along tangents of the arguments with some numbers.

    Arguments:
        compiled: the function that is pushed.
    """
    found = type(compiled)(_pushing(compiled.function), compiled.executor_name, (), compiled.check)
    found.executor = compiled.executor
    found.arguments = ArgumentsWithin(compiled.function, compiled.static)
    return found


def _pushing(function: Callable[..., Any]) -> Callable[..., Any]:
    def pushing(
        args: Sequence[Any], keywords: dict[str, Any], numbers: Sequence[int], tangents: Sequence[Any], has_aux: bool
    ) -> Any:
        def of_primals(*primals: Any) -> Any:
            given = list(args)
            for number, primal in zip(numbers, primals):
                given[number] = primal
            return function(*given, **keywords)

        return jvp(of_primals, [args[number] for number in numbers], tangents, has_aux)

    name = getattr(function, "__qualname__", repr(function))
    pushing.__name__ = pushing.__qualname__ = f"{name}, along a direction,"
    return pushing


class ArgumentsWithin(Arguments):
    """The arguments of a function that are given to another as its first two: a tuple and a dict."""

    def _declared(self, structure: Structure) -> frozenset[int]:
        assert isinstance(structure, Branch)
        args = structure.children[0]
        assert isinstance(args, Branch)
        within = attrs.evolve(args, children=args.children[:2])
        return leaves_of(self.static, owners(self.names, within))
