"""The CO2 example: its input, its model, its gradient, and its errors for bad input."""

import datetime
import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import viewgrad as vg

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

Floats = npt.NDArray[np.float64]
SCRIPT = Path(__file__).parents[1] / "examples" / "co2_forecast.py"


def load_script() -> ModuleType:
    """Import the example, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("co2_forecast", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # attrs looks a class's module up by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def compiled_from_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile as users do."""
    monkeypatch.setattr("viewgrad.compiler.api.SPECIALIZE", False)


example = load_script()
RECORD = example.read_record(example.DATA)


def csv_lines(weeks: int) -> list[str]:
    """Return the header and the first weeks of the committed record, as lines."""
    return example.DATA.read_text().splitlines()[: weeks + 1]


def known_parameters(season: Floats, level: float = 300.0, trend: float = 0.25) -> Floats:
    """Return parameters with this first state, and smoothing parameters that are neither 0, 1 nor alike."""
    return np.concatenate([[0.3, -0.7, -0.2], [level, trend], season])


# ---------------------------------------------------------------------------------------------------------------------
# The record


def test_the_committed_record_is_whole() -> None:
    assert len(RECORD.co2) == len(RECORD.dates) == 2284
    assert np.isnan(RECORD.co2).sum() == 59
    assert RECORD.dates[0] == datetime.date(1958, 3, 29)
    assert RECORD.dates[-1] == datetime.date(2001, 12, 29)
    assert RECORD.co2[0] == 316.1
    assert math.isnan(RECORD.co2[6])
    assert RECORD.co2[-1] == 371.5


# ---------------------------------------------------------------------------------------------------------------------
# The model


def test_series_of_the_model_is_forecast_exactly() -> None:
    season = 3 * np.sin(2 * np.pi * np.arange(example.SEASON) / example.SEASON)
    weeks = np.arange(300)
    truth = 300 + 0.25 * (weeks + 1) + season[weeks % example.SEASON]
    co2 = truth[:200].copy()
    co2[[0, 17, 60, 61, 62, 199]] = math.nan

    smoothing = example.smooth(co2, known_parameters(season))

    np.testing.assert_allclose(smoothing.forecast, truth[:200], rtol=1e-12)
    np.testing.assert_allclose(example.continuation(smoothing, 100), truth[200:], rtol=1e-12)


def test_an_observed_week_corrects_the_state_and_a_missing_week_does_not() -> None:
    alpha, beta, gamma = example.sigmoid(np.array([0.3, -0.7, -0.2]))
    season = np.linspace(-1, 1, example.SEASON)

    smoothing = example.smooth(np.array([302.0, math.nan]), known_parameters(season))

    error = 302.0 - (300.25 - 1.0)
    level = 300.25 + alpha * error
    trend = 0.25 + alpha * beta * error
    np.testing.assert_allclose(smoothing.level, [300.0, level, level + trend])
    np.testing.assert_allclose(smoothing.trend, [0.25, trend, trend])
    np.testing.assert_allclose(smoothing.season[0], -1.0 + gamma * (1 - alpha) * error)
    np.testing.assert_array_equal(smoothing.season[1:], season[1:])


def test_the_comparison_counts_only_weeks_observed_both_now_and_a_season_ago() -> None:
    co2 = np.arange(3.0 * example.SEASON)
    co2[[5, 60]] = math.nan

    comparison = example.compare(co2, co2 - 2.0)

    # Week 5 is a season before week 57; week 60 is missing itself, and a season before week 112.
    assert comparison.weeks == 2 * example.SEASON - 3
    assert comparison.naive == pytest.approx(example.SEASON)
    assert comparison.fitted == pytest.approx(2.0)


# ---------------------------------------------------------------------------------------------------------------------
# The gradient


def test_the_gradient_agrees_with_finite_differences_of_the_numpy_program() -> None:
    co2 = RECORD.co2[: 3 * example.SEASON]
    assert np.isnan(co2).any()
    rng = np.random.default_rng(0)
    start = example.first_guess(co2)
    point = start + 0.1 * rng.standard_normal(len(start))

    loss, gradient = example.Objective(co2)(point)

    assert loss == pytest.approx(float(example.mean_squared_error(point, co2)), rel=1e-12)
    differences = example.central_differences(lambda p: float(example.mean_squared_error(p, co2)), point)
    # The loss depends on every parameter, so a lost derivative is detected.
    assert np.all(differences != 0)
    assert np.linalg.norm(gradient - differences) < 1e-7 * np.linalg.norm(differences)
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-8 * np.abs(differences).max())


def test_the_seasonal_remainder_is_differentiated() -> None:
    co2 = RECORD.co2[: 2 * example.SEASON + 10]
    point = example.first_guess(co2)
    weights = np.linspace(1.0, 2.0, example.SEASON)

    def left(parameters: Any) -> Any:
        return np.sum(example.smooth(co2, parameters).season * weights)

    gradient = vg.grad(left)(point)

    differences = example.central_differences(lambda p: float(left(p)), point)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)


def test_the_compiled_loss_is_built_from_its_source_for_all_lengths() -> None:
    compiled = vg.compile(example.mean_squared_error, executor="python", specialize=False)
    for weeks in (3 * example.SEASON, 5 * example.SEASON):
        co2 = RECORD.co2[:weeks]
        point = example.first_guess(RECORD.co2)
        loss, gradient = example.Objective(co2, compiled)(point)
        expected, expected_gradient = example.Objective(co2)(point)
        assert loss == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12)
    assert "source" in compiled.explain()


def test_the_fit_lowers_the_loss() -> None:
    co2 = RECORD.co2[: 3 * example.SEASON]
    start = example.first_guess(co2)

    fitted = example.fit(example.Objective(co2), start, iterations=3).x

    before, after = (float(example.mean_squared_error(point, co2)) for point in (start, fitted))
    assert after < 0.9 * before


# ---------------------------------------------------------------------------------------------------------------------
# The program


def test_a_run_prints_its_findings_and_writes_the_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "record.csv"
    source.write_text("\n".join(csv_lines(weeks=5 * example.SEASON)))
    plot = tmp_path / "plot.png"

    code = example.main(["--input", str(source), "--output", str(plot), "--iterations", "1"])

    printed = capsys.readouterr()
    assert code == 0
    assert printed.err == ""
    for finding in ("gradient check", "fitted smoothing", "seasonal-naive", "gradient, compiled", "of the fit"):
        assert finding in printed.out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_wrong_gradient_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "record.csv"
    source.write_text("\n".join(csv_lines(weeks=4 * example.SEASON)))
    right = example.Objective.__call__

    def slightly_wrong(self: Any, parameters: Floats) -> tuple[float, Floats]:
        loss, gradient = right(self, parameters)
        return loss, gradient * (1 + 1e-5)

    monkeypatch.setattr(example.Objective, "__call__", slightly_wrong)

    assert example.main(["--input", str(source), "--output", str(tmp_path / "plot.png")]) == 1
    assert "the gradient is off" in capsys.readouterr().err


def replaced(line: int, text: str) -> Callable[[list[str]], list[str]]:
    """Return an edit that replaces one line, counted from 1."""
    return lambda lines: [*lines[: line - 1], text, *lines[line:]]


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda lines: [], "no column 'date'"),
        (replaced(1, "date,methane"), "no column 'co2'"),
        (replaced(1, "day,co2"), "no column 'date'"),
        (replaced(3, "19580405,much"), "line 3: co2 is 'much', which is not a number"),
        (replaced(3, "19580405,inf"), "line 3: co2 is 'inf', which is not a number"),
        (replaced(3, "19580405"), "line 3: there is no field for co2"),
        (replaced(3, "5 April 1958,317.3"), "line 3: date is '5 April 1958', which is not of the form YYYYMMDD"),
        (lambda lines: [*lines[:5], *lines[6:]], "line 6: 1958-05-03 does not come a week after 1958-04-19"),
        (lambda lines: lines[:100], "99 weeks are too few"),
        (lambda lines: [lines[0], *(line.split(",")[0] + "," for line in lines[1:])], "too few weeks have a value"),
        (replaced(3, "\ud8ff"), "is not a CSV file"),
    ],
)
def test_a_bad_record_gets_one_line_and_exit_code_2(
    edit: Callable[[list[str]], list[str]], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "record.csv"
    source.write_text("\n".join(edit(csv_lines(weeks=5 * example.SEASON))), encoding="utf-8", errors="surrogatepass")

    assert_refused(["--input", str(source), "--output", str(tmp_path / "plot.png")], complaint, capsys)


def test_a_missing_record_gets_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(["--input", str(tmp_path / "none.csv")], "none.csv: cannot be read: No such file", capsys)


def test_an_output_in_no_directory_gets_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(["--output", str(tmp_path / "none" / "plot.png")], "there is no directory", capsys)


def assert_refused(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that the program prints one line on standard error, nothing else, and exits with code 2."""
    assert example.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("co2_forecast: ")
    assert printed.err.count("\n") == 1
    assert complaint in printed.err
