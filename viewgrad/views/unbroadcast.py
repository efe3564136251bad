"""Reduction of gradients to the shape and dtype of values that were broadcast or cast."""

from __future__ import annotations

from typing import Any

import numpy as np

Like = tuple[tuple[int, ...], "np.dtype[Any]"]


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Sum `grad` over the dimensions along which a value of `shape` was broadcast."""
    if grad.shape == shape:
        return grad
    if not shape:
        return grad.sum()
    leading = grad.ndim - len(shape)
    if leading < 0:  # the value had more dimensions than the target, all extra ones of length 1
        return sum_to(grad, shape[-leading:]).reshape(shape)
    axes = tuple(range(leading)) + tuple(
        leading + i for i, n in enumerate(shape) if n == 1 and grad.shape[leading + i] != 1
    )
    return grad.sum(axis=axes).reshape(shape) if axes else grad.reshape(shape)


def match_spec(grad: Any, like: Like | None) -> Any:
    """Return `grad` in the shape and dtype of `like`; the real part if only `grad` is complex."""
    if grad is None or like is None:
        return grad
    shape, dtype = like
    if grad.shape != shape:
        grad = sum_to(grad, shape)
    if grad.dtype is not dtype and grad.dtype != dtype:
        if grad.dtype.kind == "c" and dtype.kind != "c":
            grad = grad.real
        grad = grad.astype(dtype)
    return grad
