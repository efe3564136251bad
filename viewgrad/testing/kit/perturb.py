"""A function of several arrays treated as a function of one vector, with perturbed arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from ...type_aliases import Array
from .contract import Structure
from .operator_under_test import Refused, real_parts


@attrs.frozen(eq=False)
class Moves:
    """A function of several arrays treated as a function of one vector.

    Arguments:
        values: a function that returns the outputs for other arrays, or raises `Refused`.
        arrays: the starting point.
        wanted: the arrays that are perturbed.
        coarse: whether the function is known to compute in single precision for any dtype.
        structures: by array, the set of arrays within which it is perturbed.
    """

    values: Callable[[Sequence[Array]], Sequence[Array]]
    arrays: tuple[Array, ...]
    wanted: tuple[int, ...]
    coarse: bool = False
    structures: Mapping[int, Structure] = attrs.Factory(dict)

    @property
    def tangent(self) -> Array | None:
        """Return the derivative of the projection of the arrays onto their structures, or None if there are none."""
        if not any(k in self.structures for k in self.wanted):
            return None
        sizes = [real_parts(self.arrays[k]).size for k in self.wanted]
        jacobian = np.eye(sum(sizes))
        taken = 0
        for k, size in zip(self.wanted, sizes, strict=True):
            if k in self.structures:
                own = slice(taken, taken + size)
                jacobian[own, own] = self.structures[k].jacobian(self.arrays[k])
            taken += size
        return jacobian

    @property
    def start(self) -> Array:
        """The wanted arrays as one real vector."""
        return np.concatenate([real_parts(self.arrays[k]) for k in self.wanted] or [np.empty(0)])

    def parts(self) -> list[Array]:
        """Return the positions of each wanted array in the vector, in a single group if there are many arrays."""
        sizes = [real_parts(self.arrays[k]).size for k in self.wanted]
        slots = np.repeat(np.arange(len(sizes)), sizes)
        return [slots == i for i in range(len(sizes))] if len(sizes) <= 4 else [slots >= 0]

    @property
    def single(self) -> bool:
        """True if a perturbed array has less than double precision."""
        return any(np.finfo(self.arrays[k].dtype).eps > 1e-10 for k in self.wanted)

    def moved(self, vector: Array) -> list[Array]:
        """Return the arrays with the wanted ones set to `vector`."""
        arrays = list(self.arrays)
        taken = 0
        for k in self.wanted:
            array = arrays[k]
            size = array.size * (2 if array.dtype.kind == "c" else 1)
            part = vector[taken : taken + size]
            taken += size
            moved = (part.view(complex) if array.dtype.kind == "c" else part).reshape(array.shape)
            if k in self.structures:
                moved = np.asarray(self.structures[k].tangent(moved))
            arrays[k] = moved.astype(array.dtype)
        return arrays

    def at(self, vector: Array) -> Array | None:
        """Return the outputs at a point as one vector, or None if there are none."""
        try:
            outputs = self.values(self.moved(vector))
        except (Refused, RuntimeError):
            return None
        return np.concatenate([real_parts(output) for output in outputs] or [np.empty(0)])

    def beside(self, vector: Array, start: Array) -> Array | None:
        """Return the outputs at a point, or None unless there are as many as at the start."""
        found = self.at(vector)
        return found if found is not None and found.shape == start.shape else None

    def element(self, column: int) -> tuple[int, int, int]:
        """Return the array, flat index and part (0: real, 1: imaginary) at a position of the vector."""
        for k in self.wanted:
            array = self.arrays[k]
            parts = 2 if array.dtype.kind == "c" else 1
            if column < array.size * parts:
                return k, column // parts, column % parts
            column -= array.size * parts
        raise IndexError(column)

    def column(self, slot: int, flat: int) -> int:
        """Return the position in the vector of (the real part of) an element."""
        place = 0
        for k in self.wanted:
            parts = 2 if self.arrays[k].dtype.kind == "c" else 1
            if k == slot:
                return place + flat * parts
            place += self.arrays[k].size * parts
        raise IndexError(slot)
