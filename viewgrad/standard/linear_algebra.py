"""The functions of the standard's `linalg` namespace, with its keywords and named results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..operators import OPERATORS
from ..operators.composites import COMPOSITES
from ..tensor.creation import as_operand
from ..tensor.tensor import Tensor
from .functions import matrix_transpose

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def _row(name: str) -> Any:
    return OPERATORS[name].function


cholesky, cross, det, eigvalsh, inv, matmul = map(_row, ("cholesky", "cross", "det", "eigvalsh", "inv", "matmul"))
matrix_power, svdvals, tensordot, vecdot = map(_row, ("matrix_power", "svdvals", "tensordot", "vecdot"))
row_eigh, row_qr, row_slogdet, row_svd, row_solve = map(_row, ("eigh", "qr", "slogdet", "svd", "solve"))
row_outer, row_pinv, row_trace = map(_row, ("outer", "pinv", "trace"))
row_vector_norm = _row("vector_norm")


class EighResult(NamedTuple):
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order, and their eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The orthogonal and the upper triangular factor of matrices."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of determinants, and the logarithm of their absolute values."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The left singular vectors, the singular values in descending order, and the adjoint of the right singular
    vectors.
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


def eigh(x: Any, /, UPLO: str = "L") -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Arguments:
        x: matrices, in the last two dimensions.
        UPLO: the triangle to read, "L" or "U".

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.eigh(vg.Tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        Tensor([1., 2.])
    """
    return EighResult(*row_eigh(x, UPLO))


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Return the orthogonal and the upper triangular factor of matrices.

    Arguments:
        x: matrices, in the last two dimensions.
        mode: "reduced" or "complete".

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.qr(vg.eye(2)).R.shape
        (2, 2)
    """
    return QRResult(*row_qr(x, mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Return the signs of determinants, and the logarithms of their absolute values.

    Arguments:
        x: square matrices, in the last two dimensions.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.slogdet(vg.eye(2)).sign.item()
        1.0
    """
    return SlogdetResult(*row_slogdet(x))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular values and vectors of matrices.

    Arguments:
        x: matrices, in the last two dimensions.
        full_matrices: whether to complete the vectors to square matrices.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.svd(vg.Tensor([[3.0, 0.0], [0.0, 2.0]])).S
        Tensor([3., 2.])
    """
    return SVDResult(*row_svd(x, full_matrices))


def solve(x1: Any, x2: Any, /) -> Any:
    """Solve systems of linear equations.

    Arguments:
        x1: square matrices, in the last two dimensions.
        x2: a vector, if it has one dimension, or matrices of right-hand sides.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.solve(2 * vg.eye(2), vg.ones(2))
        Tensor([0.5, 0.5])
    """
    return row_solve(x1, x2)


def outer(x1: Any, x2: Any, /) -> Any:
    """Return the outer product of two vectors.

    Arguments:
        x1: a vector of length m.
        x2: a vector of length n.

    Returns:
        A tensor of shape (m, n).

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.outer(vg.ones(2), vg.ones(3)).shape
        (2, 3)
    """
    return row_outer(x1, x2)


def _largest_singular_share(x: Any) -> float:
    """Return the standard's default of `rtol`."""
    return float(max(x.shape[-2:]) * np.finfo(x.dtype).eps)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Return the pseudo-inverses of matrices.

    Arguments:
        x: matrices, in the last two dimensions.
        rtol: singular values below `rtol` times the largest count as zero.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.pinv(2 * vg.eye(2))
        Tensor([[0.5, 0. ],
                [0. , 0.5]])
    """
    x = as_operand(x)
    return row_pinv(x, _largest_singular_share(x) if rtol is None else rtol)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Return the rank of matrices: the number of singular values above a tolerance.

    Arguments:
        x: matrices, in the last two dimensions.
        rtol: singular values below `rtol` times the largest count as zero.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.matrix_rank(vg.eye(3)).item()
        3
    """
    values = svdvals(as_operand(x).detach())
    share = _largest_singular_share(x) if rtol is None else rtol
    share = as_operand(share)
    largest = values.max(axis=-1, keepdims=True) if values.shape[-1] else values
    return (values > largest * (share if not share.ndim else share.reshape(*share.shape, 1))).sum(axis=-1)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return the norms of matrices.

    Arguments:
        x: matrices, in the last two dimensions.
        keepdims: whether to keep these dimensions with length one.
        ord: "fro", "nuc", 1, 2, inf, or the negative of one of the numbers.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.matrix_norm(vg.Tensor([[3.0, 4.0]])).item()
        5.0
    """
    return COMPOSITES["matrix_norm"](x, keepdims=keepdims, ord=ord)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return the norms of vectors.

    Arguments:
        x: a tensor.
        axis: the dimensions over which each norm is taken; all of them if omitted.
        keepdims: whether to keep these with length one.
        ord: the order of the norm, a number or an infinity.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.vector_norm(vg.Tensor([3.0, 4.0])).item()
        5.0
    """
    return row_vector_norm(x, ord, axis, keepdims)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of matrices.

    Arguments:
        x: matrices, in the last two dimensions.
        offset: the diagonal; positive numbers are above the main diagonal.
        dtype: the dtype of the sums; by default, small integers are widened.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.trace(vg.eye(3)).item()
        3.0
    """
    x = as_operand(x)
    return row_trace(x if dtype is None else x.astype(dtype), offset, -2, -1)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return the diagonals of matrices, as a view.

    Arguments:
        x: matrices, in the last two dimensions.
        offset: the diagonal; positive numbers are above the main diagonal.

    Example:
        >>> import viewgrad as vg
        >>> vg.linalg.diagonal(vg.eye(2))
        Tensor([1., 1.])
    """
    return x.diagonal(offset, -2, -1)
