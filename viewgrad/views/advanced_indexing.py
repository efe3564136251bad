"""Reads of elements, and reads and writes by index arrays: `x[2]`, `x[[2, 0]]`, `x[mask] = value`.

A read copies. The gradient of a read adds to the elements read, and that of a write overwrites them, so the cost of
each is proportional to the indexed part.
"""

from __future__ import annotations

from operator import index as index_of
from operator import setitem
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.creation import COMMON, as_assigned, as_its_array, as_operand
from ..tensor.indices import BASIC, add_at, plain_slice
from ..tensor.interceptors import Call, run_with_features
from ..tensor.modes import FORWARD, GRAD, current_mode
from ..tensor.node import new, node_of, numbered
from ..tensor.tensor import Tensor, current_edge, from_array, method, root_of
from ..tensor.trace_hooks import array_of, array_of_index, copied_index, index_raised, keeps_indices
from ..type_aliases import Array
from .advanced_nodes import IndexAccumulateBackward, IndexBackward, IndexPutBackward
from .copy_slices import CopySlices
from .inplace import is_recorded, write_in_place
from .rebase_history import refuse_written
from .view_nodes import ElementBackward, layout_for, node_of_view

ndarray: Final = np.ndarray


# -- indices -----------------------------------------------------------------------------------------------------------


def normalised(index: Any) -> tuple[Any, bool]:
    """Return an index with tensors and lists converted to arrays, and whether it is a basic index."""
    index = tuple(index) if isinstance(index, tuple) else index  # also for subclasses, such as named tuples
    items = index if type(index) is tuple else (index,)
    basic = True
    result: list[Any] = []
    for item in items:
        if type(item) is slice:
            result.append(plain_slice(item))
            continue
        if type(item) in BASIC:
            result.append(item)
            continue
        if type(item) not in COMMON and not hasattr(item, "__index__"):
            item = as_its_array(item)
        if isinstance(item, Tensor):
            item = array_of_index(item)
            if item.ndim or (item.dtype.kind in "iu" and keeps_indices()):
                if item.dtype.kind not in "biu":
                    raise IndexError(WRONG_INDEX.format(item.dtype))
                result.append(item)
                basic = False
                continue
        if hasattr(item, "__index__") and not isinstance(item, (bool, np.bool_, np.ndarray)):
            result.append(index_of(item))
        else:  # also for a 0-d array, with which NumPy reads a copy
            array = np.array(item)
            if array.size == 0 and not isinstance(item, np.ndarray):
                array = array.astype(np.intp)
            if array.dtype.kind not in "biu":
                raise IndexError(WRONG_INDEX.format(array.dtype))
            if isinstance(item, np.ndarray):
                copied_index(item, array)
            result.append(array)
            basic = False
    return (tuple(result) if type(index) is tuple or not basic else result[0]), basic


def is_window(given: Any, index: tuple[Any, ...], ndim: int) -> bool:
    """Return whether all arrays of an index are integer scalars and it selects a view rather than an element.

    Arguments:
        given: the index as written in the program.
        index: the normalized index.
        ndim: the number of dimensions of the indexed tensor.
    """
    items = given if type(given) is tuple else (given,)
    numbers = 0
    for item, taken in zip(items, index, strict=True):
        if type(taken) is ndarray:
            if taken.dtype.kind == "b" or not isinstance(item, Tensor) or type(item._array) is ndarray:
                return False
            numbers += 1
        elif type(taken) is int:
            numbers += 1
    return numbers < ndim or len(items) > numbers


def with_numbers(given: Any) -> Any:
    """Return an index with scalars replaced by integers, which must be the same in every run of a trace."""
    if type(given) is tuple:
        return tuple([with_numbers(item) for item in given])
    if type(given) is slice:
        return plain_slice(given)
    if isinstance(given, Tensor):
        return int(array_of(given, "an index"))
    return int(given) if isinstance(given, np.integer) else given


WRONG_INDEX: Final = "tensors can be indexed by integers, bools, slices, None and ..., not by {}"


def _reads_once(index: tuple[Any, ...]) -> bool:
    """Return whether an index by arrays selects no element twice, because its arrays are boolean."""
    return all(type(item) is not ndarray or item.dtype.kind == "b" for item in index)


# -- reading -----------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Gather(Call):
    """A read by index arrays.

    Arguments:
        source: the tensor to read from.
        index: the normalized index.
    """

    source: Tensor
    index: tuple[Any, ...]

    def name(self) -> str:
        """The name of the read's node."""
        return "index"

    def run(self) -> Tensor:
        """Read the elements, and record the read in grad mode."""
        out = _gather(self.source, self.index)
        self.node = self.history = node_of(out._edge)
        return out


def gathered(self: Tensor, index: tuple[Any, ...]) -> Tensor:
    """Return `self[index]` as a copy, for an index by arrays as returned by `normalised`."""
    mode = current_mode()
    return _gather(self, index) if mode <= GRAD else run_with_features(Gather(self, index, inplace=False), mode)


def _gather(self: Tensor, index: tuple[Any, ...]) -> Tensor:
    out = from_array(self._array[index])
    edge = current_edge(self)
    if edge is not None and current_mode() & GRAD:
        node = numbered(IndexBackward)
        node.edge = edge
        node.index = index
        node.once = _reads_once(index)
        node.layout = layout_for(self)
        out._edge = node
    return out


class ReadElement(Gather):
    """A read of a single element."""

    def name(self) -> str:
        """The name of the read's node."""
        return "element"

    def run(self) -> Tensor:
        """Read the element, and record the read in grad mode."""
        source = self.source
        out = from_array(source._array[self.index])
        edge = current_edge(source)
        if edge is not None and current_mode() & GRAD:
            index = self.index[0] if len(self.index) == 1 else self.index
            out._edge = self.node = self.history = node_of_view(ElementBackward, edge, source, index, None, False)
        return out


# -- writing -----------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Write(Call):
    """A write of values to a tensor or to part of it.

    Arguments:
        target: the tensor to write to.
        value: the value before broadcasting and casting.
        items: the index arrays; None for the whole target.
        last: if indices repeat, for each value, the number of the last value written to the same element.
    """

    target: Tensor
    value: Tensor
    items: tuple[Any, ...] | None = None
    last: Array | None = None

    def name(self) -> str:
        """The name of the write's node."""
        return "copy_" if self.items is None else "index_put_"

    def run(self) -> Tensor:
        """Write the values, and record the write in grad mode."""
        target = self.target
        root = root_of(target)
        before = root._edge
        self.write()
        edge = root._edge
        if edge is not before:
            self.history = node_of(edge)
            self.node = self.history.fn if type(self.history) is CopySlices else self.history
        return target

    def refuse(self) -> None:
        """Make the history and the tangents of the target unusable after an exception in a write."""
        refuse_written(self.target, "an assignment")

    def write(self) -> None:
        """Write, and record the write in grad mode."""
        assert self.items is not None
        _put(self.target, self.items, self.value, self.last)


class Accumulate(Write):
    """An addition to elements selected by index arrays; repeated elements accumulate."""

    def name(self) -> str:
        """The name of the function that the user called."""
        return "index_accumulate_"

    def write(self) -> None:
        """Add the values, and record the addition in grad mode."""
        assert self.items is not None
        _accumulate(self.target, self.items, self.value)


@method
def copy_where_(self: Tensor, src: Any, mask: Any) -> Tensor:
    """Write `src` to the elements selected by the bool array `mask`, which is broadcast."""
    if isinstance(mask, Tensor):
        mask = array_of(mask, "a mask")
    if type(src) is not Tensor:
        src = as_assigned(src, self.dtype)
    if not self.size:  # NumPy accepts more kinds of masks there
        np.copyto(self._array, src._array, where=np.asarray(mask, dtype=bool))
        return self
    mask = np.broadcast_to(np.asarray(mask, dtype=bool), self.shape)
    index = (mask.copy(),)
    if src.ndim > self.ndim and all(length == 1 for length in src.shape[: src.ndim - self.ndim]):
        src = src.reshape(src.shape[src.ndim - self.ndim :])  # as in NumPy's assignment
    if src.shape != self.shape:
        src = src.broadcast_to(self.shape)
    put(self, index, src[index])
    return self


def put(self: Tensor, index: tuple[Any, ...], value: Any) -> None:
    """Assign `self[index] = value` for an index by arrays, as returned by `normalised`."""
    if type(value) is not Tensor:
        value = as_assigned(value, self.dtype)
    mode = current_mode()
    last = None
    if mode & FORWARD or (mode & GRAD and current_edge(value) is not None):
        try:
            last = last_writers(self._array, index)
        except IndexError as error:
            index_raised(index, error)
            raise
    if mode > GRAD:
        run_with_features(Write(self, value, index, last, inplace=True), mode)
    else:
        _put(self, index, value, last)


def _put(self: Tensor, index: tuple[Any, ...], value: Tensor, last: Array | None) -> None:
    array = self._array
    source = value._array
    edge = current_edge(value)
    own = current_edge(self)
    if last is not None:
        # NumPy does not specify which value is assigned for repeated indices; assign the last one everywhere.
        source = np.broadcast_to(source.reshape(source.shape[-last.ndim :]), last.shape).ravel()[last]
    if np.may_share_memory(array, source):  # NumPy does that, except in assignments by a single mask
        source = source.copy()
    node: IndexPutBackward | None = None
    if is_recorded(self, edge, own):
        node = new(IndexPutBackward)
        node.edge0 = own
        node.edge1 = edge
        node.index = index
        node.layout = layout_for(self)
        node.winners = None if last is None else last == np.arange(last.size).reshape(last.shape)
        node.like = (value._array.shape, value._array.dtype)
    write_in_place(self, node, own, setitem, index, source, "__setitem__", overwritten=True)


def last_writers(array: Array, index: tuple[Any, ...]) -> Array | None:
    """Return, for each value assigned to `array[index]`, the number of the last value written to the same element.

    Return None if no index is repeated.
    """
    if _reads_once(index):
        return None
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
    """Add `values` to `self[index]`; repeated elements receive all of their values."""
    if not isinstance(values, Tensor):
        values = as_operand(values)
    items, _ = normalised(index)
    if items is None:  # a new axis; `Accumulate` would treat this as the whole target
        items = (None,)
    mode = current_mode()
    if mode > GRAD:
        run_with_features(Accumulate(self, values, items, inplace=True), mode)
    else:
        _accumulate(self, items, values)
    return self


def _accumulate(self: Tensor, index: Any, values: Tensor) -> None:
    source = values._array
    edge = current_edge(values)
    own = current_edge(self)
    node: IndexAccumulateBackward | None = None
    if is_recorded(self, edge, own):
        node = new(IndexAccumulateBackward)
        node.edge0 = own
        node.edge1 = edge
        node.index = index
        node.like = (source.shape, source.dtype)
    write_in_place(self, node, own, add_at, index, source, "index_accumulate_", overwritten=False)
