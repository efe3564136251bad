"""`property_test` within pytest: Hypothesis's profiles, seeds and database of examples are in force."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("frozen_objects")

CONFTEST = """
from hypothesis import Phase, settings

settings.register_profile("few", max_examples=20)
settings.register_profile("many", max_examples=50)
settings.register_profile("drawn", phases=[Phase.generate], max_examples=1000)
settings.register_profile("replayed", phases=[Phase.reuse])
"""
TESTS = """
import os
from hypothesis import strategies as st
from viewgrad.testing import property_test, tensors

def square(x):
    with open(os.environ["CALLS"], "a") as file:
        print(x.detach().numpy().tolist(), file=file)
    return x * x

def wrong_above_a_half(x):
    return x * x if x.detach().numpy()[0] <= 0.5 else x * x.detach()

@property_test(square, tensors(shape=(2,), layouts="contiguous"), only="gradients")
def test_square(report):
    print("examples:", report.examples["gradients"])

@property_test(wrong_above_a_half, tensors(shape=(2,), elements=st.floats(-1.0, 1.0)), only="gradients")
def test_wrong(report): ...
"""
RUNS = """
import json, os, sys
import pytest, hypothesis, viewgrad.testing
for number, arguments in enumerate(json.load(sys.stdin)):
    sys.stdout.flush()
    if not os.fork():
        os.environ["CALLS"] = f"calls{number}"
        sys.path.insert(0, os.getcwd())
        os._exit(pytest.main(["-s", "-p", "no:cacheprovider", *arguments]))
    print("run", number, "exit", os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs of pytest are forked from one that has imported all")
def test_profiles_seeds_and_the_database_are_in_force(tmp_path):
    """A profile sets the number of examples, and a seed the draws; failures are stored in the database and fail again.
    """
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_drawn.py").write_text(TESTS)
    runs = [
        ["--hypothesis-profile=few", "--hypothesis-seed=1", "-k", "square"],
        ["--hypothesis-profile=many", "--hypothesis-seed=1", "-k", "square"],
        ["--hypothesis-profile=few", "--hypothesis-seed=1", "-k", "square"],
        ["--hypothesis-profile=few", "--hypothesis-seed=2", "-k", "square"],
        ["--hypothesis-profile=replayed", "-k", "wrong"],
        ["--hypothesis-profile=drawn", "-k", "wrong"],
        ["--hypothesis-profile=replayed", "-k", "wrong"],
    ]
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNS],
        input=json.dumps(runs), text=True, capture_output=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    outcomes = [line.split()[-1] for line in told.stdout.splitlines() if line.startswith("run ")]
    examples = [int(line.split()[-1]) for line in told.stdout.splitlines() if "examples:" in line]
    calls = [(tmp_path / f"calls{number}").read_text() for number in range(4)]
    assert examples[0] == examples[2] == examples[3] < examples[1], told.stdout
    assert calls[0] == calls[2] != calls[3]
    assert outcomes[:4] == ["0"] * 4
    assert outcomes[4:] == ["0", "1", "1"], told.stdout  # nothing stored; found; found again though nothing was drawn
