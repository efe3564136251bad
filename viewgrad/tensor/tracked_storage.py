"""Storages that track all of their tensors, so that another storage can replace them.

They are used under `func.functionalize`. A write to a storage goes to a copy of it instead, which then becomes the
storage of all tensors over the old one. See `autograd/modes/functionalize.py`.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import numpy as np

from ..type_aliases import Array
from .exported_arrays import window_at
from .saved_windows import address_of, reach_of
from .storage import Storage

if TYPE_CHECKING:
    from .tensor import Tensor

FIRST_PRUNE: Final = 64  # the number of tensors of a storage above which dead ones are dropped


class Session:
    """An outermost call of a functionalized function, during which all tensors on tracked storages are registered."""

    __slots__ = ()


SESSION: Final[ContextVar[Session | None]] = ContextVar("viewgrad_session", default=None)


class TrackedStorage(Storage):
    """A storage that tracks the tensors over it.

    Attributes:
        session: the call during which it tracks tensors.
        tensors: the tensors.
        writes: the number of writes to the storages that it has replaced.
    """

    __slots__ = ("session", "tensors", "writes")

    session: Session | None
    tensors: list[weakref.ref[Tensor]]
    writes: int  # type: ignore[misc]

    def __init__(self, root: Array, before: Storage | None, tensors: list[Tensor]) -> None:
        super().__init__(root)
        self.session = SESSION.get()
        self.tensors = [weakref.ref(tensor) for tensor in tensors]
        self.writes = 0
        if before is not None:
            self.shared, self.cuts = before.shared, before.cuts
            self.writes = before.writes
            if before.inference:
                self.inference = True


def share(tensor: Tensor, other: Tensor, alone: bool) -> None:
    """Record that `other` shares the memory of `tensor`; `alone` states that nothing shared it before."""
    storage = tensor._storage
    assert storage is not None
    if alone:
        tracked = TrackedStorage(storage.root, storage, [tensor, other])
        tracked.whole = storage.whole
        tensor._storage = other._storage = tracked
    elif type(storage) is TrackedStorage and storage.session is SESSION.get():
        tensors = storage.tensors
        tensors.append(weakref.ref(other))
        count = len(tensors)
        if count > FIRST_PRUNE and count & (count - 1) == 0:
            storage.tensors = [ref for ref in tensors if ref() is not None]


def move(array: Array, root: Array, moved: Array) -> Array:
    """Return the window of `moved` that corresponds to `array` in `root`; both have the same memory layout."""
    if array is root:
        return moved
    if not array.size:
        return array
    address = address_of(array) + address_of(moved) - address_of(root)
    return np.asarray(window_at(array, address, moved, is_writable=array.flags.writeable))


def copy_of_layout(array: Array) -> Array:
    """Return a copy with the same strides, including gaps."""
    copied = array.copy(order="K")
    if copied.strides == array.strides or not array.size:
        return copied
    before, behind, _ = reach_of(array)
    memory = np.empty(before + behind, np.uint8)
    placed: Array = np.ndarray(array.shape, array.dtype, memory, before, array.strides)
    placed[...] = array
    return placed
