"""Search for a smaller call that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from .arguments import Example
from .cpu_time import cpu_seconds
from .failure import Failure
from .operator_under_test import TookTooLong, patience

PATIENCE: Final = 2.0  # CPU seconds


def shrunk(failure: Failure, again: Callable[[Example], Any]) -> Failure:
    """Return the failure of the smallest call that fails in the same way: shorter arrays, then rounder numbers.

    Arguments:
        failure: the failure.
        again: a function that checks the same property of another call and raises `Failure` or `Refused`.
    """
    assert failure.script is not None
    start = cpu_seconds()
    progress = True
    while progress:
        progress = False
        assert failure.script is not None
        for example in _smaller(failure.script.example):
            if cpu_seconds() - start > PATIENCE:
                return failure
            try:
                with patience(PATIENCE):
                    again(example)
            except Failure as other:
                if other.property == failure.property and _kind(other) == _kind(failure):
                    failure, progress = other, True
                    break
            except (Exception, TookTooLong):  # refused, or the property does not apply
                continue
    return failure


def smallest(example: Example, still: Callable[[Example], bool]) -> Example:
    """Return the smallest call for which a predicate still holds."""
    start = cpu_seconds()
    progress = True
    while progress:
        progress = False
        for other in _smaller(example):
            if cpu_seconds() - start > PATIENCE / 4:
                return example
            try:
                with patience(PATIENCE):
                    found = still(other)
            except (Exception, TookTooLong):  # refused
                continue
            if found:
                example, progress = other, True
                break
    return example


def _kind(failure: Failure) -> tuple[bool, type[BaseException] | None]:
    """Return the kind of a failure: a wrong number, or an error."""
    return failure.found is None, None if failure.__cause__ is None else type(failure.__cause__)


def _smaller(example: Example) -> Iterator[Example]:
    arrays = example.arrays
    for length in sorted({n for array in arrays for n in array.shape if n > 1}, reverse=True):
        for new in dict.fromkeys((1, 2, length // 2, length - 1)):
            if 0 < new < length:
                cut = [
                    array[tuple(slice(new if n == length else None) for n in array.shape)].copy() for array in arrays
                ]
                yield example.with_arrays(cut, changed=())
    for digits in (0, 1):
        rounded = [
            np.round(array, digits) if array.dtype.kind in "fc" and np.isfinite(array).all() else array
            for array in arrays
        ]
        if any((one != other).any() for one, other in zip(rounded, arrays, strict=True)):
            distinct = [
                np.unique(one).size == np.unique(other).size for one, other in zip(rounded, arrays, strict=True)
            ]
            if all(distinct):  # equal elements would be a different case
                yield example.with_arrays(rounded)
