"""Plain arrays over the memory of a tensor that were exported inside a transform.

A class that is not adopted, or a library, may keep such an array. If a value with a history were written to the tensor
while the array exists, readers of the array would get the number without the history. Such writes are therefore
refused.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np

from ..errors import DetachedConversionError
from ..type_aliases import Array
from .conversions import captured_write_refused, noted
from .saved_windows import address_of
from .storage import Storage

# The storages that have exported arrays, by address, with the objects that these arrays keep alive.
_EXPORTS: Final[dict[int, tuple[weakref.ref[Storage], weakref.WeakSet[Window]]]] = {}


class Window:
    """An object from which `numpy.asarray` creates an array over a window of memory; every view of that array keeps it
    alive.
    """

    __slots__ = ("__array_interface__", "__weakref__", "memory")

    def __init__(self, interface: dict[str, Any], memory: Array) -> None:
        self.__array_interface__ = interface
        self.memory = memory


def window_at(array: Array, address: int, memory: Array, *, is_writable: bool = True) -> Window:
    """Return an array over memory at an address, with the shape and strides of a given array.

    Arguments:
        array: the array.
        address: the address of its first element.
        memory: the array that owns the memory there.
        is_writable: whether arrays created from it are writable.
    """
    interface = {"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str, "version": 3}
    return Window(interface | {"data": (address, not is_writable)}, memory)


def export_array(storage: Storage, array: Array, *, is_writable: bool = False) -> Array:
    """Return an array over the memory of a storage, and track it as long as it exists.

    Arguments:
        storage: the storage.
        array: the array of a tensor on it.
        is_writable: whether the returned array is writable.
    """
    window = window_at(array, address_of(array), array, is_writable=is_writable)
    known = _EXPORTS.get(id(storage))
    if known is None or known[0]() is not storage:
        key = id(storage)
        known = _EXPORTS[key] = weakref.ref(storage, lambda _: _EXPORTS.pop(key, None)), weakref.WeakSet()
    known[1].add(window)
    return np.asarray(window)


def has_exports(storage: Storage) -> bool:
    """Return whether an array returned by `export_array` still refers to the memory of a storage."""
    if not _EXPORTS:
        return False
    known = _EXPORTS.get(id(storage))
    return known is not None and known[0]() is storage and len(known[1]) > 0


def has_plain_readers(storage: Storage) -> bool:
    """Return whether a plain array, captured or exported, shares the memory of a storage."""
    return storage.captured or has_exports(storage)


def history_refused(storage: Storage, what: str) -> DetachedConversionError:
    """Return the error for writing a value with a history to memory that has plain readers.

    Arguments:
        storage: the memory.
        what: the property that an array cannot have: "requires grad" or "has a tangent".
    """
    return noted(DetachedConversionError(captured_write_refused(what, is_exported=not storage.captured)))
