"""The soak of compiled programs, in short; `tests/compiled_soak.py` is a command for longer ones."""

from __future__ import annotations

import importlib.util

import pytest
from compiled_soak import soaked


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "number"), [("python", 400), ("numba", 25)])
def test_drawn_programs_that_run_compiled(executor, number):
    if executor == "numba" and not importlib.util.find_spec("numba"):
        pytest.skip("needs Numba")
    assert soaked(executor, number, 3) == 0
