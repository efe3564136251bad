"""Univariate distributions on an interval."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .. import special
from .distribution import HALF_LOG_TWO_PI, Distribution, positive, unit

HALF_PI: Final = math.pi / 2


def _mass(a: Any, b: Any) -> Any:
    """Return the probability of a normal random variable between two points, computed from the nearer tail."""
    return np.where(a > 0, special.ndtr(-a) - special.ndtr(-b), special.ndtr(b) - special.ndtr(a))


def _density(z: Any) -> Any:
    return np.exp(z * z * -0.5 - HALF_LOG_TWO_PI)


def _weighted(z: Any) -> Any:
    """Return z times its normal density, which is 0 at infinity."""
    finite = np.isfinite(z)
    inner = np.where(finite, z, 0.0)
    return np.where(finite, inner * _density(inner), 0.0)


def _truncated_mean(a: Any, b: Any) -> Any:
    return (_density(a) - _density(b)) / _mass(a, b)


INTERVALS: Final = (
    Distribution(
        "truncnorm", ("a", "b"), lambda z, a, b: z * z * -0.5 - HALF_LOG_TWO_PI - np.log(_mass(a, b)),
        lambda a, b: (a, b), cdf=lambda z, a, b: _mass(a, z) / _mass(a, b),
        sf=lambda z, a, b: _mass(z, b) / _mass(a, b),
        moments=(
            _truncated_mean,
            lambda a, b: 1 + (_weighted(a) - _weighted(b)) / _mass(a, b) - _truncated_mean(a, b) ** 2,
        ),
    ),
    Distribution(
        "triang", ("c",), lambda z, c: math.log(2) + np.log(np.where(z < c, z / c, (1 - z) / (1 - c))), unit,
        cdf=lambda z, c: np.where(z < c, z * z / c, 1 - (1 - z) ** 2 / (1 - c)),
        ppf=lambda q, c: np.where(q < c, np.sqrt(c * q), 1 - np.sqrt((1 - c) * (1 - q))),
        moments=(lambda c: (c + 1) / 3, lambda c: (1 - c + c * c) / 18), entropy=lambda c: 0.5 - math.log(2) + c * 0.0,
    ),
    *[
        Distribution(
            name, ("a", "b"), lambda z, a, b: -np.log(z) - np.log(np.log(b / a)), lambda a, b: (a, b),
            cdf=lambda z, a, b: np.log(z / a) / np.log(b / a), ppf=lambda q, a, b: a * (b / a) ** q,
            moments=(
                lambda a, b: (b - a) / np.log(b / a),
                lambda a, b: (b * b - a * a) / (2 * np.log(b / a)) - ((b - a) / np.log(b / a)) ** 2,
            ),
            entropy=lambda a, b: 0.5 * (np.log(a) + np.log(b)) + np.log(np.log(b / a)),
        )
        for name in ("loguniform", "reciprocal")
    ],
    Distribution(
        "powerlaw", ("a",), lambda z, a: np.log(a) + special.xlogy(a - 1, z), unit, cdf=lambda z, a: z**a,
        ppf=lambda q, a: q ** (1 / a), moments=(lambda a: a / (a + 1), lambda a: a / ((a + 2) * (a + 1) ** 2)),
        entropy=lambda a: 1 - 1 / a - np.log(a),
    ),
    Distribution(
        "johnsonsb", ("a", "b"),
        lambda z, a, b: (
            np.log(b) - np.log(z) - np.log1p(-z) - 0.5 * (a + b * special.logit(z)) ** 2 - HALF_LOG_TWO_PI
        ),
        unit, cdf=lambda z, a, b: special.ndtr(a + b * special.logit(z)),
        ppf=lambda q, a, b: special.expit((special.ndtri(q) - a) / b),
    ),
    Distribution(
        "arcsine", (), lambda z: -math.log(math.pi) - 0.5 * np.log(z * (1 - z)), unit,
        cdf=lambda z: np.arcsin(np.sqrt(z)) / HALF_PI, ppf=lambda q: np.sin(HALF_PI * q) ** 2,
        moments=(lambda: 0.5, lambda: 1 / 8),
    ),
    Distribution(
        "bradford", ("c",), lambda z, c: np.log(c) - np.log(np.log1p(c)) - np.log1p(c * z), unit,
        cdf=lambda z, c: np.log1p(c * z) / np.log1p(c), ppf=lambda q, c: np.expm1(q * np.log1p(c)) / c,
    ),
    Distribution(
        "anglit", (), lambda z: np.log(np.cos(2 * z)), lambda: (-math.pi / 4, math.pi / 4),
        cdf=lambda z: np.sin(z + math.pi / 4) ** 2, ppf=lambda q: np.arcsin(np.sqrt(q)) - math.pi / 4,
        moments=(lambda: 0.0, lambda: math.pi**2 / 16 - 0.5), entropy=lambda: 1 - math.log(2),
    ),
    Distribution(
        "cosine", (), lambda z: np.log1p(np.cos(z)) - math.log(2 * math.pi), lambda: (-math.pi, math.pi),
        cdf=lambda z: (math.pi + z + np.sin(z)) / (2 * math.pi), moments=(lambda: 0.0, lambda: math.pi**2 / 3 - 2),
    ),
    Distribution(
        "semicircular", (), lambda z: math.log(2 / math.pi) + 0.5 * np.log1p(-z * z), lambda: (-1.0, 1.0),
        cdf=lambda z: 0.5 + (z * np.sqrt(1 - z * z) + np.arcsin(z)) / math.pi, moments=(lambda: 0.0, lambda: 0.25),
    ),
    Distribution(
        "halflogistic", (), lambda z: math.log(2) - z - 2 * np.log1p(np.exp(-z)), positive,
        cdf=lambda z: np.tanh(z / 2), sf=lambda z: 2 * special.expit(-z), ppf=lambda q: 2 * np.arctanh(q),
        moments=(lambda: math.log(4), lambda: math.pi**2 / 3 - math.log(4) ** 2),
    ),
    Distribution(
        "loglaplace", ("c",), lambda z, c: np.log(c / 2) - np.log(z) - c * np.abs(np.log(z)), positive,
        cdf=lambda z, c: np.where(z < 1, 0.5 * z**c, 1 - 0.5 * z**-c),
        ppf=lambda q, c: np.where(q < 0.5, (2 * q) ** (1 / c), (2 * (1 - q)) ** (-1 / c)),
    ),
)  # fmt: skip
