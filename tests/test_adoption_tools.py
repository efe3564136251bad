"""Debuggers, profilers and coverage on programs with adopted functions, run as by users."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODEL = """\
import numpy as np

def table(x, n):
    y = np.zeros(n)
    for i in range(n):
        if i % 2:
            y[i] = x * i
        else:
            y[i] = np.sin(x)
    if n > 100:
        y[0] = 1.0
    return y.sum()
"""
PROGRAM = "import viewgrad as vg, adopted_model\nprint(vg.grad(adopted_model.table)(0.5, 4))\n"
COMMANDS = "break adopted_model.py:7\ncontinue\np i, float(x)\nnext\np len(y), y[1] + 0\nclear 1\ncontinue\n"


@pytest.fixture
def run(tmp_path):
    """Run one of Python's tools on the program, and return its output."""
    (tmp_path / "adopted_model.py").write_text(MODEL)
    (tmp_path / "program.py").write_text(PROGRAM)

    def call(*arguments, given=""):
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=tmp_path, input=given, capture_output=True, text=True, timeout=300)
        return done.stdout + done.stderr

    return call


@pytest.mark.slow
def test_pdb_stops_at_breakpoints_in_adopted_code(run):
    printed = run("pdb", "program.py", given=COMMANDS)
    assert "adopted_model.py(7)table()" in printed and "-> y[i] = x * i" in printed
    assert "(1, np.float64(0.5))" in printed and "(4, np.float64(0.5))" in printed
    assert "5.7551651" in printed  # after the breakpoint, the gradient is the same as without a breakpoint


@pytest.mark.slow
def test_cprofile_names_the_users_function(run):
    printed = run("cProfile", "-s", "cumtime", "program.py")
    (line,) = [line for line in printed.splitlines() if "adopted_model.py:3(table)" in line]
    assert line.split()[0] == "1"


@pytest.mark.slow
@pytest.mark.parametrize("branches", [[], ["--branch"]])
def test_coverage_counts_the_users_lines(run, branches):
    pytest.importorskip("coverage")
    run("coverage", "run", *branches, "--include=*/adopted_model.py", "program.py")
    (line,) = [line for line in run("coverage", "report", "-m").splitlines() if line.startswith("adopted_model.py")]
    assert line.split()[1:3] == ["10", "1"] and line.split()[-1] == "11"


@pytest.mark.slow
def test_the_trace_module_counts_the_users_lines(run, tmp_path):
    run("trace", "--count", "-C", str(tmp_path / "counts"), "program.py")
    (path,) = (tmp_path / "counts").glob("*adopted_model.cover")
    counted = path.read_text().splitlines()
    assert counted[6].split(":")[0].strip() == "2" and counted[8].split(":")[0].strip() == "2"
