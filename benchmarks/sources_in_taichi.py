"""Programs for Taichi on the CPU, in one serial loop, with fields for values that have a gradient. It needs taichi."""

from collections.abc import Callable, Sequence
from typing import Any

import taichi as ti

__all__ = ["made"]


@ti.kernel
def holt_winters(p: ti.template(), y: ti.template(), level: ti.template(), trend: ti.template(),  # type: ignore[no-untyped-def,valid-type]
                 season: ti.template(), total: ti.template()):
    for _ in range(1):
        level[0] = y[0]
        for t in range(1, y.shape[0]):
            error = y[t] - (level[t - 1] + trend[t - 1] + season[t])
            total[0] += error * error
            level[t] = p[0] * (y[t] - season[t]) + (1 - p[0]) * (level[t - 1] + trend[t - 1])
            trend[t] = p[1] * (level[t] - level[t - 1]) + (1 - p[1]) * trend[t - 1]
            season[t + 52] = p[2] * (y[t] - level[t]) + (1 - p[2]) * season[t]


@ti.kernel
def overwritten(a: ti.template(), x: ti.template(), state: ti.template(), total: ti.template()):  # type: ignore[no-untyped-def,valid-type]
    for _ in range(1):
        state[0] = a[1]
        for t in range(x.shape[0]):
            state[0] = a[0] * state[0] * (1.0 - state[0]) + x[t]
            total[0] += state[0]


KERNELS = {
    "holt-winters": (holt_winters, lambda n: [n, n, n + 52]),
    "overwritten": (overwritten, lambda n: [1]),
}  # fmt: skip


def made(name: str) -> Callable[..., tuple[float, Sequence[Any]]] | None:
    """Return the function for the value and gradients of a program; None if it is not written for Taichi."""
    if name not in KERNELS:
        return None
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR, cpu_max_num_threads=1, offline_cache=False,
            ad_stack_size=4096)  # more iterations than the programs have; with fewer, they crash
    kernel, sizes = KERNELS[name]
    fields: dict[Any, Any] = {}

    def run(*given: Any) -> tuple[float, Sequence[Any]]:
        shapes = tuple([len(each) for each in given])
        if shapes not in fields:
            fields[shapes] = [ti.field(ti.f64, shape=n, needs_grad=True) for n in (*shapes, *sizes(shapes[-1]), 1)]
        found = fields[shapes]
        for field in found:
            field.fill(0.0)
            field.grad.fill(0.0)
        for field, each in zip(found, given):
            field.from_numpy(each)
        kernel(*found)
        found[-1].grad[0] = 1.0
        kernel.grad(*found)
        return float(found[-1][0]), [field.grad.to_numpy() for field in found[: len(given)]]

    return run
