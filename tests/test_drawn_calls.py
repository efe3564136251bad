"""Calls of NumPy's functions with all options: tensors give the results of arrays, with derivatives."""

import collections

import pytest
from drawn_calls import DrawnCall, check

BATCHES = 4


@pytest.mark.parametrize("batch", range(BATCHES))
def test_calls_match_numpy(request, batch):
    number = request.config.getoption("--programs")
    first = request.config.getoption("--programs-seed") * 1_000_000 + batch * number
    compared = collections.Counter(check(DrawnCall(seed)) for seed in range(first, first + number))
    assert compared["second derivatives"] > number // 10 and compared["values"] > number // 10
