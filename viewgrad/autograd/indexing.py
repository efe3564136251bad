"""Reading and writing by index: `x[...]` and `x[...] = value`.

Basic indexing takes a view, and an assignment to it is a `copy_` into that view. Indexing by arrays gathers a copy; its
gradient adds to the places that were read, and an assignment's overwrites them, so that each costs what is indexed.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Final

import numpy as np

from ..operators.operands import as_operand
from ..tensor.indices import composed, window_at
from ..tensor.levels import at_level, open_levels
from ..tensor.modes import ANOMALY, FORWARD, FUNCTIONAL, GRAD, INFERENCE, current_mode
from ..tensor.node import (
    MANY,
    ONE_EDGE,
    OVERWRITE,
    SCATTER,
    TWO_EDGES,
    AccumulateGrad,
    Node,
    new,
    next_sequence_nr,
    node_of,
)
from ..tensor.origins import note
from ..tensor.storage import prepare_write, storage_of
from ..tensor.tangents import new_tangent, tangent_of, update_aliases, writable_tangent, write_tangents
from ..tensor.tensor import Tensor, current_edge, from_array, method
from ..views.copy_slices import INTERRUPTIONS, CopyBackwards, interrupt_history, rebase_history, record_copy
from ..views.meta import CreationMeta, DifferentiableViewMeta, DualViewMeta, check_write, index_view
from ..views.nodes import Layout, layout_for
from ..views.ops import SelectBackward, SliceBackward
from ..views.specs import Like, match_spec
from ..views.view_functions import Chain, Index, chained
from .modes.functional_writes import accumulate, overwrite

__all__ = ["copy_", "copy_where_", "fill_", "index_accumulate_", "zero_"]

Array = np.ndarray[Any, Any]
ndarray: Final = np.ndarray
BASIC: Final = frozenset({int, slice, type(None), type(Ellipsis)})


class IndexBackward(Node):
    """Of reading by arrays of indices: adds the gradient to the places that were read."""

    __slots__ = ("edge", "index", "layout", "once")

    kind: ClassVar[int] = SCATTER
    edges = ONE_EDGE

    edge: Any
    index: Any
    once: bool  # whether no place is read twice
    layout: Layout

    def add_to(self, accumulator: Array, grad: Any) -> None:
        """Add `grad` to the places of `accumulator` that were read."""
        if self.once:
            accumulator[self.index] += grad
        else:
            np.add.at(accumulator, self.index, grad)

    def add_to_recorded(self, accumulator: Tensor, grad: Tensor) -> None:
        """The same with tensors, recorded."""
        index_accumulate_(accumulator, self.index, grad)


class IndexPutBackward(Node):
    """Of `x[index] = values` by arrays: what was overwritten gets no gradient, and the values get it from there."""

    __slots__ = ("edge0", "edge1", "index", "layout", "like", "winners")

    kind: ClassVar[int] = OVERWRITE
    edges = TWO_EDGES
    edge0: Any
    edge1: Any
    index: Any
    layout: Layout  # of the gradient
    like: Like | None
    winners: Array | None  # where a place is written more than once: which of the values stayed

    def apply(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients along `edges`; the first is `grad` itself, rewritten in place. For arrays and tensors alike."""
        values = None
        if edges[1] is not None:
            values = grad[self.index]
            if self.winners is not None:
                values = values * self.winners
            values = match_spec(values, self.like)
        if edges[0] is not None:
            grad[self.index] = 0
        return grad, values

    consume = apply
    apply_recorded = apply


class IndexAccumulateBackward(Node):
    """Of adding values to places given by arrays of indices."""

    __slots__ = ("edge0", "edge1", "index", "like")

    kind: ClassVar[int] = MANY
    edges = TWO_EDGES

    edge0: Any
    edge1: Any
    index: Any
    like: Like | None

    def apply(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the old value and of the values added; for arrays and tensors alike."""
        return grad, None if edges[1] is None else match_spec(grad[self.index], self.like)

    consume = apply
    apply_recorded = apply


# -- reading -----------------------------------------------------------------------------------------------------------


def _getitem(self: Tensor, index: Any) -> Tensor:
    """`x[index]`: a view for basic indexing, a copy for indexing by arrays."""
    kind = type(index)
    if kind is int:
        return index_view(self, index, SelectBackward)
    if kind is slice:
        return index_view(self, _settled_slice(index), SliceBackward)
    if kind is tuple and _is_plain(index):
        return index_view(self, index, SliceBackward)
    index, basic = _normalised(index)
    if basic:
        return index_view(self, index, SliceBackward)
    mode = current_mode()
    array = self._array
    out = from_array(np.asarray(array[index]))
    edge = current_edge(self)
    if edge is not None and mode & GRAD:
        node: IndexBackward = new(IndexBackward)
        node.edge = edge
        node.hooks = None
        node.sequence_nr = next_sequence_nr()
        node.index = index
        node.once = _reads_once(index)
        node.layout = layout_for(self)
        out._edge = node
    if mode > GRAD:
        _after_read(self, out, index, mode)
    return out


def _after_read(self: Tensor, out: Tensor, index: Any, mode: int) -> None:
    """What is to be done about `out`, read as `self[index]` by arrays, while features are on."""
    if mode & ANOMALY and out._edge is not None:
        note(out._edge)
    if mode & INFERENCE:
        storage_of(out).inference = True
    if mode & FORWARD:
        for level in open_levels():
            tangent = tangent_of(self, level)
            if tangent is not None:
                with at_level(level.outer):
                    new_tangent(out, tangent[index], level)


def _is_plain(items: tuple[Any, ...]) -> bool:
    """Whether an index is a basic one of which nothing can be written to later, as an array or a tensor could."""
    for item in items:
        kind = type(item)
        if kind is int:
            continue
        if kind is slice:
            start, stop = item.start, item.stop
            if (
                (start is not None and type(start) is not int)
                or (stop is not None and type(stop) is not int)
                or (item.step is not None and type(item.step) is not int)
            ):
                return False
        elif kind not in BASIC:
            return False
    return True


def _settled_slice(index: slice) -> slice:
    """A slice of whose bounds nothing can be written to later."""
    start, stop = index.start, index.stop
    if (
        (start is None or type(start) is int)
        and (stop is None or type(stop) is int)
        and (index.step is None or type(index.step) is int)
    ):
        return index
    return _plain_slice(index)


def _plain_slice(item: slice) -> slice:
    return slice(*(None if bound is None else operator.index(bound) for bound in (item.start, item.stop, item.step)))


def _normalised(index: Any) -> tuple[Any, bool]:
    """An index in which tensors and lists are arrays of our own, and whether it is a basic one."""
    items = index if type(index) is tuple else (index,)
    basic = True
    result: list[Any] = []
    for item in items:
        if type(item) is slice:
            result.append(_plain_slice(item))
            continue
        if type(item) in BASIC:
            result.append(item)
            continue
        if isinstance(item, Tensor):
            item = item._array
        if isinstance(item, (np.integer, int)) and not isinstance(item, bool):
            result.append(int(item))
        elif isinstance(item, np.ndarray) and item.dtype.kind in "iu" and not item.ndim:
            result.append(int(item))
        else:
            array = np.array(item)
            if array.size == 0 and not isinstance(item, np.ndarray):
                array = array.astype(np.intp)
            if array.dtype.kind not in "biu":
                raise IndexError(f"tensors are indexed by integers, bools, slices, None and ..., not by {array.dtype}")
            result.append(array)
            basic = False
    return (tuple(result) if type(index) is tuple or not basic else result[0]), basic


def _reads_once(index: tuple[Any, ...]) -> bool:
    """Whether an index by arrays cannot name a place twice: it has bools only."""
    return all(type(item) is not ndarray or item.dtype.kind == "b" for item in index)


# -- writing -----------------------------------------------------------------------------------------------------------


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, with the value broadcast and cast as NumPy does."""
    kind = type(index)
    if kind is not int and kind is not slice and not (kind is tuple and _is_plain(index)):
        index, basic = _normalised(index)
        if not basic:
            _index_put(self, index, value)
            return
    view = self._view
    if view is not None:
        if kind is slice:
            index = _settled_slice(index)
        of_base = None
        if type(view) is DifferentiableViewMeta and current_mode() == GRAD:
            _ = self._array[index]  # raises NumPy's own errors
            of_base = composed(view.index, index, view.base._array.shape)
        base_edge = view.base._edge
        if of_base is None or type(base_edge) is AccumulateGrad or (base_edge is None and self._edge is not None):
            if type(value) is not Tensor or not _is_same_window(self, index, value):
                copy_(index_view(self, index, SliceBackward), value)
            return
        self = view.base  # which is written to just as well
        index = of_base
        kind = tuple
    # A window of a tensor that is no view: no tensor is made for it.
    array = self._array
    window = array[index]
    if type(window) is not ndarray:
        window = window_at(array, index)
    edge = None
    mode = current_mode()
    if mode > GRAD:
        value = as_operand(value)
        if mode & FUNCTIONAL:
            if kind is slice:
                index = _settled_slice(index)
            if not _is_same_window(self, index, value):
                overwrite(index_view(self, index, SliceBackward), value)
            return
    source = value
    if type(value) is Tensor:
        view = value._view
        if view is not None:
            if view.base is self and _is_same_window(self, index, value):
                return  # the last step of `x[index] += ...`
            edge = view.edge_of(value)
        else:
            edge = value._edge
        value = value._array
    elif type(value) is not float:
        value = as_operand(value)._array
    old = self._edge
    recorded = (edge is not None or old is not None) and mode & GRAD and array.dtype.kind in "fc"
    storage = self._storage
    if storage is None:
        storage = storage_of(self)
    if storage.shared or array.base is not None or (recorded and type(old) is AccumulateGrad):
        check_write(self, bool(recorded))
    if storage.whole is not None or storage.windows is not None:
        storage.preserve(window, index if array is storage.root else None, "__setitem__")
    storage.version += 1
    try:
        window[...] = value
    except INTERRUPTIONS:
        if recorded:
            interrupt_history(self, "__setitem__", _settled_slice(index) if kind is slice else index)
        raise
    if recorded:
        same = edge is None or (window.shape == value.shape and window.dtype is value.dtype)
        if kind is slice:
            index = _settled_slice(index)
        record_copy(self, index, edge, None if same else (value.shape, value.dtype))
    if mode > GRAD:
        _after_write(self, source, index, mode, recorded)


def _is_same_window(self: Tensor, index: Any, value: Tensor) -> bool:
    """Whether `value` is the very window `self[index]`, so that assigning it changes nothing."""
    view = value._view
    if view is None or (view.creation is not CreationMeta.DEFAULT and current_mode() & GRAD):
        return False  # the latter may have another history than the window
    mine = self._view
    if mine is None:
        plain = view.base is self and view.view_fn is None and type(view) is not DualViewMeta
        return plain and _equal_index(view.index, index)
    if view.base is not mine.base or view.tangent_root is not mine.tangent_root:
        return False
    if view.view_fn is None:
        if mine.view_fn is not None:
            return False
        return bool(view.index == composed(mine.index, index, mine.base._array.shape))
    if type(view.view_fn) is not Chain:
        return False
    last = view.view_fn.steps[-1]
    if type(last) is not Index:
        return False
    if view.view_fn.steps[:-1] == mine.steps:
        return _equal_index(last.index, index)
    return bool(view.view_fn == chained(mine.steps, Index(index, self._array.shape), mine.base._array))


def _equal_index(index: Any, other: Any) -> bool:
    if type(index) is not type(other):
        index = index if type(index) is tuple else (index,)
        other = other if type(other) is tuple else (other,)
    if type(index) is tuple:
        index = index[:-1] if index and index[-1] is Ellipsis else index
        other = other[:-1] if other and other[-1] is Ellipsis else other
    return bool(index == other)


@method
def copy_(self: Tensor, src: Any) -> Tensor:
    """Write `src`, broadcast and cast as NumPy's assignment does, over this tensor."""
    if type(src) is not Tensor:
        src = as_operand(src)
    array = self._array
    edge = current_edge(src)
    own = current_edge(self)
    mode = current_mode()
    recorded = bool((edge is not None or own is not None) and mode & GRAD and array.dtype.kind in "fc")
    check_write(self, recorded)
    source = src._array
    is_itself = src is self
    if is_itself:
        return self
    if mode & FUNCTIONAL:
        return overwrite(self, src)
    prepare_write(self, "copy_")
    try:
        array[...] = source
    except INTERRUPTIONS:
        if recorded:
            interrupt_history(self, "copy_")
        raise
    if recorded:
        node = new(CopyBackwards)
        node.edge0 = None
        node.edge1 = edge
        node.hooks = None
        node.sequence_nr = next_sequence_nr()
        same = source.shape == array.shape and source.dtype is array.dtype
        node.like = None if edge is None or same else (source.shape, source.dtype)
        rebase_history(self, node)
    if mode > GRAD:
        _after_write(self, src, None, mode, recorded)
    return self


def _after_write(
    self: Tensor, value: Tensor, index: Any, mode: int, recorded: Any, last: Array | None = None
) -> None:
    """What is to be done about a write to `self`, or to `self[index]`, while features are on."""
    if mode & ANOMALY and recorded:
        note(node_of(self._edge if self._view is None else self._view.base._edge))
    if mode & FORWARD:
        write_tangents(self, value, index, last)


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one value over every element."""
    return copy_(self, value)


@method
def zero_(self: Tensor) -> Tensor:
    """Write zero over every element."""
    return copy_(self, 0.0)


@method
def copy_where_(self: Tensor, src: Any, mask: Any) -> Tensor:
    """Write `src` over the elements where `mask`, a bool array that can be broadcast, is true."""
    if isinstance(mask, Tensor):
        mask = mask._array
    mask = np.broadcast_to(np.asarray(mask, dtype=bool), self.shape)
    index = (mask.copy(),)
    src = as_operand(src)
    if src.shape != self.shape:
        src = src.broadcast_to(self.shape)
    _index_put(self, index, src[index])
    return self


def _index_put(self: Tensor, index: tuple[Any, ...], value: Any) -> None:
    if type(value) is not Tensor:
        value = as_operand(value)
    array = self._array
    source = value._array
    edge = current_edge(value)
    own = current_edge(self)
    mode = current_mode()
    recorded = bool((edge is not None or own is not None) and mode & GRAD and array.dtype.kind in "fc")
    check_write(self, recorded)
    node = None
    last = None
    forward = bool(mode & FORWARD)
    if (forward or (recorded and edge is not None)) and not _reads_once(index):
        last = _last_writers(array, index)
        if last is not None:
            # NumPy does not promise which value stays: give every mention of a place the one that we say stays.
            source = np.broadcast_to(source.reshape(source.shape[-last.ndim :]), last.shape).ravel()[last]
    if mode & FUNCTIONAL:
        overwrite(self, value, index, last)
        return
    if recorded:
        node = new(IndexPutBackward)
        node.edge0 = own
        node.edge1 = edge
        node.hooks = None
        node.sequence_nr = next_sequence_nr()
        node.index = index
        node.layout = layout_for(self)
        node.winners = None if last is None else last == np.arange(last.size).reshape(last.shape)
        node.like = (value._array.shape, value._array.dtype)
    prepare_write(self, "__setitem__")
    if np.may_share_memory(array, source):  # NumPy looks after that, but not where it assigns by one mask
        source = source.copy()
    try:
        array[index] = source
    except INTERRUPTIONS:
        if recorded:
            interrupt_history(self, "__setitem__")
        raise
    if node is not None:
        rebase_history(self, node)
    if mode > GRAD:
        _after_write(self, value, index, mode, recorded, last)


def _last_writers(array: Array, index: tuple[Any, ...]) -> Array | None:
    """For each value assigned to `array[index]`, the number of the value that stays in its place.

    None where no place is named twice, so that every value stays.
    """
    if all(type(item) is ndarray and item.dtype.kind in "iu" for item in index):
        if len(index) == 1:
            ordered = index[0].flatten()
            ordered.sort()
        if len(index) > 1 or (ordered.size and ordered[0] < 0):
            place: Any = 0
            for item, extent in zip(index, array.shape, strict=False):
                place = place * extent + np.where(item < 0, item + extent, item)
            ordered = np.sort(place, axis=None)
        if (ordered[1:] != ordered[:-1]).all():
            return None
    places = np.empty(array.shape, np.intp)
    window = places[index]
    numbers = np.arange(window.size).reshape(window.shape)
    places[index] = numbers
    last: Array = places[index]
    return None if np.array_equal(last, numbers) else last


@method
def index_accumulate_(self: Tensor, index: Any, values: Any) -> Tensor:
    """Add `values` to the places `self[index]`; places named more than once receive each of their values."""
    if not isinstance(values, Tensor):
        values = as_operand(values)
    index, _ = _normalised(index)
    if current_mode() & FUNCTIONAL:
        return accumulate(self, index, values)
    array = self._array
    source = values._array
    edge = current_edge(values)
    own = current_edge(self)
    recorded = bool((edge is not None or own is not None) and current_mode() & GRAD and array.dtype.kind in "fc")
    check_write(self, recorded)
    node = None
    if recorded:
        node = new(IndexAccumulateBackward)
        node.edge0 = own
        node.edge1 = edge
        node.hooks = None
        node.sequence_nr = next_sequence_nr()
        node.index = index
        node.like = (source.shape, source.dtype)
    prepare_write(self, "index_accumulate_")
    try:
        np.add.at(array, index, source)
    except INTERRUPTIONS:
        if recorded:
            interrupt_history(self, "index_accumulate_")
        raise
    if node is not None:
        rebase_history(self, node)
    mode = current_mode()
    if mode & ANOMALY and node is not None:
        note(node_of(self._edge if self._view is None else self._view.base._edge))
    if mode & FORWARD and array.dtype.kind in "fc":
        for level in open_levels():
            tangent = tangent_of(values, level)
            with at_level(level.outer):
                if tangent is not None:
                    writable_tangent(self, level).index_accumulate_(index, tangent)
                update_aliases(self, level, index)
    return self


Tensor.__getitem__ = _getitem  # type: ignore[method-assign]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign]
