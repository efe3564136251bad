"""Rows of Jacobians computed at once equal those of separate backward passes."""

from __future__ import annotations

import numpy as np
import pytest
from operator_samples import samples_of

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import batched_engine, transform_inputs
from viewgrad.operators import OPERATORS

X = np.linspace(-1.1, 1.3, 6)
W = np.cos(np.arange(36.0)).reshape(6, 6)
PROGRAMS = {
    "elementwise": lambda x: np.exp(-x * x) * np.sin(3 * x) + x / (1 + x * x),
    "broadcast": lambda x: x[:, None] * x[None, :3] + np.tanh(x[:1]) - x[2],
    "products": lambda x: np.tanh(W @ np.sin(W @ x)) @ W,
    "matrices": lambda x: (x.reshape(2, 3) @ x.reshape(3, 2) @ x[:2]) * x[0],
    "inner product": lambda x: (x @ x) * x,
    "sums": lambda x: x * x.reshape(2, 3).sum(axis=0).sum() + x.reshape(2, 3).sum(axis=-1, keepdims=True).sum() * x,
    "views": lambda x: (x[1:] - x[:-1]) * x[::-1][1:] + x.reshape(3, 2).T.reshape(-1)[:5] * x[None, 0],
    "gathered": lambda x: x[np.array([0, 0, 5, 2])] * x[:4] + x[x > 0][0],
    "written": lambda x: written(x),
    "several uses": lambda x: np.concatenate([np.sqrt(x * x + 1), np.where(x > 0, x, 2 * x), np.maximum(x, 0.3)]),
    "kinks": lambda x: np.abs(x - x[2]) + np.clip(x, -0.5, 0.5) + np.minimum(x, x[::-1]),
    "infinite slopes": lambda x: np.sqrt(np.abs(x) - np.abs(x) * (x > 0)) * x,
    "nothing": lambda x: np.sign(x) * 2.0 + 0.0 * x,
    "single precision": lambda x: x.astype(np.float32) * 2 + x,
    "complex inside": lambda x: np.abs(np.exp(1j * x) + x) ** 2,
    "more rows than one pass has": lambda x: (np.outer(np.sin(x), np.cos(x)) * np.tanh(np.outer(x, x))).reshape(-1),
}


def written(x):
    y = np.tanh(x) * x
    y[1:4] = y[:3] * x[1:4]
    y[0] *= 2.0
    return y * np.exp(x)


@pytest.fixture
def row_by_row(monkeypatch):
    def run(call):
        with monkeypatch.context() as patch:
            patch.setattr(transform_inputs, "FEWEST_ROWS", 10**9)
            return call()

    return run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, row_by_row, monkeypatch):
    def call():
        return func.jacrev(PROGRAMS[name])(X)

    expected = row_by_row(call)
    for share in (batched_engine.LOOPED, 1.0):  # also where most nodes run row by row
        monkeypatch.setattr(batched_engine, "LOOPED", share)
        found = call()
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_every_operator(row_by_row, monkeypatch):
    monkeypatch.setattr(batched_engine, "LOOPED", 1.0)
    compared = 0
    for operator in list(OPERATORS.values()):
        if operator.user_defined or not operator.differentiable or operator.signature.outputs[1:]:
            continue
        sample = samples_of(operator)[0]
        given = {name: value for name, value in sample.bound().items() if name in sample.differentiable()}
        names = [name for name, value in given.items() if getattr(value, "dtype", np.dtype("O")).kind == "f"]
        for wanted in names:

            def function(x, wanted=wanted, operator=operator, sample=sample):
                call = sample.replace(**{wanted: x})
                result = operator.function(*call.args, **call.kwargs)
                return vg.stack([result, result * result]).reshape(-1)

            def call(function=function, wanted=wanted, given=given):
                return func.jacrev(function, adopt=False)(vg.Tensor(np.asarray(given[wanted]))).numpy()

            try:
                expected = row_by_row(call)
            except (TypeError, ValueError, vg.errors.AutogradError):  # results that are no single tensor of reals
                continue
            np.testing.assert_allclose(call(), expected, rtol=1e-12, atol=1e-13, err_msg=f"{operator.name}: {wanted}")
            compared += 1
    assert compared > 200


def test_rows_are_computed_at_once(monkeypatch):
    runs = []
    run = batched_engine.BatchedTask.run
    monkeypatch.setattr(batched_engine.BatchedTask, "run", lambda task: runs.append(task.count) or run(task))
    func.jacrev(lambda x: np.tanh(W @ x) * x)(X)
    assert runs == [6]
    runs.clear()
    func.jacrev(lambda x: np.sin(x) * x)(np.linspace(0.0, 1.0, 70))
    assert runs == [32, 32, 6]


def test_hooks_recording_and_outer_histories_are_left_to_single_passes(monkeypatch):
    runs = []
    run = batched_engine.BatchedTask.run
    monkeypatch.setattr(batched_engine.BatchedTask, "run", lambda task: runs.append(task.count) or run(task))
    seen = []

    def hooked(x):
        y = np.sin(x)
        y.register_hook(lambda grad: seen.append(grad.shape))
        return y * x

    func.jacrev(hooked)(vg.Tensor(X))
    assert seen == [(6,)] * 6 and not runs
    w = vg.Tensor(X, requires_grad=True)
    jacobian = func.jacrev(lambda x: np.sin(x) * w)(vg.Tensor(X))
    jacobian.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.cos(X), rtol=1e-12)
    np.testing.assert_allclose(func.hessian(lambda x: (np.sin(x) * x).sum())(X), np.diag(2 * np.cos(X) - X * np.sin(X)))
    assert not runs
