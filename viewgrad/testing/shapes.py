"""Compatibility of shapes: for operands, for writes to a window, and for indices."""

from __future__ import annotations

import numpy as np

from ..tensor.saved_windows import address_of
from ..type_aliases import Array


def broadcastable(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether arrays of the given shapes can be broadcast against each other."""
    try:
        np.broadcast_shapes(shape, other)
    except ValueError:
        return False
    return True


def fits_into(shape: tuple[int, ...], window: tuple[int, ...]) -> bool:
    """Return whether a value of one shape can be written to a window of another."""
    return broadcastable(shape, window) and np.broadcast_shapes(shape, window) == window


def are_operands(name: str, shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether tensors of the given shapes can be the operands of a binary function."""
    if name == "outer":
        return len(shape) == len(other) == 1
    if name == "stack":
        return shape == other
    if name == "concatenate":
        return len(shape) == len(other) > 0 and shape[1:] == other[1:]
    return 0 < len(shape) and 0 < len(other) and matrices_fit(shape, other)


def matrices_fit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Return whether matrices or vectors of the given shapes can be multiplied."""
    if len(a) > 2 or len(b) > 2:
        return False
    return a[-1] == b[-2 if len(b) > 1 else 0]


def same_window(a: Array, b: Array) -> bool:
    """Return whether two arrays cover the same elements in the same order."""
    return address_of(a) == address_of(b) and a.shape == b.shape and a.strides == b.strides


def is_index(array: Array, extent: int) -> bool:
    """Return whether an array can index a dimension of the given length."""
    return array.dtype.kind == "i" and 0 < array.ndim <= 1 and bool((array < extent).all() and (array >= -extent).all())
