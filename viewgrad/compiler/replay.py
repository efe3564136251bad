"""A recorded graph run again by the operators of the library, on tensors: what higher derivatives are taken of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..errors import NotCompiledError
from ..operators.define import OPERATORS
from ..tensor.creation import full
from ..tensor.tensor import Tensor
from ..trace.attributes import thawed
from ..trace.evaluate import forward_call, indexed_by
from ..trace.graph import Graph, Node, Value
from ..trace.raised import RAISES
from ..trace.types import TensorType, Window

__all__ = ["index_of", "outlived", "replayed"]

UNRECORDED: Final = frozenset({"overwrite", "put_at_unrecorded", "add_at_unrecorded"})
WRITING: Final = frozenset({"write", "put_at", "add_at", *UNRECORDED})


def replayed(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of a graph, recorded as any computation, without the warnings that the run before has given.

    Arguments:
        graph: the graph.
        inputs: a tensor for each of its inputs; they are not written to.
    """
    with np.errstate(all="ignore"):
        return _Replay(graph, inputs).run()


class _Replay:
    def __init__(self, graph: Graph, inputs: Sequence[Tensor]) -> None:
        self.graph = graph
        self.values: dict[Value, Tensor] = dict(zip(graph.inputs, inputs, strict=True))
        self.outlived = outlived(graph)
        self.buffers: dict[Value, Tensor] = {}  # of values whose memory is looked at: all of it, flat

    def run(self) -> list[Tensor]:
        """The outputs."""
        for node in self.graph.block:
            self._run(node)
        return [self._value(value).clone() for value in self.graph.outputs if value is not None]

    def _run(self, node: Node) -> None:
        kind = node.kind
        if kind == "guard" or kind.startswith(RAISES):  # which the run before has checked
            return
        if kind == "read":
            self.values[node.output] = window_of(self._buffer(node.inputs[0]), node.attributes).clone()
        elif kind == "overwrite":
            base, value = node.inputs
            assert base is not None and value is not None
            given = self._value(value)
            buffer = self._written(base)
            window_of(buffer.detach(), node.attributes).copy_(given.detach())
            self.buffers[node.output] = buffer
        elif kind == "write":
            base, value = node.inputs
            assert base is not None and value is not None
            given = self._value(value)
            buffer = self._written(base)
            window_of(buffer, node.attributes).copy_(given)
            self.buffers[node.output] = buffer
        elif kind == "gather_at":
            assert node.inputs[0] is not None
            self.values[node.output] = self._value(node.inputs[0])[self._index(node.attributes[0], node.inputs[1:])]
        elif kind in WRITING:
            self._put(node)
        elif kind == "constant":
            self.values[node.output] = Tensor(node.attributes[0].array)
        elif kind == "full":
            shape, fill, dtype = node.attributes
            self.values[node.output] = full(shape, fill, dtype=dtype)
        elif kind == "detach":
            assert node.inputs[0] is not None
            self.values[node.output] = self._value(node.inputs[0]).detach().clone()
        else:
            self._call(node)

    def _put(self, node: Node) -> None:
        """A write to, or an addition at, places that an index names."""
        base, value = node.inputs[:2]
        assert base is not None and value is not None
        given = self._value(value)
        buffer = self._written(base)
        window, pattern = node.attributes
        unrecorded = node.kind in UNRECORDED
        if unrecorded:
            given = given.detach()
        part = window_of(buffer.detach() if unrecorded else buffer, window)
        index = self._index(pattern, node.inputs[2:])
        if node.kind.startswith("add_at"):
            np.add.at(part, index, given)
        else:
            part[index] = given
        self.buffers[node.output] = buffer

    def _index(self, pattern: Any, given: Sequence[Value | None]) -> tuple[Any, ...]:
        """The index that a pattern means, with computed arrays as they are in this run."""
        return indexed_by(pattern, [self._value(value)._array for value in given if value is not None])

    def _call(self, node: Node) -> None:
        operator = OPERATORS.get(node.kind.removesuffix("_"))
        if operator is None:
            raise NotCompiledError(f"{node.kind} cannot be run again ({self.graph.where(node)})")
        given = [None if value is None else self._value(value) for value in node.inputs]
        args, keywords = forward_call(operator, given, node.attributes)
        results = operator.function(*args, **keywords)
        for output, result in zip(node.outputs, results if type(results) is tuple else (results,), strict=True):
            unrecorded = result.requires_grad and not output.type.requires_grad  # under no_grad
            self.values[output] = result.detach() if unrecorded else result

    def _value(self, value: Value) -> Tensor:
        """The tensor that a value is."""
        buffer = self.buffers.get(value)
        if buffer is None:
            return self.values[value]
        kind = value.type
        assert type(kind) is TensorType
        return buffer.reshape(kind.shape).clone()

    def _buffer(self, value: Value | None) -> Tensor:
        """The memory of a value, flat and our own."""
        assert value is not None
        buffer = self.buffers.get(value)
        if buffer is None:
            buffer = self.buffers[value] = self.values[value].reshape(-1).clone()
        return buffer

    def _written(self, value: Value) -> Tensor:
        """The memory of a value that is written over: a copy of it, where the value is used again."""
        buffer = self._buffer(value)
        return buffer.clone() if value in self.outlived else buffer


def outlived(graph: Graph) -> set[Value]:
    """The values that are used again after a write over them."""
    written: set[Value] = set()
    found: set[Value] = set()
    for node in graph.block:
        for value in node.inputs:
            if value in written:
                found.add(value)
        if node.kind in WRITING and node.inputs[0] is not None:
            written.add(node.inputs[0])
    return found | written.intersection(value for value in graph.outputs if value is not None)


def index_of(pattern: Any) -> tuple[Any, ...]:
    """The index that a pattern without computed arrays means."""
    return tuple([thawed(item) for item in pattern])


def window_of(buffer: Tensor, window: Window) -> Any:
    """A window of a flat tensor."""
    if 0 in window.sizes:
        return buffer[:0].reshape(window.sizes)
    offset = window.offset
    turned = []
    for size, stride in zip(window.sizes, window.strides, strict=True):
        turned.append(stride < 0)
        if stride < 0:
            offset += (size - 1) * stride
    view = buffer.as_strided(window.sizes, tuple([abs(stride) for stride in window.strides]), offset)
    if any(turned):
        view = view[tuple([slice(None, None, -1 if turn else None) for turn in turned])]
    return view
