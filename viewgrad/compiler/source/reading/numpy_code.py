"""NumPy functions written in Python, which are inlined if there is no other implementation."""

from __future__ import annotations

from typing import Any

import numpy as np


def fill_diagonal(target: Any, value: Any) -> None:
    """Implement `np.fill_diagonal` of a matrix and a number."""
    for number in range(min(target.shape[0], target.shape[1])):
        target[number, number] = value


def copyto(target: Any, source: Any) -> None:
    """Implement `np.copyto`."""
    target[...] = source


def copyto_where(target: Any, source: Any, where: Any) -> None:
    """Implement `np.copyto` with a mask."""
    target[...] = np.where(where, source, target)


def add_at(target: Any, index: Any, values: Any) -> None:
    """Implement `np.add.at` for vectors of indices and a single value."""
    for number in range(length_of(index)):
        target[tuple([each[number] for each in index])] += values


def add_each_at(target: Any, index: Any, values: Any) -> None:
    """Implement `np.add.at` for vectors of indices with a value for each index."""
    for number in range(length_of(index)):
        target[tuple([each[number] for each in index])] += values[number]


def subtract_at(target: Any, index: Any, values: Any) -> None:
    """Implement `np.subtract.at` for vectors of indices and a single value."""
    for number in range(length_of(index)):
        target[tuple([each[number] for each in index])] -= values


def subtract_each_at(target: Any, index: Any, values: Any) -> None:
    """Implement `np.subtract.at` for vectors of indices with a value for each index."""
    for number in range(length_of(index)):
        target[tuple([each[number] for each in index])] -= values[number]


def update_at(target: Any, index: Any, values: Any, function: Any) -> None:
    """Implement `function.at` for vectors of indices and a single value."""
    for number in range(length_of(index)):
        place = tuple([each[number] for each in index])
        target[place] = function(target[place], values)


def update_each_at(target: Any, index: Any, values: Any, function: Any) -> None:
    """Implement `function.at` for vectors of indices with a value for each index."""
    for number in range(length_of(index)):
        place = tuple([each[number] for each in index])
        target[place] = function(target[place], values[number])


def update_place(target: Any, index: Any, values: Any, function: Any) -> None:
    """Implement `function.at` for an index that selects each element once."""
    target[index] = function(target[index], values)


def length_of(index: Any) -> Any:
    """Return the common length of all vectors in an index."""
    length = len(index[0])
    for each in index:
        if len(each) != length:
            raise ValueError
    return length


def bins(x: Any, minlength: Any) -> Any:
    """Return the number of bins of `np.bincount`."""
    count = minlength
    for value in x:
        if value < 0:
            raise ValueError
        if value >= count:
            count = value + 1
    return count


def bincount(x: Any, minlength: Any = 0) -> Any:
    """Implement `np.bincount` without weights."""
    found = np.zeros(bins(x, minlength), dtype=np.int64)
    for value in x:
        found[value] += 1
    return found


def weighted_bincount(x: Any, weights: Any, minlength: Any = 0) -> Any:
    """Implement `np.bincount` with weights."""
    if len(weights) != len(x):
        raise ValueError
    found = np.zeros(bins(x, minlength))
    for number in range(len(x)):
        found[x[number]] += weights[number]
    return found


def delete(x: Any, place: Any) -> Any:
    """Implement `np.delete` for one element of a vector."""
    start = place + len(x) if place < 0 else place
    if start < 0 or start >= len(x):
        raise IndexError
    return np.concatenate((x[:start], x[start + 1 :]))


def insert_at(x: Any, place: Any, value: Any) -> Any:
    """Implement `np.insert` for one element of a vector."""
    start = place + len(x) if place < 0 else place
    if start < 0 or start > len(x):
        raise IndexError
    found = np.empty(len(x) + 1)
    found[:start] = x[:start]
    found[start] = value
    found[start + 1 :] = x[start:]
    return found


def polyval(coefficients: Any, x: Any) -> Any:
    """Implement `np.polyval`."""
    found = x * 0.0
    for each in coefficients:
        found = found * x + each
    return found


def cross(a: Any, b: Any) -> Any:
    """Implement `np.cross` for vectors of three elements, or for rows of them."""
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError
    parts = (
        a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
        a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
        a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
    )
    return np.array(parts) if np.ndim(a) == 1 else np.stack(parts, axis=-1)


def covariance(m: Any, ddof: Any) -> Any:
    """Implement `np.cov` for the rows of a matrix."""
    if m.shape[0] < 2 or m.shape[1] <= max(ddof, 1):  # a number, or a division by zero
        raise ValueError
    rest = m - m.mean(axis=1, keepdims=True)
    return rest @ rest.T / (m.shape[1] - ddof)


def covariance_of(x: Any, y: Any, ddof: Any) -> Any:
    """Implement `np.cov` for two vectors."""
    return covariance(np.stack((x, y)), ddof)


def variance(x: Any, ddof: Any) -> Any:
    """Implement `np.cov` for a vector."""
    if len(x) <= ddof:
        raise ValueError
    rest = x - x.mean()
    return rest @ rest / (len(x) - ddof)


def correlation(m: Any) -> Any:
    """Implement `np.corrcoef` for the rows of a matrix."""
    c = covariance(m, 1)
    d = np.sqrt(np.diag(c))
    return np.clip(c / d[:, None] / d[None, :], -1, 1)


def correlation_of(x: Any, y: Any) -> Any:
    """Implement `np.corrcoef` for two vectors."""
    return correlation(np.stack((x, y)))
