"""Noncentral distributions: mixtures of central ones, with weights of a Poisson distribution.

Source: N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions" 2 (1995), chapters 29 to 31.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from .. import special
from .distribution import Distribution, everywhere, positive

MOST_TERMS: Final = 4000
CANCELLED: Final = 1e-8  # the relative size of an alternating sum with half of its digits right


def _terms(name: str, *sizes: Any) -> Any:
    """Return the numbers of the terms of a mixture that matter, for weights with at most this mean."""
    greatest = max(float(np.max(plain_values(size), initial=0.0)) for size in sizes)
    count = greatest + 10 * math.sqrt(greatest) + 20
    if not count < MOST_TERMS:
        raise lost(f"scipy.stats.{name}", "it is so far from central that its series has too many terms here")
    return np.arange(int(count))


def _log_weights(half: Any, j: Any) -> Any:
    """Return the logarithms of the probabilities of Poisson's distribution."""
    return special.xlogy(j, half[..., None]) - half[..., None] - special.gammaln(j + 1.0)


def _chi_squared_terms(z: Any, df: Any, nc: Any) -> tuple[Any, Any, Any]:
    """Return the logarithms of the weights, half of the degrees of freedom in each term, and half of the value."""
    half = nc / 2 + 0.0 * z + 0.0 * df
    j = _terms("ncx2", plain_values(half) + np.sqrt(plain_values(half * z) / 2))
    return _log_weights(half, j), df[..., None] / 2 + j, (z / 2)[..., None]


def _chi_squared(z: Any, df: Any, nc: Any) -> Any:
    weights, k, y = _chi_squared_terms(z, df, nc)
    return special.logsumexp(weights + special.xlogy(k - 1, y) - y - special.gammaln(k), axis=-1) - math.log(2)


def _chi_squared_below(z: Any, df: Any, nc: Any) -> Any:
    weights, k, y = _chi_squared_terms(z, df, nc)
    return (np.exp(weights) * special.gammainc(k, y + 0.0 * k)).sum(-1)


def _chi_squared_above(z: Any, df: Any, nc: Any) -> Any:
    weights, k, y = _chi_squared_terms(z, df, nc)
    return (np.exp(weights) * special.gammaincc(k, y + 0.0 * k)).sum(-1)


def _f_terms(z: Any, n: Any, m: Any, nc: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the logarithms of the weights, and for each term the parameters of a beta distribution with its value."""
    half = nc / 2 + 0.0 * (z + n + m)
    j = _terms("ncf", plain_values(half))
    ratio = (n * z / m)[..., None]
    return _log_weights(half, j), n[..., None] / 2 + j, m[..., None] / 2 + 0.0 * j, ratio, (n / m)[..., None]


def _f(z: Any, n: Any, m: Any, nc: Any) -> Any:
    weights, a, b, ratio, slope = _f_terms(z, n, m, nc)
    terms = special.xlogy(a - 1, ratio) - (a + b) * np.log1p(ratio) - special.betaln(a, b) + np.log(slope)
    return special.logsumexp(weights + terms, axis=-1)


def _f_below(z: Any, n: Any, m: Any, nc: Any) -> Any:
    weights, a, b, ratio, _ = _f_terms(z, n, m, nc)
    return (np.exp(weights) * special.betainc(a, b, ratio / (1 + ratio) + 0.0 * a)).sum(-1)


def _f_above(z: Any, n: Any, m: Any, nc: Any) -> Any:
    weights, a, b, ratio, _ = _f_terms(z, n, m, nc)
    return (np.exp(weights) * special.betainc(b, a, 1 / (1 + ratio) + 0.0 * a)).sum(-1)


def _student_numbers(nc: Any) -> Any:
    return _terms("nct", 2 * plain_values(nc) ** 2)


def _student(t: Any, df: Any, nc: Any) -> Any:
    """Return the density's logarithm, as a power series in the product of the value and the noncentrality."""
    n = _student_numbers(nc)
    square = t * t + df
    u = (nc * t / np.sqrt(2 * square))[..., None]
    weights = -special.gammaln(n / 2 + 1) - special.betaln((n + 1) / 2, df[..., None] / 2)
    series = special.logsumexp(weights + special.xlogy(n, np.abs(plain_values(u))), axis=-1)
    # Divided by the sum of absolute values, the sum can be differentiated where the product is 0.
    scaled = (u**n * np.exp(weights - plain_values(series)[..., None])).sum(-1)
    if np.any(plain_values(scaled) < CANCELLED):
        raise lost("scipy.stats.nct", "the terms of its series cancel here, far on the other side of 0")
    return np.log(scaled) + plain_values(series) - nc * nc / 2 + df / 2 * np.log(df) - (df + 1) / 2 * np.log(square)


def _student_below(t: Any, df: Any, nc: Any) -> Any:
    n = _student_numbers(nc)[1:]
    side = np.where(plain_values(t) < 0, -1.0, 1.0)
    t, nc = t * side, nc * side
    share = (t * t / (t * t + df))[..., None]
    powers = (nc / math.sqrt(2))[..., None] ** n * np.exp(-special.gammaln(n / 2 + 1))
    ends = special.betainc((n + 1) / 2 + 0.0 * share, df[..., None] / 2 + 0.0 * (share + n), share + 0.0 * n)
    # The term of number 0 is Student's own distribution function, which has a slope at 0.
    rest = (powers * ends).sum(-1) + (2 * special.stdtr(df, t) - 1)
    below = special.ndtr(-nc) + np.exp(-nc * nc / 2) * rest / 2
    return np.where(side < 0, 1 - below, below)


def _student_mean(df: Any, nc: Any) -> Any:
    mean = nc * np.sqrt(df / 2) * np.exp(special.gammaln((df - 1) / 2) - special.gammaln(df / 2))
    return np.where(df > 1, mean, np.nan)


NONCENTRAL: Final = (
    Distribution(
        "ncx2", ("df", "nc"), _chi_squared, positive, cdf=_chi_squared_below, sf=_chi_squared_above,
        moments=(lambda df, nc: df + nc, lambda df, nc: 2 * (df + 2 * nc)),
    ),
    Distribution(
        "ncf", ("dfn", "dfd", "nc"), _f, positive, cdf=_f_below, sf=_f_above,
        moments=(
            lambda n, m, nc: np.where(m > 2, m * (n + nc) / (n * (m - 2)), np.inf),
            lambda n, m, nc: np.where(
                m > 4, 2 * (m / n) ** 2 * ((n + nc) ** 2 + (n + 2 * nc) * (m - 2)) / ((m - 2) ** 2 * (m - 4)), np.inf,
            ),
        ),
    ),
    Distribution(
        "nct", ("df", "nc"), _student, everywhere, cdf=_student_below,
        sf=lambda t, df, nc: _student_below(-t, df, -nc),
        moments=(
            _student_mean,
            lambda df, nc: np.where(df > 2, df * (1 + nc * nc) / (df - 2) - _student_mean(df, nc) ** 2, np.inf),
        ),
    ),
)  # fmt: skip
