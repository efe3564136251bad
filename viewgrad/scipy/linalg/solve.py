"""Systems of equations, factorizations and special matrices."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import scipy.linalg  # type: ignore[import-untyped]

from ...autograd.function import Function
from ...errors import DifferentiabilityError
from ...operators.composites import COMPOSITES
from ...operators.define import OPERATORS
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, plain_values
from ...tensor.creation import as_operand
from ...tensor.shapes import with_ndim
from ...tensor.tensor import from_array
from ..implicit_diff import STEPS
from ..sparse.arrays import ARRAYS
from ..sparse.linalg import spsolve
from ..wrap import Accepted, maker, numbers, vector
from .eigenvector_signs import in_order_of_scipy, largest_elements, order_of_scipy, signs_between
from .stacks import stacked

MADE: dict[str, Any] = {}
made: Final = maker(scipy.linalg, MADE, is_checked=True, accepted=Accepted())
compared: Final = maker(scipy.linalg, MADE, is_compared=True)


# -- systems of equations ----------------------------------------------------------------------------------------------


@made
def inv(a: Any) -> Any:
    """Return the inverse."""
    return np.linalg.inv(numbers(a))


# The structures that `solve` may assume.
STRUCTURES: Final = frozenset({
    "gen", "general", "banded", "diagonal", "tridiagonal", "upper triangular", "lower triangular",
    "sym", "symmetric", "her", "hermitian", "pos", "positive definite",
})  # fmt: skip


def self_adjoint(a: Any, lower: bool) -> Any:
    """Return the self-adjoint matrix defined by one triangle and the real part of the diagonal."""
    half, strict = (np.tril(a), np.tril(a, -1)) if lower else (np.triu(a), np.triu(a, 1))
    if a.is_complex():
        half = strict + (half - strict).real
    return half + strict.mT.conj()


@made
def solve(a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False) -> Any:
    """Return the solution of a linear system; for structured matrices, only the elements used by SciPy are read."""
    a, b = numbers(a), numbers(b)
    kind = "gen" if assume_a is None else assume_a
    if kind not in STRUCTURES:
        raise ValueError(f"{kind} is not a recognized matrix structure")
    if kind in ("her", "hermitian", "pos", "positive definite"):
        a = self_adjoint(a, lower)
    elif kind in ("sym", "symmetric"):
        a = (np.tril(a) if lower else np.triu(a)) + (np.tril(a, -1) if lower else np.triu(a, 1)).mT
    elif kind in ("upper triangular", "lower triangular"):
        a = np.tril(a) if kind.startswith("lower") else np.triu(a)
    elif kind in ("diagonal", "tridiagonal"):
        beside = int(kind == "tridiagonal")
        a = np.tril(np.triu(a, -beside), beside)
    if transposed:
        a = a.mT
    return np.linalg.solve(a, b)


@made
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """Return the solution of a triangular system."""
    a, b = numbers(a), numbers(b)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        ones = np.eye(a.shape[-1], dtype=a.dtype)
        triangle = (np.tril(a, -1) if lower else np.triu(a, 1)) + ones
    if trans not in (0, "N", 1, "T", 2, "C"):
        raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    if trans not in (0, "N"):
        triangle = triangle.mT.conj() if trans in (2, "C") else triangle.mT
    return np.linalg.solve(triangle, b)


@made
@stacked(2, None)
def lstsq(a: Any, b: Any, cond: Any = None, lapack_driver: Any = None) -> Any:
    """Return the least-squares solution, the residuals, the rank and the singular values."""
    a, b = numbers(a), numbers(b)
    if lapack_driver not in (None, "gelsd", "gelsy", "gelss"):
        raise ValueError(f'LAPACK driver "{lapack_driver}" is not found')
    if cond is None:
        cond = np.finfo(np.result_type(a.dtype, b.dtype, np.float32)).eps
    found, residuals, rank, values = np.linalg.lstsq(a, b, cond)
    if lapack_driver == "gelsy":
        return found, residuals[:0].reshape(-1)[:0], rank, None
    return found, residuals.sum() if b.ndim == 1 and residuals.size else residuals, rank, values


@made
@stacked(2)
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Any:
    """Return the pseudo-inverse."""
    a = numbers(a)
    if (atol or 0) < 0 or (rtol or 0) < 0:
        raise ValueError("atol and rtol values must be positive.")
    values = np.linalg.svd(plain_values(a), compute_uv=False)
    if rtol is None:
        rtol = max(a.shape[-2:]) * np.finfo(values.dtype).eps
    largest = values.max(initial=0.0)
    if atol and largest:
        rtol = rtol + atol / largest
    found = np.linalg.pinv(a, rtol)
    return (found, int((values > rtol * largest).sum())) if return_rank else found


@made
def cholesky(a: Any, lower: bool = False) -> Any:
    """Return the triangular factor of a positive definite matrix."""
    a = numbers(a)
    return OPERATORS["cholesky"].function(a, upper=not lower)


@made
@stacked(2)
def cho_factor(a: Any, lower: bool = False) -> Any:
    """Return the Cholesky factor and whether it is lower; the other triangle is that of SciPy's result."""
    factor = MADE["cholesky"](a, lower)
    if not _keeps_other_triangle():
        return factor, lower
    other = np.triu(numbers(a), 1) if lower else np.tril(numbers(a), -1)
    return factor + other, lower


@functools.cache
def _keeps_other_triangle() -> bool:
    """Return whether SciPy's `cho_factor` keeps the other triangle of the matrix; SciPy 1.18 fills it with zeros."""
    return bool(scipy.linalg.cho_factor(np.array([[2.0, 1.0], [1.0, 3.0]]))[0][1, 0])


@made
def cho_solve(c_and_lower: Any, b: Any) -> Any:
    """Return the solution of a system, given the Cholesky factor of its matrix."""
    factor, lower = c_and_lower
    return _cho_solve(factor, b, bool(np.all(plain_values(lower))))


@stacked(2, None)
def _cho_solve(factor: Any, b: Any, lower: bool) -> Any:
    factor, b = numbers(factor), numbers(b)
    lower_factor = np.tril(factor) if lower else np.triu(factor).mT.conj()
    return np.linalg.solve(lower_factor.mT.conj(), np.linalg.solve(lower_factor, b))


@made
@stacked(2)
def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> Any:
    """Return the factors P, L and U; the permutation P is not differentiated."""
    a = numbers(a)
    rows = scipy.linalg.lu(plain_values(a), p_indices=True)[0]
    permuted = np.take(a, np.argsort(rows), -2)
    lower, upper = without_pivots(permuted)
    if permute_l:
        return np.take(lower, rows, -2), upper
    return (as_tensors(rows), lower, upper) if p_indices else (as_operand(np.eye(len(rows))[rows]), lower, upper)


def without_pivots(a: Any) -> tuple[Any, Any]:
    """Return the triangular factors of a matrix whose rows are already permuted."""
    m, n = a.shape
    work = eliminated(a)
    size = min(m, n)
    lower = np.tril(work, -1)[:, :size] + np.eye(m, size, dtype=a.dtype)
    return lower, np.triu(work)[:size]


def eliminated(a: Any) -> Any:
    """Return both triangular factors in one matrix; the rows are already permuted."""
    m, n = a.shape
    work = a.clone()
    for k in range(min(m - 1, n)):
        if plain_values(work[k, k]) == 0:  # as in LAPACK; pivoting leaves only zeros below
            work[k + 1 :, k] = Undetermined.apply(work[k + 1 :, k], "a pivot is zero, so the factors are not unique")
        else:
            work[k + 1 :, k] = work[k + 1 :, k] / work[k, k]
        if k + 1 < n:
            work[k + 1 :, k + 1 :] = work[k + 1 :, k + 1 :] - work[k + 1 :, k : k + 1] * work[k : k + 1, k + 1 :]
    return work


@made
@stacked(2)
def lu_factor(a: Any) -> Any:
    """Return both triangular factors in one matrix, and the row permutation."""
    a = numbers(a)
    pivots = scipy.linalg.lu_factor(plain_values(a))[1]
    order = np.arange(a.shape[0])
    for place, other in enumerate(pivots):
        order[[place, other]] = order[[other, place]]
    return eliminated(np.take(a, order, 0)), as_tensors(pivots)


@made
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Any:
    """Return the solution of a system, given the LU factorization of its matrix."""
    if trans not in (0, 1, 2):
        raise ValueError(f"trans is 0, 1 or 2, not {trans!r}")
    return _lu_solve(*lu_and_piv, b, trans)


@stacked(2, 1, None)
def _lu_solve(factors: Any, pivots: Any, b: Any, trans: int) -> Any:
    factors, b = numbers(factors), numbers(b)
    order = np.arange(factors.shape[0])
    for place, other in enumerate(plain_values(pivots)):
        order[[place, other]] = order[[other, place]]
    lower, upper = np.tril(factors, -1) + np.eye(factors.shape[0]), np.triu(factors)
    if trans == 0:
        return np.linalg.solve(upper, np.linalg.solve(lower, np.take(b, order, 0)))
    if trans == 2:
        lower, upper = lower.conj(), upper.conj()
    found = np.linalg.solve(lower.mT, np.linalg.solve(upper.mT, b))
    return np.take(found, np.argsort(order), 0)


# From this size on, a banded system is solved as a sparse system, in linear time.
LARGE: Final = 64


@made
def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Any:
    """Return the solution of a system with a banded matrix, whose diagonals are the rows of `ab`."""
    below, above = (int(count) for count in l_and_u)
    return _solve_banded(ab, b, below, above)


@stacked(2, None)
def _solve_banded(ab: Any, b: Any, below: int, above: int) -> Any:
    ab = numbers(ab)
    diagonals = []
    for row in range(below + above + 1):
        offset = above - row
        if abs(offset) < ab.shape[1]:
            diagonals.append((ab[row, offset:] if offset >= 0 else ab[row, : ab.shape[1] + offset], offset))
    return _solved(diagonals, ab, b)


@made
@stacked(2, None)
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """Return the solution of a system with a symmetric positive definite banded matrix."""
    ab = numbers(ab)
    count, size = ab.shape
    diagonals = []
    for row in range(count):
        offset = row if lower else count - 1 - row
        diagonal = ab[row, : size - offset] if lower else ab[row, offset:]
        place = -offset if lower else offset
        if not offset and diagonal.is_complex():  # SciPy ignores the imaginary part
            diagonal = diagonal.real.astype(diagonal.dtype)
        diagonals.append((diagonal, place))
        if offset:
            diagonals.append((diagonal.conj(), -place))
    return _solved(diagonals, ab, b)


def _solved(diagonals: list[tuple[Any, int]], ab: Any, b: Any) -> Any:
    """Return the solution of a system whose matrix is given by its diagonals and their offsets."""
    size = ab.shape[1]
    if size < LARGE:
        matrix = from_array(np.zeros((size, size), ab.dtype))
        for diagonal, offset in diagonals:
            matrix = matrix + np.diag(diagonal, offset)
        return np.linalg.solve(matrix, numbers(b))
    rows = np.concatenate([np.arange(len(each)) + max(-offset, 0) for each, offset in diagonals])
    cols = np.concatenate([np.arange(len(each)) + max(offset, 0) for each, offset in diagonals])
    data = np.concatenate([each for each, _ in diagonals])
    return spsolve(ARRAYS["csc_array"]((data, (rows, cols)), shape=(size, size)), numbers(b), "NATURAL")


@made
def solve_circulant(c: Any, b: Any, **options: Any) -> Any:
    """Return the solution of a system with a circulant matrix."""
    return np.linalg.solve(MADE["circulant"](vector(c, "linalg.solve_circulant")), numbers(b))


@made
def solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    """Return the solution of a system with a Toeplitz matrix."""
    columns = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return np.linalg.solve(MADE["toeplitz"](*columns), numbers(b))


@made
@stacked(2, 2, 2)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Return the matrix X with `a @ X + X @ b == q`."""
    a, b, q = numbers(a), numbers(b), numbers(q)
    m, n = a.shape[0], b.shape[0]
    system = np.kron(a, np.eye(n)) + np.kron(np.eye(m), b.mT)
    return np.linalg.solve(system, q.reshape(-1)).reshape(m, n)


@made
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Return the matrix X with `a @ X + X @ a^H == q`."""
    return MADE["solve_sylvester"](a, numbers(a).mT.conj(), q)


@made
@stacked(2, 2)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """Return the matrix X with `a @ X @ a^H - X + q == 0`."""
    if method not in (None, "direct", "bilinear"):
        raise ValueError(f"Unknown solver {method}")
    a, q = numbers(a), numbers(q)
    size = a.shape[0]
    system = np.eye(size * size) - np.kron(a, a.conj())
    return np.linalg.solve(system, q.reshape(-1)).reshape(size, size)


# -- factors and functions ---------------------------------------------------------------------------------------------


@made
@stacked(2)
def qr(a: Any, lwork: Any = None, mode: str = "full", pivoting: bool = False) -> Any:
    """Return the orthogonal and the triangular factor and, with pivoting, the order of the columns."""
    a = numbers(a)
    if mode not in ("full", "r", "economic", "raw"):
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic', 'raw']")
    if mode == "raw":
        raise lost("scipy.linalg.qr", "for tensors with a history mode='raw' is not supported")
    if pivoting:
        order = scipy.linalg.qr(plain_values(a), mode="r", pivoting=True)[-1]
        return (*qr(a[..., order], mode=mode), order)
    if mode == "economic" or a.shape[-2] <= a.shape[-1]:
        q, r = np.linalg.qr(a, "reduced")
        return (r,) if mode == "r" else (q, r)
    rows, columns = a.shape
    q, r = np.linalg.qr(a, "reduced")
    r = np.concatenate([r, np.zeros((rows - columns, columns), r.dtype)])
    if mode == "r":
        return (r,)
    rest = np.array(scipy.linalg.qr(plain_values(a))[0][:, columns:])
    rest = Undetermined.apply(
        a.reshape(-1)[:1] * 0.0 + rest,
        "the columns that mode='full' adds to the orthogonal factor are arbitrary, so they have no derivative; "
        "use mode='economic'",
    )
    return np.concatenate([q, rest], -1), r


class Undetermined(Function):
    """Values that are not unique, and therefore have no derivative."""

    @staticmethod
    def forward(ctx: Any, values: Any, reason: str) -> Any:
        """Return the values."""
        ctx.reason = reason
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return a zero gradient if nothing depends on the values.

        Raises:
            DifferentiabilityError: otherwise.
        """
        if np.any(plain_values(grads[0])):
            raise DifferentiabilityError(ctx.reason)
        return grads[0], None


@made
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, lapack_driver: Any = None) -> Any:
    """Return the left singular vectors, the singular values and the right singular vectors."""
    return np.linalg.svd(numbers(a), full_matrices, compute_uv)  # type: ignore[call-overload]


@made
def svdvals(a: Any) -> Any:
    """Return the singular values."""
    return np.linalg.svdvals(numbers(a))


@made
def eigh(a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, **options: Any) -> Any:
    """Return the eigenvalues and eigenvectors of a symmetric matrix, or of a pair of them."""
    a = numbers(a)
    given = dict(options)
    options.pop("driver", None)
    kind = options.pop("type", 1)
    if options:
        known = ("subset_by_index", "subset_by_value")
        if any(value is not None and name not in known for name, value in options.items()):
            raise TypeError(f"eigh of tensors does not support {', '.join(options.keys() - set(known))}")
        whole = MADE["eigh"](a, b, lower=lower, eigvals_only=eigvals_only, type=kind)
        found = _selected(whole, a, b, lower, options | {"type": kind})
        return found if eigvals_only else _with_signs_of_scipy(found[0], found[1], a, b, lower=lower, **given)
    triangle = "L" if lower else "U"
    if b is None:
        if eigvals_only:
            return np.linalg.eigvalsh(a, triangle)  # type: ignore[call-overload]
        values, vectors = np.linalg.eigh(a, triangle)  # type: ignore[call-overload]
        return _with_signs_of_scipy(values, vectors, a, None, lower=lower, **given)
    factor = np.linalg.cholesky(self_adjoint(numbers(b), lower))
    a_full = self_adjoint(a, lower)
    if kind == 1:
        inner = np.linalg.solve(factor, np.linalg.solve(factor, a_full).mT.conj())
    else:  # the eigenvalues of a @ b and b @ a
        inner = factor.mT.conj() @ a_full @ factor
    if eigvals_only:
        return np.linalg.eigvalsh(inner)
    values, vectors = np.linalg.eigh(inner)
    vectors = factor @ vectors if kind == 3 else np.linalg.solve(factor.mT.conj(), vectors)
    return _with_signs_of_scipy(values, vectors, a, b, lower=lower, **given)


def _with_signs_of_scipy(values: Any, vectors: Any, a: Any, b: Any, **options: Any) -> tuple[Any, Any]:
    """Return the eigenvalues, and the eigenvectors with the signs that SciPy's driver chooses."""
    second = None if b is None else plain_values(numbers(b))
    return values, vectors * signs_between(vectors, scipy.linalg.eigh(plain_values(a), second, **options)[1])


def _selected(found: Any, a: Any, b: Any, lower: bool, options: dict[str, Any]) -> Any:
    """Return the eigenvalues in a range, by index or by value, and their eigenvectors."""
    second = None if b is None else plain_values(numbers(b))
    wanted = scipy.linalg.eigh(plain_values(a), second, lower=lower, eigvals_only=True, **options)
    values = found[0] if isinstance(found, tuple) else found
    if options.get("subset_by_index") is not None:
        first = int(options["subset_by_index"][0])
    elif options.get("subset_by_value") is not None:
        first = int((plain_values(values) <= options["subset_by_value"][0]).sum())
    else:
        first = 0
    chosen = slice(first, first + wanted.shape[-1])
    return (values[..., chosen], found[1][..., chosen]) if isinstance(found, tuple) else values[..., chosen]


@made
def eigvalsh(a: Any, b: Any = None, lower: bool = True, **options: Any) -> Any:
    """Return the eigenvalues of a symmetric matrix."""
    return MADE["eigh"](a, b, lower=lower, eigvals_only=True, **options)


@made
@stacked(2, 2)
def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, homogeneous_eigvals: bool = False) -> Any:
    """Return the eigenvalues and eigenvectors of a matrix, or of a pair of them, with left eigenvectors first."""
    if homogeneous_eigvals and b is not None:
        raise lost("scipy.linalg.eig", "the scale of homogeneous eigenvalues of two matrices is arbitrary")
    values, *vectors = _eigensystem(numbers(a), None if b is None else numbers(b), left, right)
    if homogeneous_eigvals:
        values = np.stack([values, np.ones_like(values)])
    return (values, *vectors) if vectors else values


def _eigensystem(a: Any, b: Any, left: bool, right: bool) -> tuple[Any, ...]:
    """Return the eigenvalues and the wanted eigenvectors, in SciPy's order."""
    try:
        product = a if b is None else np.linalg.solve(b, a)
    except np.linalg.LinAlgError as error:
        raise lost("scipy.linalg.eig", "infinite eigenvalues have no derivative; b is singular") from error
    in_order = b is None and product.dtype.char not in "fF"  # rounded values may be in another order
    if not right and not left:
        values = np.linalg.eigvals(product.astype(np.result_type(product.dtype, np.complex64)))
        return (values if in_order else values[order_of_scipy(values, a, b)],)
    values, vectors = np.linalg.eig(product)
    if not in_order:
        values, vectors = in_order_of_scipy(values, vectors, a, b)
    if vectors.dtype.kind == "c" and product.dtype.kind != "c" and not plain_values(values).imag.any():
        vectors = vectors.real  # NumPy 2.5 always returns complex eigenvalues
    values = values.astype(np.result_type(values.dtype, np.complex64))
    if not left:
        return values, vectors
    duals = np.linalg.inv(vectors).conj().mT
    if b is not None:
        duals = np.linalg.solve(b.conj().mT, duals)
    second = None if b is None else plain_values(b)
    wanted = scipy.linalg.eig(plain_values(a), second, left=True, right=right)[1]
    sizes = np.linalg.norm(duals, axis=0)
    is_unit = np.isclose(np.linalg.norm(wanted, axis=0), 1, atol=1e-4)  # SciPy 1.17 normalizes only some of a pair's
    duals = duals / (sizes if is_unit.all() else np.where(is_unit, sizes, largest_elements(duals)))
    phases = (plain_values(duals).conj() * wanted).sum(0)
    duals = duals * (phases / np.abs(phases))
    return (values, duals, vectors) if right else (values, duals)


@made
def eigvals(a: Any, b: Any = None, homogeneous_eigvals: bool = False) -> Any:
    """Return the eigenvalues of a matrix."""
    return MADE["eig"](a, b, left=False, right=False, homogeneous_eigvals=homogeneous_eigvals)


@made
def expm(A: Any) -> Any:
    """Return the matrix exponential; a number is treated as a 1 x 1 matrix."""
    a = numbers(A)
    return np.exp(a).reshape(1, 1) if a.size == 1 and a.ndim < 2 else OPERATORS["matrix_exp"].function(a)


@made
@stacked(2)
def sqrtm(A: Any, **options: Any) -> Any:
    """Return the principal square root of a matrix, differentiable seven times by Newton steps from SciPy's value.

    The gradient of the root X of A solves `X @ dX + dX @ X == dA`.
    """
    a = numbers(A)
    root = np.asarray(scipy.linalg.sqrtm(plain_values(a)))
    size = root.shape[0]
    constant = from_array(np.array(root))
    for _ in range(STEPS):
        system = np.kron(constant, np.eye(size)) + np.kron(np.eye(size), constant.mT)
        if np.linalg.matrix_rank(plain_values(system)) < size * size:
            raise lost("scipy.linalg.sqrtm", "the root of a singular matrix has no derivative")
        step = np.linalg.solve(system, (a - constant @ constant).reshape(-1)).reshape(size, size)
        constant = constant + step
    return constant


@compared
@stacked(2)
def logm(A: Any, **options: Any) -> Any:
    """Return the principal logarithm of a matrix with distinct eigenvalues."""
    a = numbers(A)
    values, vectors = np.linalg.eig(a)
    found = (vectors * np.log(values.astype(complex))) @ np.linalg.inv(vectors)
    return found.real.clone() if not np.iscomplexobj(scipy.linalg.logm(plain_values(a))) else found


@made
def det(a: Any) -> Any:
    """Return the determinant."""
    return np.linalg.det(numbers(a))


@made
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of a vector or a matrix."""
    return COMPOSITES["norm"](numbers(a), ord, axis, keepdims)


@made
def null_space(A: Any, rcond: Any = None) -> Any:
    """Raise an error, since the basis of a null space is arbitrary."""
    raise lost("scipy.linalg.null_space", "the basis of a null space is arbitrary; use np.linalg.svd")


# -- special matrices --------------------------------------------------------------------------------------------------


@made
def block_diag(*arrs: Any) -> Any:
    """Return the block diagonal matrix; stacks of matrices yield a stack."""
    parts = [with_ndim(numbers(part), 2) for part in arrs]
    dtype = np.result_type(*(part.dtype for part in parts))
    stacked = np.broadcast_shapes(*(part.shape[:-2] for part in parts))
    sizes = (sum(part.shape[-2] for part in parts), sum(part.shape[-1] for part in parts))
    matrix = from_array(np.zeros(stacked + sizes, dtype))
    row = column = 0
    for part in parts:
        matrix[..., row : row + part.shape[-2], column : column + part.shape[-1]] = part
        row, column = row + part.shape[-2], column + part.shape[-1]
    return matrix


@made
def toeplitz(c: Any, r: Any = None) -> Any:
    """Return the Toeplitz matrix with the given first column and row."""
    c = vector(c, "linalg.toeplitz").reshape(-1)
    r = c.conj() if r is None else vector(r, "linalg.toeplitz").reshape(-1)
    values = np.concatenate([r[1:][::-1], c])
    places = np.arange(c.size)[:, None] - np.arange(r.size)[None, :] + r.size - 1
    return values[places]


@made
def circulant(c: Any) -> Any:
    """Return the circulant matrix of a vector."""
    c = numbers(c)
    size = c.shape[-1]
    return c[..., (np.arange(size)[:, None] - np.arange(size)[None, :]) % size]


@made
def hankel(c: Any, r: Any = None) -> Any:
    """Return the Hankel matrix."""
    c = vector(c, "linalg.hankel").reshape(-1)
    last = c * 0 if r is None else vector(r, "linalg.hankel").reshape(-1)
    values = np.concatenate([c, last[1:]])
    return values[np.arange(c.size)[:, None] + np.arange(last.size)[None, :]]


@made
def companion(a: Any) -> Any:
    """Return the companion matrix of a polynomial."""
    a = vector(a, "linalg.companion")
    below = np.eye(a.size - 2, a.size - 1, dtype=a.dtype)
    return np.concatenate([(-a[1:] / (1.0 * a[0]))[None, :], below])


@made
@stacked(2, 2)
def khatri_rao(a: Any, b: Any) -> Any:
    """Return the Khatri-Rao product, the Kronecker products of corresponding columns."""
    a, b = numbers(a), numbers(b)
    return (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1])


@made
@stacked(2, 2)
def orthogonal_procrustes(A: Any, B: Any) -> Any:
    """Return the orthogonal matrix that best maps one matrix to another, and the sum of the singular values."""
    u, values, vh = np.linalg.svd((numbers(B).mT @ numbers(A).conj()).mT)
    return u @ vh, values.sum()
