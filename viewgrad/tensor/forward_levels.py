"""The levels of forward mode: the open blocks in which tensors can have tangents."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

from .modes import FORWARD, MODE

FIRST_PRUNE: Final = 64  # the number of holders of a level above which dead ones are removed


class DualLevel:
    """An open block of forward mode, in which each tensor may have a tangent.

    Attributes:
        outer: the level around it, if any.
        open: whether the block is still open.
    """

    __slots__ = ("_holders", "_limit", "open", "outer")

    def __init__(self, outer: DualLevel | None) -> None:
        self.outer = outer
        self.open = True
        self._holders: list[weakref.ref[Any]] = []
        self._limit = FIRST_PRUNE

    def remember(self, holder: Any) -> None:
        """Remove the tangent of `holder` when the level is left."""
        holders = self._holders
        holders.append(weakref.ref(holder))
        if len(holders) > self._limit:
            self._holders = [ref for ref in holders if ref() is not None]
            self._limit = max(FIRST_PRUNE, 2 * len(self._holders))

    def close(self) -> None:
        """Drop all tangents."""
        self.open = False
        for ref in self._holders:
            holder = ref()
            if holder is not None:
                holder._tangent.records.pop(self, None)
                holder._tangent.is_of_earlier_level = True
        self._holders = []


LEVEL: Final[ContextVar[DualLevel | None]] = ContextVar("viewgrad_dual_level", default=None)


def open_levels() -> list[DualLevel]:
    """Return the open levels of the current context, outermost first."""
    levels = []
    level = LEVEL.get()
    while level is not None:
        if level.open:  # a context that was copied inside a block may outlive it
            levels.append(level)
        level = level.outer
    return levels[::-1]


class at_level:
    """A context in which `level` is the innermost open level; if None, no level is open.

    The tangents of a level are computed at the enclosing level, so they have tangents of their own there.
    """

    __slots__ = ("_level", "_level_before", "_mode_before")

    def __init__(self, level: DualLevel | None) -> None:
        self._level = level

    def __enter__(self) -> None:
        self._level_before = LEVEL.get()
        LEVEL.set(self._level)
        mode = MODE.get()
        self._mode_before = mode & FORWARD
        MODE.set(mode & ~FORWARD if self._level is None else mode | FORWARD)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        LEVEL.set(self._level_before)
        MODE.set(MODE.get() & ~FORWARD | self._mode_before)
