"""The printed form of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AutogradError

if TYPE_CHECKING:
    from .tensor import Tensor

SHOWN_BY_DEFAULT = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_), np.dtype(np.complex128))


def tensor_repr(tensor: Tensor) -> str:
    """Return the tensor as an expression, including `dtype`, `grad_fn` or `requires_grad` if they are informative."""
    array: np.ndarray[Any, Any] = np.asarray(tensor._array)
    parts = [np.array2string(array, separator=", ", prefix="Tensor(")]
    if array.size == 0 and array.shape != (0,):
        parts.append(f"shape={array.shape}")
    if array.dtype not in SHOWN_BY_DEFAULT or (array.size == 0 and array.dtype != np.float64):
        parts.append(f"dtype={array.dtype}")
    try:
        grad_fn = tensor.grad_fn
        if grad_fn is not None:
            parts.append(f"grad_fn={grad_fn!r}")
        elif tensor.requires_grad:
            parts.append("requires_grad=True")
    except AutogradError:  # a view without a valid history, whose use would be refused
        parts.append("grad_fn=<invalid>")
    return f"Tensor({', '.join(parts)})"
