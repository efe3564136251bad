"""Fit a solar cell to its measured curve, through a package without derivatives.

The package pvlib computes the current of a solar cell at a voltage from five parameters of an equivalent circuit. The
equation is implicit; pvlib solves it with Lambert's W function. `vg.adopt` makes the installed package differentiable,
and SciPy's least squares use the exact Jacobian. Without it, SciPy calls the model once more for each parameter and
loses digits to differences.

    pip install pvlib
    python examples/solar_cell.py        # writes solar_cell.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize

import viewgrad as vg

NAMES = ("photocurrent", "saturation current", "series resistance", "shunt resistance", "thermal voltage")
TRUE = np.array([3.1, 2e-9, 0.012, 30.0, 0.0278])


def fit(small: bool = False) -> dict[str, Any]:
    """Find the parameters.

    Arguments:
        small: a few points and steps, for tests.
    """
    pvlib = vg.adopt("pvlib")
    voltage = np.linspace(0.0, 0.6, 12 if small else 60)

    def current(logarithms: Any) -> Any:
        photo, saturation, series, shunt, thermal = np.exp(logarithms)
        return pvlib.pvsystem.i_from_v(voltage, photo, saturation, series, shunt, thermal)

    noise = 0.01 * np.random.default_rng(0).normal(size=len(voltage))
    measured = np.asarray(current(np.log(TRUE))) + noise
    start = np.log(TRUE * [0.8, 4.0, 2.0, 2.0, 1.05])
    found = optimize.least_squares(
        lambda p: np.asarray(current(p)) - measured, start, jac=vg.jacfwd(current), x_scale="jac",
        max_nfev=10 if small else 100,
    )
    return {
        "voltage": voltage, "measured": measured, "start": np.asarray(current(start)),
        "current": np.asarray(current(found.x)), "parameters": np.exp(found.x),
        "loss": 2 * float(found.cost), "loss before": float(((np.asarray(current(start)) - measured) ** 2).sum()),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the measured points, and the curve before and after the fit."""
    found = fit(small)
    picture = Figure(figsize=(7, 4))
    axes = picture.subplots()
    axes.plot(found["voltage"], found["start"], ":", color="black", label="start")
    axes.plot(found["voltage"], found["current"], label="fitted")
    axes.plot(found["voltage"], found["measured"], ".", label="measured")
    axes.set(xlabel="voltage (V)", ylabel="current (A)")
    axes.legend(
        title="\n".join(
            f"{name}: {value:.3g} (true: {true:.3g})"
            for name, value, true in zip(NAMES, found["parameters"], TRUE, strict=True)
        )
    )
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
