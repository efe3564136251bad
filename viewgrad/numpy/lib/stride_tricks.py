"""`numpy.lib.stride_tricks` for tensors: windows on memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...operators.numpy_api.adapted import adapted
from ...tensor.creation import as_operand

__all__ = ["as_strided", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "sliding_window_view"]

broadcast_arrays = adapted(np.broadcast_arrays, "numpy.broadcast_arrays")
broadcast_shapes = np.broadcast_shapes
broadcast_to = adapted(np.broadcast_to, "numpy.broadcast_to")
sliding_window_view = adapted(np.lib.stride_tricks.sliding_window_view, "numpy.lib.stride_tricks.sliding_window_view")


def as_strided(
    x: Any, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None, subok: bool = False,
    writeable: bool = True,
) -> Any:  # fmt: skip
    """Return a window on the memory of `x` with given lengths and strides, which are in bytes as in NumPy."""
    tensor = as_operand(x)
    size = tensor.itemsize
    steps = tensor.strides if strides is None else tuple(strides)
    if any(step % size for step in steps):
        raise ValueError(f"as_strided of tensors requires strides that are multiples of the itemsize, {size}")
    return tensor.as_strided(tensor.shape if shape is None else tuple(shape), tuple(step // size for step in steps))
