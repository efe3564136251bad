"""The CPU time of a check, excluding Python's garbage collections.

A collection takes time proportional to the number of objects in the process. If collections were included, the number
of calls in a check would depend on the other imported modules.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from typing import Any


class _Collections:
    """The CPU time of collections so far, and the start of the current one."""

    seconds = 0.0
    began = 0.0


def cpu_seconds() -> float:
    """Return the CPU time of this process, excluding collections inside `collections_timed`."""
    return time.process_time() - _Collections.seconds


@contextlib.contextmanager
def collections_timed() -> Iterator[None]:
    """Exclude garbage collections from `cpu_seconds` in a block; such blocks may be nested."""
    if _note in gc.callbacks:
        yield
        return
    gc.callbacks.append(_note)
    try:
        yield
    finally:
        gc.callbacks.remove(_note)


@contextlib.contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude all existing objects from garbage collections in a block, which may disable these."""
    was_enabled = gc.isenabled()
    freezes = not gc.get_freeze_count()  # otherwise, the user's frozen objects would be unfrozen at the end
    if freezes:
        gc.collect()
        gc.freeze()
    try:
        yield
    finally:
        if freezes:
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def _note(phase: str, info: dict[str, Any]) -> None:
    if phase == "start":
        _Collections.began = time.process_time()
    else:
        _Collections.seconds += time.process_time() - _Collections.began
