"""Functions that create sparse arrays: diagonals, blocks and Kronecker products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import scipy.sparse  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import as_argument, plain_values
from ..wrap import named_in, numbers
from .arrays import ARRAYS, SparseArray, as_sparse, is_sparse, picked, rearranged
from .arrays import _summed as summed
from .pattern import Pattern

MADE: Final[dict[str, Any]] = {}


made: Final = named_in(MADE)


def _kind(format: str | None, is_matrix: bool) -> Any:
    name = format if format in ("csr", "csc", "coo") else "csr"
    return ARRAYS[f"{name}_{'matrix' if is_matrix else 'array'}"]


def _by_numbers(diagonals: list[Any], make: Callable[[list[Any]], Any], format: str | None, is_matrix: bool) -> Any:
    """Return the sparse array with given values, arranged as the numbers in SciPy's array."""
    values = [numbers(each) for each in diagonals]
    dtype = np.result_type(*[each.dtype for each in values], np.float64)
    places = []
    start = 1
    for each in values:
        places.append(np.arange(start, start + each.size).reshape(each.shape))
        start += each.size
    coo = make(places).tocoo()
    data = np.concatenate([each.reshape(-1).astype(dtype) for each in values])
    return _kind(format, is_matrix)._of(Pattern(coo.row, coo.col, coo.shape), picked(data, coo.data))


def _diagonals(diagonals: Any, offsets: Any) -> tuple[list[Any], bool]:
    """Return the diagonals as a list, and whether there is only one."""
    if np.ndim(offsets) == 0:
        holds_arrays = len(diagonals) > 0 and np.ndim(plain_values(as_argument(diagonals[0]))) > 0
        return [diagonals[0] if holds_arrays else diagonals], True
    return list(diagonals), False


@made
def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None
) -> Any:
    """Return the sparse array with the given diagonals; gradients flow to them.

    Arguments:
        diagonals: arrays, tensors or scalars (which are repeated if `shape` is given); for `offsets=0`, a single one.
        offsets: the position of each diagonal: 0 is the main diagonal, k > 0 is above it.
        shape: the shape of the array; by default square.
        format: `"csr"` (the default), `"csc"` or `"coo"`.
        dtype: the dtype of the array.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy import sparse
        >>> d = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> a = sparse.diags_array([d, d[1:]], offsets=[0, -1])
        >>> (a @ vg.ones(3)).sum().backward()
        >>> d.grad
        Tensor([1., 2., 2.])
    """
    return _diags(diagonals, offsets, shape, format, dtype, is_matrix=False)


@made
def diags(
    diagonals: Any, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None
) -> Any:
    """Return the sparse matrix with the given diagonals; see `diags_array`."""
    return _diags(diagonals, offsets, shape, format, dtype, is_matrix=True)


def _diags(diagonals: Any, offsets: Any, shape: Any, format: str | None, dtype: Any, is_matrix: bool) -> Any:
    parts, is_one = _diagonals(diagonals, offsets)
    where = offsets if not is_one else [int(plain_values(offsets))]
    array = _by_numbers(
        parts, lambda n: scipy.sparse.diags_array(n, offsets=where, shape=shape, dtype=np.int64), format, is_matrix
    )
    return array if dtype is None else array.astype(dtype)


@made
def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: str | None = None) -> Any:
    """Return the sparse matrix whose diagonals are rows of `data`; see `scipy.sparse.spdiags`."""
    values = numbers(data)
    return _by_numbers([values], lambda numbers: scipy.sparse.spdiags(numbers[0], diags, m, n), format, True)


def _numbered(value: Any, flat: list[Any]) -> Any:
    """Return nested lists of blocks with their numbers in `flat`, to which they are appended."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [_numbered(each, flat) for each in value]
    if value is None:
        return None
    flat.append(value if is_sparse(value) else ARRAYS["coo_array"](np.atleast_2d(numbers(value))))
    return len(flat) - 1


def _with_arrays(node: Any, arrays: Sequence[Any]) -> Any:
    """Return nested lists of numbers with the arrays in place of these."""
    if isinstance(node, list):
        return [_with_arrays(each, arrays) for each in node]
    return None if node is None else arrays[node]


def _stacking(name: str) -> None:
    scipys = getattr(scipy.sparse, name)

    def stacked(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
        flat: list[Any] = []
        tree = _numbered(blocks, flat)

        def make(*arrays: Any) -> Any:
            return scipys(_with_arrays(tree, arrays))

        sparse = [each for each in flat if is_sparse(each)]
        is_matrix = bool(sparse) and all(_is_matrix(each) for each in sparse) and name != "block_array"
        kind = _kind(format, is_matrix)
        array = rearranged(make, [as_sparse(each) for each in flat], kind)
        return array if dtype is None else array.astype(dtype)

    stacked.__name__ = stacked.__qualname__ = name
    stacked.__doc__ = f"`scipy.sparse.{name}` of sparse arrays of tensors."
    MADE[name] = stacked


for _name in ("hstack", "vstack", "block_array", "bmat", "block_diag"):
    _stacking(_name)


def _is_matrix(value: Any) -> bool:
    return value.is_matrix if isinstance(value, SparseArray) else not isinstance(value, scipy.sparse.sparray)


@made
def tril(A: Any, k: int = 0, format: str | None = None) -> Any:
    """Return the lower triangle."""
    return rearranged(lambda each: scipy.sparse.tril(each, k), [A], _kind(format, _is_matrix(A)))


@made
def triu(A: Any, k: int = 0, format: str | None = None) -> Any:
    """Return the upper triangle."""
    return rearranged(lambda each: scipy.sparse.triu(each, k), [A], _kind(format, _is_matrix(A)))


@made
def kron(A: Any, B: Any, format: str | None = None) -> Any:
    """Return the Kronecker product."""
    first, second = _sparse_of(A), _sparse_of(B)
    (p, left), (q, right) = summed(first), summed(second)
    rows = (np.asarray(p.rows, np.int64)[:, None] * second.shape[0] + q.rows).reshape(-1)
    cols = (np.asarray(p.cols, np.int64)[:, None] * second.shape[1] + q.cols).reshape(-1)
    shape = (first.shape[0] * second.shape[0], first.shape[1] * second.shape[1])
    data = (left[:, None] * right).reshape(-1)
    return _kind(format, first.is_matrix and second.is_matrix)._of(Pattern(rows, cols, shape), data)


@made
def kronsum(A: Any, B: Any, format: str | None = None) -> Any:
    """Return the Kronecker sum of two square matrices."""
    first, second = _sparse_of(A), _sparse_of(B)
    if first.shape[0] != first.shape[1] or second.shape[0] != second.shape[1]:
        raise ValueError("kronsum requires square matrices")
    dtype = np.result_type(first.dtype, second.dtype)
    found = kron(eye_array(second.shape[0], dtype=dtype), first) + kron(second, eye_array(first.shape[0], dtype=dtype))
    return _kind(format, first.is_matrix and second.is_matrix)._of(found.pattern, found.data)


@made
def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: str | None = None) -> Any:
    """Return the sparse array with ones on a diagonal."""
    return _kind(format, False)(scipy.sparse.eye_array(m, n, k=k, dtype=dtype))


@made
def eye(m: int, n: int | None = None, k: int = 0, dtype: Any = float, format: str | None = None) -> Any:
    """Return the sparse matrix with ones on a diagonal."""
    return _kind(format, True)(scipy.sparse.eye_array(m, n, k=k, dtype=dtype))


@made
def identity(n: int, dtype: Any = "d", format: str | None = None) -> Any:
    """Return the sparse identity matrix."""
    return _kind(format, True)(scipy.sparse.eye_array(n, dtype=dtype))


@made
def find(A: Any) -> Any:
    """Return the rows, columns and values of the nonzero elements."""
    pattern, data = summed(_sparse_of(A))
    order = np.lexsort((pattern.cols, pattern.rows))
    kept = order[plain_values(data.detach())[order] != 0]
    return pattern.rows[kept], pattern.cols[kept], data[kept]


@made
def issparse(x: Any) -> bool:
    """Return whether a value is a sparse array or matrix."""
    return is_sparse(x)


@made
def isspmatrix(x: Any) -> bool:
    """Return whether a value is a sparse matrix."""
    return is_sparse(x) and _is_matrix(x)


def _sparse_of(value: Any) -> Any:
    return as_sparse(value) if is_sparse(value) else ARRAYS["csr_array"](value)
