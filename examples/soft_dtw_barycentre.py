"""Average time series that run at different speeds.

The pointwise mean of three shifted peaks has three low peaks. The *barycentre*, the series nearest to all of them in
soft dynamic time warping, has one. The table of the warping is filled in place, diagonal by diagonal.

    python examples/soft_dtw_barycentre.py        # writes soft_dtw_barycentre.png

Cuturi, M. and Blondel, M., 2017. Soft-DTW: a differentiable loss function for time-series. ICML.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.scipy import optimize


def soft_dtw(a: Any, b: Any, softness: float) -> Any:
    """Return the cost of the alignment of two series, as a soft minimum over all alignments."""
    n, m = len(a), len(b)
    costs = (a[:, None] - b[None, :]) ** 2
    table = vg.full((n + 1, m + 1), 1e6)
    table[0, 0] = 0.0
    for diagonal in range(2, n + m + 1):
        i = np.arange(max(1, diagonal - m), min(n, diagonal - 1) + 1)
        j = diagonal - i
        before = vg.stack([table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]])
        table[i, j] = costs[i - 1, j - 1] - softness * vg.logsumexp(-before / softness, axis=0)
    return table[n, m]


def peaks(length: int) -> list[Any]:
    """Return series of the same shape at different speeds."""
    times = np.linspace(0.0, 1.0, length)
    return [np.exp(-120 * (times - at) ** 2) - 0.5 * np.exp(-90 * (times - at - 0.25) ** 2) for at in (0.25, 0.4, 0.6)]


def fit(small: bool = False) -> dict[str, Any]:
    """Find the barycentre.

    Arguments:
        small: short series and few steps, for tests.
    """
    series = peaks(12 if small else 40)
    mean = np.mean(series, axis=0)

    def loss(barycentre: Any) -> Any:
        return sum(soft_dtw(barycentre, vg.Tensor(one), 0.02) for one in series) / len(series)

    found = optimize.minimize(loss, mean, method="L-BFGS-B", options={"maxiter": 8 if small else 40})
    return {
        "series": series, "mean": mean, "barycentre": np.asarray(found.x),
        "loss": float(found.fun), "loss before": float(loss(vg.Tensor(mean))),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the series, their mean and their barycentre."""
    found = fit(small)
    axes = (picture := Figure(figsize=(7, 3.4))).subplots()
    for one in found["series"]:
        axes.plot(one, color="gray", alpha=0.5)
    axes.plot(found["mean"], "--", label="mean at each time")
    axes.plot(found["barycentre"], linewidth=2, label="barycentre")
    axes.legend()
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
