"""The autograd metadata of views: the base, how the view is taken, and whether its history is still that of the base.
"""

from __future__ import annotations

import contextlib
import enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..errors import ViewInPlaceError
from ..tensor.async_safety import isolated
from ..tensor.creation_sites import note
from ..tensor.indices import window_at
from ..tensor.modes import GRAD, INFERENCE, NOTING, REPLAY, TRACE, ModeSwitch, current_mode
from ..tensor.node import (
    AccumulateGrad,
    Edge,
    Node,
    NodeHooks,
    OptionalEdge,
    finished_hooks,
    hooks_of,
    input_nr_of,
    new,
    node_of,
)
from ..tensor.tensor import Tensor, current_edge, from_array
from ..tensor.trace_hooks import OBSERVER
from ..tensor.view_meta import ViewMeta
from .detached_views import DetachedHistory, cut_of, is_all_written, mixed, written_since
from .geometry import TensorGeometry
from .view_functions import Chain, Index, Strided, ViewFunction
from .view_nodes import AS_STRIDED, node_of_view

if TYPE_CHECKING:
    from ..tensor.storage import DetachPoint
    from ..tensor.tangents import TangentRoot


class CreationMeta(enum.Enum):
    """The context in which a view was created, which determines whether a write through it can be recorded."""

    DEFAULT = "in grad mode"
    NO_GRAD = "under no_grad"
    INFERENCE = "in inference mode"
    IN_CUSTOM_FUNCTION = "inside a custom Function"


DEFAULT: Final = CreationMeta.DEFAULT


class DifferentiableViewMeta:
    """The metadata of a view: its base, how to take it, and the base's history for which its own was created.

    This class is for views by a basic index created in grad mode; others have a `GeneralViewMeta`.

    Attributes:
        base: the tensor whose memory the view shares; never itself a view.
        index: the basic index that takes the view from the base, if there is one.
        view_fn: otherwise, the function that takes it (None if there is an index).
        creation: the context in which the view was created.
        source_edge: the base's edge when the view's edge was created. The view's history is current as long as the base
            has that edge. If the base had none, it is the value of `no_history`. If the base's history has ended in
            place, it is the view's own history.
        strided: whether the view is a strided window of the base's elements (not of their real parts, say).
        overlaps_itself: whether elements of the view share memory.
    """

    __slots__ = ("base", "index", "source_edge")

    is_root: ClassVar[bool] = False  # whether it has a tangent of its own, rather than a window of the base's tangent

    base: Tensor
    index: Any
    source_edge: OptionalEdge | int | DetachedHistory
    view_fn: ViewFunction | None = None
    creation: CreationMeta = DEFAULT
    strided: bool = True
    overlaps_itself: bool = False

    def window(self, base: Any) -> Any:
        """Return the view of any array or tensor with the shape of the base."""
        return window_at(base, self.index) if self.view_fn is None else self.view_fn(base)

    @property
    def tangent_root(self) -> Any:
        """The holder of the tangent whose window is the view's tangent; see `tensor/tangents.py`."""
        return self.base

    def tangent_window(self, tangent: Any) -> Any:
        """Return the view's window of the tangent of `tangent_root`."""
        return self.window(tangent)

    @property
    def steps(self) -> tuple[ViewFunction, ...]:
        """The view functions that lead from the base to the view."""
        if self.view_fn is None:
            return (Index(self.index, self.base._array.shape),)
        return self.view_fn.steps if type(self.view_fn) is Chain else (self.view_fn,)

    def geometry(self, tensor: Tensor) -> TensorGeometry:
        """Return the sizes, strides and offset of the view `tensor` in its base."""
        return TensorGeometry.of(tensor._array, self.base._array)

    def edge_of(self, tensor: Tensor) -> OptionalEdge:
        """Return the edge to the view's history, rebuilt if the history of the base has changed."""
        base = self.base
        base_edge = base._edge
        # The base of a view has a storage.
        if base_edge is self.source_edge and (base_edge is not None or base._storage.cuts is None):  # type: ignore[union-attr]
            return tensor._edge
        return self._regenerate(tensor, base_edge)

    @property
    def is_current(self) -> bool:
        """Return whether the history of the base has not changed since the history of the view was created."""
        base_edge = self.base._edge
        return self.source_edge is base_edge if base_edge is not None else self.source_edge == no_history(self.base)

    def _regenerate(self, tensor: Tensor, base_edge: OptionalEdge) -> OptionalEdge:
        if base_edge is None and self.is_current:
            return tensor._edge
        if self.creation is CreationMeta.IN_CUSTOM_FUNCTION:
            raise ViewInPlaceError(
                f"this view of shape {tensor.shape} was returned by a custom Function, and its base has been written "
                "to since: its history is ambiguous, since the base's history does not include the Function's "
                "backward; clone() the result of the Function"
            )
        if self.creation is not CreationMeta.DEFAULT:  # created without recording: it never has its base's history
            return tensor._edge
        old = tensor._edge
        cut = cut_of(self.base)
        if cut is not None and type(base_edge) is not AccumulateGrad and self._is_before(cut, old):
            return self._edge_before_detach(tensor, cut, base_edge)
        edge = self._rebuilt_edge(tensor, self.base, base_edge)
        if old is not None:
            move_retained(tensor, old, edge)
        tensor._edge = edge
        # last and in one step, since other threads may access the view meanwhile
        self.source_edge = no_history(self.base) if base_edge is None else base_edge
        return edge

    def _rebuilt_edge(self, tensor: Tensor, source: Tensor, base_edge: OptionalEdge) -> OptionalEdge:
        """Return the edge to the history of the view as a view of `source`, the base or an alias of it."""
        if base_edge is None:
            return None
        mode = current_mode()
        edge: OptionalEdge
        if mode & REPLAY or not self.strided:
            edge = isolated(self._replayed, source)
        else:
            edge = self._as_strided(tensor, base_edge)
        if mode & NOTING and edge is not None:
            note(node_of(edge))
        return edge

    @property
    def is_before_end(self) -> bool:
        """Return whether the view still has its own history, from before the base's history ended in place."""
        cut, source_edge = cut_of(self.base), self.source_edge
        if cut is None or source_edge is None or isinstance(source_edge, int):
            return False
        if isinstance(source_edge, DetachedHistory):
            return True
        return source_edge is not self.base._edge and source_edge.sequence_nr < cut.sequence_nr

    def _is_before(self, cut: DetachPoint, old: OptionalEdge) -> bool:
        """Return whether the view's history was, or would have been, created before its base's last ended."""
        source_edge = self.source_edge
        if isinstance(source_edge, DetachedHistory):
            return True
        if source_edge is None or isinstance(source_edge, int):
            return (source_edge or 0) != cut.number
        return old is not None and source_edge.sequence_nr < cut.sequence_nr

    def _edge_before_detach(self, tensor: Tensor, cut: DetachPoint, base_edge: OptionalEdge) -> OptionalEdge:
        """Return the edge of a view from before its base was detached, depending on later writes.

        Raises:
            ViewInPlaceError: if the history is ambiguous.
        """
        old, own = tensor._edge, self._own(tensor, cut)
        if own is not None and own is self.source_edge and base_edge is not None and own.base_edge is base_edge:
            return old
        if own is None and old is not None and isinstance(self.source_edge, int | None):  # a leaf, or a view of a leaf
            written = None
        else:
            written = written_since(cut, self.base, base_edge, self)
        if written is None or (own is None and not is_all_written(written)):
            raise ViewInPlaceError(
                f"this view of shape {tensor.shape} has its own history, because it is a leaf, or its base was "
                "detached in place by detach_() or requires_grad_(False), but the base was written to before or "
                "after, so the view's history is ambiguous; take the view again, or use detach() instead"
            )
        edge: OptionalEdge
        if own is not None and not written.any():  # nor has a view without elements been overwritten
            edge, overwritten = own.edge, False
        else:
            edge, overwritten = self._rebuilt_edge(tensor, self.base, base_edge), own is None or is_all_written(written)
            if own is not None and not overwritten:
                edge = mixed(own.edge, edge, written)
        if old is not None and edge is not old:
            move_retained(tensor, old, edge)
        tensor._edge = edge
        if own is None or overwritten:
            self.source_edge = no_history(self.base) if base_edge is None else base_edge
        elif base_edge is not None or edge is not old:
            own.base_edge = base_edge
            self.source_edge = own
        return edge

    def _own(self, tensor: Tensor, cut: DetachPoint) -> DetachedHistory | None:
        """Return the history that the view had when its base was last detached, or None if it is no longer known."""
        source_edge, old = self.source_edge, tensor._edge
        points = (*cut.earlier, cut)
        edge: OptionalEdge
        if isinstance(source_edge, DetachedHistory):
            if source_edge.view is not self:  # the history of the view that this one was taken from
                source_edge = DetachedHistory(self, old, source_edge.cut, source_edge.base_edge)
            if source_edge.cut is cut:
                return source_edge
            n = next((n for n, point in enumerate(points) if point is source_edge.cut), None)
            if n is None:
                return None
            is_updated = source_edge.base_edge is points[n + 1].edge
            edge = old if is_updated else source_edge.edge
        else:
            n = next((n for n, point in enumerate(points) if self._is_ended_by(point, old)), None)
            if n is None:
                return None
            last, is_updated = points[n].edge, False
            edge = old if source_edge is last else self._rebuilt_edge(tensor, self._base_with(last), last)
        if n + 1 < len(points) and current_mode() & TRACE:
            OBSERVER.get().refuse(
                f"using a view of shape {tensor.shape} whose base was detached in place several times after the view "
                "was taken, by detach_() or requires_grad_(False),"
            )
        return self._updated_edge(tensor, points[n + is_updated :], edge)

    def _is_ended_by(self, point: DetachPoint, old: OptionalEdge) -> bool:
        """Return whether the view was taken from the history of its base that ended at `point`."""
        source_edge = self.source_edge
        if source_edge is None or isinstance(source_edge, int):
            return old is None and (source_edge or 0) == point.number - 1
        if source_edge is point.edge:
            return True
        assert not isinstance(source_edge, DetachedHistory)
        return point.before < source_edge.sequence_nr < point.sequence_nr

    def _updated_edge(
        self, tensor: Tensor, points: tuple[DetachPoint, ...], edge: OptionalEdge
    ) -> DetachedHistory | None:
        """Return the history of a view after `points`, starting from the history `edge` at the first point."""
        for point, later in pairwise(points):
            written = written_since(point, self.base, later.edge, self)
            if written is None:
                return None
            if written.any():
                present = self._rebuilt_edge(tensor, self._base_with(later.edge), later.edge)
                edge = present if is_all_written(written) else mixed(edge, present, written)
        return DetachedHistory(self, edge, points[-1], None)

    def _base_with(self, edge: OptionalEdge) -> Tensor:
        """Return an alias of the base with an earlier history of it."""
        base = from_array(self.base._array, edge)
        base._storage = self.base._storage
        return base

    def _replayed(self, source: Tensor) -> OptionalEdge:
        with ModeSwitch(on=GRAD, off=INFERENCE):
            view: Tensor = self.window(source)
            return view._edge

    def _as_strided(self, tensor: Tensor, base_edge: OptionalEdge) -> Node:
        return node_of_view(AS_STRIDED[0], base_edge, self.base, self.index, None, False)


class GeneralViewMeta(DifferentiableViewMeta):
    """The metadata shared by all views, however they are taken and wherever they were created.

    Attributes:
        placed: the function that takes the view by its geometry, if there is one, created on demand.
    """

    __slots__ = ("creation", "overlaps_itself", "placed", "strided", "view_fn")

    view_fn: ViewFunction | None
    creation: CreationMeta
    strided: bool
    overlaps_itself: bool
    placed: ViewFunction | None

    def _as_strided(self, tensor: Tensor, base_edge: OptionalEdge) -> Node:
        view_fn = self.view_fn
        if view_fn is None:
            return super()._as_strided(tensor, base_edge)
        if self.placed is None:
            by_geometry = self.base._array.flags.c_contiguous and not self.overlaps_itself
            self.placed = Strided(self.geometry(tensor), view_fn) if by_geometry else view_fn
        return node_of_view(AS_STRIDED[1], base_edge, self.base, None, self.placed, self.overlaps_itself)

    def take_over(self, view: ViewMeta) -> None:
        """Copy the state of `view`."""
        self.base = view.base
        self.index = view.index
        self.source_edge = view.source_edge
        self.view_fn = view.view_fn
        self.placed = None
        self.creation = view.creation
        self.strided = view.strided
        self.overlaps_itself = view.overlaps_itself


class DualViewMeta(GeneralViewMeta):
    """The metadata of a dual tensor, a view of its primal with its own tangent, and of views of it.

    Attributes:
        root: the holder of the tangent.
        root_steps: the view functions that lead from the dual tensor to this view.
    """

    __slots__ = ("root", "root_steps")

    root: TangentRoot
    root_steps: tuple[ViewFunction, ...]

    @property
    def is_root(self) -> bool:  # type: ignore[override]
        """Return whether this is the dual tensor itself."""
        return not self.root_steps

    @property
    def tangent_root(self) -> Any:
        """The holder of the tangent of the dual tensor."""
        return self.root

    def tangent_window(self, tangent: Any) -> Any:
        """Return the view's window of the tangent of the dual tensor."""
        for step in self.root_steps:
            tangent = step(tangent)
        return tangent

    @classmethod
    def of_view(cls, root: TangentRoot, root_steps: tuple[ViewFunction, ...]) -> DualViewMeta:
        """Return empty metadata for a view of a dual tensor."""
        view: DualViewMeta = new(cls)
        view.root = root
        view.root_steps = root_steps
        return view

    @classmethod
    def of_root(cls, root: TangentRoot, plain: ViewMeta) -> DualViewMeta:
        """Return the metadata of a dual tensor that is otherwise the view `plain`."""
        view = cls.of_view(root, ())
        view.take_over(plain)
        return view


def no_history(base: Tensor) -> int | None:
    """Return the source of a view whose base has no history: the number of histories that ended in place, or None.

    This distinguishes views taken before such an end, which may have had a history, from views taken after it.
    """
    cut = cut_of(base)
    return None if cut is None else cut.number


def mark_created_in_function(tensor: Tensor) -> None:
    """Mark a view, whose edge is about to be set, as created inside a custom Function."""
    view = tensor._view
    assert view is not None
    if not isinstance(view, GeneralViewMeta):
        tensor._view = general = new(GeneralViewMeta)
        general.take_over(view)
        view = general
    edge = view.base._edge
    view.source_edge = no_history(view.base) if edge is None else edge
    view.creation = CreationMeta.IN_CUSTOM_FUNCTION


def set_history(tensor: Tensor, edge: OptionalEdge) -> None:
    """Make `edge` the history of a tensor that is not a view; retained gradients follow."""
    old = tensor._edge
    tensor._edge = edge
    if old is not None and old.hooks is not None:
        move_retained(tensor, old, edge)


def move_retained(tensor: Tensor, old: Node | Edge, edge: OptionalEdge) -> None:
    """Make `retain_grad` follow the tensor to its new history."""
    if edge is None:
        return
    moved = detached_hooks(tensor, old)
    if moved is not None:
        hooks = hooks_of(node_of(edge))
        for retained in moved.retained.values():
            hooks.retained[input_nr_of(edge)] = retained
            hooks.has_moved = True
        hooks.following.update(moved.following)
        let_follow(moved)


def detached_hooks(tensor: Tensor, old: Node | Edge) -> NodeHooks | None:
    """Detach and return the `retain_grad` state kept with the old history of a tensor.

    Return None if there is none.
    """
    hooks = finished_hooks(old)
    if hooks is None:
        return None
    moved = NodeHooks()
    number = input_nr_of(old)
    retained = hooks.retained.get(number)
    if retained is not None and retained() is tensor:
        del hooks.retained[number]
        moved.retained[0] = retained
    if hooks.following:
        following = hooks.following
        hooks.following = {}
        for reference in following.values():
            view = reference()
            meta = None if view is None else view._view
            if meta is not None and meta.base is tensor and meta.creation is not CreationMeta.IN_CUSTOM_FUNCTION:
                moved.following[id(view)] = reference
            elif meta is not None:  # a view of another output of the same node
                hooks.following[id(view)] = reference
    return moved if moved.retained or moved.following else None


def let_follow(moved: NodeHooks) -> None:
    """Rebuild the histories of views that retain their gradient, since their base has a new history."""
    for reference in list(moved.following.values()):
        view = reference()
        if view is not None:
            with contextlib.suppress(ViewInPlaceError):  # if its history can no longer be determined
                current_edge(view)
