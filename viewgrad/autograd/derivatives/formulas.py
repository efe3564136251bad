"""Functions that formulas share, for arrays and tensors alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from .codegen import formula_function


@formula_function
def expand_reduced(grad: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """The gradient of a sum over `axis`, broadcast back to `shape`."""
    if not keepdims and grad.ndim != len(shape) and axis is not None:
        grad = np.expand_dims(grad, axis)
    if type(grad) is np.ndarray or isinstance(grad, np.generic):
        return np.broadcast_to(grad, shape)
    return grad.broadcast_to(shape)
