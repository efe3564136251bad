"""Rows and columns of Jacobians computed at once equal those of separate passes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_samples import samples_of

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import Function, batched_engine, transform_inputs
from viewgrad.func import transforms
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
    for share in (batched_engine.LOOPED, 1.0):  # also if most nodes run row by row
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
            except (TypeError, ValueError, vg.errors.AutogradError):  # results other than a single real tensor
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


def test_hooks_recording_and_outer_histories_use_single_passes(monkeypatch):
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
    assert not runs


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def column_by_column(monkeypatch):
    def run(call):
        with monkeypatch.context() as patch:
            patch.setattr(transforms, "FEWEST_COLUMNS", 10**9)
            return call()

    return run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transform", [func.jacfwd, func.hessian])
@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_of_programs(name, transform, column_by_column, monkeypatch):
    def program(x):
        result = PROGRAMS[name](x)
        weights = np.cos(np.arange(result.size)).reshape(result.shape)
        return result if transform is func.jacfwd else (result * weights).sum()

    def call():
        return transform(program)(X)

    expected = column_by_column(call)
    for share in (batched_engine.LOOPED, 1.0):
        monkeypatch.setattr(batched_engine, "LOOPED", share)
        found = call()
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


AXES = st.sampled_from(["x[1:] * x[:-1]", "np.sin(x)", "x * y[0]", "x[::-1] + y", "y * y - x[2]", "np.exp(-y * y)"])
PLACES = st.sampled_from([
    "y[1:4] = x[:3] * y[2:5]", "y[0] *= 2.0", "y[::2] += x[1::2]", "y[...] = y * x", "y[5] = y[0] * x[1]",
    "v = y[2:]; v *= x[:4]", "m = y.reshape(2, 3); m[0] = m[1] * x[3:]",
])  # fmt: skip


@given(st.lists(st.one_of(PLACES, AXES.map(lambda text: f"y[:5] = ({text})[:5]")), min_size=1, max_size=6), AXES)
@settings(max_examples=12)
def test_columns_of_drawn_programs_with_writes(column_by_column_of_drawn, statements, result):
    text = "\n    ".join(["def program(x):", "y = np.tanh(x)", *statements, f"return {result}"])
    names = {"np": np}
    exec(text, names)
    calls = []

    def counted(x):
        calls.append(x)
        return names["program"](x)

    for share in (0.3, 1.0):
        calls.clear()
        with column_by_column_of_drawn(share, 4):
            found = func.jacfwd(counted)(X)
        assert len(calls) in ((1,) if share == 1.0 else (1, 7)), text
        with column_by_column_of_drawn(share, 10**9):
            expected = func.jacfwd(counted)(X)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13, err_msg=text)


@pytest.fixture(scope="module")
def column_by_column_of_drawn():
    @contextlib.contextmanager
    def settings_of(share, fewest):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batched_engine, "LOOPED", share)
            patch.setattr(transforms, "FEWEST_COLUMNS", fewest)
            yield

    return settings_of


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_columns_of_every_operator(column_by_column, monkeypatch):
    monkeypatch.setattr(batched_engine, "LOOPED", 1.0)
    monkeypatch.setattr(transforms, "FEWEST_COLUMNS", 1)
    compared = 0
    for operator, sample, wanted in reals():

        def call(operator=operator, sample=sample, wanted=wanted):
            def function(x):
                made = sample.replace(**{wanted: x})
                return operator.function(*made.args, **made.kwargs)

            return func.jacfwd(function, adopt=False)(vg.Tensor(np.asarray(sample.bound()[wanted]))).numpy()

        try:
            expected = column_by_column(call)
        except (AttributeError, TypeError, ValueError, vg.errors.AutogradError):
            continue
        np.testing.assert_allclose(call(), expected, rtol=1e-11, atol=1e-12, err_msg=f"{operator.name}: {wanted}")
        compared += 1
    assert compared > 200


def reals():
    """Yield each operator at one sample, with each argument that holds real numbers."""
    for operator in list(OPERATORS.values()):
        if operator.user_defined or not operator.differentiable or operator.signature.outputs[1:]:
            continue
        sample = samples_of(operator)[0]
        for name, value in sample.bound().items():
            if name in sample.differentiable() and getattr(value, "dtype", np.dtype("O")).kind == "f":
                yield operator, sample, name


def test_a_function_is_called_once_for_columns_and_second_derivatives(monkeypatch):
    calls = []

    def program(x):
        calls.append(x)
        return written(x)

    func.jacfwd(program)(X)
    assert len(calls) == 1
    func.hessian(lambda x: program(x).sum())(X)
    assert len(calls) == 2
    func.jacfwd(lambda x: calls.append(x) or np.sin(x))(X[:3])  # too few columns
    assert len(calls) == 2 + 3


def test_columns_with_custom_functions_hooks_or_outer_histories_are_separate():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            raise AssertionError("forward mode")

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 2.0

    np.testing.assert_array_equal(func.jacfwd(lambda x: Twice.apply(x) * 3.0)(vg.Tensor(X)).numpy(), 6 * np.eye(6))
    seen = []

    def hooked(x):
        y = np.sin(x)
        if y.requires_grad:
            y.register_hook(seen.append)
        return y * x

    func.jacfwd(hooked)(vg.Tensor(X))
    assert not seen
    w = vg.Tensor(X, requires_grad=True)
    func.jacfwd(lambda x: np.sin(x) * w)(vg.Tensor(X)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.cos(X), rtol=1e-12)


# -- compiled functions ------------------------------------------------------------------------------------------------


def chain(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] = np.sin(y[i - 1]) * 0.9 + x[i] * x[i]
    return y


def energy(x):
    total = 0.0
    for value in chain(x):
        total += value * value
    return total


@pytest.mark.parametrize("specialize", [False, True])
def test_rows_of_compiled_functions_are_computed_in_one_pass(specialize, monkeypatch):
    passes = []
    run = batched_engine.BatchedTask.run
    monkeypatch.setattr(batched_engine.BatchedTask, "run", lambda task: passes.append(task.count) or run(task))
    compiled = {f: vg.compile(f, executor="python", specialize=specialize) for f in (chain, energy)}
    ways = [(func.jacrev, chain, [6]), (func.jacfwd, chain, [6]), (func.hessian, energy, [] if specialize else [6])]
    for transform, f, expected in ways:
        for _ in range(3):
            passes.clear()
            found = transform(compiled[f])(X)
        assert passes == expected
        np.testing.assert_allclose(found, transform(f)(X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("specialize", [False, True])
def test_gradients_of_compiled_functions_keep_the_histories_of_arguments(specialize):
    compiled = vg.compile(energy, executor="python", specialize=specialize)
    expected = func.hessian(energy)(X)
    leaf = vg.Tensor(X, requires_grad=True)
    for _ in range(3):
        ways = func.jacrev(func.grad(compiled)), func.jacfwd(func.grad(compiled)), func.jacrev(func.jacrev(compiled))
        for both in ways:
            np.testing.assert_allclose(both(X), expected, rtol=1e-12, atol=1e-13)
        gradient = func.grad(compiled)(leaf)
        np.testing.assert_allclose(vg.autograd.grad(gradient[0], leaf)[0].numpy(), expected[0], rtol=1e-12, atol=1e-13)
        tree = func.grad(vg.compile(lambda d: energy(d["x"]), executor="python", specialize=specialize))({"x": leaf})
        assert tree["x"].requires_grad
