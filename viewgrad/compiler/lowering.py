"""From the graph of a run to a stream of instructions.

A value of the graph is a number, a value of the stream, or the memory of a base. Bases that are made at one line lie
one after the other in one buffer. So what is made anew in each iteration of a loop is at a place that moves on.

It is long because it is a table: what each kind of node becomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import NotCompiledError
from ..operators.define import OPERATORS
from ..trace.attributes import Frozen, Given
from ..trace.graph import Graph, Node, Value
from ..trace.primitives import operator_of
from ..trace.raised import RAN
from ..trace.types import TensorType, row_strides
from .callbacks import Operation
from .element_types import BOOL, FLOAT, HELD, INTEGER, SINGLE, as_number, char_of, widened
from .lower.casts import converted
from .lower.data_movement import REARRANGING
from .lower.dynamic_index import COMPUTED, fixed_indices, is_computed, moved_read, moved_write
from .lower.elementwise import elementwise
from .lower.reductions import COMPOSITES, broadcast_labels, options_of
from .lower.small_matrices import SMALL_MATRICES
from .lower.windowed import PARTS
from .replay import index_of, outlived
from .scalar_rules import BITWISE, EXACT, FORWARD, INTEGERS, MORE
from .trace_stream import Result, Stream, TracedValue
from .window_strides import completed_windows

__all__ = ["Lowering", "lowered"]

Shape = tuple[int, ...]
EMPTY: Final[Mapping[Any, int]] = {}
ROUNDS: Final = 32  # so often may one place be added to
UNRECORDED: Final = frozenset({"overwrite", "put_at_unrecorded", "add_at_unrecorded"})
DRAWING: Final = frozenset({"_native_dropout"})  # which draw random numbers


class Memory(NamedTuple):
    """The memory of a value: a part of a base."""

    base: int
    offset: int


class Number(NamedTuple):
    """A number, with the shape that it stands for."""

    value: Any
    shape: Shape


Lowered = TracedValue | Memory | Number


def lowered(
    graph: Graph, limit: int, spilled: Mapping[Any, int] = EMPTY, native: bool = False,
    irregular: frozenset[int] = frozenset(), reserves: dict[Any, int] | None = None,
) -> Stream:
    """The stream of a graph.

    Arguments:
        graph: the graph.
        limit: how many terms may be left when all loops are found.
        spilled: the keys of the places whose values go through memory; see `Stream`.
        native: whether it is compiled to machine code, where loops over single elements are fast.
        irregular: the lines with small matrices that may be near singular ones.
        reserves: the size of the largest part of buffers whose parts grow, and which tables have many parts, as found
            the last time.

    Raises:
        NotCompiledError: for what cannot be compiled, with the file and line.
    """
    known = {} if reserves is None else reserves
    first = Lowering(graph, limit, spilled, native, irregular, dict(known))
    stream = first.run()
    if not first.growing and not stream.crowding:
        return stream
    known.update({key: first.reserves[key] for key in first.growing})
    known.update(dict.fromkeys(stream.crowding, 0))
    return Lowering(graph, limit, spilled, native, irregular, dict(known)).run()


class Lowering:
    """Lowers a graph; `run` gives the stream."""

    def __init__(
        self, graph: Graph, limit: int, spilled: Mapping[Any, int], native: bool, irregular: frozenset[int],
        reserves: dict[Any, int],
    ) -> None:
        self.graph = graph
        self.irregular = irregular
        self.native = native  # whether loops over single elements are fast
        self.stream = Stream(graph.locations, limit, spilled, frozenset(key for key in reserves if key[0] == "table"))
        self.values: dict[Value, Lowered] = {}
        self.latest: dict[Memory, Value] = {}
        self.arenas: dict[Any, int] = {}
        self.contents: dict[int, list[tuple[int, np.ndarray[Any, Any]]]] = {}
        self.node: Node | None = None
        self.windows = completed_windows(graph)
        self.growing: set[Any] = set()  # the arenas with parts larger than those before
        self.reserves = reserves  # by arena: the size of its largest part
        self.fixed = fixed_indices(graph)  # the integers that must be what they were
        self.expected: dict[Value, Frozen] = {}  # what these were
        self.outlived = outlived(graph)  # the values that are used after a write over them

    def run(self) -> Stream:
        for number, value in enumerate(self.graph.inputs):
            kind = self.type_of(value)
            base = self._base(math.prod(kind.shape), kind.dtype, "input", number)
            self.remember(value, Memory(base, 0))
        first = rearranged_inputs(self.graph)
        for node in first:
            self.node = node
            self._lower(node)
            self.memory(node.output)
        for node in self.graph.block:
            if node not in first:
                self.node = node
                self._lower(node)
        self.node = None
        for output in self.graph.outputs:
            assert output is not None
            self.stream.results.append(self._result(output))
        for base, parts in self.contents.items():
            initial = np.zeros(self.stream.bases[base].size, self.stream.bases[base].dtype)
            for offset, part in parts:
                initial[offset : offset + part.size] = part
            self.stream.bases[base].initial = initial
        return self.stream

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _lower(self, node: Node) -> None:
        kind = node.kind
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node)
        elif not ((kind in FORWARD or kind in BITWISE) and elementwise(self, node)):
            composite = _COMPOSITES.get(kind)
            if composite is None or not composite(self, node):
                self._call(node)

    def _full(self, node: Node) -> None:
        shape, fill, dtype = node.attributes
        if widened(dtype) not in HELD:
            raise self._refused(f"arrays of {dtype} are not compiled")
        number = float(SINGLE.type(fill)) if dtype == SINGLE else as_number(fill, dtype)
        self.values[node.output] = Number(number, tuple(shape))

    def _constant(self, node: Node) -> None:
        (frozen,) = node.attributes
        array = frozen.array
        array = array.astype(widened(array.dtype), copy=False)
        if array.dtype not in HELD:
            raise self._refused(f"arrays of {array.dtype} are not compiled")
        if array.size == 1:
            self.values[node.output] = Number(array.item(), array.shape)
            return
        key = ("constant", node.location, array.dtype)
        base = self.arena(key, array.dtype, 0)
        memory = Memory(base, self._part(key, base, array.size))
        self.contents.setdefault(base, []).append((memory.offset, array.reshape(-1)))
        self.remember(node.output, memory)

    def _read(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        window = self.windows.get(node, node.attributes)
        if window.dtype is not None:
            raise self._refused("parts of complex numbers are not compiled")
        memory = self.memory(value)
        self.values[node.output] = self.stream.read(
            memory.base, window.sizes, window.strides, memory.offset + window.offset, node.location
        )

    def _write(self, node: Node) -> None:
        target, value = node.inputs
        assert target is not None and value is not None
        window = self.windows.get(node, node.attributes)
        if window.dtype is not None:
            raise self._refused("parts of complex numbers are not compiled")
        source = self.operand(value)
        memory = self.written(target)
        given, labels = self.given(source, target, value, window.sizes)
        offset = memory.offset + window.offset
        self.stream.write(memory.base, window.sizes, window.strides, offset, given, labels, node.location,
                          unrecorded=node.kind in UNRECORDED)
        self.remember(node.output, memory)

    def given(self, source: TracedValue | Number, target: Value, value: Value, shape: Shape) -> tuple[Any, Shape]:
        """What is written to a window, and its labels: a value in the dtype of the target."""
        to, of = self.type_of(target).dtype, self.type_of(value).dtype
        narrows = _is_single(target) and not _is_single(value)
        if isinstance(source, Number):
            number = as_number(source.value, to)
            return (float(SINGLE.type(number)) if narrows else number), ()
        if narrows and of == to:
            source = self._rounded(source)
        if to == INTEGER and of == FLOAT and not source.shape:  # NumPy raises where a single number is none
            fits = self.emit("fits", [(source, ())], (), (), "?")
            self.stream.check(fits, True, self.node.location)  # type: ignore[union-attr]
        source = converted(self, source, to)
        return source, broadcast_labels(source.shape, shape)

    def _index(self, node: Node) -> None:
        value = node.inputs[0]
        assert value is not None
        if is_computed(node) and self.fixed.isdisjoint(node.inputs[1:]):
            self.values[node.output] = moved_read(self, node)
            return
        (pattern,) = node.attributes
        places = self._places(self.type_of(value).shape, pattern)
        memory = self.taken(value)
        crowded = self.stream.is_crowded("gather", node.location, memory.base, places.shape)
        strides = None if crowded else strides_of(places)
        if strides is None:
            self.values[node.output] = self.stream.gather(memory.base, places, memory.offset, node.location)
        else:
            start = memory.offset + int(places.flat[0])
            self.values[node.output] = self.stream.read(memory.base, places.shape, strides, start, node.location)

    def _index_put(self, node: Node) -> None:
        target, value = node.inputs[:2]
        assert target is not None and value is not None
        if is_computed(node) and self.fixed.isdisjoint(node.inputs[2:]):
            moved_write(self, node, node.kind in UNRECORDED)
            return
        window, pattern = node.attributes
        numbers = np.arange(math.prod(self.type_of(target).shape))
        places = self._places(window.sizes, pattern, window_of(numbers, window))
        source = self.operand(value)
        memory = self.written(target)
        given, labels = self.given(source, target, value, places.shape)
        last, unrecorded = last_mentions(places), node.kind in UNRECORDED
        crowded = self.stream.is_crowded("scatter", node.location, memory.base, places.shape)
        if last is not None:
            part, of_part = self._picked(given, labels, places.shape, last)
            here = places.reshape(-1)[last]
            self.stream.scatter(memory.base, here, memory.offset, part, of_part, node.location, unrecorded)
        elif crowded or (strides := strides_of(places)) is None:
            self.stream.scatter(memory.base, places, memory.offset, given, labels, node.location, unrecorded)
        else:
            start = memory.offset + int(places.flat[0])
            self.stream.write(memory.base, places.shape, strides, start, given, labels, node.location, unrecorded)
        self.remember(node.output, memory)

    def _index_add(self, node: Node) -> None:
        """A value added at places of a base, once for each mention: of one place one mention after the other."""
        target, value = node.inputs[:2]
        assert target is not None and value is not None
        window, pattern = node.attributes
        numbers = np.arange(math.prod(self.type_of(target).shape))
        places = self._places(window.sizes, pattern, window_of(numbers, window))
        rounds = mentions(places)
        if len(rounds) > ROUNDS or _is_single(target):
            raise self._refused("adding to one place many times is not compiled")
        source = self.operand(value)
        memory = self.written(target)
        given, labels = self.given(source, target, value, places.shape)
        for chosen in rounds:
            part, of_part = self._picked(given, labels, places.shape, chosen)
            here = places.reshape(-1)[chosen]
            before = self.stream.gather(memory.base, here, memory.offset, node.location)
            dtype = self.type_of(target).dtype
            total = self.emit("add", [(before, (0,)), (part, of_part)], here.shape, (0,), dtype.char)
            self.stream.scatter(
                memory.base, here, memory.offset, total, (0,), node.location, unrecorded=node.kind in UNRECORDED
            )
        self.remember(node.output, memory)

    def _picked(self, given: Any, labels: Shape, shape: Shape, chosen: Any) -> tuple[Any, Shape]:
        """Some elements of a value that is broadcast to a shape, one after the other, and their labels."""
        if type(given) is not TracedValue:
            return given, ()
        node = self.node
        assert node is not None
        dtype = np.dtype(self.stream.places[given.place][1])
        key = ("picked", node.location, dtype)
        base = self.arena(key, dtype, 0.0)
        start = self._part(key, base, math.prod(shape))
        self.stream.write(base, shape, row_strides(shape), start, given, labels, node.location)
        return self.stream.gather(base, chosen, start, node.location), (0,)

    def _places(self, shape: Shape, pattern: Any, numbers: Any = None) -> np.ndarray[Any, Any]:
        assert self.node is not None
        given = self.node.inputs[1 if self.node.kind == "gather_at" else 2 :]
        known = [None if value is None else self.expected.get(value) for value in given]
        if any(type(item) is Given and known[item.number] is None for item in pattern):
            raise self._refused("an index by computed arrays is not compiled")
        pattern = [known[item.number] if type(item) is Given else item for item in pattern]
        if numbers is None:
            numbers = np.arange(math.prod(shape)).reshape(shape)
        found: np.ndarray[Any, Any] = np.asarray(numbers[index_of(pattern)])
        return found

    def _call(self, node: Node) -> None:
        """An operator without a kernel: its forward is called."""
        operator = operator_of(node.kind)
        if operator is None or node.kind != operator.name or operator.name in DRAWING:
            raise self._refused(f"there is no kernel for {node.kind}")
        operands = [None if value is None else self.operand(value) for value in node.inputs]
        for value in (*node.inputs, *node.outputs):
            if value is not None and self.type_of(value).dtype not in HELD:
                raise self._refused(f"arrays of {self.type_of(value).dtype} are not compiled")
        kinds: list[Any] = [None if value is None else value.type for value in node.inputs]
        given_kinds = tuple([None if kind is None else (kind.shape, kind.dtype) for kind in kinds])
        for number, output in enumerate(node.outputs):
            kind: Any = output.type
            of = Operation(node.kind, _without_lists(node.attributes), given_kinds, number, kind.shape, kind.dtype)
            given = [
                operand if operand is None or isinstance(operand, TracedValue) else self._filled(operand)
                for operand in operands
            ]
            self.values[output] = self.stream.call(of, node.location, given)

    def _filled(self, number: Number) -> TracedValue | float | bool | int:
        """A number as an operand of a call: an array of it, where that is what it stands for."""
        if not math.prod(number.shape) or not number.shape:
            return number.value  # type: ignore[no-any-return]
        labels = tuple(range(len(number.shape)))
        return self.emit("spread", [(number.value, ())], number.shape, labels, char_of(number.value))

    def _guard(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        how, expected = node.attributes
        if how == COMPUTED:
            if value not in self.fixed:
                return
            self.expected[value] = expected
        operand = self.operand(value)
        if isinstance(operand, Number):
            return
        if how == RAN:
            self._keep(operand)
            return
        if isinstance(expected, Frozen):
            expected = expected.array if expected.array.ndim else expected.array.item()
        if isinstance(expected, np.generic):
            expected = expected.item()
        if isinstance(expected, np.ndarray) and expected.dtype.kind in "bi":
            self._guard_array(operand, expected)
            if how in ("an index", COMPUTED) or value in self.graph.inputs:
                self.stream.indices.add(node.location)
            return
        if isinstance(expected, np.ndarray) or self._size(value) != 1:
            raise self._refused(f"{how} of an array is not compiled")
        if how == "bool()":
            expected = bool(expected)
        if self.type_of(value).shape:
            operand = self._reshaped(operand)
        if how == "int()" and self.type_of(value).dtype.kind == "f":
            operand, expected = self.emit("trunc", [(operand, ())], (), ()), float(expected)
        if type(expected) is bool:
            operand = converted(self, operand, BOOL)
        self.stream.check(operand, expected, node.location)

    def _keep(self, operand: TracedValue) -> None:
        """Keep an operator that may raise an exception, though its result is unused: check what is always true."""
        labels = tuple(range(len(operand.shape)))
        same = self.emit("equal", [(operand, labels), (operand, labels)], operand.shape, labels, "?")
        count = self.emit("sum", [(converted(self, same, FLOAT), labels)], operand.shape, ())
        assert self.node is not None
        self.stream.check(self.emit("less", [(count, ()), (0.0, ())], (), (), "?"), False, self.node.location)

    def _guard_array(self, operand: TracedValue, expected: np.ndarray[Any, Any]) -> None:
        """Check that no element is another than it was."""
        if expected.dtype not in HELD:
            raise self._refused(f"arrays of {expected.dtype} are not compiled")
        known = self.constant("expected", expected)
        labels = tuple(range(expected.ndim))
        self.check_none(self.emit("not_equal", [(operand, labels), (known, labels)], expected.shape, labels, "?"))

    def constant(self, what: str, array: np.ndarray[Any, Any], shared: bool = False) -> TracedValue:
        """An array that is a part of the program.

        Arguments:
            what: what it is, of several at one line.
            array: the array.
            shared: whether it is the same each time.
        """
        assert self.node is not None
        key = (what, self.node.location, array.dtype, array.shape)
        base = self.arenas.get(key)
        start = 0
        if base is None or not shared:
            base = self.arena(key, array.dtype, 0)
            start = self._part(key, base, array.size)
            self.contents.setdefault(base, []).append((start, array.reshape(-1)))
        return self.stream.read(base, array.shape, row_strides(array.shape), start, self.node.location)

    def check_none(self, wrong: TracedValue) -> None:
        """Check that no element of an array of bools is true."""
        assert self.node is not None
        if wrong.shape:
            labels = tuple(range(len(wrong.shape)))
            count = self.emit("sum", [(converted(self, wrong, FLOAT), labels)], wrong.shape, ())
            wrong = self.emit("not_equal", [(count, ()), (0.0, ())], (), (), "?")
        self.stream.check(wrong, False, self.node.location)

    def _joined(self, node: Node) -> None:
        """`stack` and `concatenate`: an array whose parts are written."""
        shape, dtype = self.type_of(node.output).shape, self.type_of(node.output).dtype
        if any(value is None or self.type_of(value).dtype not in HELD for value in node.inputs) or dtype not in HELD:
            self._call(node)
            return
        options = options_of(node, "axis")
        if options is None:
            self._call(node)
            return
        flattened = options[0] is None
        axis = 0 if flattened else options[0] % max(1, len(shape))
        base, start = self.new_part(("joined", node.location), math.prod(shape), dtype)
        strides = row_strides(shape)
        place = 0
        for value in node.inputs:
            assert value is not None
            part = converted(self, self.named(value), dtype)
            step = strides[axis] if len(strides) else 0
            if node.kind == "stack":
                moves = (*strides[:axis], *strides[axis + 1 :])
                extent = 1
            elif flattened:
                moves, extent = row_strides(part.shape), math.prod(part.shape)
            else:
                moves, extent = strides, part.shape[axis]
            labels = tuple(range(len(part.shape)))
            self.stream.write(base, part.shape, moves, start + place * step, part, labels, node.location)
            place += extent
        self.remember_part(node.output, base, start)

    def _detach(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        if value.type.dtype != node.output.type.dtype:  # type: ignore[attr-defined]
            raise self._refused("a conversion to another dtype is not compiled")
        operand = self.operand(value)
        self.values[node.output] = operand if isinstance(operand, Number) else self._detached(operand)

    def _cast(self, node: Node) -> None:
        """A conversion to another dtype."""
        (value,) = node.inputs
        assert value is not None
        to, of = self.type_of(node.output).dtype, self.type_of(value).dtype
        operand = self.operand(value)
        if to not in HELD or of not in HELD or isinstance(operand, Number):
            self._call(node)
        elif of != to:
            self.values[node.output] = converted(self, operand, to)
        else:
            labels = tuple(range(len(operand.shape)))
            name = "rounded" if _is_single(node.output) and not _is_single(value) else "positive"
            self.values[node.output] = self.emit(name, [(operand, labels)], operand.shape, labels, to.char)

    # -- values --------------------------------------------------------------------------------------------------------

    def operand(self, value: Value) -> TracedValue | Number:
        """A value, to be computed with."""
        found = self.values[value]
        if isinstance(found, Number):
            return found
        return self.named(value)

    def named(self, value: Value) -> TracedValue:
        """A value as one of the stream; without history under no_grad."""
        plain = self._plain(value)
        return self._detached(plain) if self._ends_history(value) else plain

    def _ends_history(self, value: Value) -> bool:
        """Whether the node takes a value without its history: under no_grad."""
        node = self.node
        if node is None or not value.type.requires_grad or node.requires_grad:
            return False
        return node.kind in OPERATORS or node.kind == "gather_at"

    def _plain(self, value: Value) -> TracedValue:
        """A value as one of the stream, as it is."""
        found = self.values[value]
        if isinstance(found, TracedValue):
            return found
        if isinstance(found, Number) and not found.shape:
            return self.emit("positive", [(found.value, ())], (), (), char_of(found.value))
        memory = self.memory(value)
        shape = self.type_of(value).shape
        location = self.node.location if self.node is not None else -1
        return self.stream.read(memory.base, shape, row_strides(shape), memory.offset, location)

    def taken(self, value: Value) -> Memory:
        """The memory in which a node finds a value that it takes: that of a copy without history, under no_grad."""
        if not self._ends_history(value):
            return self.memory(value)
        assert self.node is not None
        operand = self.named(value)
        base, start = self.new_part(("detached", self.node.location), math.prod(operand.shape))
        labels = tuple(range(len(operand.shape)))
        self.stream.write(base, operand.shape, row_strides(operand.shape), start, operand, labels, self.node.location)
        return Memory(base, start)

    def memory(self, value: Value) -> Memory:
        """The memory in which a value lies, which is made where it lies in none."""
        found = self.values[value]
        if isinstance(found, Memory):
            if self.latest[found] is not value:
                raise self._refused("the value that an array had before a write is not compiled")
            return found
        kind = self.type_of(value)
        size = math.prod(kind.shape)
        location = value.node.location
        if isinstance(found, Number):
            fill = found.value
            key: Any = ("full", location, kind.dtype, repr(fill))
            base = self.arena(key, kind.dtype, fill)
        else:
            key = ("value", location, value.node.kind, kind.dtype)
            base = self.arena(key, kind.dtype, 0.0)
        offset = self._part(key, base, size)
        if isinstance(found, TracedValue):
            strides = row_strides(kind.shape)
            labels = tuple(range(len(kind.shape)))
            self.stream.write(base, kind.shape, strides, offset, found, labels, location)
        memory = Memory(base, offset)
        self.remember(value, memory)
        return memory

    def written(self, target: Value) -> Memory:
        """The memory of a value that is written over: a copy of it, where the value is used again."""
        memory = self.memory(target)
        if target not in self.outlived:
            return memory
        assert self.node is not None
        kind, location = self.type_of(target), self.node.location
        strides, labels = row_strides(kind.shape), tuple(range(len(kind.shape)))
        key = ("copied", location, kind.dtype)
        base = self.arena(key, kind.dtype, 0.0)
        copy = Memory(base, self._part(key, base, math.prod(kind.shape)))
        whole = self.stream.read(memory.base, kind.shape, strides, memory.offset, location)
        self.stream.write(copy.base, kind.shape, strides, copy.offset, whole, labels, location)
        return copy

    def remember(self, value: Value, memory: Memory) -> None:
        """From now on the memory holds a value."""
        self.values[value] = memory
        self.latest[memory] = value

    def _result(self, value: Value) -> Result:
        memory = self.memory(value)
        shape = self.type_of(value).shape
        base = self.stream.bases[memory.base]
        return Result(base.name, shape, row_strides(shape), memory.offset)

    def _base(self, size: int, dtype: np.dtype[Any], kind: str, initial: Any) -> int:
        if dtype not in HELD:
            raise self._refused(f"arrays of {dtype} are not compiled")
        return self.stream.base(size, dtype, kind, initial)

    def arena(self, key: Any, dtype: np.dtype[Any], initial: Any) -> int:
        """The buffer of what is made at one line."""
        base = self.arenas.get(key)
        if base is None:
            base = self.arenas[key] = self._base(0, dtype, "made", initial)
        return base

    def new_part(self, key: Any, size: int, dtype: np.dtype[Any] = FLOAT) -> tuple[int, int]:
        """A new part of a buffer: the buffer, and where it begins."""
        key = (*key, dtype.char)
        base = self.arena(key, dtype, 0.0)
        return base, self._part(key, base, size)

    def _part(self, key: Any, base: int, size: int) -> int:
        """Where a new part of a buffer begins; parts of differing sizes have the room of the largest one each.

        So their places are affine in the number of the iteration.
        """
        reserved = self.reserves.setdefault(key, size)
        if size > reserved:
            self.reserves[key] = size
            self.growing.add(key)
        offset = self.stream.bases[base].size
        self.stream.bases[base].size += max(size, reserved)
        return offset

    def remember_part(self, value: Value, base: int, start: int) -> None:
        """From now on a part of a buffer holds a value."""
        self.remember(value, Memory(base, start))

    # -- instructions --------------------------------------------------------------------------------------------------

    def emit(
        self, name: str, operands: Sequence[tuple[Any, Shape]], sizes: Shape, out: Shape, dtype: str = "d"
    ) -> TracedValue:
        """A computed value; see `Stream.op`. In single precision it is rounded."""
        node = self.node
        assert node is not None
        expression = INTEGERS[name] if dtype == INTEGER.char else FORWARD.get(name) or MORE[name]
        rounds = dtype == "d" and name not in EXACT and bool(node.outputs) and _is_single(node.outputs[0])
        is_sum = bool(sizes) and len(sizes) > sum(1 for label in out if label >= 0)
        if rounds and not is_sum:
            expression = f"rounded({expression})"
        found = self.stream.op(name, expression, (), node.location, dtype, sizes, out, operands)
        return self._rounded(found) if rounds and is_sum else found

    def _rounded(self, operand: TracedValue) -> TracedValue:
        """A value rounded to single precision."""
        assert self.node is not None
        labels, expression = tuple(range(len(operand.shape))), MORE["rounded"]
        taken = [(operand, labels)]
        return self.stream.op("rounded", expression, (), self.node.location, "d", operand.shape, labels, taken)

    def spread(self, value: Value, shape: Shape) -> tuple[TracedValue | float | bool, Shape]:
        """A value as an operand that is broadcast to a shape, with its labels."""
        operand = self.operand(value)
        if isinstance(operand, Number):
            return operand.value, ()
        return operand, broadcast_labels(operand.shape, shape)

    def _reshaped(self, operand: TracedValue) -> TracedValue:
        labels = (-1,) * len(operand.shape)
        return self.emit("positive", [(operand, labels)], (), (), self.stream.places[operand.place][1])

    def _detached(self, operand: TracedValue) -> TracedValue:
        """A value through which no gradient flows."""
        labels = tuple(range(len(operand.shape)))
        dtype = self.stream.places[operand.place][1]
        return self.emit("detach", [(operand, labels)], operand.shape, labels, dtype)

    def type_of(self, value: Value) -> TensorType:
        """The kind of array that a value is; numbers of single precision are held in double precision, rounded."""
        kind = value.type
        if type(kind) is not TensorType:
            raise self._refused(f"a {kind} is not compiled")
        return kind if kind.dtype != SINGLE else TensorType.of(np.dtype(float), kind.shape, kind.requires_grad)

    def _size(self, value: Value) -> int:
        return math.prod(self.type_of(value).shape)

    def _refused(self, what: str) -> NotCompiledError:
        where = "" if self.node is None else f" ({self.graph.where(self.node)})"
        return NotCompiledError(what + where)


_HANDLERS: Final[dict[str, Callable[[Lowering, Node], None]]] = {
    "full": Lowering._full,
    "constant": Lowering._constant,
    "read": Lowering._read,
    "write": Lowering._write,
    "gather_at": Lowering._index,
    "put_at": Lowering._index_put,
    "put_at_unrecorded": Lowering._index_put,
    "add_at": Lowering._index_add,
    "add_at_unrecorded": Lowering._index_add,
    "guard": Lowering._guard,
    "stack": Lowering._joined,
    "concatenate": Lowering._joined,
    "overwrite": Lowering._write,
    "detach": Lowering._detach,
    "_cast": Lowering._cast,
    "_cast_exactly": Lowering._cast,
}
_COMPOSITES: Final = COMPOSITES | SMALL_MATRICES | REARRANGING | PARTS


def _is_single(value: Value) -> bool:
    return getattr(value.type, "dtype", None) == SINGLE


def rearranged_inputs(graph: Graph) -> dict[Node, None]:
    """The reads that bring the elements of an input into the order in which it lies in memory.

    They stand where the first window of it is taken, which may be the first iteration of a loop. So that this one does
    as all others do, they come before it.
    """
    reads: dict[Value | None, list[Node]] = {value: [] for value in graph.inputs}
    windowed = set()
    for node in graph.block:
        if node.inputs and node.inputs[0] in reads:
            reads[node.inputs[0]].append(node)
        if node.kind == "read":
            windowed.add(node.inputs[0])
    found: dict[Node, None] = {}
    for value, nodes in reads.items():
        if value is not None and len(nodes) == 1 and nodes[0].kind == "read" and nodes[0].output in windowed:
            kind, window = value.type, nodes[0].attributes
            if window.dtype is None and math.prod(window.sizes) == math.prod(kind.shape):  # type: ignore[attr-defined]
                found[nodes[0]] = None
    return found


def last_mentions(places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The numbers of those places that are not mentioned again later; None where none is mentioned twice."""
    flat = places.reshape(-1)
    _, first = np.unique(flat[::-1], return_index=True)
    return None if len(first) == flat.size else np.sort(flat.size - 1 - first)


def mentions(places: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The numbers of the first mentions of places, then those of the second ones, and so on."""
    flat = places.reshape(-1)
    order = np.argsort(flat, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(flat[order]) != 0]) if flat.size else np.zeros(0, int)
    ranks = np.empty(flat.size, int)
    ranks[order] = np.arange(flat.size) - np.repeat(begins, np.diff(np.r_[begins, flat.size]))
    return [np.flatnonzero(ranks == rank) for rank in range(int(ranks.max(initial=-1)) + 1)]


def strides_of(places: np.ndarray[Any, Any]) -> Shape | None:
    """The strides of the window that some places are, none of which is there twice; None where they are no window."""
    if not places.size:
        return None
    strides = tuple([
        int(places.take(1, axis).flat[0] - places.flat[0]) if n > 1 else 0 for axis, n in enumerate(places.shape)
    ])
    window = places.flat[0] + sum(np.ix_(*[np.arange(n) * step for n, step in zip(places.shape, strides)]))
    return strides if np.array_equal(window, places) and np.unique(places).size == places.size else None


def _without_lists(option: Any) -> Any:
    """An option with tuples for the lists in it, so that it can be hashed."""
    return tuple(map(_without_lists, option)) if type(option) in (list, tuple) else option


def window_of(flat: np.ndarray[Any, Any], window: Any) -> np.ndarray[Any, Any]:
    """A window of an array in row order."""
    strides = [stride * flat.itemsize for stride in window.strides]
    return np.ndarray(window.sizes, flat.dtype, flat, window.offset * flat.itemsize, strides)
