"""Jacobian-vector products of compiled functions: the function in forward mode, traced and compiled like any other.

The gradient of the jvp contains second derivatives of the function, so Hessian-vector products are compiled too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ...func.transforms import jvp
from ...func.tree import Branch, Structure
from .arguments import Arguments, leaves_of, owners


def jvp_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of `(args, keywords, numbers, tangents, has_aux)` with the results of `func.jvp`.

    Arguments:
        function: the function to differentiate, along tangents of some of the arguments.
    """

    def along(
        args: Sequence[Any], keywords: dict[str, Any], numbers: Sequence[int], tangents: Sequence[Any], has_aux: bool
    ) -> Any:
        def of_primals(*primals: Any) -> Any:
            given = list(args)
            for number, primal in zip(numbers, primals):
                given[number] = primal
            return function(*given, **keywords)

        return jvp(of_primals, [args[number] for number in numbers], tangents, has_aux)

    name = getattr(function, "__qualname__", repr(function))
    along.__name__ = along.__qualname__ = f"jvp({name})"
    return along


class JvpArguments(Arguments):
    """The arguments of a function, passed to its jvp as a tuple and a dict."""

    def _declared(self, structure: Structure) -> frozenset[int]:
        assert isinstance(structure, Branch)
        args = structure.children[0]
        assert isinstance(args, Branch)
        within = attrs.evolve(args, children=args.children[:2])
        return leaves_of(self.static, owners(self.names, within))
