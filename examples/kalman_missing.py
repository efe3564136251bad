"""Fit a Kalman filter to a series with a third of its values missing.

A level follows a random walk and is measured with noise. The variances of the walk and of the noise are the two
parameters; the likelihood comes from the filter, which fills its tables in place and skips the gaps. The gradient is
that of the whole filter, including its `if`.

    python examples/kalman_missing.py        # writes kalman_missing.png

Kalman, R.E., 1960. A new approach to linear filtering and prediction problems. Journal of Basic Engineering 82.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.scipy import optimize


def series(length: int) -> tuple[Any, Any]:
    """Return a random walk, and noisy measurements of it; missing measurements are NaN."""
    rng = np.random.default_rng(3)
    level = np.cumsum(0.3 * rng.normal(size=length))
    measured = level + 0.8 * rng.normal(size=length)
    measured[rng.uniform(size=length) < 0.25] = np.nan
    measured[length // 2 : length // 2 + length // 10] = np.nan
    return level, measured


def filtered(log_variances: Any, measured: Any) -> tuple[Any, Any, Any]:
    """Return the mean and variance of the level at each time, and the negative log-likelihood."""
    movement, noise = vg.exp(log_variances[0]), vg.exp(log_variances[1])
    mean, variance = vg.zeros(len(measured)), vg.zeros(len(measured))
    loss = vg.zeros(1)
    variance[0] = 10.0
    for t in range(len(measured)):
        if t:
            mean[t] = mean[t - 1]
            variance[t] = variance[t - 1] + movement
        if not np.isnan(measured[t]):
            error, total = measured[t] - mean[t], variance[t] + noise
            gain = variance[t] / total
            loss[0] += 0.5 * (vg.log(total) + error * error / total)
            mean[t] += gain * error
            variance[t] *= 1 - gain
    return mean, variance, loss[0]


def fit(small: bool = False) -> dict[str, Any]:
    """Fit both variances.

    Arguments:
        small: a short series, for tests.
    """
    level, measured = series(30 if small else 150)
    found = optimize.minimize(lambda p: filtered(p, measured)[2], [0.0, 0.0], method="L-BFGS-B")
    best = vg.Tensor(np.asarray(found.x))
    mean, variance, loss = filtered(best, measured)
    before = filtered(vg.zeros(2), measured)[2]
    return {
        "level": level, "measured": measured, "mean": mean.numpy(), "deviation": np.sqrt(variance.numpy()),
        "variances": np.exp(best.numpy()), "loss": float(loss), "loss before": float(before),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the series and the estimated level."""
    found = fit(small)
    axes = (picture := Figure(figsize=(7, 3.4))).subplots()
    times = np.arange(len(found["level"]))
    band = found["mean"] - 2 * found["deviation"], found["mean"] + 2 * found["deviation"]
    axes.fill_between(times, *band, alpha=0.25, label="two standard deviations")
    axes.plot(times, found["mean"], label="filtered")
    axes.plot(times, found["level"], ":", color="black", label="the level")
    axes.plot(times, found["measured"], ".", label="measured")
    axes.set_title("movement {:.2f} (0.09), noise {:.2f} (0.64)".format(*found["variances"]))
    axes.legend(loc="upper center", ncols=4, fontsize=8)
    axes.set_ylim(top=4)
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
