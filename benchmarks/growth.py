"""Time over N: every workload on every engine, at growing sizes, in turn on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from benchmarks.backends import Backend, NumPy
from benchmarks.functional import Functional
from benchmarks.measuring import Effort, Timing, growth_exponent, measure_in_turn
from benchmarks.workloads import Workload

__all__ = ["Comparison", "Curve", "compare", "gradient_function"]

Array = np.ndarray[Any, Any]


@attrs.define
class Curve:
    """The times of one workload on one engine, by N."""

    times: dict[int, Timing] = attrs.Factory(dict)

    def seconds(self, n: int) -> float | None:
        """Return the median time at `n`."""
        return self.times[n].median if n in self.times else None

    @property
    def exponent(self) -> float | None:
        """Return the exponent of growth with N, if there are three points or more."""
        if len(self.times) < 3:
            return None
        return growth_exponent({n: timing.median for n, timing in self.times.items()})


@attrs.define
class Comparison:
    """One workload at one width, on all engines; `notes` say how a program was changed for an engine."""

    workload: str
    counts: str
    width: int | None
    curves: dict[str, Curve] = attrs.Factory(dict)
    notes: list[str] = attrs.Factory(list)
    disagreements: list[str] = attrs.Factory(list)

    def ratio(self, engine: str, other: str, n: int) -> float | None:
        """Return the time of one engine at `n`, divided by that of another."""
        if engine not in self.curves or other not in self.curves:
            return None
        one, two = self.curves[engine].seconds(n), self.curves[other].seconds(n)
        return None if one is None or two is None else one / two


def gradient_function(
    workload: Workload, engine: Backend | Functional, arrays: Sequence[Array]
) -> Callable[[], list[Array]] | None:
    """Return a function that runs the workload and returns its gradients (none on NumPy); None if there is none."""
    if isinstance(engine, Functional):
        return engine.gradient_function(workload, arrays)
    program = workload.program_for(engine.name)
    tensors = [
        engine.leaf(array) if i < workload.leaves else engine.constant(array) if array.ndim > 1 else array
        for i, array in enumerate(arrays)
    ]
    leaves = tensors[: workload.leaves]
    if isinstance(engine, NumPy):

        def run() -> list[Array]:
            program(engine, *tensors)
            return []

    elif workload.twice:

        def run() -> list[Array]:
            return engine.gradient_of_gradient(program(engine, *tensors), leaves[0])

    else:

        def run() -> list[Array]:
            return engine.gradient(program(engine, *tensors), leaves)

    return run


def compare(
    workload: Workload,
    engines: Sequence[Backend | Functional],
    sizes: Sequence[int],
    effort: Effort,
    width: int | None = None,
    limits: dict[str, float] | None = None,
    largest: dict[str, int] | None = None,
) -> Comparison:
    """Measure a workload at the given sizes, on each engine up to the size at which it is too slow.

    Arguments:
        workload: the workload.
        engines: the engines, including this library, with which the gradients of all others are compared.
        sizes: the values of N, ascending.
        effort: the time limits; an engine is dropped when a run at the next size would take longer than its limit.
        width: the length of a row; by default that of the workload.
        limits: by engine, a limit in seconds that replaces that of `effort`.
        largest: by engine, the largest N to measure; by default the last of `sizes`.
    """
    width = workload.width if width is None else width
    result = Comparison(workload.name, workload.counts, width)
    running = list(engines)
    for position, n in enumerate(sizes):
        arrays = workload.inputs(n, width or 0)
        programs: dict[str, Callable[[], list[Array]]] = {}
        expected: list[Array] = []
        for engine in sorted(running, key=lambda engine: engine.name != "viewgrad"):
            try:
                program = gradient_function(workload, engine, arrays)
                if program is None:
                    result.notes.append(f"{engine.name}: has no form of this program")
                    running.remove(engine)
                    continue
                if position == 0:
                    gradients = program()
                    if engine.name == "viewgrad":
                        expected = gradients
                    elif engine.name != "numpy" and expected and not _agree(gradients, expected):
                        result.disagreements.append(f"{workload.name}: {engine.name} and viewgrad differ")
                        running.remove(engine)
                        continue
            except Exception as error:  # a failing engine must not stop the measurement of the others
                result.notes.append(f"{engine.name}: {type(error).__name__}: {str(error)[:200]}")
                running.remove(engine)
                continue
            programs[engine.name] = program
            if position == 0 and engine.name in workload.variants:
                result.notes.append(f"{engine.name}: {workload.variants[engine.name].note}")
        for name, timing in measure_in_turn(programs, effort).items():
            result.curves.setdefault(name, Curve()).times[n] = timing
        del programs, arrays
        if position + 1 < len(sizes):
            for engine in list(running):
                limit = (limits or {}).get(engine.name, effort.limit)
                expectation = _next_time(result.curves[engine.name], sizes[position + 1])
                if expectation > limit or n >= (largest or {}).get(engine.name, sizes[-1]):
                    running.remove(engine)
                    result.notes.append(
                        f"{engine.name}: not run beyond {n}, where the next size may take {expectation:.2g} s"
                    )
    return result


def _agree(gradients: Sequence[Array], expected: Sequence[Array]) -> bool:
    return all(np.allclose(mine, theirs, rtol=1e-7, atol=1e-9) for mine, theirs in zip(gradients, expected))


def _next_time(curve: Curve, n: int) -> float:
    """Return the expected time of a run at `n`: extrapolated from the last two sizes, at least proportional to `n`."""
    sizes = list(curve.times)
    last = curve.times[sizes[-1]].median
    factor = n / sizes[-1]
    if len(sizes) > 1:
        factor = max(factor, last / curve.times[sizes[-2]].median)
    return last * factor
