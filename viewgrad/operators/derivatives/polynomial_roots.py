"""The derivative of the roots of a polynomial by the implicit function theorem.

If p(r) = 0 for p(x) = sum of c[k] phi[k](x), then dr/dc[k] = -phi[k](r) / p'(r). This includes zero coefficients, on
which the degree depends, since the other roots depend on them too. A multiple root has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...errors import DifferentiabilityError
from ..define import row
from ..language.namespace import formula_function
from .scatter import values_of

__all__: list[str] = []

# The coefficients (a, b, c) of the recurrences phi[k + 1] = (a x + b) phi[k] - c phi[k - 1], as functions of k.
RECURRENCES: Final[dict[str, Callable[[int], tuple[float, float, float]]]] = {
    "polynomial": lambda k: (1.0, 0.0, 0.0),
    "chebyshev": lambda k: (2.0 if k else 1.0, 0.0, 1.0),
    "legendre": lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)),
    "hermite": lambda k: (2.0, 0.0, 2.0 * k),
    "hermite_e": lambda k: (1.0, 0.0, float(k)),
    "laguerre": lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)),
}


def _basis_functions(x: Any, count: int, basis: str) -> tuple[Any, Any]:
    """Return the first basis functions at `x`, and their derivatives, both of shape (count, n)."""
    zero = np.zeros(x.shape, x.dtype)
    values, slopes = [zero + 1], [zero]
    before: tuple[Any, Any] = (zero, zero)
    for k in range(count - 1):
        a, b, c = RECURRENCES[basis](k)
        now = values[-1], slopes[-1]
        factor = x * a + b
        values.append(factor * now[0] - before[0] * c)
        slopes.append(factor * now[1] + now[0] * a - before[1] * c)
        before = now
    return np.stack(values), np.stack(slopes)


def _reciprocal_slopes(p: Any, roots: Any, slopes: Any, basis: str, used: Any) -> Any:
    """Return 1 / p' at each root.

    p' is the product of the differences from the other roots, which is accurate even for clusters of roots. Zero
    coefficients contribute additional roots at infinity, which affect only the derivatives of p'.

    Raises:
        DifferentiabilityError: if a root in use equals another up to rounding.
    """
    degree = roots.shape[0]
    one = np.eye(degree)
    numbers = values_of(roots)
    differences = roots[:, None] - roots
    rounding = 4 * np.finfo(numbers.dtype).eps * np.abs(numbers)[:, None]
    equal = (np.abs(values_of(differences)) <= rounding) & (one == 0)
    if (equal.any(-1) & used).any():
        raise DifferentiabilityError(
            "a root of the polynomial is a multiple root, where roots have no derivative: a change of the coefficients "
            "by e moves a double root by the square root of e; leave the root out of the loss, or use functions of "
            "the roots that the coefficients determine, such as their sum or product"
        )
    leading = float(np.prod([RECURRENCES[basis](k)[0] for k in range(degree)]))
    slope = np.prod(np.where(equal, 1, differences + one.astype(differences.dtype)), axis=-1) * (p[degree] * leading)
    if p.shape[0] > degree + 1:
        by_coefficients = p @ slopes
        known = values_of(by_coefficients)
        slope = by_coefficients * (values_of(slope) / np.where(known == 0, 1, known))
    return 1 / np.where(equal.any(-1), 1, slope)


@formula_function
def roots_gradient(grad: Any, p: Any, roots: Any, basis: str) -> Any:
    """Return the gradient of the coefficients, given the gradient of the roots."""
    values, slopes = _basis_functions(roots, p.shape[0], basis)
    used = values_of(grad) != 0
    found = -(np.conjugate(values * _reciprocal_slopes(p, roots, slopes, basis, used)) @ grad)
    return found if p.dtype.kind == "c" else found.real


@formula_function
def roots_tangent(tangent: Any, p: Any, roots: Any, basis: str) -> Any:
    """Return the tangents of the roots."""
    values, slopes = _basis_functions(roots, p.shape[0], basis)
    return -(tangent @ values) * _reciprocal_slopes(p, roots, slopes, basis, True)


def _roots_forward(p: Any, found: Any = None, basis: str = "polynomial") -> Any:
    if found is None:
        found = np.roots(p[::-1])
    return found.astype(np.result_type(p.dtype, np.complex64))


row(
    "_differentiable_roots(self, found=None, basis='polynomial')",
    _roots_forward,
    {"self": "roots_gradient(grad, self, result, basis)"},
    forward_derivative="roots_tangent(self_t, self_p, result, basis)",
    method=False,
    dtype_kinds="fc",
    doc="The complex roots of a polynomial, given from the lowest degree up; `found` are their values if known.",
)
