"""CPU time of a check, without the time of Python's garbage collector.

A collection takes time in proportion to the objects of the whole process. If it counted, the calls that a check has
time for would depend on what else is imported.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from typing import Any


class _Collections:
    """The CPU time that collections have taken, and when the current one began."""

    seconds = 0.0
    began = 0.0


def cpu_seconds() -> float:
    """Return the CPU time of this process, without that of collections inside `collections_timed`."""
    return time.process_time() - _Collections.seconds


@contextlib.contextmanager
def collections_timed() -> Iterator[None]:
    """Return a context in which `cpu_seconds` stands still during garbage collections; it may be nested."""
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
    """Return a context in which collections leave out all objects made before it."""
    if gc.get_freeze_count():  # the user has frozen objects, which would be thawed
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _note(phase: str, info: dict[str, Any]) -> None:
    if phase == "start":
        _Collections.began = time.process_time()
    else:
        _Collections.seconds += time.process_time() - _Collections.began
