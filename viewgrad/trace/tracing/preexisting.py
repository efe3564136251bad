"""Objects that existed before a program was traced: tensors, the arrays that own their memory, random generators."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from itertools import chain, compress, repeat
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from .memory import owner_of

GENERATORS: Final = frozenset({np.random.Generator, np.random.RandomState})


class _Marker:
    """An object that `gc.freeze` hides together with all other existing objects."""


KINDS: Final = GENERATORS | {Tensor, _Marker}


class Existing:
    """The existing tensors and generators, found in one pass over all objects tracked by the garbage collector.

    Objects hidden by `gc.freeze` are found through references to them, once for each freeze.

    Attributes:
        generators: the generators of random numbers.
    """

    def __init__(self) -> None:
        self.generators: list[Any] = []
        self._by_id: dict[int, weakref.ref[Any]] = {}
        visible = _objects()
        for obj in (*visible, *_frozen.objects(visible)):
            if type(obj) is Tensor:
                self._add(obj)
            elif type(obj) in GENERATORS:
                self.generators.append(obj)

    def _add(self, tensor: Tensor) -> None:
        try:
            owner: Any = owner_of(tensor._array)
        except AttributeError:  # an object that is being created elsewhere
            return
        self._by_id[id(tensor)] = weakref.ref(tensor)
        if not isinstance(owner, np.generic):
            self._by_id.setdefault(id(owner), weakref.ref(owner))

    def __contains__(self, obj: Any) -> bool:
        """Return whether a tensor, or an array that owns memory, existed before."""
        found = self._by_id.get(id(obj))
        return found is not None and found() is obj


def _objects() -> list[Any]:
    """Return all objects of the relevant types.

    If there are other threads, the objects are found in one atomic step, since this search would otherwise hold a
    second reference to tuples that other threads are building. It takes three times as long.
    """
    if threading.active_count() == 1:
        objects = gc.get_objects()
        return list(compress(objects, map(KINDS.__contains__, map(type, objects))))
    found = chain.from_iterable(map(gc.get_objects, (None,)))
    twice = chain.from_iterable(map(repeat, found, repeat(2)))  # once for themselves and once for their types
    return list(compress(twice, map(KINDS.__contains__, map(type, twice))))


class _Frozen:
    """The tensors and generators among the objects hidden by `gc.freeze`, which `gc.get_objects` omits.

    The search runs once after each freeze, which is detected by a marker that the freeze hides, since following
    references takes a second for a million objects.
    """

    def __init__(self) -> None:
        self._marker: _Marker | None = None
        self._tensors: list[weakref.ref[Any]] = []
        self._generators: list[Any] = []
        self._lock = threading.Lock()

    def objects(self, visible: list[Any]) -> list[Any]:
        """Return the frozen objects that still exist, given the objects listed by the collector."""
        with self._lock:
            if not any(obj is self._marker for obj in visible):
                found = _referred_to() if gc.get_freeze_count() else []  # counting frozen objects visits all of them
                self._tensors = [weakref.ref(obj) for obj in found if type(obj) is Tensor]
                self._generators = [obj for obj in found if type(obj) in GENERATORS]
                self._marker = _Marker()
            tensors = [reference() for reference in self._tensors]
            return [tensor for tensor in tensors if tensor is not None] + self._generators


def _referred_to() -> list[Any]:
    """Return all objects of some types that are reachable from modules and from the variables of all threads.

    A module is represented by the dictionary of its globals: in CPython 3.12.1 the state of `_asyncio` lists iterators
    that were already deallocated, and reading it twice does not terminate.
    """
    # the variables of this call would form a cycle
    running = sys._current_frames() | {threading.get_ident(): sys._getframe(1)}
    frames = [each for frame in running.values() for each in _callers(frame)]
    level: list[Any] = [sys.modules, *(value for frame in frames for value in frame.f_locals.values())]
    seen: dict[int, Any] = {}
    while level:
        containers = (vars(obj) if type(obj) is types.ModuleType else obj for obj in level)
        unseen = {id(obj): obj for obj in filter(gc.is_tracked, containers) if id(obj) not in seen}
        seen.update(unseen)
        level = gc.get_referents(*unseen.values())
    return [obj for obj in seen.values() if type(obj) in KINDS]


def _callers(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


_frozen: Final = _Frozen()
