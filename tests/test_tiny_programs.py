"""Tiny drawn programs: checked by product rules, interrupted anywhere, and run in threads.

A long run: `--programs 400000`.
"""

import numpy as np
import pytest
from tiny_interruptions import check_in_threads, check_interrupted
from tiny_programs import MOST, TinyProgram, Wrong, check

import viewgrad.tensor.node
from viewgrad.tensor import storage
from viewgrad.views import copy_slices


@pytest.fixture
def seeds(request):
    """Return a part of the seeds of the requested programs."""
    number = request.config.getoption("--programs")
    first = request.config.getoption("--programs-seed") * 10_000_000
    return lambda times: range(first, first + int(number * times))


def test_gradients_match_the_product_rules(seeds):
    for seed in seeds(2):
        check(TinyProgram(seed))


def test_an_interrupted_line_leaves_the_gradient_of_the_value_or_none(seeds, monkeypatch):
    monkeypatch.setattr(viewgrad.tensor.node, "PATIENCE", 0.0)
    told = [check_interrupted(TinyProgram(seed), seed) for seed in seeds(4)]
    assert "refused" in told


def test_threads_have_the_gradients_of_their_own_programs(seeds):
    for seed in seeds(0.1):
        check_in_threads(seed)


@pytest.mark.parametrize("seed", [640_100_413_931, 640_100_460_911])  # programs with products of products
def test_programs_remain_small(seed):
    values = TinyProgram(seed).names.values()
    assert max(value.size for value in values if isinstance(value, np.ndarray)) <= MOST**2


def nothing_is_preserved(monkeypatch):
    monkeypatch.setattr(storage.Storage, "preserve", lambda *args, **kwargs: None)


def what_was_overwritten_keeps_its_gradient(monkeypatch):
    broken = lambda node, grad, edges: (grad, None if edges[1] is None else grad[node.index].copy())
    monkeypatch.setattr(copy_slices.CopySlicesOfCopy, "apply", broken)
    monkeypatch.setattr(copy_slices.CopySlicesOfCopy, "consume", broken)


@pytest.mark.parametrize("broken", [nothing_is_preserved, what_was_overwritten_keeps_its_gradient])
def test_tiny_programs_find_injected_faults(broken, monkeypatch):
    broken(monkeypatch)
    with pytest.raises(Wrong):
        for seed in range(1000):
            check(TinyProgram(seed))
