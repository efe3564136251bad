"""Functions of matrices, further factorizations, and banded and structured matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, plain_values
from ..implicit_diff import STEPS
from ..wrap import Accepted, floating, maker, vector
from .eigenvector_signs import signs_between
from .solve import MADE as BASE
from .solve import self_adjoint, without_pivots
from .stacks import stacked

MADE: dict[str, Any] = {}
made: Final = maker(scipy.linalg, MADE, is_checked=True, accepted=Accepted())
compared: Final = maker(scipy.linalg, MADE, is_compared=True)
expm: Final = BASE["expm"]


# -- functions of matrices ---------------------------------------------------------------------------------------------


@made
@stacked(2, 2)
def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True) -> Any:
    """Return the exponential of a matrix, and its derivative in the direction of another."""
    a, e = floating(A), floating(E)
    size = a.shape[0]
    whole = expm(np.concatenate([np.concatenate([a, e], 1), np.concatenate([a * 0.0, a], 1)]))
    return (whole[:size, :size], whole[:size, size:]) if compute_expm else whole[:size, size:]


def _cosine_and_sine(a: Any) -> tuple[Any, Any]:
    """Return the cosine and the sine of a matrix."""
    if a.dtype.kind == "c":
        forth, back = expm(1j * a), expm(-1j * a)
        return (forth + back) / 2, (forth - back) / 2j
    forth = expm(1j * a)
    return forth.real * 1.0, forth.imag * 1.0


@made
def cosm(A: Any) -> Any:
    """Return the cosine of a matrix."""
    return _cosine_and_sine(floating(A))[0]


@made
def sinm(A: Any) -> Any:
    """Return the sine of a matrix."""
    return _cosine_and_sine(floating(A))[1]


@made
def tanm(A: Any) -> Any:
    """Return the tangent of a matrix."""
    return np.linalg.solve(*_cosine_and_sine(floating(A)))


@made
def coshm(A: Any) -> Any:
    """Return the hyperbolic cosine of a matrix."""
    a = floating(A)
    return (expm(a) + expm(-a)) / 2


@made
def sinhm(A: Any) -> Any:
    """Return the hyperbolic sine of a matrix."""
    a = floating(A)
    return (expm(a) - expm(-a)) / 2


@made
def tanhm(A: Any) -> Any:
    """Return the hyperbolic tangent of a matrix."""
    a = floating(A)
    return np.linalg.solve(expm(a) + expm(-a), expm(a) - expm(-a))


@compared
def signm(A: Any, **options: Any) -> Any:
    """Return the matrix sign function, by Newton iteration."""
    a = found = floating(A)
    more = STEPS
    while more:
        try:
            last, found = found, (found + np.linalg.inv(found)) / 2
        except np.linalg.LinAlgError as error:
            raise lost("scipy.linalg.signm", "the sign of a singular matrix has no derivative") from error
        gap = np.abs(plain_values(found) - plain_values(last)).max()
        more -= bool(gap <= 1e-10 * np.abs(plain_values(found)).max())
        if not np.isfinite(gap):
            raise lost("scipy.linalg.signm", "the sign of an eigenvalue of the matrix is undefined")
    return found if found.dtype.kind == a.dtype.kind else found.astype(a.dtype)


def _by_eigenvalues(a: Any, function: Callable[[Any], Any], plain: Any) -> Any:
    """Return a function of a matrix with distinct eigenvalues, real if SciPy's result is real."""
    values, vectors = np.linalg.eig(a.astype(np.result_type(a.dtype, np.complex64)))
    found = (vectors * function(values)) @ np.linalg.inv(vectors)
    return found.real * 1.0 if np.isrealobj(plain) else found


@made
@stacked(2)
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """Return a power of a matrix with distinct eigenvalues."""
    a = floating(A)
    power = float(plain_values(t)) if not hasattr(t, "requires_grad") else None
    if power is not None and power == int(power):
        return np.linalg.matrix_power(a, int(power))
    plain = scipy.linalg.fractional_matrix_power(np.array(plain_values(a)), float(np.asarray(plain_values(t))))
    return _by_eigenvalues(a, lambda values: values**t, plain)


@made
@stacked(2)
def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """Return a function of a matrix with distinct eigenvalues."""
    if not disp:
        raise lost("scipy.linalg.funm", "disp=False is not supported for tensors with a history")
    a = floating(A)

    def of_numbers(x: Any) -> Any:
        return np.asarray(plain_values(func(as_tensors(np.array(x)))))

    plain = scipy.linalg.funm(np.array(plain_values(a)), of_numbers)
    return _by_eigenvalues(a, func, plain)


# -- factors -----------------------------------------------------------------------------------------------------------


def _adjoint(a: Any) -> Any:
    return a.mT.conj()


@made
@stacked(2)
def polar(a: Any, side: str = "right") -> Any:
    """Return the unitary and the positive factor of a full-rank matrix."""
    a = floating(a)
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    tall = a.shape[0] >= a.shape[1]
    p = BASE["sqrtm"](_adjoint(a) @ a if tall else a @ _adjoint(a))
    u = _adjoint(np.linalg.solve(_adjoint(p), _adjoint(a))) if tall else np.linalg.solve(p, a)
    if tall == (side == "right"):
        return u, p
    return u, u @ p @ _adjoint(u) if tall else _adjoint(u) @ p @ u


@made
@stacked(2)
def ldl(A: Any, lower: bool = True, hermitian: bool = True) -> Any:
    """Return the triangular and the diagonal factor of a symmetric matrix that needs no 2 x 2 blocks."""
    a = floating(A)
    _, d, order = scipy.linalg.ldl(np.array(plain_values(a)), lower, hermitian)
    if not lower or np.any(d != np.diag(np.diag(d))):
        raise lost("scipy.linalg.ldl", "for tensors with a history only lower=True and 1 x 1 blocks are supported")
    half = self_adjoint(a, True) if hermitian else np.tril(a) + np.tril(a, -1).mT
    factor, upper = without_pivots(half[order][:, order])
    return factor[np.argsort(order)], np.diag(np.diagonal(upper)), as_tensors(order)


@compared
@stacked(2)
def rq(a: Any, lwork: Any = None, mode: str = "full") -> Any:
    """Return the factors R and Q."""
    a = floating(a)
    rows, columns = a.shape
    if mode not in ("full", "r", "economic"):
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic']")
    if rows > columns or (rows < columns and mode != "economic"):
        raise lost(
            "scipy.linalg.rq",
            "for tensors with a history only mode='economic' and matrices that are not tall are supported",
        )
    q, r = np.linalg.qr(_adjoint(a[::-1]))
    triangle, orthogonal = _adjoint(r)[::-1, ::-1], _adjoint(q)[::-1]
    wanted = scipy.linalg.rq(np.array(plain_values(a)), mode="r" if mode == "r" else "economic")
    plain = wanted if mode == "r" else wanted[0]
    signs = signs_between(triangle, plain[-rows:, -rows:])
    triangle = triangle * signs
    return triangle if mode == "r" else (triangle, signs.conj().T * orthogonal)


@made
def pinvh(a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False) -> Any:
    """Return the pseudo-inverse of a symmetric matrix."""
    a = floating(a)
    return BASE["pinv"](self_adjoint(a, lower), atol=atol, rtol=rtol, return_rank=return_rank)


@made
@stacked(2)
def orth(A: Any, rcond: Any = None) -> Any:
    """Return an orthonormal basis of the range of a matrix."""
    a = floating(A)
    wanted = scipy.linalg.orth(np.array(plain_values(a)), rcond)
    basis = np.linalg.svd(a, full_matrices=False)[0][:, : wanted.shape[1]]
    return basis * signs_between(basis, wanted)


def _basis(a: Any) -> Any:
    """Return an orthonormal basis of the range of a matrix, whose columns may be linearly dependent."""
    full = np.linalg.matrix_rank(plain_values(a)) == min(a.shape) == a.shape[1]
    return np.linalg.qr(a)[0] if full else MADE["orth"](a)


@made
@stacked(2, 2)
def subspace_angles(A: Any, B: Any) -> Any:
    """Return the angles between two column spaces, in descending order."""
    first, second = (_basis(floating(each)) for each in (A, B))
    both = _adjoint(first) @ second
    cosines = np.linalg.svdvals(both)
    rest = second - first @ both if first.shape[1] >= second.shape[1] else first - second @ _adjoint(both)
    small = plain_values(cosines) ** 2 >= 0.5
    sines = np.linalg.svdvals(rest)[: cosines.shape[0]]
    wide = np.arccos(np.where(small[::-1], 0.0, np.clip(cosines[::-1], -1.0, 1.0)))
    return np.where(small[::-1], np.arcsin(np.where(small[::-1], np.clip(sines, -1.0, 1.0), 0.0)), wide)


# -- banded matrices ---------------------------------------------------------------------------------------------------


def _triangle(ab: Any, lower: bool) -> Any:
    """Return the triangular matrix with given diagonals, stored as rows."""
    count, size = ab.shape
    total: Any = 0.0
    for row in range(count):
        offset = row if lower else count - 1 - row
        total = total + (np.diag(ab[row, : size - offset], -offset) if lower else np.diag(ab[row, offset:], offset))
    return total


def _symmetric(ab: Any, lower: bool) -> Any:
    triangle = _triangle(floating(ab), lower)
    return triangle + _adjoint(np.tril(triangle, -1) if lower else np.triu(triangle, 1))


@made
@stacked(2)
def cholesky_banded(ab: Any, lower: bool = False) -> Any:
    """Return the Cholesky factor of a banded matrix, stored by diagonals."""
    bands = floating(ab)
    factor = BASE["cholesky"](_symmetric(ab, lower), lower)
    rows = []
    for row, band in enumerate(bands):
        offset = row if lower else bands.shape[0] - 1 - row
        diagonal = np.diagonal(factor, -offset if lower else offset)
        # The corner, which corresponds to no element of the matrix, is passed through.
        rows.append(np.concatenate([diagonal, band[diagonal.size :]] if lower else [band[:offset], diagonal]))
    return np.stack(rows)


@made
def cho_solve_banded(cb_and_lower: Any, b: Any) -> Any:
    """Return the solution of a system, given the factor of its banded matrix."""
    factor, lower = cb_and_lower
    return _cho_solve_banded(factor, b, lower)


@stacked(2, None)
def _cho_solve_banded(factor: Any, b: Any, lower: Any) -> Any:
    return BASE["cho_solve"]((_triangle(floating(factor), bool(lower)), lower), b)


def _eigenpairs(matrix: Any, name: str, args: tuple[Any, ...], vectors: bool, select: Any, bounds: Any) -> Any:
    """Return the selected eigenvalues of a symmetric matrix and, if wanted, their eigenvectors with SciPy's signs.

    Arguments:
        matrix: the whole matrix.
        name: the function of SciPy that computes them, given `args`.
        args: the diagonals and positional options; NumPy arrays.
        vectors: whether eigenvectors are wanted.
        select: which eigenvalues: all, those with values in `bounds`, or those with indices in `bounds`.
        bounds: two numbers, or None.
    """
    options = {"eigvals_only": not vectors, "select": select, "select_range": bounds}
    wanted = getattr(scipy.linalg, name)(*args, **options)
    found = BASE["eigh"](matrix, eigvals_only=not vectors)
    values = found[0] if vectors else found
    first = 0
    if str(select).lower() in ("v", "1", "value"):
        first = int((plain_values(values) <= min(bounds)).sum())
    elif str(select).lower() in ("i", "2", "index"):
        first = int(min(bounds))
    if not vectors:
        return values[first : first + wanted.size]
    chosen = slice(first, first + wanted[0].size)
    return values[chosen], found[1][:, chosen] * signs_between(found[1][:, chosen], wanted[1])


@made
@stacked(2)
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    max_ev: int = 0,
) -> Any:
    """Return the eigenvalues and eigenvectors of a symmetric banded matrix."""
    bands = floating(a_band)
    args = (np.array(plain_values(bands)), lower)
    # Of a single column LAPACK uses the first element, in either form.
    matrix = bands[:1] if bands.shape[1] == 1 else _symmetric(bands, lower)
    return _eigenpairs(matrix, "eig_banded", args, not eigvals_only, select, select_range)


@made
def eigvals_banded(
    a_band: Any, lower: bool = False, overwrite_a_band: bool = False, select: Any = "a", select_range: Any = None
) -> Any:
    """Return the eigenvalues of a symmetric banded matrix."""
    return MADE["eig_banded"](a_band, lower, eigvals_only=True, select=select, select_range=select_range)


@made
@stacked(1, 1)
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: Any = "a", select_range: Any = None) -> Any:
    """Return the eigenvalues and eigenvectors of a symmetric tridiagonal matrix."""
    d, e = floating(d), floating(e)
    args = (np.array(plain_values(d)), np.array(plain_values(e)))
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    return _eigenpairs(matrix, "eigh_tridiagonal", args, not eigvals_only, select, select_range)


@made
def eigvalsh_tridiagonal(d: Any, e: Any, select: Any = "a", select_range: Any = None) -> Any:
    """Return the eigenvalues of a symmetric tridiagonal matrix."""
    return MADE["eigh_tridiagonal"](d, e, True, select, select_range)


# -- structured matrices -----------------------------------------------------------------------------------------------


@made
def matmul_toeplitz(c_or_cr: Any, x: Any, workers: Any = None) -> Any:
    """Return the product of a Toeplitz matrix and a vector or matrix."""
    columns = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return BASE["toeplitz"](*(floating(each) for each in columns)) @ floating(x)


@made
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """Return the matrix that convolves a vector with a given one."""
    a = vector(a, "linalg.convolution_matrix") * 1.0
    size = a.shape[0]
    places = np.arange(size + n - 1)[:, None] - np.arange(n)[None, :]
    inside = (places >= 0) & (places < size)
    whole = np.where(inside, a[np.where(inside, places, 0)], 0.0)
    if mode == "full":
        return whole
    count = max(size, n) if mode == "same" else max(size, n) - min(size, n) + 1
    start = (min(size, n) - 1) // 2 if mode == "same" else min(size, n) - 1
    return whole[start : start + count] * 1.0


@made
def leslie(f: Any, s: Any) -> Any:
    """Return the Leslie matrix for given fecundities and survival rates."""
    f, s = floating(f), floating(s)
    return np.concatenate([f[None, :], np.concatenate([np.diag(s), np.zeros((s.shape[0], 1))], 1)])


@made
def fiedler(a: Any) -> Any:
    """Return the matrix of the distances between numbers."""
    a = vector(a, "linalg.fiedler") * 1.0
    return np.abs(a[:, None] - a[None, :]) if a.size else a


@made
@stacked(1)
def diagsvd(s: Any, M: int, N: int) -> Any:
    """Return the rectangular matrix with a given diagonal."""
    s = floating(s)
    count = s.shape[0]
    return np.pad(np.diag(s), [(0, M - count), (0, N - count)])


# -- control equations -------------------------------------------------------------------------------------------------


def _following(step: Callable[[Any], Any], found: Any) -> Any:
    """Apply Newton steps that carry derivatives to a solution found by SciPy."""
    start = solution = as_tensors(np.array(found))
    for _ in range(STEPS):
        solution = step(solution)
    return solution + (plain_values(start) - plain_values(solution.detach()))


def _riccati(name: str, step: Callable[..., Any]) -> None:
    def solve(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
        a, b, q, r = (floating(each) for each in (a, b, q, r))
        if e is not None:  # in the coordinates in which it is the identity
            e = floating(e)
            a, b = np.linalg.solve(e, a), np.linalg.solve(e, b)
        s = np.zeros(b.shape) if s is None else floating(s)
        plain = [np.array(plain_values(each)) for each in (a, b, q, r, s)]
        found = getattr(scipy.linalg, name)(*plain[:4], s=plain[4], balanced=balanced)
        x = _following(lambda x: step(x, a, b, q, r, s), found)
        return x if e is None else np.linalg.solve(_adjoint(e), _adjoint(np.linalg.solve(_adjoint(e), _adjoint(x))))

    solve.__name__ = name
    solve.__doc__ = f"`scipy.linalg.{name}`, differentiated by Kleinman iterations from SciPy's solution."
    made(solve)


def _closed(k: Any, q: Any, r: Any, s: Any) -> Any:
    """Return the cost of a state under a feedback law."""
    mixed = s @ k
    return q + _adjoint(k) @ r @ k - mixed - _adjoint(mixed)


def _continuous(x: Any, a: Any, b: Any, q: Any, r: Any, s: Any) -> Any:
    k = np.linalg.solve(r, _adjoint(b) @ x + _adjoint(s))
    return BASE["solve_continuous_lyapunov"](_adjoint(a - b @ k), -_closed(k, q, r, s))


def _discrete(x: Any, a: Any, b: Any, q: Any, r: Any, s: Any) -> Any:
    k = np.linalg.solve(r + _adjoint(b) @ x @ b, _adjoint(b) @ x @ a + _adjoint(s))
    return BASE["solve_discrete_lyapunov"](_adjoint(a - b @ k), _closed(k, q, r, s))


_riccati("solve_continuous_are", _continuous)
_riccati("solve_discrete_are", _discrete)


@made
def solve_lyapunov(a: Any, q: Any) -> Any:
    """Return the matrix X with `a @ X + X @ a^H == q`."""
    return BASE["solve_continuous_lyapunov"](a, q)
