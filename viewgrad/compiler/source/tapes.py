"""Runs of programs with a tape: its size, its memory limit, and the reuse of its stacks."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...tensor.masked_backward import holds_nan
from ...type_aliases import Array
from .build import Program
from .runtime import Bailout, CapacityExceeded

TAPE: Final = 1 << 12  # the number of entries in the first run
KEPT_STACKS: Final = 4
KEPT_SIZE: Final = 1 << 22  # items of each stack, 64 MB in total
FEW: Final = 8192  # the number of elements up to which BLAS computes a dot product in one thread
Stacks = tuple[Array, Array]  # the stacks of floats and of integers


class Tapes:
    """Runs programs with as much room on the tape as earlier runs needed.

    The system allocates the pages of a large array one by one when they are first written to, which costs more than the
    writes. The stacks of the last run are therefore kept for the next one, unless a pending gradient reads them.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.spare: list[Stacks] = []  # at most one, and one more for each concurrent thread

    def run(self, program: Program, arrays: Sequence[Any]) -> Any:
        """Return the results of a program and its pullback function.

        Raises:
            Bailout: if a result shares memory with an argument.
        """
        outputs, pullback = self._within_limit(program, arrays)
        for value in outputs[: len(program.results)]:
            if isinstance(value, np.ndarray) and any(
                isinstance(each, np.ndarray) and np.may_share_memory(value, each) for each in arrays
            ):
                raise Bailout
        return outputs, pullback

    def value_and_gradients(self, program: Program, arrays: Sequence[Any]) -> tuple[float, Any]:
        """Return the number that a program computes, and its gradients, or None for them if they contain NaN.

        Eager differentiation produces no NaN if a zero is multiplied by an infinite factor.
        """
        taken: list[Stacks] = []
        (value,), pullback = self._within_limit(program, arrays, taken)
        found = pullback(1.0) if pullback is not None else ()
        if taken and len(self.spare) < KEPT_STACKS and taken[-1][0].size <= KEPT_SIZE:
            self.spare.append(taken[-1])
        for gradient in found:
            if _has_nan(gradient):
                return value, None
        return value, found

    def _stacks(self, size: int, taken: list[Stacks] | None) -> Stacks:
        """Return stacks of a given size.

        Arguments:
            size: the size of each of them.
            taken: a list that receives the stacks, if they may be reused by a later run.
        """
        if taken is None:
            return np.empty(size), np.empty(size, np.int64)
        try:
            stacks = self.spare.pop()  # popped atomically, so that no other thread gets it too
        except IndexError:
            stacks = None
        if stacks is None or stacks[0].size != size:
            stacks = np.empty(size), np.empty(size, np.int64)
        taken.append(stacks)
        return stacks

    def _within_limit(self, program: Program, arrays: Sequence[Any], taken: list[Stacks] | None = None) -> Any:
        """Run a program; if its tape exceeds the limit, run it with its outermost loops in segments."""
        try:
            return self._run(program, arrays, taken)
        except BufferError:
            if program.bounded is not None:
                try:
                    return self._run(program.bounded(), arrays)
                except BufferError:
                    pass
        program.lift_limit()
        return self._run(program, arrays)

    def _run(self, program: Program, arrays: Sequence[Any], taken: list[Stacks] | None = None) -> Any:
        if not program.written.uses_tape:
            return self._quick(program, arrays)
        most = int(program.limit / 8) if program.limit < math.inf else sys.maxsize
        size = min(self.sizes.get(id(program), TAPE), most)
        if program.is_segmented:
            size, taken = most, None
        mutated = program.mutated
        while True:
            given = arrays
            if mutated:
                given = [each.copy() if n in mutated else each for n, each in enumerate(arrays)]
            try:
                found = program.run(*given, *self._stacks(size, taken))
            except BufferError:
                if size >= most:
                    raise
                size = min(8 * size, most)
                self.sizes[id(program)] = size
                continue
            except CapacityExceeded:
                arrays = program.with_more_capacity(arrays)
                continue
            return found

    def _quick(self, program: Program, arrays: Sequence[Any]) -> Any:
        given = [each.copy() if n in program.mutated else each for n, each in enumerate(arrays)]
        try:
            outputs, pullback = program.run(*given)
        except CapacityExceeded:
            return self._quick(program, program.with_more_capacity(arrays))
        except (ZeroDivisionError, OverflowError, ValueError):
            if program.careful is None:
                raise
            return program.careful(*[each.copy() if n in program.mutated else each for n, each in enumerate(arrays)])
        if pullback is None or program.careful is None:
            return outputs, pullback
        careful = program.careful

        def pull(*seeds: Any) -> Any:
            try:
                return pullback(*seeds)
            except (ZeroDivisionError, OverflowError, ValueError):
                _, again = careful(*[each.copy() if n in program.mutated else each for n, each in enumerate(arrays)])
                return again(*seeds)

        return outputs, pull


def default_limit(executor: str) -> float:
    """Return the default limit of a tape in bytes, which is half of the machine's memory."""
    if executor != "numba" or not hasattr(os, "sysconf"):
        return math.inf
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    except (OSError, ValueError):
        return math.inf


def _has_nan(gradient: Any) -> bool:
    """Return whether a gradient contains NaN: its minimum, or the sum of squares of its elements, is then NaN."""
    if not isinstance(gradient, np.ndarray):
        return bool(gradient != gradient)
    total = np.vdot(gradient, gradient) if gradient.size <= FEW or gradient.dtype.kind == "c" else np.minimum.reduce(
        gradient, None)
    return bool(total != total) and holds_nan([gradient])
