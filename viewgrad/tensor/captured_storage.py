"""Captured arrays: NumPy arrays that an adopted function finds outside, and that other code may write to unnoticed.

Nodes that save such an array, or a window of a small one, share one copy of it. The array is compared with the copy at
each of the first reads, then after 8, 16 and 32 further reads, before each write by viewgrad to memory that may be part
of the array, and at the end of the call; comparing a large matrix in each step of a loop would cost more than a product
with it. Programs that capture objects through which other code may write to arrays compare at every read; see
`adoption/unseen_writers.py`. If other code writes to an array between two comparisons all the same, `SavedValueError`
is raised, because it is unknown which reads came after the write.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Final

import numpy as np

from ..type_aliases import Array
from .modes import TRACE, current_mode
from .saved import LARGE, LostCopy, SavedCopy, SavedPart, SavedTensor, unseen_write
from .saved_windows import SavedWindows
from .storage import Storage, copied

FIRST: Final = 8  # the number of consecutive reads with an equal array after which reads are compared rarely
LAST: Final = 64  # the length of the interval between comparisons from which on reads are no longer compared


class AdoptedCalls(threading.local):
    """The calls of adopted functions from outside that are in progress in a thread.

    Attributes:
        depth: the number of calls, each made by the one before.
    """

    depth = 0


CALLS: Final = AdoptedCalls()


class Surroundings:
    """The state shared by all arrays that a program captures.

    Attributes:
        have_writers: whether the program also captures objects through which unadopted code may write to arrays.
    """

    have_writers = False


class CapturedStorage(Storage):
    """The memory of a NumPy array that a function captures: a global, a default or an attribute.

    Numbers may be written to it, as to the array. Values with a history are refused: the array outlives the call, and
    later readers would find the numbers without the history.

    Arguments:
        array: the array.
        surroundings: the program that captures it.

    Attributes:
        copy: a function that returns the copy of the whole array that nodes share, or None. A large copy exists only as
            long as a node refers to it.
        equal: the number of consecutive comparisons in which the array equalled the copy.
        assumed: the copy, while the array is assumed to equal it; otherwise None.
        granted: the number of reads allowed between the last comparison and the next.
        unchecked: how many of these reads remain; -1 if reads are no longer counted.
        tensor: a weak reference to the tensor over the whole array.
    """

    __slots__ = ("assumed", "copy", "equal", "granted", "surroundings", "tensor", "unchecked")

    captured = True

    def __init__(self, array: Array, surroundings: Surroundings) -> None:
        super().__init__(array, foreign=True)
        self.surroundings: Final = surroundings
        watch(self)
        self.copy: Any = _none
        self.equal = 0
        self.assumed: SavedCopy | None = None
        self.unchecked = self.granted = 0
        self.tensor: Any = _none

    def save(self, array: Array, index: Any) -> SavedTensor:
        """Return the saved value of a window: part of the copy shared by all nodes, unless the array is large."""
        if self._inference:
            return super().save(array, index)
        root = self.root
        if array is not root and (index is None or root.nbytes >= LARGE):
            return copied(array)
        found = self.assumed
        if found is not None and self.unchecked and not current_mode() & TRACE:
            self.unchecked -= 1
            shared: SavedTensor = found
        elif array is not root and current_mode() & TRACE:
            return copied(array)
        else:
            shared = self._compared(root)
        if array is root:
            return shared
        saved = SavedPart()
        saved.copy = shared
        saved.index = index
        return saved

    def _compared(self, array: Array) -> SavedTensor:
        """Return the copy shared by all nodes, which is compared with the array, or replaced if that has changed."""
        if current_mode() & TRACE:  # which records the copies that are made in it
            return copied(array)
        found: SavedCopy | None = self.copy()
        if found is not None and found.matches(array):
            self.equal += 1
        else:
            if not self.settle():
                raise unseen_write()
            found = SavedCopy(array)
            self.copy = weakref.ref(found) if found.elements is None else lambda: found
            self.equal = 0
        # The end of the call compares again.
        if self.equal >= FIRST and CALLS.depth and not self.surroundings.have_writers:
            self.granted = self.unchecked = FIRST if self.assumed is None else 2 * self.granted
            self.assumed = found
            is_first = not ASSUMED
            ASSUMED.add(self)  # before the next line, so that another thread sees it in `settle`
            if is_first:
                _set_windows(SEEN_WRITES)
            if self.granted == LAST:
                self.unchecked = -1
                self._cache_on_tensor(found)
        return found

    def _cache_on_tensor(self, saved: SavedCopy | None) -> None:
        """Store a saved value on the tensor, where operators find it without a call of `save`."""
        tensor = self.tensor()
        if tensor is not None:
            tensor._saved = saved

    def settle(self) -> bool:
        """Stop assuming that the array equals the copy, and return whether it did at each read.

        If not, the copy becomes unusable.
        """
        found, self.assumed = self.assumed, None
        self.equal = 0
        ASSUMED.discard(self)
        if self.unchecked < 0:
            self._cache_on_tensor(None)
        if found is None or self.unchecked == self.granted or found.matches(self.root):
            return True
        found.__class__ = LostCopy
        self.copy = _none
        return False


ASSUMED: Final[set[CapturedStorage]] = set()  # the arrays assumed to equal their copies, in all threads
WATCHED: Final[set[weakref.ref[Storage]]] = set()  # memory that may be part of a captured array


def watch(storage: Storage) -> None:
    """Register memory that may be part of a captured array: writes to it compare all captured arrays first."""
    WATCHED.add(weakref.ref(storage, WATCHED.discard))  # in a third of the time of a `WeakSet`
    if ASSUMED:
        storage.windows = SEEN_WRITES


def _set_windows(windows: SavedWindows | None) -> None:
    """Install `SEEN_WRITES` on all watched storages, or remove it, since writes are faster without it."""
    for reference in list(WATCHED):
        storage = reference()
        if storage is not None and (storage.windows is None or storage.windows is SEEN_WRITES):
            storage.windows = windows


def _none() -> None:
    return None


def settle() -> bool:
    """Stop assuming anything about captured arrays, and return whether they equalled their copies at each read."""
    if not ASSUMED:
        return True
    lost = [storage for storage in tuple(ASSUMED) if not storage.settle()]
    _set_windows(None)
    if ASSUMED:  # by another thread
        _set_windows(SEEN_WRITES)
    return not lost


def refuse_unseen_writes() -> None:
    """Raise `SavedValueError` if other code has written to a captured array since its value was saved."""
    if not settle():
        raise unseen_write()


class SeenWrites(SavedWindows):
    """The hook that compares captured arrays before a write, in place of the saved windows of a watched storage.

    Watched storages have no saved windows: values saved from memory that other code may write to are copies.
    """

    __slots__ = ()

    def pop_overlapping(self, window: Array | None, index: Any, keep: bool = False) -> list[SavedTensor]:
        """Compare all captured arrays with their copies, just before a write."""
        refuse_unseen_writes()
        return []


SEEN_WRITES: Final = SeenWrites(np.empty(()))
