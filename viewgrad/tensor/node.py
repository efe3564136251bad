"""Nodes and edges: the graph of backward steps, which tensors refer to by `grad_fn`."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, final, overload

import attrs

from ..errors import InterruptedWriteError
from .trace_hooks import observed

if TYPE_CHECKING:
    from .tensor import Tensor

# How the engine runs a node; see Note [Kinds of nodes] in docs/notes/engine.md.
ONE: Final = 0  # one edge; `apply` returns its gradient
MANY: Final = 1  # any number of edges; `apply` returns a gradient for each
SCATTER: Final = 2  # one edge; adds its gradient to part of the accumulator that the edge leads to
OVERWRITE: Final = 3  # passes its gradient to edge 0, with part of it rewritten in place
GATHER: Final = 4  # like SCATTER, but with index arrays, which are released after the run
PAIR: Final = 5  # like MANY, with two edges in separate slots

# An edge to a history: a node, one of several outputs of a node, or None if no gradient is needed.
OptionalEdge: TypeAlias = "Node | Edge | None"

new: Final = object.__new__
next_sequence_nr: Final = itertools.count(1).__next__
PATIENCE: Final = 1.0  # the number of seconds that a thread waits for another one to finish a write to the same tensor


class Node:
    """A step of the backward graph.

    `edges` lead to the steps that created this step's inputs. Each is a `Node`, an `Edge` if that node has several
    outputs, or None for an input that needs no gradient. Nodes are numbered in the order of their creation, so every
    edge leads to a smaller number.

    If `hooks` is `UNFINISHED`, the node belongs to an in-place write that is not finished; see Note [Interrupted
    writes] in docs/notes/interruption.md. Code that runs a node, or writes on top of it, calls `finished_hooks`.

    A class of nodes has a slot `edges`, or, if all its nodes have one or two edges, a slot for each (`ONE_EDGE` and
    `TWO_EDGES` below). This saves a tuple, which matters because the cost of a long graph is dominated by the objects
    that Python's cyclic garbage collector visits.
    """

    __slots__ = ("__weakref__", "_metadata", "hooks", "sequence_nr")

    kind: ClassVar[int] = MANY
    outputs: ClassVar[int] = 1
    inplace: ClassVar[bool] = False  # whether the operation overwrote its first input
    saved_names: ClassVar[tuple[str, ...]] = ()
    # whether the node is a whole program, whose outputs are new arrays with no other references
    whole: ClassVar[bool] = False
    is_transform_input: ClassVar[bool] = False  # whether a transform captures a gradient here

    edges: tuple[OptionalEdge, ...]
    hooks: NodeHooks | None
    sequence_nr: int

    def name(self) -> str:
        """Return the name of the step, as in `MulBackward`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each input, the node that receives its gradient, and the number of that node's output."""
        return tuple((None, 0) if edge is None else (node_of(edge), input_nr_of(edge)) for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for user annotations on this node."""
        try:
            return self._metadata
        except AttributeError:
            hooks_of(self)  # nodes with hooks are not merged
            self._metadata: dict[Any, Any] = {}
            return self._metadata

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> Any:
        """Compute the gradients of the inputs whose entry in `edges` is not None, with arrays."""
        raise NotImplementedError(f"{self.name()} defines no apply")

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> Any:
        """Compute `apply` on tensors and record it, so that it can be differentiated again."""
        raise NotImplementedError(f"{self.name()} defines no apply_recorded")

    def consume(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> Any:
        """Compute `apply` and release the saved values."""
        result = self.apply(grad, edges)
        self.release()
        return result

    def release(self) -> None:
        """Release the saved values."""

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the saved values, or lists of them, each with a name."""
        return [(name, getattr(self, f"saved_{name}", None)) for name in self.saved_names]

    # No `__getattr__`: it would disable the interpreter's inline caches for attributes, and
    # a backward pass would take 1.3 times as long.

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run; its result replaces `grad_inputs`."""
        return add_hook(hooks_of(self).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs; its result replaces `grad_outputs`."""
        return add_hook(hooks_of(self).before, hook)


# The `edges` of a class with a slot `edge`, and of a class with slots `edge0` and `edge1`.
ONE_EDGE: Final = property(lambda node: (node.edge,))
TWO_EDGES: Final = property(attrgetter("edge0", "edge1"))


@final
@attrs.define(eq=False)
class Edge:
    """An edge to a node with several outputs: `(node, input_nr)`."""

    node: Node
    input_nr: int

    @property
    def sequence_nr(self) -> int:
        """The number of the node, which orders the work of the engine."""
        return self.node.sequence_nr

    @property
    def hooks(self) -> NodeHooks | None:
        """The hooks of the node."""
        return self.node.hooks


@attrs.define(eq=False)
class NodeHooks:
    """The hooks of a node; most nodes have none.

    Attributes:
        tensor: for each output of the node, the hooks registered on the tensor while it was that output.
        retained: for each output, the tensor whose `grad` receives its gradient.
        following: the views of the node's output whose `grad` receives the gradient of their current value, even after
            writes to their base.
        before: the hooks to call before the node runs.
        after: the hooks to call after it has run.
        accumulated: for a leaf, the hooks to call after it has accumulated.
        has_moved: whether a tensor in `retained` had another history when `retain_grad` was called.
    """

    tensor: dict[int, dict[int, Any]] = attrs.Factory(dict)
    retained: dict[int, weakref.ref[Tensor]] = attrs.Factory(dict)
    # keyed by identity, so that dead entries are replaced
    following: dict[int, weakref.ref[Tensor]] = attrs.Factory(dict)
    before: dict[int, Callable[..., Any]] = attrs.Factory(dict)
    after: dict[int, Callable[..., Any]] = attrs.Factory(dict)
    accumulated: dict[int, Callable[..., Any]] = attrs.Factory(dict)
    has_moved: bool = False


@attrs.define(eq=False)
class RemovableHandle:
    """The handle of a registered hook: `remove()` removes the hook, as does leaving a `with` block."""

    _hooks: dict[int, Callable[..., Any]]
    _key: int

    def remove(self) -> None:
        """Remove the hook; calling this twice is harmless."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class AccumulateGrad(Node):
    """The node of a leaf at the end of the graph, which adds gradients to the leaf's `grad`.

    The leaf owns this node, which has only a weak reference to the leaf, so there is no reference cycle.
    """

    __slots__ = ("_variable", "dtype", "shape")

    edges = ()

    def __init__(self, variable: Tensor) -> None:
        self.hooks = None
        self.sequence_nr = 0
        self._variable = weakref.ref(variable)
        self.shape = variable._array.shape
        self.dtype = variable._array.dtype

    @property
    def variable(self) -> Tensor | None:
        """The leaf, or None if it no longer exists."""
        return self._variable()


N = TypeVar("N", bound=Node)


def numbered(node_class: type[N]) -> N:
    """Return a new node without hooks, with the next sequence number. Hot paths inline this function."""
    node = new(node_class)
    node.hooks = None
    node.sequence_nr = next_sequence_nr()
    return node


@overload
def node_of(edge: Node | Edge) -> Node: ...
@overload
def node_of(edge: OptionalEdge) -> Node | None: ...
def node_of(edge: OptionalEdge) -> Node | None:
    """Return the node that an edge leads to."""
    return edge.node if type(edge) is Edge else edge


def input_nr_of(edge: OptionalEdge) -> int:
    """Return the output number of the node that an edge leads to."""
    return edge.input_nr if type(edge) is Edge else 0


class _Unfinished(NodeHooks):
    """The hooks of a node whose write is not finished; accessing any of them raises."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own tools look up such names on any object
            raise AttributeError(name)
        raise InterruptedWriteError(UNFINISHED_WRITE.format("in place"))

    def __repr__(self) -> str:
        return "UNFINISHED"


UNFINISHED: Final = _Unfinished()
UNFINISHED_WRITE: Final = (
    "a write {} was interrupted before it was finished, or another thread is in the middle of it, so that what it "
    "wrote to has no derivative; recompute the tensor"
)


def finished_hooks(edge: Node | Edge) -> NodeHooks | None:
    """Return the hooks of an edge's node, waiting for a write that another thread is performing.

    Raises:
        InterruptedWriteError: if it is never finished.
    """
    node = node_of(edge)
    if node.hooks is not UNFINISHED:
        return node.hooks
    deadline = time.monotonic() + PATIENCE
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.0001)
        if node.hooks is not UNFINISHED:
            return node.hooks
    raise InterruptedWriteError(UNFINISHED_WRITE.format(f"in place ({node.name()})"))


def hooks_of(node: Node) -> NodeHooks:
    """Return the hooks of a node, creating them if necessary."""
    found = finished_hooks(node)
    if found is not None:
        return found
    hooks = NodeHooks()
    if node.hooks is None:  # no call in between, since another thread may do the same for a shared leaf
        node.hooks = hooks
    return node.hooks


_hook_keys = itertools.count()


def add_hook(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    """Append `hook` to `hooks`, which are called in the order of their registration."""
    observer = observed()
    if observer is not None:
        observer.refuse("a hook")
    key = next(_hook_keys)
    hooks[key] = hook
    return RemovableHandle(hooks, key)


def named_node(name: str, base: type[Node], doc: str | None) -> Any:
    """Return a subclass of the node class `base` with another name; `inspect` shows the source of `base`."""
    members = {"__slots__": (), "__doc__": doc, "__module__": base.__module__, "__qualname__": base.__qualname__}
    if "__firstlineno__" in vars(base):  # used by Python 3.13 to find the source of a class
        members["__firstlineno__"] = vars(base)["__firstlineno__"]
    return type(name, (base,), members)
