"""Kernels of compiled programs: each operator with a kernel, and callbacks, against eager runs."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.compiler.scalar_rules import OPERATOR_RULES, derivative
from viewgrad.operators import OPERATORS

NUMBA = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba")
EXECUTORS = ["python", pytest.param("numba", marks=[NUMBA, pytest.mark.slow])]


def gauss_seidel(x):
    a = x + 20 * np.eye(len(x))
    y = vg.zeros(len(x))
    for _ in range(4):
        for i in range(len(x)):
            y[i] = (a[0, i] - a[i, :i] @ y[:i] - a[i, i + 1 :] @ y[i + 1 :]) / a[i, i]
    return (y * y).sum()


def triangular_slices(x):
    a = x @ x.T + 9 * np.eye(len(x))
    for j in range(len(x)):
        a[j, j] = np.sqrt(a[j, j] - (a[j, :j] ** 2).sum())
        for i in range(j + 1, len(x)):
            a[i, j] = (a[i, j] - (a[i, :j] * a[j, :j]).sum()) / a[j, j]
    return sum(np.log(a[i, i]) for i in range(len(x)))


def irregular_rows(x):
    symbols = np.random.default_rng(0).integers(0, 6, 60)
    level, total = x[0], 0.0
    for t in range(60):
        level = np.tanh(level @ x) * x[:, int(symbols[t])]
        total = total + level.sum()
    return total


def shrinking_arrays(x):
    u = vg.maximum(x[0], 0.0)
    for i in range(len(x) - 1, 0, -1):
        u = vg.maximum(u[:i] * 0.4 + u[1 : i + 1] * 0.6, x[i, :i] * np.arange(i))
    return u[0]


def steps_by_max(x):
    best = x[0].clone()
    for t in range(1, len(x)):
        for k in range(len(x)):
            best[k] = vg.stack([best[k], best[k - 1] + x[t, k], x[t, 0]]).max()
    return best.max()


def walk_in_sorted_order(x):
    level = x[0]
    for i in range(len(x)):
        level = np.sort(level * x[i]) + np.linalg.solve(x + 20 * np.eye(len(x)), level)
    return level.sum()


PROGRAMS = {
    "shrinking arrays": shrinking_arrays,
    "max": lambda x: x.max() * 2.0,
    "max with ties": lambda x: (np.round(x).max(1) ** 2).sum() + np.round(x).max(axis=(0, 1), keepdims=True).sum(),
    "shares of ties": lambda x: ((x * 0).max(0) * x[0]).sum() + (x * 0).min(),
    "min": lambda x: (x.min(0, keepdims=True) * x).sum(),
    "max of nan": lambda x: (x * vg.where(x > 1, np.nan, x).max()).sum(),
    "clip": lambda x: vg.clip(x, -0.5, 0.5).sum() + vg.clip(x, max=0.1).sum() + (vg.clip(x, x[0], 1.0) ** 2).sum(),
    "cumsum": lambda x: (x.cumsum(0) * x.cumsum(1)).sum() + (vg.cumsum(x) ** 2).sum(),
    "products with zeros": lambda x: sum([
        (vg.cumprod(np.round(x), 0) * vg.cumprod(x, 1)).sum(), vg.prod(np.round(x)), (vg.prod(x, 0) * x).sum(),
        (vg.prod(np.round(x), 1, keepdims=True) * x).sum(),
    ]),
    "softmax": lambda x: (vg.softmax(x) * x).sum() + (vg.log_softmax(x, 0) * x * x).sum() + vg.logsumexp(x),
    "deviations": lambda x: x.var() + (x.var(1, ddof=1) * x[:, 0]).sum() + vg.vector_norm(x) + x.std(),
    "norm of zeros": lambda x: vg.vector_norm(x * 0) + x.sum(),
    "special functions": lambda x: sum([
        (vg.erf(x) * vg.erfc(x)).sum(), vg.gammaln(x * x + 0.3).sum(), vg.gammaln(x * 3 + 0.1).sum(),
        vg.logsigmoid(x).sum(), vg.expit(x).sum(), vg.relu6(x).sum(), vg.silu(x).sum(), np.log1p(x * x).sum(),
        np.expm1(x).sum(), np.logaddexp(x, 1.0).sum(), vg.sigmoid(x).sum(), np.tanh(x).sum(), vg.ndtr(x).sum(),
    ]),
    "choices": lambda x: sum([
        vg.where(x > 0, x * x, -x).sum(), vg.maximum(np.round(x), 0.0).sum(), vg.fmax(x, x[0]).sum(),
        vg.fmin(x, 0.5).sum(), vg.minimum(x, x * x).sum(),
    ]),
    "stacks of matrices": lambda x: ((x[:, None, :] @ x[:, :, None]) ** 2).sum() + (x[:, 0] @ x @ x[0]).sum(),
    "calls": lambda x: (vg.linalg.det(x[:3, :3]) * vg.linalg.inv(x)).sum() + (vg.sort(x, 1) * x).sum(),
    "calls with several results": lambda x: vg.linalg.svd(x)[1].sum() + vg.linalg.slogdet(x)[1],
    "index arrays": lambda x: x[[0, 2, 2], [1, 1, 3]].sum() * x[np.array([1, 0])].prod() + vg.take(x, [1, 2], 1).sum(),
}  # fmt: skip


def lists_of_scalars(x):
    symbols = np.random.default_rng(0).integers(0, 5, 30).tolist()
    n = 4
    alpha, total = [x[0, i] * x[0, i] + 1 for i in range(n)], 0.0
    for symbol in symbols:
        alpha = [sum(alpha[i] * (x[i, j] ** 2 + 1) for i in range(n)) * (x[symbol, j] ** 2 + 1) for j in range(n)]
        scale = sum(alpha)
        alpha = [a / scale for a in alpha]
        total = total + np.log(scale)
    return total


LOOPS = [lists_of_scalars, gauss_seidel, triangular_slices, irregular_rows, steps_by_max, walk_in_sorted_order]


def check(f, executor, size=6):
    compiled = vg.compile(f, executor=executor)
    for number in range(4):
        numbers = np.random.default_rng(number).normal(size=(size, size))
        x, y = vg.Tensor(numbers, requires_grad=True), vg.Tensor(numbers, requires_grad=True)
        found, wanted = compiled(x), f(y)
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-10)
        (mine,), (theirs,) = vg.autograd.grad(found, x), vg.autograd.grad(wanted, y)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-11)
    assert found.grad_fn.name() == "CompiledBackward", compiled.explain()
    return compiled


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_match_eager(name, executor):
    check(PROGRAMS[name], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_loops_of_operators_are_recovered_and_match_eager(f, executor):
    compiled = check(f, executor, 12)
    assert "times" in compiled.explain()


def test_all_elementwise_operators_have_compiled_derivatives():
    unknown = {
        name
        for name in [name for name, rule in OPERATOR_RULES.items() if rule.floats]
        if name in OPERATORS
        for number, _ in enumerate(OPERATORS[name].signature.tensors)
        if derivative(name, number) is None
    }
    assert not unknown


AT_EDGES = {
    "relu": (vg.relu, [0.0, -0.0, -1.0, 2.0, np.inf, np.nan]),
    "arcsin": (np.arcsin, [0.0, -0.5, 1.0, -1.0, 2.0, np.nan]),
    "arccos": (np.arccos, [0.0, -0.5, 1.0, -1.0, 2.0, np.nan]),
}


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=[NUMBA, pytest.mark.slow])])
@pytest.mark.parametrize("name", AT_EDGES)
@pytest.mark.filterwarnings("ignore")
def test_derivatives_at_edges_match_eager(name, executor):
    function, points = AT_EDGES[name]

    def f(x, w):
        total = 0.0
        for i in range(len(x)):
            total = total + function(x[i]) * w[i]
        return total + (function(x) * w).sum()

    compiled = vg.compile(f, executor=executor, check=False)
    for w in (np.arange(1.0, 7.0), np.zeros(6)):
        for _ in range(3):
            found = []
            for each in (compiled, f):
                x = vg.Tensor(points, requires_grad=True)
                value = each(x, vg.Tensor(w))
                found.append((value.detach().numpy(), *[g.numpy() for g in vg.autograd.grad(value, [x])]))
            for ours, eager in zip(*found):
                np.testing.assert_allclose(ours, eager, rtol=1e-12)
    assert "runs eagerly" not in compiled.explain()


def test_nan_is_a_constant_in_each_trace():
    def f(x):
        return (x * vg.where(x > 5, np.nan, x)).sum()

    for _ in range(2):  # the second finds entries of the first in a cache, if any
        check(f, "python")


def test_programs_of_many_dtypes_have_one_kernel():
    def f(x):
        return sum([vg.softmax(x * x).max(), vg.clip(x, 0.0, 1.0).sum(), vg.linalg.det(x)])

    compiled = check(f, "python")
    assert "call_det" in compiled.source()
    assert "call_clip" not in compiled.source()


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_infinities_match_numpy():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total = total + np.exp(x[i]) / (1 + np.exp(x[i]))
        return total

    compiled = vg.compile(f, executor="python")
    for numbers in ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [1.0, -2.0, 3.0], [1.0, 800.0, 3.0], [1.0, 2.0, 3.0]):
        x, y = vg.Tensor(numbers, requires_grad=True), vg.Tensor(numbers, requires_grad=True)
        found, wanted = compiled(x), f(y)
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy())
        np.testing.assert_allclose(vg.autograd.grad(found, x)[0].numpy(), vg.autograd.grad(wanted, y)[0].numpy())
    assert found.grad_fn.name() == "CompiledBackward"


@NUMBA
def test_an_error_in_a_call_from_a_kernel_is_raised():
    compiled = vg.compile(lambda x: vg.linalg.inv(x).sum(), executor="numba")
    for _ in range(3):
        compiled(vg.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        compiled(vg.zeros((2, 2)))


@pytest.mark.parametrize("few", [0, 4096])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ties_share_the_gradient_of_an_extremum(executor, few, monkeypatch):
    def f(x, w):
        total = 0.0
        for i in range(4):
            y = x * w[i]
            for axis in (None, (0, 2)):
                total = total + (y.max(axis=axis) * w[i]).sum() + (y[:, ::-1].min(axis=axis, keepdims=True)).sum()
        return total

    monkeypatch.setattr("viewgrad.compiler.lower.reductions.FEW", few)
    compiled = vg.compile(f, executor=executor)
    rng = np.random.default_rng(0)
    for special in (1.0, 2.0, np.inf, np.nan, 1.0):
        array = rng.integers(0, 3, (2, 3, 4)) + 0.0
        array[0, 1, 2] = special
        tensors = [vg.Tensor(array, requires_grad=True), vg.Tensor([1.0, 2.0, -1.0, 0.5], requires_grad=True)]
        value, expected = compiled(*tensors), f(*tensors)
        np.testing.assert_allclose(value.detach().numpy(), expected.detach().numpy())
        for found, wanted in zip(vg.autograd.grad(value, tensors), vg.autograd.grad(expected, tensors)):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-10)
    assert compiled.specializations[0].program is not None, compiled.explain()


def scaled_places(x, s):
    out = vg.zeros(3)
    for i in range(3):
        out[i] = x[i] * s
    return (out**3).sum()


def scaled_parts(x, s):
    y = x * 1.0
    for i in range(3):
        y[i] = y[i : i + 1] * s
    return (y**3).sum() + (s * y[1:2]).sum()


def scaled_table(x, s):
    y = np.outer(x, x)
    for i in range(3):
        y[i, 1] = (y[i : i + 1, 1] * s * y[i : i + 1, 2:3]).sum()
        y[i : i + 1, 0] = y[i, 2] * s
    return (y**3).sum()


def dots_of_one(x, s):
    y = x * 1.0
    for i in range(3):
        y[i] = y[i : i + 1] @ s + s @ y[2:]
    return (y**2).sum()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", [scaled_places, scaled_parts, scaled_table, dots_of_one])
def test_one_element_arrays_put_in_single_positions(f, executor):
    compiled = vg.compile(f, executor=executor, check=False)
    for call in range(4):
        seen = []
        for function in (compiled, f):
            x, s = vg.Tensor([1.0, 2.0, 3.0 + call], requires_grad=True), vg.Tensor([0.5 + call], requires_grad=True)
            value = function(x, s)
            seen.append([value.detach(), *vg.autograd.grad(value, [x, s])])
        for one, other in zip(*seen, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert compiled.specializations[0].program is not None, compiled.explain()


@pytest.mark.parametrize("executor", ["interpreted", pytest.param("numba", marks=pytest.mark.slow)])
def test_one_element_arrays_carried_between_iterations(executor):

    def f(x):
        total, count = vg.zeros(1), vg.zeros(1, dtype=int)
        for t in range(len(x)):
            if t % 4 == 1:
                continue
            total += x[t] * x[t]
            count += 1
        return total[0] / count[0]

    compiled = compiled_by(executor, f)
    for seed in range(4):
        x = vg.Tensor(np.random.default_rng(seed).normal(size=30), requires_grad=True)
        found, wanted = compiled(x), f(x)
        assert found.item() == pytest.approx(wanted.item())
        np.testing.assert_allclose(vg.autograd.grad(found, x)[0], vg.autograd.grad(wanted, x)[0])
    assert compiled.specializations[0].runs >= 3 and not compiled.specializations[0].program.remark


@pytest.mark.parametrize("executor", ["python", "interpreted"])
@pytest.mark.parametrize(
    ("f", "values"),
    [
        (lambda x: vg.logsumexp(x), [np.inf, 0.0, -np.inf]),
        (lambda x: vg.logsumexp(x), [np.inf, np.inf, 0.0]),
        (lambda x: vg.logsumexp(x), [-np.inf, -np.inf, -np.inf]),
        (lambda x: vg.logsumexp(x), [np.nan, 0.0, 1.0]),
        (lambda x: np.clip(x[0], x[1], x[2]), [0.0, 1.0, 1.0]),
        (lambda x: np.clip(x[0], x[1], x[2]), [2.0, 1.0, 1.0]),
        (lambda x: np.clip(x[0], x[1], x[2]), [1.0, 1.0, 1.0]),
        (lambda x: np.clip(x[0], x[1], x[2]), [0.5, 2.0, 1.0]),
        (lambda x: np.clip(x[0], x[1], None) + np.clip(x[0], None, x[1]) * 2, [1.0, 1.0, 0.0]),
        (lambda x: np.fmax(x[0], x[1]) + np.fmin(x[1], x[2]) * 2, [1.0, 1.0, 1.0]),
        (lambda x: np.fmax(x[0], x[1]) + np.fmin(x[1], x[2]) * 2, [np.nan, 1.0, np.nan]),
    ],
)
def test_gradients_at_infinity_and_ties_match_eager(f, values, executor):
    compiled = compiled_by(executor, f, check=False, specialize=True)
    for _ in range(3):
        x, y = vg.Tensor(values, requires_grad=True), vg.Tensor(values, requires_grad=True)
        with np.errstate(all="ignore"):
            value, wanted = compiled(x), f(y)
            value.backward()
            wanted.backward()
        np.testing.assert_allclose(value.detach(), wanted.detach())
        np.testing.assert_allclose(x.grad, y.grad)
    assert value.grad_fn.name() == "CompiledBackward", compiled.explain()
