"""Memory: what a recorded operation keeps, what a workload needs at its peak, and how long a chain may be."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import attrs
import numpy as np

from benchmarks.backends import NumPy, Viewgrad
from benchmarks.growth import gradient_function
from benchmarks.measuring import growth_exponent
from benchmarks.workloads import Workload

__all__ = ["ELEMENTWISE", "WRITES", "Peak", "long_chain", "peaks", "retained_bytes"]

Step = Callable[[Viewgrad, Any, Mapping[str, Any]], Any]


def _imul(b: Viewgrad, y: Any, t: Mapping[str, Any]) -> Any:
    y *= t["c"]
    return y


def _set(b: Viewgrad, y: Any, t: Mapping[str, Any]) -> Any:
    y[1:3] = t["h"]
    return y


def _imul_view(b: Viewgrad, y: Any, t: Mapping[str, Any]) -> Any:
    y[1:3] *= t["h"]
    return y


ELEMENTWISE: Final[dict[str, Step]] = {
    "y + c": lambda b, y, t: y + t["c"],
    "y * c": lambda b, y, t: y * t["c"],
    "y * x, both differentiated": lambda b, y, t: y * t["x"],
    "y / x, both differentiated": lambda b, y, t: y / t["x"],
    "sin(y)": lambda b, y, t: b.sin(y),
    "exp(y) (and y * 0.3)": lambda b, y, t: b.exp(y) * 0.3,
    "y *= c": _imul,
}
WRITES: Final[dict[str, Step]] = {
    "y[1:3] = h": _set,
    "y[1:3] *= h": _imul_view,
}


def retained_bytes(step: Step, operations: int = 5000) -> float:
    """Return the bytes that stay allocated per operation of a chain on tensors of 4 elements, results included."""
    b = Viewgrad()
    tensors = {
        "x": b.leaf(np.linspace(0.9, 1.1, 4)),
        "c": b.constant(np.linspace(0.9, 1.1, 4)),
        "h": b.leaf(np.linspace(0.9, 1.1, 2)),
    }
    y = step(b, tensors["x"] * 1.0, tensors)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(operations):
            y = step(b, y, tensors)
        return (tracemalloc.get_traced_memory()[0] - before) / operations
    finally:
        tracemalloc.stop()


@attrs.frozen
class Peak:
    """The memory of one workload at several N, in bytes beyond what was there before it started."""

    workload: str
    peak: Mapping[int, int]
    plain: Mapping[int, int]
    inputs: Mapping[int, int]
    outputs: Mapping[int, int]

    @property
    def exponent(self) -> float:
        """Return the exponent of growth of the peak with N."""
        return growth_exponent(self.peak)

    def times_the_inputs(self, n: int) -> float:
        """Return the peak at `n` without the returned gradients, in multiples of the memory of the inputs."""
        return (self.peak[n] - self.outputs[n]) / self.inputs[n]


def peaks(workload: Workload, sizes: Sequence[int]) -> Peak:
    """Return the peak memory of a workload: of its gradient, and of the plain NumPy program."""
    peak: dict[int, int] = {}
    plain: dict[int, int] = {}
    inputs: dict[int, int] = {}
    outputs: dict[int, int] = {}
    for n in sizes:
        arrays = workload.inputs(n, workload.width or 0)
        inputs[n] = sum(array.nbytes for array in arrays[: workload.leaves])
        for engine, found in ((NumPy(), plain), (Viewgrad(), peak)):
            program = gradient_function(workload, engine, arrays)
            assert program is not None
            gc.collect()
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                gradients = program()
                found[n] = tracemalloc.get_traced_memory()[1] - before
            finally:
                tracemalloc.stop()
            outputs[n] = sum(gradient.nbytes for gradient in gradients)
    return Peak(workload.name, peak, plain, inputs, outputs)


def long_chain(operations: int) -> dict[str, float]:
    """Return the seconds to record, differentiate and free a chain of in-place operations."""
    b = Viewgrad()
    x, c = b.leaf(np.ones(4)), b.constant(np.full(4, 1.0 + 1e-9))
    times = {}
    start = perf_counter()
    y = x * c
    for _ in range(operations):
        y *= c
    total = y.sum()
    times["recording"] = perf_counter() - start
    start = perf_counter()
    total.backward(retain_graph=True)
    times["backward"] = perf_counter() - start
    start = perf_counter()
    del y, total
    times["deallocation"] = perf_counter() - start
    return times
