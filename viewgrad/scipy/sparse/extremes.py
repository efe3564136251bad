"""Maxima and minima of sparse arrays, and those of their rows or columns as sparse vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import plain_values
from ...tensor.creation import as_operand
from .pattern import Pattern
from .products import product


class SparseVector:
    """A one-dimensional sparse array whose stored values are a tensor, such as the maxima of rows.

    Arguments:
        data: the stored values.
        places: the index of each stored value.
        size: the number of elements.
    """

    ndim = 1
    format = "coo"

    def __init__(self, data: Any, places: Any, size: int) -> None:
        self.data, self.coords, self.shape = data, (places,), (size,)

    @property
    def dtype(self) -> Any:
        """The dtype of the stored values."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of stored values."""
        return len(self.coords[0])

    @property
    def requires_grad(self) -> bool:
        """Return whether the stored values have a history."""
        return bool(self.data.requires_grad)

    def toarray(self) -> Any:
        """Convert the vector to a dense tensor."""
        dense: Any = as_operand(np.zeros(self.shape, self.dtype))
        dense[self.coords[0]] = self.data
        return dense

    todense = toarray

    def sum(self) -> Any:
        """Return the sum of the elements."""
        return self.data.sum()

    def to_scipy(self) -> Any:
        """Return SciPy's array, with a copy of the stored values and without history."""
        return scipy.sparse.coo_array((np.array(plain_values(self.data)), self.coords), shape=self.shape)

    def __repr__(self) -> str:
        history = ", requires_grad=True" if self.requires_grad else ""
        return f"<SparseVector of {self.shape[0]} elements, {self.nnz} stored values of {self.dtype}{history}>"

    def __len__(self) -> int:
        raise TypeError("the length of a sparse array is ambiguous; use nnz or shape[0]")


def extremes(pattern: Pattern, data: Any, name: str, *, explicit: bool, skips_nan: bool) -> Any:
    """Return the maximum or minimum of each row, as a dense vector.

    Gradients are shared by equal elements, including zeros that are not stored.

    Arguments:
        pattern: the positions of the stored values, without duplicates.
        data: the stored values.
        name: "max" or "min".
        explicit: whether to ignore elements that are not stored, unless a row has no stored elements.
        skips_nan: whether to ignore NaN.
    """
    count, width = pattern.shape
    if not width:
        raise ValueError("zero-size array to reduction operation")
    names = {"max": ("maximum", "fmax"), "min": ("minimum", "fmin")}
    ufunc: Any = getattr(np, names[name][skips_nan])
    values, rows = plain_values(data), np.asarray(pattern.rows)
    stored = np.bincount(rows, minlength=count)
    missing = np.zeros(count, int) if explicit else width - stored
    best = np.zeros(count, values.dtype)
    order, _, starts = pattern.compressed()
    filled = np.flatnonzero(stored)
    if filled.size:
        best[filled] = ufunc.reduceat(values[order], starts[filled])
    best = np.where((missing > 0) & (stored > 0), ufunc(best, np.zeros((), best.dtype)), best)
    chosen = np.flatnonzero((values == best[rows]) & np.isfinite(values))
    equal = np.bincount(rows[chosen], minlength=count) + np.where(best == 0, missing, 0)
    # The values themselves, plus zero differences that carry the history.
    history = data[chosen] - values[chosen]
    summing = Pattern(rows[chosen], np.arange(len(chosen)), (count, len(chosen)))
    return best + product(summing, as_operand((1.0 / equal[rows[chosen]]).astype(best.dtype)), history)
