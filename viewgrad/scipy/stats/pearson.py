"""The Pearson type III distribution: a shifted gamma distribution, or a normal one if the skewness is 0.

If the skewness is small, the terms of the gamma distribution's formulas are large and cancel. The density is then
written in terms of the product of the value and the skewness, and the distribution function is an integral of the
density.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import plain_values
from ...tensor.trace_hooks import observed
from .. import special
from .distribution import HALF_LOG_TWO_PI

SMALL: Final = 0.25  # the skewness below which the second formulas apply
SERIES: Final = 20  # the number of terms of a power series, for arguments below 0.1
# The coefficients of Stirling's series for the gamma function. Source: DLMF, 5.11.1.
STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_density(z: Any, skew: Any) -> Any:
    """Return the log-density of the standard form."""
    return _by_size(skew, _log_of_gamma, _log_near_normal)(z, skew)


def support(skew: Any) -> tuple[Any, Any]:
    """Return the ends of the support, one of which is finite unless the skewness is 0."""
    skew = plain_values(skew)
    with np.errstate(divide="ignore"):
        end = np.divide(-2.0, skew)
    return np.where(skew > 0, end, -math.inf), np.where(skew < 0, end, math.inf)


def below(z: Any, skew: Any) -> Any:
    """Return the distribution function of the standard form."""
    return _by_size(skew, _gamma_below, _integrated)(z, skew)


def _by_size(skew: Any, formula: Callable[..., Any], formula_for_small: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that selects one formula for each element, and another for small skewness."""
    small = np.abs(plain_values(skew)) < SMALL
    if not small.any():
        return formula
    if small.all():
        return formula_for_small

    def either(z: Any, skew: Any) -> Any:
        # Where a formula is not used, it is evaluated at a skewness and a value at which it is finite.
        large = formula(np.where(small, 0.0, z), np.where(small, 1.0, skew))
        return np.where(small, formula_for_small(np.where(small, z, 0.0), np.where(small, skew, 0.0)), large)

    return either


def _as_gamma(z: Any, skew: Any) -> tuple[Any, Any]:
    """Return the order and the argument of the gamma distribution that corresponds to a Pearson type III distribution.
    """
    order = (2 / skew) ** 2
    return order, 2 / skew * z + order


def _log_of_gamma(z: Any, skew: Any) -> Any:
    order, value = _as_gamma(z, skew)
    return special.xlogy(order - 1, value) - value - special.gammaln(order) + np.log(np.abs(2 / skew))


def _gamma_below(z: Any, skew: Any) -> Any:
    order, value = _as_gamma(z, skew)
    rising = plain_values(skew) > 0
    return np.where(rising, special.gammainc(order, value), special.gammaincc(order, value))


def _log_near_normal(z: Any, skew: Any) -> Any:
    product, inverse = z * skew / 2.0, skew * skew / 4.0  # of the order of the gamma distribution
    near = np.abs(plain_values(product)) < 0.1
    small, large = np.where(near, product, 0.0), np.where(near, 1.0, product)
    series: Any = 0.0
    for power in range(SERIES, -1, -1):  # (log(1 + u) - u) / u^2
        series = series * small + (-1.0) ** (power + 1) / (power + 2)
    exponent = np.where(near, series, (np.log1p(large) - large) / (large * large))
    rest: Any = 0.0
    for coefficient in reversed(STIRLING):
        rest = rest * inverse * inverse + coefficient
    return z * z * exponent - np.log1p(product) - HALF_LOG_TWO_PI - rest * inverse


@functools.cache
def _nodes() -> tuple[Any, Any]:
    places, weights = np.polynomial.legendre.leggauss(128)
    return 0.5 + 0.5 * places, 0.5 * weights


def _integrated(z: Any, skew: Any) -> Any:
    places, weights = _nodes()
    plain, value = plain_values(skew), plain_values(z)
    # The start of the integral, below which the density is negligible.
    start = np.maximum(support(plain)[0], np.minimum(np.where(plain > 0, -8.0, -14.0), value - 6.0))
    width = z - start
    at = start[..., None] + width[..., None] * places
    order: Any = skew[..., None] if np.ndim(plain) else skew
    found = width * (np.exp(_log_near_normal(at, order)) * weights).sum(-1)
    if observed() is not None:
        return found
    return found + (scipy.stats.pearson3.cdf(value, plain) - plain_values(found))
