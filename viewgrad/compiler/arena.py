"""The arena of a run: one array that contains many buffers and is reused by later runs."""

from __future__ import annotations

import contextlib
from typing import Final

import numpy as np

from ..tensor.refcounts import ALONE_AFTER_POP, getrefcount
from ..type_aliases import Array

LEAST: Final = 8_000  # elements; allocating less memory than this costs nothing
MOST: Final = 8_000_000  # elements; larger arrays are not kept
SPARE: Final = 2  # the maximum number of arrays kept for later runs


class Arena:
    """An array that contains many buffers of floats.

    Allocating memory costs more than the arithmetic on it, so an array that is no longer used is kept for a later run.

    Arguments:
        name: the name of the array in the generated source.
        unset: whether the buffers may be uninitialized; otherwise they are initialized to zeros.

    Attributes:
        parts: by buffer name, the positions of its first element and behind its last.
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
        """Return the array for a run."""
        if self._spare:
            with contextlib.suppress(IndexError):  # another thread was first
                array = self._spare.pop()
                if not self.unset:
                    array.fill(0.0)
                return array
        return np.empty(self.size) if self.unset else np.zeros(self.size)

    def take_back(self, arrays: list[Array]) -> None:
        """Keep the last of several arrays for later runs, if nothing else refers to it or a part of it."""
        array = arrays.pop()
        if LEAST <= self.size <= MOST and len(self._spare) < SPARE and getrefcount(array) <= ALONE_AFTER_POP:
            self._spare.append(array)
