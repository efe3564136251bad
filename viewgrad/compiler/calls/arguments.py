"""The arguments of calls: inputs and constants of a program.

Tensors and arrays are inputs. A float is a constant of the program until its value changes; from then on it is an
input, as a 0-d tensor. Static arguments are always constants, and so are integers, which shapes and loops depend on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...func.tree import Branch, Fixed, Leaf, Structure, flatten
from ...tensor.tensor import Tensor, as_scalar, from_array
from ...trace.trace import argument_names
from ..guards.call_signature import specialization_key

FLOATS: Final = frozenset({float, np.float64, np.float32})  # numbers that become inputs once they vary
VARIES: Final = object()  # marks a float that has varied
NONE: Final[frozenset[int]] = frozenset()
NO_KEYWORDS: Final[dict[str, Any]] = {}


@attrs.frozen(eq=False)
class Call:
    """A call with flattened arguments.

    Arguments:
        args, keywords: the arguments.
        structure, leaves: the structure of `(args, keywords)`, and its leaves as inputs of a program.
        static: the numbers of the leaves that are constants of the program.
        mode: the mode of the call.
        key: the key of its specialization.
        has_float_inputs: whether floats of Python are inputs, as tensors.
    """

    args: tuple[Any, ...]
    keywords: dict[str, Any]
    structure: Structure
    leaves: list[Any]
    static: frozenset[int]
    mode: int
    key: Any
    has_float_inputs: bool

    @property
    def shares_memory(self) -> bool:
        """Return whether two arguments share memory."""
        return self.key[3]  # type: ignore[no-any-return]


def form_of(structure: Structure) -> Any:
    """Return the structure of arguments without the numbers and strings in them."""
    if isinstance(structure, Fixed):
        return type(structure.value)
    if isinstance(structure, Branch):
        return structure.kind, structure.keys, tuple([form_of(child) for child in structure.children])
    return type(structure)


def owners(names: Sequence[str], structure: Structure) -> list[tuple[Any, str]]:
    """Return the argument that each leaf of `(args, keywords)` belongs to: its position or keyword, and its name.

    Arguments:
        names: the known names of the positional arguments.
        structure: the structure of the arguments.
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
    """Return the numbers of the leaves that belong to some arguments, given by position or name."""
    return frozenset([number for number, (key, name) in enumerate(owned) if key in chosen or name in chosen])


def is_found_by_name(function: Callable[..., Any], thing: Any) -> bool:
    """Return whether the qualified name of a function refers to `thing`, as for a decorated function; used for
    pickling.
    """
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is thing


class Arguments:
    """The arguments of a function, classified as inputs, constants, or parts of the signature.

    Arguments:
        function: the function.
        static: the names or positions of arguments that are constants of the program.
    """

    def __init__(self, function: Callable[..., Any], static: Sequence[Any]) -> None:
        self.names = argument_names(function)
        self.static = frozenset(static)
        self._floats: list[tuple[Structure, dict[int, Any]]] = []
        self._made_static: list[tuple[Structure, frozenset[int]]] = []
        self._held: list[Structure] = []

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Call:
        """Return a call with flattened arguments."""
        leaves, structure = flatten((args, keywords))
        return self.of_leaves(structure, leaves, mode, args, keywords)

    def of_leaves(
        self, structure: Structure, leaves: list[Any], mode: int, args: Any = (), keywords: Any = NO_KEYWORDS
    ) -> Call:
        """Return a call whose arguments are already flattened."""
        static = self.static_leaves(structure)
        kinds = tuple([type(leaf) for leaf in leaves if type(leaf) in FLOATS])
        inputs = self._with_inputs(structure, leaves, static)
        has_float_inputs = any(type(leaf) is float and leaf is not each for leaf, each in zip(leaves, inputs))
        key = (*specialization_key(structure, inputs, mode, static), kinds)
        return Call(args, keywords, structure, inputs, static, mode, key, has_float_inputs)

    def static_leaves(self, structure: Structure) -> frozenset[int]:
        """Return the numbers of the static leaves: those declared as static, and those that became static."""
        declared = self._declared(structure) if self.static else NONE
        for other, found in self._made_static:
            if other == structure:
                return declared | found
        return declared

    def _declared(self, structure: Structure) -> frozenset[int]:
        return leaves_of(self.static, owners(self.names, structure))

    def make_static(self, structure: Structure, leaves: list[Any]) -> bool:
        """Treat arrays of integers and bools as constants from now on; return whether this changes any argument."""
        found = frozenset([
            number for number, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iub"
        ])
        if found <= self.static_leaves(structure):
            return False
        self._made_static.append((structure, found))
        return True

    def hold_floats(self, structure: Structure) -> None:
        """Treat Python's floats as constants from now on, because the function gives other results for tensors."""
        self._held.append(structure)

    def _with_inputs(self, structure: Structure, leaves: list[Any], static: frozenset[int]) -> list[Any]:
        """Return the leaves with the floats that have varied between calls replaced by tensors.

        Beside arrays of single precision, Python's floats remain constants: the product of such an array with a float
        has single precision, the product with a float64 tensor does not.
        """
        floats = [number for number, leaf in enumerate(leaves) if type(leaf) in FLOATS and number not in static]
        if floats and (structure in self._held or any(map(_is_single, leaves))):
            floats = [number for number in floats if type(leaves[number]) is not float]
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


def _is_single(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray)) and leaf.dtype.char in "efF"
