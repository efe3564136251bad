"""Continuous univariate distributions."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from .. import special
from .distribution import HALF_LOG_TWO_PI, Distribution, everywhere, positive, unit

EULER: Final = 0.5772156649015329

CONTINUOUS: Final = (
    Distribution(
        "norm",
        (),
        lambda z: z * z * -0.5 - HALF_LOG_TWO_PI,
        everywhere,
        cdf=special.ndtr,
        sf=lambda z: special.ndtr(-z),
        logcdf=special.log_ndtr,
        logsf=lambda z: special.log_ndtr(-z),
        ppf=special.ndtri,
        moments=(lambda: 0.0, lambda: 1.0),
        entropy=lambda: HALF_LOG_TWO_PI + 0.5,
    ),
    Distribution(
        "t",
        ("df",),
        lambda z, df: (
            special.gammaln((df + 1) / 2)
            - special.gammaln(df / 2)
            - 0.5 * np.log(df * math.pi)
            - (df + 1) / 2 * np.log1p(z * z / df)
        ),
        everywhere,
        cdf=lambda z, df: special.stdtr(df, z),
        sf=lambda z, df: special.stdtr(df, -z),
        moments=(
            lambda df: np.where(df > 1, df * 0.0, np.inf),
            lambda df: np.where(df > 2, df / (df - 2), np.inf),
        ),
        entropy=lambda df: (
            (df + 1) / 2 * (special.digamma((df + 1) / 2) - special.digamma(df / 2))
            + 0.5 * np.log(df)
            + special.betaln(df / 2, 0.5)
        ),
    ),
    Distribution(
        "beta",
        ("a", "b"),
        lambda z, a, b: special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b),
        unit,
        cdf=lambda z, a, b: special.betainc(a, b, z),
        moments=(lambda a, b: a / (a + b), lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1))),
        entropy=lambda a, b: (
            special.betaln(a, b)
            - (a - 1) * special.digamma(a)
            - (b - 1) * special.digamma(b)
            + (a + b - 2) * special.digamma(a + b)
        ),
    ),
    Distribution(
        "gamma",
        ("a",),
        lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
        positive,
        cdf=lambda z, a: special.gammainc(a, z),
        moments=(lambda a: a, lambda a: a),
        sf=lambda z, a: special.gammaincc(a, z),
        entropy=lambda a: a + special.gammaln(a) + (1 - a) * special.digamma(a),
    ),
    Distribution(
        "chi2",
        ("df",),
        lambda z, df: special.xlogy(df / 2 - 1, z) - z / 2 - special.gammaln(df / 2) - df / 2 * math.log(2),
        positive,
        cdf=lambda z, df: special.gammainc(df / 2, z / 2),
        moments=(lambda df: df, lambda df: 2 * df),
        sf=lambda z, df: special.gammaincc(df / 2, z / 2),
        entropy=lambda df: df / 2 + math.log(2) + special.gammaln(df / 2) + (1 - df / 2) * special.digamma(df / 2),
    ),
    Distribution(
        "expon",
        (),
        lambda z: -z,
        positive,
        cdf=lambda z: -np.expm1(-z),
        sf=lambda z: np.exp(-z),
        logsf=lambda z: -z,
        ppf=lambda q: -np.log1p(-q),
        moments=(lambda: 1.0, lambda: 1.0),
        entropy=lambda: 1.0,
    ),
    Distribution(
        "uniform",
        (),
        lambda z: z * 0.0,
        unit,
        cdf=lambda z: z * 1.0,
        ppf=lambda q: q * 1.0,
        moments=(lambda: 0.5, lambda: 1 / 12),
        entropy=lambda: 0.0,
    ),
    Distribution(
        "laplace",
        (),
        lambda z: -np.abs(z) - math.log(2),
        everywhere,
        cdf=lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z))),
        moments=(lambda: 0.0, lambda: 2.0),
        entropy=lambda: math.log(2) + 1,
    ),
    Distribution(
        "cauchy",
        (),
        lambda z: -np.log(math.pi) - np.log1p(z * z),
        everywhere,
        cdf=lambda z: 0.5 + np.arctan(z) / math.pi,
        ppf=lambda q: np.tan(math.pi * (q - 0.5)),
        entropy=lambda: math.log(4 * math.pi),
    ),
    Distribution(
        "logistic",
        (),
        lambda z: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))),
        everywhere,
        cdf=special.expit,
        sf=lambda z: special.expit(-z),
        ppf=special.logit,
        logcdf=special.log_expit,
        moments=(lambda: 0.0, lambda: math.pi**2 / 3),
        entropy=lambda: 2.0,
    ),
    Distribution(
        "lognorm",
        ("s",),
        lambda z, s: -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - HALF_LOG_TWO_PI,
        positive,
        cdf=lambda z, s: special.ndtr(np.log(z) / s),
        ppf=lambda q, s: np.exp(s * special.ndtri(q)),
        moments=(lambda s: np.exp(s * s / 2), lambda s: np.expm1(s * s) * np.exp(s * s)),
        entropy=lambda s: 0.5 + HALF_LOG_TWO_PI + np.log(s),
    ),
    Distribution(
        "weibull_min",
        ("c",),
        lambda z, c: np.log(c) + special.xlogy(c - 1, z) - z**c,
        positive,
        cdf=lambda z, c: -np.expm1(-(z**c)),
        sf=lambda z, c: np.exp(-(z**c)),
        moments=(
            lambda c: special.gamma(1 + 1 / c),
            lambda c: special.gamma(1 + 2 / c) - special.gamma(1 + 1 / c) ** 2,
        ),
        entropy=lambda c: EULER * (1 - 1 / c) - np.log(c) + 1,
    ),
    Distribution(
        "rayleigh",
        (),
        lambda z: np.log(z) - z * z / 2,
        positive,
        cdf=lambda z: -np.expm1(-z * z / 2),
        sf=lambda z: np.exp(-z * z / 2),
        ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
        moments=(lambda: math.sqrt(math.pi / 2), lambda: 2 - math.pi / 2),
        entropy=lambda: EULER / 2 + 1 - 0.5 * math.log(2),
    ),
    Distribution(
        "gumbel_r",
        (),
        lambda z: -z - np.exp(-z),
        everywhere,
        cdf=lambda z: np.exp(-np.exp(-z)),
        ppf=lambda q: -np.log(-np.log(q)),
        moments=(lambda: EULER, lambda: math.pi**2 / 6),
        entropy=lambda: EULER + 1,
    ),
    Distribution(
        "halfnorm",
        (),
        lambda z: z * z * -0.5 + 0.5 * math.log(2 / math.pi),
        positive,
        cdf=lambda z: 2 * special.ndtr(z) - 1,
        moments=(lambda: math.sqrt(2 / math.pi), lambda: 1 - 2 / math.pi),
        entropy=lambda: 0.5 * math.log(math.pi / 2) + 0.5,
    ),
    Distribution(
        "pareto",
        ("b",),
        lambda z, b: np.log(b) - (b + 1) * np.log(z),
        lambda b: (1.0, math.inf),
        cdf=lambda z, b: 1 - z**-b,
        moments=(
            lambda b: np.where(b > 1, b / (b - 1), np.inf),
            lambda b: np.where(b > 2, b / ((b - 1) ** 2 * (b - 2)), np.inf),
        ),
        entropy=lambda b: 1 + 1 / b - np.log(b),
    ),
)
