"""Drawn NumPy functions, differentiated and compiled by the public functions."""

import pytest
from public_programs import PublicProgram, differences, loaded, without_overlaps

import viewgrad as vg

BATCHES = 4


@pytest.fixture(autouse=True)
def compiled_from_source(monkeypatch):
    """Compile functions as users do: from their source, if possible."""
    monkeypatch.setattr("viewgrad.compiler.api.SPECIALIZE", False)


def check(seed, executor, path):
    program = PublicProgram(seed)
    function = loaded(program.text, path / f"program_{seed}.py")
    reference = loaded(without_overlaps(program), path / f"reference_{seed}.py")
    compiled = vg.compile(function, executor=executor)
    wrong = differences(function, compiled, reference, seed)
    assert not wrong, f"{wrong}\n{program.text}"
    return "compiled from its source," in compiled.explain()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_functions_of_floats_and_arrays(request, tmp_path, batch):
    number = request.config.getoption("--programs")
    first = request.config.getoption("--programs-seed") * 1_000_000 + batch * number
    seeds = range(first, first + number // BATCHES)
    assert sum(check(seed, "python", tmp_path) for seed in seeds) > 0.9 * len(seeds)


@pytest.mark.slow
@pytest.mark.numba
@pytest.mark.parametrize("seed", range(24))
def test_functions_of_floats_and_arrays_by_numba(tmp_path, seed):
    check(seed, "numba", tmp_path)
