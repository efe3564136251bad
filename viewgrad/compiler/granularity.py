"""Granularity: neighbouring elements that are always accessed together are analysed as one."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import Final

import attrs
import numpy as np

from ..type_aliases import Array
from .loop_ir import Access


@attrs.frozen
class Runs:
    """The granularity of accesses: the runs of neighbours that a step accesses in all of its executions.

    Arguments:
        length: the length of each run.
        rest: the lengths and strides of the dimensions over the runs.
        first: the start of the first run in one of the executions.
        moves: a common divisor of the differences between executions.
    """

    length: int
    rest: tuple[tuple[int, int], ...]
    first: int
    moves: int


@attrs.frozen
class Grain:
    """The grains of a base: its rows, each divided at the same positions.

    Arguments:
        row: the length of a row.
        begins: the starts of the grains in a row.
    """

    row: int
    begins: tuple[int, ...] = (0,)

    def number_of(self, size: int) -> int:
        """Return the number of grains in the first elements, up to a count."""
        rows, rest = divmod(size, self.row)
        return rows * len(self.begins) + bisect.bisect_left(self.begins, rest)

    def grains_at(self, elements: Array) -> Array:
        """Return the grains that begin at given elements."""
        if len(self.begins) == 1:
            return elements // self.row
        within = np.searchsorted(self.begins, elements % self.row)
        found: Array = elements // self.row * len(self.begins) + within
        return found

    def dims(self, runs: Runs) -> list[tuple[int, int]]:
        """Return the lengths and strides of the window of a step, in grains."""
        grains = len(self.begins)
        begin = runs.first % self.row
        count = self.number_of(begin + runs.length) - self.number_of(begin)
        return [*[(n, stride // self.row * grains) for n, stride in runs.rest], (count, 1)]


SINGLE: Final = Grain(1)


def grain_of(accesses: Iterable[Runs | None], size: int) -> Grain:
    """Return the largest grain of the accesses to a buffer.

    Arguments:
        accesses: the runs of all accesses, or None if they differ between executions.
        size: the size of the buffer.
    """
    runs = []
    row = plain = size
    for each in accesses:
        if each is None:
            return SINGLE
        runs.append(each)
        strides = [stride for _, stride in each.rest]
        row = math.gcd(row, each.moves, *strides)
        plain = math.gcd(plain, each.moves, *strides, each.length, each.first)
    row, plain = max(row, 1), max(plain, 1)  # if nothing is accessed and the buffer is empty
    begins = {0}
    for each in runs:
        begin = each.first % row
        end = begin + each.length
        if end > row and (begin or each.length % row):  # it continues in the next row
            return Grain(plain)
        begins |= {begin, end % row}
    return Grain(row, tuple(sorted(begins))) if len(begins) * plain < row else Grain(plain)


def runs_of(step: Access, offsets: Array) -> Runs | None:
    """Return the runs of a step, or None if it accesses single elements or its runs differ between executions.

    Arguments:
        step: the step.
        offsets: the offsets of its window, in all executions.
    """
    if step.is_picked or not step.sizes:
        return None
    length = 1
    rest: list[tuple[int, int]] = []
    for n, stride in zip(reversed(step.sizes), reversed(step.strides)):
        if n.value is None or stride.value is None:
            return None
        if not rest and (stride.value == length or n.value == 1):
            length *= n.value
        elif n.value != 1:
            rest.insert(0, (n.value, stride.value))
    if not length or not offsets.size:
        return Runs(0, (), 0, 0)
    first = int(offsets.flat[0])
    return Runs(length, tuple(rest), first, int(np.gcd.reduce(np.ravel(offsets) - first, initial=0)))
