"""Noncentral distribution functions, as mixtures of central ones with Poisson weights.

Source: N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions" 2 (1995), chapters 29 to 31.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from ..wrap import float_copy, maker
from .incomplete import MADE as INCOMPLETE

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
MOST_TERMS: Final = 4000
lower, upper, beta, student = (INCOMPLETE[name] for name in ("gammainc", "gammaincc", "betainc", "stdtr"))


def terms_of_mixture(name: str, *sizes: Any) -> Any:
    """Return the indices of the significant terms of a mixture, for weights with at most this mean."""
    greatest = max(float(np.max(plain_values(size), initial=0.0)) for size in sizes)
    count = greatest + 10 * math.sqrt(greatest) + 20
    if not count < MOST_TERMS:
        raise lost(name, "its series needs too many terms at this noncentrality")
    return np.arange(int(count))


def log_weights(half: Any, j: Any) -> Any:
    """Return the logarithms of Poisson probabilities."""
    return scipy.special.xlogy(j, half[..., None]) - half[..., None] - scipy.special.gammaln(j + 1.0)


def chi_squared_terms(z: Any, df: Any, nc: Any) -> tuple[Any, Any, Any]:
    """Return the log-weights, half the degrees of freedom of each term, and half the value."""
    half = nc / 2 + 0.0 * z + 0.0 * df
    j = terms_of_mixture("scipy.stats.ncx2", plain_values(half) + np.sqrt(plain_values(half * z) / 2))
    return log_weights(half, j), df[..., None] / 2 + j, (z / 2)[..., None]


def chi_squared_below(z: Any, df: Any, nc: Any) -> Any:
    """Return the noncentral chi-squared distribution function."""
    weights, k, y = chi_squared_terms(z, df, nc)
    return (np.exp(weights) * lower(k, y + 0.0 * k)).sum(-1)


def chi_squared_above(z: Any, df: Any, nc: Any) -> Any:
    """Return the noncentral chi-squared survival function."""
    weights, k, y = chi_squared_terms(z, df, nc)
    return (np.exp(weights) * upper(k, y + 0.0 * k)).sum(-1)


def f_terms(z: Any, n: Any, m: Any, nc: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the log-weights, and for each term the parameters of a beta distribution and its argument."""
    half = nc / 2 + 0.0 * (z + n + m)
    j = terms_of_mixture("scipy.stats.ncf", plain_values(half))
    ratio = (n * z / m)[..., None]
    return log_weights(half, j), n[..., None] / 2 + j, m[..., None] / 2 + 0.0 * j, ratio, (n / m)[..., None]


def f_below(z: Any, n: Any, m: Any, nc: Any) -> Any:
    """Return the noncentral F distribution function."""
    weights, a, b, ratio, _ = f_terms(z, n, m, nc)
    return (np.exp(weights) * beta(a, b, ratio / (1 + ratio) + 0.0 * a)).sum(-1)


def f_above(z: Any, n: Any, m: Any, nc: Any) -> Any:
    """Return the noncentral F survival function."""
    weights, a, b, ratio, _ = f_terms(z, n, m, nc)
    return (np.exp(weights) * beta(b, a, 1 / (1 + ratio) + 0.0 * a)).sum(-1)


def student_numbers(nc: Any) -> Any:
    """Return the indices of the terms of the noncentral Student's t distribution."""
    return terms_of_mixture("scipy.stats.nct", 2 * plain_values(nc) ** 2)


def student_below(t: Any, df: Any, nc: Any) -> Any:
    """Return the noncentral Student's t distribution function."""
    n = student_numbers(nc)[1:]
    side = np.where(plain_values(t) < 0, -1.0, 1.0)
    t, nc = t * side, nc * side
    share = (t * t / (t * t + df))[..., None]
    powers = (nc / math.sqrt(2))[..., None] ** n * np.exp(-scipy.special.gammaln(n / 2 + 1))
    ends = beta((n + 1) / 2 + 0.0 * share, df[..., None] / 2 + 0.0 * (share + n), share + 0.0 * n)
    # Term 0 is the central distribution function, which has a slope at 0.
    rest = (powers * ends).sum(-1) + (2 * student(df, t) - 1)
    below = scipy.special.ndtr(-nc) + np.exp(-nc * nc / 2) * rest / 2
    return np.where(side < 0, 1 - below, below)


def _inside(valid: Any, low: float, function: Any, x: Any, *parameters: Any) -> Any:
    """Return a distribution function: 0 and 1 at the ends of the support, NaN outside and for invalid parameters."""
    given = list(np.broadcast_arrays(*(float_copy(each) for each in (x, *parameters))))
    plain = [plain_values(each) for each in given]
    at_ends = (plain[0] == low) | (plain[0] == np.inf)
    inner = valid(*plain) & np.isfinite(sum(plain)) & ~at_ends
    safe = [np.where(inner, each, other) for each, other in zip(given, (1.0, 1.0, 1.0, 1.0))]
    ends = np.where(valid(*plain) & at_ends, plain[0] > low, np.nan)
    return np.where(inner, function(*safe), ends)


@made
def chndtr(x: Any, df: Any, nc: Any) -> Any:
    """Return the noncentral chi-squared distribution function, differentiable in all arguments."""
    return _inside(lambda x, df, nc: (x >= 0) & (df > 0) & (nc >= 0), 0.0, chi_squared_below, x, df, nc)


@made
def ncfdtr(dfn: Any, dfd: Any, nc: Any, f: Any) -> Any:
    """Return the noncentral F distribution function, differentiable in all arguments."""
    return _inside(
        lambda f, dfn, dfd, nc: (f >= 0) & (dfn > 0) & (dfd > 0) & (nc >= 0), 0.0, f_below, f, dfn, dfd, nc
    )


@made
def nctdtr(df: Any, nc: Any, t: Any) -> Any:
    """Return the noncentral Student's t distribution function, differentiable in all arguments."""
    return _inside(lambda t, df, nc: (df > 0) & ~np.isnan(t), -np.inf, student_below, t, df, nc)
