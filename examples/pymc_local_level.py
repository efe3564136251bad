"""Sample a local level model with missing data: PyMC's NUTS on a likelihood that is a Kalman filter in a loop.

A level moves at random and is measured with noise; a third of the measurements is missing. The filter is an ordinary
loop with an `if`, compiled with its gradient by viewgrad, and an operation of PyTensor for PyMC.

    pip install viewgrad[interop-pytensor,compile]
    python examples/pymc_local_level.py        # writes pymc_local_level.png

Kalman, R.E., 1960. A new approach to linear filtering and prediction problems. Journal of Basic Engineering 82.
Hoffman, M.D., Gelman, A., 2014. The No-U-Turn sampler. Journal of Machine Learning Research 15.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from matplotlib.figure import Figure

import viewgrad as vg
from viewgrad.interop import pytensor_op

TRUE = {"movement": 0.3, "noise": 0.8}  # standard deviations


def series(length: int) -> tuple[Any, Any]:
    """Return a random walk, and noisy measurements of it; missing measurements are NaN."""
    rng = np.random.default_rng(3)
    level = np.cumsum(TRUE["movement"] * rng.normal(size=length))
    measured = level + TRUE["noise"] * rng.normal(size=length)
    measured[rng.uniform(size=length) < 0.25] = np.nan
    measured[length // 2 : length // 2 + length // 10] = np.nan
    return level, measured


def log_likelihood_of(measured: Any) -> Any:
    """Return the log-likelihood of some measurements, as a function of the two standard deviations."""
    is_there = ~np.isnan(measured)
    values = np.where(is_there, measured, 0.0)

    def log_likelihood(movement: Any, noise: Any) -> Any:
        mean, variance = vg.zeros(len(values) + 1), vg.zeros(len(values) + 1)
        total = vg.zeros(1)
        variance[0] = 10.0
        for t in range(len(values)):
            mean[t + 1] = mean[t]
            variance[t + 1] = variance[t] + movement * movement
            if is_there[t]:
                error, spread = values[t] - mean[t + 1], variance[t + 1] + noise * noise
                gain = variance[t + 1] / spread
                total[0] -= 0.5 * (vg.log(spread) + error * error / spread)
                mean[t + 1] += gain * error
                variance[t + 1] *= 1 - gain
        return total[0]

    return vg.compile(log_likelihood)


def fit(small: bool = False) -> dict[str, Any]:
    """Sample the posterior of both standard deviations.

    Arguments:
        small: a short series and few draws, for tests.
    """
    _, measured = series(30 if small else 150)
    likelihood = log_likelihood_of(measured)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with pm.Model():
        movement, noise = pm.HalfNormal("movement", 1.0), pm.HalfNormal("noise", 1.0)
        pm.Potential("likelihood", pytensor_op(likelihood, pt.dscalar)(movement, noise))
        draws = 50 if small else 1000
        found = pm.sample(draws, tune=draws, chains=2, cores=1, random_seed=0, progressbar=False)
    samples = {name: found.posterior[name].values.reshape(-1) for name in TRUE}
    means = {name: float(each.mean()) for name, each in samples.items()}
    value = lambda point: -float(likelihood(*(vg.Tensor(point[name]) for name in TRUE)).item())  # noqa: E731
    return {
        "samples": samples, "measured": measured,
        "loss": value(means) - value(TRUE) + 1.0, "loss before": value({"movement": 2.0, "noise": 3.0}) - value(TRUE),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw the posterior samples and the true values."""
    found = fit(small)
    left, right = (picture := Figure(figsize=(7, 3.2))).subplots(1, 2)
    left.plot(found["measured"], ".", color="black")
    left.set(xlabel="time", title="measurements, with gaps")
    right.plot(found["samples"]["movement"], found["samples"]["noise"], ".", alpha=0.3, markersize=3)
    right.plot(TRUE["movement"], TRUE["noise"], "x", color="red")
    right.set(xlabel="movement", ylabel="noise", title="draws from the posterior")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
