"""From the graph of a run to a stream of instructions.

A value of the graph is a number, a value of the stream, or the memory of a base. Bases that are made at one line lie
one after the other in one buffer, so that what is made anew in each iteration of a loop is at a place that moves on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import NotCompiledError
from ..operators.define import OPERATORS
from ..symbolic.attributes import Frozen, Given, thawed
from ..symbolic.graph import Graph, Node, Value
from ..symbolic.types import TensorType, row_strides
from .expressions import FORWARD, LOGICAL, OF_BOOLS
from .replay import index_of
from .stream import Named, Result, Stream

__all__ = ["lowered"]

Shape = tuple[int, ...]
DTYPES: Final = frozenset({np.dtype(float), np.dtype(bool)})
READ: Final = DTYPES | {np.dtype(np.int64)}  # of what is read only
STEERS: Final = frozenset({"bool()", "int()", "item()", "float()", "an index", "in"})


class Memory(NamedTuple):
    """The memory of a value: a part of a base."""

    base: int
    offset: int


class Number(NamedTuple):
    """A number, with the shape that it stands for."""

    value: Any
    shape: Shape


Lowered = Named | Memory | Number


def lowered(graph: Graph, limit: int, spilled: frozenset[Any] = frozenset()) -> Stream:
    """The stream of a graph.

    Arguments:
        graph: the graph.
        limit: how many terms may be left when all loops are found.
        spilled: the places whose values go through memory; see `Stream`.

    Raises:
        NotCompiledError: for what cannot be compiled, with the file and line.
    """
    return _Lowering(graph, limit, spilled).run()


class _Lowering:
    def __init__(self, graph: Graph, limit: int, spilled: frozenset[Any]) -> None:
        self.graph = graph
        self.stream = Stream(graph.locations, limit, spilled)
        self.values: dict[Value, Lowered] = {}
        self.latest: dict[Memory, Value] = {}
        self.arenas: dict[Any, int] = {}
        self.contents: dict[int, list[np.ndarray[Any, Any]]] = {}
        self.node: Node | None = None

    def run(self) -> Stream:
        for number, value in enumerate(self.graph.inputs):
            kind = self._type(value)
            base = self._base(math.prod(kind.shape), kind.dtype, "input", number)
            self._remember(value, Memory(base, 0))
        for node in self.graph.block:
            self.node = node
            self._lower(node)
        self.node = None
        for output in self.graph.outputs:
            assert output is not None
            self.stream.results.append(self._result(output))
        for base, parts in self.contents.items():
            self.stream.bases[base].initial = np.concatenate(parts)
        return self.stream

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _lower(self, node: Node) -> None:
        kind = node.kind
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node)
        elif kind in FORWARD:
            self._elementwise(node)
        else:
            raise self._refused(f"there is no kernel for {kind}")

    def _full(self, node: Node) -> None:
        shape, fill, dtype = node.attributes
        if dtype not in READ:
            raise self._refused(f"arrays of {dtype} are not compiled")
        self.values[node.output] = Number(fill, tuple(shape))

    def _constant(self, node: Node) -> None:
        (frozen,) = node.attributes
        array = frozen.array
        if array.dtype not in READ:
            raise self._refused(f"arrays of {array.dtype} are not compiled")
        if array.size == 1:
            self.values[node.output] = Number(array.item(), array.shape)
            return
        base = self._arena(("constant", node.location, array.dtype), array.dtype, 0)
        offset = self.stream.bases[base].size
        self.stream.bases[base].size += array.size
        self.contents.setdefault(base, []).append(array.reshape(-1))
        self._remember(node.output, Memory(base, offset))

    def _read(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        window = node.attributes
        if window.dtype is not None:
            raise self._refused("parts of complex numbers are not compiled")
        memory = self._memory(value)
        self.values[node.output] = self.stream.read(
            memory.base, window.sizes, window.strides, memory.offset + window.offset, node.location
        )

    def _write(self, node: Node) -> None:
        target, value = node.inputs
        assert target is not None and value is not None
        window = node.attributes
        if window.dtype is not None:
            raise self._refused("parts of complex numbers are not compiled")
        source = self._operand(value)
        memory = self._memory(target)
        if self._type(target).dtype not in DTYPES:
            raise self._refused("a write to integers is not compiled")
        if self._type(target).dtype != self._type(value).dtype and not isinstance(source, Number):
            raise self._refused("a write that changes the dtype is not compiled")
        given: Any = source
        labels: Shape = ()
        if isinstance(source, Number):
            given = float(source.value) if self._type(target).dtype.kind == "f" else bool(source.value)
        else:
            labels = broadcast_labels(source.shape, window.sizes)
        offset = memory.offset + window.offset
        self.stream.write(memory.base, window.sizes, window.strides, offset, given, labels, node.location,
                          silent=node.kind == "overwrite")
        self._remember(node.output, memory)

    def _index(self, node: Node) -> None:
        value = node.inputs[0]
        assert value is not None
        (pattern,) = node.attributes
        places = self._places(self._type(value).shape, pattern)
        memory = self._memory(value)
        self.values[node.output] = self.stream.gather(memory.base, places, memory.offset, node.location)

    def _index_put(self, node: Node) -> None:
        target, value = node.inputs[:2]
        assert target is not None and value is not None
        window, pattern = node.attributes
        self._check_write(node)
        numbers = np.arange(math.prod(self._type(target).shape))
        places = self._places(window.sizes, pattern, window_of(numbers, window))
        if np.unique(places).size < places.size:
            raise self._refused("a write to one place twice is not compiled")
        source = self._operand(value)
        memory = self._memory(target)
        given: Any = float(source.value) if isinstance(source, Number) else source
        labels = () if isinstance(source, Number) else broadcast_labels(source.shape, places.shape)
        self.stream.scatter(memory.base, places, memory.offset, given, labels, node.location)
        self._remember(node.output, memory)

    def _places(self, shape: Shape, pattern: Any, numbers: Any = None) -> np.ndarray[Any, Any]:
        if any(type(item) is Given for item in pattern):
            raise self._refused("an index by computed arrays is not compiled")
        if numbers is None:
            numbers = np.arange(math.prod(shape)).reshape(shape)
        found: np.ndarray[Any, Any] = np.asarray(numbers[index_of(pattern)])
        return found

    def _check_write(self, node: Node) -> None:
        target, value = node.inputs[:2]
        assert target is not None and value is not None
        known = self._type(target).requires_grad or not self._type(value).requires_grad
        if not known and not self._type(node.output).requires_grad:
            raise self._refused("a write that is not recorded, in no_grad, is not compiled")
        if self._type(target).dtype != self._type(value).dtype:
            raise self._refused("a write that changes the dtype is not compiled")

    def _guard(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        how, expected = node.attributes
        operand = self._operand(value)
        if isinstance(operand, Number):
            return
        if isinstance(expected, Frozen):
            expected = expected.array
        if isinstance(expected, np.ndarray) or self._size(value) != 1:
            raise self._refused(f"{how} of an array is not compiled")
        if how == "bool()":
            expected = bool(expected)
        elif how == "int()" and self._type(value).dtype.kind == "f":
            raise self._refused("int() of a value is not compiled")
        if self._type(value).shape:
            operand = self._reshaped(operand)
        if type(expected) is bool and self._type(value).dtype.kind == "f":
            operand = self._emit("not_equal", [(operand, ()), (0.0, ())], (), (), "?")
        self.stream.check(operand, expected, node.location)

    def _elementwise(self, node: Node) -> None:
        out = self._type(node.output)
        name = node.kind
        operands = [self._operand(value) for value in node.inputs if value is not None]
        if len(operands) != len(node.inputs) or (node.attributes and name not in ("clone",)):
            raise self._refused(f"{name} with these options is not compiled")
        kinds = [self._type(value).dtype.kind for value in node.inputs if value is not None]
        if name in OF_BOOLS and "f" in kinds:
            raise self._refused(f"{name} of numbers is not compiled")
        if name not in LOGICAL and name != "where" and name != "masked_fill" and "b" in kinds and out.dtype.kind != "f":
            raise self._refused(f"{name} of bools is not compiled")
        taken: list[tuple[Any, Shape]] = []
        for operand in operands:
            if isinstance(operand, Number):
                value = operand.value
                taken.append((value if type(value) is bool else float(value), ()))
            else:
                taken.append((operand, broadcast_labels(operand.shape, out.shape)))
        labels = tuple(range(len(out.shape)))
        if out.dtype not in DTYPES:
            raise self._refused(f"arrays of {out.dtype} are not compiled")
        self.values[node.output] = self._emit(name, taken, out.shape, labels, out.dtype.char)

    def _sum(self, node: Node) -> None:
        value = self._only_input(node)
        axis, keepdims = self._options(node, "axis", "keepdims")
        self.values[node.output] = self._reduced("sum", self._named(value), axis, keepdims)

    def _mean(self, node: Node) -> None:
        value = self._only_input(node)
        axis, keepdims = self._options(node, "axis", "keepdims")
        operand = self._named(value)
        total = self._reduced("sum", operand, axis, keepdims)
        count = math.prod(operand.shape[dim] for dim in reduced_dims(axis, len(operand.shape)))
        labels = tuple(range(len(total.shape)))
        self.values[node.output] = self._emit("div", [(total, labels), (float(count), ())], total.shape, labels, "d")

    def _logsumexp(self, node: Node) -> None:
        value = self._only_input(node)
        axis, keepdims = self._options(node, "axis", "keepdims")
        operand = self._named(value)
        if not math.prod(operand.shape):
            raise self._refused("logsumexp of nothing is not compiled")
        labels = tuple(range(len(operand.shape)))
        greatest = self._reduced("greatest", operand, axis, True)
        greatest = self._emit("finite_or_zero", [(greatest, labels)], greatest.shape, labels, "d")
        spread = broadcast_labels(greatest.shape, operand.shape)
        shifted = self._emit("sub", [(operand, labels), (greatest, spread)], operand.shape, labels, "d")
        powers = self._emit("exp", [(shifted, labels)], operand.shape, labels, "d")
        total = self._reduced("sum", powers, axis, keepdims)
        out = tuple(range(len(total.shape)))
        logarithm = self._emit("log", [(total, out)], total.shape, out, "d")
        dims = reduced_dims(axis, len(operand.shape))
        kept = out if keepdims else ()
        if not keepdims:
            greatest_labels, place = [], 0
            for dim in range(len(operand.shape)):
                greatest_labels.append(-1 if dim in dims else place)
                place += dim not in dims
            kept = tuple(greatest_labels)
        self.values[node.output] = self._emit("add", [(logarithm, out), (greatest, kept)], total.shape, out, "d")

    def _matmul(self, node: Node) -> None:
        first, second = [self._named(value) for value in node.inputs if value is not None]
        if not 1 <= len(first.shape) <= 2 or not 1 <= len(second.shape) <= 2:
            raise self._refused(f"{node.kind} of stacks of matrices is not compiled")
        rows = len(first.shape) == 2
        columns = len(second.shape) == 2
        middle = int(rows)
        sizes = (*first.shape, *second.shape[1:])
        left = tuple(range(len(first.shape)))
        right = (middle, middle + 1) if columns else (middle,)
        out = (*((0,) if rows else ()), *((middle + 1,) if columns else ()))
        self._check_float(node)
        self.values[node.output] = self._emit("mul", [(first, left), (second, right)], sizes, out, "d")

    def _outer(self, node: Node) -> None:
        first, second = [self._named(value) for value in node.inputs if value is not None]
        if len(first.shape) != 1 or len(second.shape) != 1:
            raise self._refused("outer of other arrays than vectors is not compiled")
        self._check_float(node)
        sizes = (*first.shape, *second.shape)
        self.values[node.output] = self._emit("mul", [(first, (0,)), (second, (1,))], sizes, (0, 1), "d")

    def _joined(self, node: Node) -> None:
        """`stack` and `concatenate`: an array whose parts are written."""
        self._check_float(node)
        shape = self._type(node.output).shape
        (axis,) = self._options(node, "axis")
        axis = (axis or 0) % max(1, len(shape))
        base = self._arena(("joined", node.location, "d"), np.dtype(float), 0.0)
        start = self.stream.bases[base].size
        self.stream.bases[base].size += math.prod(shape)
        strides = row_strides(shape)
        place = 0
        for value in node.inputs:
            assert value is not None
            part = self._named(value)
            step = strides[axis] if len(strides) else 0
            if node.kind == "stack":
                moves = (*strides[:axis], *strides[axis + 1 :])
                extent = 1
            else:
                moves, extent = strides, part.shape[axis]
            labels = tuple(range(len(part.shape)))
            self.stream.write(base, part.shape, moves, start + place * step, part, labels, node.location)
            place += extent
        self._remember(node.output, Memory(base, start))

    def _detach(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        if self._type(value).dtype != self._type(node.output).dtype:
            raise self._refused("a conversion to another dtype is not compiled")
        operand = self._operand(value)
        self.values[node.output] = operand if isinstance(operand, Number) else self._detached(operand)

    # -- values --------------------------------------------------------------------------------------------------------

    def _operand(self, value: Value) -> Named | Number:
        """A value, to be computed with."""
        found = self.values[value]
        if isinstance(found, Number):
            return found
        return self._named(value)

    def _named(self, value: Value) -> Named:
        """A value as one of the stream."""
        node = self.node
        if node is not None and node.kind in OPERATORS and value.type.requires_grad:
            if not any(output.type.requires_grad for output in node.outputs):  # under no_grad
                return self._detached(self._plain(value))
        return self._plain(value)

    def _plain(self, value: Value) -> Named:
        """A value as one of the stream, as it is."""
        found = self.values[value]
        if isinstance(found, Named):
            return found
        if isinstance(found, Number) and not found.shape:
            return self._emit("positive", [(float(found.value), ())], (), (), "d")
        memory = self._memory(value)
        shape = self._type(value).shape
        location = self.node.location if self.node is not None else -1
        return self.stream.read(memory.base, shape, row_strides(shape), memory.offset, location)

    def _memory(self, value: Value) -> Memory:
        """The memory in which a value lies, which is made where it lies in none."""
        found = self.values[value]
        if isinstance(found, Memory):
            if self.latest[found] is not value:
                raise self._refused("the value that an array had before a write is not compiled")
            return found
        kind = self._type(value)
        size = math.prod(kind.shape)
        location = value.node.location
        if isinstance(found, Number):
            fill = found.value
            key = ("full", location, kind.dtype, repr(fill))
            base = self._arena(key, kind.dtype, fill)
        else:
            base = self._arena(("value", location, value.node.kind, kind.dtype), kind.dtype, 0.0)
        offset = self.stream.bases[base].size
        self.stream.bases[base].size += size
        if isinstance(found, Named):
            strides = row_strides(kind.shape)
            labels = tuple(range(len(kind.shape)))
            self.stream.write(base, kind.shape, strides, offset, found, labels, location)
        memory = Memory(base, offset)
        self._remember(value, memory)
        return memory

    def _remember(self, value: Value, memory: Memory) -> None:
        """From now on the memory holds a value."""
        self.values[value] = memory
        self.latest[memory] = value

    def _result(self, value: Value) -> Result:
        memory = self._memory(value)
        shape = self._type(value).shape
        base = self.stream.bases[memory.base]
        return Result(base.name, shape, row_strides(shape), memory.offset)

    def _base(self, size: int, dtype: np.dtype[Any], kind: str, initial: Any) -> int:
        if dtype not in READ:
            raise self._refused(f"arrays of {dtype} are not compiled")
        return self.stream.base(size, dtype, kind, initial)

    def _arena(self, key: Any, dtype: np.dtype[Any], initial: Any) -> int:
        base = self.arenas.get(key)
        if base is None:
            base = self.arenas[key] = self._base(0, dtype, "made", initial)
        return base

    # -- instructions --------------------------------------------------------------------------------------------------

    def _emit(
        self, name: str, operands: Sequence[tuple[Any, Shape]], sizes: Shape, out: Shape, dtype: str
    ) -> Named:
        assert self.node is not None
        expression = FORWARD.get(name) or _MORE[name]
        return self.stream.op(name, expression, (), self.node.location, dtype, sizes, out, operands)

    def _reduced(self, name: str, operand: Named, axis: Any, keepdims: bool) -> Named:
        labels = tuple(range(len(operand.shape)))
        dims = reduced_dims(axis, len(labels))
        out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
        return self._emit(name, [(operand, labels)], operand.shape, out, "d")

    def _reshaped(self, operand: Named) -> Named:
        labels = (-1,) * len(operand.shape)
        return self._emit("positive", [(operand, labels)], (), (), self.stream.places[operand.place][1])

    def _options(self, node: Node, *names: str) -> list[Any]:
        operator = OPERATORS[node.kind]
        given = dict(zip([argument.name for argument in operator.signature.plain], node.attributes, strict=True))
        for argument in operator.signature.plain:
            if argument.name not in names and repr(thawed(given[argument.name])) != (argument.default or ""):
                raise self._refused(f"{node.kind} with {argument.name}= is not compiled")
        return [thawed(given[name]) for name in names]

    def _only_input(self, node: Node) -> Value:
        """The first input of a node, where it has no other."""
        value = node.inputs[0]
        if value is None or any(other is not None for other in node.inputs[1:]):
            raise self._refused(f"{node.kind} of several arrays is not compiled")
        return value

    def _detached(self, operand: Named) -> Named:
        """A value through which no gradient flows."""
        labels = tuple(range(len(operand.shape)))
        dtype = self.stream.places[operand.place][1]
        return self._emit("detach", [(operand, labels)], operand.shape, labels, dtype)

    def _check_float(self, node: Node) -> None:
        if any(value is None or self._type(value).dtype != np.dtype(float) for value in node.inputs):
            raise self._refused(f"{node.kind} of other arrays than float64 is not compiled")

    def _type(self, value: Value) -> TensorType:
        kind = value.type
        if type(kind) is not TensorType:
            raise self._refused(f"a {kind} is not compiled")
        return kind

    def _size(self, value: Value) -> int:
        return math.prod(self._type(value).shape)

    def _refused(self, what: str) -> NotCompiledError:
        where = "" if self.node is None else f" ({self.graph.where(self.node)})"
        return NotCompiledError(what + where)


_MORE: Final = {"sum": "{0}", "greatest": "{0}", "finite_or_zero": "finite_or_zero({0})", "detach": "{0}"}
_HANDLERS: Final[dict[str, Callable[[_Lowering, Node], None]]] = {
    "full": _Lowering._full,
    "constant": _Lowering._constant,
    "read": _Lowering._read,
    "write": _Lowering._write,
    "gather_at": _Lowering._index,
    "put_at": _Lowering._index_put,
    "guard": _Lowering._guard,
    "sum": _Lowering._sum,
    "mean": _Lowering._mean,
    "logsumexp": _Lowering._logsumexp,
    "matmul": _Lowering._matmul,
    "dot": _Lowering._matmul,
    "outer": _Lowering._outer,
    "stack": _Lowering._joined,
    "concatenate": _Lowering._joined,
    "overwrite": _Lowering._write,
    "detach": _Lowering._detach,
}


def window_of(flat: np.ndarray[Any, Any], window: Any) -> np.ndarray[Any, Any]:
    """A window of an array in row order."""
    strides = [stride * flat.itemsize for stride in window.strides]
    return np.ndarray(window.sizes, flat.dtype, flat, window.offset * flat.itemsize, strides)


def broadcast_labels(shape: Shape, onto: Shape) -> Shape:
    """The labels of the dimensions of an operand that is broadcast."""
    before = len(onto) - len(shape)
    if before < 0:  # leading dimensions of length 1, as an assignment takes them
        return (-1,) * -before + broadcast_labels(shape[-before:], onto)
    return tuple([
        -1 if extent == 1 and onto[before + dim] != 1 else before + dim for dim, extent in enumerate(shape)
    ])


def reduced_dims(axis: Any, ndim: int) -> set[int]:
    """The dimensions over which a reduction goes."""
    if axis is None:
        return set(range(ndim))
    return {dim % ndim for dim in (axis if isinstance(axis, tuple) else (axis,))}
