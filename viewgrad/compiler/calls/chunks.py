"""The examples of a batch split into chunks, which run on all cores.

The chunks are always the same, so that sums over examples do not depend on the number of cores.
"""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

CHUNKS: Final = 16  # the maximum number of chunks of a batch
LONG: Final = 400_000  # the minimum number of elements computed per example for which threads pay off


def by_chunks(work: Callable[[int, int, int], None], count: int, is_parallel: bool) -> None:
    """Call `work(chunk, start, stop)` for each chunk of a batch.

    Threads that wait for the interpreter's lock after every short kernel take longer than a single thread.

    Arguments:
        work: a function of the number of a chunk and the range of its examples.
        count: the number of examples.
        is_parallel: whether chunks are run on all cores.
    """
    chunks = min(CHUNKS, count)
    bounds = [count * chunk // chunks for chunk in range(chunks + 1)] if chunks else []
    spans = list(zip(range(chunks), bounds, bounds[1:]))
    if not is_parallel or chunks < 2 or _cores() < 2:
        for span in spans:
            work(*span)
        return
    pool = _pool()
    futures = [pool.submit(contextvars.copy_context().run, functools.partial(work, *span)) for span in spans]
    for error in [future.exception() for future in futures]:
        if error is not None:
            raise error


@functools.cache
def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores(), thread_name_prefix="viewgrad-batch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process does not have its parent's threads
