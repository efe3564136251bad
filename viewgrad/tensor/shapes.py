"""Reshape arrays and tensors for broadcasting."""

from __future__ import annotations

from typing import Any


def with_leading_ones(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Return a shape of at least `ndim` dimensions, with leading dimensions of length 1."""
    return (1,) * (ndim - len(shape)) + shape


def with_ndim(value: Any, ndim: int) -> Any:
    """Return an array or a tensor with at least `ndim` dimensions; new dimensions come first."""
    return value.reshape(with_leading_ones(value.shape, ndim)) if value.ndim < ndim else value


def along_first(values: Any, ndim: int) -> Any:
    """Reshape a vector so that it broadcasts along the first of several dimensions."""
    return values.reshape((-1,) + (1,) * (ndim - 1))
