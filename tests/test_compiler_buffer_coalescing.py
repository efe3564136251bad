"""Buffer coalescing: gradients share a buffer only if one is a copy of the whole other, made last."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from compiled_programs import rows

import viewgrad as vg

NUMBA = pytest.param("numba", marks=[
    pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba"), pytest.mark.slow,
])  # fmt: skip


def half_of_the_rows(x, a):
    y = vg.zeros(x.shape)
    for i in range(3):
        y[i] = x[i]
    y[3:] = a
    return (y * y).sum()


def rows_used_again(x, a):
    y = vg.zeros(x.shape)
    for i in range(len(x)):
        y[i] = x[i]
    for i in range(len(x)):
        y[i] = a * y[len(x) - 1 - i]
    return (y * y).sum()


def rows_copied_twice(x, a):
    y, z = vg.zeros(x.shape), vg.zeros(x.shape)
    for i in range(len(x)):
        y[i] = x[i]
        z[i] = x[i]
    return (y * y).sum() + (a * z * z * z).sum()


def rows_in_another_order(x, a):
    y = vg.zeros(x.shape)
    for i in range(len(x)):
        y[i] = x[len(x) - 1 - i]
    return (a * y * np.arange(1.0, 13.0).reshape(6, 2)).sum()


def rows_overwritten(x, a):
    y = vg.zeros(x.shape)
    for i in range(len(x)):
        y[i] = x[i]
    total = (y * y).sum()
    for i in range(len(x)):
        y[i] = a * a
    return total + (y * y).sum()


PROGRAMS = [rows, half_of_the_rows, rows_used_again, rows_copied_twice, rows_in_another_order, rows_overwritten]


@pytest.mark.parametrize("executor", ["python", NUMBA])
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_match_the_function(f, executor):
    compiled = vg.compile(f, executor=executor)
    for number in range(4):
        rng = np.random.default_rng(number)
        x, a = vg.Tensor(rng.normal(size=(6, 2)), requires_grad=True), vg.Tensor(rng.normal(), requires_grad=True)
        value, expected = compiled(x, a), f(x, a)
        assert value.item() == pytest.approx(expected.item())
        for found, wanted in zip(vg.autograd.grad(value, [x, a]), vg.autograd.grad(expected, [x, a])):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10)


def test_a_recurrence_of_rows_has_one_buffer_for_both_gradients():
    compiled = vg.compile(rows, executor="python", check=False)
    for _ in range(3):
        compiled(vg.ones((40, 600), requires_grad=True), vg.Tensor(0.5, requires_grad=True))
    backward = compiled.source().partition("# backward")[2]
    assert "dm0" in backward and "dm2" not in backward, backward


@pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
@pytest.mark.slow
def test_sums_of_a_loop_over_elements_do_not_end_it():
    compiled = vg.compile(rows, executor="numba", check=False)
    for _ in range(3):
        compiled(vg.ones((40, 600), requires_grad=True), vg.Tensor(0.5, requires_grad=True))
    loop = compiled.source().partition("# backward")[2].partition("range(38, -1, -1)")[2]
    assert loop.count("for e0") == 1 and loop.count("pairwise_sum") == 1, loop
