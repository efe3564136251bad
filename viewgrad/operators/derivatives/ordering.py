"""The derivatives of rows that choose values by their order, and say which they chose.

The gradient goes to the value that was chosen; among equal values that is the first, and for running extrema the last
so far, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.compile import formula_function
from ..define import row
from ..samples import case, draws

__all__: list[str] = []

Array = np.ndarray[Any, Any]


@formula_function
def reinserted(a: Any, dim: int, keepdim: bool) -> Any:
    """What a reduction over `dim` gave, with that dimension put in where it was left out; of 0-d values the value."""
    return a if keepdim else np.expand_dims(a, dim)


@formula_function
def length_along(shape: tuple[int, ...], dim: int) -> int:
    """The length of a dimension; 1 for a value that has none."""
    return shape[dim] if shape else 1


def topk_forward(a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    n = length_along(a.shape, dim)
    if not 0 <= k <= n:
        raise ValueError(f"topk takes between 0 and {n} values along dimension {dim} of shape {a.shape}, not {k}")
    if not a.ndim:
        return np.array(a), np.zeros((), np.intp)
    if largest:  # of equal values the first comes first
        order = n - 1 - np.flip(np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)
    else:
        order = np.argsort(a, axis=dim, kind="stable")
    indices = np.take(order, range(k), axis=dim)
    return np.take_along_axis(a, indices, dim), indices


def topk_plainly(a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    """`topk`, in another way."""
    if not a.ndim:
        return a, np.zeros((), int)
    order = np.take(np.argsort(-a if largest else a, axis=dim), np.arange(k), dim)
    return np.take_along_axis(a, order, dim), order


row(
    "topk(self, k, dim=-1, largest=True, sorted=True) -> (values, indices)",
    topk_forward,
    {"self": "scatter_along_axis(grad, indices, dim, length_along(self.shape, dim))"},
    nondifferentiable_outputs=("indices",),
    forward_derivative={"values": "gather_along_axis(self_t, indices, dim)"},
    samples=draws(
        case((5,), 2), case((3, 4), 3, 0), case((3, 4), 2, largest=False), case((3, 4), 0), case((), 1), case((0, 3), 2)
    ),
    reference=topk_plainly,
    kinds="fc",
    doc="The `k` greatest (or least) values along a dimension, in order, and where they are.",
)


def kthvalue_forward(a: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    n = length_along(a.shape, dim)
    if not 1 <= k <= n:
        raise ValueError(f"kthvalue takes a number between 1 and {n} for dimension {dim} of shape {a.shape}, not {k}")
    if not a.ndim:
        return np.array(a), np.zeros((), np.intp)
    order = np.argsort(a, axis=dim, kind="stable")
    indices = np.take(order, [k - 1], axis=dim)
    values = np.take_along_axis(a, indices, dim)
    return (values, indices) if keepdim else (np.squeeze(values, dim), np.squeeze(indices, dim))


@formula_function
def chosen_along(a: Any, indices: Any, dim: int, keepdim: bool) -> Any:
    """The values that a reduction over `dim` chose."""
    if not a.ndim:
        return a
    chosen = np.take_along_axis(a, reinserted(indices, dim, keepdim), dim)
    return chosen if keepdim else np.squeeze(chosen, dim)


def kthvalue_plainly(a: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """`kthvalue`, in another way."""
    if not a.ndim:
        return a, np.zeros((), int)
    taken = [k - 1] if keepdim else k - 1
    return np.take(np.sort(a, dim), taken, dim), np.take(np.argsort(a, dim), taken, dim)


row(
    "kthvalue(self, k, dim=-1, keepdim=False) -> (values, indices)",
    kthvalue_forward,
    {
        "self": "scatter_along_axis(reinserted(grad, dim, keepdim or not self.ndim), "
        "reinserted(indices, dim, keepdim or not self.ndim), dim, length_along(self.shape, dim))"
    },
    nondifferentiable_outputs=("indices",),
    forward_derivative={"values": "chosen_along(self_t, indices, dim, keepdim)"},
    samples=draws(case((5,), 2), case((3, 4), 3, 0), case((3, 4), 1, keepdim=True), case((), 1), case((0, 3), 2)),
    reference=kthvalue_plainly,
    kinds="fc",
    doc="The `k`-th least value along a dimension, counted from 1, and where it is.",
)


def running_plainly(a: Any, dim: int, accumulate: Any) -> tuple[Any, Any]:
    """A running extremum, in another way."""
    if not a.ndim:
        return a, np.zeros((), int)
    values = accumulate(a, axis=dim)
    moved, found = np.moveaxis(a, dim, -1), np.moveaxis(values, dim, -1)
    places = (found[..., :, None] == moved[..., None, :]).argmax(axis=-1) if a.size else np.zeros(found.shape, int)
    return values, np.moveaxis(places, -1, dim)


def running_extremum(name: str, accumulate: Any, doc: str) -> None:
    """A row for a running maximum or minimum."""

    def forward(a: Any, dim: int) -> tuple[Array, Array]:
        if not a.ndim:
            return np.array(a), np.zeros((), np.intp)
        values = accumulate(a, axis=dim)
        shape = [1] * a.ndim
        shape[dim] = a.shape[dim]
        places = np.arange(a.shape[dim]).reshape(shape)
        reached = np.where((a == values) | (a != a), places, 0)
        return values, np.maximum.accumulate(reached, axis=dim)

    row(
        f"{name}(self, dim) -> (values, indices)",
        forward,
        {"self": "scatter_along_axis(grad, indices, dim, length_along(self.shape, dim))"},
        nondifferentiable_outputs=("indices",),
        forward_derivative={"values": "gather_along_axis(self_t, indices, dim)"},
        samples=draws(
            case((6,), 0), case((3, 4), 0), case((3, 4), -1), case((2, 5, 2), 1), case((), 0), case((0, 3), 0)
        ),
        reference=lambda a, dim: running_plainly(a, dim, accumulate),
        kinds="fc",
        doc=doc,
    )


running_extremum(
    "cummax", np.maximum.accumulate, "The greatest of the values so far along a dimension, and where it is."
)
running_extremum("cummin", np.minimum.accumulate, "The least of the values so far along a dimension, and where it is.")
