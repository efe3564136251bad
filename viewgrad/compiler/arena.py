"""The arena of a run: one array whose parts are buffers, which later runs reuse."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import numpy as np

from ..tensor.refcounts import ALONE_AFTER_POP, getrefcount

Array = np.ndarray[Any, Any]
LEAST: Final = 8_000  # elements; allocating less memory costs nothing
MOST: Final = 8_000_000  # elements; larger arrays are not kept
SPARE: Final = 2  # arrays that are kept for later runs


class Arena:
    """One array that has parts for many buffers of floats.

    Fresh memory costs more than the arithmetic on it: so an array that is no longer used is kept for a later run.

    Arguments:
        name: the name of the array in the source, whose parts are the buffers.
        unset: whether the buffers may begin with anything; otherwise they begin with zeros.

    Attributes:
        parts: by name of a buffer, its first element and the one after its last.
    """

    def __init__(self, name: str, unset: bool) -> None:
        self.name = name
        self.unset = unset
        self.size = 0
        self.parts: dict[str, tuple[int, int]] = {}
        self._spare: list[Array] = []

    def add(self, name: str, size: int) -> None:
        """Add a buffer."""
        self.parts[name] = (self.size, self.size + size)
        self.size += size

    def array(self) -> Array:
        """Return the array of a run."""
        if self._spare:
            with contextlib.suppress(IndexError):  # another thread was first
                array = self._spare.pop()
                if not self.unset:
                    array.fill(0.0)
                return array
        return np.empty(self.size) if self.unset else np.zeros(self.size)

    def take_back(self, arrays: list[Array]) -> None:
        """Keep the last of some arrays for later if nothing else holds it or a part of it."""
        array = arrays.pop()
        if LEAST <= self.size <= MOST and len(self._spare) < SPARE and getrefcount(array) <= ALONE_AFTER_POP:
            self._spare.append(array)
