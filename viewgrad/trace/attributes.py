"""The attributes of nodes, which are the options known before a graph runs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..tensor.equality import array_key, is_same_array
from ..type_aliases import Array
from .types import Window

LARGE: Final = 16  # elements; larger arrays of equal elements are created when the graph runs


class IndexInput:
    """A placeholder in an index for an array that is an input of the node."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is IndexInput and other.number == self.number

    def __hash__(self) -> int:
        return hash((IndexInput, self.number))

    def __repr__(self) -> str:
        return f"input({self.number})"


class Frozen:
    """An immutable array, equal to any other with the same elements.

    Attributes:
        array: the array.
    """

    __slots__ = ("_hash", "array")

    def __init__(self, array: Array) -> None:
        self.array = array
        self._hash = hash(array_key(array))

    def __eq__(self, other: object) -> bool:
        return type(other) is Frozen and self._hash == other._hash and is_same_array(self.array, other.array)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        array = self.array
        return f"array({array.tolist()!r}, {array.dtype.name!r}" + (f", {array.shape})" if 0 in array.shape else ")")


def unfrozen(option: Any) -> Any:
    """Return an attribute in the form that an operator accepts, with frozen arrays replaced by arrays."""
    kind = type(option)
    if kind is Frozen:
        return option.array
    if kind is tuple:
        for item in option:
            if type(item) in HOLDERS:
                return tuple([unfrozen(item) for item in option])
        return option
    if kind is list:
        return [unfrozen(item) for item in option]
    return option


HOLDERS: Final = frozenset({Frozen, tuple, list})
PLAIN: Final = frozenset({int, bool, str, type(None)})


def interned(known: dict[Any, Any], attributes: Any) -> Any:
    """Return a shared object for equal attributes, if equality can be determined quickly."""
    if type(attributes) is Window:
        return known.setdefault(attributes, attributes)
    if type(attributes) is tuple and attributes:
        kinds = tuple(map(type, attributes))
        if PLAIN.issuperset(kinds):
            return known.setdefault((attributes, kinds), attributes)
    return attributes


def typed(attributes: Any) -> Any:
    """Return attributes that are equal only if they are identical: 1 differs from 1.0, and 0.0 from -0.0."""
    if type(attributes) is tuple:
        return tuple([typed(option) for option in attributes])
    if type(attributes) is list:
        return (list, *[typed(option) for option in attributes])
    if type(attributes) is float or type(attributes) is complex:
        return (type(attributes), repr(attributes))
    return (type(attributes), attributes)


def indexed_shape(shape: tuple[int, ...], pattern: tuple[Any, ...], given: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of `array[pattern]` for an array of `shape` and index arrays with the shapes `given`."""
    probe = np.broadcast_to(np.empty((), bool), shape)
    items = []
    for item in pattern:
        if type(item) is IndexInput:
            items.append(np.zeros(given[item.number], int))
        else:
            items.append(unfrozen(item))
    return probe[tuple(items)].shape


def full_or_constant(array: Array, garbage: bool) -> tuple[str, Any]:
    """Return the kind and attributes of a node for the elements of an array."""
    if garbage:
        return "full", (array.shape, array.dtype.type(0).item(), array.dtype)
    if array.size > 1:
        first = array.flat[0]
        if np.all(array == first) and not (first == 0 and np.any(np.signbit(array.real))):
            return "full", (array.shape, first.item(), array.dtype)
    return "constant", (Frozen(array.copy("C")),)
