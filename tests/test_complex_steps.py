"""Analytic programs that write in place: values, gradients, tangents and second derivatives, against complex steps."""

import collections

import numpy as np
import pytest
from complex_steps import AnalyticProgram, Wrong, check

import viewgrad as vg

BATCHES = 2


@pytest.mark.parametrize("batch", range(BATCHES))
def test_derivatives_match_complex_steps(request, batch):
    number = request.config.getoption("--programs")
    first = request.config.getoption("--programs-seed") * 1_000_000 + batch * number
    compared = collections.Counter()
    for seed in range(first, first + number // 4):
        program = AnalyticProgram(seed, 3 + seed % 6)
        try:
            compared[check(program)] += 1
        except Wrong as error:
            pytest.fail(str(error), pytrace=False)
    assert compared["second derivatives"] > number // (10 if number >= 300 else 25)  # few of 40 programs have them


@pytest.mark.parametrize("increasing", [False, True])
def test_vander_is_contiguous_as_in_numpy(increasing):
    x = vg.Tensor([2.0, 3.0], requires_grad=True)
    matrix = np.vander(x, 3, increasing=increasing)
    matrix.ravel()[0] = 7.0
    assert matrix.flags.c_contiguous and matrix[0, 0].item() == 7.0
