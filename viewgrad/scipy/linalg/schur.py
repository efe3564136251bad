"""Orthogonal reductions of `scipy.linalg`: the Schur and the Hessenberg form, with their derivatives.

The orthogonal factor depends on the matrix such that the zeros of the form remain zeros. Rotations near SciPy's factor
are written as Cayley transforms of skew-symmetric matrices, whose elements are computed by Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg  # type: ignore[import-untyped]

from ...errors import DifferentiabilityError
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, plain_values
from ..implicit_diff import root_of_many
from ..wrap import Accepted, floating, maker

MADE: dict[str, Any] = {}
made: Final = maker(scipy.linalg, MADE, is_checked=True, accepted=Accepted())


def _rotated(a: Any, q: Any, rows: Any, columns: Any, equations: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the reduced form of a matrix and the orthogonal factor, with their histories.

    Arguments:
        a: the matrix.
        q: SciPy's factor.
        rows, columns: the free elements of the skew-symmetric matrix, as many as there are equations.
        equations: a function that returns the elements of the reduced form that vanish.
    """
    found, one = as_tensors(q), np.eye(len(q))

    def factor(x: Any) -> Any:
        half: Any = as_tensors(np.zeros_like(one)) * 1.0
        half[rows, columns] = x
        half = half - half.T
        return found @ np.linalg.solve(one - half, one + half)

    def remaining(x: Any) -> Any:
        turned = factor(x)
        return equations(turned.T @ a @ turned)

    turned = factor(root_of_many(remaining, np.zeros(len(rows))))
    return turned.T @ a @ turned, turned


def _square(a: Any, name: str) -> Any:
    matrix = floating(a)
    if matrix.ndim != 2 or matrix.dtype.kind == "c":
        raise lost(f"scipy.linalg.{name}", "for tensors with a history only a single real matrix is supported")
    return matrix


@made
def schur(a: Any, output: str = "real", lwork: Any = None, overwrite_a: bool = False, sort: Any = None) -> Any:
    """Return the real Schur form of a matrix and the orthogonal factor; both are differentiable.

    Raises:
        DifferentiabilityError: for repeated eigenvalues, whose eigenvectors are arbitrary.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.linalg import schur
        >>> a = vg.Tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
        >>> form, factor = schur(a)
        >>> vg.autograd.grad(form[0, 0], a)[0]
        Tensor([[ 1.,  0.],
                [-1.,  0.]])
    """
    if output not in ("real", "r"):
        raise lost("scipy.linalg.schur", "omit output: the phases of a complex form are arbitrary")
    matrix = _square(a, "schur")
    form, q, *count = scipy.linalg.schur(plain_values(matrix), sort=sort)
    paired = np.diagonal(form, -1) != 0
    pairs = np.flatnonzero(paired)
    values = np.linalg.eigvals(form)
    gaps = np.abs(values[:, None] - values)[~np.eye(len(values), dtype=bool)]
    even = np.abs(form[pairs + 1, pairs] + form[pairs, pairs + 1])  # a multiple of a rotation is one in any basis
    if np.min(np.concatenate([gaps, even]), initial=np.inf) <= 1e-12 * np.max(np.abs(form), initial=0.0):
        raise DifferentiabilityError(
            "two eigenvalues are equal, or a 2 x 2 block is a multiple of a rotation, so the Schur form has no "
            "derivative; use functions that do not need the form, such as expm or eigvals"
        )
    rows, columns = np.tril_indices(len(form), -1)
    below = ~((rows == columns + 1) & paired[columns])

    def equations(t: Any) -> Any:
        return np.concatenate([t[rows[below], columns[below]], t[pairs, pairs] - t[pairs + 1, pairs + 1]])

    t, z = _rotated(matrix, q, rows, columns, equations)
    return (t * (form != 0), z, *count)


@made
def hessenberg(a: Any, calc_q: bool = False, overwrite_a: bool = False) -> Any:
    """Return the Hessenberg form of a matrix and, with `calc_q`, the orthogonal factor; both are differentiable.

    Raises:
        DifferentiabilityError: if an element next to the diagonal vanishes, so that the factor is arbitrary.
    """
    matrix = _square(a, "hessenberg")
    form, q = scipy.linalg.hessenberg(plain_values(matrix), calc_q=True)
    rows, columns = np.tril_indices(len(form), -1)
    inner = columns > 0
    beside = np.abs(np.diagonal(form, -1))[:-1]
    if np.min(beside, initial=np.inf) <= 1e-12 * np.max(np.abs(form), initial=0.0):
        raise DifferentiabilityError("the Hessenberg form is reducible, so it has no derivative")
    away = rows > columns + 1
    h, turned = _rotated(matrix, q, rows[inner], columns[inner], lambda h: h[rows[away], columns[away]])
    h = np.triu(h, -1)
    return (h, turned) if calc_q else h
