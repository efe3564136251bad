"""The stream of instructions of a trace, which is rolled up into loops as it grows.

Every value is identified by the site that it comes from and by its number among the values of that site. An instruction
refers to an operand by its site and age, which are usually the same in each iteration of a loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import numpy as np

from ..trace.types import row_strides
from .element_types import char_of, widened
from .loop_ir import Buffer
from .reroll import Ints, LoopReroller

Shape = tuple[int, ...]
FEW: Final = 8  # the maximum number of arrays at one line that are stored once each
ROLLED: Final = 200_000  # the number of terms that may remain before irregular loops are searched for


class TracedValue(NamedTuple):
    """A value, identified by its site and its number there, with its shape."""

    site: int
    number: int
    shape: Shape


class Moved(NamedTuple):
    """A computed integer that moves a window, with its labels and the number of elements per unit."""

    value: TracedValue
    labels: Shape
    stride: int


class Result(NamedTuple):
    """A result of a program: a window of a buffer at the end."""

    base: str
    shape: Shape
    strides: Shape
    offset: int


class Parts:
    """The index arrays at the sites of one line, as parts of one table.

    Attributes:
        arrays: the flattened arrays.
        size: their total number of elements.
        starts: the start of each, by its content.
        last: the content of the last array.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.size = 0
        self.starts: dict[bytes, int] = {}
        self.last = b""

    def table(self) -> np.ndarray[Any, Any]:
        """Return all arrays, concatenated."""
        if len(self.arrays) > 1:
            self.arrays = [np.concatenate(self.arrays)]
        return self.arrays[0]


class Stream:
    """A growing list of instructions that is rolled up into loops.

    Arguments:
        locations: the source lines of the instructions.
        limit: the maximum number of terms that may remain at the end.
        spilled: the keys of the sites whose values are stored in memory, with the room for each value in a buffer.
        many_indices: the keys of the tables that are known to have many parts.

    Attributes:
        found_many: the keys of the tables that were found to have many parts.
    """

    def __init__(
        self, locations: list[tuple[str, int]], limit: int = 20_000, spilled: Mapping[Any, int] | None = None,
        many_indices: Set[Any] = frozenset(),
    ) -> None:
        self.locations = locations
        self.roller = LoopReroller(max(limit, ROLLED))
        self._structure = self.roller.structures.number_of
        self.limit = limit
        self.regular: set[int] = set()  # the lines with a check that a small matrix is not nearly singular
        self.indices: set[int] = set()  # the lines with a guard on an index or an array
        self.bases: list[Buffer] = []
        self.results: list[Result] = []
        self.sites: list[tuple[int, str, Shape | None]] = []  # the size, the dtype, and the shape if there is one
        self.site_locations: list[int] = []
        self._counts: list[int] = []  # by site, the number of its values
        self._numbers: dict[Any, int] = {}  # the numbers of the sites
        self._by_structure: dict[int, int] = {}
        self.spilled = {} if spilled is None else spilled
        self.keys: list[Any] = []  # the keys of the sites
        self._spills: dict[int, tuple[int, list[int]]] = {}  # the buffers of such sites, and positions of values
        self.many_indices = many_indices
        self.found_many: set[Any] = set()
        self.tables: list[Parts] = []
        self._tables: dict[Any, int] = {}

    def base(self, size: int, dtype: Any, kind: str, initial: Any = 0.0) -> int:
        """Add a buffer and return its number."""
        self.bases.append(Buffer(f"m{len(self.bases)}", size, np.dtype(dtype), kind, initial))
        return len(self.bases) - 1

    def op(
        self, name: str, expression: str, slope: str | None, location: int, dtype: str, sizes: Shape, out: Shape,
        operands: Sequence[tuple[TracedValue | float | int | bool, Shape]],
    ) -> TracedValue:
        """Return a computed value.

        Arguments:
            name, expression: the operator and its expression.
            slope: the gradient of the first operand, if it is the result of a reduction.
            location: the number of the source line.
            dtype: the dtype of the value.
            sizes: the range of each label.
            out: the labels of the dimensions of the value.
            operands: values or numbers, each with the labels of its dimensions.
        """
        ages: list[int] = []
        constants: list[Any] = []
        taken: list[tuple[Any, Any]] = []
        if self._spills:  # before ages are counted
            operands = [(self._fetched(operand, location), labels) for operand, labels in operands]
        for operand, labels in operands:
            if type(operand) is TracedValue:
                taken.append((operand.site, labels))
                ages.append(self._counts[operand.site] - 1 - operand.number)
            else:
                taken.append(("c", char_of(operand)))
                constants.append(operand)
        shape = tuple([1 if label < 0 else sizes[label] for label in out])
        site = self._site((location, name, dtype, len(out)), dtype, shape, location)
        structure = self._structure(
            ("op", name, slope, location, dtype, out, expression, len(sizes), tuple(taken))
        )
        return self._given(structure, (*sizes, *ages), tuple(constants), site, shape, location)

    def call(self, operation: Any, location: int,
    operands: Sequence[TracedValue | float | int | bool | None]) -> TracedValue:
        """Emit a call of an operator without a kernel; omitted operands are None."""
        ages: list[int] = []
        constants: list[Any] = []
        taken: list[tuple[Any, Any]] = []
        for operand in [self._fetched(operand, location) for operand in operands]:  # before ages are counted
            if type(operand) is TracedValue:
                taken.append((operand.site, tuple(range(len(operand.shape)))))
                ages.append(self._counts[operand.site] - 1 - operand.number)
            elif operand is not None:
                taken.append(("c", char_of(operand)))
                constants.append(operand)
        shape, dtype = operation.shape, widened(operation.dtype).char
        site = self._site((location, operation.name, operation.number, dtype, shape), dtype, shape, location)
        structure = self._structure(("call", operation, location, tuple(taken)))
        return self._given(structure, tuple(ages), tuple(constants), site, shape, location)

    def read(self, base: int, sizes: Shape, strides: Shape, offset: int, location: int) -> TracedValue:
        """Return the value of a window."""
        dtype = self.bases[base].dtype.char
        site = self._site((location, "read", base, len(sizes)), dtype, sizes, location)
        structure = self._structure(("read", base, location, len(sizes)))
        return self._given(structure, (*sizes, *strides, offset), (), site, sizes, location)

    def read_at(
        self, base: int, sizes: Shape, strides: Shape, offset: int, moves: Sequence[Moved], location: int
    ) -> TracedValue:
        """Return the value of a window that is moved by computed integers."""
        moves = [Moved(self._fetched(move.value, location), move.labels, move.stride) for move in moves]
        dtype = self.bases[base].dtype.char
        site = self._site((location, "read_at", base, len(sizes)), dtype, sizes, location)
        by = tuple([(move.value.site, move.labels) for move in moves])
        structure = self._structure(("read_at", base, location, len(sizes), by))
        return self._given(structure, (*sizes, *strides, offset, *self._moved(moves)), (), site, sizes, location)

    def write_at(
        self, base: int, sizes: Shape, strides: Shape, offset: int, moves: Sequence[Moved], value: Any, labels: Shape,
        location: int, unrecorded: bool = False,
    ) -> None:
        """Write a value to a window that is moved by computed integers."""
        value = self._fetched(value, location)
        moves = [Moved(self._fetched(move.value, location), move.labels, move.stride) for move in moves]
        by = tuple([(move.value.site, move.labels) for move in moves])
        ints = (*sizes, *strides, offset, *self._moved(moves))
        of: Any = (value.site, labels) if type(value) is TracedValue else ("c", char_of(value))
        structure = self._structure(("write_at", base, location, len(sizes), by, of, unrecorded))
        if type(value) is TracedValue:
            self.roller.take(structure, (*ints, self._counts[value.site] - 1 - value.number))
        else:
            self.roller.take(structure, ints, (value,))

    def _moved(self, moves: Sequence[Moved]) -> Ints:
        """Return the strides of moves, and the ages of the integers."""
        ages = [self._counts[move.value.site] - 1 - move.value.number for move in moves]
        return (*[move.stride for move in moves], *ages)

    def write(
        self, base: int, sizes: Shape, strides: Shape, offset: int, value: TracedValue | float, labels: Shape,
        location: int, unrecorded: bool = False,
    ) -> None:
        """Write a value to a window."""
        value = self._fetched(value, location)
        if type(value) is TracedValue:
            structure = self._structure(("write", base, location, len(sizes), (value.site, labels), unrecorded))
            age = self._counts[value.site] - 1 - value.number
            self.roller.take(structure, (*sizes, *strides, offset, age))
        else:
            structure = self._structure(("write", base, location, len(sizes), ("c", char_of(value)), unrecorded))
            self.roller.take(structure, (*sizes, *strides, offset), (value,))  # type: ignore[arg-type]

    def gather(self, base: int, positions: Any, offset: int, location: int) -> TracedValue:
        """Return the values at the positions of a base given by an array with the shape of the result."""
        shape = positions.shape
        table, start = self._table(_key_of("gather", location, base, shape), positions)
        dtype = self.bases[base].dtype.char
        site = self._site((location, "gather", base, len(shape)), dtype, shape, location)
        structure = self._structure(("gather", base, location, shape, table))
        return self._given(structure, (offset, start), (), site, shape, location)

    def scatter(
        self, base: int, positions: Any, offset: int, value: TracedValue | float, labels: Shape, location: int,
        unrecorded: bool = False,
    ) -> None:
        """Write a value to distinct positions of a base."""
        table, start = self._table(_key_of("scatter", location, base, positions.shape), positions)
        value = self._fetched(value, location)
        if type(value) is TracedValue:
            of: Any = (value.site, labels)
            structure = self._structure(("scatter", base, location, positions.shape, table, of, unrecorded))
            self.roller.take(structure, (offset, start, self._counts[value.site] - 1 - value.number))
        else:
            of = ("c", char_of(value))
            structure = self._structure(("scatter", base, location, positions.shape, table, of, unrecorded))
            self.roller.take(structure, (offset, start), (value,))  # type: ignore[arg-type]

    def has_many_indices(self, what: str, location: int, base: int, shape: Shape) -> bool:
        """Return whether many arrays are known to be indices at a line, so that each is accessed in the same way.

        Arguments:
            what: "gather" or "scatter".
            location, base, shape: the line, the base, and the shapes of the base and of the arrays.
        """
        return _key_of(what, location, base, shape) in self.many_indices

    def _table(self, key: Any, positions: Any) -> tuple[int, int]:
        """Return the number of the table that contains an array of positions, and its start there.

        If there are few arrays, each occurs once. Otherwise they follow each other in the order of use, so that their
        starts change by constant steps.
        """
        number = self._tables.get(key)
        if number is None:
            number = self._tables[key] = len(self.tables)
            self.tables.append(Parts())
        parts = self.tables[number]
        content = positions.tobytes()
        if key not in self.many_indices:
            start = parts.starts.get(content)
            if start is not None:
                return number, start
            if len(parts.starts) == FEW:
                self.found_many.add(key)
        elif content == parts.last:
            return number, parts.size - positions.size
        start = parts.starts[content] = parts.size
        parts.last = content
        parts.arrays.append(np.array(positions).reshape(-1))
        parts.size += positions.size
        return number, start

    def check(self, value: TracedValue, expected: Any, location: int) -> None:
        """Guard a 0-d value that was inspected: if it differs, the program is not valid."""
        value = self._fetched(value, location)
        age = self._counts[value.site] - 1 - value.number
        if type(expected) is bool:
            self.roller.take(self._structure(("check", location, (value.site, ()), expected)), (age,))
        else:
            structure = self._structure(("check", location, (value.site, ()), ("c", char_of(expected))))
            self.roller.take(structure, (age,), (expected,))

    def site_of(self, structure: int) -> int | None:
        """Return the site of the values of instructions with the given structure, if they have values."""
        return self._by_structure.get(structure)

    def where(self, location: int) -> str:
        """Return a source line as `file:line`."""
        if not 0 <= location < len(self.locations):
            return "an unknown line"
        return "{}:{}".format(*self.locations[location])

    def _site(self, key: Any, dtype: str, shape: Shape, location: int) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.sites)
            self.sites.append((math.prod(shape), dtype, shape))
            self.site_locations.append(location)
            self._counts.append(0)
            self.keys.append(key)
        elif self.sites[number][2] != shape:
            size = max(self.sites[number][0], math.prod(shape))
            self.sites[number] = (size, dtype, None)
        return number

    def _given(
        self, structure: int, ints: Ints, constants: tuple[Any, ...], site: int, shape: Shape, location: int
    ) -> TracedValue:
        """Add an instruction and return its value."""
        number = self._counts[site]
        self._counts[site] = number + 1
        room = self.spilled.get(self.keys[site]) if self.spilled else None
        if room is not None:  # one instruction with the write, so that no loop begins in between
            if site not in self._spills:
                self._spills[site] = (self.base(0, self.sites[site][1], "made"), [])
            base, offsets = self._spills[site]
            offset = self.bases[base].size
            offsets.append(offset)
            self.bases[base].size += max(math.prod(shape), room)
            structure = self._structure(("spilled", structure, base, location, len(shape), len(ints)))
            ints = (*ints, *shape, *row_strides(shape), offset)
        self._by_structure[structure] = site
        self.roller.take(structure, ints, constants)
        return TracedValue(site, number, shape)

    def _fetched(self, value: Any, location: int) -> Any:
        """Return a value, reading it again if it is stored in memory."""
        if type(value) is not TracedValue or value.site not in self._spills:
            return value
        base, offsets = self._spills[value.site]
        return self.read(base, value.shape, row_strides(value.shape), offsets[value.number], location)


def _key_of(what: str, location: int, base: int, shape: Shape) -> Any:
    """Return the key of the table of a line."""
    return "table", what, location, base, shape
