"""Zeros that a gradient need not read, write, or begin with.

Each base of gradients begins with zeros. What a step has taken from it is set to zero again. So much is zero that is
known beforehand: to read it, to add to it, and to set it to zero once more can be left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any, Final

import attrs
import numpy as np

from ..executions import Executions
from ..program import Add, Base, Call, Compute, Number, Operand, Program, Read, Step, Value, Write, steps_of
from .tidying import left_out

__all__ = ["begins_unset", "without_zeros"]

Array = np.ndarray[Any, Any]
MOST: Final = 3_000_000  # touches of elements of one base that are looked at
READ, ADD, ZERO, WRITE = range(4)
ZERO_VALUE: Final = Number(0.0)


def without_zeros(program: Program, executions: Executions, wanted: Set[str]) -> set[str]:
    """Leave out of a gradient what is done to zeros that are known beforehand.

    Arguments:
        program: the gradient.
        executions: of the gradient.
        wanted: the names of the bases that are looked at afterwards.

    Returns:
        The names of the bases of gradients that need not begin with zeros.
    """
    by_base: dict[Base, list[Read | Write]] = {}
    for _, step in steps_of(program.block):
        if isinstance(step, (Read, Write)) and step.base.kind == "made" and step.base.dtype == float:
            by_base.setdefault(step.base, []).append(step)
    gone: set[Step] = set()
    unset: set[str] = set()
    zero: set[Step] = set()
    called = {
        value.step for _, step in steps_of(program.block) if isinstance(step, Call)
        for value in step.operands if isinstance(value, Operand)
    }  # fmt: skip
    for base, steps in by_base.items():
        if not base.name.startswith("d") or not base.size:
            continue
        grain = executions.grain(steps, base.size)
        if sum(executions.touches(step) for step in steps) <= MOST * grain:
            touches = _Touches(executions, steps, base.name in wanted, called, grain)
            zero |= touches.zero_reads
            gone |= touches.needless
            _write_first(program, touches.first_adds - touches.needless)
            if touches.is_unset(base.size // grain):
                unset.add(base.name)
    _replace(program, zero)
    left_out(program.block, gone | zero | _sums_of_zeros(program))
    return unset


class _Touches:
    """All touches of the elements of one base, in the order of elements and times.

    Arguments:
        executions: of the program.
        steps: those that touch the base.
        wanted: whether it is looked at afterwards.
        called: steps whose values must be arrays, as functions take them.
        grain: how many neighbours they touch together, which then stand for one element.

    Attributes:
        zero_reads: the steps that read nothing but zeros.
        first_adds: those that add to nothing but zeros.
        needless: those that write what nobody looks at.
    """

    def __init__(
        self, executions: Executions, steps: list[Read | Write], wanted: bool, called: Set[Step], grain: int
    ) -> None:
        self.steps = steps
        self.wanted = wanted
        found = [executions.touched(step, grain) for step in steps]
        places = np.concatenate([places for places, _ in found])
        times = np.concatenate([np.broadcast_to(times, places.shape) for places, times in found])
        order = np.argsort(places * (times.max(initial=0) + 1) + times, kind="stable")  # runs, merged
        self.places = places[order]
        self.numbers = np.repeat(np.arange(len(steps)), [len(places) for places, _ in found])[order]
        self.kinds = np.array([_kind_of(step) for step in steps])[self.numbers]
        self.is_twice = self._twice(times[order])
        is_zero = self._was_zero()
        self.zero_reads = self._steps(READ, is_zero) - called
        self.first_adds = self._steps(ADD, is_zero & ~self.is_twice)
        self._settle()
        unseen = ~self._is_looked_at()
        self.needless = self._steps(ZERO, unseen) | self._steps(WRITE, unseen) | self._steps(ADD, unseen)

    def is_unset(self, size: int) -> bool:
        """Whether each element is written before it is looked at."""
        first = self._is_first()
        looked_at = np.isin(self.kinds[first], (READ, ADD)).any()
        return not looked_at and not (self.wanted and int(first.sum()) < size)

    def _is_first(self) -> Array:
        """Whether each touch is the first one of its element."""
        first = np.ones(len(self.places), bool)
        first[1:] = self.places[1:] != self.places[:-1]
        return first

    def _twice(self, times: Array) -> Array:
        """Whether the execution that each touch belongs to touches the element more than once."""
        twice = np.zeros(len(self.places), bool)
        same = (self.places[1:] == self.places[:-1]) & (times[1:] == times[:-1])
        twice[1:] |= same
        twice[:-1] |= same
        return twice

    def _was_zero(self) -> Array:
        """Whether the element is known to be zero before each touch."""
        count = len(self.places)
        starts = np.maximum.accumulate(np.where(self._is_first(), np.arange(count), 0))
        changed = np.maximum.accumulate(np.where(self.kinds != READ, np.arange(count), -1))
        before = np.concatenate([[-1], changed])[:count]
        return (before < starts) | (self.kinds[before] == ZERO)  # type: ignore[no-any-return]

    def _is_looked_at(self) -> Array:
        """Whether the touch that follows each one reads or adds, or the element is wanted in the end."""
        looked_at = np.full(len(self.places), self.wanted)
        same = self.places[1:] == self.places[:-1]
        looked_at[:-1][same] = np.isin(self.kinds[1:][same], (READ, ADD))
        return looked_at

    def _settle(self) -> None:
        """Take out the reads of zeros, and have written what is added first."""
        zero = np.array([step in self.zero_reads for step in self.steps], bool)
        first = np.array([step in self.first_adds for step in self.steps], bool)
        self.kinds = np.where(first[self.numbers], WRITE, self.kinds)
        kept = ~zero[self.numbers]
        self.places, self.numbers, self.kinds = self.places[kept], self.numbers[kept], self.kinds[kept]

    def _steps(self, kind: int, holds: Array) -> set[Step]:
        """The steps of a kind of all of whose touches something holds."""
        wrong = np.bincount(self.numbers[~holds], minlength=len(self.steps))
        touched = np.bincount(self.numbers, minlength=len(self.steps))
        fit = (wrong == 0) & (touched > 0)
        return {step for step, fits in zip(self.steps, fit) if fits and _kind_of(step) == kind}


def begins_unset(
    base: Base, forward: Executions, backward: Executions | None, looked_at: Sequence[tuple[int, int]]
) -> bool:
    """Whether each element of a base is written before it is looked at, so that it may begin with anything.

    Arguments:
        base: a base of a program.
        forward, backward: of the program, and of its gradient where there is one.
        looked_at: where results begin and end.
    """
    steps = _steps_at(forward, base)
    later = [] if backward is None else _steps_at(backward, base)
    grain = forward.grain(steps, math.gcd(base.size, *[n for part in looked_at for n in part]))
    total = sum(forward.touches(step) for step in steps)
    if backward is not None:
        grain = backward.grain(later, grain)
        total += sum(backward.touches(step) for step in later)
    if total > MOST * grain:
        return False
    never = np.iinfo(np.int64).max
    written, seen = np.full(base.size // grain, never), np.full(base.size // grain, never)
    for step in steps:
        places, times = forward.touched(step, grain)
        first = written if type(step) is Write else seen
        np.minimum.at(first, places, np.broadcast_to(times, places.shape))
    for start, stop in looked_at:
        part = seen[start // grain : stop // grain]
        np.minimum(part, never - 1, out=part)
    for step in later:
        assert backward is not None
        places, _ = backward.touched(step, grain)
        seen[places] = np.minimum(seen[places], never - 1)
    return bool(np.all((written < seen) | (seen == never)))


def _steps_at(executions: Executions, base: Base) -> list[Read | Write]:
    steps = [step for _, step in steps_of(executions.program.block) if isinstance(step, (Read, Write))]
    return [step for step in steps if step.base is base]


def _kind_of(step: Read | Write) -> int:
    if isinstance(step, Read):
        return READ
    if type(step) is Add:
        return ADD
    return ZERO if isinstance(step.value, Number) and step.value.value == 0 else WRITE


def _write_first(program: Program, adds: Set[Step]) -> None:
    """Write what would be added to zeros."""
    for block, step in list(steps_of(program.block)):
        if step in adds:
            assert type(step) is Add
            made = Write(
                step.name, step.sizes, step.location, step.base, step.strides, step.offset, step.value,
                places=step.places,
            )
            block.items[block.items.index(step)] = made


def _replace(program: Program, zero: Set[Step]) -> None:
    """Put the number 0 in the place of values that are zero."""
    for _, step in steps_of(program.block):
        if isinstance(step, Compute):
            step.taken = tuple([_or_zero(value, zero) for value in step.taken])
            if step.expression == "{0} + {1}":
                rest = [value for value in step.taken if not _is_zero(value)]
                if len(rest) == 1 and isinstance(rest[0], Operand):
                    step.expression, step.taken = "{0}", (rest[0],)
        elif isinstance(step, Write):
            step.value = _or_zero(step.value, zero)


def _or_zero(value: Value, zero: Set[Step]) -> Value:
    if isinstance(value, Operand) and value.step in zero:
        return attrs.evolve(ZERO_VALUE)
    return value


def _is_zero(value: Value) -> bool:
    return isinstance(value, Number) and value.value == 0


def _sums_of_zeros(program: Program) -> set[Step]:
    """Steps that add nothing."""
    return {step for _, step in steps_of(program.block) if type(step) is Add and _is_zero(step.value)}
