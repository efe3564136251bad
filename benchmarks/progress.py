"""Steps of a long measurement: a progress bar on a terminal, a line for each step in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TextIO

from viewgrad.progress import ProgressBar

__all__ = ["Step", "run_steps"]

Step = tuple[str, Callable[[], None]]


def run_steps(steps: Sequence[Step], stream: TextIO | None = None) -> None:
    """Run steps one after the other, and show the running step on `stream` (stderr by default).

    Arguments:
        steps: the name and the function of each step.
        stream: where to show it.
    """
    stream = sys.stderr if stream is None else stream
    bar, started = ProgressBar(stream), perf_counter()
    for number, (name, work) in enumerate(steps):
        if stream.isatty():
            bar.update(name, number, len(steps))
        else:
            print(f"[{perf_counter() - started:6.1f} s, {number}/{len(steps)}] {name}", file=stream, flush=True)
        work()
    bar.finish()
