"""Functions that look at values in between, recorded: what they choose is chosen again in each run."""

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
from viewgrad.errors import TraceError  # noqa: E402
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
    "Wiener filter": (lambda x: signal.wiener(x, 3), X),
    "the triangular one of full factors": (lambda x: linalg.qr(x[:, :2])[1] ** 3, MATRIX),
    "ranks": (lambda x: x * stats.rankdata(x), X),
    "distances": (lambda x: x * ndimage.distance_transform_edt(x > 1), X),
    "factors of rows in another order": (lambda x: linalg.lu(x)[1], MATRIX),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_choices_are_made_again(name):
    function, x = FUNCTIONS[name]
    replay(function, vg.Tensor(x, requires_grad=True), name)


def test_what_looks_at_values_is_one_step():
    graph = trace(lambda x: special.huber(1.0, x * 2), vg.ones(2))
    assert [node.kind for node in graph.block] == ["constant", "mul", "constant", "call"]


def test_a_function_that_is_given_a_function_is_refused():
    a = vg.Tensor(2.0)
    with pytest.raises(TraceError):
        trace(lambda a: optimize.root(lambda x: x**2 - a, np.ones(1)).x, a)


def test_samples_are_refused():
    generator = vnp.random.default_rng(0)
    with pytest.raises(TraceError, match=r"a sample of numpy\.random\.normal"):
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

def names_and_leaves(call):
    """The names of a drawn call's arrays, and leaves for them."""
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
    "test_composites.py", "test_degenerate.py", "test_math_namespace.py", "test_numpy_methods.py",
    "test_numpy_namespace.py", "test_numpy_options.py", "test_numpy_spellings.py", "test_rows.py",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_all_that_is_checked_for_gradients_is_replayed(module):
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", "-preplaying", "-mnot slow", module]
    done = subprocess.run(command, cwd=TESTS, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode in (0, 5), done.stdout[-5000:]
