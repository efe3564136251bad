"""The construction of views: the tensor, its DifferentiableViewMeta, and its node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.creation_sites import note, step_name
from ..tensor.indices import composed
from ..tensor.interceptors import Call, run_with_features
from ..tensor.modes import FUNCTIONAL, GRAD, INFERENCE, NOTING, PROFILE, REPLAY, ModeSwitch, current_mode
from ..tensor.node import new, next_sequence_nr, node_of
from ..tensor.storage import storage_of
from ..tensor.tensor import Tensor, as_buffered
from ..tensor.tracked_storage import share
from ..type_aliases import Array
from .meta import CreationMeta, DifferentiableViewMeta, DualViewMeta, GeneralViewMeta, no_history
from .view_functions import Chain, Index, ViewFunction, chained
from .view_nodes import IndexViewBackward, ViewBackward, layout_for, node_of_view

ndarray: Final = np.ndarray
DEFAULT: Final = CreationMeta.DEFAULT
WHOLE: Final = slice(None)


def index_view(self: Tensor, index: Any, node_class: type[IndexViewBackward]) -> Tensor:
    """Return the view selected by a basic index: an int, a slice, None, `...` or a tuple of these.

    A single element is also returned as a 0-d view; for a scalar, as a view of an array created from it.
    """
    self = as_buffered(self)
    source = self._array
    array = source[index]
    if type(array) is not ndarray:  # the same as in window_at
        array = source[(*index, ...) if type(index) is tuple else (index, ...)]
    return view_of_window(self, array, index, node_class)


def view_of_window(self: Tensor, array: Array, index: Any, node_class: type[IndexViewBackward]) -> Tensor:
    """Return the view selected by a basic index, whose window is `array`."""
    source = self._array
    parent = self._view
    if current_mode() != GRAD or (parent is not None and type(parent) is not DifferentiableViewMeta):
        return make_view(self, array, index, None, node_class)
    # The rest is make_view, inlined for the common case.
    storage = self._storage
    if storage is None:
        storage = storage_of(self)
    view = DifferentiableViewMeta()  # a class without __init__, since calling it is faster than object.__new__
    if parent is None:
        view.base = self
        view.index = index
        view.source_edge = edge = self._edge
    else:
        view.base = base = parent.base
        whole = type(index) is slice and index == WHOLE
        view.index = parent.index if whole else composed(parent.index, index, base._array.shape)
        if view.index is None:
            return make_view(self, array, index, None, node_class)
        edge = parent.edge_of(self)
        view.source_edge = parent.source_edge  # its version: another thread may write to the base meanwhile
    out: Tensor = new(Tensor)
    out._array = array
    out._saved = None
    out._storage = storage
    out._view = view
    if edge is None:
        out._edge = None
        if storage.cuts is not None and parent is None:
            view.source_edge = no_history(self)
        return out
    node = node_class()
    node.edge = edge
    node.hooks = None
    node.sequence_nr = next_sequence_nr()
    node.index = index
    if source is storage.root:
        layout = storage.layout
        node.layout = layout_for(self) if layout is None else layout
    else:
        node.layout = (source.shape, source.dtype, "C")
    out._edge = node
    return out


def make_view(
    source: Tensor,
    array: Array,
    index: Any,
    view_fn: ViewFunction | None,
    node_class: type[ViewBackward],
    *,
    strided: bool = True,
    overlaps_itself: bool = False,
    timed: bool = False,
) -> Tensor:
    """Return a view of `source` over `array`, which is `source._array[index]` or `view_fn(source._array)`."""
    mode = current_mode()
    if mode & PROFILE and not timed:
        make = functools.partial(
            make_view,
            source,
            array,
            index,
            view_fn,
            node_class,
            strided=strided,
            overlaps_itself=overlaps_itself,
            timed=True,
        )
        viewed: Tensor = run_with_features(TakeView(node_class, make, inplace=False), PROFILE)
        return viewed
    out: Tensor = new(Tensor)
    out._array = array
    out._saved = None
    storage = source._storage
    out._storage = storage if storage is not None else storage_of(source)
    view: GeneralViewMeta
    parent = source._view
    if parent is None:
        out._view = view = new(GeneralViewMeta)
        view.placed = None
        view.base = source
        view.index = index
        view.view_fn = view_fn
        view.source_edge = edge = source._edge
        view.creation = DEFAULT if mode & GRAD else _creation(mode)
        view.strided = strided
        view.overlaps_itself = overlaps_itself
    else:
        if mode > GRAD and type(parent) is DualViewMeta:
            step = Index(index, source._array.shape) if view_fn is None else view_fn
            out._view = view = DualViewMeta.of_view(parent.root, (*parent.root_steps, step))
        else:
            out._view = view = new(GeneralViewMeta)
        view.base = base = parent.base
        edge = parent.edge_of(source)
        view.source_edge = parent.source_edge  # its version: another thread may write to the base meanwhile
        view.placed = None
        view.view_fn = None
        view.index = None
        if view_fn is None and parent.view_fn is None and not mode & REPLAY:  # view replay needs every step
            view.index = composed(parent.index, index, base._array.shape)
        if view.index is None:
            step = Index(index, source._array.shape) if view_fn is None else view_fn
            if mode & REPLAY:
                view.view_fn = Chain((*parent.steps, step))
            else:
                taken = chained(parent.steps, step, base._array)
                if type(taken) is Index:
                    view.index = taken.index
                else:
                    view.view_fn = taken
        view.creation = _creation(mode) if parent.creation is DEFAULT else parent.creation
        view.strided = strided and parent.strided
        view.overlaps_itself = overlaps_itself or parent.overlaps_itself
    if edge is None or not mode & GRAD:
        out._edge = None
        if edge is None and parent is None and out._storage.cuts is not None:
            view.source_edge = no_history(source)
    else:
        out._edge = node_of_view(node_class, edge, source, index, view_fn, overlaps_itself)
    if mode > GRAD:
        if mode & FUNCTIONAL:
            share(source, out, storage is None)
        if mode & NOTING and out._edge is not None:
            note(out._edge)
    return out


@attrs.define(eq=False)
class TakeView(Call):
    """The creation of a view, which is intercepted only by profiles.

    Arguments:
        node_class: the class of the view's node.
        make: a function that creates the view.
    """

    node_class: type[ViewBackward]
    make: Callable[[], Tensor]

    def name(self) -> str:
        """The name of the view's node."""
        return step_name(self.node_class.__name__)

    def run(self) -> Tensor:
        """Create the view."""
        out = self.make()
        self.node = self.history = node_of(out._edge)
        return out


def _creation(mode: int) -> CreationMeta:
    if mode & GRAD:
        return CreationMeta.DEFAULT
    return CreationMeta.INFERENCE if mode & INFERENCE else CreationMeta.NO_GRAD


class view_replay(ModeSwitch):
    """Rebuild the history of views by replaying their view functions, even if their geometry would suffice.

    Arguments:
        enabled: whether to replay inside the block.
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__(on=REPLAY if enabled else 0, off=0 if enabled else REPLAY)
