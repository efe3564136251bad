"""viewgrad functions in PyTensor graphs and PyMC models."""

from __future__ import annotations

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")
pt = pytest.importorskip("pytensor.tensor")

import viewgrad as vg  # noqa: E402
from viewgrad.errors import InteropError  # noqa: E402
from viewgrad.interop import pytensor_op  # noqa: E402

# PyTensor 3 compiles with Numba by default, and reports that operations run in Python.
pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")


def recurrence(x, a):
    out = vg.ones(len(x) + 1)
    for i in range(len(x)):
        out[i + 1] = out[i] * x[i] + a
    return out


def in_pytensor(x, a, length):
    out = [pt.ones(())]
    for i in range(length):
        out.append(out[i] * x[i] + a)
    return pt.stack(out)


X, A = np.array([0.5, -1.5, 2.0]), 0.3


@pytest.mark.parametrize("compiled", [False, True])
def test_values_gradients_and_second_derivatives(compiled):
    x, a = pt.dvector("x"), pt.dscalar("a")
    op = pytensor_op(vg.compile(recurrence, executor="python") if compiled else recurrence, pt.dvector)
    results = []
    for y in (op(x, a), in_pytensor(x, a, 3)):
        gx, ga = pytensor.grad((y**2).sum(), [x, a])
        f = pytensor.function([x, a], [y, gx, ga, *pytensor.grad((gx**3).sum() + ga, [x, a])])
        results.append(f(X, A))
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_several_results_and_integers():
    op = pytensor_op(lambda x, n: (x.sum() * 2.0, x * n.astype(float)), (pt.dscalar, pt.dvector))
    x, n = pt.dvector("x"), pt.lscalar("n")
    total, scaled = op(x, n)
    gradient = pytensor.grad(total + scaled[0], x)
    assert pytensor.function([x, n], gradient)([1.0, 2.0], 3).tolist() == [5.0, 2.0]
    assert pytensor.function([x, n], total.shape[0] if total.ndim else total)([1.0, 2.0], 3) == 6.0


def test_wrong_types_are_errors():
    x = pt.dvector("x")
    with pytest.raises(InteropError, match="1 dimensions"):
        pytensor.function([x], pytensor_op(lambda x: x * 2.0)(x))(X)
    with pytest.raises(InteropError, match="2 tensors"):
        pytensor.function([x], pytensor_op(lambda x: (x[0], x[1]))(x))(X)


def test_verify_grad():
    op = pytensor_op(recurrence, pt.dvector)
    pytensor.gradient.verify_grad(op, [X, np.array(A)], rng=np.random.default_rng(0))


@pytest.mark.slow
def test_a_model_is_sampled():
    """The model has a likelihood in a loop, for the mean of normal data, and a known posterior."""
    pm = pytest.importorskip("pymc")
    data = np.random.default_rng(0).normal(1.0, 1.0, size=20)

    def log_likelihood(mean):
        total = vg.zeros(1)
        for each in data:
            total[0] -= 0.5 * (mean - each) ** 2
        return total[0]

    with pm.Model():
        mean = pm.Flat("mean")
        pm.Potential("likelihood", pytensor_op(vg.compile(log_likelihood))(mean))
        found = pm.sample(400, tune=200, chains=2, cores=1, progressbar=False, random_seed=1)
    draws = found.posterior["mean"].values
    assert abs(draws.mean() - data.mean()) < 0.06
    assert abs(draws.std() - 20**-0.5) < 0.04


def test_gradients_have_the_shapes_of_the_inputs_and_no_rewrite_fails(caplog):
    vector = pytensor_op(recurrence, outputs=pt.dvector)
    x, a = pt.dvector("x"), pt.dscalar("a")
    gradient = pytensor.grad(vector(x, a).sum(), x)
    shape = pytensor.function([x, a], gradient.shape, on_unused_input="ignore")
    assert shape(X, A).tolist() == [3]
    assert not [node for node in shape.maker.fgraph.toposort() if "Viewgrad" in str(node.op)]  # it need not run
    vector(x, a).shape.eval({x: X, a: A})
    assert not caplog.records
