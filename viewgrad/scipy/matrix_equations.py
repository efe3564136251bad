"""Equations of Riccati, functions of matrices and matrices of bands, of `scipy.linalg`, for tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg as theirs  # type: ignore[import-untyped]

from ..numpy.functions import lost
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..operators.define import OPERATORS
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.tensor import Tensor
from .implicit import root_place

__all__ = ["EQUATIONS"]

EQUATIONS: Final[dict[str, Any]] = {}


def _made(function: Callable[..., Any]) -> Any:
    EQUATIONS[function.__name__] = function
    return function


def _plain(value: Any) -> Any:
    found = as_argument(value)
    return np.array(plain_values(found.detach())) if isinstance(found, Tensor) else found


def _operand(value: Any) -> Any:
    return as_operand(as_argument(value)) * 1.0


def _riccati(name: str, residual: Callable[..., Any]) -> None:
    scipys = getattr(theirs, name)

    def solve(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
        found = scipys(*map(_plain, (a, b, q, r, e, s)), balanced)
        if not carries_history((a, b, q, r, e, s)):
            return as_tensors(found)
        a, b, q, r = (np.atleast_2d(_operand(each)) for each in (a, b, q, r))
        e = as_tensors(np.eye(len(found))) if e is None else _operand(e)
        s = as_tensors(np.zeros(b.shape)) if s is None else _operand(s)
        return root_place(lambda x: residual(x, a, b, q, r, e, s), found)

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__ = f"`scipy.linalg.{name}`, with gradients to all matrices."
    EQUATIONS[name] = solve


def _discrete(x: Any, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    gain = np.linalg.solve(r + b.mT @ x @ b, b.mT @ x @ a + s.mT)
    return a.mT @ x @ a - e.mT @ x @ e - (a.mT @ x @ b + s) @ gain + q


def _continuous(x: Any, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    gain = np.linalg.solve(r, b.mT @ x @ e + s.mT)
    return a.mT @ x @ e + e.mT @ x @ a - (e.mT @ x @ b + s) @ gain + q


_riccati("solve_discrete_are", _discrete)
_riccati("solve_continuous_are", _continuous)


def _of_matrix(name: str, formula: Callable[..., Any]) -> None:
    """A function of a matrix that is written by exponentials."""
    scipys = getattr(theirs, name)

    def call(A: Any, *args: Any) -> Any:
        return formula(_operand(A), *args) if holds_tensor(A) else as_tensors(scipys(A, *args))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.linalg.{name}` of a matrix."
    EQUATIONS[name] = call


def _expm(matrix: Any) -> Any:
    return OPERATORS["matrix_exp"].function(matrix)


def _cosine(a: Any) -> Any:
    return _expm(1j * a).real if a.dtype.kind != "c" else (_expm(1j * a) + _expm(-1j * a)) / 2


def _sine(a: Any) -> Any:
    return _expm(1j * a).imag if a.dtype.kind != "c" else (_expm(1j * a) - _expm(-1j * a)) / 2j


_of_matrix("cosm", _cosine)
_of_matrix("sinm", _sine)
_of_matrix("tanm", lambda a: np.linalg.solve(_cosine(a), _sine(a)))
_of_matrix("coshm", lambda a: (_expm(a) + _expm(-a)) / 2)
_of_matrix("sinhm", lambda a: (_expm(a) - _expm(-a)) / 2)
_of_matrix("tanhm", lambda a: np.linalg.solve(_expm(a) + _expm(-a), _expm(a) - _expm(-a)))
_of_matrix("pinvh", lambda a: np.linalg.pinv(a, hermitian=True))


@_made
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, *args: Any, **options: Any) -> Any:
    """The eigenvalues and eigenvectors of a symmetric matrix of three diagonals."""
    if not holds_tensor((d, e)) or args or options:
        return as_tensors(theirs.eigh_tridiagonal(_checked(d), _checked(e), eigvals_only, *args, **options))
    matrix = np.diag(_operand(d)) + np.diag(_operand(e), 1) + np.diag(_operand(e), -1)
    return np.linalg.eigvalsh(matrix) if eigvals_only else tuple(np.linalg.eigh(matrix))


@_made
def eigvalsh_tridiagonal(d: Any, e: Any, *args: Any, **options: Any) -> Any:
    """The eigenvalues of a symmetric matrix of three diagonals."""
    return eigh_tridiagonal(d, e, True, *args, **options)


def _checked(value: Any) -> Any:
    """Values for SciPy: an error where a history would be lost."""
    return np.asarray(as_argument(value))


def _from_bands(bands: Any, lower: bool) -> Any:
    """The symmetric matrix of which the diagonals on one side are given."""
    count, size = bands.shape
    matrix = as_tensors(np.zeros((size, size))) * 1.0
    for away in range(count):
        row = bands[away, : size - away] if lower else bands[count - 1 - away, away:]
        matrix = matrix + np.diag(row, -away) + (np.diag(row, away) if away else 0.0)
    return matrix


@_made
def cholesky_banded(ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Any:
    """Cholesky's factor of a symmetric matrix of bands, as bands."""
    if not holds_tensor(ab):
        return as_tensors(theirs.cholesky_banded(ab, False, lower, check_finite))
    bands = _operand(ab)
    count = bands.shape[0]
    factor = np.linalg.cholesky(_from_bands(bands, lower))
    rows = []
    for away in range(count):
        diagonal = np.diagonal(factor, -away)
        rest = as_tensors(np.zeros(away))
        rows.append(np.concatenate([diagonal, rest] if lower else [rest, diagonal]))
    return np.stack(rows if lower else rows[::-1])


@_made
def cho_solve_banded(cb_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The solution of equations, of Cholesky's factor of a matrix of bands."""
    bands, lower = cb_and_lower
    if not holds_tensor((bands, b)):
        return as_tensors(theirs.cho_solve_banded((bands, lower), b, False, check_finite))
    bands = _operand(bands)
    count, size = bands.shape
    factor = as_tensors(np.zeros((size, size))) * 1.0
    for away in range(count):
        factor = factor + np.diag(bands[away, : size - away] if lower else bands[count - 1 - away, away:], -away)
    return np.linalg.solve(factor.T, np.linalg.solve(factor, _operand(b)))


@_made
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with a vector of length `n` is its convolution with `a`."""
    if not holds_tensor(a):
        return as_tensors(theirs.convolution_matrix(a, n, mode))
    a = _operand(a)
    places = theirs.convolution_matrix(np.arange(1, a.shape[-1] + 1), n, mode)
    return np.where(places > 0, a[..., np.maximum(places - 1, 0)], 0.0)


@_made
def polar(a: Any, side: str = "right") -> Any:
    """A unitary matrix and a positive one whose product is the matrix."""
    if not holds_tensor(a):
        return as_tensors(theirs.polar(a, side))
    a = _operand(a)
    _, plain_positive = theirs.polar(_plain(a), side)
    square = (a.mT.conj() @ a) if side == "right" else (a @ a.mT.conj())
    if square.dtype.kind == "c":
        raise lost("scipy.linalg.polar", "take the factors of svd, for complex matrices")
    positive = root_place(lambda x: x @ x - square, plain_positive)
    unitary = a @ np.linalg.inv(positive) if side == "right" else np.linalg.solve(positive, a)
    return unitary, positive
