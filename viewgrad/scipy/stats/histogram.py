"""The distribution of a histogram, differentiable in the value, the contents and edges of bins, location and scale."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..wrap import float_copy

WITH_LOCATION: Final = frozenset({"pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"})


class rv_histogram:
    """A distribution with a piecewise constant density, as `scipy.stats.rv_histogram`.

    Arguments:
        histogram: the contents of the bins and their edges, as `np.histogram` returns them.
        density: whether the contents are densities, and not counts.
        kwargs: further arguments of `scipy.stats.rv_histogram`.
    """

    def __init__(self, histogram: Any, *args: Any, density: Any = None, **kwargs: Any) -> None:
        heights, edges = (float_copy(each) for each in histogram)
        plain = tuple(np.array(plain_values(each.detach())) for each in (heights, edges))
        self._plain = scipy.stats.rv_histogram(plain, *args, density=density, **kwargs)
        widths = edges[1:] - edges[:-1]
        steps = plain[1][1:] - plain[1][:-1]
        is_density = bool(density) or (density is None and not np.allclose(steps, steps[0]))
        heights = heights if is_density else heights / widths
        self._edges, self._widths = edges, widths
        self._heights = heights / (heights * widths).sum()
        self._levels = np.concatenate([np.zeros(1), np.cumsum(self._heights * widths)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._plain, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def method(*args: Any, **kwargs: Any) -> Any:
            if carries_history((self._heights, self._edges, args, kwargs)):
                raise lost(f"scipy.stats.rv_histogram.{name}")
            return as_tensors(value(*plain_values(args), **plain_values(kwargs)))

        return method

    def __call__(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return _Frozen(self, loc, scale)

    freeze = __call__

    def pdf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the density."""
        place = np.searchsorted(plain_values(self._edges), plain_values((x - loc) / scale), side="right")
        heights = np.concatenate([np.zeros(1), self._heights, np.zeros(1)])
        return heights[place] / scale

    def cdf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the distribution function."""
        return np.interp((float_copy(x) - loc) / scale, self._edges, self._levels)

    def ppf(self, q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the quantiles."""
        q = float_copy(q)
        found = np.interp(q, self._levels, self._edges) * scale + loc
        inside = (plain_values(q) >= 0) & (plain_values(q) <= 1)
        return found if inside.all() else np.where(inside, found, np.nan)

    def sf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return one minus the distribution function."""
        return 1.0 - self.cdf(x, loc, scale)

    def isf(self, q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the quantiles of one minus the probabilities."""
        return self.ppf(1.0 - float_copy(q), loc, scale)

    def logpdf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the logarithm of the density."""
        return np.log(self.pdf(x, loc, scale))

    def logcdf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the logarithm of the distribution function."""
        return np.log(self.cdf(x, loc, scale))

    def logsf(self, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the logarithm of one minus the distribution function."""
        return np.log(self.sf(x, loc, scale))

    def _moment(self, order: int) -> Any:
        powers = self._edges ** (order + 1)
        return (self._heights * (powers[1:] - powers[:-1])).sum() / (order + 1)

    def mean(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the mean."""
        return self._moment(1) * scale + loc

    def var(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the variance."""
        return (self._moment(2) - self._moment(1) ** 2) * scale**2

    def std(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the standard deviation."""
        return np.sqrt(self.var(loc, scale))

    def median(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the median."""
        return self.ppf(0.5, loc, scale)

    def entropy(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        """Return the differential entropy."""
        filled = np.flatnonzero(plain_values(self._heights) > 0)
        heights = self._heights[filled]
        return -(heights * np.log(heights) * self._widths[filled]).sum() + np.log(scale)


class _Frozen:
    """A distribution of a histogram with a given location and scale."""

    def __init__(self, distribution: rv_histogram, loc: Any, scale: Any) -> None:
        self.dist, self.args, self.kwds = distribution, (), {"loc": loc, "scale": scale}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(getattr(self.dist, name), **self.kwds)
