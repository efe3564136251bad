"""Traced functions that inspect intermediate values, and choose again in each run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from drawn_calls import DrawnCall  # noqa: E402
from replaying import replay  # noqa: E402

import viewgrad as vg  # noqa: E402
import viewgrad.numpy as vnp  # noqa: E402
from viewgrad import math  # noqa: E402
from viewgrad.errors import GraphError, GuardError, TraceError  # noqa: E402
from viewgrad.scipy import linalg, ndimage, optimize, signal, special, stats  # noqa: E402
from viewgrad.symbolic import function_of, trace  # noqa: E402

TESTS = Path(__file__).parent
X, UNIT = np.array([0.3, 0.7, 1.9, 2.4]), np.array([0.1, 0.35, 0.6, 0.9])
MATRIX = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [0.5, -0.3, 1.8]])
FUNCTIONS = {
    "huber": (lambda x: special.huber(1.0, x), X),
    "polar": (lambda x: linalg.polar(x)[0], MATRIX),
    "normal density": (lambda x: stats.norm.logpdf(x, 0.3, 2.0), X),
    "beta distribution": (lambda x: stats.beta.cdf(x, 2.0, 3.0), UNIT),
    "gamma quantile": (lambda x: stats.gamma.ppf(x, 2.0), UNIT),
    "Savitzky-Golay": (lambda x: signal.savgol_filter(x, 3, 1), X),
    "median filter": (lambda x: ndimage.median_filter(x, 3), X),
    "Gaussian filter": (lambda x: ndimage.gaussian_filter(x, 0.5), X),
    "margins in a list": (lambda x: np.pad(x, [[1, 2]], mode="edge"), X),
    "operands from one line": (lambda x: special.fdtr(x, x[::-1] + 0.3, x * 0.3), X),
    "an argument without history": (lambda x: special.eval_sh_jacobi(3, 2.5, 1.5, x), UNIT),
    "a function without derivative": (lambda x: vnp.gcd(vnp.array([4, 6, 9, 2]), 6) * x, X),
    "Python's functions": (lambda x: math.sqrt(x[0]) * math.log(x[1]) + math.modf(x[2] * 3)[0] * math.exp(x[3]), X),
    "arrays made of NumPy's names": (lambda x: x @ vnp.eye(4) * vnp.arange(4) + vnp.array([1.0, 2, 3, 4]), X),
    "fractional parts": (lambda x: np.modf(x * 1.7)[0] ** 2, X),
    "mantissas": (lambda x: np.frexp(x)[0] ** 2, X),
    "mantissas and exponents in place": (lambda x: np.frexp(x, (vg.zeros(4), vg.zeros(4)))[0] ** 2, X),
    "unwrapped angles": (lambda x: np.unwrap(x * 4) ** 2, X),
    "unwrapped along the other axis": (lambda x: np.unwrap(x * 2, 1.0, 0, period=1.5) ** 2, MATRIX),
    "powers of two": (lambda x: np.ldexp(x, np.array([1, 2, 3, -4])) ** 2, X),
    "a polynomial of its zeros": (lambda x: np.poly(x) ** 2, X),
    "a characteristic polynomial": (lambda x: np.poly(x @ x.T) ** 2, MATRIX),
    "zeros of a polynomial": (lambda x: abs(np.roots(x)) ** 2, X),
    "condition": (lambda x: np.linalg.cond(x), MATRIX),
    "condition in another norm": (lambda x: np.linalg.cond(x, 1), MATRIX),
    "the least condition": (lambda x: np.linalg.cond(x, -2), MATRIX),
    "Wiener filter": (lambda x: signal.wiener(x, 3), X),
    "the triangular one of full factors": (lambda x: linalg.qr(x[:, :2])[1] ** 3, MATRIX),
    "ranks": (lambda x: x * stats.rankdata(x), X),
    "distances": (lambda x: x * ndimage.distance_transform_edt(x > 1), X),
    "sums in bins": (lambda x: np.histogram(x, 3, weights=x * x)[0] + np.histogram(x, 3)[1][1:] * x[0], X),
    "sums in cells": (lambda x: np.histogram2d(x, x[::-1], 2, weights=x)[0] ** 2, X),
    "factors of rows in another order": (lambda x: linalg.lu(x)[1], MATRIX),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_branches_inside_opaque_steps_are_reevaluated(name):
    function, x = FUNCTIONS[name]
    replay(function, vg.Tensor(x, requires_grad=True), name)


def test_composed_functions_that_inspect_values_are_one_step():
    graph = trace(lambda x: special.huber(1.0, x * 2), vg.ones(2))
    assert [node.kind for node in graph.block] == ["constant", "mul", "constant", "call"]


def test_function_arguments_are_refused():
    a = vg.Tensor(2.0)
    with pytest.raises(TraceError):
        trace(lambda a: optimize.root(lambda x: x**2 - a, np.ones(1)).x, a)


def test_samples_are_refused():
    generator = vnp.random.default_rng(0)
    with pytest.raises(TraceError, match=r"random numbers by numpy\.random\.normal"):
        trace(lambda x: x * generator.normal(size=2), vg.ones(2))


def test_second_derivatives_of_a_step():
    def function(x):
        return special.huber(1.0, x).sum()

    traced = function_of(function, vg.Tensor(X, requires_grad=True))
    x = vg.Tensor(X[::-1] * 0.6, requires_grad=True)
    for each in (traced, function):
        (first,) = vg.autograd.grad(each(x), x, create_graph=True)
        (second,) = vg.autograd.grad((first * first).sum(), x)
        near = x.detach().numpy()
        np.testing.assert_allclose(second.numpy(), 2 * np.where(abs(near) <= 1, near, 0))


TWICE = ["fractional parts", "mantissas", "unwrapped angles", "powers of two", "a polynomial of its zeros",
         "zeros of a polynomial", "condition", "condition in another norm"]  # fmt: skip


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_if_numpy_inspects_values(name):
    function, at = FUNCTIONS[name]
    traced = function_of(function, vg.Tensor(at, requires_grad=True))
    found = []
    for each in (traced, function):
        x = vg.Tensor(at[::-1] * 1.3, requires_grad=True)
        (first,) = vg.autograd.grad(each(x).sum(), x, create_graph=True)
        (second,) = vg.autograd.grad((first * first).sum(), x)
        found.append((first.detach().numpy(), second.numpy()))
    for ours, wanted in zip(*found):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-9)
        assert np.abs(wanted).max() > 0


def test_conditions_of_piecewise_are_guarded():
    def function(x):
        return np.piecewise(x, [x < 1, x >= 1], [lambda v: v * v, lambda v: v**3]).sum()

    x = vg.Tensor(X, requires_grad=True)
    traced = function_of(function, x)
    assert traced(x).item() == pytest.approx(function(x).item())
    with pytest.raises(GuardError):
        traced(vg.Tensor(X + 1, requires_grad=True))


def test_results_of_another_dtype_are_refused():
    traced = function_of(np.poly, vg.Tensor([1 + 2j, 1 - 2j]))
    np.testing.assert_allclose(traced(vg.Tensor([1 + 3j, 1 - 3j])).numpy(), [1, -2, 10])
    with pytest.raises(GraphError, match="dtypes"):
        traced(vg.Tensor([1 + 3j, 2 - 3j]))


def names_and_leaves(call):
    """Return the names of a drawn call's arrays, and leaves for them."""
    arrays = [array.copy(order="K") for array in call.arrays.values()]
    leaves = [vg.Tensor(array, requires_grad=array.dtype.kind in "fc") for array in arrays]
    return list(call.arrays), leaves


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(8))
def test_drawn_calls_are_replayed(batch):
    for seed in range(150 * batch, 150 * (batch + 1)):
        call = DrawnCall(seed)
        names, leaves = names_and_leaves(call)
        replay(lambda *given, call=call, names=names: call.run(dict(zip(names, given))), leaves, str(call))


MODULES = sorted(path.name for path in TESTS.glob("test_scipy_*.py")) + [
    "test_composites.py", "test_degenerate_inputs.py", "test_math_namespace.py", "test_numpy_methods.py",
    "test_numpy_namespace.py", "test_numpy_options.py", "test_numpy_aliases.py", "test_rows.py",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_all_cases_with_gradients_are_replayed(module):
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    options = ["-q", "-pno:cacheprovider", "-preplaying", "-mnot slow", "-Wignore"]
    command = [sys.executable, "-m", "pytest", *options, module]
    done = subprocess.run(command, cwd=TESTS, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode in (0, 5), done.stdout[-5000:]
