"""The context of the lowering handlers: the locations of values, and the emitted instructions.

A value of the graph is a number, a value of the stream, or the memory of a buffer. Memory allocated at one line is part
of one buffer, so that an allocation in each iteration of a loop has an affine position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import NotCompiledError
from ...operators.define import OPERATORS
from ...trace.attributes import Frozen
from ...trace.graph import Graph, Node, Value
from ...trace.types import TensorType, Window, row_strides
from ..element_types import BOOL, FLOAT, HELD, INTEGER, SINGLE, as_number, char_of
from ..scalar_rules import RULES
from ..trace_stream import Moved, Result, Stream, TracedValue

Shape = tuple[int, ...]
CONVERSIONS: Final = {FLOAT: "as_float", BOOL: "as_bool", INTEGER: "as_integer"}  # the conversion by dtype


class Memory(NamedTuple):
    """The memory of a value: the number of a buffer and the first element."""

    base: int
    offset: int


class Number(NamedTuple):
    """A number and the shape to which it is broadcast."""

    value: Any
    shape: Shape


Lowered = TracedValue | Memory | Number


class LoweringContext:
    """The context in which lowering handlers read values and emit instructions.

    Arguments:
        graph: the graph to lower.
        stream: the stream that receives instructions.
        native: whether the program is compiled to machine code, where loops over single elements are fast.
        near_singular: the lines with small matrices that are left to NumPy.
        reserves: by allocation site, the size of its largest part.
        windows: the windows of nodes whose strides and offsets are not determined by the graph.
        fixed: the integers used as indices that must not change.
        outlived: the values that are used after they were overwritten.

    Attributes:
        node: the node being lowered.
        growing: the allocation sites with a part larger than the previous ones.
        expected: the traced values of indices that must not change.
    """

    def __init__(
        self, graph: Graph, stream: Stream, native: bool, near_singular: frozenset[int], reserves: dict[Any, int],
        windows: Mapping[Node, Window], fixed: set[Value], outlived: set[Value],
    ) -> None:
        self.graph = graph
        self.stream = stream
        self.native = native
        self.near_singular = near_singular
        self.reserves = reserves
        self.windows = windows
        self.fixed = fixed
        self.outlived = outlived
        self.node: Node | None = None
        self.growing: set[Any] = set()
        self.expected: dict[Value, Frozen] = {}
        self._values: dict[Value, Lowered] = {}
        self._latest: dict[Memory, Value] = {}
        self._sites: dict[Any, int] = {}
        self._contents: dict[int, list[tuple[int, np.ndarray[Any, Any]]]] = {}

    @property
    def location(self) -> int:
        """The number of the source line of the node."""
        return -1 if self.node is None else self.node.location

    # -- types ---------------------------------------------------------------------------------------------------------

    def type_of(self, value: Value) -> TensorType:
        """Return the type of a value; single-precision numbers are stored in double precision, rounded."""
        kind = value.type
        if type(kind) is not TensorType:
            raise self.refused(f"a {kind} is not compiled")
        return kind if kind.dtype != SINGLE else TensorType.of(np.dtype(float), kind.shape, kind.requires_grad)

    def shape_of(self, value: Value) -> Shape:
        """Return the shape of a value."""
        return self.type_of(value).shape

    def size_of(self, value: Value) -> int:
        """Return the number of elements of a value."""
        return math.prod(self.type_of(value).shape)

    def dtype_of(self, value: TracedValue) -> np.dtype[Any]:
        """Return the dtype of a value of the stream."""
        return np.dtype(self.stream.sites[value.site][1])

    def refused(self, what: str) -> NotCompiledError:
        """Return the error for an unsupported node."""
        return NotCompiledError(what + ("" if self.node is None else f" ({self.graph.where(self.node)})"))

    # -- values --------------------------------------------------------------------------------------------------------

    def assign(self, output: Value, value: TracedValue | Number) -> None:
        """Set a value of the graph to the value of an instruction."""
        self._values[output] = value

    def is_number(self, value: Value) -> bool:
        """Return whether a value is a number."""
        return isinstance(self._values[value], Number)

    def operand(self, value: Value) -> TracedValue | Number:
        """Return a value as an operand."""
        found = self._values[value]
        return found if isinstance(found, Number) else self.named(value)

    def named(self, value: Value) -> TracedValue:
        """Return a value of the stream, detached if the node uses it under `no_grad`."""
        plain = self._as_traced(value)
        return self.detached(plain) if self._ends_history(value) else plain

    def broadcast(self, value: Value, shape: Shape) -> tuple[TracedValue | float | bool, Shape]:
        """Return a value as an operand broadcast to a shape, and its labels."""
        operand = self.operand(value)
        if isinstance(operand, Number):
            return operand.value, ()
        return operand, broadcast_labels(operand.shape, shape)

    def write_operand(
        self, source: TracedValue | Number, target: Value, value: Value, shape: Shape
    ) -> tuple[Any, Shape]:
        """Return the value to write to a window of `target`, in its dtype, and its labels."""
        to, of = self.type_of(target).dtype, self.type_of(value).dtype
        narrows = is_single(target) and not is_single(value)
        if isinstance(source, Number):
            number = as_number(source.value, to)
            return (float(SINGLE.type(number)) if narrows else number), ()
        if narrows and of == to:
            source = self._rounded(source)
        if to == INTEGER and of == FLOAT and not source.shape:  # NumPy raises for NaN and infinity
            self.check(self.emit("fits", [(source, ())], (), (), BOOL.char), True)
        return self.converted(source, to), broadcast_labels(source.shape, shape)

    def _ends_history(self, value: Value) -> bool:
        node = self.node
        if node is None or not value.type.requires_grad or node.requires_grad:
            return False
        return node.kind in OPERATORS or node.kind == "gather_at"

    def _as_traced(self, value: Value) -> TracedValue:
        found = self._values[value]
        if isinstance(found, TracedValue):
            return found
        if isinstance(found, Number) and not found.shape:
            return self.emit("positive", [(found.value, ())], (), (), char_of(found.value))
        return self.read(self.memory(value), self.shape_of(value))

    # -- memory --------------------------------------------------------------------------------------------------------

    def memory(self, value: Value) -> Memory:
        """Return the memory of a value, allocating it if necessary."""
        found = self._values[value]
        if isinstance(found, Memory):
            if self._latest[found] is not value:
                raise self.refused("the value that an array had before a write is not compiled")
            return found
        kind, location = self.type_of(value), value.node.location
        if isinstance(found, Number):
            key: Any = ("full", location, kind.dtype, repr(found.value))
            memory = self._allocated(key, math.prod(kind.shape), kind.dtype, found.value)
        else:
            key = ("value", location, value.node.kind, kind.dtype)
            memory = self._allocated(key, math.prod(kind.shape), kind.dtype, 0.0)
            strides, labels = row_strides(kind.shape), labels_of(kind.shape)
            self.stream.write(memory.base, kind.shape, strides, memory.offset, found, labels, location)
        self.remember(value, memory)
        return memory

    def read_memory(self, value: Value) -> Memory:
        """Return the memory from which a node reads a value; under `no_grad`, that of a detached copy."""
        if not self._ends_history(value):
            return self.memory(value)
        operand = self.named(value)
        memory = self.new_part("detached", math.prod(operand.shape))
        self.write(memory, operand.shape, operand)
        return memory

    def write_memory(self, target: Value) -> Memory:
        """Return the memory of a value that is overwritten, or of a copy if the value is used later."""
        memory = self.memory(target)
        if target not in self.outlived:
            return memory
        kind = self.type_of(target)
        copy = self._allocated(("copied", self.location, kind.dtype), math.prod(kind.shape), kind.dtype, 0.0)
        self.write(copy, kind.shape, self.read(memory, kind.shape))
        return copy

    def remember(self, value: Value, memory: Memory) -> None:
        """Set the memory that contains a value from now on."""
        self._values[value] = memory
        self._latest[memory] = value

    def new_part(self, what: str, size: int, dtype: np.dtype[Any] = FLOAT) -> Memory:
        """Allocate memory for the result of a node."""
        return self._allocated((what, self.location, dtype.char), size, dtype, 0.0)

    def constant(self, what: str, array: np.ndarray[Any, Any], shared: bool = False) -> TracedValue:
        """Return the memory of an array that is part of the program.

        Arguments:
            what: its name, if there are several at one line.
            array: the array.
            shared: whether it is the same in every execution.
        """
        key = (what, self.location, array.dtype, array.shape)
        base = self._sites.get(key)
        memory = Memory(base, 0) if base is not None and shared else self._constant(key, array)
        return self.read(memory, array.shape)

    def assign_constant(self, output: Value, array: np.ndarray[Any, Any]) -> None:
        """Set a value to a constant array of the trace."""
        self.remember(output, self._constant(("constant", self.location, array.dtype), array))

    def input(self, value: Value, number: int) -> None:
        """Set a value to an input."""
        kind = self.type_of(value)
        self.remember(value, Memory(self._buffer(math.prod(kind.shape), kind.dtype, "input", number), 0))

    def result(self, value: Value) -> Result:
        """Return the location of a result at the end of the program."""
        memory, shape = self.memory(value), self.shape_of(value)
        return Result(self.stream.bases[memory.base].name, shape, row_strides(shape), memory.offset)

    def fill_constants(self) -> None:
        """Set the initial contents of the buffers of constants."""
        for base, parts in self._contents.items():
            initial = np.zeros(self.stream.bases[base].size, self.stream.bases[base].dtype)
            for offset, part in parts:
                initial[offset : offset + part.size] = part
            self.stream.bases[base].initial = initial

    def _constant(self, key: Any, array: np.ndarray[Any, Any]) -> Memory:
        memory = self._allocated(key, array.size, array.dtype, 0)
        self._contents.setdefault(memory.base, []).append((memory.offset, array.reshape(-1)))
        return memory

    def _allocated(self, key: Any, size: int, dtype: np.dtype[Any], initial: Any) -> Memory:
        """Return a new part of the buffer of an allocation site.

        If parts differ in size, each is given the room of the largest one, so that their positions are affine in the
        iteration number.
        """
        base = self._sites.get(key)
        if base is None:
            base = self._sites[key] = self._buffer(0, dtype, "made", initial)
        reserved = self.reserves.setdefault(key, size)
        if size > reserved:
            self.reserves[key] = size
            self.growing.add(key)
        offset = self.stream.bases[base].size
        self.stream.bases[base].size += max(size, reserved)
        return Memory(base, offset)

    def _buffer(self, size: int, dtype: np.dtype[Any], kind: str, initial: Any) -> int:
        if dtype not in HELD:
            raise self.refused(f"arrays of {dtype} are not compiled")
        return self.stream.base(size, dtype, kind, initial)

    # -- instructions --------------------------------------------------------------------------------------------------

    def emit(
        self, name: str, operands: Sequence[tuple[Any, Shape]], sizes: Shape, out: Shape, dtype: str = "d"
    ) -> TracedValue:
        """Emit a computed value; see `Stream.op`. In single precision it is rounded.

        Arguments:
            name: the scalar operator.
            operands: values or numbers, each with the labels of its dimensions.
            sizes: the range of each label.
            out: the labels of the value, which is summed over the other labels.
            dtype: the dtype of the value.
        """
        node = self.node
        assert node is not None
        rule = RULES[name]
        expression = rule.integers if dtype == INTEGER.char else rule.floats
        rounds = dtype == "d" and not rule.is_exact and bool(node.outputs) and is_single(node.outputs[0])
        is_sum = bool(sizes) and len(sizes) > sum(1 for label in out if label >= 0)
        if rounds and not is_sum:
            expression = f"rounded({expression})"
        found = self.stream.op(name, expression, None, node.location, dtype, sizes, out, operands)
        return self._rounded(found) if rounds and is_sum else found

    def emit_with_slope(
        self, slope: str, operands: Sequence[tuple[Any, Shape]], sizes: Shape, out: Shape
    ) -> TracedValue:
        """Emit the result of a reduction, which is also the second operand and already computed.

        Arguments:
            slope: the gradient of an element of the first operand, as in a `Rule`.
            operands, sizes, out: see `emit`.
        """
        assert self.node is not None
        return self.stream.op(self.node.kind, "{1}", slope, self.location, "d", sizes, out, operands)

    def apply(self, name: str, *operands: TracedValue | float, dtype: str | None = None) -> TracedValue:
        """Emit an elementwise operator on operands of equal shape, or numbers, in the dtype of the first operand."""
        first = next(operand for operand in operands if type(operand) is TracedValue)
        labels = labels_of(first.shape)
        taken = [(operand, labels if type(operand) is TracedValue else ()) for operand in operands]
        return self.emit(name, taken, first.shape, labels, self.dtype_of(first).char if dtype is None else dtype)

    def converted(self, operand: TracedValue, to: np.dtype[Any]) -> TracedValue:
        """Return a value converted to another dtype, as in an assignment."""
        return operand if self.dtype_of(operand) == to else self.apply(CONVERSIONS[to], operand, dtype=to.char)

    def detached(self, operand: TracedValue) -> TracedValue:
        """Return a detached value."""
        return self.apply("detach", operand)

    def read(
        self, memory: Memory, sizes: Shape, strides: Shape | None = None, offset: int = 0,
        moves: Sequence[Moved] | None = None,
    ) -> TracedValue:
        """Emit the read of a window, in C order if there are no strides, and moved by computed integers if given."""
        strides = row_strides(sizes) if strides is None else strides
        if moves is not None:
            return self.stream.read_at(memory.base, sizes, strides, memory.offset + offset, moves, self.location)
        return self.stream.read(memory.base, sizes, strides, memory.offset + offset, self.location)

    def write(
        self, memory: Memory, sizes: Shape, value: TracedValue | float, labels: Shape | None = None,
        strides: Shape | None = None, offset: int = 0, *, moves: Sequence[Moved] | None = None,
        unrecorded: bool = False,
    ) -> None:
        """Emit the write of a value to a window; see `read`."""
        strides = row_strides(sizes) if strides is None else strides
        labels = labels_of(sizes) if labels is None else labels
        at = memory.offset + offset
        if moves is not None:
            self.stream.write_at(
                memory.base, sizes, strides, at, moves, value, labels, self.location, unrecorded
            )
        else:
            self.stream.write(memory.base, sizes, strides, at, value, labels, self.location, unrecorded)

    def gather(self, memory: Memory, positions: np.ndarray[Any, Any]) -> TracedValue:
        """Emit the read of the elements at given positions."""
        return self.stream.gather(memory.base, positions, memory.offset, self.location)

    def scatter(
        self, memory: Memory, positions: np.ndarray[Any, Any], value: TracedValue | float, labels: Shape,
        unrecorded: bool = False,
    ) -> None:
        """Emit the write of a value to the elements at distinct positions."""
        self.stream.scatter(memory.base, positions, memory.offset, value, labels, self.location, unrecorded)

    def check(self, value: TracedValue, expected: Any) -> None:
        """Emit a guard that a scalar has the expected value."""
        self.stream.check(value, expected, self.location)

    def check_none(self, wrong: TracedValue) -> None:
        """Emit a guard that no element of a bool array is true."""
        if wrong.shape:
            labels = labels_of(wrong.shape)
            count = self.emit("sum", [(self.converted(wrong, FLOAT), labels)], wrong.shape, ())
            wrong = self.apply("not_equal", count, 0.0, dtype=BOOL.char)
        self.check(wrong, False)

    def _rounded(self, operand: TracedValue) -> TracedValue:
        """Return a value rounded to single precision."""
        labels = labels_of(operand.shape)
        rule = RULES["rounded"]
        return self.stream.op(
            "rounded", rule.floats, None, self.location, "d", operand.shape, labels, [(operand, labels)]
        )


def labels_of(shape: Shape) -> Shape:
    """Return the labels of an operand that has all dimensions."""
    return tuple(range(len(shape)))


def broadcast_labels(shape: Shape, onto: Shape) -> Shape:
    """Return the labels of an operand that is broadcast to a shape."""
    before = len(onto) - len(shape)
    if before < 0:  # leading dimensions of length 1, which assignments allow
        return (-1,) * -before + broadcast_labels(shape[-before:], onto)
    return tuple([
        -1 if extent == 1 and onto[before + dim] != 1 else before + dim for dim, extent in enumerate(shape)
    ])


def is_single(value: Value) -> bool:
    """Return whether a value is in single precision."""
    return getattr(value.type, "dtype", None) == SINGLE
