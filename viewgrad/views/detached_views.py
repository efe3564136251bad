"""Views taken before their base was detached in place: their history depends on later writes.

Detaching a base does not change the history of earlier views until their elements are written again. Elements written
through the base have its current history in all views. Recorded writes are found in the base's graph, from the last one
backwards, each only once. Writes of constants to a base without history are not in any graph, so they are recorded
here. See Note [Views of detached tensors] in docs/notes/copy_slices.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from ..tensor.indices import window_at
from ..tensor.modes import GRAD, current_mode
from ..tensor.node import PAIR, TWO_EDGES, Node, OptionalEdge, finished_hooks, node_of, numbered
from ..tensor.saved_windows import address_of
from ..tensor.storage import DetachPoint
from ..tensor.tensor import Tensor, root_of
from ..type_aliases import Array
from .advanced_nodes import IndexAccumulateBackward, IndexPutBackward
from .copy_slices import CopyBackwards, CopySlices, CopySlicesOfCopy


class Written:
    """The elements of a base that were written to after its history ended in place.

    Attributes:
        must: a mask with the layout of the base, with ones (in both parts of complex numbers) where it was certainly
            written.
        may: the same for elements that may have been written.
        seen: the number of the latest node of the base's graph included in the masks.
        begun: the window of a write of constants that was begun and may not have been finished.
    """

    __slots__ = ("begun", "may", "must", "seen")

    begun: Array | None

    def __init__(self, cut: DetachPoint, base: Tensor) -> None:
        self.must, self.may = _laid_out_as(base._array), _laid_out_as(base._array)
        self.seen = cut.sequence_nr
        self.begun = None

    def learn(self, edge: OptionalEdge) -> None:
        """Mark the writes recorded in a base's history."""
        if edge is not None and edge.hooks is not None:
            finished_hooks(edge)  # raises, or waits for another thread to finish its write
        node = node_of(edge)
        last = self.seen if node is None else node.sequence_nr
        while node is not None and node.sequence_nr > self.seen:
            if isinstance(node, CopySlices):
                self._mark_write(None if type(node) is CopySlicesOfCopy else node.fn, node.index, node.view_fn)
                node = node_of(node.edges[0])
            else:
                self._mark_write(node, ..., None)
                node = node_of(node.edges[0]) if isinstance(node, IndexPutBackward | IndexAccumulateBackward) else None
        self.seen = max(self.seen, last)

    def give_up(self, base: Array) -> None:
        """Mark an unfinished write as possibly performed."""
        if self.begun is not None:
            windows = self.at(base, self.begun)
            _fill(self.may if windows is None else windows[1])
            self.begun = None

    def _mark_write(self, node: Node | None, index: Any, view_fn: Any) -> None:
        """Mark the write recorded by `node`; None means `base[index] = value`."""
        must, may = (self._window(mask, index, view_fn) for mask in (self.must, self.may))
        if must is None or may is None:
            _fill(self.may)
            return
        places: Any = ...
        known = node is None or type(node) is CopyBackwards or node.inplace
        if isinstance(node, IndexPutBackward | IndexAccumulateBackward) and not node.released:
            known, places = True, node.index
        _fill(may, places)
        if known:
            _fill(must, places)

    @staticmethod
    def _window(mask: Array, index: Any, view_fn: Any) -> Array | None:
        window: Array = window_at(mask, index) if view_fn is None else view_fn(mask)
        return window if not window.size or np.may_share_memory(window, mask) else None

    def at(self, base: Array, window: Array) -> tuple[Array, Array] | None:
        """Return the windows of both masks that correspond to a window of the base, or None if it cannot be located."""
        if not window.size:  # an empty window may start anywhere
            return np.empty_like(window), np.empty_like(window)
        strides = zip(base.shape, base.strides, self.must.strides, strict=True)
        if any(size > 1 and of_base != own for size, of_base, own in strides):
            return None
        memory = self.must.base
        assert memory is not None
        offset = address_of(window) - address_of(base) + address_of(self.must) - address_of(memory)
        try:
            must, may = (
                np.ndarray(window.shape, window.dtype, mask.base, offset, window.strides)
                for mask in (self.must, self.may)
            )
        except (TypeError, ValueError):  # it extends beyond the base
            return None
        return must, may

    def mark(self, base: Array, window: Array, index: Any) -> bool:
        """Mark a write to the elements `index` of a window of the base; return False if they cannot be located."""
        windows = self.at(base, window)
        for mask in windows or ():
            _fill(mask, index)
        return windows is not None


def _laid_out_as(base: Array) -> Array:
    """Return zeros with the shape and strides of `base`, in separate memory."""
    if not base.size:
        return np.zeros_like(base)
    reach = [(size - 1) * stride for size, stride in zip(base.shape, base.strides, strict=True)]
    first = -sum(min(0, each) for each in reach)
    memory = np.zeros(first + sum(max(0, each) for each in reach) + base.itemsize, np.uint8)  # used only where written
    return np.ndarray(base.shape, base.dtype, memory, first, base.strides)


def _fill(mask: Array, index: Any = ...) -> None:
    mask[index] = 1 + 1j if mask.dtype.kind == "c" else 1


class MixedBackward(Node):
    """The node of a view whose elements have different histories."""

    __slots__ = ("edge0", "edge1", "present")

    kind: ClassVar[int] = PAIR
    edges = TWO_EDGES

    edge0: OptionalEdge  # the view's own history
    edge1: OptionalEdge  # the current history of its base
    present: Array  # the mask of elements with the current history

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients of the elements with either history."""
        return tuple(
            None if edge is None else _select_gradient(grad, chosen)
            for edge, chosen in zip(edges, (_others(self.present), self.present), strict=True)
        )

    def apply_recorded(self, grad: Tensor, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Implement `apply` on tensors."""
        parts: list[Any] = []
        for edge, other in zip(edges, (self.present, _others(self.present)), strict=True):
            part = None
            if edge is not None:
                part = grad.clone()
                if other.dtype.kind == "c":
                    part.real[other.real != 0] = 0.0
                    part.imag[other.imag != 0] = 0.0
                else:
                    part[other] = 0.0
            parts.append(part)
        return tuple(parts)


def _others(chosen: Array) -> Array:
    """Return the elements, or parts of complex numbers, that are not selected."""
    return 1 + 1j - chosen if chosen.dtype.kind == "c" else ~chosen


def _select_gradient(grad: Array, chosen: Array) -> Array:
    """Return the gradient of the selected elements, or parts of complex numbers, and 0 elsewhere."""
    if chosen.dtype.kind != "c":
        return np.where(chosen, grad, np.zeros((), grad.dtype))
    found = np.zeros(grad.shape, grad.dtype)
    np.copyto(found.real, grad.real, where=chosen.real != 0)
    np.copyto(found.imag, grad.imag, where=chosen.imag != 0)
    return found


def mixed(own: OptionalEdge, present: OptionalEdge, chosen: Array) -> MixedBackward:
    """Return the history of a view whose `chosen` elements have the current history, and the rest its own."""
    node = numbered(MixedBackward)
    node.edge0, node.edge1, node.present = own, present, chosen
    return node


def cut_of(base: Tensor) -> DetachPoint | None:
    """Return the last point at which the history of a tensor ended in place, or None."""
    storage = base._storage
    return None if storage is None or storage.cuts is None else storage.cuts.get(id(base))


@attrs.define(eq=False)
class DetachedHistory:
    """The separate history of a view after its base was detached in place.

    Attributes:
        view: the metadata that this belongs to; for views of the view, the metadata of another view.
        edge: the edge to this history.
        cut: the point at which the base's history ended.
        base_edge: the base's current history, if the view's edge was created for it.
    """

    view: Any
    edge: OptionalEdge
    cut: DetachPoint
    base_edge: OptionalEdge


def _written(cut: DetachPoint, base: Tensor) -> Written:
    found: Written | None = cut.written
    if found is None:
        cut.written = found = Written(cut, base)
    return found


def written_since(cut: DetachPoint, base: Tensor, base_edge: OptionalEdge, view: Any) -> Array | None:
    """Return, for each element of a view, whether it was written after its base's history ended; None if ambiguous.

    If only one part of a complex number was written, the result is complex, with a 1 in each part that was.

    Arguments:
        cut: the point at which the base's history ended.
        base, base_edge: the base, and the end of its current history.
        view: the metadata of the view.
    """
    written = _written(cut, base)
    written.learn(base_edge)
    written.give_up(base._array)
    must, may = np.asarray(view.window(written.must)), np.asarray(view.window(written.may))
    if not np.array_equal(must, may):
        return None
    if must.dtype.kind == "c" and not np.array_equal(must.real, must.imag):
        return must.copy()
    found: Array = must != 0
    return found


def is_all_written(written: Array) -> bool:
    """Return whether all of a view was written, given the result of `written_since`."""
    return written.dtype.kind != "c" and bool(written.all())


def has_ended(tensor: Tensor) -> bool:
    """Return whether a tensor over this memory was ever detached in place while others shared it."""
    storage = tensor._storage
    return storage is not None and storage.cuts is not None


def begin_constant(tensor: Tensor, window: Array | None) -> bool:
    """Record an upcoming write of a constant to a tensor whose history, or that of its base, has ended.

    Arguments:
        tensor: the tensor that is written to.
        window: the part to write; None for the whole.

    Returns:
        Whether to call `constant_written` afterwards.
    """
    base = root_of(tensor)
    cut = cut_of(base)
    if cut is None or base._edge is not None or not current_mode() & GRAD:
        return False
    written = _written(cut, base)
    written.give_up(base._array)
    written.begun = tensor._array if window is None else window
    return True


def constant_written(tensor: Tensor, window: Array | None = None, index: Any = ...) -> None:
    """Record that the constant was written to the elements `index` of that part."""
    base = root_of(tensor)
    cut = cut_of(base)
    if cut is not None:
        written = _written(cut, base)
        if written.mark(base._array, tensor._array if window is None else window, index):
            written.begun = None


def catch_up(tensor: Tensor) -> None:
    """Mark all earlier writes before a node whose target is unknown."""
    base = root_of(tensor)
    cut = cut_of(base)
    if cut is not None:
        _written(cut, base).learn(base._edge)


def step_written(tensor: Tensor, index: Any = ...) -> None:
    """Record that the last node in the history of a tensor, or of its base, wrote to the given elements."""
    base = root_of(tensor)
    cut, last = cut_of(base), node_of(base._edge)
    if cut is not None and last is not None:
        written = _written(cut, base)
        if not written.mark(base._array, tensor._array, index):
            _fill(written.may)
        written.seen = last.sequence_nr
