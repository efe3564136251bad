"""The derivatives of least-squares solutions of linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...define import row
from ...language.namespace import formula_function
from ..helpers import adjoint, conjugated
from ..scatter import is_known_zero, zeros_beside
from .decompositions import finite
from .inverses import outer_products, pinv_gradient, pinv_tangent
from .singular_values import svdvals_gradient

__all__: list[str] = []


def lstsq_forward(a: Any, b: Any, rcond: float | None = None) -> Any:
    return np.linalg.lstsq(finite(a), b, rcond=rcond)


@formula_function
def lstsq_inverse(a: Any, rcond: float | None) -> Any:
    """Return the pseudo-inverse that corresponds to a least-squares solution."""
    if rcond is None or rcond <= 0 or rcond >= 1:  # LAPACK uses its own threshold in this case
        rcond = np.finfo(np.result_type(a.dtype, np.float16)).eps * max(a.shape)  # also for integers
    return np.linalg.pinv(a, rcond)


@formula_function
def lstsq_gradients(
    grad: Any, grad_residuals: Any, grad_values: Any, a: Any, b: Any, x: Any, rcond: float | None
) -> tuple[Any, Any]:
    """Return the gradients of the matrix and of the right-hand sides."""
    vector = b.ndim == 1
    if vector:
        grad, b, x = grad[:, None], b[:, None], x[:, None]
    p = lstsq_inverse(a, rcond)
    of_a = pinv_gradient(outer_products(grad, b, False), a, p)
    of_b = adjoint(p) @ grad
    if grad_residuals.shape[0]:  # the residuals are orthogonal to the column space
        gap = (b - a @ x) * (2 * grad_residuals)
        of_a = of_a - gap @ adjoint(x)
        of_b = of_b + gap
    if not is_known_zero(grad_values):
        of_a = of_a + svdvals_gradient(grad_values, a)
    if vector:
        of_b = of_b[:, 0]
    return of_a, of_b


@formula_function
def lstsq_tangent(a_t: Any, b_t: Any, a: Any, b: Any, rcond: float | None) -> Any:
    """Return the tangent of the solution."""
    p = lstsq_inverse(a, rcond)
    return pinv_tangent(a_t, a, p) @ b + p @ b_t


@formula_function
def residuals_tangent(a_t: Any, b_t: Any, a: Any, b: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Return the tangent of the squared norms of the residuals."""
    if not shape[0]:
        return zeros_beside(a_t.real, shape)
    gap = b - a @ x
    product = conjugated(gap) * (b_t - a_t @ x)
    return 2 * product.real.sum(axis=0).reshape(shape)


row(
    "lstsq(self, b, rcond=None) -> (solution, residuals, rank, singular_values)",
    lstsq_forward,
    {"self, b": "lstsq_gradients(grad_solution, grad_residuals, grad_singular_values, self, b, solution, rcond)"},
    nondifferentiable_outputs=("rank",),
    forward_derivative={
        "solution": "lstsq_tangent(self_t, b_t, self_p, b_p, rcond)",
        "residuals": "residuals_tangent(self_t, b_t, self_p, b_p, solution, residuals.shape)",
        "singular_values": "svdvals_tangent(self_t, self_p)",
    },
    numpy=[np.linalg.lstsq],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The least-squares solutions of systems of linear equations, the sums of squared residuals (empty unless the "
    "matrix has full rank and more rows than columns), the rank and the singular values of the matrix.",
)
