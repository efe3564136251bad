"""Recover the permeability of the ground from heads in wells, by sparse matrices.

Water flows through a square of ground between two wells at a time. The heads solve a sparse linear system whose stored
values are the conductances between cells, and the gradient with respect to all of them costs one more solution.

    python examples/ground_water.py        # writes ground_water.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import viewgrad as vg
from viewgrad.scipy import sparse
from viewgrad.scipy.sparse.linalg import splu


def pairs(n: int) -> tuple[Any, Any]:
    """Return the cells on the two sides of each border between neighbours on a grid."""
    cells = np.arange(n * n).reshape(n, n)
    left = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    right = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    return left, right


def heads(log_permeability: Any, pumped: Any, wells: Any) -> Any:
    """Return the heads in the wells for each pattern of pumping.

    Arguments:
        log_permeability: of each cell, of shape (n, n).
        pumped: the water pumped into each cell, of shape (n * n, patterns).
        wells: the indices of the cells that have a well.
    """
    n = len(log_permeability)
    left, right = pairs(n)
    k = vg.exp(log_permeability).reshape(-1)
    c = 2.0 / (1.0 / k[left] + 1.0 / k[right])  # in series: the harmonic mean
    cells = np.arange(n * n)
    border = (cells % n == 0) | (cells % n == n - 1)  # open to a lake on two sides
    values = np.concatenate([c, c, -c, -c, k * border])
    rows = np.concatenate([left, right, left, right, cells])
    columns = np.concatenate([left, right, right, left, cells])
    matrix = sparse.coo_array((values, (rows, columns)), shape=(n * n, n * n))  # duplicates are summed
    return splu(matrix.tocsc()).solve(pumped)[wells]


def fit(small: bool = False) -> dict[str, Any]:
    """Find the permeability.

    Arguments:
        small: a small grid and few steps, for tests.
    """
    n, count = (8, 4) if small else (24, 8)
    x, y = np.meshgrid(np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, n))
    clay, gravel = (x - 0.35) ** 2 + (y - 0.6) ** 2, (x - 0.7) ** 2 + (y - 0.3) ** 2
    truth = np.exp(-gravel / 0.03) - 1.5 * np.exp(-clay / 0.02)
    places = np.linspace(1, n - 2, count).astype(int)
    wells = (places[:, None] * n + places).ravel()
    pumped = np.zeros((n * n, len(wells) // 2))
    for pattern in range(pumped.shape[1]):
        pumped[wells[2 * pattern], pattern], pumped[wells[-2 * pattern - 2], pattern] = 1.0, -1.0
    seen = heads(truth, pumped, wells).numpy()

    def misfit(flat: Any) -> Any:
        field = flat.reshape(n, n)
        rough = ((field[1:] - field[:-1]) ** 2).sum() + ((field[:, 1:] - field[:, :-1]) ** 2).sum()
        return ((heads(field, pumped, wells) - seen) ** 2).sum() + 1e-4 * rough

    start = np.zeros(n * n)
    both = vg.value_and_grad(misfit)
    found = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 30 if small else 150})
    return {
        "truth": truth, "found": found.x.reshape(n, n), "wells": (wells % n, wells // n),
        "loss": found.fun, "loss before": both(start)[0],
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the logarithm of the permeability, true and recovered."""
    found = fit(small)
    picture = Figure(figsize=(7, 3.2), layout="constrained")
    axes = picture.subplots(1, 2)
    low, high = found["truth"].min(), found["truth"].max()
    for axis, name, title in zip(axes, ("truth", "found"), ("logarithm of the permeability", "found from the wells")):
        image = axis.imshow(found[name], origin="lower", vmin=low, vmax=high)
        axis.plot(*found["wells"], ".", color="white", markersize=3)
        axis.set(title=title, xticks=[], yticks=[])
    picture.colorbar(image, ax=axes)
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
