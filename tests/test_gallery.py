"""The programs of the gallery: each finds its solution at a small size, and draws it."""

import importlib
import math
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py") if "\ndef figure(" in path.read_text())


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    """Return the programs, imported like scripts in their own folder."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in PROGRAMS:
        sys.modules.pop(name, None)


def test_every_example_has_a_picture():
    assert len(PROGRAMS) == 15
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PROGRAMS)


def test_the_forecast_has_a_picture(tmp_path):
    program = importlib.import_module("co2_forecast")
    program.figure(small=True).savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


NEEDED = {"jax_sources": "jax", "pymc_local_level": "pymc", "solar_cell": "pvlib", "torch_smoothing": "torch",
          "xarray_seasons": "xarray"}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*PROGRAMS} - {"co2_forecast"}))  # the fit has a test file of its own
def test_example_runs(name, tmp_path, monkeypatch):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    program = importlib.import_module(name)
    results = []
    fit = program.fit
    monkeypatch.setattr(program, "fit", lambda small: results.append(fit(small)) or results[-1])
    program.figure(small=True).savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    found = results[0]
    assert math.isfinite(found["loss"])
    assert found["loss"] < 0.7 * found["loss before"]
