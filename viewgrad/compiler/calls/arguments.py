"""Which of the arguments are inputs of a program, and which are a part of it.

Tensors and arrays are inputs. A float is a part of the program until it is another: from then on it is an input, as a
tensor without dimensions. What is declared static is always a part of the program, and so are integers, which steer
shapes and loops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from ...func.tree import Branch, Fixed, Leaf, Structure
from ...tensor.tensor import as_scalar, from_array
from ...trace.trace import argument_names

__all__ = ["FLOATS", "Arguments", "form_of", "is_found_by_name", "leaves_of", "owners"]

FLOATS: Final = frozenset({float, np.float64, np.float32})  # numbers that become inputs where they vary
VARIES: Final = object()
NONE: Final[frozenset[int]] = frozenset()


def form_of(structure: Structure) -> Any:
    """How arguments are put together, without the numbers and strings among them."""
    if isinstance(structure, Fixed):
        return type(structure.value)
    if isinstance(structure, Branch):
        return structure.kind, structure.keys, tuple([form_of(child) for child in structure.children])
    return type(structure)


def owners(names: Sequence[str], structure: Structure) -> list[tuple[Any, str]]:
    """The argument that each leaf of `(args, keywords)` belongs to: its position or keyword, and its name.

    Arguments:
        names: of the positional arguments, as far as they are known.
        structure: the arguments, taken apart.
    """
    assert isinstance(structure, Branch)
    args, keywords = structure.children
    found: list[tuple[Any, str]] = []
    for branch, is_positional in ((args, True), (keywords, False)):
        for key, child in zip(getattr(branch, "keys", ()), getattr(branch, "children", ())):
            count = 1 if isinstance(child, Leaf) else child.count
            name = str(key) if not is_positional else names[key] if key < len(names) else f"argument {key}"
            found += [(key, name)] * count
    return found


def leaves_of(chosen: Collection[Any], owned: Sequence[tuple[Any, str]]) -> frozenset[int]:
    """The numbers of the leaves that belong to one of some arguments, given by position or name."""
    return frozenset([number for number, (key, name) in enumerate(owned) if key in chosen or name in chosen])


def is_found_by_name(function: Callable[..., Any], thing: Any) -> bool:
    """Whether the name of a function is that of something else, as where it was decorated; so pickles find it."""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is thing


class Arguments:
    """What is known of the arguments of a function.

    Arguments:
        function: the function.
        static: the names of arguments, or their positions, that are parts of the program.
    """

    def __init__(self, function: Callable[..., Any], static: Sequence[Any]) -> None:
        self.names = argument_names(function)
        self.static = frozenset(static)
        self._floats: list[tuple[Structure, dict[int, Any]]] = []
        self._steering: list[tuple[Structure, frozenset[int]]] = []

    def static_leaves(self, structure: Structure) -> frozenset[int]:
        """The numbers of the leaves of `(args, keywords)` that are static: by declaration, or since they steer."""
        declared = self._declared(structure) if self.static else NONE
        for other, steering in self._steering:
            if other == structure:
                return declared | steering
        return declared

    def _declared(self, structure: Structure) -> frozenset[int]:
        """Those that are static by declaration."""
        return leaves_of(self.static, owners(self.names, structure))

    def make_static(self, structure: Structure, leaves: list[Any]) -> bool:
        """From now on take the integers and bools among the arrays for parts of the program; whether that is new."""
        steering = frozenset([
            number for number, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iub"
        ])
        if steering <= self.static_leaves(structure):
            return False
        self._steering.append((structure, steering))
        return True

    def with_inputs(self, structure: Structure, leaves: list[Any], static: frozenset[int]) -> list[Any]:
        """The leaves, with tensors for those floats that were others in an earlier call.

        Arguments:
            structure, leaves: the arguments, taken apart.
            static: the leaves that stay what they are.
        """
        floats = [number for number, leaf in enumerate(leaves) if type(leaf) in FLOATS and number not in static]
        if not floats:
            return leaves
        seen = next((seen for other, seen in self._floats if other == structure), None)
        if seen is None:
            seen = {}
            self._floats.append((structure, seen))
        given = list(leaves)
        for number in floats:
            before = seen.setdefault(number, leaves[number])
            if before is VARIES or before != leaves[number]:
                seen[number] = VARIES
                given[number] = as_scalar(from_array(np.asarray(leaves[number])))
        return given
