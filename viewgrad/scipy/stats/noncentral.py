"""Noncentral distributions, as mixtures of central ones with Poisson weights.

Source: N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions" 2 (1995), chapters 29 to 31.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from .. import special
from ..special.noncentral import (
    chi_squared_above,
    chi_squared_below,
    chi_squared_terms,
    f_above,
    f_below,
    f_terms,
    student_below,
    student_numbers,
)
from .distribution import Distribution, everywhere, positive

CANCELLED: Final = 1e-8  # the relative size of an alternating sum that has half of its digits correct


def _chi_squared(z: Any, df: Any, nc: Any) -> Any:
    weights, k, y = chi_squared_terms(z, df, nc)
    return special.logsumexp(weights + special.xlogy(k - 1, y) - y - special.gammaln(k), axis=-1) - math.log(2)


def _f(z: Any, n: Any, m: Any, nc: Any) -> Any:
    weights, a, b, ratio, slope = f_terms(z, n, m, nc)
    terms = special.xlogy(a - 1, ratio) - (a + b) * np.log1p(ratio) - special.betaln(a, b) + np.log(slope)
    return special.logsumexp(weights + terms, axis=-1)


def _student(t: Any, df: Any, nc: Any) -> Any:
    """Return the log-density as a power series in the product of the value and the noncentrality."""
    n = student_numbers(nc)
    square = t * t + df
    u = (nc * t / np.sqrt(2 * square))[..., None]
    weights = -special.gammaln(n / 2 + 1) - special.betaln((n + 1) / 2, df[..., None] / 2)
    series = special.logsumexp(weights + special.xlogy(n, np.abs(plain_values(u))), axis=-1)
    # After division by the sum of absolute values, the sum is differentiable where the product is 0.
    scaled = (u**n * np.exp(weights - plain_values(series)[..., None])).sum(-1)
    if np.any(plain_values(scaled) < CANCELLED):
        raise lost("scipy.stats.nct", "the terms of its series cancel at values far on the other side of 0")
    return np.log(scaled) + plain_values(series) - nc * nc / 2 + df / 2 * np.log(df) - (df + 1) / 2 * np.log(square)


def _student_mean(df: Any, nc: Any) -> Any:
    mean = nc * np.sqrt(df / 2) * np.exp(special.gammaln((df - 1) / 2) - special.gammaln(df / 2))
    return np.where(df > 1, mean, np.nan)


NONCENTRAL: Final = (
    Distribution(
        "ncx2", ("df", "nc"), _chi_squared, positive, cdf=chi_squared_below, sf=chi_squared_above,
        moments=(lambda df, nc: df + nc, lambda df, nc: 2 * (df + 2 * nc)),
    ),
    Distribution(
        "ncf", ("dfn", "dfd", "nc"), _f, positive, cdf=f_below, sf=f_above,
        moments=(
            lambda n, m, nc: np.where(m > 2, m * (n + nc) / (n * (m - 2)), np.inf),
            lambda n, m, nc: np.where(
                m > 4, 2 * (m / n) ** 2 * ((n + nc) ** 2 + (n + 2 * nc) * (m - 2)) / ((m - 2) ** 2 * (m - 4)), np.inf,
            ),
        ),
    ),
    Distribution(
        "nct", ("df", "nc"), _student, everywhere, cdf=student_below,
        sf=lambda t, df, nc: student_below(-t, df, -nc),
        moments=(
            _student_mean,
            lambda df, nc: np.where(df > 2, df * (1 + nc * nc) / (df - 2) - _student_mean(df, nc) ** 2, np.inf),
        ),
    ),
)  # fmt: skip
