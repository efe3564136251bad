"""Adapters of NumPy's statistics and set functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, as_buffered, from_array
from .. import OPERATORS
from ..composites import composite
from ..derivatives.helpers import plain
from ..derivatives.statistics import correlations

concatenate = OPERATORS["concatenate"].function


# -- covariances -------------------------------------------------------------------------------------------------------


def _observations(m: Any, y: Any, rowvar: bool) -> Any:
    """Return the variables of one or two tensors as rows."""
    parts = []
    for part in (m, y):
        if part is None:
            continue
        matrix = as_operand(part) * 1.0
        matrix = matrix.reshape(1, -1) if matrix.ndim < 2 else matrix
        parts.append(matrix if rowvar or matrix.shape[0] == 1 else matrix.T)
    return concatenate(parts) if len(parts) > 1 else parts[0]


def _cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    given = [as_operand(part).dtype for part in (m, y) if part is not None]
    dtype = np.result_type(*given, float) if dtype is None else dtype
    if np.dtype(dtype).kind in "biu":
        raise TypeError(f"cov and corrcoef compute in floating-point dtypes, not in {np.dtype(dtype)}")
    single = as_operand(m).astype(dtype, copy=False)
    y = None if y is None else as_operand(y).astype(dtype, copy=False)
    if fweights is None and aweights is None:
        variables = single if y is None else _observations(single, y, rowvar)
        return as_buffered(OPERATORS["cov"].function(variables, rowvar=rowvar or y is not None, bias=bias, ddof=ddof))
    variables = _observations(single, y, rowvar)
    ddof = (0 if bias else 1) if ddof is None else ddof
    counts = 1.0 if fweights is None else as_operand(fweights) * 1.0
    weights = counts if aweights is None else counts * as_operand(aweights)
    total = weights.sum()  # type: ignore[union-attr]
    freedom = total - ddof if aweights is None else total - ddof * (weights * as_operand(aweights)).sum() / total
    centred = variables - ((variables * weights).sum(1) / total)[:, None]
    found = (centred * weights) @ centred.T.conj() / freedom
    return as_buffered(found.squeeze())


def _corrcoef(
    x: Any, y: Any = None, rowvar: bool = True, bias: Any = None, ddof: Any = None, *, dtype: Any = None
) -> Any:
    """Return the correlation coefficients; `bias` and `ddof`, which NumPy 2.5 removed, have no effect."""
    return correlations(_cov(x, y, rowvar, dtype=dtype))


FUNCTIONS[np.cov], FUNCTIONS[np.corrcoef] = _cov, _corrcoef


# -- sets --------------------------------------------------------------------------------------------------------------


def _selected(ar1: Any, ar2: Any, kept: Callable[[Any, Any], Any]) -> Any:
    """Return the distinct elements of the first tensor selected by a mask that depends on the second."""
    values, places = np.unique(plain(ar1), return_index=True)
    return as_operand(ar1).reshape(-1)[places[kept(values, plain(ar2))]]


@composite(np.setdiff1d, method=False)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the elements of the first tensor that are not in the second, sorted unless they are assumed unique."""
    if assume_unique:
        return as_operand(ar1).reshape(-1)[~np.isin(plain(ar1).reshape(-1), plain(ar2))]
    return _selected(ar1, ar2, lambda values, other: ~np.isin(values, other))


@composite(np.intersect1d, method=False)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the sorted elements that are in both tensors."""
    found, first, second = np.intersect1d(plain(ar1), plain(ar2), assume_unique, return_indices=True)
    common = as_operand(ar1).reshape(-1)[first].astype(found.dtype)
    return (common, from_array(first), from_array(second)) if return_indices else common


@composite(np.union1d, method=False)
def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the sorted distinct elements of both tensors."""
    both = np.concatenate([ar1, ar2], axis=None)
    return both[np.unique(plain(both), return_index=True)[1]]


@composite(np.setxor1d, method=False)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the sorted elements that are in exactly one of the two tensors."""
    rest = concatenate([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)])
    return rest[np.argsort(plain(rest))]
