"""The measured programs: textbook algorithms that write to arrays through views, the same for all engines.

Every program takes a backend and its tensors, those to be differentiated first, and returns the number to
differentiate. Each program says what N counts; the cost of a step does not depend on N.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import numpy as np

from benchmarks.backends import Backend

__all__ = ["WORKLOADS", "Variant", "Workload", "soft_minimum"]

Array = np.ndarray[Any, Any]
Program = Callable[..., Any]


@attrs.frozen
class Variant:
    """A program to run in place of one that an engine rejects.

    Arguments:
        program: the nearest program that the engine accepts.
        note: how it differs.
    """

    program: Program
    note: str


@attrs.frozen
class Workload:
    """A program and its inputs.

    Arguments:
        name: its name on the command line.
        counts: what N counts.
        program: `program(backend, *tensors)`, the number to be differentiated.
        inputs: `inputs(n, width)`, the arrays that the program is run on, the differentiated ones first.
        leaves: how many of them are differentiated.
        width: the length of a row in the growth measurements, None for a program without rows.
        widest: the longest rows for which it is measured.
        variants: what is run instead, by the name of the engine.
        by_cell: whether some of its steps are on single elements, although it has rows.
        twice: whether the gradient of the gradient is measured.
    """

    name: str
    counts: str
    program: Program
    inputs: Callable[[int, int], tuple[Array, ...]]
    leaves: int = 1
    width: int | None = 1000
    widest: int = 100_000
    variants: Mapping[str, Variant] = attrs.Factory(dict)
    by_cell: bool = False
    twice: bool = False

    def program_for(self, engine: str) -> Program:
        """Return the program that an engine runs."""
        return self.variants[engine].program if engine in self.variants else self.program


def cloned(program: Callable[..., Any]) -> dict[str, Variant]:
    """Return the program for PyTorch, with a clone() of each value that is saved for backward and overwritten later."""

    def with_clones(b: Backend, *tensors: Any) -> Any:
        return program(b, *tensors, kept=b.clone)

    return {"torch": Variant(with_clones, "clone() of what is saved and overwritten later, which PyTorch refuses")}


def _as_it_is(value: Any) -> Any:
    return value


def _random(n: int, *shape: int) -> Array:
    return np.random.default_rng(n).uniform(0.5, 1.5, shape)


# -- writing and reading rows and columns ------------------------------------------------------------------------------


def row_fill(b: Backend, x: Any) -> Any:
    n, width = x.shape
    out = b.zeros(n, width)
    for i in range(n):
        out[i] = x[i] * 2
    return out.sum()


def column_fill(b: Backend, x: Any) -> Any:
    width, n = x.shape
    out = b.zeros(width, n)
    for i in range(n):
        out[:, i] = x[:, i] * 2
    return out.sum()


def row_read(b: Backend, x: Any) -> Any:
    s = (x[0] * 2).sum()
    for i in range(1, len(x)):
        s += (x[i] * 2).sum()
    return s


def recurrence(b: Backend, a: Any, start: Any, steps: Array, kept: Callable[[Any], Any] = _as_it_is) -> Any:
    n = len(steps)
    x = b.zeros(n, *start.shape)
    x[0] = start
    for i in range(1, n):
        x[i] = a * kept(x[i - 1])
    return x.sum()


def row_fill_squared(b: Backend, x: Any) -> Any:
    n, width = x.shape
    out = b.zeros(n, width)
    for i in range(n):
        out[i] = x[i] * 2
    return (out * out).sum()


# -- tables ------------------------------------------------------------------------------------------------------------


def soft_dtw(b: Backend, cost: Any) -> Any:
    """Cuturi and Blondel, "Soft-DTW: a Differentiable Loss Function for Time-Series" (2017), with smoothing 1."""
    n, m = cost.shape
    r = b.zeros(n + 1, m + 1)
    r[0, 1:] = 1e10
    r[1:, 0] = 1e10
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            soft = b.log(b.exp(-r[i - 1, j - 1]) + b.exp(-r[i - 1, j]) + b.exp(-r[i, j - 1]))
            r[i, j] = cost[i - 1, j - 1] - soft
    return r[n, m] * 1.0


def soft_dtw_diagonals(b: Backend, cost: Any, kept: Callable[[Any], Any] = _as_it_is) -> Any:
    """Soft-DTW by anti-diagonals, which are strided slices of the flat table, for tables of any size."""
    n, m = cost.shape
    r = b.zeros(n + 1, m + 1)
    r[0, 1:] = 1e10
    r[1:, 0] = 1e10
    table = r.reshape(-1)
    costs = cost.reshape(-1)
    for d in range(2, n + m + 1):  # the cells (i, d - i)
        low, high = max(1, d - m), min(n, d - 1)
        first, last = low * (m + 1) + d - low, high * (m + 1) + d - high

        def along(shift: int, first: int = first, last: int = last) -> Any:
            return kept(table[first - shift : last - shift + 1 : m])

        first_cost, last_cost = (low - 1) * m + d - low - 1, (high - 1) * m + d - high - 1
        step = costs[first_cost : last_cost + 1 : max(m - 1, 1)]
        table[first : last + 1 : m] = step + soft_minimum(b, along(m + 2), along(m + 1), along(1))
    return r[n, m] * 1.0


def soft_minimum(b: Any, one: Any, two: Any, three: Any) -> Any:
    """-log(exp(-one) + exp(-two) + exp(-three)), so that nothing overflows."""
    least = b.minimum(b.minimum(one, two), three)
    return least - b.log(b.exp(least - one) + b.exp(least - two) + b.exp(least - three))


def heat(b: Backend, u0: Any, k: Any, steps: Array) -> Any:
    u = b.clone(u0)
    for _ in range(len(steps)):
        u[1:-1, 1:-1] += k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


# -- linear algebra ----------------------------------------------------------------------------------------------------


def lu(b: Backend, matrix: Any, pivots: Array, kept: Callable[[Any], Any] = _as_it_is) -> Any:
    """Gaussian elimination in place, row by row; the logarithm of the product of the pivots."""
    a = b.clone(matrix)
    n = len(a)
    for k in range(len(pivots)):
        for i in range(k + 1, n):
            a[i, k] /= kept(a[k, k])
            a[i, k + 1 :] -= kept(a[i, k]) * kept(a[k, k + 1 :])
    total = b.log(kept(a[0, 0]))
    for k in range(1, len(pivots)):
        total = total + b.log(kept(a[k, k]))
    return total


def cholesky(b: Backend, matrix: Any, kept: Callable[[Any], Any] = _as_it_is) -> Any:
    """Compute the lower factor in place, column by column, and the logarithm of the determinant."""
    a = b.clone(matrix)
    n = len(a)
    for k in range(n):
        a[k, k] = b.sqrt(kept(a[k, k]))
        a[k + 1 :, k] /= kept(a[k, k])
        for j in range(k + 1, n):
            a[j:, j] -= kept(a[j:, k]) * kept(a[j, k])
    total = b.log(kept(a[0, 0]))
    for k in range(1, n):
        total = total + b.log(kept(a[k, k]))
    return 2 * total


def gauss_seidel(b: Backend, a: Any, rhs: Any, order: Array, kept: Callable[[Any], Any] = _as_it_is) -> Any:
    x = b.zeros(*rhs.shape)
    for i in order.tolist():
        x[i] = x[i] + (rhs[i] - a[i] @ kept(x)) / a[i, i]
    return (x * x).sum()


# -- buffers and indices -----------------------------------------------------------------------------------------------


def ring_buffer(b: Backend, x: Any, a: Any, kept: Callable[[Any], Any] = _as_it_is) -> Any:
    """Run a comb filter: the value stored eight steps ago is scaled and added to the input."""
    n, width = x.shape
    ring = b.zeros(8, width)
    s = (x[0] * 0.0).sum()
    for t in range(n):
        ring[t % 8] = x[t] + a * kept(ring[t % 8])
        s += ring[t % 8].sum()
    return s


def masked_writes(b: Backend, x: Any, masks: Any) -> Any:
    n, width = x.shape
    out = b.zeros(n, width)
    for i in range(n):
        row = out[i]
        row[masks[i]] = x[i][masks[i]] * 2
    return (out * out).sum()


def index_put(b: Backend, x: Any, places: Any) -> Any:
    n, width = x.shape
    out = b.zeros(n * width)
    for i in range(n):
        out[places[i]] = x[i] * 2
    return (out * out).sum()


def view_of_view(b: Backend, x: Any) -> Any:
    """Read and write through a view of a view."""
    n, width = x.shape
    table = b.zeros(n + 1, width + 2)
    inner = table[:, 1:-1]
    for i in range(n):
        inner[i + 1][:] = inner[i][:] * 0.5 + x[i]
    return (table * table).sum()


# -- what they are run on ----------------------------------------------------------------------------------------------


def _rows(n: int, width: int) -> tuple[Array, ...]:
    return (_random(n, n, width),)


def _columns(n: int, width: int) -> tuple[Array, ...]:
    return (_random(n, width, n),)


def _recurrence_inputs(n: int, width: int) -> tuple[Array, ...]:
    random = np.random.default_rng(n)
    return random.uniform(0.999, 1.0, width), random.standard_normal(width), np.zeros(n, np.int64)


def _cells(n: int, width: int) -> tuple[Array, ...]:
    side = 20 if n % 20 == 0 and n != 40_000 else round(n**0.5)
    return (_random(n, n // side, side),)


def _diagonal_cells(n: int, width: int) -> tuple[Array, ...]:
    return (_random(n, n, width),)


def _grid(n: int, width: int) -> tuple[Array, ...]:
    side = round(width**0.5)
    random = np.random.default_rng(n)
    return random.uniform(0, 1, (side + 2, side + 2)), random.uniform(0.05, 0.2, (side, side)), np.zeros(n, np.int64)


def _square(n: int, width: int) -> tuple[Array, ...]:
    side = round((2 * n) ** 0.5)
    return _random(n, side, side) + side * np.eye(side), np.zeros(side, np.int64)


def _positive(n: int, width: int) -> tuple[Array, ...]:
    side = round((2 * n) ** 0.5)
    matrix = _random(n, side, side)
    return (matrix + matrix.T + 2 * side * np.eye(side),)


def _panel(n: int, width: int) -> tuple[Array, ...]:
    rows = (n + 36) // 8  # with 8 pivots, n rows are updated
    matrix = _random(n, rows, width)
    matrix[np.arange(8), np.arange(8)] += 30.0
    return matrix, np.zeros(8, np.int64)


def _system(n: int, width: int) -> tuple[Array, ...]:
    random = np.random.default_rng(n)
    matrix = random.uniform(-1, 1, (width, width)) + 0.6 * width * np.eye(width)
    return matrix, random.standard_normal(width), np.arange(n) % width


def _ring_inputs(n: int, width: int) -> tuple[Array, ...]:
    return _random(n, n, width), np.random.default_rng(n).uniform(0.5, 0.9, width)


def _masked_inputs(n: int, width: int) -> tuple[Array, ...]:
    return _random(n, n, width), np.random.default_rng(n).random((n, width)) < 0.5


def _index_inputs(n: int, width: int) -> tuple[Array, ...]:
    return _random(n, n, width), np.random.default_rng(n).permutation(n * width).reshape(n, width)


WORKLOADS: Final[tuple[Workload, ...]] = (
    Workload("row-fill", "rows written", row_fill, _rows),
    Workload("column-fill", "columns written", column_fill, _columns),
    Workload("row-read", "rows read", row_read, _rows),
    Workload("recurrence", "rows written", recurrence, _recurrence_inputs, 2, variants=cloned(recurrence)),
    Workload("soft-dtw", "cells written", soft_dtw, _cells, width=None),
    Workload(
        "soft-dtw-diagonals", "rows of the table", soft_dtw_diagonals, _diagonal_cells, width=100, widest=1000,
        variants=cloned(soft_dtw_diagonals),
    ),
    Workload("heat", "time steps", heat, _grid, 2),
    Workload("lu", "rows updated", lu, _square, width=None, variants=cloned(lu)),
    Workload("lu-panel", "rows updated", lu, _panel, variants=cloned(lu), by_cell=True),
    Workload("cholesky", "columns updated", cholesky, _positive, width=None, variants=cloned(cholesky)),
    Workload(
        "gauss-seidel", "unknowns updated", gauss_seidel, _system, 2, widest=1000, variants=cloned(gauss_seidel),
        by_cell=True,
    ),
    Workload("ring-buffer", "rows written", ring_buffer, _ring_inputs, 2, variants=cloned(ring_buffer)),
    Workload("masked-writes", "rows written", masked_writes, _masked_inputs),
    Workload("index-put", "index arrays written", index_put, _index_inputs),
    Workload("view-of-view", "rows written", view_of_view, _rows),
    Workload("double-backward", "rows written", row_fill_squared, _rows, twice=True),
)
