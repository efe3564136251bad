"""Find the load that gives a string a prescribed shape: an optimisation through a Gauss-Seidel solver.

A string under a load obeys Poisson's equation. Gauss-Seidel solves it by overwriting each unknown with the
value that its neighbours imply: first the odd ones, then the even ones, which use the new odd ones. The gradient goes
through all sweeps; the solver needs no annotation, and you write no adjoint solver.

    python examples/gauss_seidel.py        # writes gauss_seidel.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.scipy import optimize


def hanging(load: Any, sweeps: int) -> Any:
    """Return the shape of the string under a load, by overrelaxation; the ends are fixed."""
    n = len(load)
    u = vg.zeros(n + 2)
    odd, even = u[1:-1:2], u[2:-1:2]
    relaxation = 2 / (1 + np.sin(np.pi / (n + 1)))
    for _ in range(sweeps):
        odd += relaxation * (0.5 * (u[:-2:2] + u[2::2] - load[::2]) - odd)
        even += relaxation * (0.5 * (u[1:-2:2] + u[3::2] - load[1::2]) - even)
    return u


def fit(small: bool = False) -> dict[str, Any]:
    """Find the load.

    Arguments:
        small: a short string, for tests.
    """
    n, sweeps = (7, 15) if small else (31, 70)
    grid = np.linspace(0.0, 1.0, n + 2)
    wanted = vg.Tensor(-0.5 * np.sin(np.pi * grid) ** 2 * (1 + 0.5 * np.sin(4 * np.pi * grid)))

    def misfit(load: Any) -> Any:
        return ((hanging(load, sweeps) - wanted) ** 2).sum()

    start = np.zeros(n)
    found = optimize.minimize(misfit, start, method="L-BFGS-B", options={"maxiter": 30 if small else 300})
    return {
        "grid": grid, "wanted": wanted.numpy(), "load": np.asarray(found.x),
        "shape": hanging(vg.Tensor(np.asarray(found.x)), sweeps).numpy(),
        "loss": float(found.fun), "loss before": float(misfit(vg.Tensor(start))),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the prescribed shape, the shape found, and the load."""
    found = fit(small)
    above, below = (picture := Figure(figsize=(7, 4))).subplots(2, 1, sharex=True)
    above.plot(found["grid"], found["wanted"], ":", color="black", label="wanted")
    above.plot(found["grid"], found["shape"], label="found")
    above.legend()
    below.bar(found["grid"][1:-1], found["load"], width=0.8 / len(found["load"]))
    below.set(ylabel="load")
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
