"""The tracer, which observes a running program and records its operations as a graph."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...errors import ConcretizationError, TraceError
from ...operators.language.spec import Operator
from ...operators.operands import is_constant
from ...tensor.conversions import is_shown
from ...tensor.escapes import CONTROL_FLOW
from ...tensor.exported_arrays import has_exports
from ...tensor.modes import GRAD, current_mode
from ...tensor.node import node_of
from ...tensor.tensor import Tensor, current_edge, is_scalar, root_of
from ...type_aliases import Array
from ...views.detached_views import has_ended
from ..attributes import LARGE, Frozen, full_or_constant, interned
from ..exceptions import is_static, raising_kind
from ..graph import Graph, Node, Value
from ..primitives import is_deterministic
from ..types import TensorType, Window, whole
from .alias_histories import Chain, Ended, end, ended_of, has_old_history, history_of, remember, write_to_ended
from .error_modes import error_mode, raises_errors
from .external_arrays import holds
from .indices import Indices
from .memory import Memories, Memory, identified, owner_of, reaches
from .opaque_calls import composed
from .preexisting import Existing
from .source_locations import Locations, is_of_library

ESCAPES: Final = ("error", "guard")
CONSTANTS: Final = frozenset({"constant", "full"})
UNDER_NO_GRAD: Final = ("no_grad",)  # reverse mode treats it as opaque, and forward mode does not
MANY: Final = 4096  # the number of stored numbers above which dead ones are dropped


class Tracer:
    """The observer that traces operations on tensors in its thread.

    Arguments:
        escapes: the treatment of values that leave the library through `item()`, `float()` or `numpy()`: "error", or
            "guard" to store them in the graph and check in each run that they are unchanged.
        lenient: whether tensors of unknown origin are constants; otherwise they raise an error.

    Attributes:
        graph: the graph so far.
        closures: the captured tensors, each with its input.
        existing: the objects that existed before; None if tensors of unknown origin are constants.
        ended: the tensors from outside whose history was ended in place.
        aliased: the source line where memory with a gradient was written to by a tensor with another history, or None.
        failure: the reason why the program cannot be traced, in case it caught the exception, or None.
        unguarded: an exception that depends on values and that no guard covers, or None.
    """

    keeps_indices = False

    def __init__(self, escapes: str = "error", *, lenient: bool = False, limit: int | None = None) -> None:
        if escapes not in ESCAPES:
            raise ValueError(f"escapes must be one of {', '.join(ESCAPES)}, not {escapes!r}")
        self.escapes = escapes
        self.lenient = lenient
        self.guards_values = escapes == "guard" and not lenient
        self.limit = limit
        self.count = 0
        self.locations = Locations()
        self.graph = Graph(self.locations.lines)
        self.block = self.graph.block
        self.memories = Memories(self._emit_here, self.constant)
        self.closures: list[tuple[Tensor, Value]] = []
        self.aliased: str | None = None
        self.ended: list[Tensor] = []
        self._captured: dict[int, Any] = {}  # the storages of captured arrays, by id
        self._attributes: dict[Any, Any] = {}
        self._constants: dict[Any, Value] = {}
        self._numbers: dict[int, weakref.ref[Any]] = {}
        self._many = MANY
        self.indices = Indices()
        self.failure: TraceError | None = None
        self.unguarded: str | None = None
        self._fixed_values: dict[Value, bool] = {}  # for each value, whether it is the same in every run
        self._error_mode: Any = None  # the last settings that raise nothing
        self.existing = None if lenient else Existing()

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def node(self, kind: str, inputs: Any, attributes: Any, types: Any, location: int | None = None) -> Node:
        """Record a node."""
        self.count += 1
        mode = error_mode()
        if mode is not self._error_mode:
            self._check_error_mode(mode)
        if self.limit is not None and self.count > self.limit:
            raise self._failed(f"the trace has reached its limit of {self.limit} nodes at {self._current_line()}")
        if location is None:
            location = self.locations.here()
        attributes = interned(self._attributes, attributes)
        return Node(kind, inputs, attributes, types, location).insert_before(self.block.returns)

    def _check_error_mode(self, mode: Any) -> None:
        """Raise inside a block in which floating-point errors raise, since graphs do not raise them."""
        if raises_errors() and not self.lenient:
            self.refuse("a block in which NumPy raises floating-point errors (np.errstate, np.seterr)")
        self._error_mode = mode

    def _failed(self, message: str, kind: type[TraceError] = TraceError) -> TraceError:
        """Return the error that the program cannot be traced, and store it in case the program catches it."""
        error = kind(message)
        self.failure = self.failure or error
        return error

    def raised(
        self, error: Exception, operator: Operator, inplace: bool, inputs: Any, attributes: Any, location: int
    ) -> None:
        """Guard an exception raised by an operator, which the program may catch."""
        if isinstance(error, TraceError) or is_static(error, inplace):
            return
        kind = None if inplace else raising_kind(error, operator)
        if kind is None:
            self.uncaught(error, operator.name, location)
            return
        value = self.node(kind, inputs, attributes, (TensorType.of(np.dtype(bool), ()),), location).output
        self.node("guard", (value,), ("bool()", True), (), location)

    def uncaught(self, error: Exception, what: str, location: int) -> None:
        """Handle an exception that depends on values and that no guard covers; the program must not catch it."""
        if self.unguarded is None and not isinstance(error, TraceError):
            self.unguarded = (
                f"{what} raised {type(error).__name__} at {self.locations.line_of(location)}, which the program caught:"
                " whether it is raised may depend on values, which a graph cannot represent"
            )

    def check_caught(self) -> None:
        """Raise if the program caught an exception that no guard covers; called after the program has returned.

        Raises:
            TraceError: if it caught one.
        """
        if self.failure is not None:
            raise self.failure
        if self.unguarded is not None:
            raise TraceError(self.unguarded)

    def _emit_here(self, kind: str, inputs: Any, attributes: Any, types: Any) -> Value:
        return self.node(kind, inputs, attributes, types).output

    def constant(self, array: Array, garbage: bool = False) -> Value:
        """Return a value with the current elements of an array."""
        kind, attributes = full_or_constant(array, garbage)
        small = kind == "constant" and array.size <= LARGE
        if small and attributes in self._constants:
            return self._constants[attributes]
        value = self.node(kind, (), attributes, (TensorType.of(array.dtype, array.shape),)).output
        if small:
            self._constants[attributes] = value
        return value

    # -- tensors -------------------------------------------------------------------------------------------------------

    def value_of(self, tensor: Tensor, part: Any = None) -> Value:
        """Return the current value of a tensor, or of a part of it."""
        return self._with_history_of(tensor, self._read(tensor, part))

    def _with_history_of(self, tensor: Tensor, value: Value) -> Value:
        if value.type.requires_grad and (tensor._edge if tensor._view is None else current_edge(tensor)) is None:
            # Its memory has a history but the tensor does not: it is a view taken under no_grad.
            return self.node("detach", (value,), UNDER_NO_GRAD, (value.type.with_grad(False),)).output
        return value

    def _read(self, tensor: Tensor, part: Any = None) -> Value:
        array = identified(tensor) if part is None else part
        memory = self.memory_of(tensor, array)
        if memory.array_id == id(array) and memory.others is None:
            return memory.value  # type: ignore[no-any-return]
        chain = self.chain_of(memory, tensor)
        if memory.array_id == id(array):
            return chain.value  # type: ignore[no-any-return]
        self.memories.make_base(memory)
        window = self._window(memory, tensor, array)
        taken = self._window_value(memory, chain.value, window)
        if isinstance(chain, Ended) and chain.known is not memory.value:
            current = self._window_value(memory, memory.value, window)
            return self._overwritten(taken, current) if taken.type.requires_grad else self._detached(current)
        return taken

    def element_of(self, tensor: Tensor, index: tuple[Any, ...]) -> Value:
        """Return the current value of one element of a tensor."""
        array = tensor._array
        memory = self.memories.known.get(id(array))
        window = None if memory is None else memory.element(array, index)
        if memory is None or window is None:
            return self.value_of(tensor, array[(*index, ...)])
        return self._with_history_of(tensor, self.read(self.chain_of(memory, tensor).value, window))

    def will_be_written(self, tensor: Tensor) -> None:
        """Record the elements of a tensor whose creation was not reported, such as zeros of the engine."""
        self.memory_of(tensor, tensor._array)

    def own_value_of(self, tensor: Tensor) -> Value | None:
        """Return the value of a view from before the history of its base ended, or None for other tensors."""
        memory = self.memories.find(tensor._array)
        return self.value_of(tensor) if memory and isinstance(self.chain_of(memory, tensor), Ended) else None

    def _window_value(self, memory: Memory, base: Value, window: Window) -> Value:
        """Return a window of the value of a buffer."""
        return base if memory.is_whole(window) else self.read(base, window)

    def _overwritten(self, old: Value, new: Value) -> Value:
        """Return the elements `new` with the history of `old`."""
        if self.aliased is None:
            self.aliased = self._current_line()
        kind = old.type
        assert type(kind) is TensorType
        return self.node("overwrite", (old, new), whole(kind.shape), (kind,)).output

    def read(self, base: Value, window: Window) -> Value:
        """Return a window of a base."""
        of = base.type
        assert type(of) is TensorType
        dtype = of.dtype if window.dtype is None else window.dtype
        return self.node("read", (base,), window, (TensorType.of(dtype, window.sizes, of.requires_grad),)).output

    def _window(self, memory: Memory, tensor: Tensor, array: Any = None) -> Window:
        window = memory.window(tensor._array if array is None else array)
        if window is None or not reaches(window, memory.shape):
            raise self._failed(
                f"a tensor of {tensor.dtype} and shape {tensor.shape} is not a window of the memory of {memory.dtype} "
                f"that it shares with others, at {self._current_line()}"
            )
        return window

    def chain_of(self, memory: Memory, tensor: Tensor) -> Any:
        """Return the history that a tensor belongs to, where `memory` itself represents the first history."""
        if memory.is_simple:
            return memory
        root = root_of(tensor)
        if memory.others is None and memory.ended is None and memory.root is not None and memory.root() is root:
            return memory
        ended = ended_of(memory, root)
        if ended is not None:
            return ended if has_old_history(tensor, root) else ended.chain
        if memory.first is not None and memory.first() is root:
            return memory
        for chain in memory.others or ():
            if chain.root() is root:
                return chain
        if memory.root is not None and memory.root() is not root and self._is_old(root):
            # An outside history that is unknown to the tracer.
            return self.branch(memory, root, [] if memory.written else [(root._array, self._input(root))])
        if (memory.others is None and memory.ended is None) or (memory.root is not None and memory.root() is root):
            return memory
        return self._saved_of(memory, root)

    def _saved_of(self, memory: Memory, tensor: Tensor) -> Any:
        """Return the history of a tensor that was saved by a node, or that was just created."""
        node = node_of(tensor._edge)
        found = memory if node is None else history_of(memory, node)
        if found is None:
            raise self._failed(
                f"several tensors share a buffer at {self._current_line()}, so the history of a value saved from it is "
                "ambiguous; clone() the result of detach()"
            )
        if memory.kept is not None and isinstance(found, Ended):
            copy: Any = memory.reference()
            return found.at(self.memories.filled(memory, [(copy, self.read(found.value, memory.kept))]))
        return found

    def write(self, tensor: Tensor, value: Value, recorded: bool, items: Any = None, kind: str = "write") -> None:
        """Record a write to a tensor.

        Arguments:
            tensor: the tensor.
            value: the value before broadcasting and casting.
            recorded: whether the write is in the tensor's history.
            items: the index arrays and other items of the index; None for the whole tensor.
            kind: "write", "put_at" or "add_at".
        """
        if tensor._storage is not None and has_exports(tensor._storage):
            self.refuse("a write to memory that a plain array shares")
        memory = self.memory_of(tensor, tensor._array)
        chain: Any = self.chain_of(memory, tensor)
        self.memories.make_base(memory)
        window = self._window(memory, tensor)
        if items is not None and type(items) is not tuple:
            items = (items,)
        pattern, inputs = (None, ()) if items is None else self.pattern(items)
        attributes: Any = window if items is None else (window, pattern)
        memory.written = True
        location = self.locations.here()

        new = value.type
        assert type(new) is TensorType

        def written(base: Value, unrecorded: bool, known: bool) -> Value:
            of = base.type
            assert type(of) is TensorType
            made = TensorType.of(of.dtype, of.shape, of.requires_grad or (known and new.requires_grad))
            step = kind if not unrecorded else "overwrite" if items is None else f"{kind}_unrecorded"
            return self.node(step, (base, value, *inputs), attributes, (made,), location).output

        if isinstance(chain, Ended) and recorded:
            chain = chain.chain
        if memory.ended is not None and has_ended(tensor) and (recorded or current_mode() & GRAD):
            memory.ended = write_to_ended(memory.ended, chain, lambda base: written(base, False, True))
        for each in (memory, *(memory.others or ())):
            of = each.value.type
            assert type(of) is TensorType
            known = recorded and each is chain
            differs = of.requires_grad or new.requires_grad
            if known:
                each.recorded = True
                if memory.others is not None or memory.ended is not None:
                    remember(each, root_of(tensor))
            if items is None and (known or not differs) and memory.is_whole(window):
                if new.shape == of.shape and new.dtype == of.dtype:
                    each.value = value
                    continue
            unrecorded = differs and not known
            if unrecorded and each is not chain and self.aliased is None:
                self.aliased = self.locations.line_of(location)
            each.value = written(each.value, unrecorded, known)

    def pattern(self, items: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Value, ...]]:
        """Return an index by arrays in which arrays that are values are replaced by numbers, and these values."""
        return self.indices.pattern(items)

    def add(self, tensor: Tensor, value: Value) -> None:
        """Record a new tensor whose memory is not shared."""
        self.memories.add(identified(tensor), value)

    def memory_of(self, tensor: Tensor, array: Any) -> Memory:
        """Return the memory of a tensor.

        Arguments:
            tensor: the tensor.
            array: its array, or the array of a part of it.
        """
        storage = tensor._storage
        if storage is not None and storage.captured and id(storage) not in self._captured:
            self._captured[id(storage)] = storage
            self.created(root_of(tensor))  # like a tensor that the program creates from the array
        memory = self.memories.find(array)
        return self._unknown(tensor) if memory is None else memory

    def _unknown(self, tensor: Tensor) -> Memory:
        """Return the memory of a tensor whose creation was not reported."""
        array = identified(tensor)
        owner = owner_of(array)
        if self._is_number(owner):
            return self.memories.add(owner, self.constant(owner))
        if self.lenient or is_constant(tensor):
            return self.memories.add(array, self.constant(array))
        if not self._is_old(tensor if is_scalar(tensor) else owner):
            raise self._failed(
                f"a tensor of shape {tensor.shape} at {self._current_line()} was created by an operation that tracing "
                "does not record"
            )
        root = root_of(tensor)
        return self.input_memory(root, self._input(root))

    def _is_number(self, owner: Any) -> bool:
        """Return whether an array is a constant number that has not been recorded yet."""
        number = self._numbers.get(id(owner))
        return number is not None and number() is owner

    def _input(self, tensor: Tensor) -> Value:
        kind = TensorType.of(tensor.dtype, tensor.shape, tensor.requires_grad)
        value = self.graph.add_input(kind, f"closure{len(self.closures)}")
        self.closures.append((tensor, value))
        return value

    def _is_old(self, obj: Any) -> bool:
        """Return whether a tensor, or an array that owns memory, existed before."""
        return self.existing is not None and obj in self.existing

    def input_memory(self, tensor: Tensor, value: Value) -> Memory:
        """Return the memory of an outside tensor whose value is an input."""
        memory = self.memories.add(identified(tensor), value)
        memory.root = weakref.ref(root_of(tensor))
        return memory

    def _current_line(self) -> str:
        return self.locations.line_of(self.locations.here())

    # -- notifications -------------------------------------------------------------------------------------------------

    def created(self, tensor: Tensor, data: Any = None, garbage: bool = False) -> None:
        """Record a tensor created from numbers or arrays, or from another tensor without its history."""
        array = tensor._array
        if isinstance(data, Tensor):
            value = self._read(data)
            kind = TensorType.of(data.dtype, array.shape)
            value = self.node("detach", (value,), None, (kind,)).output
            if array.dtype != data.dtype:
                name = "_cast" if array.dtype.kind in "fc" else "_cast_exactly"
                value = self.node(name, (value,), (array.dtype,), (TensorType.of(array.dtype, array.shape),)).output
            self.add(tensor, value)
            return
        foreign = tensor._storage is not None and tensor._storage.foreign
        memory = self.memories.find(array)
        if memory is not None and foreign:
            same = holds(self.memories, memory, tensor)
            self.branch(memory, tensor, [] if same else [(array, self.constant(array))])
            return
        self.memories.add(array, self.constant(array, garbage)).foreign = foreign

    def number(self, tensor: Tensor) -> None:
        """Record a tensor created from a constant number when it is first used."""
        array = tensor._array
        numbers = self._numbers
        numbers[id(array)] = weakref.ref(array)
        if len(numbers) > self._many:
            self._numbers = {key: reference for key, reference in numbers.items() if reference() is not None}
            self._many = 2 * len(self._numbers) + MANY

    def detached(self, tensor: Tensor, other: Tensor) -> None:
        """Handle `other`, which shares the memory of `tensor` but has a different history."""
        memory = self.memory_of(tensor, tensor._array)
        chain, root = self.chain_of(memory, tensor), root_of(tensor)
        remember(chain, root)
        if chain is memory:
            memory.first = weakref.ref(root)
        self.branch(memory, other)

    def history_removed(self, tensor: Tensor) -> None:
        """Handle the in-place removal of the history of `tensor`; existing views keep it."""
        memory = self.memory_of(tensor, identified(tensor))
        self.memories.make_base(memory)
        chain = self.chain_of(memory, tensor)
        end(memory, chain, tensor, self._detached(chain.value))
        if self._is_old(tensor):
            self.ended.append(tensor)

    def _detached(self, value: Value) -> Value:
        """Return a value without its history."""
        kind = value.type
        assert type(kind) is TensorType
        return self.node("detach", (value,), None, (kind.with_grad(False),)).output if kind.requires_grad else value

    def moved(self, tensor: Tensor, before: Tensor) -> None:
        """Handle a tensor whose elements were moved to another array; `before` is the old one."""
        array = before._array
        if self.memories.find(array) is not None or self._is_number(owner_of(array)):  # otherwise the memory is unknown
            self.add(tensor, self.value_of(before))

    def branch(self, memory: Memory, tensor: Tensor, given: Sequence[tuple[Any, Value]] = ()) -> Chain:
        """Add another history of a buffer, that of `tensor`; `given` are its arrays with their inputs."""
        self.memories.make_base(memory)
        value = self.memories.filled(memory, given) if given else self._detached(memory.value)
        chain = Chain(tensor, value)
        memory.others = [*[other for other in memory.others or () if other.nodes or other.root() is not None], chain]
        return chain

    def escaped(self, tensor: Tensor, how: str, value: Any) -> None:
        """Handle elements of a tensor that left the library."""
        read = self._read(tensor)
        if self.is_fixed(read):
            return
        # a formula is traced with example values only
        if self.lenient or (how not in CONTROL_FLOW and self.escapes != "guard"):
            raise self._failed(
                f"{how} at {self._current_line()} converts a traced tensor to a plain value, which would become a "
                "constant of the graph; compute with tensors instead, or trace with escapes='guard', which checks in "
                "each run that the value is unchanged",
                ConcretizationError,
            )
        expected = Frozen(np.array(value)) if isinstance(value, np.ndarray) else value
        self.node("guard", (read,), (how, expected), ())

    def is_fixed(self, value: Value) -> bool:
        """Return whether a value is the same in every run because it is computed from constants alone."""
        known = self._fixed_values
        waiting = [value]
        while waiting:
            last = waiting[-1]
            if last in known:
                waiting.pop()
                continue
            node = last.node
            if node.kind in CONSTANTS or not node.inputs or not is_deterministic(node.kind):
                known[last] = node.kind in CONSTANTS
                continue
            inputs = [each for each in node.inputs if each is not None]
            unknown = [each for each in inputs if each not in known]
            if unknown and all(known.get(each, True) for each in inputs):
                waiting.append(unknown[0])
                continue
            known[last] = all(known.get(each, False) for each in inputs)
        return known[value]

    def varies(self, tensor: Tensor) -> bool:
        """Return whether the elements of a tensor may differ in another run."""
        return not self.is_fixed(self._read(tensor))

    def reshaped(self, tensor: Tensor) -> None:
        """Handle an in-place change of shape; a graph cannot change the shape of the caller's tensors."""
        if self._is_old(tensor):
            self.refuse("changing in place the shape of a tensor that was created outside the function")

    def queried(self, tensor: Tensor, what: str) -> None:
        """Raise for a query that a graph cannot answer, such as the gradient of a tensor.

        A string may only be printed, logged or raised; otherwise the program depends on the elements.
        """
        if what != "the text" or self.lenient:
            return
        frame: Any = sys._getframe(1)
        while frame.f_back is not None and is_of_library(frame.f_code.co_filename):
            frame = frame.f_back
        if not is_shown(frame):
            self.escaped(tensor, "a text", np.array(tensor._array))

    def indexed(self, tensor: Tensor, array: Array) -> None:
        """Handle a copy of the elements of a tensor used as an index."""
        if array.ndim and array.dtype.kind in "iu":
            self.indices.add(array, self._read(tensor))
        else:  # the shape of the result, or the window, depends on the array
            self.escaped(tensor, "an index", array if array.ndim else array.item())

    def copied(self, index: Array, array: Array) -> None:
        """Note that an array replaces another one in an index."""
        self.indices.copied(index, array)

    def index_raised(self, items: Any, error: Exception) -> None:
        """Handle an exception of indexing, which depends on values if arrays in an advanced index contain elements of
        tensors.
        """
        if type(items) is tuple and self.indices.hold(items):
            self.uncaught(error, "an index by a tensor", self.locations.here())

    def array_option(self, option: Any) -> None:
        """Handle an option of an operator."""

    def preserved(self, window: Array, copy: Array) -> None:
        """Handle a copy of a saved window of memory that is about to be overwritten."""
        memory = self.memories.find(window)
        if memory is None:
            return  # unknown until it is requested
        if memory.array_id == id(window):
            self.memories.add(copy, memory.value)
            return
        self.memories.make_base(memory)
        taken = memory.window(window)
        if taken is None or not reaches(taken, memory.shape):
            return
        kept = self.memories.add(copy, self._window_value(memory, memory.value, taken))
        if memory.others is None and memory.ended is None:
            return
        self.memories.make_base(kept)
        kept.nodes = memory.nodes
        if memory.others is not None:
            values = [self._window_value(memory, chain.value, taken) for chain in memory.others]
            kept.others = [
                chain.at(self.memories.filled(kept, [(copy, value)]))
                for chain, value in zip(memory.others, values, strict=True)
            ]
        if memory.kept is None:
            kept.ended, kept.kept = memory.ended, taken

    def refuse(self, what: str) -> None:
        """Handle an operation that cannot be recorded."""
        raise self._failed(f"{what} at {self._current_line()} cannot be traced")

    def composed(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function that is composed of operators, which becomes a single opaque step if it inspects values."""
        return composed(self, name, function, args, kwargs)
