"""Where the buffers of a run are: parts of one array, which later runs use again."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

__all__ = ["Room"]

Array = np.ndarray[Any, Any]
LEAST: Final = 8_000  # elements; less memory costs nothing to take anew
MOST: Final = 8_000_000  # elements; so much is not kept for later
SPARE: Final = 2  # arrays that are kept for later runs
ALONE: Final = 2  # references to an argument that nobody else holds, with those of the call


class Room:
    """One array that has parts for many buffers of floats.

    Fresh memory costs more than the arithmetic on it: so an array that is not used any more is kept for a later run.

    Arguments:
        unset: whether the buffers may begin with anything; otherwise they begin with zeros.
    """

    def __init__(self, unset: bool) -> None:
        self.unset = unset
        self.size = 0
        self.parts: list[tuple[str, int, int]] = []
        self._spare: list[Array] = []

    def add(self, name: str, size: int) -> None:
        """One more buffer."""
        self.parts.append((name, self.size, self.size + size))
        self.size += size

    def put(self, buffers: dict[str, Any]) -> Array:
        """Put the buffers of a run, by name, where the others are; returns the array that they are parts of."""
        try:
            array = self._spare.pop()
            if not self.unset:
                array.fill(0.0)
        except IndexError:
            array = np.empty(self.size) if self.unset else np.zeros(self.size)
        for name, start, stop in self.parts:
            buffers[name] = array[start:stop]
        return array

    def take_back(self, arrays: list[Array]) -> None:
        """Keep the last of some arrays for later, where nobody else holds it or a part of it."""
        array = arrays.pop()
        if LEAST <= self.size <= MOST and len(self._spare) < SPARE and sys.getrefcount(array) == ALONE:
            self._spare.append(array)
