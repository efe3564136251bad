"""The runtime of scalar programs: functions of numbers called by generated source, which Numba compiles too."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

# Functions of Python's `math`, which raise where NumPy returns inf or nan; the program is then run with NumPy.
MATH: Final = {
    name: getattr(math, name)
    for name in (
        "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "hypot", "copysign", "inf", "nan", "erf", "erfc", "lgamma",
    )
}
# The integers to which NumPy converts NaN and infinities, which depend on the processor.
with np.errstate(invalid="ignore"):
    OF_NAN, OF_GREAT, OF_SMALL = np.array([np.nan, np.inf, -np.inf]).astype(np.int64)


def floor(a: float) -> float:
    return float(math.floor(a))


def ceil(a: float) -> float:
    return float(math.ceil(a))


def trunc(a: float) -> float:
    return float(math.trunc(a))


def rint(a: float) -> float:
    return float(round(a))


def as_float(a: float) -> float:
    return a * 1.0


def as_integer(a: float) -> int:
    if a != a:
        return int(OF_NAN)
    if a >= 9223372036854775808.0:
        return int(OF_GREAT)
    if a < -9223372036854775808.0:
        return int(OF_SMALL)
    return int(a)


def wrapped(a: int) -> int:
    if -9223372036854775808 <= a <= 9223372036854775807:
        return a
    return (a + 9223372036854775808) % 18446744073709551616 - 9223372036854775808


def wrapped_index(a: int, extent: int) -> int:
    if a < 0:
        a += extent
    return a if 0 <= a < extent else -1


def unchanged(a: int) -> int:
    return a


def quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    return wrapped(-a) if b == -1 else a // b


def modulo(a: int, b: int) -> int:
    return 0 if b == 0 or b == -1 else a % b


def rounded(a: float) -> float:
    return float(np.float32(a))


def square(a: float) -> float:
    return a * a


def sign(a: float) -> float:
    if a > 0.0:
        return 1.0
    if a < 0.0:
        return -1.0
    return a if a != a else 0.0


def maximum(a: float, b: float) -> float:
    return a if a >= b or a != a else b


def minimum(a: float, b: float) -> float:
    return a if a <= b or a != a else b


def fmax(a: float, b: float) -> float:
    return a if a >= b or b != b else b


def fmin(a: float, b: float) -> float:
    return a if a <= b or b != b else b


def power(a: float, b: float) -> float:
    if b == 2.0:
        return a * a
    return math.pow(a, b)


def exp2(a: float) -> float:
    return math.pow(2.0, a)


def logaddexp(a: float, b: float) -> float:
    if a == b:
        return a + 0.6931471805599453
    if a > b:
        return a + math.log1p(math.exp(b - a))
    if a < b:
        return b + math.log1p(math.exp(a - b))
    return a + b


def less_exponent(a: float, b: float) -> float:
    return -math.inf if a == -math.inf and b == -math.inf else a - b


def sigmoid(a: float) -> float:
    return 1.0 / (1.0 + math.exp(-a))


def floor_divide(a: float, b: float) -> float:
    return float(a // b)


def remainder(a: float, b: float) -> float:
    return a % b


def digamma(a: float) -> float:
    if a != a or (a <= 0.0 and a == math.floor(a)):
        return math.nan
    total = 0.0
    if a < 0.0:
        total = -math.pi / math.tan(math.pi * a)
        a = 1.0 - a
    while a < 10.0:
        total -= 1.0 / a
        a += 1.0
    b = 1.0 / (a * a)
    series = b * (1 / 12 - b * (1 / 120 - b * (1 / 252 - b * (1 / 240 - b * (1 / 132 - b * (691 / 32760 - b / 12))))))
    return total + math.log(a) - 0.5 / a - series


def nonzero_or_one(a: float) -> float:
    return 1.0 if a == 0.0 else a


def flowing(product: float, grad: float) -> float:
    return product if grad != 0.0 else 0.0  # the test does not depend on the product


def finite_or_zero(a: float) -> float:
    return a if a - a == 0.0 else 0.0


def log_of_sum(a: float) -> float:
    return -math.inf if a == 0.0 else math.log(a)


def isfinite(a: float) -> bool:
    return a - a == 0.0


def tie_hit(a: float, extremum: float) -> float:
    return 1.0 if a == extremum or a != a else 0.0


def over_square(a: float, b: float) -> float:
    length = nonzero_or_one(math.hypot(a, b))
    return 0.0 if length == math.inf else a / length / length


def power_slope(base: float, exponent: float) -> float:
    if exponent == 2.0:
        return 2.0 * base
    if exponent == 0.0 and base == 0.0:
        return 0.0
    return exponent * math.pow(base, exponent - 1.0)


def power_log(base: float, exponent: float) -> float:
    return 0.0 if base == 0.0 and exponent >= 0.0 else math.log(base)


def block_sum(values: Any, start: int, count: int) -> Any:
    if count < 8:
        total = 0.0
        for i in range(start, start + count):
            total += values[i]
        return total
    a0, a1, a2, a3 = values[start], values[start + 1], values[start + 2], values[start + 3]
    a4, a5, a6, a7 = values[start + 4], values[start + 5], values[start + 6], values[start + 7]
    end = start + count - count % 8
    for i in range(start + 8, end, 8):
        a0 += values[i]
        a1 += values[i + 1]
        a2 += values[i + 2]
        a3 += values[i + 3]
        a4 += values[i + 4]
        a5 += values[i + 5]
        a6 += values[i + 6]
        a7 += values[i + 7]
    total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    for i in range(end, start + count):
        total += values[i]
    return total


def pairwise_sum(values: Any, start: int, count: int) -> Any:
    # Recursive halving with an explicit stack, since Numba cannot load recursive functions from disk.
    if count <= 128:
        return block_sum(values, start, count)
    starts, counts, sums = np.empty(128, np.int64), np.empty(128, np.int64), np.empty(64)
    starts[0], counts[0] = start, count
    depth, found = 1, 0
    while depth > 0:
        depth -= 1
        first, length = starts[depth], counts[depth]
        if length < 0:  # both halves have been summed
            found -= 1
            sums[found - 1] += sums[found]
        elif length <= 128:
            sums[found] = block_sum(values, first, length)
            found += 1
        else:
            half = length // 2
            half -= half % 8
            counts[depth] = -1
            starts[depth + 1], counts[depth + 1] = first + half, length - half
            starts[depth + 2], counts[depth + 2] = first, half
            depth += 3
    return sums[0]


# Ordered such that each function calls only earlier ones.
FUNCTIONS: Final = (
    floor, ceil, trunc, rint, as_float, as_integer, wrapped, wrapped_index, quotient, modulo, rounded, square, sign,
    maximum, minimum, fmax, fmin, power, exp2, logaddexp, less_exponent, sigmoid, floor_divide, remainder, digamma,
    nonzero_or_one, finite_or_zero, isfinite, flowing, log_of_sum, tie_hit, over_square, power_slope,
    power_log, block_sum, pairwise_sum,
)
# Replacements for back ends with 64-bit integers.
NATIVE: Final = {"wrapped": unchanged}
