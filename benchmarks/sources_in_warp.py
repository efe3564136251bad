"""Programs for NVIDIA Warp on the CPU: one thread, with arrays for overwritten values. It needs warp-lang."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp

__all__ = ["made"]

DOUBLES = wp.array(dtype=wp.float64)
ONE = wp.constant(wp.float64(1.0))


@wp.kernel
def holt_winters(p: DOUBLES, y: DOUBLES, level: DOUBLES, trend: DOUBLES, season: DOUBLES, total: DOUBLES):  # type: ignore[no-untyped-def,valid-type]
    level[0] = y[0]
    for t in range(1, y.shape[0]):
        error = y[t] - (level[t - 1] + trend[t - 1] + season[t])
        wp.atomic_add(total, 0, error * error)
        level[t] = p[0] * (y[t] - season[t]) + (ONE - p[0]) * (level[t - 1] + trend[t - 1])
        trend[t] = p[1] * (level[t] - level[t - 1]) + (ONE - p[1]) * trend[t - 1]
        season[t + 52] = p[2] * (y[t] - level[t]) + (ONE - p[2]) * season[t]


@wp.kernel
def overwritten(a: DOUBLES, x: DOUBLES, state: DOUBLES, total: DOUBLES):  # type: ignore[no-untyped-def,valid-type]
    state[0] = a[1]
    for t in range(x.shape[0]):
        state[0] = a[0] * state[0] * (ONE - state[0]) + x[t]
        wp.atomic_add(total, 0, state[0])


KERNELS = {
    "holt-winters": (holt_winters, lambda n: [n, n, n + 52]),
    "overwritten": (overwritten, lambda n: [1]),
}  # fmt: skip


def made(name: str) -> Callable[..., tuple[float, Sequence[Any]]] | None:
    """Return the function for the value and gradients of a program; None if it is not written for Warp."""
    if name not in KERNELS:
        return None
    wp.config.quiet = True
    wp.config.kernel_cache_dir = tempfile.mkdtemp(prefix="viewgrad-benchmarks-")  # so that kernels are compiled
    wp.init()
    kernel, sizes = KERNELS[name]

    def run(*given: Any) -> tuple[float, Sequence[Any]]:
        with wp.ScopedDevice("cpu"):
            inputs = [wp.array(each, dtype=wp.float64, requires_grad=True) for each in given]
            others = [wp.zeros(n, dtype=wp.float64, requires_grad=True) for n in sizes(len(given[-1]))]
            total = wp.zeros(1, dtype=wp.float64, requires_grad=True)
            tape = wp.Tape()
            with tape:
                wp.launch(kernel, dim=1, inputs=[*inputs, *others, total])
            tape.backward(loss=total)
            return float(total.numpy()[0]), [np.array(each.grad.numpy()) for each in inputs]

    return run
