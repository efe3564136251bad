"""Zero propagation: remove reads, writes and initializations of zeros from gradients.

Each gradient buffer begins with zeros, and the adjoint of a write sets the elements that it read to zero. Reads of
elements known to be zero, additions to them, and further writes of zero can therefore be removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

import attrs
import numpy as np

from ...type_aliases import Array
from ..access_analysis import AccessAnalysis, analysis_of
from ..granularity import Grain, Runs, grain_of
from ..loop_ir import Access, Add, Buffer, Call, Compute, Number, Operand, Program, Read, Step, Value, Write, steps_of
from .dead_code import remove_steps

MOST: Final = 3_000_000  # the maximum number of inspected accesses to elements of one buffer
PART: Final = 2_000  # the number of accesses inspected at a time, together with all others to the same elements
READ, ADD, ZERO, WRITE, GONE = range(5)
ZERO_VALUE: Final = Number(0.0)


def propagate_zeros(program: Program) -> Program:
    """Remove operations on elements known to be zero from a gradient; extends `program.unset`."""
    analysis, wanted = analysis_of(program), program.kept
    by_base: dict[Buffer, list[Access]] = {}
    for _, step in steps_of(program.block):
        if isinstance(step, Access) and step.base.kind == "made" and step.base.dtype == float:
            by_base.setdefault(step.base, []).append(step)
    gone: set[Step] = set()
    is_changed = False  # whether there are new steps
    zero: set[Step] = set()
    called = {
        value.step for _, step in steps_of(program.block) if isinstance(step, Call)
        for value in step.operands if isinstance(value, Operand)
    }  # fmt: skip
    for base, steps in by_base.items():
        if not base.is_gradient or not base.size:
            continue
        grain = analysis.grain(steps, base.size)
        if sum(analysis.access_count(step, grain) for step in steps) <= MOST:
            found = _Accesses(analysis, steps, base.name in wanted, called, grain)
            zero |= found.zero_reads
            gone |= found.needless
            is_changed |= _write_first(program, found.first_adds - found.needless)
            if found.is_unset(grain.number_of(base.size)):
                program.unset.add(base.name)
    _replace(program, zero)
    remove_steps(program.block, gone | zero | _sums_of_zeros(program))
    if is_changed:
        program.analysis = None
    return program


class _Accesses:
    """All accesses to the elements of one buffer, sorted by element and time.

    Arguments:
        executions: the access analysis of the program.
        steps: the steps that access the buffer.
        wanted: whether the buffer is read after the program has run.
        called: steps whose values must be arrays, because they are passed to functions.
        grain: the number of adjacent elements that are always accessed together.

    Attributes:
        zero_reads: the steps that read only zeros.
        first_adds: the additions that add only to zeros.
        needless: the steps whose writes are never read.
    """

    def __init__(
        self, executions: AccessAnalysis, steps: list[Access], wanted: bool, called: Set[Step], grain: Grain
    ) -> None:
        self.steps = steps
        self.wanted = wanted
        self._number(executions, grain)
        self.kinds = np.array([_kind_of(step) for step in steps], np.int8)
        zero = _Counts(self.kinds)
        alone = _Counts(self.kinds)
        for part in self._parts():
            is_zero = part.was_zero()
            zero.add(part, is_zero)
            alone.add(part, is_zero & ~part.is_twice)
        self.zero_reads = self._steps(zero, READ) - called
        self.first_adds = self._steps(alone, ADD)
        self._find_zeros()
        unseen = _Counts(self.kinds)
        self.seen_first = False  # whether an element is inspected before it is written
        self.elements = 0  # the number of elements that are accessed
        for part in self._parts():
            unseen.add(part, ~part.is_read_later(wanted))
            first = part.is_first()
            self.elements += int(first.sum())
            self.seen_first |= bool(np.isin(part.kinds[first], (READ, ADD)).any())
        self.needless = self._steps(unseen, ZERO) | self._steps(unseen, WRITE) | self._steps(unseen, ADD)

    def is_unset(self, size: int) -> bool:
        """Return whether each element is written before it is inspected."""
        return not self.seen_first and not (self.wanted and self.elements < size)

    def _number(self, executions: AccessAnalysis, grain: Grain) -> None:
        """Encode each access as a number by element, time and step, and sort the accesses."""
        count = len(self.steps)
        self.duration = 1 + executions.latest(self.steps)
        total = sum(executions.access_count(step, grain) for step in self.steps)
        base = self.steps[0].base
        largest = (grain.number_of(base.size) + 1) * self.duration * count
        self.accesses = np.empty(total, np.uint32 if largest < 2**32 else np.int64)
        start = 0
        for number, step in enumerate(self.steps):
            for positions, times in executions.accesses(step, grain):
                numbers = (positions * self.duration + times) * count + number
                self.accesses[start : start + numbers.size] = numbers.reshape(-1)
                start += numbers.size
        self.accesses.sort()

    def _parts(self) -> Iterator[_Slice]:
        """Yield the accesses to some elements at a time."""
        count = len(self.steps)
        start = 0
        while start < len(self.accesses):
            stop = min(start + PART, len(self.accesses))
            position = int(self.accesses[stop - 1]) // (self.duration * count)
            after = np.array((position + 1) * self.duration * count, np.int64)
            stop += int(np.searchsorted(self.accesses[stop:], after.astype(self.accesses.dtype)))
            found = self.accesses[start:stop]
            numbers = (found % count).astype(np.intp)
            executions = found // count
            positions = executions // self.duration
            twice = np.zeros(len(found), bool)
            same = executions[1:] == executions[:-1]
            twice[1:] |= same
            twice[:-1] |= same
            kept = self.kinds[numbers] != GONE
            yield _Slice(positions[kept], numbers[kept], self.kinds[numbers[kept]], twice[kept])
            start = stop

    def _find_zeros(self) -> None:
        """Remove the reads of zeros, and convert first additions to writes."""
        for number, step in enumerate(self.steps):
            if step in self.zero_reads:
                self.kinds[number] = GONE
            elif step in self.first_adds:
                self.kinds[number] = WRITE

    def _steps(self, counts: _Counts, kind: int) -> set[Step]:
        """Return the steps of a kind for which a property holds in all of their accesses."""
        fit = (counts.wrong == 0) & (counts.all > 0)
        return {step for step, fits in zip(self.steps, fit) if fits and _kind_of(step) == kind}


class _Slice(NamedTuple):
    """The accesses to several elements.

    Arguments:
        positions, numbers, kinds: for each access, the element, the number of the step, and the kind.
        is_twice: for each access, whether its execution accesses the element more than once.
    """

    positions: Array
    numbers: Array
    kinds: Array
    is_twice: Array

    def is_first(self) -> Array:
        """Return, for each access, whether it is the first one to its element."""
        first = np.ones(len(self.positions), bool)
        first[1:] = self.positions[1:] != self.positions[:-1]
        return first

    def was_zero(self) -> Array:
        """Return, for each access, whether the element is known to be zero before it."""
        count = len(self.positions)
        starts = np.maximum.accumulate(np.where(self.is_first(), np.arange(count), 0))
        changed = np.maximum.accumulate(np.where(self.kinds != READ, np.arange(count), -1))
        before = np.concatenate([[-1], changed])[:count]
        return (before < starts) | (self.kinds[before] == ZERO)  # type: ignore[no-any-return]

    def is_read_later(self, wanted: bool) -> Array:
        """Return, for each access, whether the next one reads or adds, or the element is read at the end."""
        read_after = np.full(len(self.positions), wanted)
        same = self.positions[1:] == self.positions[:-1]
        read_after[:-1][same] = np.isin(self.kinds[1:][same], (READ, ADD))
        return read_after


class _Counts:
    """The number of accesses of each step, and of those that violate a property."""

    def __init__(self, kinds: Array) -> None:
        self.all = np.zeros(len(kinds), int)
        self.wrong = np.zeros(len(kinds), int)

    def add(self, part: _Slice, holds: Array) -> None:
        """Add to the counts."""
        self.all += np.bincount(part.numbers, minlength=len(self.all))
        self.wrong += np.bincount(part.numbers[~holds], minlength=len(self.all))


def begins_unset(
    base: Buffer, forward: AccessAnalysis, backward: AccessAnalysis | None, read_after: Sequence[tuple[int, int]]
) -> bool:
    """Return whether each element of a buffer is written before it is read, so that it needs no initial value.

    Arguments:
        base: a buffer of a program.
        forward, backward: the analyses of the program and of its gradient, if any.
        read_after: the ranges of elements that are results.
    """
    steps = _steps_at(forward, base)
    later = [] if backward is None else _steps_at(backward, base)
    bounds = [Runs(stop - start, (), start, 0) for start, stop in read_after]
    own = [] if backward is None else map(backward.runs, later)
    grain = grain_of([*map(forward.runs, steps), *own, *bounds], base.size)
    total = sum(forward.access_count(step, grain) for step in steps)
    if backward is not None:
        total += sum(backward.access_count(step, grain) for step in later)
    if total > MOST:
        return False
    never = np.iinfo(np.int64).max
    written, seen = [np.full(grain.number_of(base.size), never) for _ in range(2)]
    for step in steps:
        first = written if type(step) is Write else seen
        for positions, times in forward.accesses(step, grain):
            np.minimum.at(first, positions, times)
    for start, stop in read_after:
        part = seen[grain.number_of(start) : grain.number_of(stop)]
        np.minimum(part, never - 1, out=part)
    for step in later:
        assert backward is not None
        for positions, _ in backward.accesses(step, grain):
            seen[positions] = np.minimum(seen[positions], never - 1)
    return bool(np.all((written < seen) | (seen == never)))


def _steps_at(executions: AccessAnalysis, base: Buffer) -> list[Access]:
    steps = [step for _, step in steps_of(executions.program.block) if isinstance(step, Access)]
    return [step for step in steps if step.base is base]


def _kind_of(step: Access) -> int:
    if isinstance(step, Read):
        return READ
    if type(step) is Add:
        return ADD
    assert isinstance(step, Write)
    return ZERO if isinstance(step.value, Number) and step.value.value == 0 else WRITE


def _write_first(program: Program, adds: Set[Step]) -> bool:
    """Replace additions to zeros by writes; return whether there were any."""
    for block, step in list(steps_of(program.block)):
        if step in adds:
            assert type(step) is Add
            made = Write(
                step.name, step.sizes, step.location, step.base, step.strides, step.offset, step.value,
                positions=step.positions,
            )
            block.items[block.items.index(step)] = made
    return bool(adds)


def _replace(program: Program, zero: Set[Step]) -> None:
    """Replace values that are zero by the number 0."""
    for _, step in steps_of(program.block):
        if isinstance(step, Compute):
            step.operands = tuple([_or_zero(value, zero) for value in step.operands])
            if step.expression == "{0} + {1}":
                rest = [value for value in step.operands if not _is_zero(value)]
                if len(rest) == 1 and isinstance(rest[0], Operand):
                    step.expression, step.operands = "{0}", (rest[0],)
        elif isinstance(step, Write):
            step.value = _or_zero(step.value, zero)


def _or_zero(value: Value, zero: Set[Step]) -> Value:
    if isinstance(value, Operand) and value.step in zero:
        return attrs.evolve(ZERO_VALUE)
    return value


def _is_zero(value: Value) -> bool:
    return isinstance(value, Number) and value.value == 0


def _sums_of_zeros(program: Program) -> set[Step]:
    """Return the additions of zeros."""
    return {step for _, step in steps_of(program.block) if type(step) is Add and _is_zero(step.value)}
