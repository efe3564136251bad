"""Loops as textbooks have them, compiled: for fresh arguments each time they give what they give eagerly."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from textbook_loops import LOOPS

import viewgrad as vg

NUMBA = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
QUICK = 4  # each so many-th program is tried in the fast suite
CASES = [
    *[pytest.param(f, "python", marks=[pytest.mark.slow] * bool(n % QUICK)) for n, f in enumerate(LOOPS)],
    *[pytest.param(f, "numba", marks=[NUMBA, pytest.mark.slow]) for f in LOOPS],
]
STEERED = {"hard_viterbi", "smith_waterman", "masked_filter", "neighbours", "picked", "stopped_early", "counted"}


def arguments(f, seed):
    given = LOOPS[f](np.random.default_rng(seed))
    return [vg.Tensor(array, requires_grad=True) if array.dtype.kind == "f" else array for array in given]


def gradients(value, given, **options):
    leaves = [each for each in given if isinstance(each, vg.Tensor)]
    found = vg.autograd.grad(value, leaves, allow_unused=True, **options)
    return [vg.zeros(leaf.shape) if g is None else g for g, leaf in zip(found, leaves)]


def close(found, wanted, rtol):
    for one, other in zip(found, wanted, strict=True):
        one, other = one.detach().numpy(), other.detach().numpy()
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * (1 + np.abs(other).max(initial=0)))


@pytest.mark.parametrize(("f", "executor"), CASES)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")  # those that are steered by values
def test_values_and_gradients_for_fresh_arguments(f, executor):
    compiled = vg.compile(f, executor=executor)
    for seed in (0, 1, 2, 3, 3, 3):
        mine, theirs = arguments(f, seed), arguments(f, seed)
        value, expected = compiled(*mine), f(*theirs)
        np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-12)
        found, wanted = (gradients(v, x, create_graph=seed == 3) for v, x in ((value, mine), (expected, theirs)))
        close(found, wanted, 1e-9)
    totals = [sum(((g * g).sum() for g in each if g.requires_grad), vg.zeros(())) for each in (found, wanted)]
    if totals[1].requires_grad:
        close(gradients(totals[0], mine), gradients(totals[1], theirs), 1e-7)
    if f.__name__ not in STEERED:
        assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


def test_arrays_of_integers_that_steer_are_parts_of_the_program():
    def scattered(x, groups):
        totals = vg.zeros(4)
        for value, group in zip(x, groups.tolist()):
            totals[group] = totals[group] + value * value
        return (totals**2).sum()

    compiled = vg.compile(scattered, executor="python")
    rng = np.random.default_rng(0)
    for groups in [rng.integers(0, 4, 12) for _ in range(3)] * 4:
        x = vg.Tensor(rng.normal(size=12), requires_grad=True)
        value = compiled(x, groups)
        np.testing.assert_allclose(value.item(), scattered(x, groups).item(), rtol=1e-12)
        close(gradients(value, [x]), gradients(scattered(x, groups), [x]), 1e-10)
    assert value.grad_fn.name() == "CompiledBackward", compiled.explain()


@NUMBA
def test_gradients_that_are_zero_beforehand_are_neither_read_nor_written():
    def smoothed(rate, y):
        level = vg.zeros(len(y))
        level[0] = y[0]
        for t in range(1, len(y)):
            level[t] = level[t - 1] + rate * (y[t] - level[t - 1])
        return level[len(y) - 1] * 1.0

    compiled = vg.compile(smoothed, executor="numba")
    for _ in range(3):
        compiled(vg.Tensor(0.3, requires_grad=True), vg.Tensor(np.arange(9.0), requires_grad=True))
    backward = compiled.source().partition("# backward")[2]
    assert "] = 0.0" not in backward and "dm1[i4 + 1] = " in backward, backward


def test_memory_of_runs_is_used_again_and_reaches_nobody():
    def rows(x):
        y = vg.zeros(x.shape)
        for i in range(len(x)):
            y[i] = x[i] * x[i]
        return y.sum(), y

    compiled = vg.compile(rows, executor="python")
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(6):
        x = vg.Tensor(rng.normal(size=(20, 1000)), requires_grad=True)
        value, y = compiled(x)
        (grad,) = vg.autograd.grad(value, x, retain_graph=True)
        (again,) = vg.autograd.grad(value + y[3, 4] * 2.0, x)
        kept.append((x, y, grad, again))
    for x, y, grad, again in kept:
        array = x.detach().numpy()
        np.testing.assert_array_equal(y.detach().numpy(), array * array)
        np.testing.assert_array_equal(grad.numpy(), 2 * array)
        assert again[3, 4].item() == pytest.approx(6 * array[3, 4])


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=[NUMBA, pytest.mark.slow])])
def test_arrays_without_elements(executor):
    def f(x, y):
        z = x.clone()
        part = x[:0] * 2.0
        part[...] = y[:0]
        z[1:1] = 3.0
        return (x * x).sum() + (part * part).sum() + z[:0].sum() + (y * 2.0).sum()

    for shape in [(0, 2), (3, 0), (3, 2)]:
        compiled = vg.compile(f, executor=executor)
        for _ in range(3):
            x, y = (vg.Tensor(np.ones(shape) + k, requires_grad=True) for k in range(2))
            value = compiled(x, y)
            np.testing.assert_allclose(value.item(), f(x, y).item())
            close(gradients(value, [x, y]), gradients(f(x, y), [x, y]), 1e-12)
