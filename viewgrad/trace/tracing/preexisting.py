"""Objects that existed before a program was traced: tensors, the arrays that own their memory, random generators."""

from __future__ import annotations

import gc
import threading
import weakref
from itertools import chain, compress, repeat
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from .memory import owner_of

__all__ = ["Existing"]

KINDS: Final = frozenset({Tensor, np.random.Generator, np.random.RandomState})


class Existing:
    """The tensors and generators that there are, found in one pass over all objects that Python's collector knows.

    Attributes:
        generators: those of random numbers.
    """

    def __init__(self) -> None:
        self.generators: list[Any] = []
        self._known: dict[int, weakref.ref[Any]] = {}
        for thing in _objects():
            if type(thing) is Tensor:
                self._add(thing)
            else:
                self.generators.append(thing)

    def _add(self, tensor: Tensor) -> None:
        try:
            owner: Any = owner_of(tensor._array)
        except AttributeError:  # one that is just being made, elsewhere
            return
        self._known[id(tensor)] = weakref.ref(tensor)
        if not isinstance(owner, np.generic):
            self._known.setdefault(id(owner), weakref.ref(owner))

    def __contains__(self, thing: Any) -> bool:
        """Return whether a tensor, or an array that owns memory, was there."""
        found = self._known.get(id(thing))
        return found is not None and found() is thing


def _objects() -> list[Any]:
    """Return all objects of these kinds.

    If there are other threads, they are found in one step that none of these comes between. Else there would be
    another reference to tuples that they are making, which they must not have. It takes three times as long.
    """
    if threading.active_count() == 1:
        objects = gc.get_objects()
        return list(compress(objects, map(KINDS.__contains__, map(type, objects))))
    found = chain.from_iterable(map(gc.get_objects, (None,)))
    twice = chain.from_iterable(map(repeat, found, repeat(2)))  # each of them once for itself, and once for its type
    return list(compress(twice, map(KINDS.__contains__, map(type, twice))))
