"""Rebasing history: how an in-place write changes the history of its target, and of the target's base.

Before memory is written, the old history is replaced by one that cannot be differentiated until the write is finished.
No exception, wherever it occurs, can therefore leave a gradient that contradicts a value. See Note [Interrupted writes]
in docs/notes/interruption.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import ConcurrentWriteError, InterruptedWriteError
from ..tensor.async_safety import is_refusal
from ..tensor.modes import GRAD, current_mode
from ..tensor.node import (
    MANY,
    ONE_EDGE,
    UNFINISHED,
    AccumulateGrad,
    Node,
    NodeHooks,
    OptionalEdge,
    finished_hooks,
    new,
    next_sequence_nr,
    node_of,
    numbered,
)
from ..tensor.tangents import interrupt_tangents
from ..tensor.tensor import Tensor, root_of
from .copy_slices import CopyBackwards, CopySlices, CopySlicesOfCopy
from .meta import detached_hooks, let_follow, move_retained
from .unbroadcast import Like
from .view_functions import ViewFunction
from .view_nodes import layout_for


class InterruptedWrite(Node):
    """The node of a write interrupted by an error, whose remaining value has no derivative."""

    __slots__ = ("edge", "writer")

    kind: ClassVar[int] = MANY
    edges = ONE_EDGE

    edge: OptionalEdge
    writer: str

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[None, ...]:
        """Raise an error, unless the elements have been overwritten since, so that no gradient arrives."""
        if np.any(grad._array if isinstance(grad, Tensor) else grad):
            raise InterruptedWriteError(
                f"{self.writer} failed during an in-place write, so the result has no gradient; recompute the "
                "tensor, or overwrite the part that was being written"
            )
        return (None,) * len(edges)

    apply_recorded = apply


def begin_write(tensor: Tensor, node: Node, own: OptionalEdge) -> tuple[Node, OptionalEdge]:
    """Make `node`, which is about to write to `tensor`, the history of `tensor` and of its base.

    The returned node cannot be differentiated, or written over, until its `hooks` are set in the last step of the
    write. See Note [Concurrent writes] in docs/notes/interruption.md.

    Arguments:
        tensor: the tensor to write to.
        node: the node, without number and hooks. Its first edge leads to the tensor's own old history; for a view it is
            never followed.
        own: the edge to the old history.

    Returns:
        The node now at the end of the history, and the previous edge.

    Raises:
        InterruptedWriteError: if an earlier write was never finished.
        ConcurrentWriteError: if another thread has written to the tensor in the meantime.
    """
    view = tensor._view
    if view is None:
        if own is not None and own.hooks is not None:
            finished_hooks(own)  # raises, or waits for another thread to finish its write
        node.hooks = UNFINISHED
        node.sequence_nr = next_sequence_nr()
        # No calls from here on, so that no other thread can interfere.
        if tensor._edge is not own:
            raise ConcurrentWriteError("another thread wrote to this tensor during a write to it")
        tensor._edge = node
        return node, own
    return begin_part(view.base, view.index, view.view_fn, node)


def begin_part(base: Tensor, index: Any, view_fn: ViewFunction | None, node: Node) -> tuple[Node, OptionalEdge]:
    """Begin a write by `node` to the part of `base` selected by `index` or `view_fn`, as `begin_write` does."""
    node.hooks = None
    node.sequence_nr = next_sequence_nr()
    slices = CopySlices()
    slices.fn = node
    slices.index = index
    slices.view_fn = view_fn
    slices.layout = layout_for(base)
    slices.hooks = UNFINISHED
    others = node.edges[1:]
    while True:
        old = base._edge
        if old is not None and old.hooks is not None:
            finished_hooks(old)
        slices.sequence_nr = next_sequence_nr()  # larger than that of `old`
        if base._edge is old:  # no calls from here on
            slices.edges = (old, *others)
            base._edge = slices
            return slices, old


def begin_copy(base: Tensor, index: Any, edge: OptionalEdge, like: Like | None) -> CopySlicesOfCopy:
    """Begin the write `base[index] = value` as `begin_write` does; `edge` leads to the value's history.

    Arguments:
        base: a tensor that is not a view.
        index: a basic index.
        edge: None for a value without history.
        like: the shape and dtype of the value, if they differ from those of the target.
    """
    node = CopySlicesOfCopy()
    node.edge1 = edge
    node.index = index
    node.like = like
    storage = base._storage
    layout = None if storage is None or base._array is not storage.root else storage.layout
    node.layout = layout_for(base) if layout is None else layout
    node.hooks = UNFINISHED
    while True:
        node.edge0 = old = base._edge
        if old is not None and old.hooks is not None:
            finished_hooks(old)
        node.sequence_nr = next_sequence_nr()  # larger than that of `old`
        if base._edge is old:  # no calls from here on
            base._edge = node
            return node


def finish_write(tensor: Tensor, head: Node, old: OptionalEdge) -> None:
    """Commit the history that was begun; retained gradients move to it.

    The hot paths inline it as `head.hooks = None` if `old` has no hooks.
    """
    hooks: NodeHooks | None = None
    if old is not None and finished_hooks(old) is not None:
        hooks = detached_hooks(root_of(tensor), old)
    head.hooks = hooks
    if hooks is not None:
        let_follow(hooks)


def abandon_write(tensor: Tensor, head: Node, old: OptionalEdge, error: BaseException, writer: str) -> None:
    """Roll back after an exception: restore the old history if nothing was written, otherwise set one that raises.

    Arguments:
        tensor: the target of the write.
        head: the node returned by `begin_write` or `begin_copy`.
        old: the previous edge.
        error: the exception, as caught in the function that writes.
        writer: the name of the function that the user called.
    """
    root = root_of(tensor)
    if is_refusal(error):
        root._edge = old
        return
    node = _interrupted(old, writer)
    end: Node = node
    if isinstance(head, CopySlices):
        end = slices = numbered(CopySlices)
        slices.edges = (old,)
        slices.fn = node
        slices.index = head.index
        slices.view_fn = head.view_fn
        slices.layout = head.layout
    root._edge = end
    if old is not None:
        move_retained(root, old, end)


def _interrupted(old: OptionalEdge, writer: str) -> InterruptedWrite:
    """Return the node of a write that was interrupted or failed; `old` leads to the history before it."""
    node = numbered(InterruptedWrite)
    node.edge = old
    node.writer = writer
    return node


def rebase_history(tensor: Tensor, node: Node) -> None:
    """Make `node`, the node of a completed write, the history of `tensor` and of its base."""
    head, old = begin_write(tensor, node, None)
    finish_write(tensor, head, old)


def record_own_history(view: Tensor) -> None:
    """Record a view's own history in its base, as if the view had been assigned to itself."""
    node = new(CopyBackwards)
    node.edge0, node.edge1, node.like = None, view._edge, None
    rebase_history(view, node)


def refuse_written(tensor: Tensor, writer: str) -> None:
    """Mark the histories of a tensor and its base, and the tangents, as unusable after a failed write.

    A leaf remains a leaf: its gradient is that of its current value.
    """
    root = root_of(tensor)
    interrupt_tangents(tensor)
    old = root._edge
    if old is None or type(old) is AccumulateGrad or not current_mode() & GRAD:
        return
    root._edge = node = _interrupted(old, writer)
    if node_of(old).hooks is not UNFINISHED:
        move_retained(root, old, node)
