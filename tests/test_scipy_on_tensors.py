"""The tables in docs/scipy_on_tensors.md: functions of SciPy and of other libraries that give gradients."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

scipy = pytest.importorskip("scipy")

PAGE = Path(__file__).parent.parent / "docs" / "scipy_on_tensors.md"


@pytest.fixture(scope="module")
def outcomes():
    """Return the outcome of each program, in a process that imports SciPy with SCIPY_ARRAY_API=1."""
    program = str(Path(__file__).with_name("scipy_on_tensors.py"))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    return {name: outcome for name, outcome in json.loads(done.stdout).items() if outcome is not None}


def table():
    """Return the column of each function in the page's tables: 1 for gradients, 2 for none."""
    columns = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            module = cells[0].strip("`")
            for column in (1, 2):
                columns.update({f"{module}.{name}": column for name in re.findall(r"`([^`]+)`", cells[column])})
    return columns


def test_the_example_of_the_page(tmp_path):
    """The example runs in a separate process, because SciPy must not be imported before it."""
    example = tmp_path / "example.txt"
    example.write_text(re.search(r"```pycon\n(.*?)```", PAGE.read_text(), re.DOTALL)[1])
    program = f"import doctest; print(doctest.testfile({str(example)!r}, module_relative=False))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "failed=0" in done.stdout, done.stdout + done.stderr


def test_no_gradient_is_wrong(outcomes):
    assert [name for name, outcome in outcomes.items() if outcome.startswith("WRONG")] == []


def test_sixty_scipy_functions_match_finite_differences(outcomes):
    good = [name for name, outcome in outcomes.items() if name.startswith("scipy.") and outcome == "gradients"]
    assert len(good) >= 60, outcomes


def test_conversions_inside_scipy_suggest_alternatives(outcomes):
    for name, outcome in outcomes.items():
        if name.startswith("scipy.") and outcome != "gradients":
            refused = outcome.startswith(("AutogradError", "DetachedConversionError"))
            assert refused and "use the function of viewgrad.scipy" in outcome, name


@pytest.mark.skipif(not scipy.__version__.startswith("1.17."), reason="the page is about SciPy 1.17")
def test_the_page_matches_the_results(outcomes):
    columns = table()
    for name, outcome in outcomes.items():
        assert columns.get(name) == (1 if outcome == "gradients" else 2), (name, outcome)
    assert {name for name in columns if name.startswith("scipy.")} <= outcomes.keys()
