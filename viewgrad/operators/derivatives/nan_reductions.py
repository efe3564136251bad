"""Reductions that ignore NaN, composed of operators: NaN is replaced by the neutral element."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import as_scalar, is_scalar
from ..composites import composite
from .helpers import plain
from .statistics import counts_beside


def filled(a: Any, value: float) -> Any:
    """Return the values with missing ones replaced."""
    return a.masked_fill(np.isnan(a), value)


def _extremum(a: Any, name: str, stand_in: float, axis: Any, keepdims: bool) -> Any:
    a = as_operand(a)
    result = getattr(filled(a, stand_in), name)(axis=axis, keepdims=keepdims)
    empty = np.isnan(a).all(axis=axis, keepdims=keepdims)
    if empty.any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=3)
        result = result.masked_fill(empty, math.nan)
    return result


@composite(np.nanmax)
def nanmax(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the maximum, ignoring NaN; ties share the gradient."""
    return _extremum(self, "max", -math.inf, axis, keepdims)


@composite(np.nanmin)
def nanmin(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the minimum, ignoring NaN; ties share the gradient."""
    return _extremum(self, "min", math.inf, axis, keepdims)


@composite(np.nanprod)
def nanprod(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the product, ignoring NaN."""
    return filled(as_operand(self), 1).prod(axis=axis, keepdims=keepdims)


@composite(np.nancumsum)
def nancumsum(self: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative sum, treating NaN as 0."""
    return np.cumsum(filled(as_operand(self), 0), axis=axis, dtype=dtype)


@composite(np.nancumprod)
def nancumprod(self: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative product, treating NaN as 1."""
    return np.cumprod(filled(as_operand(self), 1), axis=axis, dtype=dtype)


@composite(np.nanvar)
def nanvar(self: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """Return the variance, ignoring NaN; NaN if there are not more than `ddof` numbers."""
    self = as_operand(self)
    missing = np.isnan(self)
    deviation = (self - self.nanmean(axis=axis, keepdims=True)).masked_fill(missing, 0)
    freedom = counts_beside(self, axis).real - ddof
    squares = (deviation * deviation.conj()).real.sum(axis=axis, keepdims=True)
    variance = (squares / freedom).masked_fill((freedom <= 0) | missing.all(axis=axis, keepdims=True), math.nan)
    return variance if keepdims else variance.sum(axis=axis)


@composite(np.nanstd)
def nanstd(self: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """Return the standard deviation, ignoring NaN."""
    return root_of_variance(nanvar(self, axis, ddof, keepdims))


def root_of_variance(variance: Any) -> Any:
    """Return the square root, with a zero gradient where the variance is 0, since all values are equal there."""
    root = np.where(variance == 0, variance, np.sqrt(variance))
    return as_scalar(root) if is_scalar(variance) else root


@composite(np.nanargmax)
def nanargmax(self: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the maximum, ignoring NaN."""
    return _numbers(self, axis, -math.inf).argmax(axis=axis, keepdims=keepdims)


@composite(np.nanargmin)
def nanargmin(self: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the minimum, ignoring NaN."""
    return _numbers(self, axis, math.inf).argmin(axis=axis, keepdims=keepdims)


def _numbers(values: Any, axis: int | None, fill: float) -> Any:
    """Return the values with NaN replaced by a number; raise ValueError if all values of a slice are NaN."""
    values = as_operand(values)
    if values.size and plain(np.isnan(values)).all(axis).any():
        raise ValueError("All-NaN slice encountered")
    return filled(values, fill)
