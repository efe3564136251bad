"""Statistics of samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...numpy.values import as_argument, plain_values
from ...tensor.creation import as_operand
from .. import special

__all__ = ["entropy", "gmean", "hmean", "kurtosis", "moment", "sem", "skew", "zscore"]


def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The distances from the mean, in standard deviations."""
    a = as_operand(as_argument(a)) * 1.0
    return (a - a.mean(axis, keepdims=True)) / a.std(axis, ddof=ddof, keepdims=True)


def _central(a: Any, axis: Any, order: int) -> Any:
    a = as_operand(as_argument(a)) * 1.0
    return ((a - a.mean(axis, keepdims=True)) ** order).mean(axis)


def moment(a: Any, order: int = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None) -> Any:
    """The mean of a power of the distances from the mean, or from a given centre."""
    a = as_operand(as_argument(a)) * 1.0
    return ((a - (a.mean(axis, keepdims=True) if center is None else center)) ** order).mean(axis)


def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """The skewness of samples."""
    found = _central(a, axis, 3) / _central(a, axis, 2) ** 1.5
    if bias:
        return found
    n = np.shape(plain_values(as_operand(as_argument(a))))[axis]
    return found * math.sqrt(n * (n - 1)) / (n - 2)


def kurtosis(a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """The kurtosis of samples."""
    found = _central(a, axis, 4) / _central(a, axis, 2) ** 2
    if not bias:
        n = np.shape(plain_values(as_operand(as_argument(a))))[axis]
        found = ((n * n - 1) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return found - 3 if fisher else found


def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate") -> Any:
    """The standard error of the mean."""
    a = as_operand(as_argument(a)) * 1.0
    return a.std(axis, ddof=ddof) / math.sqrt(a.size if axis is None else a.shape[axis])


def gmean(a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate") -> Any:
    """The geometric mean."""
    return np.exp(np.average(np.log(as_operand(as_argument(a))), axis, weights))


def hmean(a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate") -> Any:
    """The harmonic mean."""
    return 1.0 / np.average(1.0 / as_operand(as_argument(a)), axis, weights)


def entropy(pk: Any, qk: Any = None, base: Any = None, axis: int = 0, nan_policy: str = "propagate") -> Any:
    """The entropy of a distribution, or its divergence from another."""
    pk = as_operand(as_argument(pk)) * 1.0
    pk = pk / pk.sum(axis, keepdims=True)
    if qk is None:
        found = special.entr(pk).sum(axis)
    else:
        qk = as_operand(as_argument(qk)) * 1.0
        found = special.rel_entr(pk, qk / qk.sum(axis, keepdims=True)).sum(axis)
    return found if base is None else found / np.log(base)
