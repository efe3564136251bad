"""Access analysis: when each step of a program is executed, and which elements it accesses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..type_aliases import Array
from .granularity import SINGLE, Grain, Runs, grain_of, runs_of
from .index_expr import Integer
from .loop_ir import Access, Block, Buffer, ForLoop, IrregularLoop, Program, Read, Step, Write, steps_of

MANY: Final = 100_000  # the maximum number of differences between positions that are inspected
LARGEST: Final = 30_000_000  # accesses; for larger numbers, no analysis is made
UNKNOWN: Final = 1 << 60  # the number of elements accessed by a step whose window is moved by computed integers
PART: Final = 3_000  # the number of elements inspected at a time
ALL: Final = slice(None)


class AccessAnalysis:
    """The execution times of the steps of a program, and the elements that they access.

    Arguments:
        program: the program, or its gradient, whose loops run backwards.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.variables: dict[Block, dict[str, Array]] = {}
        self.counts: dict[Block, int] = {}
        self._loops: dict[ForLoop, Array] = {}
        self._named: dict[str, Block] = {}
        self._items: dict[Block, list[Any]] = {}  # the items of each block when the times were computed
        self._enter(program.block, {}, 1)
        self._starts: dict[Block, Array] = {}
        self._durations: dict[Block, Array] = {}
        self._measure(program.block)
        self._assign_times(program.block, np.zeros(1, int))
        self._end = int(self._durations[program.block].max(initial=0))
        self._offsets: dict[tuple[Step, Grain], tuple[Array, Array]] = {}
        self._last: dict[tuple[str, Grain], Array | None] = {}
        self._runs: dict[Step, Runs | None] = {}
        self._block_of = {step: block for block, step in steps_of(program.block)}

    def value(self, block: Block, integer: Integer) -> Array | int:
        """Return the values of an integer in all executions of a block."""
        fixed = integer.value
        if fixed is not None:
            return fixed
        variables = self.variables[block]
        total: Array | int = 0
        for monomial, coefficient in integer.terms:
            product: Array | int = coefficient
            for name in monomial:
                product = product * variables[name]
            total = total + product
        return total

    def largest(self, block: Block, sizes: tuple[Integer, ...]) -> int:
        """Return the maximum size of an array with these sizes over all executions of a block."""
        product: Any = 1
        for n in sizes:
            product = product * self.value(block, n)
        return int(np.max(product, initial=1))

    def count_of(self, name: str) -> int:
        """Return the number of executions of the block with a name."""
        return self.counts[self._named[name]]

    def largest_named(self, name: str, sizes: tuple[Integer, ...]) -> int:
        """Return the result of `largest` for the block with a given name."""
        return self.largest(self._named[name], sizes)

    def elements_named(self, name: str, sizes: tuple[Integer, ...]) -> int:
        """Return the result of `elements` for the block with a given name."""
        return self.elements(self._named[name], sizes)

    def are_apart(self, first: tuple[str, Access], second: tuple[str, Access]) -> bool:
        """Return whether two windows, each in the block with a given name, never have an element in common."""
        (name, one), (other_name, other) = first, second
        if name != other_name or one.is_picked or other.is_picked:
            return False
        block = self._named[name]
        difference = other.offset - one.offset
        if difference.value is not None and one.strides == other.strides and one.sizes == other.sizes:
            shape = [n.value for n in one.sizes]
            strides = [n.value for n in one.strides]
            if None not in shape and None not in strides:
                return windows_are_apart(shape, strides, difference.value)  # type: ignore[arg-type]
        (low, high), (other_low, other_high) = self._extent(block, one), self._extent(block, other)
        return bool(np.all((high < other_low) | (other_high < low)))

    def are_in_one_block(self, first: Step, second: Step) -> bool:
        """Return whether two steps are in the same block."""
        return self._block_of[first] is self._block_of[second]

    def _extent(self, block: Block, step: Access) -> tuple[Any, Any]:
        """Return the first and last element of a window over all executions."""
        low: Any = self.value(block, step.offset)
        high = low
        for n, stride in zip(step.sizes, step.strides):
            reach = (np.asarray(self.value(block, n)) - 1) * self.value(block, stride)
            low, high = low + np.minimum(reach, 0), high + np.maximum(reach, 0)
        return low, high

    def elements(self, block: Block, sizes: tuple[Integer, ...]) -> int:
        """Return the number of elements in arrays of these sizes over all executions of a block."""
        product: Any = 1
        for n in sizes:
            product = product * self.value(block, n)
        return int(np.sum(np.broadcast_to(product, self.counts[block])))

    def work(self) -> int:
        """Return the number of elements that all executions of all steps compute, read or write."""
        total = 0
        for step, block in self._block_of.items():
            sizes = [n.value for n in step.sizes]
            if None in sizes:
                total += self.elements(block, step.sizes)
            else:
                total += math.prod(sizes) * self.counts[block]  # type: ignore[arg-type]
        return total

    def is_kept(self, step: Access, window: Read | None = None) -> bool:
        """Return whether the window of a step, or another window, is never overwritten afterwards."""
        base = (window or step).base
        writes = [each for _, each in steps_of(self.program.block) if isinstance(each, Write) and each.base is base]
        if any(each.moves for each in (step, *writes)):  # the elements are unknown
            first = int(self.times(self._block_of[step], step).min(initial=self._end))
            return self.latest(writes) < first if isinstance(step, Read) else False
        grain = SINGLE if window is not None else self.grain([step, *writes], base.size)
        last = self._last_writes(base, writes, grain)
        if last is None:
            return False
        return all(bool((last[positions] <= times).all()) for positions, times in self._parts(step, grain, window))

    def _last_writes(self, base: Buffer, writes: Sequence[Write], grain: Grain) -> Array | None:
        """Return the time of the last write to each grain of a base, or None if it is unknown."""
        key = base.name, grain
        if key in self._last:
            return self._last[key]
        last = None
        if sum(self.access_count(step, grain) for step in writes) <= LARGEST:
            last = np.full(grain.number_of(base.size), -1)
            for step in writes:
                for positions, times in self._parts(step, grain):
                    np.maximum.at(last, positions, times)
        self._last[key] = last
        return last

    def access_count(self, step: Access, grain: Grain = SINGLE) -> int:
        """Return the number of elements, or of grains, accessed by the executions of a step."""
        block = self._block_of[step]
        if step.moves:
            return UNKNOWN
        if grain == SINGLE:
            return self.elements(block, step.sizes)
        each: int = math.prod([n for n, _ in self._dims(step, grain)])
        return each * self.counts[block]

    def grain(self, steps: Iterable[Access], size: int) -> Grain:
        """Return the number of neighbours that several steps of a buffer always access together.

        Arguments:
            steps: the steps.
            size: the size of the base.
        """
        return grain_of(map(self.runs, steps), size)

    def runs(self, step: Access) -> Runs | None:
        """Return the runs of adjacent elements that a step accesses, or None if they differ between executions."""
        if step not in self._runs:
            offsets = self.value(self._block_of[step], step.offset)
            count = self.counts[self._block_of[step]]
            self._runs[step] = runs_of(step, np.asarray(offsets) if count else np.zeros(0, int))
        return self._runs[step]

    def accesses(self, step: Access, grain: Grain = SINGLE) -> Iterator[tuple[Array, Array]]:
        """Yield the grains that executions of a step access, and the times, as arrays of equal shape."""
        return self._parts(step, grain)

    def _parts(self, step: Access, grain: Grain, window: Read | None = None) -> Iterator[tuple[Array, Array]]:
        """Yield the accesses of a step, or accesses to another window at the same times."""
        block = self._block_of[step]
        total = self.access_count(step, grain) if window is None else self.elements(block, window.sizes)
        number = 1 + total // PART
        count = self.counts[block]
        if number > 1:
            number = min(number, count)
        if window is None and number == 1:  # cached
            found = self._offsets.get((step, grain))
            if found is None:
                found = self._offsets[step, grain] = self._computed(step, block, self.times(block, step), grain, ALL)
            yield found
            return
        times = self.times(block, step)
        ends = [count * n // number for n in range(number + 1)]
        for start, stop in itertools.pairwise(ends):
            part = slice(start, stop)
            yield self._computed(window or step, block, times[part], grain, part)

    def _dims(self, step: Access, grain: Grain) -> list[tuple[Any, Any]]:
        """Return the lengths and strides of the window of a step, in grains."""
        if grain == SINGLE:
            return list(zip(step.sizes, step.strides))
        runs = self.runs(step)
        assert runs is not None
        return grain.dims(runs)

    def _computed(
        self, step: Access, block: Block, times: Array, grain: Grain, part: slice
    ) -> tuple[Array, Array]:
        def values(integer: Any) -> Array:
            """Return the values of an integer in the given executions."""
            found = integer if isinstance(integer, int) else self.value(block, integer)
            return np.broadcast_to(np.asarray(found), self.counts[block])[part]

        first = offsets = values(step.offset) if grain == SINGLE else grain.grains_at(values(step.offset))
        dims = self._dims(step, grain)
        fixed = [(_fixed(n), _fixed(stride)) for n, stride in dims]
        if all(n is not None and stride is not None for n, stride in fixed):
            inner = np.zeros(1, int)
            for n, stride in fixed:
                inner = np.add.outer(inner, np.arange(n) * stride).reshape(-1)  # type: ignore[operator, arg-type]
            if step.positions is not None:
                offsets = first[:, None] + step.positions.array[np.add.outer(values(step.positions.start), inner)]
            else:
                offsets = np.add.outer(first, inner)
            return offsets, np.broadcast_to(times[:, None], offsets.shape)
        which = np.arange(len(times))  # the execution that each element belongs to
        for n, stride in dims:
            repeats = values(n)[which]
            total = np.cumsum(repeats)
            number = int(total[-1]) if len(total) else 0
            inner = np.arange(number) - np.repeat(total - repeats, repeats)
            which = np.repeat(which, repeats)
            offsets = np.repeat(offsets, repeats) + inner * values(stride)[which]
        times = times[which]
        if step.positions is not None:
            offsets = first[which] + step.positions.array[values(step.positions.start)[which] + offsets - first[which]]
        return offsets, times

    def latest(self, steps: Iterable[Step]) -> int:
        """Return the time of the last execution of any of the given steps."""
        return max([int(self.times(self._block_of[step], step).max(initial=0)) for step in steps], default=-1)

    def forget(self) -> None:
        """Free the results for single elements; they are recomputed on demand."""
        self._offsets.clear()
        self._last.clear()

    def times(self, block: Block, step: Step) -> Array:
        """Return the times of a step in all executions of its block."""
        time = self._starts[block].copy()
        for item in self._items[block]:
            if item is step:
                break
            if isinstance(item, ForLoop):
                time += self._lengths(item)
            elif isinstance(item, IrregularLoop):
                time += int(sum(self._durations[body].sum() for body in item.bodies))
            else:
                time += 1
        return time

    # -- traversal -----------------------------------------------------------------------------------------------------

    def _enter(self, block: Block, variables: dict[str, Array], count: int) -> None:
        self._named[block.name] = block
        self._items[block] = list(block.items)
        self.variables[block] = variables
        self.counts[block] = count
        for item in block.items:
            if isinstance(item, ForLoop):
                repeats = np.broadcast_to(np.asarray(self.value(block, item.count)), count)
                self._loops[item] = repeats
                total = np.cumsum(repeats)
                number = int(total[-1]) if count else 0
                inner = {name: np.repeat(values, repeats) for name, values in variables.items()}
                first, last = np.repeat(total - repeats, repeats), np.repeat(total, repeats) - 1
                inner[item.variable] = last - np.arange(number) if item.down else np.arange(number) - first
                self._enter(item.body, inner, number)
            elif isinstance(item, IrregularLoop):
                assert count == 1
                for number, body in enumerate(item.bodies):
                    turn = slice(None, None, -1 if item.down else None)
                    iterations = np.flatnonzero(item.kinds == number)[turn]
                    inner = {name: np.repeat(values, len(iterations)) for name, values in variables.items()}
                    inner[item.variable] = iterations
                    for table, values in body.tables.items():
                        inner[f"{table}[{body.name}]"] = values[turn]
                    self._enter(body, inner, len(iterations))

    def _measure(self, block: Block) -> None:
        duration = np.zeros(self.counts[block], int)
        for item in block.items:
            if isinstance(item, ForLoop):
                self._measure(item.body)
                duration += self._lengths(item)
            elif isinstance(item, IrregularLoop):
                for body in item.bodies:
                    self._measure(body)
                duration += int(sum(self._durations[body].sum() for body in item.bodies))
            else:
                duration += 1
        self._durations[block] = duration

    def _lengths(self, loop: ForLoop) -> Array:
        """Return the duration of each execution of a loop."""
        sums = np.concatenate([[0], np.cumsum(self._durations[loop.body])])
        ends = np.cumsum(self._loops[loop])
        lengths: Array = sums[ends] - sums[ends - self._loops[loop]]
        return lengths

    def _assign_times(self, block: Block, starts: Array) -> None:
        self._starts[block] = starts
        time = starts.copy()
        for item in block.items:
            if isinstance(item, ForLoop):
                repeats = self._loops[item]
                before = np.concatenate([[0], np.cumsum(self._durations[item.body])[:-1]])[: self.counts[item.body]]
                ends = np.cumsum(repeats)
                first = np.repeat(ends - repeats, repeats)
                since = before - before[first] if len(before) else before
                self._assign_times(item.body, np.repeat(time, repeats) + since)
                time = time + self._lengths(item)
            elif isinstance(item, IrregularLoop):
                durations = np.zeros(len(item.kinds), int)
                kinds = item.kinds[::-1] if item.down else item.kinds
                for number, body in enumerate(item.bodies):
                    durations[kinds == number] = self._durations[body]
                starts = time[0] + np.cumsum(durations) - durations
                for number, body in enumerate(item.bodies):
                    self._assign_times(body, starts[kinds == number])
                time = time + int(durations.sum())
            else:
                time = time + 1


def analysis_of(program: Program) -> AccessAnalysis:
    """Return the analysis of a program, cached in the program; it remains valid if steps are removed."""
    if program.analysis is None:
        program.analysis = AccessAnalysis(program)
    found: AccessAnalysis = program.analysis
    return found


def _fixed(integer: Integer | int) -> int | None:
    return integer if isinstance(integer, int) else integer.value


def windows_are_apart(shape: list[int], strides: list[int], difference: int) -> bool:
    """Return whether a window and the same window shifted by `difference` have no element in common."""
    dims = sorted([(abs(stride), n) for n, stride in zip(shape, strides) if n > 1 and stride])
    if 0 in shape:
        return True
    if not dims:
        return difference != 0
    (step, extent), outer = dims[0], dims[1:]
    if np.prod([2 * n - 1 for _, n in outer], dtype=float) > MANY:
        return False
    rests = np.array([difference])
    for stride, n in outer:
        rests = (rests[:, None] - stride * np.arange(1 - n, n)).reshape(-1)
    return not bool(np.any((rests % step == 0) & (np.abs(rests) < step * extent)))
