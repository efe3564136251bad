"""Measurement of times: in turn, repeatedly, and within a time budget."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import attrs
import numpy as np

__all__ = ["Effort", "Timing", "growth_exponent", "measure_in_turn", "warm_time"]


@attrs.frozen
class Effort:
    """The time limits of a measurement.

    Arguments:
        repeats: the number of samples of each engine, if the budget permits.
        sample: the minimum time of a sample, in seconds; a short program runs several times in one sample.
        budget: the maximum time of all samples of one engine together, in seconds.
        limit: the maximum time of one run, in seconds, after which the next larger size is still measured.
    """

    repeats: int = 7
    sample: float = 0.01
    budget: float = 1.0
    limit: float = 5.0


@attrs.frozen
class Timing:
    """The times of one program on one engine, in seconds per run."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median of the samples."""
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        """Return the shortest of the samples."""
        return min(self.samples)


def measure_in_turn(
    programs: Mapping[str, Callable[[], Any]], effort: Effort, prepare: Mapping[str, Callable[[], Any]] | None = None
) -> dict[str, Timing]:
    """Measure programs that compute the same on different engines, in turn, so that a slow phase of the machine affects
    all of them.

    Arguments:
        programs: the programs, by the name of the engine.
        effort: the time limits.
        prepare: functions to run, untimed, before each run of a program; such a program runs once in a sample.
    """
    prepare = prepare or {}
    numbers: dict[str, int] = {}
    repeats: dict[str, int] = {}
    samples: dict[str, list[float]] = {name: [] for name in programs}
    # Existing objects, such as the modules of all engines, are hidden from the garbage collector; objects that the
    # programs create are collected as for any user.
    gc.collect()
    gc.freeze()
    try:
        for name, program in programs.items():
            once = warm_time(program, prepare.get(name))
            numbers[name] = 1 if name in prepare else max(1, round(effort.sample / once))
            repeats[name] = max(1, min(effort.repeats, int(effort.budget / (once * numbers[name]))))
            if once > effort.budget:  # this run has to do
                samples[name].append(once)
        for turn in range(effort.repeats):
            for name, program in programs.items():
                if len(samples[name]) < repeats[name] and turn < repeats[name]:
                    samples[name].append(_sample(program, numbers[name], prepare.get(name)))
    finally:
        gc.unfreeze()
    return {name: Timing(tuple(times)) for name, times in samples.items()}


def warm_time(program: Callable[[], Any], prepare: Callable[[], Any] | None = None) -> float:
    """Return the time of one run; for a short program, of a later one."""
    once = _sample(program, 1, prepare)
    return once if once > 0.2 else min(once, _sample(program, 1, prepare))


def _sample(program: Callable[[], Any], number: int, prepare: Callable[[], Any] | None) -> float:
    gc.collect()
    if prepare is not None:
        prepare()
    start = perf_counter()
    for _ in range(number):
        program()
    return (perf_counter() - start) / number


def growth_exponent(sizes: Mapping[int, float]) -> float:
    """Return the exponent of growth of a quantity with size: the slope of a line through their logarithms."""
    x = np.log(np.array(list(sizes), float))
    y = np.log(np.array(list(sizes.values()), float))
    return float(np.polyfit(x, y, 1)[0])
