"""Fit Holt-Winters smoothing to a panel of many series, on the processes of a Dask cluster or in threads.

Each series is fitted independently: 17 parameters, by L-BFGS with the exact gradient. Only plain arrays are sent
between processes; each process compiles the loss once, for its first series. The panel is random: monthly sales with a
trend, a season and noise.

Run it with `make panel`, or

    python examples/panel_fit.py --series 64 --workers 1 2
    python examples/panel_fit.py --threads --workers 1 2
    python examples/panel_fit.py --address tcp://scheduler:8786      # an existing cluster

It prints the number of series fitted per second for each number of workers, and shows a progress bar.

The recursion: Winters, P.R., 1960. Forecasting sales by exponentially weighted moving averages. Management Science 6.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.optimize import minimize

import viewgrad as vg
from viewgrad.progress import ProgressBar

SEASON = 12  # months
BATCH = 4  # series that one task fits: a task costs about a millisecond of communication

Floats: TypeAlias = npt.NDArray[np.float64]
Fits: TypeAlias = list[tuple[Floats, float]]  # for each series: the parameters, and the mean squared error


# ---------------------------------------------------------------------------------------------------------------------
# The model


@vg.compile
def mean_squared_error(parameters: Any, series: Any) -> Any:
    """Run Holt-Winters' additive recursion over a series; return the mean of the squared one-step errors.

    Arguments:
        parameters: shape `(5 + SEASON,)`: the logits of the smoothing parameters of level, trend and season; the first
            level and trend; the first seasonal offsets.
        series: shape `(months,)`.
    """
    alpha, beta, gamma = 1 / (1 + np.exp(-parameters[:3]))
    level, trend = parameters[3], parameters[4]
    season = parameters[5:].copy()
    total = 0.0
    for t in range(len(series)):
        expected = level + trend
        error = series[t] - (expected + season[t % SEASON])
        total = total + error * error
        before = level
        level = alpha * (series[t] - season[t % SEASON]) + (1 - alpha) * expected
        trend = beta * (level - before) + (1 - beta) * trend
        season[t % SEASON] = gamma * (series[t] - level) + (1 - gamma) * season[t % SEASON]
    return total / len(series)


def fit_batch(batch: Sequence[Floats]) -> Fits:
    """Fit each series of a batch."""
    found = []
    for series in batch:
        result = minimize(
            mean_squared_error.value_and_grad, first_guess(series), args=(series,), jac=True, method="L-BFGS-B",
            options={"maxiter": 50},
        )  # fmt: skip
        found.append((result.x, float(result.fun)))
    return found


def first_guess(series: Floats) -> Floats:
    """Return the parameters to start from: a line through the series, and each month's mean distance from it."""
    months = np.arange(len(series))
    slope, intercept = np.polyfit(months, series, deg=1)
    distances = series - (intercept + slope * months)
    season = [distances[month::SEASON].mean() for month in range(SEASON)]
    return np.concatenate([[0.0, -2.0, -1.0], [intercept - slope, slope], season])


def panel(count: int, months: int, seed: int = 0) -> list[Floats]:
    """Generate random series with a drifting level, a season and noise."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        level = rng.uniform(50, 100) + np.cumsum(rng.normal(0.2, 1.0, months))
        season = np.resize(rng.normal(0, 8, SEASON), months)
        drawn.append(level + season + rng.normal(0, 2, months))
    return drawn


# ---------------------------------------------------------------------------------------------------------------------
# The ways to spread the work


def fit_in_threads(batches: Sequence[Sequence[Floats]], workers: int) -> tuple[Fits, float]:
    """Fit batches in threads of this process; return the fits and the seconds that they took."""
    fit_batch(batches[0][:1])  # compiles
    with ThreadPoolExecutor(workers) as pool:
        start = time.perf_counter()
        found, bar = [], ProgressBar()
        for fits in pool.map(fit_batch, batches):
            found.append(fits)
            bar.update("batches", len(found), len(batches))
        bar.finish()
        return joined(found), time.perf_counter() - start


def fit_on_cluster(client: Any, batches: Sequence[Sequence[Floats]], bar: bool = True) -> tuple[Fits, float]:
    """Fit batches on a Dask cluster; return the fits and the seconds that they took.

    Arguments:
        client: a `dask.distributed.Client`.
        batches: the series.
        bar: whether Dask shows a progress bar.
    """
    from dask.distributed import progress

    client.run(fit_batch, batches[0][:1])  # compiles, in every process
    start = time.perf_counter()
    futures = client.map(fit_batch, batches, pure=False)
    if bar:
        progress(futures, notebook=False)
        print(file=sys.stderr)
    found = client.gather(futures)
    return joined(found), time.perf_counter() - start


def on_local_cluster(batches: Sequence[Sequence[Floats]], workers: int) -> tuple[Fits, float]:
    """Fit batches on processes of this machine."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        return fit_on_cluster(client, batches)


def at_address(address: str) -> Callable[[Sequence[Sequence[Floats]], int], tuple[Fits, float]]:
    """Fit batches on a running cluster, with all its workers."""

    def run(batches: Sequence[Sequence[Floats]], workers: int) -> tuple[Fits, float]:
        from dask.distributed import Client

        with Client(address) as client:
            client.upload_file(__file__)  # workers on other machines have no copy of this file
            return fit_on_cluster(client, batches)

    return run


def joined(found: Sequence[Fits]) -> Fits:
    """Return the fits of all batches in one list."""
    return [each for fits in found for each in fits]


# ---------------------------------------------------------------------------------------------------------------------
# The picture


def fit(small: bool = False) -> dict[str, Any]:
    """Fit a panel in threads, and compare the errors before and after the fit.

    Arguments:
        small: few and short series, for tests.
    """
    series = panel(4, 36) if small else panel(24, 96)
    batches = [series[start : start + BATCH] for start in range(0, len(series), BATCH)]
    fits, seconds = fit_in_threads(batches, 2)
    before = [float(mean_squared_error.function(first_guess(each), each)) for each in series]
    after = [error for _, error in fits]
    return {
        "series": series, "fits": fits, "seconds": seconds, "errors before": before, "errors": after,
        "loss": float(np.mean(after)), "loss before": float(np.mean(before)),
    }  # fmt: skip


def figure(small: bool = False) -> Figure:
    """Draw some series of the panel, and the errors of all series before and after the fit."""
    found = fit(small)
    left, right = (picture := Figure(figsize=(8, 3.2), layout="constrained")).subplots(1, 2)
    for series in found["series"][:4]:
        left.plot(series, linewidth=1)
    left.set(title="four of the series", xlabel="month")
    roots = np.sqrt(found["errors before"]), np.sqrt(found["errors"])
    right.plot(*roots, "o", markersize=4)
    limit = 1.05 * float(max(roots[0]))
    right.plot([0, limit], [0, limit], ":", color="gray")
    right.set(title="errors of all of them", xlabel="at the start", ylabel="fitted", xlim=(0, limit), ylim=(0, limit))
    return picture


# ---------------------------------------------------------------------------------------------------------------------
# The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit a panel with each number of workers, and print the speedup."""
    parser = argparse.ArgumentParser(description="Fit Holt-Winters smoothing to a panel of series.")
    parser.add_argument("--series", type=int, default=64, help="how many series there are")
    parser.add_argument("--months", type=int, default=96, help="how long each is")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers to compare")
    parser.add_argument("--threads", action="store_true", help="use threads instead of a Dask cluster")
    parser.add_argument("--address", help="the scheduler of a Dask cluster that runs already")
    options = parser.parse_args(arguments)
    if min(options.series, options.months // (2 * SEASON), *options.workers) < 1:
        parser.error(f"there must be a series, {2 * SEASON} months and a worker at least")
    series = panel(options.series, options.months)
    batches = [series[start : start + BATCH] for start in range(0, len(series), BATCH)]
    run = fit_in_threads if options.threads else at_address(options.address) if options.address else on_local_cluster
    kind = "threads" if options.threads else "workers"
    first = 0.0
    for workers in options.workers:
        try:
            fits, seconds = run(batches, workers)
        except ModuleNotFoundError as missing:
            print(f"{missing}: pip install 'viewgrad[distributed]', or use --threads", file=sys.stderr)
            return 1
        rate = len(fits) / seconds
        first = first or rate
        error = np.sqrt(np.median([error for _, error in fits]))
        print(
            f"{workers} {kind}: {len(fits)} series in {seconds:.2f} s, {rate:.1f} a second, {rate / first:.2f} times "
            f"the first; median error {error:.3f}"
        )
    return 0


if __name__ == "__main__":
    # Other processes cannot import functions of `__main__`: import this module under its own name.
    import panel_fit

    sys.exit(panel_fit.main())
