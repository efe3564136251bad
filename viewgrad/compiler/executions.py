"""All executions of the steps of a program: when each comes, and which elements it touches."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .integers import Integer
from .program import Base, Block, Choose, Program, Read, Repeat, Step, Write, steps_of

__all__ = ["Executions"]

Array = np.ndarray[Any, Any]
MANY: Final = 100_000  # differences between places that are looked at
LARGEST: Final = 30_000_000  # elements touched; where there are more, nothing is known


class Executions:
    """When each step of a program is executed, and what it touches.

    Arguments:
        program: the program, or its gradient, in which loops run down.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.variables: dict[Block, dict[str, Array]] = {}
        self.counts: dict[Block, int] = {}
        self._loops: dict[Repeat, Array] = {}
        self._named: dict[str, Block] = {}
        self._items: dict[Block, list[Any]] = {}  # as they were when the times were found
        self._enter(program.block, {}, 1)
        self._starts: dict[Block, Array] = {}
        self._durations: dict[Block, Array] = {}
        self._measure(program.block)
        self._place(program.block, np.zeros(1, int))
        self._offsets: dict[Step, tuple[Array, Array]] = {}
        self._last: dict[str, Array | None] = {}
        self._block_of = {step: block for block, step in steps_of(program.block)}

    def value(self, block: Block, integer: Integer) -> Array | int:
        """The values of an integer in all executions of a block."""
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
        """The size of the largest array with these sizes in any execution of a block."""
        product: Any = 1
        for n in sizes:
            product = product * self.value(block, n)
        return int(np.max(product, initial=1))

    def count_of(self, name: str) -> int:
        """How often the block with a name is executed."""
        return self.counts[self._named[name]]

    def largest_named(self, name: str, sizes: tuple[Integer, ...]) -> int:
        """What `largest` gives for the block with a name."""
        return self.largest(self._named[name], sizes)

    def elements_named(self, name: str, sizes: tuple[Integer, ...]) -> int:
        """What `elements` gives for the block with a name."""
        return self.elements(self._named[name], sizes)

    def are_apart(self, first: tuple[str, Read | Write], second: tuple[str, Read | Write]) -> bool:
        """Whether two windows, each in the block with a name, have no element in common in any execution."""
        (name, one), (other_name, other) = first, second
        if name != other_name or one.places is not None or other.places is not None:
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

    def _extent(self, block: Block, step: Read | Write) -> tuple[Any, Any]:
        """The first and the last element of a window, in all executions."""
        low: Any = self.value(block, step.offset)
        high = low
        for n, stride in zip(step.sizes, step.strides):
            reach = (np.asarray(self.value(block, n)) - 1) * self.value(block, stride)
            low, high = low + np.minimum(reach, 0), high + np.maximum(reach, 0)
        return low, high

    def elements(self, block: Block, sizes: tuple[Integer, ...]) -> int:
        """How many elements arrays with these sizes have in all executions of a block."""
        product: Any = 1
        for n in sizes:
            product = product * self.value(block, n)
        return int(np.sum(np.broadcast_to(product, self.counts[block])))

    def is_kept(self, step: Read | Write, window: Read | None = None) -> bool:
        """Whether what a step reads or writes is never overwritten after that; or another window, from its time on."""
        last = self._last_writes((window or step).base)
        if last is None:
            return False
        places, times = self._touched(step) if window is None else self._computed(window, step)
        return bool((last[places] <= times).all())

    def _last_writes(self, base: Base) -> Array | None:
        """For each element of a base, when it is written for the last time; None where that is not known."""
        if base.name in self._last:
            return self._last[base.name]
        writes = [step for _, step in steps_of(self.program.block) if isinstance(step, Write) and step.base is base]
        touched = sum(self.elements(self._block_of[step], step.sizes) for step in writes)
        last = None
        if touched <= LARGEST:
            last = np.full(base.size, -1)
            for step in writes:
                places, times = self._touched(step)
                np.maximum.at(last, places, np.broadcast_to(times, places.shape))
        self._last[base.name] = last
        return last

    def touches(self, step: Read | Write) -> int:
        """How many elements the executions of a step touch."""
        return self.elements(self._block_of[step], step.sizes)

    def touched(self, step: Read | Write) -> tuple[Array, Array]:
        """The elements that the executions of a step touch, and when."""
        return self._computed(step)

    def _touched(self, step: Read | Write) -> tuple[Array, Array]:
        """The same, kept for those who ask again."""
        found = self._offsets.get(step)
        if found is None:
            found = self._offsets[step] = self._computed(step)
        return found

    def _computed(self, step: Read | Write, when: Step | None = None) -> tuple[Array, Array]:
        when = step if when is None else when
        block = self._block_of[when]
        count = self.counts[block]
        times = self.times(block, when)
        first = offsets = np.broadcast_to(np.asarray(self.value(block, step.offset)), count)
        sizes = [np.broadcast_to(np.asarray(self.value(block, n)), count) for n in step.sizes]
        strides = [np.broadcast_to(np.asarray(self.value(block, n)), count) for n in step.strides]
        which = np.arange(count)  # the execution that each element belongs to
        for size, stride in zip(sizes, strides):
            repeats = size[which]
            total = np.cumsum(repeats)
            number = int(total[-1]) if len(total) else 0
            inner = np.arange(number) - np.repeat(total - repeats, repeats)
            which = np.repeat(which, repeats)
            offsets = np.repeat(offsets, repeats) + inner * stride[which]
        times = times[which]
        if step.places is not None:
            offsets = first[which] + step.places.array[offsets - first[which]]
        return offsets, times

    def times(self, block: Block, step: Step) -> Array:
        """When a step is executed, in all executions of its block."""
        time = self._starts[block].copy()
        for item in self._items[block]:
            if item is step:
                break
            if isinstance(item, Repeat):
                time += self._lengths(item)
            elif isinstance(item, Choose):
                time += int(sum(self._durations[body].sum() for body in item.bodies))
            else:
                time += 1
        return time

    # -- walking -------------------------------------------------------------------------------------------------------

    def _enter(self, block: Block, variables: dict[str, Array], count: int) -> None:
        self._named[block.name] = block
        self._items[block] = list(block.items)
        self.variables[block] = variables
        self.counts[block] = count
        for item in block.items:
            if isinstance(item, Repeat):
                repeats = np.broadcast_to(np.asarray(self.value(block, item.count)), count)
                self._loops[item] = repeats
                total = np.cumsum(repeats)
                number = int(total[-1]) if count else 0
                inner = {name: np.repeat(values, repeats) for name, values in variables.items()}
                first, last = np.repeat(total - repeats, repeats), np.repeat(total, repeats) - 1
                inner[item.variable] = last - np.arange(number) if item.down else np.arange(number) - first
                self._enter(item.body, inner, number)
            elif isinstance(item, Choose):
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
            if isinstance(item, Repeat):
                self._measure(item.body)
                duration += self._lengths(item)
            elif isinstance(item, Choose):
                for body in item.bodies:
                    self._measure(body)
                duration += int(sum(self._durations[body].sum() for body in item.bodies))
            else:
                duration += 1
        self._durations[block] = duration

    def _lengths(self, loop: Repeat) -> Array:
        """How long each execution of a loop takes."""
        sums = np.concatenate([[0], np.cumsum(self._durations[loop.body])])
        ends = np.cumsum(self._loops[loop])
        lengths: Array = sums[ends] - sums[ends - self._loops[loop]]
        return lengths

    def _place(self, block: Block, starts: Array) -> None:
        self._starts[block] = starts
        time = starts.copy()
        for item in block.items:
            if isinstance(item, Repeat):
                repeats = self._loops[item]
                before = np.concatenate([[0], np.cumsum(self._durations[item.body])[:-1]])[: self.counts[item.body]]
                ends = np.cumsum(repeats)
                first = np.repeat(ends - repeats, repeats)
                since = before - before[first] if len(before) else before
                self._place(item.body, np.repeat(time, repeats) + since)
                time = time + self._lengths(item)
            elif isinstance(item, Choose):
                durations = np.zeros(len(item.kinds), int)
                kinds = item.kinds[::-1] if item.down else item.kinds
                for number, body in enumerate(item.bodies):
                    durations[kinds == number] = self._durations[body]
                starts = time[0] + np.cumsum(durations) - durations
                for number, body in enumerate(item.bodies):
                    self._place(body, starts[kinds == number])
                time = time + int(durations.sum())
            else:
                time = time + 1


def windows_are_apart(shape: list[int], strides: list[int], difference: int) -> bool:
    """Whether a window and the same one moved by `difference` have no element in common."""
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
