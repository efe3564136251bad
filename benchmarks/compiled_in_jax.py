"""The compiled programs in JAX: as in the textbook, and rewritten for JAX.

It needs JAX. The loops of textbooks are `fori_loop`, in which an array is updated with `.at`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["forms_of", "jitted"]

SEASON: Final = 52
Array = np.ndarray[Any, Any]


def jitted(name: str, arrays: Sequence[Array]) -> dict[str, Callable[[], tuple[float, list[Array]]]]:
    """Return the forms of a program, by engine; each returns value and gradients."""
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
    """Run the heat equation without writes, and without indices in the loop: a mask selects the edge."""
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


def overwritten_textbook(a: Any, x: Any) -> Any:
    def step(t: Any, carried: Any) -> Any:
        state, total = carried
        state = state.at[0].set(a[0] * state[0] * (1.0 - state[0]) + x[t])
        return state, total + state[0]

    return jax.lax.fori_loop(0, len(x), step, (jnp.zeros(1).at[0].set(a[1]), 0.0))[1]


def overwritten_rewritten(a: Any, x: Any) -> Any:
    def step(state: Any, each: Any) -> Any:
        new = a[0] * state * (1.0 - state) + each
        return new, new

    return jax.lax.scan(step, a[1], x)[1].sum()


def thomas_textbook(diagonal: Any, right: Any) -> Any:
    n = len(right)

    def ahead(i: Any, state: Any) -> Any:
        c, d = state
        w = diagonal[i] + c[i - 1]
        return c.at[i].set(-1.0 / w), d.at[i].set((right[i] + d[i - 1]) / w)

    start = jnp.zeros(n).at[0].set(-1.0 / diagonal[0]), jnp.zeros(n).at[0].set(right[0] / diagonal[0])
    c, d = jax.lax.fori_loop(1, n, ahead, start)

    def back(k: Any, d: Any) -> Any:
        i = n - 2 - k
        return d.at[i].add(-c[i] * d[i + 1])

    d = jax.lax.fori_loop(0, n - 1, back, d)
    return (d * d).sum()


def kalman_textbook(p: Any, y: Any) -> Any:
    def step(t: Any, state: Any) -> Any:
        m, v, loss = state
        v = v + p[0] * p[0]
        is_missing = jnp.isnan(y[t])
        s = v + p[1] * p[1]
        gain = v / s
        error = jnp.where(is_missing, 0.0, y[t]) - m
        more = 0.5 * (jnp.log(s) + error * error / s)
        return (
            jnp.where(is_missing, m, m + gain * error), jnp.where(is_missing, v, (1 - gain) * v),
            jnp.where(is_missing, loss, loss + more),
        )

    return jax.lax.fori_loop(0, len(y), step, (0.0, 10.0, 0.0))[2]


def cholesky_textbook(a: Any) -> Any:
    n = len(a)

    def cell(k: Any, factor: Any) -> Any:
        i, j = k // n, k % n
        s = a[i, j] - jnp.where(jnp.arange(n) < j, factor[i] * factor[j], 0.0).sum()
        pivot = jnp.where(i == j, 1.0, jnp.where(j < i, factor[j, j], 1.0))
        root = jnp.sqrt(jnp.where(i == j, s, 1.0))
        return factor.at[i, j].set(jnp.where(j > i, 0.0, jnp.where(i == j, root, s / pivot)))

    return jax.lax.fori_loop(0, n * n, cell, jnp.zeros((n, n))).sum()


def lu_textbook(a: Any) -> Any:
    n = len(a)
    places = jnp.arange(n)

    def step(k: Any, a: Any) -> Any:
        below = places > k
        column = jnp.where(below, a[:, k] / a[k, k], a[:, k])
        a = a.at[:, k].set(column)
        return a - jnp.where(below[:, None] & below[None, :], jnp.outer(column, a[k]), 0.0)

    a = jax.lax.fori_loop(0, n - 1, step, a)
    return (a * a).sum()


def jacobi_1d_textbook(a: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        a, b = state
        b = b.at[1:-1].set(0.33333 * (a[:-2] + a[1:-1] + a[2:]))
        return a.at[1:-1].set(0.33333 * (b[:-2] + b[1:-1] + b[2:])), b

    a, _ = jax.lax.fori_loop(1, 100, step, (a, a))
    return (a * a).sum()


def jacobi_2d_textbook(a: Any) -> Any:
    def average(a: Any) -> Any:
        return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])

    def step(_: Any, state: Any) -> Any:
        a, b = state
        b = b.at[1:-1, 1:-1].set(average(a))
        return a.at[1:-1, 1:-1].set(average(b)), b

    a, _ = jax.lax.fori_loop(1, 30, step, (a, a))
    return (a * a).sum()


def seidel_2d_textbook(a: Any) -> Any:
    n = len(a)

    def cell(k: Any, a: Any) -> Any:
        k = k % ((n - 2) * (n - 2))
        i, j = k // (n - 2), k % (n - 2)
        return a.at[i + 1, j + 1].set(jax.lax.dynamic_slice(a, (i, j), (3, 3)).sum() / 9.0)

    a = jax.lax.fori_loop(0, 5 * (n - 2) * (n - 2), cell, a)
    return (a * a).sum()


def trisolv_textbook(l: Any, b: Any) -> Any:
    n = len(b)

    def row(i: Any, x: Any) -> Any:
        return x.at[i].set((b[i] - jnp.where(jnp.arange(n) < i, l[i] * x, 0.0).sum()) / l[i, i])

    x = jax.lax.fori_loop(0, n, row, jnp.zeros(n))
    return (x * x).sum()


def durbin_textbook(r: Any) -> Any:
    n = len(r)
    places = jnp.arange(n)

    def step(k: Any, state: Any) -> Any:
        y, alpha, beta = state
        beta = (1.0 - alpha * alpha) * beta
        mirrored = jnp.where(places < k, y[k - places - 1], 0.0)
        s = r[k] + jnp.where(places < k, r[k - places - 1] * y, 0.0).sum()
        alpha = -s / beta
        return (y + alpha * mirrored).at[k].set(alpha), alpha, beta

    y, _, _ = jax.lax.fori_loop(1, n, step, (jnp.zeros(n).at[0].set(-r[0]), -r[0], 1.0))
    return (y * y).sum()


def forms_of(name: str) -> dict[str, Any]:
    """Return the forms of a program, by engine."""
    jax.config.update("jax_enable_x64", True)
    return FORMS.get(name, {})


FORMS: Final = {
    "holt-winters": {"JAX": winters_textbook, "JAX, rewritten": winters_rewritten},
    "overwritten": {"JAX": overwritten_textbook, "JAX, rewritten": overwritten_rewritten},
    "thomas": {"JAX": thomas_textbook},
    "kalman": {"JAX": kalman_textbook},
    "cholesky": {"JAX": cholesky_textbook},
    "lu": {"JAX": lu_textbook},
    "jacobi-1d": {"JAX": jacobi_1d_textbook},
    "jacobi-2d": {"JAX": jacobi_2d_textbook},
    "seidel-2d": {"JAX": seidel_2d_textbook},
    "trisolv": {"JAX": trisolv_textbook},
    "durbin": {"JAX": durbin_textbook},
    "soft-dtw": {"JAX": warping_textbook, "JAX, rewritten": warping_rewritten},
    "heat": {"JAX": heat_textbook, "JAX, rewritten": heat_rewritten},
    "row-fill": {"JAX": row_fill_textbook, "JAX, rewritten": row_fill_rewritten},
    "recurrence": {"JAX": recurrence_textbook, "JAX, rewritten": recurrence_rewritten},
}
