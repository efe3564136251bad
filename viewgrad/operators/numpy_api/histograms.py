"""Adapters of NumPy's histograms.

Counts are piecewise constant. Gradients flow to the weights, which are summed if given, and to the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor.creation import as_operand, holds_tensor
from ...tensor.tensor import FUNCTIONS, Tensor, from_array
from .. import OPERATORS
from ..composites import choosing, composite
from ..derivatives.helpers import plain

__all__: list[str] = []


def _edges(a: Tensor, bins: Any, range_: Any) -> Any:
    """Return the edges of bins; edges determined by the extreme values depend on these differentiably."""
    if not isinstance(bins, (int, np.integer, Tensor)) or (isinstance(bins, Tensor) and bins.ndim):
        return as_operand(bins) if not isinstance(bins, str) else _edges(
            a, np.histogram_bin_edges(plain(a), bins, range_).size - 1, range_)  # fmt: skip
    first, last = (a.min(), a.max()) if range_ is None and a.size else map(as_operand, range_ or (0.0, 1.0))
    if plain(first) == plain(last):
        first, last = first - 0.5, last + 0.5
    kind = a.dtype if a.dtype.kind in "fc" else float
    return np.linspace(first, last, int(bins) + 1).astype(kind)


def _summed(places: Any, weights: Any, count: int) -> Any:
    """Return the sum of the weights in each bin, in the dtype of the weights."""
    add_up = OPERATORS["bincount"].function
    if weights.is_complex():
        return (add_up(places, weights.real, count) + add_up(places, weights.imag, count) * 1j).astype(weights.dtype)
    known = weights.astype(float) if weights.dtype == np.longdouble else weights
    return add_up(places, known, count).astype(weights.dtype, copy=False)


def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Implement `numpy.bincount`, which sums in double precision."""
    if not len(x):  # for no values, NumPy returns integers regardless of the weights
        x, weights = (x if hasattr(x, "dtype") else np.zeros(0, int)), None
    if weights is not None:
        weights = as_operand(weights)
        if not np.can_cast(weights.dtype, float, "safe"):
            raise TypeError(f"np.bincount sums up in float64, to which {weights.dtype} cannot be cast safely")
        weights = weights.astype(float, copy=False)
    return OPERATORS["bincount"].function(x, weights, minlength)


FUNCTIONS[np.bincount] = _bincount


@composite(np.histogram_bin_edges, method=False)
@choosing
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins of a histogram."""
    return _edges(as_operand(a).reshape(-1), bins, range)


@composite(np.histogram, method=False)
@choosing
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the number of elements, or the sum of their weights, in each bin, and the edges of the bins.

    Counts are piecewise constant; gradients flow to the weights and the edges.
    """
    a = as_operand(a).reshape(-1)
    edges = _edges(a, bins, range)
    # Computed as in NumPy, so that edges are rounded in the same way.
    given = plain(bins) if not isinstance(bins, str) else bins
    counts, plain_edges = np.histogram(plain(a), given, plain(range) if holds_tensor(range) else range)
    if weights is None:
        totals: Any = from_array(counts)
    else:
        if np.size(weights) != a.size:
            raise ValueError(f"histogram of {a.size} values requires as many weights, not {np.size(weights)}")
        values, own_edges = plain(a), plain_edges
        places = np.searchsorted(own_edges, values, "right") - 1
        places[values == own_edges[-1]] = len(own_edges) - 2
        inside = (places >= 0) & (places < len(own_edges) - 1)
        totals = _summed(places[inside], as_operand(weights).reshape(-1)[inside], len(own_edges) - 1)
    if density:
        totals = totals / np.diff(edges) / totals.sum()
    return totals, edges


@composite(np.histogramdd, method=False)
@choosing
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """Return the counts of points, or sums of weights, in the cells of a grid, and the edges along each axis."""
    if isinstance(sample, (list, tuple)):
        columns: Any = [as_operand(each).reshape(-1) for each in sample]
    else:
        points = as_operand(sample)
        columns = list((points if points.ndim > 1 else points[:, None]).T)
    each = bins if isinstance(bins, (list, tuple)) else [bins] * len(columns)
    counts, edges = _in_cells(columns, each, range, density, weights)
    return counts, edges


@composite(np.histogram2d, method=False)
@choosing
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the counts of points, or sums of weights, in the cells of a 2-d grid, and the edges along both axes."""
    each = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    totals, (along_x, along_y) = _in_cells([as_operand(v).reshape(-1) for v in (x, y)], each, range, density, weights)
    return totals, along_x, along_y


def _in_cells(columns: Sequence[Any], bins: Sequence[Any], range_: Any, density: Any, weights: Any) -> Any:
    ranges = range_ if range_ is not None else [None] * len(columns)
    edges = [_edges(values, each, limits) for values, each, limits in zip(columns, bins, ranges, strict=True)]
    own = [plain(edge) for edge in edges]
    shape = tuple(len(edge) - 1 for edge in own)
    inside, flat = np.ones(len(columns[0]), bool), np.zeros(len(columns[0]), int)
    for values, edge, length in zip(map(plain, columns), own, shape):
        places = np.searchsorted(edge, values, "right") - 1
        places[values == edge[-1]] = length - 1
        inside &= (places >= 0) & (places < length)
        flat = flat * length + places
    chosen = as_operand(np.ones(int(inside.sum())) if weights is None else as_operand(weights)[inside])
    totals = _summed(flat[inside], chosen, int(np.prod(shape))).reshape(shape)
    if density:
        total = totals.sum()
        for axis, edge in enumerate(edges):
            totals = totals / np.diff(edge).reshape([-1 if each == axis else 1 for each in range(len(shape))])
        totals = totals / total
    return totals, tuple(edges)
