"""Sparse arrays that support assignment: the LIL and DOK formats.

Elements are stored by position until a product or a conversion needs the stored values as one tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ...operators.numpy_api.conversion import as_argument, carries_history, plain_values
from ...tensor.creation import as_operand
from ..wrap import numbers
from .arrays import ARRAYS, NUMBERS, SparseArray, as_sparse, is_sparse, to_scipy
from .arrays import _summed as summed
from .pattern import Pattern


class AssignableArray(SparseArray):
    """A sparse array that supports assignment, used to assemble a matrix.

    Gradients flow to the elements. Products and solvers use the array as CSR.

    Arguments:
        arg1: a shape, or the elements: another sparse array, a dense array or tensor.
        shape: the shape, if `arg1` does not determine it.
        dtype: the dtype of the elements; by default double precision.
    """

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        given: Any = ARRAYS["coo_array"](arg1, shape)
        self._shape: tuple[int, int] = given.shape
        self._dtype: Any = np.dtype(dtype or (given.dtype if given.nnz else float))
        self._elements: dict[tuple[int, int], Any] = {}
        self._stored: tuple[Pattern, Any] | None = None
        pattern, data = summed(given)
        self._fill(pattern.rows, pattern.cols, data)

    @classmethod
    def _of(cls, pattern: Pattern, data: Any) -> Any:
        return ARRAYS[f"csr_{'matrix' if cls.is_matrix else 'array'}"]._of(pattern, data)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @property
    def pattern(self) -> Any:  # type: ignore[override]
        """The positions of the stored values."""
        return self._joined()[0]

    @property
    def data(self) -> Any:
        """The stored values."""
        return self._joined()[1]

    def _joined(self) -> tuple[Pattern, Any]:
        if self._stored is None:
            places = sorted(self._elements)
            rows, cols = (np.array([place[axis] for place in places], np.int32) for axis in (0, 1))
            values = [self._elements[place] for place in places]
            data = as_operand(values) if values else as_operand(np.zeros(0))
            data = data if data.dtype == self._dtype else data.astype(self._dtype)
            self._stored = Pattern(rows, cols, self._shape), data
        return self._stored

    def _fill(self, rows: Any, cols: Any, values: Any) -> None:
        is_plain = not carries_history(values)
        items = plain_values(values) if is_plain else values
        self._stored = None
        for place, (row, col) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
            item = items[place]
            if is_plain and item == 0:
                self._elements.pop((row, col), None)
            else:
                self._elements[row, col] = item

    def _places(self, index: Any) -> tuple[Any, Any]:
        """Return the rows and columns selected by an index, broadcast together."""
        index = plain_values(as_argument(index)) if not isinstance(index, tuple) else tuple(map(_plain_index, index))
        if not isinstance(index, tuple) and np.ndim(index) == 2 and np.asarray(index).dtype == bool:
            index = np.nonzero(index)
        pair = index if isinstance(index, tuple) else (index,)
        pair = (*pair, slice(None)) if len(pair) == 1 else pair
        parts, sliced = [], []
        for each, length in zip(pair, self._shape, strict=True):
            sliced.append(isinstance(each, slice))
            numbered = np.arange(length)
            parts.append(np.asarray(numbered[each]))
        rows, cols = parts
        if any(sliced) and rows.ndim <= 1 and cols.ndim <= 1:
            rows, cols = rows.reshape(-1, 1), cols.reshape(1, -1)
        rows, cols = np.broadcast_arrays(rows, cols)
        return rows, cols

    def __setitem__(self, index: Any, value: Any) -> None:
        rows, cols = self._places(_dense_index(index))
        if is_sparse(value) and value.shape == rows.shape:
            given, data = summed(as_sparse(value))
            self._fill(rows.reshape(-1), cols.reshape(-1), np.zeros(rows.size))
            self._fill(rows[given.rows, given.cols], cols[given.rows, given.cols], data.astype(self._dtype))
            return
        dense = numbers(value.toarray() if is_sparse(value) else value)
        if dense.dtype.kind == "c" and self._dtype.kind != "c":
            raise TypeError(f"complex elements do not fit into an array of {self._dtype}")
        dense = dense if dense.dtype == self._dtype else dense.astype(self._dtype)
        if dense.ndim == 1 and rows.shape == (dense.shape[0], 1):
            dense = dense[:, None]  # a column, to which one-dimensional arrays may be assigned
        self._fill(rows.reshape(-1), cols.reshape(-1), np.broadcast_to(dense, rows.shape).reshape(-1))

    def __getitem__(self, index: Any) -> Any:
        index = _dense_index(index)
        rows, cols = self._places(index)
        if not rows.ndim:
            return self._elements.get((int(rows), int(cols)), self._dtype.type(0))
        if not self.is_matrix and np.broadcast_to(False, self._shape)[plain_values(index)].ndim == 1:
            return self.tocsr()[index]
        found = type(self)(np.atleast_2d(rows).shape, dtype=self._dtype)
        for place in np.ndindex(found.shape):
            element = self._elements.get((int(np.atleast_2d(rows)[place]), int(np.atleast_2d(cols)[place])))
            if element is not None:
                found._elements[place[0], place[1]] = element
        return found

    def __truediv__(self, other: Any) -> Any:
        # unlike other formats, these remain in single precision
        return self._of(self.pattern, self.data / other) if type(other) in NUMBERS else super().__truediv__(other)

    def _kind(self, name: str) -> Any:
        return super()._kind("csr" if name in FORMATS else name)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Assign a value, or several, to a diagonal."""
        rows, cols = self._shape
        count = min(rows + min(k, 0), cols - max(k, 0))
        given = numbers(values)
        if given.ndim:
            count = min(count, given.shape[0])
            given = given[:count]
        place = np.arange(count)
        self[place - min(k, 0), place + max(k, 0)] = given

    def resize(self, *shape: Any) -> None:
        """Change the shape in place; elements outside the new shape are dropped."""
        self._pattern_only().resize(*shape)  # checks the arguments
        rows, cols = shape[0] if len(shape) == 1 else shape
        self._shape = int(rows), int(cols)
        self._elements = {place: each for place, each in self._elements.items() if place[0] < rows and place[1] < cols}
        self._stored = None

    def items(self) -> Iterator[tuple[tuple[int, int], Any]]:
        """Return pairs of a position and its element."""
        return iter(self._elements.items())

    def copy(self) -> Any:
        """Return an independent copy."""
        made = type(self)(self._shape, dtype=self._dtype)
        made._elements.update(self._elements)
        return made


def _dense_index(index: Any) -> Any:
    return to_scipy(index).toarray() if is_sparse(index) else index


def _plain_index(value: Any) -> Any:
    return value if isinstance(value, slice) else plain_values(as_argument(value))


FORMATS: Final = ("lil", "dok")
for _format in FORMATS:
    for _is_matrix in (False, True):
        _name = f"{_format}_{'matrix' if _is_matrix else 'array'}"
        ARRAYS[_name] = type(
            _name,
            (AssignableArray,),
            {"format": _format, "is_matrix": _is_matrix, "__doc__": AssignableArray.__doc__,
             "__module__": "viewgrad.scipy.sparse", "__qualname__": _name},
        )  # fmt: skip
