"""The histories of a buffer while a program is traced: the current ones, and those that were ended in place.

Tensors over one buffer that are not views of one base have separate histories. `detach_()` ends a history, which only
views taken before keep. See Note [Aliasing by memory] in docs/notes/symbolic.md.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from ...errors import ViewInPlaceError
from ...tensor.node import Node, node_of
from ...tensor.tensor import current_edge
from ...views.copy_slices import CopySlices
from ...views.view_nodes import ViewBackward

if TYPE_CHECKING:
    from .memory import Memory

Nodes = tuple[weakref.ref[Node], ...]


class Chain:
    """A history of a buffer in addition to the first.

    Attributes:
        root: the tensor whose history it is, as a weak reference.
        value: the value of the buffer in this history.
        recorded: whether a write to it was recorded.
        nodes: the nodes known to have been at its end, as weak references.
    """

    __slots__ = ("nodes", "recorded", "root", "value")

    def __init__(self, root: Any, value: Any) -> None:
        self.root: Any = weakref.ref(root)
        self.value = value
        self.recorded = False
        self.nodes: Nodes = ()
        remember(self, root)

    def at(self, value: Any) -> Chain:
        """Return this history for another buffer whose value is `value`."""
        other: Chain = Chain.__new__(Chain)
        other.root, other.value, other.recorded, other.nodes = self.root, value, False, self.nodes
        return other


@attrs.define(eq=False)
class Ended:
    """A history that was ended in place.

    Attributes:
        tensor: the tensor that had the history, as a weak reference.
        chain: the history that the tensor has had since then.
        nodes: the nodes at its end, as weak references.
        value: the value of the buffer in this history at that time.
        known: the value of the memory at that time; nothing was written while it is unchanged.
        before: the history of the same buffer that ended before, or None.
    """

    tensor: Any
    chain: Chain | Memory
    nodes: Nodes
    value: Any
    known: Any
    before: Ended | None

    def at(self, value: Any) -> Ended:
        """Return this history for another buffer, with its value there."""
        return Ended(self.tensor, self.chain, self.nodes, value, None, None)


def end(memory: Memory, chain: Chain | Memory, tensor: Any, value: Any) -> None:
    """End the history of a tensor whose value is now `value`."""
    remember(chain, tensor)
    old, nodes = chain.value, chain.nodes
    chain.value, chain.nodes = value, ()
    memory.ended = Ended(weakref.ref(tensor), chain, nodes, old, memory.value, memory.ended)


def all_ended(memory: Memory) -> Iterator[Ended]:
    """Yield the histories of a buffer that were ended, latest first."""
    ended = memory.ended
    while ended is not None:
        yield ended
        ended = ended.before


def ended_of(memory: Memory, root: Any) -> Ended | None:
    """Return the last history that a tensor had until it was ended."""
    return next((ended for ended in all_ended(memory) if ended.tensor() is root), None)


def has_old_history(tensor: Any, root: Any) -> bool:
    """Return whether a view still has, at least in part, the history of its base `root` before that ended."""
    if tensor is root:
        return False
    try:
        return current_edge(tensor) is not None and tensor._view.is_before_end
    except ViewInPlaceError:  # the history is restored on access
        return False


def write_to_ended(ended: Ended | None, chain: Any, write: Callable[[Any], Any]) -> Ended | None:
    """Return the ended histories after a write, where the last one of `chain` has the value returned by `write`.

    They are rebuilt, since the preserved ones keep their old state.
    """
    if ended is None:
        return None
    if ended.chain is chain:
        return Ended(ended.tensor, chain, ended.nodes, write(ended.value), None, ended.before)
    before = write_to_ended(ended.before, chain, write)
    return Ended(ended.tensor, ended.chain, ended.nodes, ended.value, ended.known, before)


def remember(history: Chain | Memory, root: Any) -> None:
    """Store the node at the end of the history of the tensor `root`."""
    node = node_of(root._edge)
    if node is None:
        return
    nodes = history.nodes
    if nodes and follows(node) is nodes[-1]():
        nodes = nodes[:-1]
    history.nodes = (*nodes, weakref.ref(node))


def follows(node: Node) -> Node | None:
    """Return the node at the end of a history before a write, or None if there is none or the node is not a write."""
    return node_of(node.edges[0]) if node.inplace or isinstance(node, CopySlices) else None


def belongs(history: Chain | Memory | Ended, node: Node) -> bool:
    """Return whether a node is known to be the end of a history, tracing back its writes as far as possible."""
    ends = [reference() for reference in history.nodes]
    tensor = None if isinstance(history, Ended) or history.root is None else history.root()
    if tensor is not None:
        ends.append(node_of(tensor._edge))
    seen: set[Node] = set()
    for step in ends:
        while step is not None and step not in seen:
            if step is node:
                return True
            seen.add(step)
            step = follows(step)
    return False


def history_of(memory: Memory, node: Node) -> Chain | Memory | Ended | None:
    """Return the history of a buffer that a node belongs to, or None.

    A tensor unpacked from a node is a new object, which shares the last node of its history, or of a view's history,
    with the saved one.
    """
    if memory.ended is None and not any(chain.nodes or has_history(chain.root()) for chain in memory.others or ()):
        return memory
    histories: list[Chain | Memory | Ended] = [memory, *(memory.others or ()), *all_ended(memory)]
    step: Node | None = node
    while step is not None:
        for history in histories:
            if belongs(history, step):
                return history
            if isinstance(history, Ended) and not isinstance(history.chain, Chain):
                tensor = history.tensor()
                if tensor is not None and node_of(tensor._edge) is step:  # became a leaf afterwards
                    return memory
        step = node_of(step.edges[0]) if isinstance(step, (ViewBackward, CopySlices)) else None
    return None


def has_history(root: Any) -> bool:
    """Return whether a tensor that still exists has a history."""
    return root is not None and root._edge is not None
