"""Shapes in which arrays and tensors broadcast against others."""

from __future__ import annotations

from typing import Any


def with_leading_ones(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Return a shape of at least `ndim` dimensions, with leading dimensions of length 1."""
    return (1,) * (ndim - len(shape)) + shape


def with_ndim(value: Any, ndim: int) -> Any:
    """Return an array or a tensor with at least `ndim` dimensions; those that are added come first."""
    return value.reshape(with_leading_ones(value.shape, ndim)) if value.ndim < ndim else value


def along_first(values: Any, ndim: int) -> Any:
    """Return a vector in the shape in which it broadcasts along the first of several dimensions."""
    return values.reshape((-1,) + (1,) * (ndim - 1))
