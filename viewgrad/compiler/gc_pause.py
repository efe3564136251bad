"""Raise the garbage collector's threshold while tracing.

A trace consists of millions of small objects, none of them garbage. The collector scans all of them whenever their
number has grown by a quarter, and the young ones after every 700 allocations, which takes half of the time of tracing.
While a function is traced and compiled, the young ones are scanned less often. Cycles are still collected.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import Final

RARE: Final = 100_000  # the number of new objects between collections of the young generation
_lock: Final = threading.Lock()
_nested: Final = [0]  # the number of traces in progress, in any thread
_before: Final = [gc.get_threshold()]


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the threshold of the garbage collector in a block."""
    with _lock:
        if not _nested[0]:
            _before[0] = gc.get_threshold()
            if 0 < _before[0][0] < RARE:
                gc.set_threshold(RARE, *_before[0][1:])
        _nested[0] += 1
    try:
        yield
    finally:
        with _lock:
            _nested[0] -= 1
            if not _nested[0] and gc.get_threshold()[0] == RARE:
                gc.set_threshold(*_before[0])
