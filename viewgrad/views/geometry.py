"""TensorGeometry: sizes, strides and offset, all that is needed to take a strided window again."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..tensor.windows import address_of

__all__ = ["TensorGeometry"]

Array = np.ndarray[Any, Any]


@attrs.frozen
class TensorGeometry:
    """A strided window, counted in elements.

    Arguments:
        sizes: the lengths of its dimensions.
        strides: the steps between neighbours, in elements of the buffer.
        storage_offset: where its first element lies, in elements from the start of the base.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int

    @classmethod
    def of(cls, window: Array, base: Array) -> TensorGeometry:
        """The geometry of `window`, counted from the first element of `base`."""
        itemsize = base.itemsize
        offset = address_of(window) - address_of(base) if window.size else 0
        return cls(window.shape, tuple(stride // itemsize for stride in window.strides), offset // itemsize)

    def window(self, buffer: Array) -> Array:
        """The window on another buffer, which must be laid out in row order and as large as the base."""
        itemsize = buffer.itemsize
        return np.ndarray(
            self.sizes,
            buffer.dtype,
            buffer,
            self.storage_offset * itemsize,
            tuple([stride * itemsize for stride in self.strides]),
        )

    @property
    def overlaps_itself(self) -> bool:
        """Whether two elements may share one place in memory (never no when they do)."""
        if 0 in self.sizes:
            return False
        reach = 0
        for stride, size in sorted((abs(t), s) for t, s in zip(self.strides, self.sizes, strict=True) if s > 1):
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False
