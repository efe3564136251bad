"""Derivatives of special functions at poles, at zero and for large arguments, where the textbook formula cancels.

Each is written with NumPy's functions and SciPy's ufuncs, which mean the same for tensors, so that it can be
differentiated again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from ..language.namespace import formula_function, made_of_operators
from ..lazy_imports import LazyModule

special: Final[Any] = LazyModule("scipy.special")

ROOT_OF_PI: Final = math.sqrt(math.pi)
# The argument from which an asymptotic series is as accurate as the function itself, while the difference has lost ten
# digits.
FAR: Final = 50.0
FAR_FOR_ORDER_TWO: Final = 1000.0


def in_its_precision(slope: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function with results in the dtype of its argument, since SciPy does not support half precision."""

    @functools.wraps(slope)
    def converted(x: Any) -> Any:
        result = slope(x)
        return result if result.dtype == x.dtype else result.astype(x.dtype)

    return formula_function(converted)


# Near 0, exponents up to this one are factored out as powers; higher powers have zero derivatives at 0 in any case.
WHOLE: Final = 6.0


def powers_times(log_rest: Any, *powers: tuple[Any, Any, bool]) -> Any:
    """Return powers of numbers times an exponential, without intermediate overflow and with correct derivatives at 0.

    The textbook formula adds logarithms, which loses accuracy at 0 and 1, where the first logarithm is infinite.

    Arguments:
        log_rest: the logarithm of the other factor.
        powers: x, its exponent, and whether the base is 1 - x.
    """
    head = 1.0
    for x, exponent, from_one in powers:
        base = 1 - x if from_one else x
        fixed = exponent.detach() if isinstance(exponent, Tensor) else exponent
        whole = np.where(base < 1, np.minimum(fixed, WHOLE), 0.0)
        apart = np.where(base == 0, 0.0 if from_one else 1.0, x)
        head = head * base**whole
        log_rest = log_rest + (np.log1p(-apart) if from_one else np.log(apart)) * (exponent - whole)
    return head * np.exp(log_rest)


def _series(x: Any, sign: int) -> Any:
    """Return 1 + s 3/(2 x^2) + 15/(2 x^2)^2 + s 105/(2 x^2)^3 + ... (Abramowitz and Stegun, 7.1.23)."""
    small = 0.5 / x / x
    total = 1 + small * (15 * sign)
    for factor in (13, 11, 9, 7, 5, 3):
        total = 1 + small * (factor * sign) * total
    return total


def _parted(x: Any, far: Any, otherwise: float) -> tuple[Any, Any]:
    """Return the near values, with 0 in place of the others, and the far ones, with `otherwise` in place of the others.
    """
    return np.where(far, 0.0, x), np.where(far, x, otherwise)


@in_its_precision
def erfcx_slope(x: Any) -> Any:
    """Return the derivative of erfcx, 2 x erfcx(x) - 2/sqrt(pi), without cancellation for large arguments."""
    if x.dtype.kind == "c":
        return 2 * x * special.erfcx(x) - 2 / ROOT_OF_PI
    near, out = _parted(x, x > FAR, FAR)
    there = _series(out, -1) / out / out / -ROOT_OF_PI
    return np.where(x > FAR, there, 2 * near * special.erfcx(near) - 2 / ROOT_OF_PI)


@in_its_precision
def dawsn_slope(x: Any) -> Any:
    """Return the derivative of Dawson's integral, 1 - 2 x dawsn(x), without cancellation for large arguments."""
    if x.dtype.kind == "c":
        return 1 - 2 * x * special.dawsn(x)
    far = (x > FAR) | (x < -FAR)
    near, out = _parted(x, far, FAR)
    return np.where(far, _series(out, 1) / out / out / -2, 1 - 2 * near * special.dawsn(near))


@in_its_precision
def log_ndtr_slope(x: Any) -> Any:
    """Return the normal density divided by the normal distribution function; both vanish for small values."""
    low = x.real < 0
    below, above = np.where(low, x, 0.0), np.where(low, 0.0, x)
    return np.where(
        low,
        math.sqrt(2 / math.pi) / special.erfcx(below * -math.sqrt(0.5)),
        np.exp(above * above * -0.5 - special.log_ndtr(above)) / math.sqrt(2 * math.pi),
    )


@in_its_precision
def rgamma_slope(x: Any) -> Any:
    """Return the derivative of 1 / gamma(x), which is finite at the poles of digamma; by reflection below 1/2."""
    low = x < 0.5
    below, above = np.where(low, x, 0.0), np.where(low, 1.0, x)
    angle = below * math.pi
    reflected = special.gamma(1 - below) * (np.cos(angle) - np.sin(angle) * special.digamma(1 - below) / math.pi)
    return np.where(low, reflected, -special.rgamma(above) * special.digamma(above))


@in_its_precision
def ive_of_two(x: Any) -> Any:
    """Return ive(2, x), including large numbers, for which SciPy fails."""
    far = (x > FAR_FOR_ORDER_TWO) | (x < -FAR_FOR_ORDER_TWO)
    near, out = _parted(x, far, FAR_FOR_ORDER_TWO)
    return np.where(far, special.i0e(out) - 2 * special.i1e(out) / out, special.ive(2, near))


@in_its_precision
def logit_slope(x: Any) -> Any:
    """Return the derivative of logit, which is NaN outside the interval, like the value."""
    return np.where((x < 0) | (x > 1), math.nan, 1 / (x * (1 - x)))


@formula_function
@made_of_operators("-inf if x == -inf and y == -inf else x - y")
def less_exponent(x: Any, y: Any) -> Any:
    """Return x - y, whose sigmoid is the share of exp(x) in exp(x) + exp(y), or -inf if that sum is 0."""
    empty = (x.real == -math.inf) & (y.real == -math.inf)
    return np.where(empty, -math.inf, x) - np.where(empty, 0, y)


@in_its_precision
def ellipk_slope(x: Any) -> Any:
    """Return the derivative of ellipk; near 0 by a series, since the formula is 0 / 0 there."""
    near, out = np.where(_is_half(x), x, 0.0), np.where(_is_half(x), -1.0, x)
    return np.where(
        _is_half(x),
        special.hyp2f1(1.5, 1.5, 2.0, near) * (math.pi / 8),
        (special.ellipe(out) / (1 - out) - special.ellipk(out)) / (2 * out),
    )


@in_its_precision
def ellipe_slope(x: Any) -> Any:
    """Return the derivative of ellipe; near 0 by a series, since the formula is 0 / 0 there."""
    near, out = np.where(_is_half(x), x, 0.0), np.where(_is_half(x), -1.0, x)
    return np.where(
        _is_half(x),
        special.hyp2f1(0.5, 1.5, 2.0, near) * (-math.pi / 8),
        (special.ellipe(out) - special.ellipk(out)) / (2 * out),
    )


def _is_half(x: Any) -> Any:
    return (x > -0.5) & (x < 0.5)
