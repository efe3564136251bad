"""Locate heat sources from a few thermometers: a JAX program around a sparse solver.

The temperatures on a grid solve a sparse linear system, which `viewgrad.scipy.sparse` assembles and solves. JAX sees it
as one operation, under `jit` and `grad`, and optimizes the places and strengths of the sources.

    pip install viewgrad[interop-jax,scipy]
    python examples/jax_sources.py        # writes jax_sources.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.interop import jax_function
from viewgrad.scipy import sparse
from viewgrad.scipy.sparse.linalg import spsolve


def temperatures(conductivity: Any, heat: Any) -> Any:
    """Return the temperatures of a square plate that is cold at its edges.

    Arguments:
        conductivity: the conductivity of each cell, of shape (n, n).
        heat: the heat that flows into each cell, of shape (n, n).
    """
    n = len(heat)
    down, right = (conductivity[1:] + conductivity[:-1]) / 2, (conductivity[:, 1:] + conductivity[:, :-1]) / 2
    total = vg.zeros((n, n))
    total[1:] += down
    total[:-1] += down
    total[:, 1:] += right
    total[:, :-1] += right
    total[0], total[-1] = total[0] + conductivity[0], total[-1] + conductivity[-1]  # to the edges
    total[:, 0], total[:, -1] = total[:, 0] + conductivity[:, 0], total[:, -1] + conductivity[:, -1]
    beside = vg.zeros((n, n))
    beside[:, :-1] = right
    beside = beside.reshape(-1)[:-1]
    diagonals = [total.reshape(-1), -beside, -beside, -down.reshape(-1), -down.reshape(-1)]
    matrix = sparse.diags_array(diagonals, offsets=[0, 1, -1, n, -n], format="csc")
    return spsolve(matrix, heat.reshape(-1)).reshape(n, n)


def heat_of(sources: Any, n: int) -> Any:
    """Return the heat that sources (rows of x, y, strength) deliver to the cells."""
    x, y = jnp.meshgrid(jnp.linspace(0, 1, n), jnp.linspace(0, 1, n), indexing="ij")
    bumps = jnp.exp(-((x - sources[:, 0, None, None]) ** 2 + (y - sources[:, 1, None, None]) ** 2) / 0.01)
    return (sources[:, 2, None, None] * bumps).sum(0)


def fit(small: bool = False) -> dict[str, Any]:
    """Find two sources.

    Arguments:
        small: a coarse grid and few steps, for tests.
    """
    n = 12 if small else 40
    with jax.enable_x64(True):
        solve = jax_function(temperatures)
        conductivity = jnp.ones((n, n)).at[n // 2 :, : n // 2].set(0.3)
        true = jnp.array([[0.25, 0.3, 1.0], [0.7, 0.65, 2.0]])
        measured = solve(conductivity, heat_of(true, n))[:: n // 6, :: n // 6]

        @jax.jit
        def loss(sources: Any) -> Any:
            found = solve(conductivity, heat_of(sources, n))[:: n // 6, :: n // 6]
            return ((found - measured) ** 2).mean() / (measured**2).mean()

        step = jax.jit(jax.value_and_grad(loss))
        sources = jnp.array([[0.4, 0.4, 0.5], [0.55, 0.5, 0.5]])
        losses, moment, size = [], jnp.zeros_like(sources), jnp.zeros_like(sources)
        for t in range(1, 81 if small else 301):  # Adam
            value, slope = step(sources)
            losses.append(float(value))
            moment, size = 0.9 * moment + 0.1 * slope, 0.99 * size + 0.01 * slope**2
            sources -= 0.02 * (moment / (1 - 0.9**t)) / (jnp.sqrt(size / (1 - 0.99**t)) + 1e-12)
        field = np.asarray(solve(conductivity, heat_of(sources, n)))
    return {
        "sources": np.asarray(sources), "true": np.asarray(true), "field": field, "losses": losses, "n": n,
        "loss": losses[-1], "loss before": losses[0],
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the temperatures, the thermometers and the sources."""
    found = fit(small)
    left, right = (picture := Figure(figsize=(7, 3.2))).subplots(1, 2)
    left.imshow(found["field"].T, origin="lower", extent=(0, 1, 0, 1), cmap="inferno")
    grid = np.linspace(0, 1, found["n"])[:: found["n"] // 6]
    left.plot(*(each.reshape(-1) for each in np.meshgrid(grid, grid)), ".", color="white", markersize=3)
    left.plot(*found["true"][:, :2].T, "o", fillstyle="none", color="cyan", label="sources")
    left.plot(*found["sources"][:, :2].T, "x", color="cyan", label="found")
    left.legend(loc="upper left")
    right.semilogy(found["losses"])
    right.set(xlabel="step", ylabel="relative squared error")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
