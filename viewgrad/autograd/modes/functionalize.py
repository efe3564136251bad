"""Functionalization: under `func.functionalize`, the target of a write is assigned a new value instead.

The new value is computed out of place, by operators that are recorded like any others. If the target is a view, its
base is assigned a value with the window replaced, computed by the operator `_overwritten`. The tensor objects that
share the memory remain the same; their arrays and histories change. See Note [Functional writes] in
docs/notes/functionalize.md.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ...operators.define import row
from ...operators.derivatives.helpers import call as call_either
from ...operators.interception import OperatorCall
from ...tensor.forward_levels import at_level
from ...tensor.indices import add_at, window_at
from ...tensor.interceptors import feature
from ...tensor.modes import FORWARD, FUNCTIONAL, GRAD, TRACE, ModeSwitch, current_mode
from ...tensor.node import OptionalEdge
from ...tensor.storage import Storage, WriteLock
from ...tensor.tangents import check_captured, write_tangents
from ...tensor.tensor import Tensor, as_buffered, current_edge, from_array, root_of
from ...tensor.trace_hooks import OBSERVER
from ...tensor.tracked_storage import SESSION, TrackedStorage, copy_of_layout, move
from ...type_aliases import Array
from ...views.advanced_indexing import Accumulate, Write
from ...views.detached_views import catch_up, constant_written, step_written
from ...views.meta import set_history
from ...views.view_functions import ViewFunction
from ...views.view_nodes import take_window, zeros_for
from ...views.write_checks import check_write


@attrs.frozen(eq=False)
class Part:
    """A part of a tensor that can be read, and replaced in a copy.

    Arguments:
        shape: the shape of the tensor.
        index: the basic index of the window that contains the part, if there is one.
        view_fn: the function that takes the window if there is no such index.
        items: the index arrays that select the part of the window; None for the whole window.
        last: if indices repeat, for each value the number of the value that is written last to its element.
    """

    shape: tuple[int, ...]
    index: Any = ...
    view_fn: ViewFunction | None = None
    items: tuple[Any, ...] | None = None
    last: Array | None = None

    @classmethod
    def of(cls, tensor: Tensor, items: tuple[Any, ...] | None = None, last: Array | None = None) -> Part:
        """Return the part `items` of a tensor in its base; None selects the whole tensor."""
        view = tensor._view
        if view is None:
            return cls(tensor.shape, items=items, last=last)
        return cls(view.base.shape, view.index, view.view_fn, items, last)

    @property
    def is_whole(self) -> bool:
        """Return whether the part is known to be the whole tensor."""
        return self.view_fn is None and self.index is ... and self.items is None

    def replaced(self, array: Array, values: Any) -> Array:
        """Return a copy of `array` with `values` in this part."""
        copied: Array = np.array(array, order="K")
        window = take_window(copied, self.index, self.view_fn)
        if window is None:  # in the layout of the copy
            copied, window = zeros_for(self.view_fn, (array.shape, array.dtype, "C"))
            copied[...] = array
        self.write(window, values)
        return copied

    def write(self, window: Array, values: Any) -> None:
        """Write `values` to this part of the window."""
        if self.last is not None:
            values = np.broadcast_to(values, self.last.shape).ravel()[self.last]
        window[... if self.items is None else self.items] = values

    def of_values(self, grad: Any) -> Any:
        """Return the gradient of `values`, given the gradient of the result of `replaced`."""
        grad = grad if isinstance(grad, Tensor) else np.asarray(grad)
        part = window_at(grad, self.index) if self.view_fn is None else self.view_fn(grad)
        if self.items is not None:
            part = part[self.items]
        if self.last is not None:
            part = part * (self.last == np.arange(self.last.size).reshape(self.last.shape))
        return part

    def of_rest(self, grad: Any) -> Any:
        """Return the gradient of the tensor in which values were replaced, or None for zero."""
        return None if self.is_whole else call_either("_overwritten", grad, 0.0, self)

    def __repr__(self) -> str:
        window = "" if self.view_fn is None and self.index is ... else f", {self.view_fn or self.index}"
        return f"Part({self.shape}{window}{'' if self.items is None else f', {self.items}'})"


row(
    "_overwritten(self, values, part)",
    lambda self, values, part: part.replaced(self, values),
    {"self": "part.of_rest(grad)", "values": "part.of_values(grad)"},
    forward_derivative="auto_linear",
    masks_gradient=True,
    method=False,
    dtype_kinds="fc",
    returns_0d_arrays=True,
    doc="A copy of the tensor with `values` written to a part: a write under `functionalize`.",
)


def accumulated_forward(self: Array, values: Array, items: Any) -> Array:
    result = np.array(self, order="K")
    add_at(result, items, values)
    return result


row(
    "_accumulated(self, values, items)",
    accumulated_forward,
    {"self": "grad", "values": "grad[items]"},
    forward_derivative="auto_linear",
    method=False,
    dtype_kinds="fc",
    returns_0d_arrays=True,
    doc="A copy of the tensor with `values` added at the indexed positions, repeated indices included.",
)


# -- replacements of in-place operators --------------------------------------------------------------------------------


@feature(FUNCTIONAL, OperatorCall)
def out_of_place(called: OperatorCall, run: Callable[[], Any]) -> Any:
    """Run the operator instead of its in-place variant; the result becomes the new value of the first argument."""
    if not called.inplace:
        return run()
    operator = called.operator
    target: Tensor = called.args[0]
    if operator.inplace_declaration is None:
        value = operator.function(*called.args, **called.kwargs)
    else:  # the row declares another variant, which is applied to a private copy
        value = target.clone()
        with ModeSwitch(off=FUNCTIONAL):
            operator.inplace_function(value, *called.args[1:], **called.kwargs)
    if value.shape != target.shape:
        raise ValueError(
            f"{operator.name}_: a result of shape {value.shape} cannot be written to a tensor of shape {target.shape}"
        )
    if not np.can_cast(value.dtype, target.dtype, "same_kind"):
        raise TypeError(f"{operator.name}_: a result of {value.dtype} cannot be written to a tensor of {target.dtype}")
    renew(target, value)
    return target


@feature(FUNCTIONAL, Write)
def overwrite_instead(called: Write, run: Callable[[], Any]) -> Tensor:
    """Replace the value of a tensor instead of writing to it."""
    return overwrite(called.target, called.value, called.items, called.last)


@feature(FUNCTIONAL, Accumulate)
def accumulate_instead(called: Accumulate, run: Callable[[], Any]) -> Tensor:
    """Replace the value of a tensor instead of adding to it."""
    return accumulate(called.target, called.items, called.value)


def overwrite(
    target: Tensor, values: Tensor, items: tuple[Any, ...] | None = None, last: Array | None = None
) -> Tensor:
    """Set `target`, or `target[items]`, to its value after a write of `values`; return `target`.

    Arguments:
        target, values: tensors; the values are broadcast and cast, as in a NumPy assignment.
        items: index arrays, if only these elements are written.
        last: if indices repeat, for each value, the number of the last value written to the same element.
    """
    recorded, noted = _checked(target, values)
    part = Part.of(target, items, last)
    base = root_of(target)
    with at_level(None), ModeSwitch(off=0 if recorded else GRAD):
        new = call_either("_overwritten", base, values, part)
    _adopt(base, new, target, lambda window: part.write(window, values._array), recorded)
    noted(target, index=... if items is None else items)
    if current_mode() & FORWARD:
        write_tangents(target, values, items, last)
    return target


def accumulate(target: Tensor, items: Any, values: Tensor) -> Tensor:
    """Set `target` to its value after adding `values` to `target[items]`; return `target`."""
    renew(target, call_either("_accumulated", target, values, items), items)
    return target


def renew(target: Tensor, value: Tensor, items: Any = ...) -> None:
    """Replace the value of `target` by a newly computed one, which differs only at the given positions."""
    if value.dtype != target.dtype:
        value = value.astype(target.dtype)
    value = as_buffered(value)  # the target is an array, but a 0-d result is a scalar
    recorded, noted = _checked(target, value)
    base = root_of(target)
    new = value
    if base is not target:
        with at_level(None), ModeSwitch(off=0 if recorded else GRAD):
            new = as_buffered(call_either("_overwritten", base, value, Part.of(target)))
    array = value._array
    _adopt(base, new, target, lambda window: np.copyto(window, array), recorded)
    noted(target, index=items)
    if current_mode() & FORWARD:
        write_tangents(target, value)


def rebase(view: Tensor, edge: OptionalEdge) -> None:
    """Make `edge` lead to the history of a view's new value, and record the change in the base."""
    catch_up(view)
    base = root_of(view)
    value = from_array(view._array, edge)
    with at_level(None), ModeSwitch(on=GRAD):
        new = call_either("_overwritten", from_array(base._array, base._edge), value, Part.of(view))
    set_history(base, new._edge)
    step_written(view)


# -- new values --------------------------------------------------------------------------------------------------------


def tensors_over(storage: Storage) -> list[Tensor]:
    """Return all tensors over a storage, searching all objects if they are not tracked."""
    if type(storage) is TrackedStorage and storage.session is SESSION.get():
        return [tensor for ref in storage.tensors if (tensor := ref()) is not None]
    holders: list[Any] = gc.get_referrers(storage)
    return [holder for holder in holders if isinstance(holder, Tensor)]


def _checked(target: Tensor, values: Tensor) -> tuple[bool, Callable[..., None]]:
    """Raise the error that the write itself would raise.

    Returns:
        Whether the write is recorded, and whether to call `constant_written` after it; see `views/detached_views.py`.
    """
    edge, view = current_edge(values), target._view
    own = current_edge(target)
    if view is not None and view.is_before_end:  # in this case only the history of the values matters
        own = view.base._edge
    kind = target._array.dtype.kind
    recorded = (edge is not None or own is not None) and bool(current_mode() & GRAD) and kind in "fc"
    check_captured(target, (values,))
    behind = check_write(target, recorded, overwritten=True)  # by a value that was computed, or will be
    storage = target._storage
    if storage is not None and isinstance(storage.windows, WriteLock):
        storage.windows.pop_overlapping(None, None)
    if recorded:
        catch_up(target)
        return True, step_written
    if current_mode() & TRACE and storage is not None and any(each._edge is not None for each in tensors_over(storage)):
        OBSERVER.get().refuse(  # the new value would be traced with its own history
            f"writing without recording, inside functionalize, to a tensor of shape {target.shape} with a history"
        )
    return False, constant_written if behind else _no_write_recorded


def _no_write_recorded(target: Tensor, index: Any) -> None:
    pass


def _adopt(base: Tensor, new: Tensor, target: Tensor, write: Callable[[Array], None], recorded: bool) -> None:
    """Replace the value, and if recorded the history, of `base` by those of `new`, in every tensor over its memory.

    Arguments:
        base: the base of `target`, or `target` itself.
        new: its new value, to which nothing else refers.
        target: the target of the write.
        write: a function that writes to a window.
        recorded: whether the history changes too.
    """
    storage = base._storage
    if storage is not None and storage.captured:  # the user's array is written to, as without functionalization
        write(target._array)
        storage.version += 1
        return
    tensors = [base] if storage is None else tensors_over(storage)
    root = base._array if storage is None else storage.root
    if base._array is root and new._array.strides == root.strides:
        moved = new._array
    else:
        moved = copy_of_layout(root)
        write(move(target._array, root, moved))
    tracked = TrackedStorage(moved, storage, tensors)
    tracked.writes += 1
    if moved is new._array:
        saved = new._saved if new._storage is None else new._storage.whole
        tracked.whole = saved
    for tensor in tensors:
        tensor._array = move(tensor._array, root, moved)
        tensor._storage = tracked
        tensor._saved = None
    if recorded:
        set_history(base, new._edge)
