"""Nodes for the current elements of an array."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..attributes import Frozen

LARGE: Final = 16  # elements; above, an array of equal elements is made when the graph runs
Array = np.ndarray[Any, Any]


def full_or_constant(array: Array, garbage: bool = False) -> tuple[str, Any]:
    """Return the kind and the attributes of a node for the elements of an array."""
    if garbage:
        return "full", (array.shape, array.dtype.type(0).item(), array.dtype)
    if array.size > 1:
        first = array.flat[0]
        if np.all(array == first) and not (first == 0 and np.any(np.signbit(array.real))):
            return "full", (array.shape, first.item(), array.dtype)
    return "constant", (Frozen(array.copy("C")),)
