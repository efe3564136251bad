"""What `make readme` writes: the figures of README.md and its picture, of the results of a benchmark run."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import readme
from benchmarks.growth import Comparison, Curve
from benchmarks.measuring import Timing
from benchmarks.micro import Row
from benchmarks.results import Results

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text()


def curve(**times):
    return Curve({int(n.removeprefix("n")): Timing([seconds]) for n, seconds in times.items()})


@pytest.fixture
def results():
    """Return the results of a run, as read from its file."""
    filled = {
        "viewgrad": curve(n400=0.0036, n3200=0.035), "numpy": curve(n400=0.0006, n3200=0.008),
        "torch": curve(n400=0.0864, n3200=12.25), "mygrad": curve(n400=1.944),
    }  # fmt: skip
    dtw = {"viewgrad": curve(n40000=1.2), "torch": curve(n40000=8.4)}
    rows = [Row("mul", 4, {"viewgrad": Timing([1.0]), "torch": Timing([2.0])}, 1, True)]
    rows += [Row("y[k] = x[k]", 4, {"viewgrad": Timing([1.0]), "torch": Timing([8.0])}, 1, True)]
    found = Results(machine={"torch": "2.13.0+cpu", "mygrad": "2.5.0"}, micro=rows)
    found.comparisons = [Comparison("row-fill", "rows written", 1000, filled)]
    found.soft_dtw = Comparison("soft-dtw", "cells written", None, dtw)
    return readme.json.loads(readme.json.dumps(found.to_json()))


def test_the_figures_match_the_run(results):
    text = readme.renewed(TEXT, results)
    assert "beside PyTorch 2.13 (CPU) and MyGrad 2.5." in text
    assert "| a table filled row by row, 400 x 1000 | 3.6 ms | 0.6 ms | 24 times as long |  | 540 times |  |" in text
    assert "| the same, 3200 x 1000 | 35 ms | 8 ms | 350 times |  |  |  |" in text
    assert "| the same, 200 x 200 cells | 1.2 s |  | 7 times |  |  |  |" in text
    assert "take 0.50 of PyTorch's time" in text and "take 0.13 of it" in text
    assert readme.renewed(text, results) == text
    before, after = (re.sub(readme.PLACE, "", each) for each in (TEXT, text))
    assert before == after


def test_a_readme_without_a_place_for_figures_is_an_error(results):
    with pytest.raises(ValueError, match="has no place for figures"):
        readme.renewed("# viewgrad\n", results)


def test_the_picture_shows_each_curve_and_no_label_lies_on_another(results):
    text = readme.picture(results)
    root = ElementTree.fromstring(text)
    labels = {each.text: float(each.get("y")) for each in root.iter("{http://www.w3.org/2000/svg}text")}
    engines = {"viewgrad", "PyTorch", "MyGrad", "plain NumPy, no gradient"}
    assert engines | {"400", "3200", "10 ms", "10 s"} <= labels.keys()
    heights = sorted(labels[name] for name in engines)
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 14
    assert text.count("<circle") == 7


def test_missing_results_print_advice(tmp_path, capsys):
    assert readme.main([str(tmp_path / "results.json")]) == 1
    assert "run `make bench` first" in capsys.readouterr().err
