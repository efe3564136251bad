"""Indices in programs: their source text, and their values for arrays.

An index is a tuple of ints, slices, None and `...`. Nested tuples in it represent arrays of integers or bools, and
`Named` refers to a tensor of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ..type_aliases import Array

Index = tuple[Any, ...]


@attrs.frozen
class Named:
    """An index array that is a tensor of the program."""

    name: str


def index_source(index: Index) -> str:
    """Return the source text of an index, without brackets."""
    return ", ".join(map(_item_source, index)) or "()"


def index_value(index: Index, array_of: Callable[[str], Array]) -> Index:
    """Return an index with nested tuples and names of tensors replaced by arrays."""
    return tuple(
        np.array(item) if isinstance(item, tuple) else array_of(item.name) if isinstance(item, Named) else item
        for item in index
    )


def names_in_index(index: Index) -> tuple[str, ...]:
    """Return the names of the tensors that an index uses."""
    return tuple(item.name for item in index if isinstance(item, Named))


def array_source(nested: Any) -> str:
    """Return nested tuples of numbers as an array."""
    return f"np.array({_listed(nested)})"


def _item_source(item: Any) -> str:
    if isinstance(item, slice):
        start, stop, step = ("" if part is None else str(part) for part in (item.start, item.stop, item.step))
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
    if item is Ellipsis:
        return "..."
    if isinstance(item, tuple):
        return array_source(item)
    return item.name if isinstance(item, Named) else repr(item)


def _listed(nested: Any) -> str:
    return f"[{', '.join(map(_listed, nested))}]" if isinstance(nested, tuple) else repr(nested)
