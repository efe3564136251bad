"""Tracing of a call: a normal run of the function that is traced as far as possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs
import numpy as np

from ...errors import TraceError, ViewInPlaceError
from ...func.containers import Containers
from ...func.tree import Structure, flatten, opaque_parts
from ...tensor.async_safety import in_own_context
from ...tensor.creation import from_numpy
from ...tensor.tensor import Tensor, is_numeric_array
from ...trace.attributes import Frozen
from ...trace.exceptions import guard_exceptions
from ...trace.graph import Graph, Node, Value
from ...trace.signature import ResultSpec, Signature
from ...trace.trace import Binder, argument_names, check_containers, observing
from ...trace.tracing.tracer import CONSTANTS, Tracer
from ...trace.types import TensorType
from ...views.meta import CreationMeta
from ..gc_pause import rare_collections
from ..guards.call_signature import layout_key, share_memory, share_memory_with
from ..guards.closure_guard import ClosureGuard, random_state
from ..guards.impure_reads import outside_refused
from ..lower.dynamic_index import COMPUTED
from .arguments import Call
from .array_arguments import require_no_histories
from .guarded_trace import GuardedTrace
from .minmax_patch import extrema_by_value

MAX_OPERATIONS: Final = 20_000_000  # the maximum number of operations in a trace
COMPILED: Final = frozenset(map(np.dtype, (float, np.float32, bool, np.int64)))  # the supported dtypes of arguments
C = TypeVar("C", bound=Callable[..., Any])


@attrs.frozen(eq=False)
class Capture:
    """The result of a call, with its trace if it could be traced.

    Arguments:
        result: the function's result.
        trace: the trace, or None. If there is no reason, the next call may be traced.
        fallback_reason: why the function remains eager.
        is_untraceable: whether tracing failed, as opposed to a trace that is not used.
    """

    result: Any
    trace: GuardedTrace | None = None
    fallback_reason: str | None = None
    is_untraceable: bool = False


@attrs.frozen(eq=False)
class TracedRun:
    """A traced run of a function.

    Arguments:
        result: the function's result.
        graph: the trace, or None if tracing failed.
        closures: the captured tensors that are inputs.
        error: why tracing failed.
    """

    result: Any
    graph: Graph | None
    closures: list[Tensor]
    error: TraceError | None


def capture(function: Callable[..., Any], call: Call, is_first: bool) -> Capture:
    """Run a function and trace it if possible.

    Arguments:
        function: the function.
        call: its arguments.
        is_first: whether the function has not been traced before. A first run may change captured state, for example by
            filling caches.
    """
    given = [
        from_numpy(leaf) if _is_input(leaf) and number not in call.static else leaf
        for number, leaf in enumerate(call.leaves)
    ]
    reason = _unsupported_arguments(given, call)
    if reason is not None:
        return Capture(function(*call.args, **call.keywords), None, reason)
    arguments = opaque_parts(call.structure)
    before = ClosureGuard(function, arguments)
    generators = before.generators
    state = random_state(generators)
    run = traced_run(function, (call.args, call.keywords), call.structure, given, MAX_OPERATIONS)
    require_no_histories(call.leaves, given)
    if run.graph is None:
        assert run.error is not None
        return Capture(run.result, None, run.error.message, True)
    if random_state(generators) != state:
        reason = "it draws random numbers; draw them outside, and pass them as an argument"
        return Capture(run.result, None, reason)
    replaced = before.has_new_objects()
    guard = ClosureGuard(function, arguments)
    positions = [guard.path_of(tensor) for tensor in run.closures]
    reason = _unsupported_state(guard, positions)
    if reason is None and (replaced or not before.unchanged()):
        if is_first:
            return Capture(run.result)
        reason = "it mutates captured state; pass it as an argument"
    if reason is None and share_memory_with(given, guard.arrays):
        reason = "an argument shares memory with captured state; pass a copy"
    if reason is None:
        reason = _unsupported_results(run.graph, run.result, given)
    if reason is not None:
        return Capture(run.result, None, reason)
    closures = [position for position in positions if position is not None]
    layouts = [layout_key(tensor._array) for tensor in run.closures]
    return Capture(run.result, GuardedTrace(run.graph, guard, closures, layouts))


def _is_input(leaf: Any) -> bool:
    """Return whether an argument is an array that becomes an input of a program."""
    return is_numeric_array(leaf.view(np.ndarray) if type(leaf) is np.memmap else leaf)


def _unsupported_arguments(given: list[Any], call: Call) -> str | None:
    """Return why arguments cannot be traced, or None."""
    for number, leaf in enumerate(given):
        if isinstance(leaf, np.ndarray) and number not in call.static:
            kind = leaf.dtype if type(leaf) is np.ndarray else type(leaf).__name__
            return f"an argument is an array of {kind}, which tensors do not support"
        if isinstance(leaf, Tensor):
            if type(leaf) is not Tensor:
                return f"a {type(leaf).__name__} is not a plain tensor"
            if leaf._array.dtype not in COMPILED:
                return f"an argument of {leaf._array.dtype} is not compiled"
    return "arguments share memory" if call.shares_memory else None


def _unsupported_state(guard: ClosureGuard, positions: list[int | None]) -> str | None:
    """Return why captured state cannot be guarded, or None.

    Arguments:
        guard: the captured state.
        positions: the numbers of the captured tensors in the guard.
    """
    if None in positions:
        return "it uses a tensor that is neither an argument nor a captured variable"
    return guard.why_incomplete


def _unsupported_results(graph: Graph, result: Any, given: list[Any]) -> str | None:
    """Return why a program could not reproduce the memory sharing of results, or None."""
    signature: Signature = graph.signature  # type: ignore[assignment]
    if signature.ended:
        return "it detaches an argument in place, by detach_() or requires_grad_(False)"
    leaves, _ = flatten(result)
    earlier: list[tuple[ResultSpec, Any]] = []
    for spec, leaf in zip(signature.results, leaves):
        if type(spec) is not ResultSpec:
            continue
        for other_spec, other in earlier:
            reason = _unsupported_pair(other_spec, other, spec, leaf)
            if reason is not None:
                return reason
        if spec.input is None and share_memory([leaf, *given]) and leaf.size:
            if any(isinstance(g, Tensor) and np.may_share_memory(g._array, leaf._array) for g in given):
                return "a result shares memory with an argument, but is not a view of it"
        if leaf._view is not None and leaf._view.creation is not CreationMeta.DEFAULT:
            return "a result is a view that was taken under no_grad"
        earlier.append((spec, leaf))
    return None


def _unsupported_pair(spec: ResultSpec, leaf: Any, later_spec: ResultSpec, later: Any) -> str | None:
    """Return why a program could not reproduce the memory shared by two results, or None."""
    have_one_root = _root_of_result(spec) == _root_of_result(later_spec)
    are_views = spec.base is not None or later_spec.input is not None or later_spec.base is not None
    are_related = have_one_root and (are_views or leaf is later)
    if not are_related and (have_one_root or np.may_share_memory(leaf._array, later._array)):
        return "its results share memory, but are not views of one tensor"
    if are_related and leaf.requires_grad is not later.requires_grad:
        return "a result shares memory with another result that it was detached from"
    return None


def _root_of_result(spec: ResultSpec) -> Any:
    """Return the input or output whose memory a result uses."""
    return ("input", spec.input) if spec.input is not None else spec.output if spec.base is None else spec.base


@in_own_context
def traced_run(
    f: Callable[..., Any], arguments: Any, structure: Structure, leaves: list[Any], limit: int
) -> TracedRun:
    """Run a function normally and trace it as far as possible.

    Arguments:
        f: the function.
        arguments: the caller's `(args, keywords)`.
        structure, leaves: the structure and the leaves of the arguments.
        limit: the maximum number of operations in a trace.
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
        return TracedRun(result, None, [], tracer.refusal)
    with observing(tracer):
        with extrema_by_value(), outside_refused(), rare_collections():
            result = f(*args, **keywords)
        if tracer.refusal is None:
            try:
                tracer.check_caught()
                check_containers(containers)
                assert binder is not None
                tracer.graph.signature = binder.signature(structure, leaves, result)
                guard_exceptions(tracer.graph)
            except TraceError as error:
                tracer.refusal = error
            except ViewInPlaceError as error:  # a result with an ambiguous history, whose use raises
                tracer.refusal = TraceError(error.message)
    if tracer.refusal is not None:
        containers.give_back()
        return TracedRun(result, None, [], tracer.refusal)
    return TracedRun(result, tracer.graph, [tensor for tensor, _ in tracer.closures], None)


def quietly(method: C) -> C:
    """Decorate a method of the tracer so that it does nothing, instead of raising, once tracing has failed."""

    def quiet(self: Any, *args: Any) -> Any:
        if self.refusal is None:
            try:
                return method(self, *args)
            except TraceError as error:
                self.refusal = error
        return self.nothing

    return quiet  # type: ignore[return-value]


class QuietTracer(Tracer):
    """A tracer that gives up silently where others raise, so that the run continues normally.

    Attributes:
        refusal: why it has given up, or None.
    """

    keeps_indices = True

    def __init__(self, escapes: str = "error", *, limit: int | None = None) -> None:
        super().__init__(escapes, limit=limit)
        self.refusal: TraceError | None = None
        self._guards: dict[int, Node] = {}  # arrays used as indices, by id
        self._masks: dict[int, tuple[Any, Value]] = {}  # bool arrays used as indices, by id
        self._fixed: set[Node] = set()  # the guards of index arrays that have other uses too
        self.nothing = Value(Node("nothing", (), None, ()), TensorType.of(np.dtype(float), ()))

    value_of = quietly(Tracer.value_of)
    element_of = quietly(Tracer.element_of)
    created = quietly(Tracer.created)
    detached = quietly(Tracer.detached)
    history_removed = quietly(Tracer.history_removed)
    will_be_written = quietly(Tracer.will_be_written)
    moved = quietly(Tracer.moved)
    escaped = quietly(Tracer.escaped)
    reshaped = quietly(Tracer.reshaped)
    refuse = quietly(Tracer.refuse)

    @quietly
    def indexed(self, tensor: Tensor, array: Any) -> None:
        """Handle a copy of a tensor's elements that is used as an index.

        Integers become inputs of the read or write; if the compiler does not support this, they are guarded.
        """
        if array.dtype.kind not in "iu" and not array.ndim:
            self.escaped(tensor, "an index", array.item())
            return
        read = self._read(tensor)
        if read.node.kind not in CONSTANTS:
            self._guards[id(array)] = self.node("guard", (read,), ("an index", Frozen(np.array(array))), ())
            if array.dtype.kind == "b":
                self._masks[id(array)] = (array, read)
            else:
                self.indices.add(array, read)

    def copied(self, index: Any, array: Any) -> None:
        """Handle an array that replaces another one in an index."""
        super().copied(index, array)
        guard = self._guards.get(id(index))
        if guard is not None:
            self._guards[id(array)] = guard
        mask = self._masks.get(id(index))
        if mask is not None:
            self._masks[id(array)] = (array, mask[1])

    def pattern(self, items: tuple[Any, ...]) -> Any:
        """Handle an index: computed integers in it are inputs and may change, but masks must not."""
        for item in items:
            if id(item) in self._masks:
                self.array_option(item)
            else:
                self._allow_changes(item)
        return super().pattern(items)

    def _allow_changes(self, array: Any) -> None:
        guard = self._guards.get(id(array))
        if guard is not None and guard not in self._fixed:
            guard.attributes = (COMPUTED, guard.attributes[1])

    def _written(self, tensor: Tensor, value: Value, recorded: bool, items: Any = None, kind: str = "write") -> None:
        """Handle a write; the assignment of a single value by a mask is compiled to a select, for any mask."""
        if kind == "put_at" and len(items) == 1 and self._is_choice(tensor, value, recorded, items[0]):
            before = self._read(tensor)
            of: Any = before.type
            made = TensorType.of(of.dtype, of.shape, of.requires_grad or value.type.requires_grad)
            mask = self._masks[id(items[0])][1]
            self._allow_changes(items[0])
            value, items, kind = self.node("where", (mask, value, before), (), (made,)).output, None, "write"
        super().write(tensor, value, recorded, items, kind)

    write = quietly(_written)

    def _is_choice(self, tensor: Tensor, value: Value, recorded: bool, mask: Any) -> bool:
        """Return whether a recorded write by an index assigns a single value by a mask over all elements."""
        if id(mask) not in self._masks or mask.shape != tensor.shape:
            return False
        of: Any = value.type
        if of.shape or of.dtype != tensor.dtype or of.dtype.kind != "f":
            return False
        return recorded or not (of.requires_grad or tensor.requires_grad)

    def array_option(self, option: Any) -> None:
        """Handle an option of an operator; computed integers in it are guarded."""
        guards = [self._guards.get(id(option))] if type(option) is np.ndarray else list(self._guards.values())
        for guard in guards:
            if guard is not None:
                self._fixed.add(guard)
                guard.attributes = ("an index", guard.attributes[1])

    def varies(self, tensor: Tensor) -> bool:
        """Return False: the function may read the elements of any tensor, which are then guarded."""
        return False

    @quietly
    def queried(self, tensor: Tensor, what: str) -> None:
        """Handle an observable effect that a compiled run would not repeat."""
        self.refuse(f"reading {what} of a tensor, which differs in each run,")

    def node(self, kind: str, inputs: Any, attributes: Any, types: Any, location: int | None = None) -> Node:
        """Append a node."""
        if self.refusal is None:
            try:
                return super().node(kind, inputs, attributes, types, location)
            except TraceError as error:
                self.refusal = error
        return Node(kind, (), None, types)
