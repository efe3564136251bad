"""Discrete univariate distributions on the integers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...operators.numpy_api.conversion import plain_values
from .. import special
from .distribution import Distribution, everywhere, positive, unit


def _choices(n: Any, k: Any) -> Any:
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def _scaled_bessel(k: Any, z: Any) -> Any:
    """Return the modified Bessel function of order |k| scaled by exp(-z), for each order separately."""
    orders = np.abs(k)
    found: Any = 0.0
    for order in np.unique(orders):
        found = np.where(orders == order, special.ive(float(order), z), found)
    return found


DISCRETE: Final = (
    Distribution(
        "poisson", ("mu",), lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu, positive, discrete=True,
        cdf=lambda k, mu: special.gammaincc(k + 1, mu), sf=lambda k, mu: special.gammainc(k + 1, mu),
        moments=(lambda mu: mu, lambda mu: mu),
    ),
    Distribution(
        "bernoulli", ("p",), lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p), unit, discrete=True,
        cdf=lambda k, p: 1 - p + k * 0.0, moments=(lambda p: p, lambda p: p * (1 - p)),
        entropy=lambda p: special.entr(p) + special.entr(1 - p),
    ),
    Distribution(
        "binom", ("n", "p"), lambda k, n, p: _choices(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p),
        lambda n, p: (0.0, n), discrete=True,
        cdf=lambda k, n, p: special.betainc(n - k, k + 1, 1 - p), sf=lambda k, n, p: special.betainc(k + 1, n - k, p),
        moments=(lambda n, p: n * p, lambda n, p: n * p * (1 - p)),
    ),
    Distribution(
        "geom", ("p",), lambda k, p: special.xlog1py(k - 1, -p) + np.log(p), lambda p: (1.0, math.inf), discrete=True,
        cdf=lambda k, p: -np.expm1(k * np.log1p(-p)), sf=lambda k, p: np.exp(k * np.log1p(-p)),
        logsf=lambda k, p: k * np.log1p(-p), moments=(lambda p: 1 / p, lambda p: (1 - p) / p**2),
    ),
    Distribution(
        "nbinom", ("n", "p"),
        lambda k, n, p: (
            special.gammaln(k + n) - special.gammaln(k + 1) - special.gammaln(n)
            + n * np.log(p) + special.xlog1py(k, -p)
        ),
        positive, discrete=True, cdf=lambda k, n, p: special.betainc(n, k + 1, p),
        sf=lambda k, n, p: special.betainc(k + 1, n, 1 - p),
        moments=(lambda n, p: n * (1 - p) / p, lambda n, p: n * (1 - p) / p**2),
    ),
    Distribution(
        "betabinom", ("n", "a", "b"),
        lambda k, n, a, b: (
            -np.log(n + 1) - special.betaln(n - k + 1, k + 1) + special.betaln(k + a, n - k + b) - special.betaln(a, b)
        ),
        lambda n, a, b: (0.0, n), discrete=True,
        moments=(
            lambda n, a, b: n * a / (a + b),
            lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1)),
        ),
    ),
    Distribution(
        "zipf", ("a",), lambda k, a: -a * np.log(k) - np.log(special.zeta(a, 1.0)), lambda a: (1.0, math.inf),
        discrete=True,
    ),
    Distribution(
        "logser", ("p",), lambda k, p: k * np.log(p) - np.log(k) - np.log(-np.log1p(-p)), lambda p: (1.0, math.inf),
        discrete=True, moments=(
            lambda p: -p / ((1 - p) * np.log1p(-p)),
            lambda p: -p * (p + np.log1p(-p)) / ((1 - p) * np.log1p(-p)) ** 2,
        ),
    ),
    Distribution(
        "dlaplace", ("a",), lambda k, a: np.log(np.tanh(a / 2)) - a * np.abs(k), everywhere, discrete=True,
        cdf=lambda k, a: np.where(
            k >= 0, 1 - np.exp(-a * (np.abs(k) + 1)) / (np.exp(-a) + 1),
            np.exp(-a * np.abs(k)) / (np.exp(-a) + 1),
        ),
        moments=(lambda a: a * 0.0, lambda a: 2 * np.exp(-a) / np.expm1(-a) ** 2),
    ),
    Distribution(
        "skellam", ("mu1", "mu2"),
        # The Bessel function is scaled by the exponential of its argument.
        lambda k, m, n: (
            k / 2 * np.log(m / n) + np.log(_scaled_bessel(plain_values(k), 2 * np.sqrt(m * n)))
            - (np.sqrt(m) - np.sqrt(n)) ** 2
        ),
        everywhere, discrete=True, moments=(lambda m, n: m - n, lambda m, n: m + n),
        # By the noncentral chi-squared distribution, whose degrees of freedom must be positive on both sides.
        cdf=lambda k, m, n: np.where(
            k >= 0,
            1.0 - special.chndtr(2.0 * m, 2.0 * (np.maximum(k, 0.0) + 1.0), 2.0 * n),
            special.chndtr(2.0 * n, -2.0 * np.minimum(k, -1.0), 2.0 * m),
        ),
        sf=lambda k, m, n: np.where(
            k >= 0,
            special.chndtr(2.0 * m, 2.0 * (np.maximum(k, 0.0) + 1.0), 2.0 * n),
            1.0 - special.chndtr(2.0 * n, -2.0 * np.minimum(k, -1.0), 2.0 * m),
        ),
    ),
    Distribution(
        "planck", ("lambda_",), lambda k, a: np.log(-np.expm1(-a)) - a * k, positive, discrete=True,
        cdf=lambda k, a: -np.expm1(-a * (k + 1)), sf=lambda k, a: np.exp(-a * (k + 1)), logsf=lambda k, a: -a * (k + 1),
        moments=(lambda a: 1 / np.expm1(a), lambda a: np.exp(-a) / np.expm1(-a) ** 2),
    ),
)  # fmt: skip
