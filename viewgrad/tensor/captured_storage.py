"""Captured arrays: NumPy arrays that an adopted function finds outside, and that other code may write to unnoticed.

Nodes that save such an array share one copy of it. Whether the array still equals the copy is found out by comparing
them: at each of the first reads, after 8, 16 and 32 more, before each write by viewgrad to memory that other code may
write to, and at the end of the call. So a loop that reads a large matrix does not compare it in each step. In programs
that use objects through which other code may write to arrays, every read is compared. Should other code write to an
array between two comparisons after all, `SavedValueError` is raised: which of the reads came after it is unknown.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Final

import numpy as np

from ..type_aliases import Array
from .modes import TRACE, current_mode
from .saved import LostCopy, SavedCopy, SavedTensor, unseen_write
from .saved_windows import SavedWindows
from .storage import Storage, copied

FIRST: Final = 8  # the number of reads, one after the other, that are compared before any is not
LAST: Final = 64  # the number of reads from which on none is compared


class AdoptedCalls(threading.local):
    """The calls of adopted functions from outside that are in progress in a thread.

    Attributes:
        depth: the number of calls, each made by the one before.
    """

    depth = 0


CALLS: Final = AdoptedCalls()


class Surroundings:
    """What a program captures.

    Attributes:
        have_writers: whether it contains objects through which code that is not adopted may write to arrays.
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
        copy: the copy of the whole array that nodes share, as a function that returns it, or None; a large one exists
            only as long as a node uses it.
        equal: the number of comparisons, one after the other, in which the array equalled the copy.
        assumed: the copy while the array is assumed to equal it.
        granted: the number of reads that follow the last comparison without another one.
        unchecked: how many of these are left; -1 if they are not counted.
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
        """Return the saved value of a window: for the whole array, the copy shared by all nodes."""
        if self._inference or array is not self.root:
            return super().save(array, index) if self._inference else copied(array)
        found = self.assumed
        if found is not None and self.unchecked and not current_mode() & TRACE:
            self.unchecked -= 1
            return found
        return self._compared(array)

    def _compared(self, array: Array) -> SavedTensor:
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
                self._let_tensor_have(found)
        return found

    def _let_tensor_have(self, saved: SavedCopy | None) -> None:
        """Let the tensor return a saved value without asking its storage."""
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
            self._let_tensor_have(None)
        if found is None or self.unchecked == self.granted or found.matches(self.root):
            return True
        found.__class__ = LostCopy
        self.copy = _none
        return False


ASSUMED: Final[set[CapturedStorage]] = set()  # the arrays assumed to equal their copies, in all threads
WATCHED: Final[set[weakref.ref[Storage]]] = set()  # memory that may be part of a captured array


def watch(storage: Storage) -> None:
    """Let captured arrays be compared before a write to memory that may be part of one."""
    WATCHED.add(weakref.ref(storage, WATCHED.discard))  # in a third of the time of a `WeakSet`
    if ASSUMED:
        storage.windows = SEEN_WRITES


def _set_windows(windows: SavedWindows | None) -> None:
    """Let writes to watched memory call `SeenWrites`, or no longer, which makes them faster."""
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
    """What a storage has in place of its saved windows while a write to it may change a captured array."""

    __slots__ = ()

    def pop_overlapping(self, window: Array | None, index: Any, keep: bool = False) -> list[SavedTensor]:
        """Compare all captured arrays just before a write; values saved from foreign memory are copies."""
        refuse_unseen_writes()
        return []


SEEN_WRITES: Final = SeenWrites(np.empty(()))
