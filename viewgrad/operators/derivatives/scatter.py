"""Operators that scatter values into zeros, used by the formulas of operators that gather values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor.creation import as_operand, from_number
from ...tensor.escapes import has_tangent
from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import array_of
from ...type_aliases import Array
from ...views.unbroadcast import Like
from ..composites import composite
from ..define import row
from ..language.namespace import formula_function
from .helpers import call


@formula_function
def materialized(grads: Sequence[Any], input_specs: Sequence[Like], recorded: bool) -> list[Any]:
    """Return the gradients of the outputs of an operator, with zeros for undefined ones.

    Arguments:
        grads: arrays, or tensors in a recorded run; None if no gradient arrived.
        input_specs: the shape and dtype of each output.
        recorded: whether the run is recorded.
    """
    zeros = [np.zeros(*like) if grad is None else grad for grad, like in zip(grads, input_specs)]
    if not recorded:
        return zeros
    return [from_number(new) if old is None else old for new, old in zip(zeros, grads)]


def is_known_zero(grad: Any) -> bool:
    """Return whether a gradient is known to be zero: all elements are zero, and there is no history and no tangent.

    This holds for zeros that replace an undefined gradient, but not for a value that happens to be zero.
    """
    if isinstance(grad, Tensor):
        if grad.requires_grad or has_tangent(grad):
            return False
        grad = array_of(grad, "the formula of a gradient")
    return not np.any(grad)


def zeros_beside(value: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of a given shape and the dtype of `value`, as an array or a tensor like `value`."""
    zeros = np.zeros(shape, value.dtype)
    return from_number(zeros) if isinstance(value, Tensor) else zeros


def in_precision_of(result: Any, a: Any) -> Array:
    """Return a result in the dtype of the floating-point array that it was computed from."""
    array = np.asarray(result)
    return array.astype(a.dtype, copy=False) if a.dtype.kind in "fc" else array


def values_of(a: Any) -> Array:
    """Return the array of a tensor, or the array itself."""
    return array_of(a, "an operator that computes with arrays") if isinstance(a, Tensor) else np.asarray(a)


# -- along a dimension -------------------------------------------------------------------------------------------------


def scatter_along_axis_forward(a: Any, indices: Any, axis: int, length: int) -> Array:
    shape = list(a.shape)
    if not shape:
        return np.array(a)
    shape[axis] = length
    result = np.zeros(shape, a.dtype)
    places = list(np.indices(a.shape, sparse=True))
    places[axis] = indices
    if np.broadcast_shapes(*(place.shape for place in places)) != a.shape:
        raise ValueError(f"indices of shape {indices.shape} along axis {axis} do not match values of shape {a.shape}")
    np.add.at(result, tuple(places), a)
    return result


@formula_function
def gather_along_axis(values: Any, indices: Any, axis: int) -> Any:
    """Return the values at `indices` along `axis`, or the value itself if it is 0-d."""
    return np.take_along_axis(values, indices, axis) if values.ndim else values


row(
    "_scatter_along_axis(self, indices, axis, length)",
    scatter_along_axis_forward,
    {"self": "gather_along_axis(grad, indices, axis)", "indices": "not_differentiable"},
    forward_derivative="auto_linear",
    method=False,
    dtype_kinds="fc",
    doc="Zeros with `length` elements along `axis`, with the elements added at `indices` along that axis.",
)


def scattered(values: Any, indices: Any, axis: int, length: int) -> Any:
    """Return `scatter_along_axis` for an array or a tensor."""
    return call("_scatter_along_axis", values, indices, axis, length)


# -- on a diagonal -----------------------------------------------------------------------------------------------------


def diag_embed_forward(a: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    n = a.shape[-1] + abs(offset)
    result = np.zeros((*a.shape[:-1], n, n), a.dtype)
    steps = np.arange(a.shape[-1])
    result[..., steps + max(-offset, 0), steps + max(offset, 0)] = a
    return np.moveaxis(result, (-2, -1), (dim1, dim2)).copy()


row(
    "diag_embed(self, offset=0, dim1=-2, dim2=-1)",
    diag_embed_forward,
    {"self": "grad.diagonal(offset, dim1, dim2)"},
    forward_derivative="auto_linear",
    dtype_kinds="fc",
    doc="Matrices of zeros with the last dimension on a diagonal.",
)


@composite(np.diag, method=False)
def diag(v: Any, k: int = 0) -> Any:
    """Return the diagonal of a matrix as a view, or a matrix with a given diagonal.

    Arguments:
        v: a matrix or a vector.
        k: the diagonal; positive numbers are above the main diagonal.

    Raises:
        ValueError: if `v` is neither a matrix nor a vector.

    Example:
        >>> import viewgrad as vg
        >>> vg.diag(vg.Tensor([1.0, 2.0]))
        Tensor([[1., 0.],
                [0., 2.]])
    """
    v = as_operand(v)
    if v.ndim not in (1, 2):
        raise ValueError(f"diag requires a matrix or a vector, not {v.ndim} dimensions")
    return v.diagonal(k) if v.ndim == 2 else v.diag_embed(k)
