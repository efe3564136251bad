"""Choose the initial velocity that takes a satellite past a moving planet to its target.

Three bodies attract each other. Which initial velocity takes the lightest one to a given point at a given time? The
leapfrog scheme updates positions and velocities in place; forces are added pair by pair, action and reaction.

    python examples/n_body.py        # writes n_body.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.scipy import optimize

MASSES = (1.0, 0.05, 1e-6)
START = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]]
VELOCITIES = [[0.0, 0.0], [0.0, 1.0], [0.8, 0.0]]
TARGET = [-1.2, -0.6]


def accelerations(place: Any) -> Any:
    """Return the accelerations of the bodies by their mutual attraction."""
    result = vg.zeros(place.shape)
    for i in range(len(place)):
        for j in range(i):
            apart = place[j] - place[i]
            pull = apart / ((apart * apart).sum() + 0.01) ** 1.5
            result[i] += MASSES[j] * pull
            result[j] -= MASSES[i] * pull
    return result


def flight(thrown: Any, steps: int) -> Any:
    """Return the positions of all bodies at each step, if the satellite starts with the velocity `thrown`."""
    place, velocity = vg.Tensor(START), vg.Tensor(VELOCITIES)
    velocity[2] = thrown
    step = 3.0 / steps
    path = vg.zeros((steps + 1, *place.shape))
    path[0] = place
    velocity += 0.5 * step * accelerations(place)
    for t in range(1, steps + 1):
        place += step * velocity
        velocity += step * accelerations(place)
        path[t] = place
    return path


def fit(small: bool = False) -> dict[str, Any]:
    """Find the velocity.

    Arguments:
        small: few steps, for tests.
    """
    steps = 20 if small else 120

    def miss(thrown: Any) -> Any:
        return ((flight(thrown, steps)[-1, 2] - vg.Tensor(TARGET)) ** 2).sum()

    start = np.array(VELOCITIES[2])
    found = optimize.minimize(miss, start, method="BFGS", options={"maxiter": 12 if small else 40})
    best = vg.Tensor(np.asarray(found.x))
    return {
        "before": flight(vg.Tensor(start), steps).numpy(), "path": flight(best, steps).numpy(),
        "velocity": best.numpy(), "loss": float(found.fun), "loss before": float(miss(vg.Tensor(start))),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the flight before and after the fit."""
    found = fit(small)
    axes = (picture := Figure(figsize=(5.5, 5))).subplots()
    for body, name in enumerate(("sun", "planet")):
        axes.plot(*found["path"][:, body].T, ".-", markersize=3, label=name)
    axes.plot(*found["before"][:, 2].T, "--", color="gray", label="satellite, first throw")
    axes.plot(*found["path"][:, 2].T, color="black", label="satellite")
    axes.plot(*TARGET, "x", markersize=10, color="red", label="target")
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
