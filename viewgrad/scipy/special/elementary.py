"""Functions of `scipy.special` composed of others: angles in degrees, losses, powers, counts, zeta functions."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from ..wrap import double_copy, maker, numbers, with_value_of

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
DEGREE: Final = math.pi / 180


@made
def cbrt(x: Any) -> Any:
    """Return the cube root."""
    return np.cbrt(x)


@made
def exp2(x: Any) -> Any:
    """Return 2 raised to each value."""
    return np.exp2(x)


@made
def exp10(x: Any) -> Any:
    """Return 10 raised to each value."""
    return 10.0 ** numbers(x)


@made
def expm1(x: Any) -> Any:
    """Return exp(x) - 1, accurate near 0."""
    return np.expm1(x)


@made
def log1p(x: Any) -> Any:
    """Return log(1 + x), accurate near 0."""
    return np.log1p(x)


@made
def cosm1(x: Any) -> Any:
    """Return cos(x) - 1, accurate near 0."""
    return -2.0 * np.sin(numbers(x) / 2.0) ** 2


def _degrees(x: Any) -> Any:
    """Convert an angle from degrees to radians, modulo whole turns."""
    x = numbers(x) * 1.0
    return (x - 360.0 * np.round(plain_values(x) / 360.0)) * DEGREE


@made
def sindg(x: Any) -> Any:
    """Return the sine of an angle in degrees."""
    return with_value_of(np.sin(_degrees(x)), scipy.special.sindg, numbers(x))


@made
def cosdg(x: Any) -> Any:
    """Return the cosine of an angle in degrees."""
    return with_value_of(np.cos(_degrees(x)), scipy.special.cosdg, numbers(x))


@made
def tandg(x: Any) -> Any:
    """Return the tangent of an angle in degrees."""
    return np.tan(_degrees(x))


@made
def cotdg(x: Any) -> Any:
    """Return the cotangent of an angle in degrees."""
    return 1.0 / np.tan(_degrees(x))


@made
def radian(d: Any, m: Any, s: Any) -> Any:
    """Convert an angle from degrees, minutes and seconds to radians."""
    return (numbers(d) + numbers(m) / 60.0 + numbers(s) / 3600.0) * DEGREE


@made
def kl_div(x: Any, y: Any) -> Any:
    """Return x * log(x / y) - x + y."""
    x, y = numbers(x) * 1.0, numbers(y) * 1.0
    return scipy.special.rel_entr(x, y) - x + y


@made
def huber(delta: Any, r: Any) -> Any:
    """Return the Huber loss, quadratic near 0 and linear beyond `delta`."""
    delta, r = numbers(delta) * 1.0, numbers(r) * 1.0
    away = np.abs(r)
    near = plain_values(away) <= plain_values(delta)
    found = np.where(near, 0.5 * r * r, delta * (away - 0.5 * delta))
    return np.where(plain_values(delta) < 0, np.inf, found)


@made
def pseudo_huber(delta: Any, r: Any) -> Any:
    """Return the pseudo-Huber loss."""
    delta, r = numbers(delta) * 1.0, numbers(r) * 1.0
    share = r / delta
    # The square root minus 1, without cancellation.
    found = delta * delta * (share * share / (np.sqrt(1.0 + share * share) + 1.0))
    return np.where(plain_values(delta) < 0, np.inf, found)


@made
def softplus(x: Any, **options: Any) -> Any:
    """Return log(1 + exp(x)); the options are those of `numpy.logaddexp`."""
    return np.logaddexp(0.0, numbers(x), **options)


@made
def poch(z: Any, m: Any) -> Any:
    """Return the rising factorial, gamma(z + m) / gamma(z)."""
    z, m = numbers(z) * 1.0, numbers(m) * 1.0
    orders = plain_values(m)
    if not carries_history(m) and np.all(orders == orders.reshape(-1)[0]) and orders.flat[0] in range(64):
        found = z * 0.0 + 1.0
        for place in range(int(orders.flat[0])):
            found = found * (z + place)
        return found * np.ones(np.shape(orders))
    moderate = np.abs(plain_values(z)) + np.abs(orders) < 150
    # The reciprocal of the gamma function has nonzero slopes at the poles.
    product = scipy.special.gamma(np.where(moderate, z + m, 1.0)) * scipy.special.rgamma(np.where(moderate, z, 1.0))
    if np.all(moderate):
        return product
    sign = scipy.special.gammasgn(plain_values(z + m)) * scipy.special.gammasgn(plain_values(z))
    return np.where(moderate, product, sign * np.exp(scipy.special.gammaln(z + m) - scipy.special.gammaln(z)))


@made
def binom(n: Any, k: Any) -> Any:
    """Return the binomial coefficient, also for non-integers."""
    n, k = numbers(n) * 1.0, numbers(k) * 1.0
    whole = plain_values(n + 1)
    moderate = np.abs(plain_values(n)) + np.abs(plain_values(k)) < 150
    # The reciprocals of gamma functions have nonzero slopes at the poles.
    product = scipy.special.gamma(np.where(moderate, n + 1, 1.0)) * (
        scipy.special.rgamma(np.where(moderate, k + 1, 1.0)) * scipy.special.rgamma(np.where(moderate, n - k + 1, 1.0))
    )
    if np.all(moderate):
        return product
    size = scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1)
    signs = scipy.special.gammasgn(whole) * scipy.special.gammasgn(plain_values(k + 1))
    return np.where(moderate, product, signs * scipy.special.gammasgn(plain_values(n - k + 1)) * np.exp(size))


@made
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Return the number of combinations of `N` things taken `k` at a time."""
    N = numbers(N) + numbers(k) - 1 if repetition else numbers(N)
    none = (plain_values(numbers(k)) > plain_values(N)) | (plain_values(N) < 0) | (plain_values(numbers(k)) < 0)
    return np.where(none, 0.0, binom(np.where(none, 1.0, N), np.where(none, 1.0, k)))


@made
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Return the number of permutations of `N` things taken `k` at a time."""
    plain = np.asarray(plain_values(numbers(N))), np.asarray(plain_values(numbers(k)))
    none = (plain[1] > plain[0]) | (plain[0] < 0) | (plain[1] < 0)
    return np.where(none, 0.0, MADE["poch"](np.where(none, 1.0, numbers(N) - numbers(k) + 1.0), k))


@made
def powm1(x: Any, y: Any) -> Any:
    """Return x**y - 1, accurate near 0."""
    x, y = numbers(x) * 1.0, numbers(y) * 1.0
    if np.any(plain_values(x) <= 0):
        return x**y - 1.0
    return np.expm1(y * np.log(x))


@made
def exprel(x: Any) -> Any:
    """Return (exp(x) - 1) / x, with the limit 1 at 0."""
    x = double_copy(x)
    small, huge = np.abs(x) < 0.5, x > math.log(np.finfo(x.dtype).max)
    near, safe = np.where(small, x, 0.0), np.where(small | huge, 1.0, x)
    series: Any = 1.0
    for divisor in range(18, 1, -1):  # x / 2 (1 + x / 3 (1 + ...)), with equally accurate derivatives
        series = 1 + near * series / divisor
    # Where the exponential overflows, the slope is infinite, and not the difference of two infinite terms.
    return np.where(small, series, np.where(huge, np.exp(x), np.expm1(safe) / safe))


@made
def boxcox(x: Any, lmbda: Any) -> Any:
    """Return the Box-Cox transform."""
    with np.errstate(divide="ignore"):  # at 0, whose powers are defined
        return _box_cox(np.log(numbers(x) * 1.0), numbers(lmbda) * 1.0)


@made
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """Return the Box-Cox transform of 1 + x."""
    with np.errstate(divide="ignore"):
        return _box_cox(np.log1p(numbers(x) * 1.0), numbers(lmbda) * 1.0)


def _box_cox(logarithm: Any, power: Any) -> Any:
    """Return (exp(power * logarithm) - 1) / power, and its limit if the power is 0."""
    at_zero, given = np.isneginf(plain_values(logarithm)), plain_values(power)
    if not np.any(at_zero):
        return logarithm * MADE["exprel"](power * logarithm)
    zero, undefined = at_zero & (given > 0), at_zero & (given == 0)  # where the power of 0 is 0; where it is 1
    logarithm = np.where(zero, 0.0, logarithm)
    factor = MADE["exprel"](power * np.where(undefined, 0.0, logarithm))
    factor = np.where(undefined, 1.0 - power * 1e300, factor)  # 1, with a slope that stands for the infinite one
    return np.where(zero, -1.0 / np.where(zero, power, 1.0), logarithm * factor)


@made
def inv_boxcox(y: Any, lmbda: Any) -> Any:
    """Return the inverse of the Box-Cox transform."""
    y, power = numbers(y) * 1.0, numbers(lmbda) * 1.0
    return np.exp(logarithm_by_power(y, power))


@made
def inv_boxcox1p(y: Any, lmbda: Any) -> Any:
    """Return the inverse of the Box-Cox transform of 1 + x."""
    y, power = numbers(y) * 1.0, numbers(lmbda) * 1.0
    return np.expm1(logarithm_by_power(y, power))


def logarithm_by_power(y: Any, power: Any) -> Any:
    """Return log(1 + power * y) / power, and y if the power is 0."""
    product = power * y
    near = np.abs(plain_values(product)) < 0.02
    small, large = np.where(near, product, 0.0), np.where(near, 1.0, product)
    series: Any = 0.0
    for order in range(10, -1, -1):
        series = series * small + (-1.0) ** order / (order + 1)
    return y * np.where(near, series, np.log1p(large) / large)


@made
def diric(x: Any, n: Any) -> Any:
    """Return the periodic sinc function of order `n`."""
    x, n = numbers(x) * 1.0, int(plain_values(numbers(n)))
    if n < 1:
        return x * np.nan
    # The mean of the cosines of evenly spaced multiples, which is smooth where the quotient is 0 / 0.
    multiples = (n - 1) / 2 - np.arange(n)
    return np.cos(x[..., None] * multiples).mean(-1)


@made
def owens_t(h: Any, a: Any) -> Any:
    """Return Owen's T function, by Gaussian quadrature."""
    h, a = numbers(h) * 1.0, numbers(a) * 1.0
    far = np.abs(plain_values(a)) > 1.0
    if np.any(far):
        # T(h, a) = Q(h) / 2 + Q(a h) / 2 - Q(h) Q(a h) - T(a h, 1 / a), for positive h and a.
        size, height = np.where(far, np.abs(a), 2.0), np.abs(h)
        above, beyond = scipy.special.ndtr(-height), scipy.special.ndtr(-size * height)
        outer = 0.5 * (above + beyond) - above * beyond - _owens_near(size * height, 1.0 / size)
        return np.where(far, np.sign(plain_values(a)) * outer, _owens_near(h, np.where(far, 0.5, a)))
    return _owens_near(h, a)


def _owens_near(h: Any, a: Any) -> Any:
    nodes, weights = np.polynomial.legendre.leggauss(48)
    places = a[..., None] * (0.5 + 0.5 * nodes)
    rise = 1.0 + places * places
    return a * (np.exp(-0.5 * (h * h)[..., None] * rise) / rise * (weights / (4.0 * math.pi))).sum(-1)


# Bernoulli numbers of even order divided by factorials: the corrections in the Euler-Maclaurin formula.
BERNOULLI: Final = [float(b) / math.factorial(2 * k) for k, b in enumerate(scipy.special.bernoulli(24)[::2]) if k]


@made
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Return the Riemann or Hurwitz zeta function, differentiable in both arguments, for x > 1 and q > 0."""
    x, q = numbers(x) * 1.0, numbers(1.0 if q is None else q) * 1.0
    if x.dtype.kind == "c" or np.any(plain_values(x) <= 1) or np.any(plain_values(q) <= 0):
        raise lost("scipy.special.zeta", "it has a derivative only for real x > 1 and q > 0")
    count = 16
    places = np.arange(count) + q[..., None]
    end = q + count
    total = (places ** -x[..., None]).sum(-1) + end ** (1.0 - x) / (x - 1.0) + 0.5 * end**-x
    rising: Any = x
    for k, number in enumerate(BERNOULLI, 1):
        total = total + number * rising * end ** (-x - (2 * k - 1))
        rising = rising * (x + (2 * k - 1)) * (x + 2 * k)
    return total


@made
def zetac(x: Any) -> Any:
    """Return the Riemann zeta function minus 1."""
    return MADE["zeta"](x, 2.0)
