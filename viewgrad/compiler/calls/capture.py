"""A run that is recorded as far as it can be, and goes on as ever where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import numpy as np

from ...errors import TraceError, ViewInPlaceError
from ...func.containers import Containers
from ...func.tree import Structure
from ...tensor.async_safety import in_own_context
from ...tensor.tensor import Tensor
from ...trace.attributes import Frozen
from ...trace.graph import Graph, Node, Value
from ...trace.trace import Binder, argument_names, check_containers, observing
from ...trace.tracing.tracer import CONSTANTS, Tracer
from ...trace.types import TensorType
from ..gc_pause import rare_collections
from ..guards.impure_reads import outside_refused
from ..lower.dynamic_index import COMPUTED
from .minmax_patch import extrema_by_value

__all__ = ["Recording", "recorded"]

C = TypeVar("C", bound=Callable[..., Any])


@attrs.frozen(eq=False)
class Recording:
    """A run that was recorded.

    Arguments:
        result: what the function has returned.
        graph: what it did; None where that could not be recorded.
        closures: the tensors that it found elsewhere.
        refusal: why it could not.
    """

    result: Any
    graph: Graph | None
    closures: list[Tensor]
    refusal: TraceError | None


@in_own_context
def recorded(
    f: Callable[..., Any], arguments: Any, structure: Structure, leaves: list[Any], limit: int
) -> Recording:
    """Run a function as ever, and record it where that is possible.

    Arguments:
        f: the function.
        arguments: the caller's `(args, keywords)`.
        structure, leaves: those of what the function is given.
        limit: how many operations may be recorded.
    """
    tracer = QuietTracer("guard", limit=limit)
    binder = None
    try:
        binder = Binder(tracer, leaves, structure, argument_names(f))
    except TraceError as error:
        tracer.refusal = error
    containers = Containers(arguments, structure, leaves)
    args, keywords = containers.given
    if tracer.refusal is not None:
        result = f(*args, **keywords)
        containers.give_back()
        return Recording(result, None, [], tracer.refusal)
    with observing(tracer):
        with extrema_by_value(), outside_refused(), rare_collections():
            result = f(*args, **keywords)
        if tracer.refusal is None:
            try:
                check_containers(containers)
                assert binder is not None
                tracer.graph.signature = binder.signature(structure, leaves, result)
            except TraceError as error:
                tracer.refusal = error
            except ViewInPlaceError as error:  # a result whose history can't be told, as whoever looks at it finds out
                tracer.refusal = TraceError(error.message)
    if tracer.refusal is not None:
        containers.give_back()
        return Recording(result, None, [], tracer.refusal)
    return Recording(result, tracer.graph, [tensor for tensor, _ in tracer.closures], None)


def quietly(method: C) -> C:
    """Let a method of the tracer do nothing more once something could not be recorded, rather than raise."""

    def quiet(self: Any, *args: Any) -> Any:
        if self.refusal is None:
            try:
                return method(self, *args)
            except TraceError as error:
                self.refusal = error
        return self.nothing

    return quiet  # type: ignore[return-value]


class QuietTracer(Tracer):
    """A tracer that gives up where another raises, so that the run goes on as if nobody watched.

    Attributes:
        refusal: why it has given up; None as long as it has not.
    """

    keeps_indices = True

    def __init__(self, escapes: str = "error", *, limit: int | None = None) -> None:
        super().__init__(escapes, limit=limit)
        self.refusal: TraceError | None = None
        self._guards: dict[int, Node] = {}  # of arrays that are indices, by the ids of these
        self._masks: dict[int, tuple[Any, Value]] = {}  # arrays of bools that are indices, by their ids
        self._fixed: set[Node] = set()  # the guards of those that are used as something else, too
        self.nothing = Value(Node("nothing", (), None, ()), TensorType.of(np.dtype(float), ()))

    value_of = quietly(Tracer.value_of)
    element_of = quietly(Tracer.element_of)
    made = quietly(Tracer.made)
    detached = quietly(Tracer.detached)
    cut = quietly(Tracer.cut)
    moved = quietly(Tracer.moved)
    left = quietly(Tracer.left)
    refuse = quietly(Tracer.refuse)

    @quietly
    def indexed(self, tensor: Tensor, array: Any) -> None:
        """A copy of the elements of a tensor is used for an index.

        Integers are inputs of the read or write. Where the compiler cannot take them so, they must be what they were.
        """
        if array.dtype.kind not in "iu" and not array.ndim:
            self.left(tensor, "an index", array.item())
            return
        read = self._read(tensor)
        if read.node.kind not in CONSTANTS:
            self._guards[id(array)] = self.node("guard", (read,), ("an index", Frozen(np.array(array))), ())
            if array.dtype.kind == "b":
                self._masks[id(array)] = (array, read)
            else:
                self.indices.add(array, read)

    def copied(self, index: Any, array: Any) -> None:
        """An array takes the place of another in an index."""
        super().copied(index, array)
        guard = self._guards.get(id(index))
        if guard is not None:
            self._guards[id(array)] = guard
        mask = self._masks.get(id(index))
        if mask is not None:
            self._masks[id(array)] = (array, mask[1])

    def pattern(self, items: tuple[Any, ...]) -> Any:
        """An index, of which the integers that are computed are inputs, and need not be what they were; masks must."""
        for item in items:
            if id(item) in self._masks:
                self.kept(item)
            else:
                self._need_not_be_the_same(item)
        return super().pattern(items)

    def _need_not_be_the_same(self, array: Any) -> None:
        guard = self._guards.get(id(array))
        if guard is not None and guard not in self._fixed:
            guard.attributes = (COMPUTED, guard.attributes[1])

    def _written(self, tensor: Tensor, value: Value, recorded: bool, items: Any = None, kind: str = "write") -> None:
        """A tensor was written to: one value by a mask is a choice, whatever the mask is."""
        if kind == "put_at" and len(items) == 1 and self._is_choice(tensor, value, recorded, items[0]):
            before = self._read(tensor)
            of: Any = before.type
            made = TensorType.of(of.dtype, of.shape, of.requires_grad or value.type.requires_grad)
            mask = self._masks[id(items[0])][1]
            self._need_not_be_the_same(items[0])
            value, items, kind = self.node("where", (mask, value, before), (), (made,)).output, None, "write"
        super().write(tensor, value, recorded, items, kind)

    write = quietly(_written)

    def _is_choice(self, tensor: Tensor, value: Value, recorded: bool, mask: Any) -> bool:
        """Whether what is written by an index is one value by a mask of all elements, as the history knows."""
        if id(mask) not in self._masks or mask.shape != tensor.shape:
            return False
        of: Any = value.type
        if of.shape or of.dtype != tensor.dtype or of.dtype.kind != "f":
            return False
        return recorded or not (of.requires_grad or tensor.requires_grad)

    def kept(self, option: Any) -> None:
        """An option of an operator: where it may hold such integers, they must be what they were."""
        guards = [self._guards.get(id(option))] if type(option) is np.ndarray else list(self._guards.values())
        for guard in guards:
            if guard is not None:
                self._fixed.add(guard)
                guard.attributes = ("an index", guard.attributes[1])

    @quietly
    def asked(self, tensor: Tensor, what: str) -> None:
        """Something is told that a compiled run would not tell again."""
        self.refuse(f"asking a tensor for {what}, which is another in each run,")

    def node(self, kind: str, inputs: Any, attributes: Any, types: Any, location: int | None = None) -> Node:
        """Write down one node."""
        if self.refusal is None:
            try:
                return super().node(kind, inputs, attributes, types, location)
            except TraceError as error:
                self.refusal = error
        return Node(kind, (), None, types)
