"""Equality for guards and caches: arrays are compared bit by bit, constants by type and value."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_key(array: np.ndarray[Any, Any]) -> tuple[np.dtype[Any], tuple[int, ...], bytes]:
    """Return a hashable key that is equal for arrays with the same dtype, shape and elements only.

    Elements are the same if their bits are: NaN equals itself, and 0.0 is not -0.0.
    """
    return array.dtype, array.shape, array.tobytes()


def is_same_array(one: Any, other: Any) -> bool:
    """Return whether two objects are arrays with the same dtype, shape and elements."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one is other or one.tobytes() == other.tobytes()  # `numpy.ma.masked`, its own copy, has no bytes


def is_same_constant(one: Any, other: Any) -> bool:
    """Return whether two constants have the same type and value.

    NaN equals itself, and 0.0 is not -0.0.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, (float, complex, np.inexact)):
        return repr(one) == repr(other)
    return one is other or bool(one == other)
