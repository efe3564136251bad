"""Forecast atmospheric CO2 with Holt-Winters smoothing, written as in the textbook and fitted by exact gradients.

Triple exponential smoothing keeps a level, a trend and one offset per week of the year, and corrects all three after
each observation. The recursion below is plain NumPy and writes them into arrays in place, `season[t % SEASON] = ...`
included. `vg.value_and_grad` differentiates it unchanged, with respect to all 57 parameters: the three smoothing
parameters and the state (level, trend, 52 seasonal offsets) in which the record begins. `vg.compile` turns the same
function into a program that SciPy fits in a fraction of a second.

A season of 52 weeks is a day and a quarter short of a year, so over decades the seasons drift by some weeks, which
level and season have to correct: beyond the end of the record the forecast turns a little too early.

Run it with `make demo`, or

    python examples/co2_forecast.py --input examples/data/mauna_loa_co2_weekly.csv --output co2_forecast.png

The recursion: Winters, P.R., 1960. Forecasting sales by exponentially weighted moving averages. Management Science 6.
"""

import argparse
import csv
import datetime
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.optimize import OptimizeResult, minimize

import viewgrad as vg
from viewgrad.progress import ProgressBar

SEASON = 52  # weeks
OPENING = 4 * SEASON  # the weeks from which the first guess is made
FORECAST = 2 * SEASON  # the weeks forecast beyond the end of the record
LARGEST_GRADIENT_ERROR = 1e-6
DATA = Path(__file__).parent / "data" / "mauna_loa_co2_weekly.csv"

Floats: TypeAlias = npt.NDArray[np.float64]
Array: TypeAlias = Any  # a viewgrad tensor, or a NumPy array


# ---------------------------------------------------------------------------------------------------------------------
# The model


@attrs.define
class Smoothing:
    """The result of the recursion; `level[t]` and `trend[t]` are the state at the beginning of week `t`."""

    forecast: Array  # (weeks,): the forecast of each week from the weeks before it, ppm
    level: Array  # (weeks + 1,): ppm
    trend: Array  # (weeks + 1,): ppm per week
    season: Array  # (SEASON,): each seasonal offset as last corrected, ppm


def smooth(co2: Floats, parameters: Array) -> Smoothing:
    """Run Holt-Winters' additive recursion over a record.

    A missing week corrects nothing: the level moves on along the trend, and trend and season stay as they are.

    Arguments:
        co2: the weekly means, shape `(weeks,)`, ppm; NaN where a week is missing.
        parameters: shape `(5 + SEASON,)`: the logits of the smoothing parameters of level, trend and season; the first
            level (ppm) and trend (ppm per week); the first seasonal offsets (ppm).

    Returns:
        The one-step forecasts and the state after each week.
    """
    return Smoothing(*recursion(co2, parameters))


def recursion(co2: Floats, parameters: Array) -> tuple[Array, Array, Array, Array]:
    """Return the fields of `Smoothing`; arguments as for `smooth`."""
    weeks = len(co2)
    forecast = np.empty(weeks)
    level = np.empty(weeks + 1)
    trend = np.empty(weeks + 1)
    season = np.empty(SEASON)

    alpha, beta, gamma = sigmoid(parameters[:3])
    level[0] = parameters[3]
    trend[0] = parameters[4]
    season[:] = parameters[5:]

    for t in range(weeks):
        observed = co2[t]
        expected = level[t] + trend[t]
        forecast[t] = expected + season[t % SEASON]
        if math.isnan(observed):
            level[t + 1] = expected
            trend[t + 1] = trend[t]
        else:
            level[t + 1] = alpha * (observed - season[t % SEASON]) + (1 - alpha) * expected
            trend[t + 1] = beta * (level[t + 1] - level[t]) + (1 - beta) * trend[t]
            season[t % SEASON] = gamma * (observed - level[t + 1]) + (1 - gamma) * season[t % SEASON]

    return forecast, level, trend, season


def sigmoid(logits: Array) -> Array:
    """Return the numbers between 0 and 1 that have these logits."""
    return 1 / (1 + np.exp(-logits))


def mean_squared_error(parameters: Array, co2: Floats) -> Array:
    """Return the mean squared one-step error over the weeks observed, ppm squared; arguments as for `smooth`."""
    observed = ~np.isnan(co2)
    forecast, _, _, _ = recursion(co2, parameters)
    error = forecast[observed] - co2[observed]
    return np.mean(error**2)


def continuation(smoothing: Smoothing, weeks: int) -> Floats:
    """Return the forecast of the `weeks` that follow a record smoothed with NumPy, shape `(weeks,)`, ppm."""
    ahead = np.arange(weeks)
    end = len(smoothing.forecast)
    result: Floats = smoothing.level[-1] + (ahead + 1) * smoothing.trend[-1] + smoothing.season[(end + ahead) % SEASON]
    return result


# ---------------------------------------------------------------------------------------------------------------------
# The fit


def first_guess(co2: Floats) -> Floats:
    """Return the parameters to start from: a line through the opening years, and each week's mean distance from it."""
    opening = co2[:OPENING]
    weeks = np.flatnonzero(~np.isnan(opening))
    slope, intercept = np.polyfit(weeks, opening[weeks], deg=1)
    distances = opening[weeks] - (intercept + slope * weeks)
    counts = np.bincount(weeks % SEASON, minlength=SEASON)
    season = np.bincount(weeks % SEASON, weights=distances, minlength=SEASON) / np.maximum(counts, 1)
    # A level that follows the record closely, a season that follows slowly, and a trend that hardly moves.
    logits = [0.0, -4.0, -1.0]
    return np.concatenate([logits, [intercept - slope, slope], season])


@attrs.define
class Objective:
    """The loss and its gradient as `scipy.optimize.minimize(jac=True)` takes them; it times itself."""

    co2: Floats
    loss: Callable[[Array, Floats], Array] = mean_squared_error  # or the compiled one
    seconds: list[float] = attrs.field(factory=list)  # of each evaluation: the loss and all its derivatives

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the mean squared error at `parameters` and its derivative, shape `(5 + SEASON,)`."""
        start = time.perf_counter()
        loss, gradient = vg.value_and_grad(self.loss)(parameters, self.co2)
        self.seconds.append(time.perf_counter() - start)
        return float(loss), gradient


def fit(objective: Objective, start: Floats, iterations: int) -> OptimizeResult:
    """Minimise the objective by L-BFGS from `start`, with a progress bar on a terminal; `.x` is the minimiser."""
    progress = ProgressBar()
    done = 0

    def report(intermediate_result: OptimizeResult) -> None:
        nonlocal done
        done += 1
        progress.update(f"rmse {math.sqrt(intermediate_result.fun):.4f} ppm", done, iterations)

    result = minimize(objective, start, jac=True, method="L-BFGS-B", callback=report, options={"maxiter": iterations})
    progress.finish()
    return result


def central_differences(function: Callable[[Floats], float], point: Floats, step: float = 1e-5) -> Floats:
    """Return the gradient of `function` at `point` by central differences, each step relative to its coordinate."""
    gradient = np.empty_like(point)
    for i in range(len(point)):
        h = step * max(1.0, abs(point[i]))
        above, below = point.copy(), point.copy()
        above[i] += h
        below[i] -= h
        gradient[i] = (function(above) - function(below)) / (above[i] - below[i])
    return gradient


# ---------------------------------------------------------------------------------------------------------------------
# The comparison


@attrs.define
class Comparison:
    """Root mean square errors, ppm, over the weeks observed both now and a season ago."""

    weeks: int
    fitted: float  # of the one-step forecast
    naive: float  # of the seasonal-naive forecast: the same as a season ago


def compare(co2: Floats, forecast: Floats) -> Comparison:
    """Compare one-step forecasts, shape `(weeks,)`, with the seasonal-naive forecast of the same weeks."""
    naive_errors = co2[SEASON:] - co2[:-SEASON]
    known = ~np.isnan(naive_errors)
    fitted_errors = (co2 - forecast)[SEASON:]
    return Comparison(
        weeks=int(known.sum()),
        fitted=root_mean_square(fitted_errors[known]),
        naive=root_mean_square(naive_errors[known]),
    )


def root_mean_square(errors: Floats) -> float:
    """Return the root of the mean of the squares."""
    return float(np.sqrt(np.mean(errors**2)))


# ---------------------------------------------------------------------------------------------------------------------
# The record


class BadInput(Exception):
    """The input cannot be used, or the output cannot be written; the message is one line for the user."""


@attrs.define
class Record:
    """A weekly record without gaps in its dates."""

    dates: list[datetime.date]
    co2: Floats  # (weeks,), ppm; NaN where no data was taken


def read_record(path: Path) -> Record:
    """Read a weekly record from a CSV file with the columns `date` (YYYYMMDD) and `co2` (ppm, or empty).

    Raises:
        BadInput: if the file, a column or a value is missing or invalid, or the record is too short.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            record = parse_record(lines, str(path))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: is not a CSV file: {error}") from error
    if len(record.co2) < OPENING:
        raise BadInput(f"{path}: {len(record.co2)} weeks are too few to fit a season; at least {OPENING} are needed")
    observed = ~np.isnan(record.co2)
    if observed[:OPENING].sum() < SEASON or not np.any(observed[SEASON:] & observed[:-SEASON]):
        raise BadInput(f"{path}: too few weeks have a value of co2 to fit a season")
    return record


def parse_record(lines: Iterable[str], name: str) -> Record:
    """Read a weekly record from the lines of a CSV file called `name` in messages."""
    rows = csv.DictReader(lines)
    for column in ("date", "co2"):
        if column not in (rows.fieldnames or ()):
            raise BadInput(f"{name}: there is no column {column!r} in its first line")
    dates: list[datetime.date] = []
    co2: list[float] = []
    for row in rows:
        where = f"{name}: line {rows.line_num}"
        dates.append(parse_date(row["date"], where))
        co2.append(parse_co2(row["co2"], where))
        if len(dates) > 1 and dates[-1] - dates[-2] != datetime.timedelta(weeks=1):
            raise BadInput(f"{where}: {dates[-1]} does not come a week after {dates[-2]}")
    return Record(dates, np.array(co2))


def parse_date(text: str | None, where: str) -> datetime.date:
    """Return the date written as YYYYMMDD."""
    try:
        return datetime.datetime.strptime(text or "", "%Y%m%d").date()
    except ValueError:
        raise BadInput(f"{where}: date is {text!r}, which is not of the form YYYYMMDD") from None


def parse_co2(text: str | None, where: str) -> float:
    """Return the value in ppm, or NaN if the field is empty."""
    if text is None:
        raise BadInput(f"{where}: there is no field for co2")
    if not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{where}: co2 is {text!r}, which is not a number")
    return value


# ---------------------------------------------------------------------------------------------------------------------
# The plot


def figure(small: bool = False) -> Figure:
    """Fit the compiled loss, and return the picture that `make demo` draws.

    Arguments:
        small: few years and iterations, for tests.
    """
    record = read_record(DATA)
    if small:
        shown = slice(-2 * OPENING, None)
        record = attrs.evolve(record, dates=record.dates[shown], co2=record.co2[shown])
    objective = Objective(record.co2, vg.compile(mean_squared_error, executor="python" if small else None))
    fitted = fit(objective, first_guess(record.co2), iterations=2 if small else 40).x
    return drawn(record, smooth(record.co2, fitted))


def drawn(record: Record, smoothing: Smoothing) -> Figure:
    """Draw the whole record with its forecast, and the last years in detail."""
    future = [record.dates[-1] + datetime.timedelta(weeks=k + 1) for k in range(FORECAST)]
    forecast = continuation(smoothing, FORECAST)
    # `Figure` without pyplot draws with Agg: no display is needed.
    picture = Figure(figsize=(11, 9), layout="constrained")
    whole, recent = picture.subplots(2, 1)

    whole.plot(record.dates, record.co2, color="0.35", linewidth=0.8, label="observed")
    whole.plot(future, forecast, color="tab:red", linewidth=1.0, label="two-year forecast")
    whole.set_title("Atmospheric CO2 at Mauna Loa, weekly means")

    shown = slice(-4 * SEASON, None)
    recent.plot(record.dates[shown], record.co2[shown], ".", color="0.35", markersize=4, label="observed")
    recent.plot(record.dates[shown], smoothing.forecast[shown], color="tab:blue", linewidth=1.0, label="one-step fit")
    recent.plot(future, forecast, color="tab:red", linewidth=1.5, label="two-year forecast")
    recent.set_title("The last four years, and the two that follow")

    for axes in (whole, recent):
        axes.set_ylabel("CO2, ppm")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")
    return picture


def plot(record: Record, smoothing: Smoothing, path: Path) -> None:
    """Write the picture as a PNG."""
    try:
        drawn(record, smoothing).savefig(path, format="png", dpi=120)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error


# ---------------------------------------------------------------------------------------------------------------------
# The program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return 0, 1 if the gradient check fails, or 2 if the input is invalid."""
    options = parse_arguments(arguments)
    try:
        return demonstrate(options.input, options.output, options.iterations)
    except BadInput as error:
        print(f"co2_forecast: {error}", file=sys.stderr)
        return 2


def demonstrate(source: Path, output: Path, iterations: int) -> int:
    """Check the gradient, fit, compare, plot; return the exit code."""
    record = read_record(source)
    if not output.parent.is_dir():
        raise BadInput(f"{output}: cannot be written: there is no directory {output.parent}")
    co2 = record.co2
    start = first_guess(co2)
    print(
        f"{source}: {len(co2)} weeks from {record.dates[0]} to {record.dates[-1]}, "
        f"{np.isnan(co2).sum()} of them missing"
    )

    # Finite differences of the plain NumPy function are independent of the compiled gradient.
    began = time.perf_counter()
    differences = central_differences(lambda point: float(mean_squared_error(point, co2)), start)
    seconds_per_run = (time.perf_counter() - began) / (2 * len(start))
    eager = Objective(co2)
    _, gradient = eager(start)
    gradient_error = float(np.linalg.norm(gradient - differences) / np.linalg.norm(differences))
    print(f"gradient check: {len(start)} parameters, relative error against finite differences {gradient_error:.1e}")
    if not gradient_error < LARGEST_GRADIENT_ERROR:
        print(f"co2_forecast: the gradient is off by more than {LARGEST_GRADIENT_ERROR}", file=sys.stderr)
        return 1

    compiled = Objective(co2, vg.compile(mean_squared_error))
    compiled(start)
    build = compiled.seconds.pop()
    _, compiled_gradient = compiled(start)
    difference = float(np.linalg.norm(compiled_gradient - gradient) / np.linalg.norm(gradient))
    began = time.perf_counter()
    result = fit(compiled, start, iterations)
    fit_seconds = time.perf_counter() - began
    smoothing = smooth(co2, result.x)
    report(co2, result.x, smoothing)
    print(f"time per run, plain NumPy: {1e3 * seconds_per_run:.2f} ms for the loss alone")
    print(f"time per gradient, eager: {1e3 * min(eager.seconds):.1f} ms for the loss and all {len(start)} derivatives")
    print(
        f"time per gradient, compiled: {1e3 * min(compiled.seconds):.3f} ms, after a first call of {build:.1f} s; "
        f"relative difference {difference:.0e}"
    )
    print(f"time of the fit, by SciPy: {fit_seconds:.2f} s, {result.nit} iterations, {len(compiled.seconds)} gradients")

    plot(record, smoothing, output)
    print(f"plot: {output}")
    return 0


def report(co2: Floats, fitted: Floats, smoothing: Smoothing) -> None:
    """Print the fitted parameters and the errors of their forecasts."""
    alpha, beta, gamma = sigmoid(fitted[:3])
    season = fitted[5:]
    print(f"fitted smoothing: level {alpha:.4f}, trend {beta:.5f}, season {gamma:.5f}")
    print(
        f"fitted first state: level {fitted[3]:.2f} ppm, trend {SEASON * fitted[4]:.3f} ppm per season, "
        f"season from {season.min():.2f} to {season.max():.2f} ppm"
    )
    comparison = compare(co2, smoothing.forecast)
    print(
        f"one-step error over {comparison.weeks} weeks: {comparison.fitted:.3f} ppm; "
        f"seasonal-naive {comparison.naive:.3f} ppm; ratio {comparison.fitted / comparison.naive:.3f}"
    )


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options `input`, `output` and `iterations`."""
    parser = argparse.ArgumentParser(
        prog="co2_forecast", description="Fit Holt-Winters smoothing to a weekly CO2 record by its exact gradient."
    )
    parser.add_argument(
        "--input", type=Path, default=DATA, metavar="CSV", help="the record: columns date (YYYYMMDD) and co2 (ppm)"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("co2_forecast.png"), metavar="PNG", help="the plot (default: %(default)s)"
    )
    parser.add_argument(
        "--iterations", type=positive_integer, default=60, metavar="N", help="at most so many (default: %(default)s)"
    )
    return parser.parse_args(arguments)


def positive_integer(text: str) -> int:
    """Return the positive integer in `text`, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError(f"{number} is not positive")
    return number


if __name__ == "__main__":
    sys.exit(main())
