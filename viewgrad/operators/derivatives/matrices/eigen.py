"""The derivatives of eigenvalues and eigenvectors, of general and Hermitian matrices.

Eigenvectors have length 1. Those of complex eigenvalues are determined up to phases. A loss that depends on the phases
has no derivative, nor does one that depends on the vectors of equal eigenvalues: both are errors.

Source: C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann, R. Haeb-Umbach, "On the computation of complex-valued
gradients with application to statistically optimum beamforming" (2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function
from ..helpers import adjoint, real_dtype
from ..scatter import is_known_zero, values_of
from .decompositions import (
    differences_of,
    hermitian,
    hermitian_gradient,
    largest,
    on_diagonal,
    require_no_phase,
    used_columns,
)

__all__: list[str] = []


def _off_diagonal(like: Any) -> Array:
    return 1 - np.eye(like.shape[-1], dtype=real_dtype(like.dtype))


def _of_kind(gradient: Any, dtype: np.dtype[Any]) -> Any:
    return gradient.real if gradient.dtype.kind == "c" and dtype.kind != "c" else gradient


@formula_function
def eig_gradient(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any, dtype: Any) -> Any:
    """Return the gradient of a matrix, given the gradients of its eigenvalues and eigenvectors."""
    inner = on_diagonal(grad_values)
    if not is_known_zero(grad_vectors):
        if dtype.kind != "c" and vectors.dtype.kind == "c":  # real eigenvalues of a real matrix have real eigenvectors
            are_real = np.all(values_of(vectors).imag == 0, axis=-2, keepdims=True)
            grad_vectors = np.where(are_real, grad_vectors.real, grad_vectors)
        turn = adjoint(vectors) @ grad_vectors
        along = np.diagonal(turn, 0, -2, -1)
        if turn.dtype.kind == "c":
            require_no_phase(along.imag, largest(grad_vectors), "eigenvectors")
        turn = turn - (adjoint(vectors) @ vectors) * along.real[..., None, :]
        differences = differences_of(values, "eigenvalues", used_columns(grad_vectors))
        inner = inner + turn * _off_diagonal(turn) / np.conjugate(differences)
    return _of_kind(np.linalg.solve(adjoint(vectors), inner @ adjoint(vectors)), dtype)


@formula_function
def eig_tangents(tangent: Any, values: Any, vectors: Any) -> tuple[Any, Any]:
    """Return the tangents of the eigenvalues and eigenvectors."""
    rotated = np.linalg.solve(vectors, tangent @ vectors)
    of_vectors = vectors @ (rotated * _off_diagonal(rotated) / differences_of(values, "eigenvalues"))
    along = np.diagonal(adjoint(vectors) @ of_vectors, 0, -2, -1).real
    return np.diagonal(rotated, 0, -2, -1), of_vectors - vectors * along[..., None, :]


@formula_function
def eigvals_gradient(grad: Any, a: Any) -> Any:
    """Return the gradient of a matrix, given the gradient of its eigenvalues."""
    vectors = np.linalg.eig(a)[1]
    return _of_kind(np.linalg.solve(adjoint(vectors), grad[..., :, None] * adjoint(vectors)), a.dtype)


@formula_function
def eigvals_tangent(tangent: Any, a: Any) -> Any:
    """Return the tangents of the eigenvalues."""
    vectors = np.linalg.eig(a)[1]
    return np.diagonal(np.linalg.solve(vectors, tangent @ vectors), 0, -2, -1)


row(
    "eig(self) -> (eigenvalues, eigenvectors)",
    lambda a: tuple(np.linalg.eig(a)),
    {"self": "eig_gradient(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors, self.dtype)"},
    forward_derivative={"eigenvalues, eigenvectors": "eig_tangents(self_t, eigenvalues, eigenvectors)"},
    numpy=[np.linalg.eig],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The eigenvalues and normalized eigenvectors of square matrices.",
)
row(
    "eigvals(self)",
    lambda a: np.linalg.eigvals(a),
    {"self": "eigvals_gradient(grad, self)"},
    forward_derivative="eigvals_tangent(self_t, self_p)",
    numpy=[np.linalg.eigvals],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The eigenvalues of square matrices.",
)


# -- Hermitian matrices ------------------------------------------------------------------------------------------------


def is_lower(triangle: Any) -> bool:
    """Return whether `UPLO` names the lower triangle."""
    return triangle in ("L", "l")


@formula_function
def eigh_gradient(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any, triangle: Any) -> Any:
    """Return the gradient of a Hermitian matrix, given the gradients of its eigenvalues and eigenvectors."""
    inner = on_diagonal(grad_values)
    if not is_known_zero(grad_vectors):
        turn = adjoint(vectors) @ grad_vectors
        if turn.dtype.kind == "c":
            require_no_phase(np.diagonal(turn, 0, -2, -1).imag, largest(grad_vectors), "eigenvectors")
        differences = differences_of(values, "eigenvalues", used_columns(grad_vectors))
        inner = inner + turn * _off_diagonal(turn) / differences
    return hermitian_gradient(vectors @ inner @ adjoint(vectors), is_lower(triangle))


@formula_function
def eigh_tangents(tangent: Any, values: Any, vectors: Any, triangle: Any) -> tuple[Any, Any]:
    """Return the tangents of the eigenvalues and eigenvectors."""
    rotated = adjoint(vectors) @ hermitian(tangent, is_lower(triangle)) @ vectors
    of_vectors = vectors @ (rotated * _off_diagonal(rotated) / differences_of(values, "eigenvalues"))
    return np.diagonal(rotated, 0, -2, -1).real, of_vectors


@formula_function
def eigvalsh_gradient(grad: Any, a: Any, triangle: Any) -> Any:
    """Return the gradient of a Hermitian matrix, given the gradient of its eigenvalues."""
    vectors = np.linalg.eigh(a, triangle)[1]
    return hermitian_gradient((vectors * grad[..., None, :]) @ adjoint(vectors), is_lower(triangle))


@formula_function
def eigvalsh_tangent(tangent: Any, a: Any, triangle: Any) -> Any:
    """Return the tangents of the eigenvalues."""
    vectors = np.linalg.eigh(a, triangle)[1]
    rotated = adjoint(vectors) @ hermitian(tangent, is_lower(triangle)) @ vectors
    return np.diagonal(rotated, 0, -2, -1).real


row(
    "eigh(self, UPLO='L') -> (eigenvalues, eigenvectors)",
    lambda a, UPLO="L": np.linalg.eigh(a, UPLO),
    {"self": "eigh_gradient(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors, UPLO)"},
    forward_derivative={
        "eigenvalues, eigenvectors": "eigh_tangents(self_t, eigenvalues, eigenvectors, UPLO)",
    },
    numpy=[np.linalg.eigh],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The eigenvalues, in ascending order, and eigenvectors of symmetric or Hermitian matrices. Only one triangle, "
    "the lower or the upper, is read and has a gradient.",
)
row(
    "eigvalsh(self, UPLO='L')",
    lambda a, UPLO="L": np.linalg.eigvalsh(a, UPLO),
    {"self": "eigvalsh_gradient(grad, self, UPLO)"},
    forward_derivative="eigvalsh_tangent(self_t, self_p, UPLO)",
    numpy=[np.linalg.eigvalsh],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The eigenvalues, in ascending order, of symmetric or Hermitian matrices; only one triangle is read.",
)
