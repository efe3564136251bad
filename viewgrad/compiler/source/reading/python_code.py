"""Functions of Python and NumPy as loops, which are read in place where there is no other rule."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "add_at", "all_of", "any_of", "copyto", "extend", "fill_diagonal", "fsum", "insert", "max_of", "min_of",
    "multiply_at", "pop_first", "subtract_at", "sum_of",
]  # fmt: skip


def sum_of(items: Any, start: Any = 0) -> Any:
    """`sum`."""
    total = start
    for each in items:
        total = total + each
    return total


def fsum(items: Any) -> Any:
    """`math.fsum`, up to rounding."""
    total = 0.0
    for each in items:
        total = total + each
    return total


def max_of(items: Any) -> Any:
    """`max`."""
    best = items[0]
    for number in range(1, len(items)):
        if items[number] > best:
            best = items[number]
    return best


def min_of(items: Any) -> Any:
    """`min`."""
    best = items[0]
    for number in range(1, len(items)):
        if items[number] < best:
            best = items[number]
    return best


def extend(items: Any, more: Any) -> None:
    """`extend` of a list."""
    for each in more:
        items.append(each)


def pop_first(items: Any) -> Any:
    """`pop(0)`."""
    first = items[0]
    for number in range(len(items) - 1):
        items[number] = items[number + 1]
    items.pop()
    return first


def insert(items: Any, place: Any, value: Any) -> None:
    """`insert` of a list."""
    items.append(value)
    count = len(items)
    where = min(max(place if place >= 0 else place + count - 1, 0), count - 1)
    for number in range(count - 1, where, -1):
        items[number] = items[number - 1]
    items[where] = value


def fill_diagonal(target: Any, value: Any) -> None:
    """`np.fill_diagonal` of a matrix and a number."""
    for number in range(min(target.shape[0], target.shape[1])):
        target[number, number] = value


def copyto(target: Any, source: Any) -> None:
    """`np.copyto`."""
    target[...] = source


def any_of(items: Any) -> Any:
    """`any`."""
    found = False
    for each in items:
        if each:
            found = True
            break
    return found


def all_of(items: Any) -> Any:
    """`all`."""
    found = True
    for each in items:
        if not each:
            found = False
            break
    return found


def add_at(target: Any, index: Any, values: Any) -> None:
    """`np.add.at` for an array of indices."""
    for number in range(len(index)):
        target[index[number]] += values[number] if np.ndim(values) else values


def subtract_at(target: Any, index: Any, values: Any) -> None:
    """`np.subtract.at` for an array of indices."""
    for number in range(len(index)):
        target[index[number]] -= values[number] if np.ndim(values) else values


def multiply_at(target: Any, index: Any, values: Any) -> None:
    """`np.multiply.at` for an array of indices."""
    for number in range(len(index)):
        target[index[number]] *= values[number] if np.ndim(values) else values
