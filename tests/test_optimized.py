"""Python without assertions (`python -O`, `-OO`): the same values, gradients and errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def values(*flags, every):
    """Return the output of `optimized_values.py` under options of the interpreter."""
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent), "VIEWGRAD_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, *flags, TESTS / "optimized_values.py", str(every)],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_same_values_without_assertions(every):
    expected = values(every=every)
    assert expected["refusals"] == ["LeafInPlaceError", "DeclarationError", "DifferentiabilityError", "AutogradError"]
    assert len(expected) > 200 // every
    for flag in ("-O", "-OO")[every > 1 :]:
        found = values(flag, every=every)
        assert found.keys() == expected.keys()
        for name in expected:
            assert found[name] == expected[name], (flag, name)
