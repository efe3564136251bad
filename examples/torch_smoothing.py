"""Train a PyTorch network whose last layer is a loop over time that fills a table in place.

The network reads a series and chooses how strongly to smooth it. The smoothing itself, one step after another, is a
compiled viewgrad function that PyTorch differentiates as one of its own operations.

    pip install viewgrad[interop-torch,compile]
    python examples/torch_smoothing.py        # writes torch_smoothing.png

Holt, C.C., 2004 (1957). Forecasting seasonals and trends by exponentially weighted moving averages. International
Journal of Forecasting 20.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.interop import torch_function


@vg.compile
def one_step_errors(series: Any, alpha: Any) -> Any:
    """Return the squared errors of forecasts by exponential smoothing, with a weight for each series."""
    count, length = series.shape
    level, errors = vg.zeros((count, length)), vg.zeros((count, length))
    level[:, 0] = series[:, 0]
    for t in range(1, length):
        errors[:, t] = series[:, t] - level[:, t - 1]
        level[:, t] = level[:, t - 1] + alpha * errors[:, t]
    return (errors * errors).mean(axis=1)


def data(count: int, length: int) -> tuple[Any, Any]:
    """Return noisy random walks, and the step size of each."""
    rng = np.random.default_rng(0)
    movement = rng.uniform(0.05, 1.5, count)
    level = np.cumsum(rng.normal(size=(count, length)) * movement[:, None], axis=1)
    return level + rng.normal(size=(count, length)), movement


def features(series: Any) -> Any:
    """Return the log standard deviations of the differences over one step and over five."""
    sizes = [np.log(np.std(series[:, k:] - series[:, :-k], axis=1)) for k in (1, 5)]
    return torch.tensor(np.stack(sizes, axis=1))


def fit(small: bool = False) -> dict[str, Any]:
    """Train the network.

    Arguments:
        small: few series and steps, for tests.
    """
    torch.manual_seed(0)
    series, movement = data(20 if small else 200, 40 if small else 100)
    given, known = features(series), torch.tensor(series)
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    with torch.no_grad():
        network[-1].bias.fill_(-6.0)  # almost no weight for new values
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    errors = torch_function(one_step_errors)
    losses = []
    for _ in range(60 if small else 400):
        optimizer.zero_grad()
        alpha = torch.sigmoid(network(given))[:, 0]
        loss = errors(known, alpha).log().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    best = (movement**2 / 2) * (np.sqrt(1 + 4 / movement**2) - 1)  # the gain of the filter that knows the variances
    return {
        "alpha": alpha.detach().numpy(), "best": best, "movement": movement, "losses": losses,
        "loss": losses[-1], "loss before": losses[0],
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the learnt weights beside the optimal ones."""
    found = fit(small)
    left, right = (picture := Figure(figsize=(7, 3.2))).subplots(1, 2)
    left.plot(found["losses"])
    left.set(xlabel="step", ylabel="logarithm of the squared error")
    order = np.argsort(found["movement"])
    right.plot(found["movement"][order], found["best"][order], label="best")
    right.plot(found["movement"], found["alpha"], ".", label="network")
    right.set(xlabel="movement of the level", ylabel="weight")
    right.legend()
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
