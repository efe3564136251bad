"""The derivatives of determinants, which are exact for singular matrices too.

A determinant is a polynomial in the elements, so it has derivatives of any order everywhere. For a regular matrix they
follow from the inverse. For a singular or nearly singular matrix, the first two are computed from the minors if the
matrix is small, and otherwise from the singular values: they are sums of products of all but one, or all but two, of
these. Third and higher derivatives are computed by the Faddeev-LeVerrier algorithm, which uses only products and sums.

Sources: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode automatic
differentiation" (2008); F. Gantmacher, "The theory of matrices" (1959) for the Faddeev-LeVerrier algorithm.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....tensor.tensor import Tensor
from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function
from ..helpers import adjoint, call, conjugated, eye_like, plain
from .products import along

__all__: list[str] = []

REGULAR: Final = 1e5  # up to this condition number, derivatives are computed from the inverse
SMALL: Final = 4  # up to this order, cofactors are computed from minors, each with full relative accuracy

# -- cofactors ---------------------------------------------------------------------------------------------------------


@formula_function
def cofactors(a: Any, determinant: Any) -> Any:
    """Return the cofactor matrices of `a`, which are the derivatives of its determinant."""
    matrix = plain(a)
    if plain(determinant).all():
        inverse = np.linalg.inv(matrix)
        norms = np.abs(matrix).sum(axis=-1).max(axis=-1, initial=0) * np.abs(inverse).sum(axis=-1).max(
            axis=-1, initial=0
        )
        if (norms < REGULAR).all():
            return determinant[..., None, None] * (np.linalg.inv(a) if isinstance(a, Tensor) else inverse).mT
    return call("_cofactor_matrix", a)


def decomposed(a: Any) -> tuple[Array, Array, Array, Any]:
    """Return the singular value decompositions, and the determinants of the products of the singular vectors.

    The values are NaN for matrices with infinities or NaN, for which LAPACK may not terminate.
    """
    u, s, vh = np.linalg.svd(of_finite(a, a, 0), full_matrices=False)
    s = np.where(np.isfinite(a).all(axis=(-2, -1))[..., None], s, math.nan)
    return u, s, vh, (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]


def products_without(s: Any, count: int) -> Any:
    """Return the products of all singular values except one, or except two (for each pair, with 0 on the diagonal)."""
    n = s.shape[-1]
    eye = np.eye(n, dtype=bool)
    if count == 1:
        return np.where(eye, 1, s[..., None, :]).prod(axis=-1)
    left_out = eye[:, None, :] | eye[None, :, :]
    return np.where(left_out, 1, s[..., None, None, :]).prod(axis=-1) * ~eye


def minors(a: Any) -> Any:
    """Return the submatrices without one row and one column, of shape (..., n, n, n - 1, n - 1)."""
    steps = np.arange(a.shape[-1])
    if a.shape[-2] != len(steps):
        raise np.linalg.LinAlgError(f"only square matrices have cofactors, not those of shape {a.shape}")
    rest = steps[:-1] + (steps[:-1] >= steps[:, None])
    return a[..., rest[:, None, :, None], rest[:, None, :]]


def alternating(n: int) -> Any:
    """Return the signs of the cofactors of a matrix of order `n`."""
    return (-1.0) ** np.add.outer(np.arange(n), np.arange(n))


def of_finite(a: Any, values: Any, other: float) -> Any:
    """Return the matrices `a`, with `other` in place of those that contain infinities or NaN."""
    return np.where(np.isfinite(a).all(axis=(-2, -1), keepdims=True), values, other)


def cofactor_matrix_forward(a: Any) -> Any:
    if a.shape[-1] <= SMALL:
        values = alternating(a.shape[-1]) * np.linalg.det(minors(of_finite(a, a, 0))) + 0.0  # + 0.0 avoids -0.0
        return of_finite(a, values, math.nan).astype(a.dtype, copy=False)
    u, s, vh, sign = decomposed(a)
    return sign * conjugated((u * products_without(s, 1)[..., None, :]) @ vh)


def cofactor_change_forward(a: Any, direction: Any) -> Any:
    if a.shape[-1] <= SMALL:
        inner = cofactor_matrix_forward(minors(a)) * minors(direction)
        values = alternating(a.shape[-1]) * inner.sum((-2, -1)) + 0.0
        return of_finite(a, values, math.nan).astype(inner.dtype, copy=False)
    u, s, vh, sign = decomposed(a)
    rotated = adjoint(u) @ direction @ adjoint(vh)
    products = products_without(s, 2)
    diagonal = np.diagonal(rotated, 0, -2, -1)
    inner = -products * rotated.mT
    steps = np.arange(s.shape[-1])
    inner[..., steps, steps] = (products * diagonal[..., None, :]).sum(axis=-1)
    return sign * (conjugated(u) @ inner @ conjugated(vh))


@formula_function
def cofactor_change_of_change(a: Any, x: Any, y: Any) -> Any:
    """Return the second derivative of the cofactors of `a` in two directions, using only matrix sums and products.

    The Faddeev-LeVerrier recursion `m = a @ m + c * 1`, `c = -trace(a @ m) / k` ends with the adjugate matrix, up to
    sign. Here each value is accompanied by its first and second directional derivatives.
    """
    n = a.shape[-1]
    one = eye_like(a)
    zero = (a + x + y) * 0
    m, m_x, m_y, m_xy = zero + one, zero, zero, zero
    for k in range(1, n):
        p = a @ m
        p_x, p_y = x @ m + a @ m_x, y @ m + a @ m_y
        p_xy = x @ m_y + y @ m_x + a @ m_xy
        m, m_x, m_y, m_xy = (each - one * trace_of(each) * (1 / k) for each in (p, p_x, p_y, p_xy))
    return (m_xy if n % 2 else -m_xy).mT


def trace_of(a: Any) -> Any:
    """Return the traces of matrices, in a shape that broadcasts with them."""
    return along(along((a * eye_like(a)).sum((-2, -1)), -1), -1)


row(
    "_cofactor_matrix(self)",
    cofactor_matrix_forward,
    {"self": "conj(_cofactor_change(self, conj(grad)))"},
    forward_derivative="_cofactor_change(self_p, self_t)",
    method=False,
    dtype_kinds="fc",
    doc="The matrices of cofactors of square matrices.",
)
row(
    "_cofactor_change(self, direction)",
    cofactor_change_forward,
    {
        "self": "conj(cofactor_change_of_change(self, direction, conj(grad)))",
        "direction": "conj(_cofactor_change(self, conj(grad)))",
    },
    forward_derivative="_cofactor_change(self_p, direction_t) + cofactor_change_of_change(self_p, direction_p, self_t)",
    method=False,
    dtype_kinds="fc",
    doc="The directional derivative of `cofactor_matrix`.",
)

# -- determinants ------------------------------------------------------------------------------------------------------

row(
    "det(self)",
    lambda a: np.linalg.det(a),
    {"self": "along(along(grad, -1), -1) * conj(cofactors(self, result))"},
    forward_derivative="(cofactors(self_p, result) * self_t).sum((-2, -1))",
    numpy=[np.linalg.det],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The determinants of square matrices; differentiable at singular matrices too.",
)


@formula_function
def slogdet_gradient(grad_sign: Any, grad_logabsdet: Any, a: Any, sign: Any) -> Any:
    """Return the gradient of `a`, given those of the sign and of the logarithm."""
    grad = grad_logabsdet
    if a.dtype.kind == "c":
        grad = grad - 1j * (conjugated(grad_sign) * sign).imag
    return along(along(grad, -1), -1) * adjoint(np.linalg.inv(a))


@formula_function
def logdet_tangent(t: Any, a: Any) -> Any:
    """Return the tangent of the logarithm of the determinant, whose imaginary part is that of the angle."""
    return (np.linalg.inv(a).mT * t).sum((-2, -1))


row(
    "slogdet(self) -> (sign, logabsdet)",
    lambda a: np.linalg.slogdet(a),
    {"self": "slogdet_gradient(grad_sign, grad_logabsdet, self, sign)"},
    forward_derivative={
        "sign": "sign * (logdet_tangent(self_t, self_p) - logdet_tangent(self_t, self_p).real)",
        "logabsdet": "logdet_tangent(self_t, self_p).real",
    },
    numpy=[np.linalg.slogdet],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The signs of the determinants (numbers on the unit circle, for complex matrices), and the logarithms of "
    "their absolute values.",
)
