"""Writes to sparse arrays whose stored values are tensors: of elements, of diagonals, and changes of shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse  # type: ignore[import-untyped]

from .pattern import Pattern


def with_elements(pattern: Pattern, data: Any, index: Any, values: Any) -> tuple[Pattern, Any]:
    """Return the positions and the stored values of an array after `array[index] = values`.

    Arguments:
        pattern: the positions of the stored values, without duplicates.
        data: the stored values.
        index: an index of plain numbers, as for SciPy's arrays.
        values: the elements, as a dense tensor with the dtype of the stored values.
    """
    numbered = pattern.numbered()
    places = np.arange(pattern.count + 1, pattern.count + values.size + 1).reshape(values.shape)
    numbered[index] = places if values.ndim else int(places)
    found = numbered.tocoo()
    kept = np.flatnonzero(found.data)
    joined = np.concatenate([data, values.reshape(-1)])
    return Pattern(found.row[kept], found.col[kept], pattern.shape), joined[found.data[kept] - 1]


def with_diagonal(pattern: Pattern, data: Any, values: Any, k: int) -> tuple[Pattern, Any]:
    """Return the positions and the stored values of an array after `array.setdiag(values, k)`.

    Arguments:
        pattern: the positions of the stored values.
        data: the stored values.
        values: the element for the whole diagonal, or one for each position from its start.
        k: the number of the diagonal.
    """
    scipy.sparse.lil_array(pattern.shape).setdiag(np.zeros(values.shape), k)  # checks the arguments
    count = min(pattern.shape[0] + min(k, 0), pattern.shape[1] - max(k, 0))
    if values.ndim:
        count = min(count, values.shape[0])
        values = values[:count]
    starts = pattern.rows + min(k, 0)
    kept = np.flatnonzero((pattern.cols - pattern.rows != k) | (starts >= count))
    place = np.arange(count)
    rows = np.concatenate([pattern.rows[kept], place - min(k, 0)])
    cols = np.concatenate([pattern.cols[kept], place + max(k, 0)])
    return Pattern(rows, cols, pattern.shape), np.concatenate([data[kept], np.broadcast_to(values, (count,))])


def cropped(pattern: Pattern, data: Any, shape: tuple[int, int]) -> tuple[Pattern, Any]:
    """Return the positions and the stored values of an array after `array.resize(shape)`."""
    kept = np.flatnonzero((pattern.rows < shape[0]) & (pattern.cols < shape[1]))
    return Pattern(pattern.rows[kept], pattern.cols[kept], shape), data[kept]
