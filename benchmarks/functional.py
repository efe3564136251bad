"""The same programs for engines with immutable arrays, each in its natural form.

For JAX, this is `.at[...].set` in a `fori_loop` under `jit`; for HIPS autograd, lists of rows, stacked at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.workloads import Workload, soft_minimum

__all__ = ["Functional", "HipsAutograd", "Jax", "functional_engines"]

Array = np.ndarray[Any, Any]


class Functional:
    """An engine that turns a program into a function that computes its gradient."""

    name: str
    module: Any

    def gradient_function(self, workload: Workload, arrays: Sequence[Array]) -> Callable[[], list[Array]] | None:
        """Return a function that computes the gradients of the workload on `arrays`; None if there is none."""
        raise NotImplementedError


class Jax(Functional):
    """JAX, compiled for the CPU; the compilation is not measured."""

    name = "jax"

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
        self.module: Any = jax
        self.programs = _jax_programs(jax)

    def gradient_function(self, workload: Workload, arrays: Sequence[Array]) -> Callable[[], list[Array]] | None:
        jax = self.module
        program = self.programs[workload.name]
        if workload.twice:

            def squared(x: Any) -> Any:
                grad = jax.grad(program)(x)
                return (grad * grad).sum()

            gradients = jax.jit(jax.grad(squared, argnums=(0,)))
        else:
            gradients = jax.jit(jax.grad(program, argnums=tuple(range(workload.leaves))))
        inputs = [jax.numpy.asarray(array) for array in arrays]
        compiled = gradients.lower(*inputs).compile()
        return lambda: [np.asarray(grad) for grad in jax.block_until_ready(compiled(*inputs))]


def _jax_programs(jax: Any) -> dict[str, Callable[..., Any]]:
    jnp, loop = jax.numpy, jax.lax.fori_loop

    def row_fill(x: Any) -> Any:
        return loop(0, len(x), lambda i, out: out.at[i].set(x[i] * 2), jnp.zeros(x.shape)).sum()

    def column_fill(x: Any) -> Any:
        return loop(0, x.shape[1], lambda i, out: out.at[:, i].set(x[:, i] * 2), jnp.zeros(x.shape)).sum()

    def row_read(x: Any) -> Any:
        return loop(0, len(x), lambda i, s: s + (x[i] * 2).sum(), 0.0)

    def recurrence(a: Any, start: Any, steps: Any) -> Any:
        x = jnp.zeros((len(steps), *start.shape)).at[0].set(start)
        return loop(1, len(x), lambda i, x: x.at[i].set(a * x[i - 1]), x).sum()

    def soft_dtw(cost: Any) -> Any:
        n, m = cost.shape
        r = jnp.zeros((n + 1, m + 1)).at[0, 1:].set(1e10).at[1:, 0].set(1e10)

        def cell(t: Any, r: Any) -> Any:
            i, j = t // m + 1, t % m + 1
            soft = jnp.log(jnp.exp(-r[i - 1, j - 1]) + jnp.exp(-r[i - 1, j]) + jnp.exp(-r[i, j - 1]))
            return r.at[i, j].set(cost[i - 1, j - 1] - soft)

        return loop(0, n * m, cell, r)[n, m]

    def soft_dtw_diagonals(cost: Any) -> Any:
        n, m = cost.shape
        r = jnp.zeros((n + 1, m + 1)).at[0, 1:].set(1e10).at[1:, 0].set(1e10)
        columns = jnp.arange(1, m + 1)

        def diagonal(d: Any, r: Any) -> Any:  # the cells outside the table are computed, and dropped
            rows = d - columns
            inside = (rows >= 1) & (rows <= n)
            rows = jnp.where(inside, rows, 1)
            soft = soft_minimum(jnp, r[rows - 1, columns - 1], r[rows - 1, columns], r[rows, columns - 1])
            value = cost[rows - 1, columns - 1] + soft
            return r.at[jnp.where(inside, rows, n + 1), columns].set(value, mode="drop")

        return loop(2, n + m + 1, diagonal, r)[n, m]

    def heat(u: Any, k: Any, steps: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            return u.at[1:-1, 1:-1].add(k * (around - 4 * u[1:-1, 1:-1]))

        u = loop(0, len(steps), step, u)
        return (u * u).sum()

    def lu(matrix: Any, pivots: Any) -> Any:
        n, width = matrix.shape
        pairs = np.array([(k, i) for k in range(len(pivots)) for i in range(k + 1, n)])
        columns = jnp.arange(width)
        ks, rows = jnp.asarray(pairs[:, 0]), jnp.asarray(pairs[:, 1])

        def eliminate(t: Any, a: Any) -> Any:
            k, i = ks[t], rows[t]
            factor = a[i, k] / a[k, k]
            return a.at[i].set(jnp.where(columns > k, a[i] - factor * a[k], a[i])).at[i, k].set(factor)

        return jnp.log(jnp.diagonal(loop(0, len(pairs), eliminate, matrix))[: len(pivots)]).sum()

    def cholesky(matrix: Any) -> Any:
        n = len(matrix)
        places = jnp.arange(n)

        def column(k: Any, a: Any) -> Any:  # all columns to the right at once: the lengths in a loop are fixed
            root = jnp.sqrt(a[k, k])
            below = jnp.where(places > k, a[:, k] / root, 0.0)
            return (a - below[:, None] * below[None, :]).at[:, k].set(jnp.where(places == k, root, below))

        # Only the lower triangle is read, as by the program that goes column by column.
        factor = loop(0, n, column, jnp.tril(matrix) + jnp.tril(jax.lax.stop_gradient(matrix), -1).T)
        return 2 * jnp.log(jnp.diagonal(factor)).sum()

    def gauss_seidel(a: Any, rhs: Any, order: Any) -> Any:
        def update(t: Any, x: Any) -> Any:
            i = order[t]
            return x.at[i].set(x[i] + (rhs[i] - a[i] @ x) / a[i, i])

        x = loop(0, len(order), update, jnp.zeros(rhs.shape))
        return (x * x).sum()

    def ring_buffer(x: Any, a: Any) -> Any:
        def step(t: Any, state: Any) -> Any:
            ring, s = state
            ring = ring.at[t % 8].set(x[t] + a * ring[t % 8])
            return ring, s + ring[t % 8].sum()

        return loop(0, len(x), step, (jnp.zeros((8, x.shape[1])), 0.0))[1]

    def masked_writes(x: Any, masks: Any) -> Any:
        out = loop(
            0, len(x), lambda i, out: out.at[i].set(jnp.where(masks[i], x[i] * 2, out[i])), jnp.zeros(x.shape)
        )
        return (out * out).sum()

    def index_put(x: Any, places: Any) -> Any:
        out = loop(0, len(x), lambda i, out: out.at[places[i]].set(x[i] * 2), jnp.zeros(x.size))
        return (out * out).sum()

    def view_of_view(x: Any) -> Any:
        n, width = x.shape
        table = loop(
            0, n, lambda i, t: t.at[i + 1, 1:-1].set(t[i, 1:-1] * 0.5 + x[i]), jnp.zeros((n + 1, width + 2))
        )
        return (table * table).sum()

    def double_backward(x: Any) -> Any:
        out = loop(0, len(x), lambda i, out: out.at[i].set(x[i] * 2), jnp.zeros(x.shape))
        return (out * out).sum()

    return {
        "row-fill": row_fill,
        "column-fill": column_fill,
        "row-read": row_read,
        "recurrence": recurrence,
        "soft-dtw": soft_dtw,
        "soft-dtw-diagonals": soft_dtw_diagonals,
        "heat": heat,
        "lu": lu,
        "lu-panel": lu,
        "cholesky": cholesky,
        "gauss-seidel": gauss_seidel,
        "ring-buffer": ring_buffer,
        "masked-writes": masked_writes,
        "index-put": index_put,
        "view-of-view": view_of_view,
        "double-backward": double_backward,
    }


class HipsAutograd(Functional):
    """HIPS autograd."""

    name = "autograd"

    def __init__(self) -> None:
        import autograd  # type: ignore[import-untyped]

        self.module = autograd
        self.programs = _autograd_programs(autograd.numpy)

    def gradient_function(self, workload: Workload, arrays: Sequence[Array]) -> Callable[[], list[Array]] | None:
        grad = self.module.grad
        program = self.programs.get(workload.name)
        if program is None:
            return None
        if workload.twice:
            first = grad(program)
            twice = grad(lambda x: (first(x) ** 2).sum())
            return lambda: [twice(*arrays)]
        gradients = grad(program, tuple(range(workload.leaves)))
        return lambda: list(gradients(*arrays))


def _autograd_programs(anp: Any) -> dict[str, Callable[..., Any]]:
    def row_fill(x: Any) -> Any:
        return anp.stack([x[i] * 2 for i in range(len(x))]).sum()

    def column_fill(x: Any) -> Any:
        return anp.stack([x[:, i] * 2 for i in range(x.shape[1])], axis=1).sum()

    def row_read(x: Any) -> Any:
        s = (x[0] * 2).sum()
        for i in range(1, len(x)):
            s = s + (x[i] * 2).sum()
        return s

    def recurrence(a: Any, start: Any, steps: Array) -> Any:
        rows = [start]
        for _ in range(1, len(steps)):
            rows.append(a * rows[-1])
        return anp.stack(rows).sum()

    def soft_dtw(cost: Any) -> Any:
        n, m = cost.shape
        r: dict[tuple[int, int], Any] = {(0, j): 1e10 for j in range(1, m + 1)}
        r |= {(i, 0): 1e10 for i in range(1, n + 1)}
        r[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                soft = anp.log(anp.exp(-r[i - 1, j - 1]) + anp.exp(-r[i - 1, j]) + anp.exp(-r[i, j - 1]))
                r[i, j] = cost[i - 1, j - 1] - soft
        return r[n, m]

    def heat(u: Any, k: Any, steps: Array) -> Any:
        for _ in range(len(steps)):
            change = k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
            u = u + anp.pad(change, 1, "constant")
        return (u * u).sum()

    def lu(matrix: Any, pivots: Array) -> Any:
        rows = [matrix[i] for i in range(len(matrix))]
        for k in range(len(pivots)):
            for i in range(k + 1, len(rows)):
                rows[i] = rows[i] - rows[i][k] / rows[k][k] * rows[k]
        return anp.log(anp.array([rows[k][k] for k in range(len(pivots))])).sum()

    def gauss_seidel(a: Any, rhs: Any, order: Array) -> Any:
        x = anp.zeros(rhs.shape)
        for i in order.tolist():
            new = x[i] + (rhs[i] - anp.dot(a[i], x)) / a[i, i]
            x = anp.concatenate((x[:i], anp.array([new]), x[i + 1 :]))
        return (x * x).sum()

    def ring_buffer(x: Any, a: Any) -> Any:
        ring = [anp.zeros(x.shape[1])] * 8
        s = 0.0
        for t in range(len(x)):
            ring[t % 8] = x[t] + a * ring[t % 8]
            s = s + ring[t % 8].sum()
        return s

    def masked_writes(x: Any, masks: Array) -> Any:
        out = anp.stack([anp.where(masks[i], x[i] * 2, 0.0) for i in range(len(x))])
        return (out * out).sum()

    def index_put(x: Any, places: Array) -> Any:
        out = anp.concatenate([x[i] * 2 for i in range(len(x))])[np.argsort(places.ravel())]
        return (out * out).sum()

    def view_of_view(x: Any) -> Any:
        rows = [anp.zeros(x.shape[1])]
        for i in range(len(x)):
            rows.append(rows[i] * 0.5 + x[i])
        table = anp.stack(rows)
        return (table * table).sum()

    def double_backward(x: Any) -> Any:
        out = anp.stack([x[i] * 2 for i in range(len(x))])
        return (out * out).sum()

    return {
        "row-fill": row_fill,
        "column-fill": column_fill,
        "row-read": row_read,
        "recurrence": recurrence,
        "soft-dtw": soft_dtw,
        "heat": heat,
        "lu": lu,
        "lu-panel": lu,
        "gauss-seidel": gauss_seidel,
        "ring-buffer": ring_buffer,
        "masked-writes": masked_writes,
        "index-put": index_put,
        "view-of-view": view_of_view,
        "double-backward": double_backward,
    }


def functional_engines(peers: Sequence[str]) -> tuple[list[Functional], list[str]]:
    """Return the installed engines, and a line for each missing one."""
    engines: list[Functional] = []
    skipped = []
    for kind in (HipsAutograd, Jax):
        if kind.name in peers:
            try:
                engines.append(kind())
            except ImportError as error:
                skipped.append(f"{kind.name} is skipped: {error}")
    return engines, skipped
