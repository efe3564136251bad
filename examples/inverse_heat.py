"""Recover the conductivity along a rod from the temperature at three points.

A rod is heated at one end. Its conductivity varies along its length and is to be found from three thermometers. The
heat equation is stepped in place, and the gradient of the misfit with respect to the conductivity at every point is
computed backward through all steps: the adjoint method, without deriving an adjoint equation.

    python examples/inverse_heat.py        # writes inverse_heat.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.scipy import optimize


def measured_by(conductivity: Any, steps: int, places: list[int]) -> Any:
    """Return the temperatures at some points over time; the rod is cold at first, except at its left end."""
    n = len(conductivity) + 1
    u = vg.zeros(n)
    u[0] = 1.0
    record = vg.zeros((steps, len(places)))
    for t in range(steps):
        flow = conductivity * (u[1:] - u[:-1])
        u[1:-1] += 0.4 * (flow[1:] - flow[:-1])
        u[-1] += -0.4 * flow[-1]
        record[t] = u[places]
    return record


def fit(small: bool = False) -> dict[str, Any]:
    """Find the conductivity.

    Arguments:
        small: few steps, for tests.
    """
    n, steps = (12, 60) if small else (24, 300)
    grid = np.linspace(0.0, 1.0, n)
    truth = np.where((grid > 0.35) & (grid < 0.6), 0.35, 0.9)
    places = [n // 5, n // 2, n - 1]
    seen = measured_by(vg.Tensor(truth), steps, places)

    def misfit(conductivity: Any) -> Any:
        rough = ((conductivity[1:] - conductivity[:-1]) ** 2 + 1e-6) ** 0.5
        return ((measured_by(conductivity, steps, places) - seen) ** 2).sum() + 2e-4 * rough.sum()

    start = np.full(n, 0.7)
    found = optimize.minimize(
        misfit, start, method="L-BFGS-B", bounds=[(0.05, 1.2)] * n, options={"maxiter": 20 if small else 60}
    )
    return {
        "grid": grid, "truth": truth, "conductivity": np.asarray(found.x), "seen": seen.numpy(),
        "loss": float(found.fun), "loss before": float(misfit(vg.Tensor(start))),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the measured temperatures, and the conductivity found."""
    found = fit(small)
    left, right = (picture := Figure(figsize=(8, 3.2))).subplots(1, 2)
    left.plot(found["seen"])
    left.set(title="three thermometers", xlabel="step")
    right.step(found["grid"], found["truth"], ":", color="black", where="mid", label="truth")
    right.step(found["grid"], found["conductivity"], where="mid", label="found")
    right.set(title="conductivity", xlabel="place", ylim=(0, 1.3))
    right.legend()
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
