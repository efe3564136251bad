"""Functions of Python and NumPy as loops, which are read in place where there is no other rule."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["add_at", "all_of", "any_of", "extend", "fsum", "max_of", "min_of", "multiply_at", "subtract_at", "sum_of"]


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
