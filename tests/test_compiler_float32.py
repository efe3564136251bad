"""Compiled float32 programs round where eager runs do, and promote to double precision like them."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_programs import PROGRAMS

import viewgrad as vg

TABLED = [program for program in PROGRAMS if program.__name__ not in ("lattice", "filtered_states")]


@pytest.fixture(params=["python", "numba"])
def executor(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    return request.param


def compared(compiled, f, arrays, rtol):
    seen = []
    for function in (compiled, f):
        leaves = [vg.Tensor(each, requires_grad=each.dtype.kind == "f") for each in arrays]
        found = function(*leaves)
        found = found if isinstance(found, tuple) else (found,)
        total = sum((each * 1.0).sum() for each in found)
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        seen.append([*found, *vg.autograd.grad(total, wanted)])
    for one, other in zip(*seen, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        scale = 1 + np.abs(other.detach().numpy()).max()
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=rtol, atol=rtol * scale)


def mixed(x, y):
    z = x * 0.1 + np.float32(2.0)
    w = vg.zeros(len(x), dtype=np.float32)
    w[0] = 0.1
    for i in range(1, len(x)):
        w[i] = w[i - 1] * z[i] + y[i] * np.float64(0.1)  # rounded when it is written
    wide = w.astype(np.float64) * np.float64(0.3)
    narrow = (wide + y).astype(np.float32)
    return w, wide, narrow, (narrow * x).sum(), np.where(z < np.float64(2.3), z, 0.1), x @ w, np.exp(y)


def test_mixed_precisions_match_eager(executor):
    compiled = vg.compile(mixed, executor=executor)
    rng = np.random.default_rng(0)
    for _ in range(4):
        x, y = rng.normal(size=7).astype(np.float32), rng.normal(size=7)
        for one, other in zip(compiled(vg.Tensor(x), vg.Tensor(y)), mixed(vg.Tensor(x), vg.Tensor(y)), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=3e-7 if other.dtype == np.float32 else 1e-7)
        compared(compiled, mixed, (x, y), 1e-5)
    assert compiled.specializations[0].program is not None, compiled.explain()


def rounded_again_and_again(x):
    total = x[0] * 0
    for _ in range(40):
        for i in range(len(x)):
            total = total * np.float32(1.1) + x[i] / np.float32(3.0)
            total = total - np.sqrt(abs(total))
    return total


def test_sums_products_and_roots_are_the_same_to_the_last_bit(executor):
    compiled = vg.compile(rounded_again_and_again, executor=executor)
    for seed in range(4):
        x = vg.Tensor(np.random.default_rng(seed).normal(size=9).astype(np.float32), requires_grad=True)
        assert compiled(x).detach().tolist() == rounded_again_and_again(x).detach().tolist()
    assert compiled.specializations[0].program is not None, compiled.explain()


@pytest.mark.parametrize("program", TABLED)
@pytest.mark.parametrize("by", ["python", pytest.param("numba", marks=pytest.mark.slow)])
def test_programs_in_single_precision(program, by):
    if by == "numba":
        pytest.importorskip("numba")
    compiled = vg.compile(program, executor=by)
    for seed in range(4):
        arrays = [np.asarray(each, np.float32) for each in PROGRAMS[program](np.random.default_rng(seed))]
        compared(compiled, program, arrays, 2e-3)
    assert compiled.specializations[0].program is not None, compiled.explain()


def test_batches_and_transforms_in_single_precision(executor):
    def loss(rate, sales):
        level, total = sales[0], sales[0] * 0
        for t in range(1, len(sales)):
            error = sales[t] - level
            level = level + rate * error
            total = total + error * error
        return total

    rate = vg.Tensor(np.float32(0.4), requires_grad=True)
    sales = np.sin(np.arange(60.0)).reshape(4, 15).astype(np.float32)
    batched = vg.compile(loss, batch=("sales",), executor=executor)
    compiled = vg.compile(loss, executor=executor)
    for _ in range(4):
        found = batched(rate, sales)
        wanted = np.stack([loss(rate, vg.Tensor(row)) for row in sales])
        assert found.dtype == wanted.dtype == np.float32
        np.testing.assert_allclose(found.detach(), wanted.detach(), rtol=1e-5)
        one, other = vg.autograd.grad(found.sum(), rate)[0], vg.autograd.grad(wanted.sum(), rate)[0]
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4)
        value, gradient = vg.func.value_and_grad(compiled)(np.float32(0.4) * np.ones((), np.float32), sales[0])
        expected = vg.func.value_and_grad(loss)(np.float32(0.4) * np.ones((), np.float32), sales[0])
        assert (value.dtype, gradient.dtype) == (expected[0].dtype, expected[1].dtype)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-4)


def test_reductions_of_single_numbers_along_an_axis():

    def f(x):
        y = x.sum()
        return np.sum(y, axis=0) + np.min(y, axis=0) * np.max(y, axis=0)

    compiled = vg.compile(f, executor="python")
    for seed in range(3):
        compared(compiled, f, (np.random.default_rng(seed).normal(size=3),), 1e-12)
    assert compiled.specializations[0].program is not None, compiled.explain()


def test_results_in_double_precision_of_rounded_numbers_may_differ_by_rounding():
    def amplified(x):
        total = x.sum(axis=0) / 3
        for _ in range(12):
            total = 4 * total * (1 - total)  # each step doubles the rounding error
        return (np.linalg.norm(total) * np.arange(3)).sum() * (total * np.arange(3)).sum()

    compiled = vg.compile(amplified, executor="python")
    for seed in range(4):
        x = np.random.default_rng(seed).random((7, 3)).astype(np.float32) / 3
        found = compiled(vg.Tensor(x, requires_grad=True))
        assert found.dtype == np.float64
    assert "differed" in compiled.explain() or compiled.specializations[0].program is not None
