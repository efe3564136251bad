"""The soak of compiled programs, in short; `tests/compiled_soak.py` is a command for longer ones."""

from __future__ import annotations

import importlib.util

import pytest
from compiled_soak import soaked

import viewgrad.compiler.calls.choosing as choosing


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "number"), [("python", 400), ("numba", 25)])
def test_drawn_programs_that_run_compiled(executor, number, monkeypatch):
    if executor == "numba" and not importlib.util.find_spec("numba"):
        pytest.skip("needs Numba")
    monkeypatch.setattr(choosing, "LITTLE", choosing.LITTLE)  # which the soak changes
    assert soaked(executor, number, 3) == 0
