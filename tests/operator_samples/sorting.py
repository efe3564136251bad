"""The samples for the operators of derivatives/sorting.py."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial


def running_plainly(a: Any, axis: int, accumulate: Any) -> tuple[Any, Any]:
    """Return a running extremum, computed independently."""
    if not a.ndim:
        return a, np.zeros((), int)
    values = accumulate(a, axis=axis)
    moved, found = np.moveaxis(a, axis, -1), np.moveaxis(values, axis, -1)
    so_far = np.tri(moved.shape[-1], dtype=bool)
    same = (found[..., :, None] == moved[..., None, :]) & so_far
    numbered = np.where(same, np.arange(moved.shape[-1]), -1)  # the last of equal elements
    return values, np.moveaxis(numbered.max(axis=-1, initial=-1), -1, axis)


def topk_plainly(a: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    """Compute `topk` independently."""
    if not a.ndim:
        return a, np.zeros((), int)
    order = np.take(np.argsort(-a if largest else a, axis=axis), np.arange(k), axis)
    return np.take_along_axis(a, order, axis), order


def kthvalue_plainly(a: Any, k: int, axis: int = -1, keepdims: bool = False) -> tuple[Any, Any]:
    """Compute `kthvalue` independently."""
    if not a.ndim:
        return a, np.zeros((), int)
    taken = [k - 1] if keepdims else k - 1
    return np.take(np.sort(a, axis), taken, axis), np.take(np.argsort(a, axis), taken, axis)


trial(
    "topk",
    samples=draws(
        case((5,), 2), case((3, 4), 3, 0), case((3, 4), 2, largest=False), case((3, 4), 0), case((), 1), case((0, 3), 2)
    ),
    reference=topk_plainly,
)
trial(
    "kthvalue",
    samples=draws(case((5,), 2), case((3, 4), 3, 0), case((3, 4), 1, keepdims=True), case((), 1), case((0, 3), 2)),
    reference=kthvalue_plainly,
)
for name, accumulate in (("cummax", np.maximum.accumulate), ("cummin", np.minimum.accumulate)):
    trial(
        name,
        samples=draws(
            case((6,), 0), case((3, 4), 0), case((3, 4), -1), case((2, 5, 2), 1), case((), 0), case((0, 3), 0)
        ),
        reference=functools.partial(running_plainly, accumulate=accumulate),
    )
