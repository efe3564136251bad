"""The pattern of a sparse matrix: the positions of its stored values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse  # type: ignore[import-untyped]

from ...type_aliases import Array


class Pattern:
    """The rows and columns of stored values, in order; immutable.

    Arguments:
        rows, cols: the row and column of each stored value; positions may occur more than once.
        shape: the shape of the matrix.
    """

    def __init__(self, rows: Array, cols: Array, shape: tuple[int, int]) -> None:
        self.rows, self.cols, self.shape = rows, cols, shape
        self._transposed: Pattern | None = None
        self._compressed: tuple[Array, Array, Array] | None = None

    @property
    def count(self) -> int:
        """The number of stored values."""
        return len(self.rows)

    @property
    def transposed(self) -> Pattern:
        """The pattern of the transpose, with the stored values in the same order."""
        if self._transposed is None:
            self._transposed = Pattern(self.cols, self.rows, self.shape[::-1])
            self._transposed._transposed = self
        return self._transposed

    def compressed(self) -> tuple[Array, Array, Array]:
        """Return `(order, columns, row starts)`, where `order` sorts the values by row."""
        if self._compressed is None:
            order = np.lexsort((self.cols, self.rows))
            starts = np.zeros(self.shape[0] + 1, np.int64)
            np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=starts[1:])
            self._compressed = order, self.cols[order], starts
        return self._compressed

    def matrix(self, values: Array) -> Any:
        """Return SciPy's CSR array with given stored values."""
        order, columns, starts = self.compressed()
        return scipy.sparse.csr_array((values[order], columns, starts), shape=self.shape)

    def numbered(self) -> Any:
        """Return a SciPy array with stored values 1, 2, ..., which reveals where operations move them."""
        return self.matrix(np.arange(1, self.count + 1))

    @property
    def has_duplicates(self) -> bool:
        """Return whether a position occurs more than once."""
        order, columns, _ = self.compressed()
        rows = self.rows[order]
        return bool(((rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])).any())
