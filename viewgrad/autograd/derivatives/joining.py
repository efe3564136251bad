"""The derivatives of what joins tensors, repeats them and moves their elements about."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensor.tensor import FUNCTIONS, Tensor
from .define import row
from .samples import case, draws

__all__ = ["flip"]

Array = np.ndarray[Any, Any]


def flip(self: Any, axis: Any = None) -> Any:
    """A view with the elements along `axis` (along every dimension, where left out) in reverse order."""
    ndim = self.ndim
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    reverse = [slice(None)] * ndim
    for dim in axes:
        reverse[dim] = slice(None, None, -1)
    return self[tuple(reverse)] if ndim else self[...]


Tensor.flip = flip
FUNCTIONS[np.flip] = flip

row(
    "concatenate(tensors, axis=0)", lambda tensors, axis=0: np.concatenate(tensors, axis), {"tensors": "split_gradient(grad, tensors.shapes, axis)"},
    forward_derivative="auto_linear", lists=["tensors"], kinds="fc", numpy=[np.concatenate],
    samples=draws(case([(2, 3), (1, 3), (0, 3)]), case([(2, 3), (2, 1)], axis=-1), case([(2, 3), (2,)], axis=None), case([(2,)])),
    doc="The tensors joined along a dimension that they have.",
)  # fmt: skip
row(
    "roll(self, shift, axis=None)", lambda self, shift, axis=None: np.roll(self, shift, axis), {"self": "roll_back(grad, shift, axis)"},
    forward_derivative="auto_linear", kinds="fc", numpy=[np.roll],
    samples=draws(case((3, 4), 5), case((3, 4), -1, axis=1), case((3, 4), shift=(1, 2), axis=(0, 1)), case((3, 4), shift=2, axis=(0, 1)), case((0, 2), 1)),
    doc="The elements moved along `axis`, or in row order, those that leave coming in at the other end.",
)  # fmt: skip
