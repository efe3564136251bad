"""Density and parameter estimation: `gaussian_kde` and optimal power transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from .. import special
from ..implicit_diff import least_place
from ..wrap import floating, numbers
from .axis_policy import MADE, made
from .samples import yeo_johnson


class gaussian_kde:
    """A kernel density estimate with normal kernels; gradients flow to the samples, weights and evaluation points.

    Arguments:
        dataset: the samples, along the last dimension; the variables are along the first.
        bw_method: "scott", "silverman", a number, or a function of this object that returns one.
        weights: the weights of the samples.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = np.atleast_2d(floating(dataset))
        self.d, self.n = self.dataset.shape
        self._weights = None if weights is None else floating(weights) / floating(weights).sum()
        self.set_bandwidth(bw_method)

    @property
    def weights(self) -> Any:
        """The weights of the samples, which sum to 1."""
        return numbers(np.full(self.n, 1.0 / self.n)) if self._weights is None else self._weights

    @property
    def neff(self) -> Any:
        """Return the effective number of equally weighted samples."""
        return 1.0 / (self.weights * self.weights).sum()

    def scotts_factor(self) -> Any:
        """Return the bandwidth by Scott's rule."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Return the bandwidth by Silverman's rule."""
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Set the bandwidth of the kernels."""
        if bw_method is None or bw_method == "scott":
            self.factor = self.scotts_factor()
        elif isinstance(bw_method, str):
            self.factor = self.silverman_factor()
        else:
            self.factor = bw_method(self) if callable(bw_method) else bw_method
        weights = self.weights
        away = self.dataset - (self.dataset * weights).sum(-1, keepdims=True)
        self._data_covariance = (away * weights) @ away.mT / (1.0 - (weights * weights).sum())
        self.covariance = self._data_covariance * self.factor**2

    @property
    def inv_cov(self) -> Any:
        """The inverse covariance matrix of the kernels."""
        return np.linalg.inv(self.covariance)

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density."""
        points = np.atleast_2d(floating(x))
        if points.shape[0] != self.d and points.shape[0] == 1 and points.shape[1] == self.d:
            points = points.reshape(self.d, 1)
        if points.shape[0] != self.d:
            raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")
        factor = np.linalg.cholesky(self.covariance)
        data, places = (np.linalg.solve(factor, each) for each in (self.dataset, points))
        squared = ((places[:, :, None] - data[:, None, :]) ** 2).sum(0)
        scale = np.log(np.diagonal(factor)).sum() + 0.5 * self.d * math.log(2 * math.pi)
        return special.logsumexp(-0.5 * squared, -1, b=self.weights) - scale

    def evaluate(self, points: Any) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Return the probability of an interval, in one dimension."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        width = np.sqrt(self.covariance[0, 0])
        ends = [special.ndtr((numbers(end) - self.dataset[0]) / width) for end in (low, high)]
        return (self.weights * (ends[1] - ends[0])).sum()

    def resample(self, size: Any = None, seed: Any = None) -> Any:
        """Draw random values; gradients do not flow through them."""
        return as_tensors(self._scipys().resample(size, seed))

    def _scipys(self) -> Any:
        weights = None if self._weights is None else plain_values(self._weights)
        factor = plain_values(self.factor) if hasattr(self.factor, "ndim") else self.factor
        return scipy.stats.gaussian_kde(plain_values(self.dataset), float(factor), weights)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if carries_history((self.dataset, self._weights, self.factor)):
            raise lost(f"scipy.stats.gaussian_kde.{name}", "pass detach() of the samples")
        return getattr(self._scipys(), name)


def _fitted(name: str, likelihood: str, transform: Callable[[Any, Any], Any]) -> None:
    """Define a power transform, whose default power is the optimal one for the samples."""

    def fitted(x: Any, lmbda: Any = None, alpha: Any = None, **options: Any) -> Any:
        x = floating(x)
        if lmbda is not None:
            return transform(x, numbers(lmbda) * 1.0)
        if alpha is not None or options:
            raise lost(f"scipy.stats.{name}", "alpha and optimizer are not supported for tensors with a history")
        place = getattr(scipy.stats, name)(np.array(plain_values(x)))[1]
        best = least_place(lambda power: -MADE[likelihood](power, x), place)
        return transform(x, best), best

    fitted.__name__ = name
    fitted.__doc__ = f"`scipy.stats.{name}`, including the dependence of the optimal power on the samples."
    made(fitted)


_fitted("boxcox", "boxcox_llf", special.boxcox)
_fitted("yeojohnson", "yeojohnson_llf", yeo_johnson)
MADE["gaussian_kde"] = gaussian_kde
