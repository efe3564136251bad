"""Statistics of sorted samples: trimmed values, percentiles, median slopes, and binned statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..wrap import Outcome, floating
from .axis_policy import made


def _between(a: Any, low: int, high: int, axis: Any) -> Any:
    """Return the elements whose ranks along an axis lie between two numbers, in SciPy's order."""
    places = np.argpartition(plain_values(a.detach()), (low, high - 1), axis)
    chosen = np.take(places, np.arange(low, high), axis)
    return np.take_along_axis(a, chosen, axis)


def _cut(a: Any, proportion: float, axis: Any) -> tuple[Any, int, int, int]:
    """Return a sample, its axis, its size, and the number of values that correspond to a proportion."""
    a, axis = (floating(a).reshape(-1), 0) if axis is None else (floating(a), axis)
    count = a.shape[axis]
    return a, axis, count, int(proportion * count)


@made
def trimboth(a: Any, proportiontocut: float, axis: Any = 0) -> Any:
    """Return a sample without a proportion of its smallest and of its largest values."""
    a, axis, count, cut = _cut(a, proportiontocut, axis)
    if 2 * cut >= count:
        raise ValueError("Proportion too big.")
    return _between(a, cut, count - cut, axis)


@made
def trim1(a: Any, proportiontocut: float, tail: str = "right", axis: Any = 0) -> Any:
    """Return a sample without a proportion of its largest or of its smallest values."""
    a, axis, count, cut = _cut(a, proportiontocut, axis)
    if tail.lower() == "right":
        return _between(a, 0, count - cut, axis)
    return _between(a, cut, count, axis)


@made
def scoreatpercentile(
    a: Any, per: Any, limit: Any = (), interpolation_method: str = "fraction", axis: Any = None
) -> Any:
    """Return percentiles of a sample."""
    a = floating(a)
    if limit:
        plain = plain_values(a.detach())
        a, axis = a[(limit[0] <= plain) & (plain <= limit[1])], None
    method: Any = {"fraction": "linear"}.get(interpolation_method, interpolation_method)
    return np.percentile(a, per, axis, method=method)


@made
def theilslopes(y: Any, x: Any = None, alpha: Any = 0.95, method: str = "separate") -> Any:
    """Return the median of the slopes between pairs of points, the intercept, and bounds for the slope."""
    y = floating(y).reshape(-1)
    x = np.arange(len(y)) * 1.0 if x is None else floating(x).reshape(-1)
    plain = scipy.stats.theilslopes(plain_values(y.detach()), plain_values(x), alpha, method)
    later, earlier = np.nonzero(plain_values(x)[:, None] > plain_values(x))
    slopes: Any = np.sort((y[later] - y[earlier]) / (x[later] - x[earlier]))
    slope = np.median(slopes)
    intercept = np.median(y - slope * x) if method == "joint" else np.median(y) - slope * np.median(x)
    values = plain_values(slopes.detach())
    bounds = [slopes[int(np.argmin(np.abs(values - bound)))] for bound in (plain.low_slope, plain.high_slope)]
    return Outcome({"slope": slope, "intercept": intercept, "low_slope": bounds[0], "high_slope": bounds[1]})


# For each name, the statistic of the values in a bin, and that of an empty bin.
OF_BINS: Final[dict[str, tuple[Callable[[Any], Any], float]]] = {
    "mean": (lambda values: values.mean(), np.nan),
    "sum": (lambda values: values.sum(), 0.0),
    "std": (lambda values: values.std(), np.nan),
    "median": (np.median, np.nan),
    "min": (lambda values: values.min(), np.nan),
    "max": (lambda values: values.max(), np.nan),
}


def _of_nothing(statistic: Callable[[Any], Any]) -> Any:
    """Return a statistic of an empty sample, or NaN if it is undefined."""
    try:
        return statistic([])
    except Exception:
        return np.nan


@made
def binned_statistic(x: Any, values: Any, statistic: Any = "mean", bins: Any = 10, range: Any = None) -> Any:
    """Return a statistic of the values in each bin, the bin edges, and the bin number of each value.

    Gradients flow to the values only, since the bin of a point does not change under small perturbations.
    """
    if carries_history((bins, range)) or (carries_history(x) and range is None and np.ndim(plain_values(bins)) == 0):
        raise lost("scipy.stats.binned_statistic", "the edges of the bins have no derivative; pass range= or the edges")
    plain = scipy.stats.binned_statistic(plain_values(floating(x).detach()), None, "count", bins, range)
    count = len(plain.bin_edges) - 1
    rows = np.atleast_2d(floating(values))
    function, empty = (statistic, _of_nothing(statistic)) if callable(statistic) else OF_BINS.get(statistic, (len, 0.0))
    if not callable(statistic) and statistic != "count" and statistic not in OF_BINS:
        raise ValueError(f"invalid statistic {statistic!r}")
    found = []
    for row in rows:
        for number in np.arange(1, count + 1):
            inside = np.flatnonzero(plain.binnumber == number)
            found.append(function(row[inside]) if len(inside) else empty)
    results = floating(found).reshape((len(rows), count))
    single = np.ndim(plain_values(floating(values).detach())) == 1
    return Outcome({
        "statistic": results[0] if single else results,
        "bin_edges": as_tensors(plain.bin_edges),
        "binnumber": as_tensors(plain.binnumber),
    })  # fmt: skip
