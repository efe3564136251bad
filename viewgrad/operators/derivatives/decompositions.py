"""The derivatives of the matrix decompositions: Cholesky, QR, eigenvalues, singular values.

Factors are determined up to signs, or for complex matrices up to phases. A loss that depends on the phases has no
derivative, and neither have the vectors that belong to equal eigenvalues or singular values: both are errors.

`cholesky` and `eigh` read one triangle of a matrix that they take to be Hermitian, and of its diagonal the real part.
The gradient is that of what is read, so the other triangle's is zero.

Sources: I. Murray, "Differentiation of the Cholesky decomposition" (2016); S. Walter, L. Lehmann, "Algorithmic
differentiation of linear algebra functions with application in optimum experimental design" (2010) for QR; J.
Townsend, "Differentiating the singular value decomposition" (2016); Z.-Q. Wan, S.-X. Zhang, "Automatic differentiation
for complex valued SVD" (2019).

It is long because each decomposition stands beside its formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DifferentiabilityError
from ...tensor.tensor import FUNCTIONS, Tensor
from ..codegen.compile import formula_function
from ..define import row
from .formulas import conjugated
from .linear_algebra import adjoint, outer_products, pinv_gradient, pinv_tangent, real_dtype
from .scattering import is_known_zero, values_of, zeros_beside

__all__: list[str] = []

def half_triangle(a: Any, lower: bool = True) -> Any:
    """One triangle of `a`, and half of the diagonal."""
    n = a.shape[-1]
    dtype = real_dtype(a.dtype)
    mask = np.tri(n, k=-1, dtype=dtype) + 0.5 * np.eye(n, dtype=dtype)
    return a * (mask if lower else mask.T)


def hermitian_gradient(grad: Any, lower: bool) -> Any:
    """The gradient of what is read of a Hermitian matrix, from a gradient of the whole of it."""
    return half_triangle(grad + adjoint(grad), lower)


def hermitian(a: Any, lower: bool) -> Any:
    """The Hermitian matrix of which one triangle is given."""
    half = half_triangle(a, lower)
    return half + adjoint(half)


def differences_of(values: Any, what: str) -> Any:
    """`values[j] - values[i]` in row i and column j, with 1 on the diagonal.

    Raises:
        DifferentiabilityError: where two of the values are equal.
    """
    differences = values[..., None, :] - values[..., :, None]
    one = np.eye(values.shape[-1], dtype=real_dtype(values.dtype))
    if ((values_of(differences) + one) == 0).any():
        raise DifferentiabilityError(
            f"two {what} are equal, so the vectors that belong to them have no derivative; use the {what} alone, or "
            "perturb the matrix"
        )
    return differences + one


def on_diagonal(values: Any) -> Any:
    """The diagonal matrices with `values` on the diagonal."""
    return values[..., None] * np.eye(values.shape[-1], dtype=real_dtype(values.dtype))


def require_no_phase(diagonal: Any, scale: float, what: str) -> None:
    """Refuse a loss that depends on the phases of the vectors.

    Arguments:
        diagonal: the imaginary parts, which are the derivatives with respect to the phases.
        scale: the size of what they are made of.
        what: which vectors.
    """
    array = np.abs(values_of(diagonal))
    if array.size and array.max() > np.finfo(array.dtype).eps ** 0.5 * array.shape[-1] * scale:
        raise DifferentiabilityError(
            f"the loss depends on the phases of the complex {what}, which are arbitrary, so it has no derivative: "
            f"multiplying one of the {what} by exp(i t) changes it at a rate of {array.max():.3g}"
        )


def largest(*arrays: Any) -> float:
    """The greatest absolute value."""
    return max((float(np.abs(values_of(a)).max()) for a in arrays if a.size), default=0.0)


# -- Cholesky ----------------------------------------------------------------------------------------------------------


@formula_function
def cholesky_gradient(grad: Any, factor: Any, upper: bool) -> Any:
    """The gradient of a matrix from that of its factor."""
    if upper:
        grad, factor = adjoint(grad), adjoint(factor)
    back = adjoint(factor)
    middle = half_triangle(back @ grad)
    left = np.linalg.solve(back, middle)
    return hermitian_gradient(adjoint(np.linalg.solve(back, adjoint(left))), not upper)


@formula_function
def cholesky_tangent(tangent: Any, factor: Any, upper: bool) -> Any:
    """The tangent of the factor."""
    lower = adjoint(factor) if upper else factor
    left = np.linalg.solve(lower, hermitian(tangent, not upper))
    change = lower @ half_triangle(adjoint(np.linalg.solve(lower, adjoint(left))))
    return adjoint(change) if upper else change


row(
    "cholesky(self, *, upper=False)",
    lambda a, *, upper=False: np.linalg.cholesky(a, upper=upper),
    {"self": "cholesky_gradient(grad, result, upper)"},
    forward_derivative="cholesky_tangent(self_t, result, upper)",
    numpy=[np.linalg.cholesky],
    kinds="fc",
    doc="The triangular factors L, with L times its adjoint equal to the matrix (or, `upper`, U with its adjoint "
    "times U). Only the lower (upper) triangle is read, and has a gradient.",
)

# -- QR ----------------------------------------------------------------------------------------------------------------


def qr_forward(a: Any, mode: str = "reduced") -> Any:
    if mode != "reduced" and not (mode == "complete" and a.shape[-2] <= a.shape[-1]):
        raise ValueError(
            f"qr of a tensor of shape {a.shape} with mode={mode!r}: only the reduced factors can be differentiated; "
            "use mode='reduced'"
        )
    return np.linalg.qr(a)


def skew_part(x: Any) -> Any:
    """The skew-Hermitian matrices with the lower triangles of `x`, and the imaginary parts of their diagonals."""
    n = x.shape[-1]
    lower = x * np.tri(n, k=-1, dtype=real_dtype(x.dtype))
    skew = lower - adjoint(lower)
    return skew + 0.5 * ((x - adjoint(x)) * np.eye(n, dtype=real_dtype(x.dtype))) if x.dtype.kind == "c" else skew


@formula_function
def qr_gradient(grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    """The gradient of a matrix from those of its factors."""
    m, n = q.shape[-2], r.shape[-1]
    rest = None
    if m < n:  # the first columns fix Q, and the rest of R follows from the rest of the columns
        rest = q @ grad_r[..., m:]
        grad_q = grad_q + q @ (r[..., m:] @ adjoint(grad_r[..., m:]))
        grad_r, r = grad_r[..., :m], r[..., :m]
    size = r.shape[-1]
    inner = grad_r @ adjoint(r) - adjoint(q) @ grad_q
    inner = inner * np.tri(size, dtype=real_dtype(inner.dtype)).T
    inner = inner + adjoint(inner)
    dtype = real_dtype(inner.dtype)
    inner = inner * (1 - 0.5 * np.eye(size, dtype=dtype))
    first = adjoint(np.linalg.solve(r, adjoint(grad_q + q @ inner)))
    return first if rest is None else np.concatenate([first, rest], axis=-1)


@formula_function
def qr_tangents(tangent: Any, q: Any, r: Any) -> tuple[Any, Any]:
    """The tangents of both factors."""
    m, n = q.shape[-2], r.shape[-1]
    k = min(m, n)
    change = adjoint(np.linalg.solve(adjoint(r[..., :k]), adjoint(tangent[..., :k])))
    inner = adjoint(q) @ change
    skew = skew_part(inner)
    q_t = change - q @ (inner - skew)
    r_t = adjoint(q) @ tangent - skew @ r
    mask = 1 - np.tri(k, n, k=-1, dtype=real_dtype(r_t.dtype))
    return q_t, r_t * mask


row(
    "qr(self, mode='reduced') -> (Q, R)",
    qr_forward,
    {"self": "qr_gradient(grad_Q, grad_R, Q, R)"},
    forward_derivative={"Q, R": "qr_tangents(self_t, Q, R)"},
    numpy=[np.linalg.qr],
    kinds="fc",
    doc="Matrices with orthonormal columns Q and upper triangular R, with Q @ R equal to the matrix. Differentiable "
    "where the first columns are linearly independent.",
)

# -- eigenvalues -------------------------------------------------------------------------------------------------------


def is_lower(triangle: Any) -> bool:
    """Whether `UPLO` names the lower triangle."""
    return triangle in ("L", "l")


@formula_function
def eigh_gradient(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any, triangle: Any) -> Any:
    """The gradient of a Hermitian matrix from those of its eigenvalues and eigenvectors."""
    inner = on_diagonal(grad_values)
    if not is_known_zero(grad_vectors):
        turn = adjoint(vectors) @ grad_vectors
        if turn.dtype.kind == "c":
            require_no_phase(np.diagonal(turn, 0, -2, -1).imag, largest(grad_vectors), "eigenvectors")
        off_diagonal = 1 - np.eye(turn.shape[-1], dtype=real_dtype(turn.dtype))
        inner = inner + turn * off_diagonal / differences_of(values, "eigenvalues")
    return hermitian_gradient(vectors @ inner @ adjoint(vectors), is_lower(triangle))


@formula_function
def eigh_tangents(tangent: Any, values: Any, vectors: Any, triangle: Any) -> tuple[Any, Any]:
    """The tangents of the eigenvalues and eigenvectors."""
    turned = adjoint(vectors) @ hermitian(tangent, is_lower(triangle)) @ vectors
    off_diagonal = 1 - np.eye(turned.shape[-1], dtype=real_dtype(turned.dtype))
    of_vectors = vectors @ (turned * off_diagonal / differences_of(values, "eigenvalues"))
    return np.diagonal(turned, 0, -2, -1).real, of_vectors


@formula_function
def eigvalsh_gradient(grad: Any, a: Any, triangle: Any) -> Any:
    """The gradient of a Hermitian matrix from that of its eigenvalues."""
    vectors = np.linalg.eigh(a, triangle)[1]
    return hermitian_gradient((vectors * grad[..., None, :]) @ adjoint(vectors), is_lower(triangle))


@formula_function
def eigvalsh_tangent(tangent: Any, a: Any, triangle: Any) -> Any:
    """The tangents of the eigenvalues."""
    vectors = np.linalg.eigh(a, triangle)[1]
    turned = adjoint(vectors) @ hermitian(tangent, is_lower(triangle)) @ vectors
    return np.diagonal(turned, 0, -2, -1).real


row(
    "eigh(self, UPLO='L') -> (eigenvalues, eigenvectors)",
    lambda a, UPLO="L": np.linalg.eigh(a, UPLO),
    {"self": "eigh_gradient(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors, UPLO)"},
    forward_derivative={
        "eigenvalues, eigenvectors": "eigh_tangents(self_t, eigenvalues, eigenvectors, UPLO)",
    },
    numpy=[np.linalg.eigh],
    kinds="fc",
    doc="The eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices, of which only one triangle, "
    "the lower or the upper, is read, and has a gradient.",
)
row(
    "eigvalsh(self, UPLO='L')",
    lambda a, UPLO="L": np.linalg.eigvalsh(a, UPLO),
    {"self": "eigvalsh_gradient(grad, self, UPLO)"},
    forward_derivative="eigvalsh_tangent(self_t, self_p, UPLO)",
    numpy=[np.linalg.eigvalsh],
    kinds="fc",
    doc="The eigenvalues, ascending, of symmetric or Hermitian matrices, of which only one triangle is read.",
)

# -- singular values ---------------------------------------------------------------------------------------------------


def _reduced(grad: Any, size: int, *, rows: bool) -> Any:
    """The gradient of the vectors that belong to singular values; that of others must be zero."""
    kept, rest = (grad[..., :size, :], grad[..., size:, :]) if rows else (grad[..., :size], grad[..., size:])
    if not is_known_zero(rest):
        raise DifferentiabilityError(
            "the singular vectors that full_matrices=True adds to those that belong to singular values are arbitrary, "
            "so they have no derivative; use full_matrices=False"
        )
    return kept


def squared_differences(s: Any) -> Any:
    """`s[j]**2 - s[i]**2` in row i and column j, with 1 on the diagonal."""
    one = np.eye(s.shape[-1], dtype=s.dtype)
    return differences_of(s, "singular values") * ((s[..., None, :] + s[..., :, None]) * (1 - one) + one)


def _skew(a: Any) -> Any:
    return a - adjoint(a)


def _without_zero(s: Any, vectors: str) -> Any:
    """The singular values, as a denominator."""
    if not values_of(s).all():
        raise DifferentiabilityError(
            f"a singular value is zero, so the {vectors} singular vectors that belong to it have no derivative"
        )
    return s


@formula_function
def svd_gradient(grad_u: Any, grad_s: Any, grad_vh: Any, u: Any, s: Any, vh: Any) -> Any:
    """The gradient of a matrix from those of its singular values and vectors."""
    k = s.shape[-1]
    m, n = u.shape[-2], vh.shape[-1]
    if u.shape[-1] > k:
        grad_u, u = _reduced(grad_u, k, rows=False), u[..., :k]
    if vh.shape[-2] > k:
        grad_vh, vh = _reduced(grad_vh, k, rows=True), vh[..., :k, :]
    has_u, has_v = not is_known_zero(grad_u), not is_known_zero(grad_vh)
    if not has_u and not has_v:
        return (u * grad_s[..., None, :]) @ vh
    inner = on_diagonal(grad_s)
    turn_u = _skew(adjoint(u) @ grad_u)
    turn_v = _skew(vh @ adjoint(grad_vh))
    inner = inner + (turn_u * s[..., None, :] + s[..., :, None] * turn_v) * (
        1 - np.eye(k, dtype=s.dtype)
    ) / squared_differences(s)
    if turn_u.dtype.kind == "c":
        diagonals = np.diagonal(turn_u, 0, -2, -1), np.diagonal(turn_v, 0, -2, -1)
        require_no_phase(diagonals[0].imag + diagonals[1].imag, largest(grad_u, grad_vh), "singular vectors")
        inner = inner + on_diagonal(diagonals[0] / (2 * _without_zero(s, "left")))
    result = u @ inner @ vh
    if m > k and has_u:
        outside = grad_u / _without_zero(s, "left")[..., None, :]
        result = result + (outside - u @ (adjoint(u) @ outside)) @ vh
    if n > k and has_v:
        outside = grad_vh / _without_zero(s, "right")[..., :, None]
        result = result + u @ (outside - (outside @ adjoint(vh)) @ vh)
    return result


def _turned(tangent: Any, u: Any, vh: Any) -> Any:
    """The tangent between the singular vectors."""
    return adjoint(u) @ tangent @ adjoint(vh)


@formula_function
def svd_tangents(tangent: Any, u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """The tangents of the singular values and vectors."""
    k = s.shape[-1]
    if max(u.shape[-1], vh.shape[-2]) > k:
        raise DifferentiabilityError(
            "svd has tangents with full_matrices=False only: the other singular vectors are arbitrary"
        )
    turned = _turned(tangent, u, vh)
    off_diagonal = (1 - np.eye(k, dtype=s.dtype)) / squared_differences(s)
    right, left = turned * s[..., None, :], turned * s[..., :, None]
    of_u = (right + adjoint(right)) * off_diagonal
    of_v = (left + adjoint(left)) * off_diagonal
    if turned.dtype.kind == "c":  # the phase is shared between left and right vectors
        phases = on_diagonal(np.diagonal(turned - adjoint(turned), 0, -2, -1) / (4 * _without_zero(s, "left")))
        of_u, of_v = of_u + phases, of_v - phases
    u_t, vh_t = u @ of_u, adjoint(of_v) @ vh
    if u.shape[-2] > k:
        outside = (tangent @ adjoint(vh)) / _without_zero(s, "left")[..., None, :]
        u_t = u_t + outside - u @ (adjoint(u) @ outside)
    if vh.shape[-1] > k:
        outside = (adjoint(u) @ tangent) / _without_zero(s, "right")[..., :, None]
        vh_t = vh_t + outside - (outside @ adjoint(vh)) @ vh
    return u_t, np.diagonal(turned, 0, -2, -1).real, vh_t


@formula_function
def svdvals_gradient(grad: Any, a: Any) -> Any:
    """The gradient of a matrix from that of its singular values."""
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return (u * grad[..., None, :]) @ vh


@formula_function
def svdvals_tangent(tangent: Any, a: Any) -> Any:
    """The tangents of the singular values."""
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return np.diagonal(_turned(tangent, u, vh), 0, -2, -1).real


row(
    "svd(self, full_matrices=True) -> (U, S, Vh)",
    lambda a, full_matrices=True: np.linalg.svd(a, full_matrices),
    {"self": "svd_gradient(grad_U, grad_S, grad_Vh, U, S, Vh)"},
    forward_derivative={
        "U, S, Vh": "svd_tangents(self_t, U, S, Vh)",
    },
    kinds="fc",
    doc="The singular values, descending, between the left and the right singular vectors: (U * S) @ Vh is the matrix.",
)
row(
    "svdvals(self)",
    lambda a: np.linalg.svd(a, compute_uv=False),
    {"self": "svdvals_gradient(grad, self)"},
    forward_derivative="svdvals_tangent(self_t, self_p)",
    numpy=[np.linalg.svdvals],
    kinds="fc",
    doc="The singular values, descending.",
)


def _svd(a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        raise TypeError("svd on tensors takes no hermitian=True; use eigh, and the absolute values of the eigenvalues")
    return a.svd(full_matrices) if compute_uv else a.svdvals()


FUNCTIONS[np.linalg.svd] = _svd

# -- least squares -----------------------------------------------------------------------------------------------------


def lstsq_forward(a: Any, b: Any, rcond: float | None = None) -> Any:
    return np.linalg.lstsq(a, b, rcond=rcond)


@formula_function
def lstsq_inverse(a: Any, rcond: float | None) -> Any:
    """The pseudo-inverse that a least-squares solution is made with."""
    return np.linalg.pinv(a, np.finfo(a.dtype).eps * max(a.shape) if rcond is None or rcond < 0 else rcond)


@formula_function
def lstsq_gradients(
    grad: Any, grad_residuals: Any, grad_values: Any, a: Any, b: Any, x: Any, rcond: float | None
) -> tuple[Any, Any]:
    """The gradients of the matrix and of the right-hand sides."""
    vector = b.ndim == 1
    if vector:
        grad, b, x = grad[:, None], b[:, None], x[:, None]
    p = lstsq_inverse(a, rcond)
    of_a = pinv_gradient(outer_products(grad, b, False), a, p)
    of_b = adjoint(p) @ grad
    if grad_residuals.shape[0]:  # the residuals are orthogonal to what the solution can reach
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
    """The tangent of the solution."""
    p = lstsq_inverse(a, rcond)
    return pinv_tangent(a_t, a, p) @ b + p @ b_t


@formula_function
def residuals_tangent(a_t: Any, b_t: Any, a: Any, b: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """The tangent of the squared lengths of the gaps."""
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
    kinds="fc",
    doc="The least-squares solutions of systems of linear equations, the squared lengths of the gaps that remain "
    "(none where the rank is not full or nothing remains), the rank and the singular values of the matrix.",
)
