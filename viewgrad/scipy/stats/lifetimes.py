"""Further continuous univariate distributions: lifetimes, extremes, and distributions on intervals."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .. import special
from ..special.elementary import logarithm_by_power as _log_power
from . import pearson
from .distribution import HALF_LOG_TWO_PI, Distribution, everywhere, positive

HALF_PI: Final = math.pi / 2
EULER: Final = 0.5772156649015329
ROOT_TWO: Final = math.sqrt(2)


def _log_normal(z: Any) -> Any:
    return z * z * -0.5 - HALF_LOG_TWO_PI


def _raised(y: Any, power: Any) -> Any:
    """Return (exp(power * y) - 1) / power, and y if the power is 0."""
    return y * special.exprel(power * y)


def _share(a: Any, b: Any, part: Any, rest: Any) -> Any:
    """Return betainc(a, b, part / (part + rest)), accurately even if the ratio is almost 1."""
    whole = part + rest
    above = part > rest
    found = special.betainc(np.where(above, b, a), np.where(above, a, b), np.where(above, rest, part) / whole)
    return np.where(above, 1.0 - found, found)


def _gamma_below(a: Any, x: Any, first: Any) -> Any:
    """Return gammainc(a, x), or the first term of its series, x^a / gamma(a + 1), which underflows later than x."""
    small = x < 1e-17
    return np.where(small, first, special.gammainc(a, np.where(small, 1.0, x)))


def _log_gamma_below(z: Any, c: Any) -> Any:
    return _gamma_below(c, np.exp(z), np.exp(c * np.minimum(z, 0.0) - special.gammaln(c + 1.0)))


def _log_gamma_above(z: Any, c: Any) -> Any:
    small = z < -39.0
    first = -np.expm1(c * np.where(small, z, 0.0) - special.gammaln(c + 1.0))
    return np.where(small, first, special.gammaincc(c, np.exp(np.where(small, 0.0, z))))


def _generalized_normal_below(z: Any, b: Any) -> Any:
    power = np.abs(z) ** b
    small = power < 1e-17
    outer = np.sign(z) * special.gammainc(1 / b, np.where(small, 1.0, power))
    return 0.5 + 0.5 * np.where(small, z * special.rgamma(1 + 1 / b), outer)


# Coefficients of the powers of 1 / t^2 in t times Mills' ratio of t, minus 1. Source: DLMF, 7.12.1.
MILLS: Final = (-1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0)


def _log_tilted(z: Any, k: Any) -> Any:
    """Return the logarithm of exp(1 / (2 k^2) - z / k) ndtr(z - 1 / k), whose factors are extreme for small k."""
    far = 1.0 / k - z > 30.0
    product = np.where(far, k * z, 0.0)
    square = (np.where(far, k, 0.0) / (1.0 - product)) ** 2
    series: Any = 0.0
    for coefficient in reversed(MILLS):
        series = (series + coefficient) * square
    beyond = z * z * -0.5 + np.log(k) - np.log1p(-product) - HALF_LOG_TWO_PI + np.log1p(series)
    width = np.where(far, 1.0, k)
    return np.where(far, beyond, 1 / (2 * width * width) - z / width + special.log_ndtr(z - 1 / width))


def _gamma_ratio(a: Any, step: float) -> Any:
    return np.exp(special.gammaln(a + step) - special.gammaln(a))


LIFETIMES: Final = (
    Distribution(
        "f",
        ("dfn", "dfd"),
        lambda z, n, m: (
            m / 2 * np.log(m) + n / 2 * np.log(n) + special.xlogy(n / 2 - 1, z)
            - (n + m) / 2 * np.log(m + n * z) - special.betaln(n / 2, m / 2)
        ),
        positive,
        cdf=lambda z, n, m: _share(n / 2, m / 2, n * z, m),
        sf=lambda z, n, m: _share(m / 2, n / 2, m, n * z),
        moments=(
            lambda n, m: np.where(m > 2, m / (m - 2), np.inf),
            lambda n, m: np.where(m > 4, 2 * m * m * (n + m - 2) / (n * (m - 2) ** 2 * (m - 4)), np.inf),
        ),
    ),
    Distribution(
        "maxwell", (), lambda z: 0.5 * math.log(2 / math.pi) + 2 * np.log(z) - z * z / 2, positive,
        cdf=lambda z: special.gammainc(1.5, z * z / 2), sf=lambda z: special.gammaincc(1.5, z * z / 2),
        moments=(lambda: 2 * math.sqrt(2 / math.pi), lambda: 3 - 8 / math.pi),
    ),
    Distribution(
        "chi", ("df",),
        lambda z, v: (1 - v / 2) * math.log(2) - special.gammaln(v / 2) + special.xlogy(v - 1, z) - z * z / 2, positive,
        cdf=lambda z, v: special.gammainc(v / 2, z * z / 2), sf=lambda z, v: special.gammaincc(v / 2, z * z / 2),
        moments=(
            lambda v: ROOT_TWO * _gamma_ratio(v / 2, 0.5), lambda v: v - 2 * _gamma_ratio(v / 2, 0.5) ** 2,
        ),
    ),
    Distribution(
        "erlang", ("a",), lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a), positive,
        cdf=lambda z, a: special.gammainc(a, z), sf=lambda z, a: special.gammaincc(a, z),
        moments=(lambda a: a, lambda a: a),
    ),
    Distribution(
        "gengamma", ("a", "c"),
        lambda z, a, c: np.log(np.abs(c)) + special.xlogy(c * a - 1, z) - z**c - special.gammaln(a), positive,
        cdf=lambda z, a, c: np.where(
            c > 0, _gamma_below(a, z**c, z ** (a * c) * special.rgamma(a + 1.0)), special.gammaincc(a, z**c)
        ),
    ),
    Distribution(
        "nakagami", ("nu",),
        lambda z, v: math.log(2) + special.xlogy(v, v) - special.gammaln(v) + special.xlogy(2 * v - 1, z) - v * z * z,
        positive, cdf=lambda z, v: special.gammainc(v, v * z * z), sf=lambda z, v: special.gammaincc(v, v * z * z),
        moments=(lambda v: _gamma_ratio(v, 0.5) / np.sqrt(v), lambda v: 1 - _gamma_ratio(v, 0.5) ** 2 / v),
    ),
    Distribution(
        "invgamma", ("a",), lambda z, a: -(a + 1) * np.log(z) - special.gammaln(a) - 1 / z, positive,
        cdf=lambda z, a: special.gammaincc(a, 1 / z), sf=lambda z, a: special.gammainc(a, 1 / z),
        moments=(
            lambda a: np.where(a > 1, 1 / (a - 1), np.inf),
            lambda a: np.where(a > 2, 1 / ((a - 1) ** 2 * (a - 2)), np.inf),
        ),
    ),
    Distribution(
        "invgauss", ("mu",),
        lambda z, mu: -HALF_LOG_TWO_PI - 1.5 * np.log(z) - ((z - mu) / mu) ** 2 / (2 * z), positive,
        cdf=lambda z, mu: (
            special.ndtr((z / mu - 1) / np.sqrt(z)) + np.exp(2 / mu + special.log_ndtr(-(z / mu + 1) / np.sqrt(z)))
        ),
        sf=lambda z, mu: (
            special.ndtr((1 - z / mu) / np.sqrt(z)) - np.exp(2 / mu + special.log_ndtr(-(z / mu + 1) / np.sqrt(z)))
        ),
        moments=(lambda mu: mu, lambda mu: mu**3),
    ),
    Distribution(
        "wald", (), lambda z: -HALF_LOG_TWO_PI - 1.5 * np.log(z) - (z - 1) ** 2 / (2 * z), positive,
        cdf=lambda z: (
            special.ndtr((z - 1) / np.sqrt(z)) + np.exp(2 + special.log_ndtr(-(z + 1) / np.sqrt(z)))
        ),
        moments=(lambda: 1.0, lambda: 1.0),
    ),
    Distribution(
        "betaprime", ("a", "b"),
        lambda z, a, b: special.xlogy(a - 1, z) - (a + b) * np.log1p(z) - special.betaln(a, b), positive,
        cdf=lambda z, a, b: _share(a, b, z, 1.0), sf=lambda z, a, b: _share(b, a, 1.0, z),
    ),
    Distribution(
        "exponnorm", ("K",),
        lambda z, k: _log_tilted(z, k) - np.log(k), everywhere,
        cdf=lambda z, k: special.ndtr(z) - np.exp(_log_tilted(z, k)),
        sf=lambda z, k: special.ndtr(-z) + np.exp(_log_tilted(z, k)),
        moments=(lambda k: k, lambda k: 1 + k * k), is_accurate=True,
    ),
    Distribution(
        "fisk", ("c",), lambda z, c: np.log(c) + special.xlogy(c - 1, z) - 2 * np.log1p(z**c), positive,
        cdf=lambda z, c: 1 / (1 + z**-c), sf=lambda z, c: 1 / (1 + z**c), ppf=lambda q, c: (q / (1 - q)) ** (1 / c),
    ),
    Distribution(
        "burr", ("c", "d"),
        lambda z, c, d: np.log(c) + np.log(d) - (c + 1) * np.log(z) - (d + 1) * np.log1p(z**-c), positive,
        cdf=lambda z, c, d: (1 + z**-c) ** -d, ppf=lambda q, c, d: (q ** (-1 / d) - 1) ** (-1 / c),
    ),
    Distribution(
        "burr12", ("c", "d"),
        lambda z, c, d: np.log(c) + np.log(d) + special.xlogy(c - 1, z) - (d + 1) * np.log1p(z**c), positive,
        cdf=lambda z, c, d: -np.expm1(-d * np.log1p(z**c)), sf=lambda z, c, d: (1 + z**c) ** -d,
        ppf=lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1 / c),
    ),
    Distribution(
        "lomax", ("c",), lambda z, c: np.log(c) - (c + 1) * np.log1p(z), positive,
        cdf=lambda z, c: -np.expm1(-c * np.log1p(z)), sf=lambda z, c: (1 + z) ** -c,
        ppf=lambda q, c: np.expm1(-np.log1p(-q) / c),
        moments=(
            lambda c: np.where(c > 1, 1 / (c - 1), np.inf),
            lambda c: np.where(c > 2, c / ((c - 1) ** 2 * (c - 2)), np.inf),
        ),
    ),
    Distribution(
        "gompertz", ("c",), lambda z, c: np.log(c) + z - c * np.expm1(z), positive,
        cdf=lambda z, c: -np.expm1(-c * np.expm1(z)), sf=lambda z, c: np.exp(-c * np.expm1(z)),
        ppf=lambda q, c: np.log1p(-np.log1p(-q) / c),
    ),
    Distribution(
        "exponweib", ("a", "c"),
        lambda z, a, c: (
            np.log(a) + np.log(c) + special.xlogy(a - 1, -np.expm1(-(z**c))) - z**c + special.xlogy(c - 1, z)
        ),
        positive, cdf=lambda z, a, c: (-np.expm1(-(z**c))) ** a,
        ppf=lambda q, a, c: (-np.log1p(-(q ** (1 / a)))) ** (1 / c),
    ),
    Distribution(
        "truncexpon", ("b",), lambda z, b: -z - np.log(-np.expm1(-b)), lambda b: (0.0, b),
        cdf=lambda z, b: np.expm1(-z) / np.expm1(-b), ppf=lambda q, b: -np.log1p(q * np.expm1(-b)),
    ),
    Distribution("gibrat", (), lambda z: _log_normal(np.log(z)) - np.log(z), positive,
                 cdf=lambda z: special.ndtr(np.log(z)), ppf=lambda q: np.exp(special.ndtri(q))),
    Distribution(
        "foldnorm", ("c",), lambda z, c: np.logaddexp(_log_normal(z - c), _log_normal(z + c)), positive,
        cdf=lambda z, c: special.ndtr(z - c) - special.ndtr(-z - c),
        sf=lambda z, c: special.ndtr(c - z) + special.ndtr(-z - c),
    ),
    Distribution(
        "rice", ("b",),
        # The second term is 0, and has the slope that log(i0e) lacks at its kink for b = 0.
        lambda z, b: np.log(z) - 0.5 * (z - b) ** 2 + (np.abs(z * b) - z * b) + np.log(special.i0e(z * b)), positive,
        cdf=lambda z, b: special.chndtr(z * z, 2.0, b * b),
    ),
)  # fmt: skip

EXTREMES: Final = (
    Distribution(
        "gumbel_l", (), lambda z: z - np.exp(z), everywhere, cdf=lambda z: -np.expm1(-np.exp(z)),
        sf=lambda z: np.exp(-np.exp(z)), logsf=lambda z: -np.exp(z), ppf=lambda q: np.log(-np.log1p(-q)),
        moments=(lambda: -EULER, lambda: math.pi**2 / 6), entropy=lambda: EULER + 1,
    ),
    Distribution(
        "genextreme", ("c",),
        lambda z, c: -np.exp(_log_power(-z, c)) + (1 - c) * _log_power(-z, c),
        lambda c: (np.where(c < 0, 1 / np.where(c < 0, c, 1.0), -np.inf),
                   np.where(c > 0, 1 / np.where(c > 0, c, 1.0), np.inf)),
        cdf=lambda z, c: np.exp(-np.exp(_log_power(-z, c))), sf=lambda z, c: -np.expm1(-np.exp(_log_power(-z, c))),
        logcdf=lambda z, c: -np.exp(_log_power(-z, c)), ppf=lambda q, c: _raised(-np.log(-np.log(q)), -c),
    ),
    Distribution(
        "genpareto", ("c",), lambda z, c: -(c + 1) * _log_power(z, c),
        lambda c: (0.0, np.where(c < 0, -1 / np.where(c < 0, c, 1.0), np.inf)),
        cdf=lambda z, c: -np.expm1(-_log_power(z, c)), sf=lambda z, c: np.exp(-_log_power(z, c)),
        logsf=lambda z, c: -_log_power(z, c), ppf=lambda q, c: _raised(-np.log1p(-q), c),
        moments=(
            lambda c: np.where(c < 1, 1 / (1 - c), np.inf),
            lambda c: np.where(c < 0.5, 1 / ((1 - c) ** 2 * (1 - 2 * c)), np.inf),
        ),
        entropy=lambda c: 1 + c,
    ),
    Distribution(
        "weibull_max", ("c",), lambda z, c: np.log(c) + special.xlogy(c - 1, -z) - (-z) ** c,
        lambda c: (-math.inf, 0.0),
        cdf=lambda z, c: np.exp(-((-z) ** c)), sf=lambda z, c: -np.expm1(-((-z) ** c)),
        logcdf=lambda z, c: -((-z) ** c), ppf=lambda q, c: -((-np.log(q)) ** (1 / c)),
    ),
    Distribution(
        "invweibull", ("c",), lambda z, c: np.log(c) - (c + 1) * np.log(z) - z**-c, positive,
        cdf=lambda z, c: np.exp(-(z**-c)), sf=lambda z, c: -np.expm1(-(z**-c)), logcdf=lambda z, c: -(z**-c),
        ppf=lambda q, c: (-np.log(q)) ** (-1 / c),
    ),
    Distribution(
        "genlogistic", ("c",),
        lambda z, c: np.log(c) - z - (c + 1) * np.logaddexp(0.0, -z), everywhere,
        cdf=lambda z, c: np.exp(-c * np.logaddexp(0.0, -z)), ppf=lambda q, c: -np.log(np.expm1(-np.log(q) / c)),
    ),
    Distribution(
        "moyal", (), lambda z: -0.5 * (z + np.exp(-z)) - HALF_LOG_TWO_PI, everywhere,
        cdf=lambda z: special.erfc(np.exp(-z / 2) / ROOT_TWO), sf=lambda z: special.erf(np.exp(-z / 2) / ROOT_TWO),
        moments=(lambda: EULER + math.log(2), lambda: math.pi**2 / 2),
    ),
    Distribution(
        "loggamma", ("c",), lambda z, c: c * z - np.exp(z) - special.gammaln(c), everywhere,
        cdf=_log_gamma_below, sf=_log_gamma_above,
        moments=(lambda c: special.digamma(c), lambda c: special.polygamma(1, c)),
    ),
    Distribution(
        "pearson3", ("skew",), pearson.log_density, pearson.support, cdf=pearson.below,
        sf=lambda z, skew: pearson.below(-z, -skew),
        moments=(lambda skew: skew * 0.0, lambda skew: skew * 0.0 + 1.0),
    ),
    Distribution("halfcauchy", (), lambda z: math.log(2 / math.pi) - np.log1p(z * z), positive,
                 cdf=lambda z: np.arctan(z) / HALF_PI, sf=lambda z: np.arctan2(1.0, z) / HALF_PI,
                 ppf=lambda q: np.tan(HALF_PI * q)),
    Distribution("foldcauchy", ("c",), lambda z, c: np.log((1 / (1 + (z - c) ** 2) + 1 / (1 + (z + c) ** 2)) / math.pi),
                 positive, cdf=lambda z, c: (np.arctan(z - c) + np.arctan(z + c)) / math.pi),
    Distribution("levy", (), lambda z: -HALF_LOG_TWO_PI - 1.5 * np.log(z) - 0.5 / z, positive,
                 cdf=lambda z: special.erfc(np.sqrt(0.5 / z)), sf=lambda z: special.erf(np.sqrt(0.5 / z)),
                 ppf=lambda q: special.ndtri(q / 2) ** -2.0),
)  # fmt: skip

BIRTHS: Final = (
    Distribution(
        "fatiguelife", ("c",),
        lambda z, c: (
            np.log1p(z) - np.log(2 * c) - HALF_LOG_TWO_PI - 1.5 * np.log(z) - (z - 1) ** 2 / (2 * z * c * c)
        ),
        positive,
        cdf=lambda z, c: special.ndtr((np.sqrt(z) - 1 / np.sqrt(z)) / c),
        sf=lambda z, c: special.ndtr((1 / np.sqrt(z) - np.sqrt(z)) / c),
        ppf=lambda q, c: (c * special.ndtri(q) + np.sqrt((c * special.ndtri(q)) ** 2 + 4)) ** 2 / 4,
        moments=(lambda c: 1 + c * c / 2, lambda c: c * c * (1 + 1.25 * c * c)),
    ),
    Distribution(
        "recipinvgauss", ("mu",),
        lambda z, mu: -HALF_LOG_TWO_PI - 0.5 * np.log(z) - (1 - mu * z) ** 2 / (2 * z * mu * mu), positive,
        cdf=lambda z, mu: (
            special.ndtr(-(1 / mu - z) / np.sqrt(z)) - np.exp(2 / mu + special.log_ndtr(-(1 / mu + z) / np.sqrt(z)))
        ),
        moments=(lambda mu: 1 + 1 / mu, lambda mu: 1 / mu + 2),
    ),
    Distribution(
        "rdist", ("c",),
        lambda z, c: special.xlog1py(c / 2 - 1, -z * z) - special.betaln(0.5, c / 2), lambda c: (-1.0, 1.0),
        cdf=lambda z, c: special.betainc(c / 2, c / 2, (z + 1) / 2),
        sf=lambda z, c: special.betainc(c / 2, c / 2, (1 - z) / 2),
        ppf=lambda q, c: 2 * special.betaincinv(c / 2, c / 2, q) - 1,
        moments=(lambda c: c * 0.0, lambda c: 1 / (c + 1)),
    ),
)  # fmt: skip

SYMMETRIC: Final = (
    Distribution(
        "gennorm", ("beta",), lambda z, b: np.log(b / 2) - special.gammaln(1 / b) - np.abs(z) ** b, everywhere,
        cdf=_generalized_normal_below,
        moments=(lambda b: b * 0.0, lambda b: np.exp(special.gammaln(3 / b) - special.gammaln(1 / b))),
        entropy=lambda b: 1 / b - np.log(b / 2) + special.gammaln(1 / b), is_accurate=True,
    ),
    Distribution(
        "dweibull", ("c",),
        lambda z, c: np.log(c / 2) + special.xlogy(c - 1, np.abs(z)) - np.abs(z) ** c, everywhere,
        cdf=lambda z, c: np.where(z > 0, 1 - 0.5 * np.exp(-(np.abs(z) ** c)), 0.5 * np.exp(-(np.abs(z) ** c))),
    ),
    Distribution(
        "dgamma", ("a",),
        lambda z, a: -math.log(2) - special.gammaln(a) + special.xlogy(a - 1, np.abs(z)) - np.abs(z), everywhere,
        cdf=lambda z, a: 0.5 + 0.5 * np.sign(z) * special.gammainc(a, np.abs(z)),
        moments=(lambda a: a * 0.0, lambda a: a * (a + 1)),
    ),
    Distribution(
        "skewnorm", ("a",), lambda z, a: math.log(2) + _log_normal(z) + special.log_ndtr(a * z), everywhere,
        cdf=lambda z, a: special.ndtr(z) - 2 * special.owens_t(z, a),
        moments=(
            lambda a: math.sqrt(2 / math.pi) * a / np.sqrt(1 + a * a), lambda a: 1 - 2 / math.pi * a * a / (1 + a * a),
        ),
    ),
    Distribution(
        "johnsonsu", ("a", "b"),
        lambda z, a, b: np.log(b) - 0.5 * np.log1p(z * z) + _log_normal(a + b * np.arcsinh(z)), everywhere,
        cdf=lambda z, a, b: special.ndtr(a + b * np.arcsinh(z)),
        sf=lambda z, a, b: special.ndtr(-a - b * np.arcsinh(z)),
        ppf=lambda q, a, b: np.sinh((special.ndtri(q) - a) / b),
    ),
    Distribution("hypsecant", (), lambda z: math.log(2 / math.pi) - np.logaddexp(z, -z), everywhere,
                 cdf=lambda z: np.arctan(np.exp(z)) / HALF_PI, ppf=lambda q: np.log(np.tan(HALF_PI * q)),
                 moments=(lambda: 0.0, lambda: math.pi**2 / 4)),
    Distribution(
        "laplace_asymmetric", ("kappa",),
        lambda z, k: -np.log(k + 1 / k) + z * np.where(z >= 0, -k, 1 / k), everywhere,
        cdf=lambda z, k: np.where(
            z >= 0, 1 - np.exp(-np.abs(z) * k) / (1 + k * k), k * k / (1 + k * k) * np.exp(-np.abs(z) / k)
        ),
        moments=(lambda k: 1 / k - k, lambda k: 1 / k**2 + k**2),
    ),
    Distribution(
        "vonmises", ("kappa",),
        # The scaled function has a kink at 0, which the absolute value removes.
        lambda z, k: k * np.cos(z) - np.abs(k) - math.log(2 * math.pi) - np.log(special.i0e(k)), everywhere,
        start=-math.pi,  # the density is periodic
    ),
    Distribution(
        "norminvgauss", ("a", "b"),
        lambda z, a, b: (
            np.log(a / math.pi) + np.sqrt(a * a - b * b) + b * z - a * np.sqrt(1 + z * z)
            - 0.5 * np.log1p(z * z) + np.log(special.k1e(a * np.sqrt(1 + z * z)))
        ),
        everywhere,
    ),
)  # fmt: skip
