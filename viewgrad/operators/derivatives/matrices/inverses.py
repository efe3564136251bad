"""The derivatives of inverses, solutions of linear systems and pseudo-inverses, for stacks of matrices.

Sources: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode automatic
differentiation" (2008); G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate" (1973) for `pinv`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tensor.tensor import Tensor
from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function
from ..helpers import adjoint, eye_like, real_dtype
from ..scatter import values_of
from .decompositions import of_finite

__all__: list[str] = []

row(
    "inv(self)",
    lambda a: np.linalg.inv(a),
    {"self": "-matmul(matmul(adjoint(result), grad), adjoint(result))"},
    forward_derivative="-matmul(matmul(result, self_t), result)",
    numpy=[np.linalg.inv],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The inverses of square matrices.",
)


@formula_function
def solved(a: Any, b: Any, vector: bool) -> Any:
    """Return the solutions of linear systems with matrices `a`; `b` contains vectors if `vector` is true."""
    return np.linalg.solve(a, b[..., None])[..., 0] if vector else np.linalg.solve(a, b)


@formula_function
def applied(a: Any, b: Any, vector: bool) -> Any:
    """Return the product of matrices with vectors or matrices."""
    return (a @ b[..., None])[..., 0] if vector else a @ b


@formula_function
def outer_products(a: Any, b: Any, vectors: bool) -> Any:
    """Return `a` times the adjoint of `b`, of vectors or of matrices."""
    if vectors:
        a, b = a[..., None], b[..., None]
    return a @ adjoint(b)


row(
    "solve(self, b)",
    lambda a, b: np.linalg.solve(a, b),
    {
        "self": "-outer_products(solved(adjoint(self), grad, b.ndim == 1), result, b.ndim == 1)",
        "b": "solved(adjoint(self), grad, b.ndim == 1)",
    },
    forward_derivative="solved(self_p, b_t - applied(self_t, result, b_p.ndim == 1), b_p.ndim == 1)",
    numpy=[np.linalg.solve],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The solutions x of the systems of linear equations `self @ x == b`.",
)


def triangle_mask(n: int, upper: bool, unitriangular: bool, dtype: Any) -> Array:
    """Return a mask of the elements of a triangular matrix, without the diagonal if it is a unit diagonal."""
    mask = np.tri(n, k=-1 if unitriangular else 0, dtype=real_dtype(dtype))
    return mask.T if upper else mask


@formula_function
def in_triangle(a: Any, upper: bool, unitriangular: bool) -> Any:
    """Return the triangle of a matrix that is read, with zeros elsewhere."""
    return a * triangle_mask(a.shape[-1], upper, unitriangular, a.dtype)


def solve_triangular_forward(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"solve_triangular requires square matrices, not matrices of shape {a.shape}")
    # LU factorization does not change an upper triangle; a lower triangle becomes one if its rows and columns are
    # reversed.
    a = np.where(triangle_mask(a.shape[-1], upper, unitriangular, a.dtype) != 0, a, 0)
    if unitriangular:
        a = a + eye_like(a)
    if not left:
        a, b, upper = a.mT, b.mT, not upper
    if not upper:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    x = np.linalg.solve(a, b)
    x = x if upper else x[..., ::-1, :]
    return x if left else x.mT


row(
    "solve_triangular(self, b, *, upper, left=True, unitriangular=False)",
    solve_triangular_forward,
    {
        "self": "in_triangle(triangular_gradient(solve_triangular(adjoint(self), grad, upper=not upper, left=left, "
        "unitriangular=unitriangular), result, left), upper, unitriangular)",
        "b": "solve_triangular(adjoint(self), grad, upper=not upper, left=left, unitriangular=unitriangular)",
    },
    forward_derivative="solve_triangular(self_p, b_t - triangular_product(in_triangle(self_t, upper, unitriangular), "
    "result, left), upper=upper, left=left, unitriangular=unitriangular)",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The solutions x of `self @ x == b` (`x @ self == b` unless `left`) with triangular matrices. The other "
    "triangle is not read, nor the diagonal of unitriangular matrices.",
)


@formula_function
def triangular_gradient(solved_grad: Any, result: Any, left: bool) -> Any:
    """Return minus the product of the gradient of the right-hand side and the solution."""
    return -(solved_grad @ adjoint(result)) if left else -(adjoint(result) @ solved_grad)


@formula_function
def triangular_product(a: Any, x: Any, left: bool) -> Any:
    """Return the product of a triangular matrix and the unknowns, with the matrix on the given side."""
    return a @ x if left else x @ a


def pinv_forward(a: Any, rcond: Any = None) -> Array:
    options = () if rcond is None else (rcond,)
    return of_finite(lambda matrices: (np.linalg.pinv(matrices, *options),), a)[0]


row(
    "pinv(self, rcond=None)",
    pinv_forward,
    {"self": "pinv_gradient(grad, self, result)"},
    forward_derivative="pinv_tangent(self_t, self_p, result)",
    numpy=[np.linalg.pinv],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The Moore-Penrose pseudo-inverses. Differentiable where the rank is locally constant.",
)


def is_cut(a: Any, p: Any) -> bool:
    """Return whether a pseudo-inverse drops singular values that are not merely rounding errors."""
    a, p = values_of(a), values_of(p)
    rest = np.abs(a - a @ p @ a)
    return bool((rest > np.finfo(p.dtype).eps ** 0.6 * np.abs(a).max(axis=(-2, -1), keepdims=True, initial=0)).any())


def moved_where_cut(x: Any, a: Any, p: Any) -> Any:
    """Return the adjoint of the change of `p` if `a` changes by `x`; this linear map is its own adjoint."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    v = adjoint(vh)
    kept = np.einsum("...ij,...ji->...i", values_of(vh) @ values_of(p), values_of(u)).real * values_of(s) > 0.5
    f = np.where(kept, 1 / np.where(kept, s, 1), 0)
    s_i, s_j, f_i, f_j = s[..., :, None], s[..., None, :], f[..., :, None], f[..., None, :]
    one = kept[..., :, None] != kept[..., None, :]
    even = np.where(one, (f_i - f_j) / np.where(one, s_i - s_j, 1), -f_i * f_j)
    odd = np.where(one, (f_i + f_j) / np.where(one, s_i + s_j, 1), f_i * f_j)
    inner = adjoint(u) @ x @ v
    rotated = even * (inner + adjoint(inner)) / 2 + odd * (inner - adjoint(inner)) / 2
    square = (f * f)[..., None, :]
    return (u @ rotated + (x @ v - u @ inner) * square) @ vh + (u * square) @ (adjoint(u) @ x - inner @ vh)


def is_deficient(a: Any, p: Any) -> bool:
    """Return whether the rank of a matrix, computed as the trace of its projector, is less than that of others."""
    if not isinstance(a, Tensor):
        return False
    ranks = np.einsum("...ij,...ji->...", values_of(p), values_of(a)).real
    return bool((ranks < min(a.shape[-2:]) - 0.5).any())


def of_remainder(x: Any, a: Any, p: Any) -> Any:
    """Return the part of `moved_where_cut` proportional to the remainder that `p` drops from a deficient matrix.

    It is zero, but its derivatives are not.
    """
    q, rest = adjoint(p), a - a @ p @ a
    cube, back = q @ p @ q, adjoint(x)
    return cube @ back @ rest + rest @ back @ cube


@formula_function
def pinv_gradient(grad: Any, a: Any, p: Any) -> Any:
    """Return the gradient of `a`, whose pseudo-inverse is `p`."""
    if is_cut(a, p):
        return moved_where_cut(adjoint(grad), a, p)
    q, back = adjoint(p), adjoint(grad)
    result = (back - a @ (p @ back)) @ (p @ q) + (q @ p) @ (back - (back @ p) @ a) - adjoint(p @ back @ p)
    return result + of_remainder(back, a, p) if is_deficient(a, p) else result


@formula_function
def pinv_tangent(t: Any, a: Any, p: Any) -> Any:
    """Return the tangent of the pseudo-inverse `p` of `a`."""
    if is_cut(a, p):
        return adjoint(moved_where_cut(t, a, p))
    q, back = adjoint(p), adjoint(t)
    result = (p @ q) @ (back - (back @ a) @ p) + (back - p @ (a @ back)) @ (q @ p) - p @ t @ p
    return result + adjoint(of_remainder(t, a, p)) if is_deficient(a, p) else result
