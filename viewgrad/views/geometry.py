"""The geometry of windows: how to take a window again, and whether its elements overlap."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from ..tensor.saved_windows import address_of
from ..type_aliases import Array

SEARCH: Final = 100_000  # the maximum number of candidates to inspect


@attrs.frozen
class TensorGeometry:
    """A strided window, measured in elements.

    Arguments:
        sizes: the lengths of the dimensions.
        strides: the steps between neighbours, in elements of the buffer.
        storage_offset: the position of the first element, in elements from the start of the base.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int

    @classmethod
    def of(cls, window: Array, base: Array) -> TensorGeometry:
        """Return the geometry of `window` relative to the first element of `base`."""
        itemsize = base.itemsize
        offset = address_of(window) - address_of(base) if window.size else 0
        return cls(window.shape, tuple(stride // itemsize for stride in window.strides), offset // itemsize)

    def window(self, buffer: Array) -> Array:
        """Return the window of another buffer, which must be in row-major order and have the size of the base."""
        itemsize = buffer.itemsize
        return np.ndarray(
            self.sizes,
            buffer.dtype,
            buffer,
            self.storage_offset * itemsize,
            tuple([stride * itemsize for stride in self.strides]),
        )


def overlaps_itself(window: Array) -> bool:
    """Return whether two elements of a window share memory.

    The decision is exact, based on NumPy's search for a common element of two windows. If the search takes too long,
    the result is True.
    """
    if window.size <= 1:
        return False
    reach = window.itemsize
    for stride, extent in sorted((abs(t), n) for t, n in zip(window.strides, window.shape, strict=True) if n > 1):
        if not stride:
            return True
        if stride < reach:
            break
        reach += stride * (extent - 1)
    else:
        return False
    # Two elements that share memory differ in some first dimension; there, one of them can be assumed to have index 0.
    for dimension in range(window.ndim):
        plane = window[(0,) * dimension]
        try:
            if np.shares_memory(plane[1:], plane[:1], max_work=SEARCH):  # type: ignore[arg-type]
                return True
        except np.exceptions.TooHardError:
            return True
    return False
