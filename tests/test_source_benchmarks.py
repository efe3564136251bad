"""The programs of `benchmarks.sources`: compiled from source, with correct gradients, and printed in a table."""

from pathlib import Path

import numpy as np
import pytest

import viewgrad as vg
from benchmarks.source_programs import PROGRAMS
from benchmarks.sources import Row, measure, table, tables, write
from viewgrad.compiler.source import tapes

SIZES = {"cholesky": (6, 5), "lu": (6, 5), "soft-dtw": (5, 4), "heat": (6, 5), "jacobi-2d": (6, 5), "seidel-2d": (5, 6),
         "bodies": (3, 4), "alignment": (4, 5), "lu-panels": (6, 5), "gauss-seidel": (5, 4)}
SLOW = {"heat", "jacobi-1d", "jacobi-2d", "seidel-2d", "bodies"}  # run eagerly


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PROGRAMS]
)
def test_programs_are_compiled_from_their_source(name):
    function, _, draw = PROGRAMS[name]
    numbers = tuple(range(len(draw(np.random.default_rng(0), 5))))
    compiled = vg.compile(function, executor="python", specialize=False)
    for n in SIZES.get(name, (12, 9)):
        arguments = draw(np.random.default_rng(n), n)
        for _ in range(2):
            value, gradients = vg.func.value_and_grad(compiled, numbers)(*arguments)
        expected, slopes = vg.func.value_and_grad(function, numbers)(*arguments)
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        for one, other in zip(gradients, slopes, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10)
    assert "not compiled" not in compiled.explain() and "ran eagerly" not in compiled.explain(), compiled.explain()


@pytest.mark.parametrize("tape", [5, 37, 277, 325])
def test_kernels_write_nothing_beyond_their_arrays(tape, uncompiled_kernels, monkeypatch):
    """The kernels run in Python, where a write beyond the end raises."""
    monkeypatch.setattr(tapes, "TAPE", tape)
    for function, _, draw in PROGRAMS.values():
        n = SIZES.get(function.__name__.replace("_", "-"), (9,))[0]
        arguments = draw(np.random.default_rng(n), n)
        compiled = vg.compile(function, executor="numba", check=False, specialize=False)
        vg.func.value_and_grad(compiled, tuple(range(len(arguments))))(*arguments)
        ((entry,),) = compiled.tier.specializations.values()
        assert entry.runs == 1 and not entry.failures, function.__name__


def test_tables_show_whether_gradients_are_correct():
    row = measure("overwritten", "source", True)
    assert row.is_right and row.first >= 0 and row.run > 0
    rows = [row, Row("p", "a", 1.0, 2.0, 0.003, False), Row("p", "b", 1.0, 2.0, 3.0), Row("p", "c", note="missing")]
    lines = table(rows).splitlines()
    assert lines[2].endswith("| yes |") and lines[3].endswith("| 3 | **no** |")
    assert lines[4].endswith("| forward only |") and "missing" in lines[5]
    assert measure("newton", "C", True) is None


def test_tables_of_the_page_are_replaced(tmp_path):
    rows = [Row("holt-winters", "source", 0.5, 0.001, 0.00005, True), Row("holt-winters", "C", 0.1, run=0.00002),
            Row("holt-winters", "Warp", 1.5, 0.002, 0.0003, False), Row("newton", "source", 0.25, 0.1, 0.001, True)]
    first, second = tables(rows)
    assert first.splitlines()[2] == "| Holt-Winters, 2134 steps | 0.5 | 0.05 |  |  | 0.02 |  |  |  |"
    assert len(first.splitlines()) == 4
    assert second.splitlines()[3].startswith("| Holt-Winters | Warp")
    assert second.splitlines()[3].endswith(", CPU | 1.5 | 0.002 | 0.3 | **no** |")
    page = tmp_path / "page.md"
    heads = [each.splitlines()[0] for each in (first, second)]
    page.write_text(f"before\n\n{heads[0]}\n|---|\n| old |\n\nbetween\n\n{heads[1]}\n|---|\n")
    write(page, [first, second])
    assert page.read_text() == f"before\n\n{first}\n\nbetween\n\n{second}\n"
    lines = (Path(__file__).parents[1] / "docs" / "compile.md").read_text().splitlines()
    assert all(head in lines for head in heads)
