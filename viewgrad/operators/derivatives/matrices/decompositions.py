"""The derivatives of the Cholesky and QR decompositions, and helpers for all decompositions.

Factors are determined up to signs, or up to phases for complex matrices. A loss that depends on the phases has no
derivative, nor does a loss that depends on the vectors of equal eigenvalues or singular values: both are errors. A
backward pass considers only the vectors that the loss depends on.

`cholesky` and `eigh` read one triangle of a matrix that they assume to be Hermitian, and the real part of its diagonal.
The gradient is zero in the other triangle.

Sources: I. Murray, "Differentiation of the Cholesky decomposition" (2016); S. Walter, L. Lehmann, "Algorithmic
differentiation of linear algebra functions with application in optimum experimental design" (2010) for QR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import DifferentiabilityError
from ....tensor.creation import as_operand
from ....tensor.tensor import FUNCTIONS
from ....tensor.trace_hooks import observed
from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function
from ..helpers import adjoint, real_dtype
from ..scatter import values_of

__all__: list[str] = []


def half_triangle(a: Any, lower: bool = True) -> Any:
    """Return one triangle of `a`, and half of the diagonal."""
    n = a.shape[-1]
    dtype = real_dtype(a.dtype)
    mask = np.tri(n, k=-1, dtype=dtype) + 0.5 * np.eye(n, dtype=dtype)
    return a * (mask if lower else mask.T)


def hermitian_gradient(grad: Any, lower: bool) -> Any:
    """Return the gradient of one triangle of a Hermitian matrix, given the gradient of the whole matrix."""
    return half_triangle(grad + adjoint(grad), lower)


def hermitian(a: Any, lower: bool) -> Any:
    """Return the Hermitian matrix with the given triangle."""
    half = half_triangle(a, lower)
    return half + adjoint(half)


def differences_of(values: Any, what: str, used: Array | None = None) -> Any:
    """Return `values[j] - values[i]` in row i and column j, with 1 on the diagonal and wherever two are equal.

    Values that differ only by rounding count as equal.

    Arguments:
        values: the eigenvalues or singular values.
        what: the name used in error messages.
        used: the vectors that a loss depends on; None for all. The gradient between two other vectors is zero, and is
            divided by the size of rounding errors.

    Raises:
        DifferentiabilityError: if the value of a vector in use equals another.
    """
    differences = values[..., None, :] - values[..., :, None]
    one = np.eye(values.shape[-1], dtype=real_dtype(values.dtype))
    sizes = np.abs(values_of(values))
    rounding = 4 * np.finfo(one.dtype).eps * sizes.max(-1, initial=0)[..., None, None]
    equal = (np.abs(values_of(differences)) <= rounding) & (one == 0)
    if not equal.any():
        return differences + one
    if used is None or (equal & used[..., None, :]).any():
        raise DifferentiabilityError(
            f"two {what} are equal, so the vectors that belong to them have no derivative; use the {what} alone, "
            "viewgrad.linalg.spectral_function or spectral_projector, which depend on no choice of vectors, or perturb "
            "the matrix"
        )
    return np.where(equal, np.where(rounding == 0, 1, rounding), differences + one)


def used_columns(*gradients: Any) -> Array:
    """Return the columns whose gradient is nonzero in at least one of the matrices."""
    used: Array = np.any([(values_of(grad) != 0).any(axis=-2) for grad in gradients], axis=0)
    return used


def finite(matrix: Any) -> Any:
    """Return the matrix itself after checking that it is finite.

    Raises:
        LinAlgError: if there are infinities or NaN, for which LAPACK's singular values may not terminate.
    """
    if not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError("a matrix with infinities or NaN has no singular values")
    return matrix


def of_finite(function: Callable[[Any], Any], matrices: Any) -> tuple[Array, ...]:
    """Apply a function to finite matrices; return NaN for matrices with infinities, for which LAPACK may not terminate.

    Raises:
        LinAlgError: if there are NaN, as NumPy does.
    """
    known = np.asarray(np.isfinite(matrices).all(axis=(-2, -1) if matrices.ndim > 1 else None))
    if known.all() or min(matrices.shape[-2:]) < 2:  # LAPACK does not iterate for a single row or column
        return tuple(function(matrices))
    if np.isnan(matrices).any():
        finite(matrices)
    found = function(np.where(known[..., None, None], matrices, 0))
    return tuple(np.where(known.reshape(known.shape + (1,) * (a.ndim - known.ndim)), a, np.nan) for a in found)


def on_diagonal(values: Any) -> Any:
    """Return diagonal matrices with `values` on the diagonal."""
    return values[..., None] * np.eye(values.shape[-1], dtype=real_dtype(values.dtype))


def require_no_phase(diagonal: Any, scale: float, what: str) -> None:
    """Raise if a loss depends on the phases of the vectors.

    Arguments:
        diagonal: the imaginary parts, which are the derivatives with respect to the phases.
        scale: the size of the terms in these sums.
        what: the name of the vectors.
    """
    array = np.abs(values_of(diagonal))
    if array.size and array.max() > np.finfo(array.dtype).eps ** 0.5 * array.shape[-1] * scale:
        raise DifferentiabilityError(
            f"the loss depends on the phases of the complex {what}, which are arbitrary, so it has no derivative: "
            f"multiplying one of the {what} by exp(i t) changes it at a rate of {array.max():.3g}"
        )


def largest(*arrays: Any) -> float:
    """Return the greatest absolute value."""
    return max((float(np.abs(values_of(a)).max()) for a in arrays if a.size), default=0.0)


# -- Cholesky ----------------------------------------------------------------------------------------------------------


@formula_function
def cholesky_gradient(grad: Any, factor: Any, upper: bool) -> Any:
    """Return the gradient of a matrix, given the gradient of its factor."""
    if upper:
        grad, factor = adjoint(grad), adjoint(factor)
    back = adjoint(factor)
    middle = half_triangle(back @ grad)
    left = np.linalg.solve(back, middle)
    return hermitian_gradient(adjoint(np.linalg.solve(back, adjoint(left))), not upper)


@formula_function
def cholesky_tangent(tangent: Any, factor: Any, upper: bool) -> Any:
    """Return the tangent of the factor."""
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
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The triangular factors L, with L times its adjoint equal to the matrix (or, `upper`, U with its adjoint "
    "times U). Only the lower (upper) triangle is read, and has a gradient.",
)

# -- QR ----------------------------------------------------------------------------------------------------------------


def qr_forward(a: Any, mode: Any = "reduced") -> Any:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode of qr must be 'reduced' or 'complete' for tensors, not {mode!r}")
    return np.linalg.qr(a, mode)


def refuse_completed(q: Any, r: Any) -> None:
    """Raise if Q was completed with columns that the matrix does not determine.

    Raises:
        DifferentiabilityError: for `mode="complete"` of a matrix with more rows than columns.
    """
    if q.shape[-1] > r.shape[-1]:
        raise DifferentiabilityError(
            f"qr with mode='complete' of a matrix with {q.shape[-1]} rows and {r.shape[-1]} columns: only the reduced "
            "factors can be differentiated; use mode='reduced'"
        )


def refuse_dependent(r: Any) -> None:
    """Raise if a column is, up to rounding, a linear combination of the preceding ones.

    Raises:
        DifferentiabilityError: if there is such a column, whose direction in Q is determined by rounding.
    """
    if not r.size or observed() is not None:  # a trace must be valid for other values
        return
    values = np.abs(values_of(r))
    lengths = np.sqrt(np.square(values).sum(axis=-2))
    rounding = 4 * values.shape[-1] * np.finfo(values.dtype).eps
    if (np.diagonal(values, 0, -2, -1) <= rounding * lengths).any():
        raise DifferentiabilityError(
            "the columns of a matrix are linearly dependent, so its QR decomposition has no derivative"
        )


def skew_part(x: Any) -> Any:
    """Return the skew-Hermitian matrices with the lower triangles of `x`, and imaginary diagonals."""
    n = x.shape[-1]
    lower = x * np.tri(n, k=-1, dtype=real_dtype(x.dtype))
    skew = lower - adjoint(lower)
    return skew + 0.5 * ((x - adjoint(x)) * np.eye(n, dtype=real_dtype(x.dtype))) if x.dtype.kind == "c" else skew


@formula_function
def qr_gradient(grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    """Return the gradient of a matrix, given the gradients of its factors."""
    refuse_completed(q, r)
    m, n = q.shape[-2], r.shape[-1]
    rest = None
    if m < n:  # the first columns determine Q, and the rest of R follows from the remaining columns
        rest = q @ grad_r[..., m:]
        grad_q = grad_q + q @ (r[..., m:] @ adjoint(grad_r[..., m:]))
        grad_r, r = grad_r[..., :m], r[..., :m]
    refuse_dependent(r)
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
    """Return the tangents of both factors."""
    refuse_completed(q, r)
    m, n = q.shape[-2], r.shape[-1]
    k = min(m, n)
    refuse_dependent(r[..., :k])
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
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="Matrices with orthonormal columns Q and upper triangular R, with Q @ R equal to the matrix. Differentiable "
    "where the first columns are linearly independent.",
)


def _qr(a: Any, mode: str = "reduced") -> Any:
    return as_operand(a).qr()[1] if mode == "r" else as_operand(a).qr(mode)


FUNCTIONS[np.linalg.qr] = _qr
