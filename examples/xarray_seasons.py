"""Fit the seasons of several stations at once, on labelled arrays of xarray.

Temperatures come as an `xarray.DataArray` with dimensions time and station. The model is written with labels: it
selects, aligns and averages by name. Its parameters are tensors, and the gradient passes through xarray.

    pip install xarray
    python examples/xarray_seasons.py        # writes xarray_seasons.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import minimize

import viewgrad as vg


def observed(years: int, stations: int) -> Any:
    """Return monthly temperatures with gaps."""
    rng = np.random.default_rng(0)
    time = np.arange(12 * years) / 12
    latitude = np.linspace(30.0, 65.0, stations)
    swing, mean = 4 + 0.25 * (latitude - 30), 22 - 0.4 * (latitude - 30)
    values = mean + swing * np.cos(2 * np.pi * (time[:, None] - 0.55)) + 0.3 * time[:, None]
    values += rng.normal(size=values.shape)
    values[rng.random(values.shape) < 0.2] = np.nan
    return xr.DataArray(values, dims=("time", "station"), coords={"time": time, "station": latitude})


def model(mean: Any, swing: Any, peak: Any, trend: Any, like: Any) -> Any:
    """Return seasonal temperatures: a mean and an amplitude for each station, one peak and one trend for all."""
    stations = {"station": like.station}
    mean = xr.DataArray(mean, dims="station", coords=stations)
    swing = xr.DataArray(swing, dims="station", coords=stations)
    return mean + swing * np.cos(2 * np.pi * (like.time - peak)) + trend * like.time


def fit(small: bool = False) -> dict[str, Any]:
    """Fit the model.

    Arguments:
        small: few years, stations and steps, for tests.
    """
    data = observed(*((2, 3) if small else (6, 12)))
    known, count = data.notnull(), data.sizes["station"]
    filled = data.fillna(0.0)

    def loss(parameters: Any) -> Any:
        mean, swing = parameters[:count] * 10, parameters[count : 2 * count] * 10
        away = model(mean, swing, parameters[-2], parameters[-1], data) - filled
        per_station = (away**2 * known).sum("time") / known.sum("time")
        return per_station.data.mean()  # the tensor itself: xarray converts 0-d results to plain arrays

    start = np.concatenate([np.ones(2 * count), [0.4, 0.0]])
    both = vg.value_and_grad(loss)
    found = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 40 if small else 200})
    fitted = model(found.x[:count] * 10, found.x[count : 2 * count] * 10, found.x[-2], found.x[-1], data)
    return {"data": data, "fitted": fitted, "loss": found.fun, "loss before": both(start)[0]}


def figure(small: bool = False) -> Figure:
    """Draw the temperatures of three stations, and the model."""
    found = fit(small)
    axes = (picture := Figure(figsize=(7, 3.2))).subplots()
    for place in np.linspace(0, found["data"].sizes["station"] - 1, 3).astype(int):
        (line,) = axes.plot(found["data"].time, found["fitted"].isel(station=place))
        degrees = f"{float(found['data'].station[place]):.0f}°N"
        axes.plot(found["data"].time, found["data"].isel(station=place), ".", color=line.get_color(), label=degrees)
    axes.set(xlabel="year", ylabel="temperature in °C", ylim=(-8, 37))
    axes.legend(loc="upper left", ncols=3)
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    figure().savefig(Path(__file__).stem + ".png", dpi=120)
