"""The derivatives of the singular value decomposition.

Sources: J. Townsend, "Differentiating the singular value decomposition" (2016); Z.-Q. Wan, S.-X. Zhang, "Automatic
differentiation for complex valued SVD" (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import DifferentiabilityError
from ....tensor.creation import as_operand
from ....tensor.tensor import FUNCTIONS, Tensor
from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function
from ..helpers import adjoint, of_positive, plain
from ..scatter import is_known_zero, values_of
from .decompositions import differences_of, largest, of_finite, on_diagonal, require_no_phase, used_columns

__all__: list[str] = []


def _of_null_space(others: Any, grad: Any, vectors: Any) -> Any:
    """Return the gradient that null space vectors contribute to `A @ V / s`, whose change rotates them.

    The vectors remain orthogonal to `vectors` but are an arbitrary basis, so only functions that do not depend on the
    choice of basis, such as the projector `N @ N.T`, have a derivative.

    Arguments:
        others: the null space vectors, as columns.
        grad: their gradient.
        vectors: the singular vectors with singular values, as columns.

    Raises:
        DifferentiabilityError: for a function that depends on the choice of the basis.
    """
    turn = values_of(_skew(adjoint(others) @ grad))
    allowed = np.finfo(turn.dtype).eps ** 0.5 * turn.shape[-1] * largest(grad)
    if np.abs(turn).max(initial=0) > allowed:
        raise DifferentiabilityError(
            "the singular vectors that full_matrices=True adds to those that belong to singular values are arbitrary: "
            "only functions of the space that they span have a derivative, such as N @ N.T. Use full_matrices=False or "
            "viewgrad.linalg.null_projector(A)"
        )
    return -(others @ (adjoint(grad) @ vectors))


def squared_differences(s: Any, used: Array | None = None) -> Any:
    """Return `s[j]**2 - s[i]**2` in row i and column j, with 1 on the diagonal; `used` as for `differences_of`."""
    sums = s[..., None, :] + s[..., :, None]
    apart = (values_of(sums) != 0) & (np.eye(s.shape[-1]) == 0)
    return differences_of(s, "singular values", used) * np.where(apart, sums, 1)


def _skew(a: Any) -> Any:
    return a - adjoint(a)


def _without_zero(s: Any, vectors: str, used: Array | None = None) -> Any:
    """Return the singular values as denominators; those of unused vectors may be zero and are replaced."""
    zero = values_of(s) == 0
    if not zero.any():
        return s
    if used is None or (zero & used).any():
        raise DifferentiabilityError(
            f"a singular value is zero, so the {vectors} singular vectors that belong to it have no derivative"
        )
    return np.where(zero, 1, s)


@formula_function
def svd_gradient(grad_u: Any, grad_s: Any, grad_vh: Any, u: Any, s: Any, vh: Any) -> Any:
    """Return the gradient of a matrix, given the gradients of its singular values and vectors."""
    k = s.shape[-1]
    null_u = null_v = None
    if u.shape[-1] > k:
        grad_u, others, u, rest = grad_u[..., :k], grad_u[..., k:], u[..., :k], u[..., k:]
        null_u = None if is_known_zero(others) else _of_null_space(rest, others, u)
    if vh.shape[-2] > k:
        grad_vh, others, vh, rest = grad_vh[..., :k, :], grad_vh[..., k:, :], vh[..., :k, :], vh[..., k:, :]
        null_v = None if is_known_zero(others) else _of_null_space(adjoint(rest), adjoint(others), adjoint(vh))
    result = _thin_gradient(grad_u, grad_s, grad_vh, u, s, vh)
    if null_u is not None:
        result = result + (null_u / _without_zero(s, "left")[..., None, :]) @ vh
    if null_v is not None:
        result = result + u @ adjoint(null_v / _without_zero(s, "right")[..., None, :])
    return result


def _thin_gradient(grad_u: Any, grad_s: Any, grad_vh: Any, u: Any, s: Any, vh: Any) -> Any:
    """Return the gradient of a matrix, given the gradients of the singular values and their vectors."""
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    has_u, has_v = not is_known_zero(grad_u), not is_known_zero(grad_vh)
    grad_s = of_positive(grad_s, s)
    if not has_u and not has_v:
        return (u * grad_s[..., None, :]) @ vh
    inner = on_diagonal(grad_s)
    used = used_columns(grad_u, adjoint(grad_vh))
    turn_u = _skew(adjoint(u) @ grad_u)
    turn_v = _skew(vh @ adjoint(grad_vh))
    inner = inner + (turn_u * s[..., None, :] + s[..., :, None] * turn_v) * (
        1 - np.eye(k, dtype=s.dtype)
    ) / squared_differences(s, used)
    if turn_u.dtype.kind == "c":
        diagonals = np.diagonal(turn_u, 0, -2, -1), np.diagonal(turn_v, 0, -2, -1)
        require_no_phase(diagonals[0].imag + diagonals[1].imag, largest(grad_u, grad_vh), "singular vectors")
        inner = inner + on_diagonal(diagonals[0] / (2 * _without_zero(s, "left", used)))
    result = u @ inner @ vh
    if m > k and has_u:
        outside = grad_u / _without_zero(s, "left", used)[..., None, :]
        result = result + (outside - u @ (adjoint(u) @ outside)) @ vh
    if n > k and has_v:
        outside = grad_vh / _without_zero(s, "right", used)[..., :, None]
        result = result + u @ (outside - (outside @ adjoint(vh)) @ vh)
    return result


def _in_singular_basis(tangent: Any, u: Any, vh: Any) -> Any:
    """Return the tangent in the basis of the singular vectors."""
    return adjoint(u) @ tangent @ adjoint(vh)


@formula_function
def svd_tangents(tangent: Any, u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """Return the tangents of the singular values and vectors."""
    k = s.shape[-1]
    added = max(u.shape[-1], vh.shape[-2]) - k
    if added > 1 or (added and u.dtype.kind == "c"):
        raise DifferentiabilityError(
            "the singular vectors that full_matrices=True adds to those that belong to singular values are arbitrary, "
            "and have no tangents. Use full_matrices=False, viewgrad.linalg.null_projector(A), or reverse mode, which "
            "takes functions of the space that they span"
        )
    if added:  # a single real vector, which the others determine up to sign
        u_t, s_t, vh_t = svd_tangents(tangent, u[..., :k], s, vh[..., :k, :])
        if u.shape[-1] > k:
            u_t = np.concatenate([u_t, -u[..., :k] @ (adjoint(u_t) @ u[..., k:])], -1)
        else:
            vh_t = np.concatenate([vh_t, -(vh[..., k:, :] @ adjoint(vh_t)) @ vh[..., :k, :]], -2)
        return u_t, s_t, vh_t
    rotated = _in_singular_basis(tangent, u, vh)
    off_diagonal = (1 - np.eye(k, dtype=s.dtype)) / squared_differences(s)
    right, left = rotated * s[..., None, :], rotated * s[..., :, None]
    of_u = (right + adjoint(right)) * off_diagonal
    of_v = (left + adjoint(left)) * off_diagonal
    if rotated.dtype.kind == "c":  # the phase is shared by the left and right vectors
        phases = on_diagonal(np.diagonal(rotated - adjoint(rotated), 0, -2, -1) / (4 * _without_zero(s, "left")))
        of_u, of_v = of_u + phases, of_v - phases
    u_t, vh_t = u @ of_u, adjoint(of_v) @ vh
    if u.shape[-2] > k:
        outside = (tangent @ adjoint(vh)) / _without_zero(s, "left")[..., None, :]
        u_t = u_t + outside - u @ (adjoint(u) @ outside)
    if vh.shape[-1] > k:
        outside = (adjoint(u) @ tangent) / _without_zero(s, "right")[..., :, None]
        vh_t = vh_t + outside - (outside @ adjoint(vh)) @ vh
    return u_t, of_positive(np.diagonal(rotated, 0, -2, -1).real, s), vh_t


def svdvals_forward(a: Any) -> Any:
    """Return the singular values; NaN for matrices with infinities or NaN, for which LAPACK may not terminate."""
    known = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
    values = np.linalg.svd(a if known.all() else np.where(known, a, 0), compute_uv=False)
    return np.where(known[..., 0], values, np.nan)


def svd_forward(a: Any, full_matrices: bool = True) -> tuple[Array, ...]:
    return of_finite(lambda matrices: np.linalg.svd(matrices, full_matrices), a)


@formula_function
def svdvals_gradient(grad: Any, a: Any) -> Any:
    """Return the gradient of a matrix, given the gradient of its singular values."""
    u, s, vh = np.linalg.svd(a, full_matrices=False) if isinstance(a, Tensor) else svd_forward(a, False)
    return (u * of_positive(grad, s)[..., None, :]) @ vh


@formula_function
def svdvals_tangent(tangent: Any, a: Any) -> Any:
    """Return the tangents of the singular values."""
    u, s, vh = np.linalg.svd(a, full_matrices=False) if isinstance(a, Tensor) else svd_forward(a, False)
    return of_positive(np.diagonal(_in_singular_basis(tangent, u, vh), 0, -2, -1).real, s)


row(
    "svd(self, full_matrices=True) -> (U, S, Vh)",
    svd_forward,
    {"self": "svd_gradient(grad_U, grad_S, grad_Vh, U, S, Vh)"},
    forward_derivative={
        "U, S, Vh": "svd_tangents(self_t, U, S, Vh)",
    },
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The left singular vectors, the singular values in descending order, and the right singular vectors: (U * "
    "S) @ Vh is the matrix.",
)
row(
    "svdvals(self)",
    svdvals_forward,
    {"self": "svdvals_gradient(grad, self)"},
    forward_derivative="svdvals_tangent(self_t, self_p)",
    numpy=[np.linalg.svdvals],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The singular values in descending order.",
)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = as_operand(a)
    if not hermitian:
        return a.svd(full_matrices) if compute_uv else a.svdvals()
    if not compute_uv:
        return np.flip(np.sort(np.abs(np.linalg.eigvalsh(a))), -1)
    values, vectors = np.linalg.eigh(a)
    order = np.argsort(np.abs(plain(values)), axis=-1)[..., ::-1]
    signs = np.take_along_axis(np.sign(plain(values)), order, -1)
    vectors = np.take_along_axis(vectors, order[..., None, :], -1)
    return vectors, np.take_along_axis(np.abs(values), order, -1), adjoint(vectors * signs[..., None, :])


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    a, rcond = as_operand(a), rcond if rtol is None else rtol
    if not hermitian:
        return a.pinv(rcond)
    lower = np.tril(a, -1)  # the rest is not read
    diagonal = np.eye(a.shape[-1], dtype=a.dtype) * a.real
    return (lower + adjoint(lower) + diagonal).pinv(rcond)


FUNCTIONS[np.linalg.pinv] = _pinv


FUNCTIONS[np.linalg.svd] = _svd
