"""Reads and writes by basic indices: `x[i, 1:]` is a view, and `x[i, 1:] = value` a copy into that view.

An index by integers alone reads one element, as a scalar that is not a view.
"""

from __future__ import annotations

import sys
from operator import setitem
from typing import Any, Final

import attrs
import numpy as np

from ..errors import ViewInPlaceError
from ..tensor.call_sites import instruction_of
from ..tensor.creation import as_assigned
from ..tensor.indices import composed, is_plain, settled_slice, window_at
from ..tensor.interceptors import run_with_features
from ..tensor.modes import GRAD, PROFILE, current_mode
from ..tensor.node import AccumulateGrad, OptionalEdge, new, next_sequence_nr
from ..tensor.storage import scalar_write, storage_of
from ..tensor.tensor import Tensor, current_edge, method
from ..type_aliases import Array
from .advanced_indexing import ReadElement, Write, gathered, is_window, normalised, put, with_numbers
from .construct import index_view, make_view, view_of_window
from .copy_slices import CopyBackwards, CopySlicesOfCopy
from .inplace import Steps, is_recorded, write_function, write_in_place, write_source
from .meta import CreationMeta, DifferentiableViewMeta, DualViewMeta
from .scalar_nodes import absorb
from .view_functions import Chain, Index, chained
from .view_nodes import ElementBackward, layout_for
from .view_ops import SelectBackward, SliceBackward
from .write_checks import check_write

ndarray: Final = np.ndarray
float64: Final[Any] = np.float64
# The number of writes to one storage from which merging nodes pays off, at 0.3 us for each scalar that is read.
MANY_WRITES: Final = 4000


def _getitem(self: Tensor, index: Any) -> Tensor:
    """Implement `x[index]`: a view for basic indexing, a copy for advanced indexing, a scalar for integers alone."""
    kind = type(index)
    node_class = SliceBackward
    if kind is int:
        node_class = SelectBackward
    elif kind is slice:
        index = settled_slice(index)
    elif kind is tuple and len(index) == 2 and type(index[0]) is int and type(index[1]) is int:
        pass  # the usual case in loops over elements; a call of `is_plain` takes a fifth of the time of such a read
    elif kind is not tuple or not is_plain(index):
        given = tuple(index) if isinstance(index, tuple) else index
        index, basic = normalised(given)
        if not basic:
            if not is_window(given, index, self._array.ndim):
                return gathered(self, index)
            index = with_numbers(given)
        kind = type(index)
    array = self._array
    window: Any = array[index]
    if type(window) is ndarray:
        if type(array) is not ndarray:
            return index_view(self, index, node_class)
        return view_of_window(self, window, index, node_class)
    if kind is not int and type(array) is not ndarray:
        return self
    mode = current_mode()
    if mode > GRAD:
        if self._storage is not None and self._storage.captured:
            return window  # type: ignore[no-any-return]
        items = index if type(index) is tuple else (index,)
        read: Tensor = run_with_features(ReadElement(self, items, inplace=False), mode)
        return read
    out: Tensor = new(Tensor)
    out._array = window
    out._saved = None
    out._storage = None
    out._view = None
    edge = self._edge if self._view is None else self._view.edge_of(self)
    if edge is None or not mode:
        if self._storage is not None and self._storage.captured:
            return window  # type: ignore[no-any-return]  # a plain number, as of the array
        out._edge = None
        return out
    out._edge = node = ElementBackward()
    node.edge = edge
    node.hooks = None
    node.sequence_nr = next_sequence_nr()
    node.index = index[0] if kind is tuple and len(index) == 1 else index
    storage = self._storage
    if storage is None:
        storage = storage_of(self)  # the storage caches the layout
    layout = storage.layout
    node.layout = layout_for(self) if layout is None or array is not storage.root else layout
    return out


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    """Implement `x[index] = value`; the value is broadcast and cast as in NumPy."""
    kind = type(index)
    if kind is tuple and len(index) == 2 and type(index[0]) is int and type(index[1]) is int:
        pass
    elif kind is not int and kind is not slice and not (kind is tuple and is_plain(index)):
        index, basic = normalised(index)
        if not basic:
            put(self, index, value)
            return
    mode = current_mode()
    view = self._view
    if kind is slice and (mode or view is not None):  # without a history, the index is not stored
        index = settled_slice(index)
    if mode > GRAD or (view is not None and not mode):
        _assign(self, index, value)
        return
    if view is not None:
        if type(view) is not DifferentiableViewMeta:
            _assign(self, index, value)
            return
        _ = self._array[index]  # raises NumPy's own errors
        of_base = composed(view.index, index, view.base._array.shape)
        base_edge = view.base._edge
        if (
            of_base is None
            or type(base_edge) is AccumulateGrad
            or (base_edge is None and self._edge is not None and not view.is_before_end)
        ):
            _assign(self, index, value)
            return
        self = view.base  # writing to the base is equivalent
        index = of_base
    window: Any = self._array[index]  # the tensor is not a view, so no tensor is created for the window
    if type(window) is float64:
        kind = type(value)
        if kind is Tensor:
            number = value._array
            if type(number) is float64:
                _write_number(self, index, number, value._edge, mode)
                return
        elif kind is float:
            _write_number(self, index, value, None, mode)
            return
        elif kind is int:
            _write_number(self, index, float(value), None, mode)  # raises before anything was done
            return
    _write_array(self, index, window, value, mode)


def _is_written_window(self: Tensor, index: Any, value: Tensor) -> bool:
    """Return whether a view of `self` is the window `self[index]` itself; raise if compiled code swaps rows."""
    if _is_same_window(self, index, value):
        return True
    assert value._view is not None
    if not value._view.is_current:
        _refuse_swapped_rows()
    return False


def _refuse_swapped_rows() -> None:
    """Raise if compiled code swaps rows of a tensor with a history, as `shuffle` of NumPy's generators does.

    Rows are views, so `x[i], x[j] = x[j], x[i]` duplicates one of them, as in NumPy; for its own arrays `shuffle` uses
    a buffer. This function is called when a row that was overwritten since it was read is about to be assigned. If the
    program itself does this, its frame is at an assignment; if compiled code does it, the program's frame is at a call.
    """
    frame = sys._getframe(4)  # below the functions called by `_setitem`
    code = frame.f_code
    if "shuffle" not in code.co_names and "shuffle" not in code.co_varnames:
        return
    if instruction_of(frame) not in ("STORE_SUBSCR", "STORE_SLICE"):
        raise ViewInPlaceError(
            "compiled code assigns a row of this tensor that was overwritten since it was read, as NumPy's shuffle() "
            "does, so that rows would be repeated: use the generators of viewgrad.numpy.random, or "
            "x[rng.permutation(len(x))]; elsewhere clone() the row when it is read"
        )


def _without_overlap(source: Array, window: Array) -> Array:
    """Return the value to assign to a window, copied if NumPy would read elements that it has just written.

    NumPy handles overlaps, but in one dimension only if the directions are opposite.
    """
    if window.ndim != 1 or (source.strides == window.strides and source.dtype == window.dtype):
        return source
    return source.copy() if np.may_share_memory(source, window) else source


# `self[index] = value` for a tensor that is not a view, in plain grad mode or under `no_grad`. `window` is the result
# of the basic index: an array or a NumPy number.
_ARRAY_HEAD: Final = """\
def _write_array(self, index, window, value, mode):
    storage = self._storage
    if storage is None:
        storage = storage_of(self)  # refuses scalars
    array = self._array
    if type(window) is not ndarray:
        window = window_at(array, index)
    edge = None
    if type(value) is Tensor:
        view = value._view
        if view is None:
            edge = value._edge
        else:
            if view.base is self and is_row_of_its_own(self, index, value):
                return  # the last step of `x[index] += ...`
            edge = view.edge_of(value)
        shared = value._storage is not None
        value = value._array
        if shared and window.ndim == 1:
            value = without_overlap(value, window)
    elif type(value) is not float:
        value = as_assigned(value, array.dtype)
        edge = current_edge(value)  # of a list with tensors in it
        value = without_overlap(value._array, window)
    old = self._edge
"""

_ARRAY_STEPS: Final = Steps(
    writer="'__setitem__'",
    check="""\
recorded = (edge is not None or old is not None) and mode and array.dtype.kind in "fc"
detached = False
if storage.shared or array.base is not None or (recorded and type(old) is AccumulateGrad):
    detached = check_write(self, bool(recorded), window)
""",
    node="same = edge is None or (window.shape == value.shape and window.dtype is value.dtype)",
    begin="""\
node = head = begin_copy(self, index, edge, None if same else (value.shape, value.dtype))
old = node.edge0
""",
    prepare="""\
if storage.whole is not None or storage.windows is not None:
    storage.preserve(window, index if array is storage.root else None, "__setitem__")
storage.version += 1
""",
    write="window[...] = value",
    note="constant_written(self, window)",
)

# The same for one element and a number, with an edge to the history of the number, which shares no memory and is never
# broadcast.
_NUMBER_HEAD: Final = """\
def _write_number(self, index, value, edge, mode):
    array = self._array
    old = self._edge
    storage = self._storage
    if storage is None:
        storage = storage_of(self)
"""

_NUMBER_STEPS: Final = Steps(
    writer="'__setitem__'",
    check="""\
recorded = mode and (edge is not None or old is not None)
detached = False
if storage.shared or (recorded and type(old) is AccumulateGrad):
    window = window_at(array, index)
    detached = check_write(self, bool(recorded), window if storage.shared else None)
""",
    node="""\
if storage.version > MANY_WRITES and edge is not None:
    absorb(edge, 0 if old is None else old.sequence_nr)
""",
    begin="""\
layout = storage.layout
if layout is None or array is not storage.root or (old is not None and old.hooks is not None):
    node = head = begin_copy(self, index, edge, None)
    old = node.edge0
else:  # what that does for the usual case
    node = head = CopySlicesOfCopy()
    node.edge0 = old
    node.edge1 = edge
    node.index = index
    node.like = None
    node.layout = layout
    node.hooks = UNFINISHED
    node.sequence_nr = next_sequence_nr()
    if self._edge is old:  # no call from here on
        self._edge = node
    else:
        node = head = begin_copy(self, index, edge, None)
        old = node.edge0
""",
    prepare="""\
if storage.whole is not None or storage.windows is not None:
    storage.preserve(window_at(array, index), index if array is storage.root else None, "__setitem__")
storage.version += 1
""",
    write="array[index] = value",
    note="constant_written(self, window)",
)

_ENVIRONMENT: Final[dict[str, Any]] = {
    "CopySlicesOfCopy": CopySlicesOfCopy,
    "MANY_WRITES": MANY_WRITES,
    "Tensor": Tensor,
    "without_overlap": _without_overlap,
    "as_assigned": as_assigned,
    "current_edge": current_edge,
    "is_row_of_its_own": _is_written_window,
    "absorb": absorb,
    "window_at": window_at,
}
_write_array = write_function("_write_array", write_source(_ARRAY_HEAD, _ARRAY_STEPS), _ENVIRONMENT)
_write_number = write_function("_write_number", write_source(_NUMBER_HEAD, _NUMBER_STEPS), _ENVIRONMENT)


def _assign(self: Tensor, index: Any, value: Any) -> None:
    """Implement `self[index] = value` for a basic index, in any mode: a copy into the view."""
    if type(self._array) is not ndarray:
        _ = self._array[index]  # raises NumPy's own errors
        raise scalar_write("__setitem__")
    if type(value) is not Tensor or not _is_same_window(self, index, value):
        if current_mode() & PROFILE and type(self._array) is ndarray:  # in a profile, this view is part of the write
            window = make_view(self, window_at(self._array, index), index, None, SliceBackward, timed=True)
        else:
            window = index_view(self, index, SliceBackward)
        _write(window, value, "__setitem__")


def _is_same_window(self: Tensor, index: Any, value: Tensor) -> bool:
    """Return whether `value` is the window `self[index]` itself, so that assigning it changes nothing."""
    view = value._view
    if view is None or (view.creation is not CreationMeta.DEFAULT and current_mode() & GRAD):
        return False  # the value may have a different history from the window
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


@attrs.define(eq=False)
class CopyInto(Write):
    """A copy into a whole tensor.

    Arguments:
        writer: the name of the function that the user called.
    """

    writer: str = "copy_"

    def write(self) -> None:
        """Copy the values, and record the copy in grad mode."""
        _copy(self.target, self.value, self.writer)


@method
def copy_(self: Tensor, src: Any) -> Tensor:
    """Overwrite the tensor with `src`, broadcast and cast as in a NumPy assignment."""
    _write(self, src, "copy_")
    return self


def _write(self: Tensor, src: Any, writer: str) -> None:
    if type(src) is not Tensor:
        src = as_assigned(src, self.dtype)
    mode = current_mode()
    if mode > GRAD and src is not self:
        run_with_features(CopyInto(self, src, writer=writer, inplace=True), mode)
    else:
        _copy(self, src, writer)


def _copy(self: Tensor, src: Tensor, writer: str) -> None:
    array = self._array
    edge = current_edge(src)
    view, storage = self._view, self._storage
    own: OptionalEdge
    if view is not None and storage is not None and storage.cuts is not None and view.is_before_end:
        own = view.base._edge
    else:
        own = current_edge(self)
    if src is self:
        check_write(self, is_recorded(self, edge, own), overwritten=True)
        return
    source = _without_overlap(src._array, array)
    node: CopyBackwards | None = None
    if is_recorded(self, edge, own):
        node = new(CopyBackwards)
        node.edge0 = None
        node.edge1 = edge
        same = source.shape == array.shape and source.dtype is array.dtype
        node.like = None if edge is None or same else (source.shape, source.dtype)
    write_in_place(self, node, own, setitem, ..., source, writer, overwritten=True)


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one value to every element."""
    return copy_(self, value)


@method
def zero_(self: Tensor) -> Tensor:
    """Set every element to zero."""
    return copy_(self, 0.0)


Tensor.__getitem__ = _getitem  # type: ignore[method-assign]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign]
