"""The derivatives of operators that select values by their order, and return their indices.

The gradient flows to the selected value. Among equal values this is the first one, or for cumulative extrema the latest
one, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...type_aliases import Array
from ..define import row
from ..language.namespace import formula_function

__all__: list[str] = []


@formula_function
def reinserted(a: Any, axis: int, keepdims: bool) -> Any:
    """Restore the dimension that a reduction over `axis` removed; return a 0-d value unchanged."""
    return a if keepdims else np.expand_dims(a, axis)


@formula_function
def length_along(shape: tuple[int, ...], axis: int) -> int:
    """Return the length of a dimension, or 1 for a 0-d value."""
    return shape[axis] if shape else 1


def topk_forward(a: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    n = length_along(a.shape, axis)
    if not 0 <= k <= n:
        raise ValueError(f"k of topk must be between 0 and {n} for dimension {axis} of shape {a.shape}, not {k}")
    if not a.ndim:
        return np.array(a), np.zeros((), np.intp)
    if largest:  # the first of equal values comes first
        order = n - 1 - np.flip(np.argsort(np.flip(a, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(a, axis=axis, kind="stable")
    indices = np.take(order, range(k), axis=axis)
    return np.take_along_axis(a, indices, axis), indices


row(
    "topk(self, k, axis=-1, largest=True, sorted=True) -> (values, indices)",
    topk_forward,
    {"self": "_scatter_along_axis(grad, indices, axis, length_along(self.shape, axis))"},
    nondifferentiable_outputs=("indices",),
    forward_derivative={"values": "gather_along_axis(self_t, indices, axis)"},
    dtype_kinds="fc",
    doc="The `k` largest (or smallest) values along a dimension, which receive the gradient, and their indices.",
)


def kthvalue_forward(a: Any, k: int, axis: int = -1, keepdims: bool = False) -> tuple[Any, Any]:
    n = length_along(a.shape, axis)
    if not 1 <= k <= n:
        raise ValueError(f"k of kthvalue must be between 1 and {n} for dimension {axis} of shape {a.shape}, not {k}")
    if not a.ndim:
        return np.array(a), np.zeros((), np.intp)
    order = np.argsort(a, axis=axis, kind="stable")
    indices = np.take(order, [k - 1], axis=axis)
    values = np.take_along_axis(a, indices, axis)
    return (values, indices) if keepdims else (np.squeeze(values, axis), np.squeeze(indices, axis))


@formula_function
def chosen_along(a: Any, indices: Any, axis: int, keepdims: bool) -> Any:
    """Return the values that a reduction over `axis` selected."""
    if not a.ndim:
        return a
    chosen = np.take_along_axis(a, reinserted(indices, axis, keepdims), axis)
    return chosen if keepdims else np.squeeze(chosen, axis)


row(
    "kthvalue(self, k, axis=-1, keepdims=False) -> (values, indices)",
    kthvalue_forward,
    {
        "self": "_scatter_along_axis(reinserted(grad, axis, keepdims or not self.ndim), "
        "reinserted(indices, axis, keepdims or not self.ndim), axis, length_along(self.shape, axis))"
    },
    nondifferentiable_outputs=("indices",),
    forward_derivative={"values": "chosen_along(self_t, indices, axis, keepdims)"},
    dtype_kinds="fc",
    doc="The `k`-th smallest value along a dimension, counted from 1, which receives the gradient, and its index.",
)


def running_extremum(name: str, accumulate: Any, doc: str) -> None:
    """Declare a cumulative maximum or minimum."""

    def forward(a: Any, axis: int) -> tuple[Array, Array]:
        if not a.ndim:
            return np.array(a), np.zeros((), np.intp)
        values = accumulate(a, axis=axis)
        shape = [1] * a.ndim
        shape[axis] = a.shape[axis]
        places = np.arange(a.shape[axis]).reshape(shape)
        reached = np.where((a == values) | (a != a), places, 0)
        return values, np.maximum.accumulate(reached, axis=axis)

    row(
        f"{name}(self, axis=-1) -> (values, indices)",
        forward,
        {"self": "_scatter_along_axis(grad, indices, axis, length_along(self.shape, axis))"},
        nondifferentiable_outputs=("indices",),
        forward_derivative={"values": "gather_along_axis(self_t, indices, axis)"},
        dtype_kinds="fc",
        doc=doc,
    )


for _name, _accumulate, _which in (
    ("cummax", np.maximum.accumulate, "maxima"),
    ("cummin", np.minimum.accumulate, "minima"),
):
    running_extremum(
        _name,
        _accumulate,
        f"The running {_which} along a dimension, and their indices; of equal values the last one gets the gradient.",
    )
