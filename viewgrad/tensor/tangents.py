"""Tangents: the derivatives that forward mode keeps for tensors.

A tangent is stored at the *root* of a tensor: the base of a view, or otherwise the tensor itself. The tangent of a view
is the same window of the root's tangent, taken on access. The two therefore share memory, whichever tangent was set
first, and writes to either are visible in the other.

A dual tensor created by `make_dual` shares the memory of its primal but has a tangent of its own. Its root, which is
also the root of its views, is a `TangentRoot`. A write to memory with several roots updates all of them. See Note
[Tangents live at roots] in docs/notes/forward_mode.md.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import GradientMismatchError, InterruptedWriteError
from ..type_aliases import Array
from .exported_arrays import has_plain_readers, history_refused
from .forward_levels import LEVEL, DualLevel, at_level, open_levels
from .modes import FORWARD, current_mode
from .node import new
from .saved import SavedTensor
from .storage import save, storage_of
from .tensor import Tensor, current_edge, from_new_array, is_scalar, tensor_like

if TYPE_CHECKING:
    from .view_meta import ViewMeta


class Tangent:
    """The tangent of a root at one level.

    Attributes:
        value: a tensor with the memory layout of the root.
        owned: whether nothing else refers to it, so that it may be written to in place.
    """

    __slots__ = ("owned", "value")

    value: Tensor
    owned: bool

    def __init__(self, value: Tensor, owned: bool) -> None:
        self.value = value
        self.owned = owned

    def __getattr__(self, name: str) -> Any:
        if name == "value":
            raise InterruptedWriteError(
                "an in-place write was interrupted, so the tensor that it wrote to has no tangent; recompute the tensor"
            )
        raise AttributeError(name)


class Tangents:
    """The tangents of a root by level, and the other roots over the same memory.

    Attributes:
        is_of_earlier_level: whether there was a tangent at a level that has been left.
    """

    __slots__ = ("aliases", "is_of_earlier_level", "records")

    def __init__(self) -> None:
        self.is_of_earlier_level = False
        self.records: dict[DualLevel, Any] = {}  # a Tangent; for a `DualSaved`, a saved tangent and its edge
        self.aliases: list[weakref.ref[TangentRoot]] = []


class TangentRoot:
    """The root of a dual tensor and of its views.

    Arguments:
        array: the memory of the dual tensor.
        view: the view that the dual tensor is of its base.
        whole: whether it is the whole of its base.
    """

    __slots__ = ("__weakref__", "_array", "_tangent", "view", "whole")

    def __init__(self, array: Array, view: ViewMeta, whole: bool) -> None:
        self._array = array
        self._tangent = Tangents()
        self.view = view
        self.whole = whole
        aliases = _tangents(view.base).aliases
        aliases[:] = [ref for ref in aliases if ref() is not None]
        aliases.append(weakref.ref(self))


# -- reading -----------------------------------------------------------------------------------------------------------


def tangent_of(tensor: Tensor, level: DualLevel | None = None) -> Tensor | None:
    """Return the tangent of `tensor`, or None for zero.

    Arguments:
        tensor: any tensor.
        level: the level; the innermost open one if omitted.
    """
    view = tensor._view
    tangents = getattr(tensor if view is None else view.tangent_root, "_tangent", None)
    if tangents is None:
        return None
    record = tangents.records.get(LEVEL.get() if level is None else level)
    if record is None:
        return None
    return record.value if view is None else view.tangent_window(record.value)  # type: ignore[no-any-return]


def had_tangent(tensor: Tensor) -> bool:
    """Return whether a tensor has no tangent, but had one at a level that has been left."""
    view = tensor._view
    tangents = getattr(tensor if view is None else view.tangent_root, "_tangent", None)
    return tangents is not None and not tangents.records and tangents.is_of_earlier_level


def take_tangents(tensor: Tensor, source: Tensor) -> None:
    """Move the tangents of a tensor to one that has taken over its memory, is not a view and has no tangents."""
    tangents = getattr(source, "_tangent", None)
    if tangents is not None:
        tensor._tangent = tangents


def shared_tangent(tensor: Tensor, level: DualLevel) -> Tensor | None:
    """Return the tangent of `tensor` for outside use; the next in-place write goes to a copy."""
    root = tensor if tensor._view is None else tensor._view.tangent_root
    record = getattr(root, "_tangent", NONE).records.get(level)
    if record is not None:
        record.owned = False
    return tangent_of(tensor, level)


def write_tangents(tensor: Tensor, source: Tensor, index: Any = None, last: Any = None) -> None:
    """Update the tangents after `source` was written over `tensor`, or over `tensor[index]`.

    Arguments:
        tensor: the tensor that was written to.
        source: the value.
        index: the part that was written, unless it was the whole.
        last: if indices repeat, for each value, the number of the last value written to the same element.
    """
    if tensor._array.dtype.kind not in "fc":
        return
    for level in open_levels():
        with at_level(level.outer):
            tangent = tangent_of(source, level)
            if tangent is not None and last is not None:
                # NumPy accepts additional leading axes of length 1
                tangent = tangent.reshape(tangent.shape[-last.ndim :])
                tangent = tangent.broadcast_to(last.shape).reshape(-1)[last]
            overwrite_tangent(tensor, tangent, level, index=index)


# -- writing -----------------------------------------------------------------------------------------------------------


def check_captured(target: Tensor, sources: Iterable[Any]) -> None:
    """Refuse to write a value with a tangent to a captured array, or to memory shared with a plain array.

    Arguments:
        target: the tensor that is about to be written to.
        sources: the operands of the write; objects that are not tensors have no tangent.

    Raises:
        DetachedConversionError: if one of them has a tangent.
    """
    storage = target._storage
    if storage is None or not has_plain_readers(storage):
        return
    tensors = [source for source in sources if type(source) is Tensor]
    if any(tangent_of(source, level) is not None for source in tensors for level in open_levels()):
        raise history_refused(storage, "has a tangent")


def set_tangent(tensor: Tensor, tangent: Tensor | None, level: DualLevel | None = None) -> None:
    """Set the tangent of `tensor`, which must have its shape, or remove it if None.

    For a view, the base's tangent is modified, or created. `tangent` itself is never written to.

    Arguments:
        tensor: any tensor, of floating-point or complex dtype.
        tangent: the tangent, or None for zero.
        level: the level; the innermost open one if omitted.

    Raises:
        GradientMismatchError: for a tangent of another shape.
    """
    level = LEVEL.get() if level is None else level
    if level is None:
        return
    if tangent is not None and tangent.shape != tensor.shape:
        raise GradientMismatchError(
            f"the tangent supplied has shape {tangent.shape}, but the tensor it belongs to has shape {tensor.shape}"
        )
    with at_level(level.outer):
        if tangent is not None and np.may_share_memory(tangent._array, tensor._array):
            tangent = tangent.clone()  # a write to the tensor must not change its tangent
        overwrite_tangent(tensor, tangent, level)


def make_dual_root(dual: Tensor, source: Tensor, tangent: Tensor | None, level: DualLevel) -> None:
    """Set the tangents of `dual`, which has its own root: `tangent` at `level`, and those of `source` at other levels.

    `tangent` is not copied unless necessary, and never written to.
    """
    root = dual if dual._view is None else dual._view.tangent_root
    source_root = source if source._view is None else source._view.tangent_root
    for other in list(getattr(source_root, "_tangent", NONE).records):
        if other.open and other is not level:
            with at_level(other.outer):
                value = tangent_of(source, other)
                assert value is not None
                _attach(root, value, other, False)
    if tangent is not None:
        with at_level(level.outer):
            if np.may_share_memory(tangent._array, dual._array):
                tangent = tangent.clone()  # a write to the tensor must not change its tangent
            _attach(root, tangent, level, False)


def new_tangent(tensor: Tensor, tangent: Tensor, level: DualLevel) -> None:
    """Set the tangent of a tensor that an operator has just created. Nothing else may refer to the tangent.

    Call this at the level enclosing `level`.
    """
    _attach(tensor, tangent, level, True)


def overwrite_tangent(
    tensor: Tensor, tangent: Tensor | None, level: DualLevel, *, index: Any = None, owned: bool = False
) -> None:
    """Set the tangent of the elements that a write to `tensor` or `tensor[index]` replaced; None means zero.

    To be called at the level enclosing `level`. `tangent` is broadcast and cast as the value was; `owned` states that
    nothing else refers to it.
    """
    view = tensor._view
    root = tensor if view is None else view.tangent_root
    record = getattr(root, "_tangent", NONE).records.get(level)
    if index is None and root._array.shape == tensor._array.shape and (view is None or view.is_root):
        if tangent is not None:
            if record is None or tangent is not record.value:
                _attach(root, tangent, level, owned)
                writable_tangent(tensor, level)  # a copy, unless nothing else refers to it
        elif record is not None:
            del root._tangent.records[level]
    elif record is not None or tangent is not None:
        window = writable_tangent(tensor, level)
        if index is not None:
            window[index] = 0.0 if tangent is None else _cast(tangent, window)
        elif tangent is None:
            window.zero_()
        else:
            window.copy_(_cast(tangent, window))
    update_aliases(tensor, level, index)


def writable_tangent(tensor: Tensor, level: DualLevel) -> Tensor:
    """Return the tangent of `tensor` at `level` for in-place writes, creating it if necessary.

    To be called at the level enclosing `level`.
    """
    view = tensor._view
    root = tensor if view is None else view.tangent_root
    tangents = _tangents(root)
    record = tangents.records.get(level)
    if record is None:
        record = tangents.records[level] = Tangent(from_new_array(np.zeros_like(root._array)), True)
        level.remember(root)
    elif not record.owned:
        record.value = record.value.clone()
        record.owned = True
    return record.value if view is None else view.tangent_window(record.value)


def interrupt_tangents(tensor: Tensor) -> None:
    """Make all tangents of the memory of `tensor` unusable after an unfinished write."""
    if not current_mode() & FORWARD:
        return
    view = tensor._view
    base = tensor if view is None else view.base
    roots = {id(root): root for root in (base, base if view is None else view.tangent_root)}
    roots |= {id(other): other for ref in getattr(base, "_tangent", NONE).aliases if (other := ref()) is not None}
    for root in roots.values():
        tangents = _tangents(root)
        for level in open_levels():
            refusing: Tangent = new(Tangent)
            refusing.owned = False
            tangents.records[level] = refusing
            level.remember(root)


def _attach(root: Tensor | TangentRoot, tangent: Tensor, level: DualLevel, owned: bool) -> None:
    array = root._array
    value = _cast(tangent, root)
    if is_scalar(value) and type(array) is np.ndarray:  # the tangent may be written to, since the value may be
        value = value.clone()
    if value._array.shape != array.shape or not _same_order(value._array, array):
        value = from_new_array(np.zeros_like(array)).copy_(value)
    elif value._view is not None:
        value = value.clone()
    if value is not tangent:
        owned = True
    tangents = _tangents(root)
    record = tangents.records.get(level)
    if record is None:
        level.remember(root)
        tangents.records[level] = Tangent(value, owned)
    else:
        record.value = value
        record.owned = owned


def _same_order(array: Array, other: Array) -> bool:
    """Return whether every view of `other` can also be taken of `array`: both are dense and in the same order."""
    if array.strides == other.strides:
        return True
    flags, others = array.flags, other.flags
    return bool((flags.c_contiguous and others.c_contiguous) or (flags.f_contiguous and others.f_contiguous))


def _cast(tangent: Tensor, like: Tensor | TangentRoot) -> Tensor:
    """Return the tangent in the dtype of `like`."""
    dtype = like._array.dtype
    if tangent._array.dtype == dtype:
        return tangent
    if tangent._array.dtype.kind == "c" and dtype.kind != "c":
        tangent = tangent.real
    return tangent.astype(dtype)


def update_aliases(tensor: Tensor, level: DualLevel, index: Any = None) -> None:
    """Update other roots over the memory of `tensor` with the tangent of a value written to it or to a part of it."""
    view = tensor._view
    base = tensor if view is None else view.base
    root = base if view is None else view.tangent_root
    aliases = getattr(base, "_tangent", NONE).aliases
    if not aliases and root is base:
        return
    others: list[Tensor | TangentRoot] = [] if root is base else [base]
    others += [other for ref in aliases if (other := ref()) is not None and other is not root]
    for other in others:
        _update_other_root(other, tensor, level, index)


def _update_other_root(other: Tensor | TangentRoot, tensor: Tensor, level: DualLevel, index: Any) -> None:
    view = tensor._view
    source = tangent_of(tensor, level)
    record = getattr(other, "_tangent", NONE).records.get(level)
    if source is None and record is None:
        return
    part = other if type(other) is TangentRoot and not other.whole else None
    if part is None:
        if record is None:
            _attach(other, from_new_array(np.zeros_like(other._array)), level, True)
        elif not record.owned:
            record.value = record.value.clone()
            record.owned = True
        full = other._tangent.records[level].value
    else:  # a dual tensor of part of the base: the write may be inside, outside, or across its boundary
        full = from_new_array(np.zeros_like(part.view.base._array))
    window = full if view is None else view.window(full)
    if index is None:
        window.copy_(0.0 if source is None else source)
    else:
        window[index] = 0.0 if source is None else source[index]
    if part is not None:
        written = np.zeros_like(part.view.base._array)
        inside = written if view is None else view.window(written)
        inside[... if index is None else index] = 1
        value = from_new_array(np.zeros_like(other._array)) if record is None else record.value.clone()
        value.copy_where_(part.view.window(full).clone(), part.view.window(written) != 0)
        _attach(other, value, level, True)


def _tangents(root: Tensor | TangentRoot) -> Tangents:
    """Return the tangents of a root, or an empty collection if it has none."""
    tangents = getattr(root, "_tangent", None)
    if tangents is None:
        tangents = root._tangent = Tangents()
    return tangents


NONE: Final = Tangents()  # the tangents of a root without any; never written to


# -- saving ------------------------------------------------------------------------------------------------------------


class DualSaved(SavedTensor):
    """A saved window together with its tangents, for the backward pass of a computation on dual tensors.

    Arguments:
        inner: the saved window.
        tangents: by level, the saved tangent and the edge to its history.
    """

    __slots__ = ("_tangent", "inner")

    def __init__(self, inner: SavedTensor, tangents: dict[DualLevel, Any]) -> None:
        self.inner = inner
        self._tangent = Tangents()
        self._tangent.records = tangents
        # The history of a tangent may lead back to the node that refers to this object until the level is left.
        for level in tangents:
            level.remember(self)

    @property
    def array(self) -> Array:  # type: ignore[override]
        """The value."""
        return self.inner.array

    def restore_onto(self, tensor: Tensor) -> None:
        """Restore the tangents on a tensor created from the saved value."""
        for level, (saved, edge) in self._tangent.records.items():
            if level.open:
                _attach(tensor, tensor_like(saved, edge), level, False)
        if type(self.inner) is SavedTensor:
            if not is_scalar(tensor):
                storage_of(tensor).whole = self.inner
        else:
            self.inner.restore_onto(tensor)


def saved_tangents(tensor: Tensor) -> dict[DualLevel, Any]:
    """Return the saved tangents of `tensor` at the open levels, each with the edge to its history."""
    view = tensor._view
    tangents = getattr(tensor if view is None else view.tangent_root, "_tangent", None)
    if tangents is None:
        return {}
    saved = {}
    for level, record in tangents.records.items():
        if level.open:
            value = record.value if view is None else view.tangent_window(record.value)
            saved[level] = with_tangents(save(value), value), current_edge(value)
    return saved


def with_tangents(saved: SavedTensor, tensor: Tensor) -> SavedTensor:
    """Return the saved value for a node, with the tangents of `tensor` added to `saved`."""
    tangents = saved_tangents(tensor)
    return DualSaved(saved, tangents) if tangents else saved
