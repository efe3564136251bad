"""Loops with a bounded tape, which run in segments, each recorded just before its reverse runs.

Between segments, a snapshot stores the state that the loop changes. If there are few snapshots, they are placed as in
revolve (Griewank & Walther, ACM Transactions on Mathematical Software 26, 2000), and some iterations are run several
times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

NUMBER: Final = 8  # bytes of a number on the tape of a kernel
BOXED: Final = 32  # bytes of a Python number in a list
SNAPSHOT: Final = 256  # bytes of the tuples of a snapshot
ARRAY: Final = 192  # bytes of an array in addition to its elements


class Tape(list[Any]):
    """A tape of arrays and numbers that counts bytes.

    Arguments:
        limit: the maximum number of bytes.

    Raises:
        BufferError: raised by `append` beyond the limit.
    """

    __slots__ = ("limit", "used")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.used = 0

    def append(self, value: Any) -> None:
        """Push a value."""
        self.used += value.nbytes if isinstance(value, np.ndarray) else BOXED
        if self.used > self.limit:
            raise BufferError
        super().append(value)

    def pop(self) -> Any:  # type: ignore[override]
        """Pop the last saved value."""
        value = super().pop()
        self.used -= value.nbytes if isinstance(value, np.ndarray) else BOXED
        return value

    def shorten(self, length: int) -> None:
        """Drop the values beyond a given length."""
        while len(self) > length:
            self.pop()


def binomial(snapshots: int, sweeps: int) -> int:
    """Return the number of steps that can be reversed with some snapshots, if none is run more often than `sweeps`
    times.
    """
    return math.comb(snapshots + sweeps, snapshots) if sweeps >= 0 and snapshots >= 0 else 0


def left_of(steps: int, snapshots: int) -> int:
    """Return the number of steps before the next snapshot for which reversing the steps needs the fewest runs.

    Arguments:
        steps: the number of steps to reverse.
        snapshots: the maximum number of snapshots, including the one before these steps; at least 2.
    """
    sweeps = 1
    while binomial(snapshots, sweeps) < steps:
        sweeps += 1
    return max(1, min(steps - 1, max(binomial(snapshots, sweeps - 2), steps - binomial(snapshots - 1, sweeps))))


@attrs.define(eq=False)
class Segments:
    """Runs a loop and its reverse with a limit on the tape.

    Arguments:
        name: the name of the loop in `explain`.
        reports: a mapping that receives a report, by the name of the loop.
        limit: the maximum number of bytes for the tape of a segment and for snapshots.
        advance: a function that runs a range of iterations without the tape, and returns how many were run and whether
            the loop ended early.
        record: the same with the tape.
        save: a function that returns a snapshot: numbers, and for each changing array the array, its adjoint and a
            copy.
        restore: a function that restores the state of a snapshot.
        shadows: a function that returns the adjoints of the arrays that the loop binds: of those that may come from
            earlier iterations, and of the others.
        mark: a function that returns the size of the tape: the entries for arrays, their bytes, floats and integers.
        rewind: a function that drops everything recorded since a mark.
    """

    name: str
    reports: dict[str, str]
    limit: float
    advance: Callable[[int, int], tuple[int, bool]]
    record: Callable[[int, int], tuple[int, bool]]
    save: Callable[[], Any]
    restore: Callable[[Any], None]
    shadows: Callable[[], Any]
    mark: Callable[[], Any]
    rewind: Callable[[Any], None]
    length: int = attrs.field(default=1, init=False)  # the length of a segment, in iterations
    most: int = attrs.field(default=1, init=False)  # the maximum number of snapshots
    snapshots: list[tuple[int, Any]] = attrs.field(factory=list, init=False)
    total: int = attrs.field(default=0, init=False)  # iterations that were run
    again: int = attrs.field(default=0, init=False)  # iterations that were rerun
    is_recorded: bool = attrs.field(default=False, init=False)
    # The adjoints of the arrays that the loop binds, after the iterations to reverse next.
    adjoints: Any = attrs.field(default=(), init=False)

    # -- forwards ------------------------------------------------------------------------------------------------------

    def forward(self, count: int | None) -> None:
        """Run the loop.

        Arguments:
            count: the number of iterations, or its maximum; None if unknown.
        """
        start = self.save()
        self.snapshots = [(0, start)]
        if count is not None and count <= 0:
            return
        tape, has_iterations = self._tape_of_one(start)
        if not has_iterations:
            return
        size = _size(start)
        fits = count * tape <= self.limit if count is not None else True
        if fits and self._recorded(count, max(1, int(self.limit / 2 / tape)), start):
            return
        self._plan(count, tape, size)
        self._sweep(count)

    def _tape_of_one(self, start: Any) -> tuple[float, bool]:
        """Return the number of bytes that one iteration puts on the tape, and whether there is an iteration."""
        before = self.mark()
        ran, _ = self.record(0, 1)
        after = self.mark()
        self.rewind(before)
        self.restore(start)
        self.again += ran
        return max(1, after[1] - before[1] + NUMBER * (after[2] - before[2] + after[3] - before[3])), ran > 0

    def _recorded(self, count: int | None, most: int, start: Any) -> bool:
        """Record the whole loop if possible; a loop of unknown length, if it ends within `most` iterations."""
        before = self.mark()
        goal = most if count is None else count
        try:
            ran, stopped = self.record(0, goal)
            if stopped or ran < goal or count is not None or not self.advance(goal, goal + 1)[0]:
                self.total, self.is_recorded = ran, True
                return True
        except BufferError:
            pass
        self.rewind(before)
        self.restore(start)
        return False

    def _plan(self, count: int | None, tape: float, size: float) -> None:
        """Choose the length of segments and the maximum number of snapshots."""
        longest = max(1, int(self.limit / 2 / tape))
        best = 0 if count is None else math.sqrt(count * size / tape)
        self.length = max(1, min(longest, int(best))) if 2 * best * tape <= self.limit and best else longest
        self.most = max(2, int((self.limit - self.length * tape) / size))

    def _sweep(self, count: int | None) -> None:
        """Run the loop without the tape and take snapshots."""
        at, spacing = 0, self.length
        while True:
            if count is None:
                goal = at + spacing
            else:
                units = -(-(count - at) // self.length)
                free = self.most - len(self.snapshots)
                goal = count if units <= 1 or free < 1 else at + self.length * left_of(units, free + 1)
            ran, stopped = self.advance(at, goal)
            at += ran
            if stopped or at < goal or at == count:
                self.total = at
                return
            self.snapshots.append((at, self.save()))
            if count is None and len(self.snapshots) > self.most:  # every other snapshot suffices
                self.snapshots = self.snapshots[::2]
                spacing *= 2
                at_last = self.snapshots[-1][0]
                if at_last != at:  # snapshots remain a multiple of the spacing apart
                    ran, stopped = self.advance(at, at_last + spacing)
                    at += ran
                    if stopped or at < at_last + spacing:
                        self.total = at
                        return
                    self.snapshots.append((at, self.save()))

    # -- backwards -----------------------------------------------------------------------------------------------------

    def backward(self, back: Callable[[int, int], None]) -> None:
        """Run the reverse of the loop.

        Arguments:
            back: a function that runs the reverse of the segment on the tape, given the range of its iterations.
        """
        live, dead = self.shadows()
        self.adjoints = (*live, *dead)
        if self.is_recorded:
            back(0, self.total)
        until = self.total
        while self.snapshots and not self.is_recorded:
            at, state = self.snapshots.pop()
            if at < until:
                self._reverse(at, until, state, self.most - len(self.snapshots) - 1, back)
            until = at
        self.reports[self.name] = self.report()

    def _reverse(self, first: int, until: int, state: Any, free: int, back: Callable[[int, int], None]) -> None:
        """Run the reverse of a range of iterations.

        Arguments:
            first, until: the range of iterations.
            state: the snapshot before them.
            free: the number of additional snapshots available.
            back: as for `backward`.
        """
        while until > first:
            units = -(-(until - first) // self.length)
            if units > 1 and free > 0:
                middle = first + self.length * left_of(units, free + 1)
                self.restore(state)
                self.advance(first, middle)
                self.again += middle - first
                self._reverse(middle, until, self.save(), free - 1, back)
                until = middle
                continue
            begin = first + self.length * (units - 1)
            if not self._back(first, begin, until, state, back):
                self.length = max(1, (until - begin) // 2)
                continue
            until = begin

    def _back(self, first: int, begin: int, until: int, state: Any, back: Callable[[int, int], None]) -> bool:
        """Run the reverse of a segment, starting from the snapshot before `first`; return whether it fit on the tape.
        """
        self.restore(state)
        if begin > first:
            self.advance(first, begin)
        before = self.mark()
        try:
            self.record(begin, until)
        except BufferError:
            if until - begin <= 1:
                raise
            self.rewind(before)
            return False
        self.again += until - first
        live, dead = self.shadows()
        for new, old in zip((*live, *dead), self.adjoints):
            if new is not old and new is not None and old is not None:
                new[...] = old
        back(begin, until)
        self.adjoints = self.shadows()[0]
        return True

    def report(self) -> str:
        """Describe the run, for `explain`."""
        if self.is_recorded:
            return f"{self.total} iterations fit on the tape"
        return (
            f"{self.total} iterations in segments of {self.length}, at most {self.most} snapshots; "
            f"{self.again} iterations run again"
        )


def copied(array: Any) -> Any:
    """Return a copy of an array, or None."""
    return None if array is None else array.copy()


def put_back(arrays: Any) -> None:
    """Restore the elements that arrays had when they were copied."""
    for array, _, copy in arrays:
        if copy is not None:
            array[...] = copy


def _size(state: Any) -> float:
    """Return the number of bytes of a snapshot."""
    numbers, arrays = state
    found = SNAPSHOT + BOXED * len(numbers)
    for array, shadow, copy in arrays:
        found += sum(ARRAY + each.nbytes for each in (copy, shadow) if each is not None)
        found += array.nbytes if copy is None and array is not None else 0
    return float(found)
