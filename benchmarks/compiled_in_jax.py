"""The compiled programs as JAX takes them: as a textbook has them, and rewritten for it.

It needs JAX. The loops of textbooks are `fori_loop`, in which an array is updated with `.at`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["jitted"]

SEASON: Final = 52
Array = np.ndarray[Any, Any]


def jitted(name: str, arrays: Sequence[Array]) -> dict[str, Callable[[], tuple[float, list[Array]]]]:
    """The forms of a program, by the names of the engines: each gives its value and gradients."""
    jax.config.update("jax_enable_x64", True)

    def ready(function: Any) -> Callable[[], tuple[float, list[Array]]]:
        both = jax.jit(jax.value_and_grad(function, tuple(range(len(arrays)))))

        def run() -> tuple[float, list[Array]]:
            value, gradients = jax.block_until_ready(both(*arrays))
            return float(value), list(map(np.asarray, gradients))

        return run

    return {engine: ready(function) for engine, function in FORMS.get(name, {}).items()}


def winters_textbook(p: Any, y: Any) -> Any:
    n = len(y)

    def step(t: Any, state: Any) -> Any:
        level, trend, season, total = state
        error = y[t] - (level[t - 1] + trend[t - 1] + season[t])
        base = level[t - 1] + trend[t - 1]
        level = level.at[t].set(p[0] * (y[t] - season[t]) + (1 - p[0]) * base)
        trend = trend.at[t].set(p[1] * (level[t] - level[t - 1]) + (1 - p[1]) * trend[t - 1])
        season = season.at[t + SEASON].set(p[2] * (y[t] - level[t]) + (1 - p[2]) * season[t])
        return level, trend, season, total + error * error

    start = (jnp.zeros(n).at[0].set(y[0]), jnp.zeros(n), jnp.zeros(n + SEASON), 0.0)
    return jax.lax.fori_loop(1, n, step, start)[3]


def winters_rewritten(p: Any, y: Any) -> Any:
    def step(state: Any, seen: Any) -> Any:
        level, trend, season, k = state
        now = season[k]
        error = seen - (level + trend + now)
        new = p[0] * (seen - now) + (1 - p[0]) * (level + trend)
        slope = p[1] * (new - level) + (1 - p[1]) * trend
        season = season.at[k].set(p[2] * (seen - new) + (1 - p[2]) * now)
        return (new, slope, season, (k + 1) % SEASON), error * error

    return jax.lax.scan(step, (y[0], 0.0, jnp.zeros(SEASON), 1), y[1:])[1].sum()


def warping_textbook(costs: Any) -> Any:
    n = len(costs)

    def cell(k: Any, r: Any) -> Any:
        i, j = k // n + 1, k % n + 1
        total = jnp.exp(-r[i - 1, j - 1]) + jnp.exp(-r[i - 1, j]) + jnp.exp(-r[i, j - 1])
        return r.at[i, j].set(costs[i - 1, j - 1] - jnp.log(total + 1e-300))

    start = jnp.full((n + 1, n + 1), 1e3).at[0, 0].set(0.0)
    return jax.lax.fori_loop(0, n * n, cell, start)[n, n]


def warping_rewritten(costs: Any) -> Any:
    n = len(costs)
    padded = jnp.pad(costs, ((1, 0), (1, 0)), constant_values=0.0)
    rows = jnp.arange(n + 1)

    def diagonal(state: Any, d: Any) -> Any:
        before, last = state
        columns = d - rows
        inside = (rows >= 1) & (columns >= 1) & (columns <= n)
        cost = padded[rows, jnp.clip(columns, 0, n)]
        up, left = jnp.roll(last, 1), last
        total = jnp.exp(-jnp.roll(before, 1)) + jnp.exp(-up) + jnp.exp(-left)
        now = jnp.where(inside, cost - jnp.log(total + 1e-300), 1e3)
        return (last, now), None

    first = jnp.full(n + 1, 1e3).at[0].set(0.0)
    (_, last), _ = jax.lax.scan(diagonal, (first, jnp.full(n + 1, 1e3)), jnp.arange(2, 2 * n + 1))
    return last[n]


def heat_textbook(u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        change = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.1 * change)

    u = jax.lax.fori_loop(0, 100, step, u)
    return (u * u).sum()


def heat_rewritten(u: Any) -> Any:
    """Without writes, and without indices in the loop: the edge is a mask."""
    inside = jnp.zeros(u.shape).at[1:-1, 1:-1].set(0.1)

    def step(u: Any, _: Any) -> Any:
        change = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        return u + inside * change, None

    u, _ = jax.lax.scan(step, u, None, length=100)
    return (u * u).sum()


def row_fill_textbook(x: Any) -> Any:
    return jax.lax.fori_loop(0, len(x), lambda i, y: y.at[i].set(x[i] * 2.0), jnp.zeros_like(x)).sum()


def row_fill_rewritten(x: Any) -> Any:
    return jax.lax.map(lambda row: row * 2.0, x).sum()


def recurrence_textbook(x: Any, a: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        return y.at[i].set(a * y[i - 1] + x[i])

    y = jax.lax.fori_loop(1, len(x), step, jnp.zeros_like(x).at[0].set(x[0]))
    return (y * y).sum()


def recurrence_rewritten(x: Any, a: Any) -> Any:
    def step(last: Any, row: Any) -> Any:
        now = a * last + row
        return now, now

    _, y = jax.lax.scan(step, jnp.zeros_like(x[0]), x)
    return (y * y).sum()


FORMS: Final = {
    "holt-winters": {"JAX": winters_textbook, "JAX, rewritten": winters_rewritten},
    "soft-dtw": {"JAX": warping_textbook, "JAX, rewritten": warping_rewritten},
    "heat": {"JAX": heat_textbook, "JAX, rewritten": heat_rewritten},
    "row-fill": {"JAX": row_fill_textbook, "JAX, rewritten": row_fill_rewritten},
    "recurrence": {"JAX": recurrence_textbook, "JAX, rewritten": recurrence_rewritten},
}
