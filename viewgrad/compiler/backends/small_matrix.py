"""Linear algebra of small matrices in compiled code, where NumPy calls would take longer.

Each function operates on buffers and returns 1 if it gives up: for singular or nearly singular matrices, and for
infinities and NaN, which are left to NumPy.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..loop_ir import Call

MOST: Final = 32  # rows and right-hand sides; for larger matrices NumPy's functions are as fast
LEAST_PIVOT: Final = 1e-6  # relative to its column or the diagonal; a smaller pivot has lost too many digits
GAVE_UP: Final = 1


def eliminated(a: Any, n: int) -> tuple[int, Any, Any]:
    # L and U of a matrix with permuted rows, and the sign of the permutation, or 0 if it gives up.
    factors, order, sign = np.empty(n * n), np.empty(n, np.int64), 1
    for i in range(n * n):
        factors[i] = a[i]
    for k in range(n):
        order[k] = k
    for k in range(n):
        column, greatest, best = 0.0, 0.0, k
        for i in range(n):
            column = max(column, abs(a[i * n + k]))
        for i in range(k, n):
            if abs(factors[i * n + k]) > greatest:
                greatest, best = abs(factors[i * n + k]), i
        if not LEAST_PIVOT * column < greatest < math.inf:
            return 0, factors, order
        if best != k:
            for j in range(n):
                factors[k * n + j], factors[best * n + j] = factors[best * n + j], factors[k * n + j]
            order[k], order[best] = order[best], order[k]
            sign = -sign
        for i in range(k + 1, n):
            factor = factors[i * n + k] / factors[k * n + k]
            factors[i * n + k] = factor
            for j in range(k + 1, n):
                factors[i * n + j] -= factor * factors[k * n + j]
    return sign, factors, order


def substituted(factors: Any, order: Any, n: int, b: Any, m: int, x: Any) -> None:
    # The solutions for m right-hand sides.
    for i in range(n):
        for c in range(m):
            x[i * m + c] = b[order[i] * m + c]
        for k in range(i):
            for c in range(m):
                x[i * m + c] -= factors[i * n + k] * x[k * m + c]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            for c in range(m):
                x[i * m + c] -= factors[i * n + k] * x[k * m + c]
        for c in range(m):
            x[i * m + c] /= factors[i * n + i]


def substituted_back(factors: Any, order: Any, n: int, b: Any, m: int, x: Any) -> None:
    # The solutions for the transposed matrix.
    y = np.empty(n * m)
    for i in range(n):
        for c in range(m):
            y[i * m + c] = b[i * m + c]
        for k in range(i):
            for c in range(m):
                y[i * m + c] -= factors[k * n + i] * y[k * m + c]
        for c in range(m):
            y[i * m + c] /= factors[i * n + i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            for c in range(m):
                y[i * m + c] -= factors[k * n + i] * y[k * m + c]
    for i in range(n):
        for c in range(m):
            x[order[i] * m + c] = y[i * m + c]


def solve(a: Any, b: Any, x: Any, n: int, m: int) -> int:
    sign, factors, order = eliminated(a, n)
    if sign == 0:
        return GAVE_UP
    substituted(factors, order, n, b, m, x)
    return 0


def solve_slope_0(grad: Any, a: Any, b: Any, out: Any, n: int, m: int) -> int:
    sign, factors, order = eliminated(a, n)
    if sign == 0:
        return GAVE_UP
    x, y = np.empty(n * m), np.empty(n * m)
    substituted(factors, order, n, b, m, x)
    substituted_back(factors, order, n, grad, m, y)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for c in range(m):
                total -= y[i * m + c] * x[j * m + c]
            out[i * n + j] = total
    return 0


def solve_slope_1(grad: Any, a: Any, b: Any, out: Any, n: int, m: int) -> int:
    sign, factors, order = eliminated(a, n)
    if sign == 0:
        return GAVE_UP
    substituted_back(factors, order, n, grad, m, out)
    return 0


def inv(a: Any, out: Any, n: int, m: int) -> int:
    ones = np.zeros(n * n)
    for i in range(n):
        ones[i * n + i] = 1.0
    return solve(a, ones, out, n, n)


def inv_slope_0(grad: Any, a: Any, out: Any, n: int, m: int) -> int:
    inverse, product = np.empty(n * n), np.empty(n * n)
    if inv(a, inverse, n, n) != 0:
        return GAVE_UP
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += inverse[k * n + i] * grad[k * n + j]
            product[i * n + j] = total
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total -= product[i * n + k] * inverse[j * n + k]
            out[i * n + j] = total
    return 0


def det(a: Any, out: Any, n: int, m: int) -> int:
    sign, factors, _ = eliminated(a, n)
    if sign == 0:
        return GAVE_UP
    out[0] = 1.0 * sign
    for k in range(n):
        out[0] *= factors[k * n + k]
    return 0


def slogdet_0(a: Any, out: Any, n: int, m: int) -> int:
    if det(a, out, n, m) != 0:
        return GAVE_UP
    out[0] = math.copysign(1.0, out[0])
    return 0


def slogdet_1(a: Any, out: Any, n: int, m: int) -> int:
    sign, factors, _ = eliminated(a, n)
    if sign == 0:
        return GAVE_UP
    out[0] = 0.0
    for k in range(n):
        out[0] += math.log(abs(factors[k * n + k]))
    return 0


def slogdet_1_slope_0(grad: float, a: Any, out: Any, n: int, m: int) -> int:
    inverse = np.empty(n * n)
    if inv(a, inverse, n, n) != 0:
        return GAVE_UP
    for i in range(n):
        for j in range(n):
            out[i * n + j] = grad * inverse[j * n + i]
    return 0


def det_slope_0(grad: float, a: Any, out: Any, n: int, m: int) -> int:
    size = np.empty(1)
    if det(a, size, n, m) != 0:
        return GAVE_UP
    return slogdet_1_slope_0(grad * size[0], a, out, n, m)


def cholesky(a: Any, out: Any, n: int, m: int) -> int:
    for i in range(n):
        for j in range(i + 1, n):
            out[i * n + j] = 0.0
        for j in range(i + 1):
            total = a[i * n + j]
            for k in range(j):
                total -= out[i * n + k] * out[j * n + k]
            if j < i:
                out[i * n + j] = total / out[j * n + j]
            elif LEAST_PIVOT * abs(a[i * n + i]) < total < math.inf:
                out[i * n + i] = math.sqrt(total)
            else:
                return GAVE_UP
    return 0


def cholesky_slope_0(grad: Any, a: Any, out: Any, n: int, m: int) -> int:
    factor = np.empty(n * n)
    if cholesky(a, factor, n, m) != 0:
        return GAVE_UP
    for i in range(n):
        for j in range(n):
            out[i * n + j] = grad[i * n + j] if j <= i else 0.0
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            for i in range(j, n):
                out[i * n + k] -= out[i * n + j] * factor[j * n + k]
                out[j * n + k] -= out[i * n + j] * factor[i * n + k]
        for j in range(k + 1, n):
            out[j * n + k] /= factor[k * n + k]
            out[k * n + k] -= factor[j * n + k] * out[j * n + k]
        out[k * n + k] = 0.5 * out[k * n + k] / factor[k * n + k]
    return 0


# Ordered such that each function calls only earlier ones.
MATRIX_FUNCTIONS: Final = (
    eliminated, substituted, substituted_back, solve, solve_slope_0, solve_slope_1, inv, inv_slope_0, det, slogdet_0,
    slogdet_1, slogdet_1_slope_0, det_slope_0, cholesky, cholesky_slope_0,
)
NAMES: Final = frozenset(function.__name__ for function in MATRIX_FUNCTIONS[3:])


def quick_call(step: Call) -> tuple[str, str] | None:
    """Return the function that implements a step, with its last arguments, or None if there is none."""
    of = step.operation
    name = of.name if of.name != "slogdet" else f"slogdet_{of.number}"
    if step.of is not None:
        name = f"{name}_slope_{step.of}"
    if name not in NAMES or any(option is not False for option in of.attributes or ()):
        return None
    if any(kind is None or kind[1] != np.dtype(float) for kind in of.operands):
        return None
    shape = of.operands[0][0]  # type: ignore[index]
    if len(shape) != 2 or shape[0] != shape[1] or not 0 < shape[0] <= MOST:
        return None
    columns = 1
    if of.name == "solve":
        right = of.operands[1][0]  # type: ignore[index]
        if len(right) not in (1, 2) or right[0] != shape[0]:
            return None
        columns = right[1] if len(right) == 2 else 1
        if not 0 < columns <= MOST:
            return None
    return name, f"{shape[0]}, {columns}"
