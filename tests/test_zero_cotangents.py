"""A zero cotangent gives a zero gradient, even if the slope is infinite."""

import numpy as np
import pytest
from leaves import leaf_of

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.func import hessian, jacfwd, jacrev

MASKED = {
    "a mask times a root": lambda x: np.sqrt(x) * np.array([0.0, 1.0, 1.0]),
    "where on a root": lambda x: np.where(x > 0, np.sqrt(x), 0.0),
    "elements left out": lambda x: np.sqrt(x)[1:],
    "a power": lambda x: (x**0.5)[1:],
    "a tensor as exponent": lambda x: (x ** vg.Tensor([0.5, 0.5, 0.5]))[1:],
}


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_masked_roots(name):
    x = leaf_of([0.0, 1.0, 4.0])
    (g,) = grad(MASKED[name](x).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [0, 0.5, 0.25])
    np.testing.assert_allclose(grad(g.sum(), x)[0].numpy(), [0, -0.25, -0.03125])
    np.testing.assert_allclose(grad(MASKED[name](x).sum(), x)[0].numpy(), [0, 0.5, 0.25])


def test_large_gradients_that_nothing_else_holds():
    x = leaf_of(np.linspace(0, 4, 5001))
    mask = np.arange(5001) > 0
    (g,) = grad((np.sqrt(x) * mask).sum(), x)
    np.testing.assert_allclose(g.numpy(), np.r_[0, 0.5 / np.sqrt(np.linspace(0, 4, 5001)[1:])])


def distances(positions):
    gaps = positions[:, None] - positions[None]
    return (np.sqrt((gaps * gaps).sum(-1)) * (1 - np.eye(len(positions)))).sum()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pairwise_distances_have_gradients_and_hessians():
    positions = np.random.default_rng(0).standard_normal((3, 2))
    first = jacrev(distances)(vg.Tensor(positions)).numpy()
    second = hessian(distances)(vg.Tensor(positions)).numpy()
    step = 1e-5
    for index in np.ndindex(3, 2):
        moved = np.zeros((3, 2))
        moved[index] = step
        above, below = positions + moved, positions - moved
        slope = (distances(above) - distances(below)) / (2 * step)
        np.testing.assert_allclose(first[index], slope, rtol=1e-6)
        slopes = [jacrev(distances)(vg.Tensor(at)).numpy() for at in (above, below)]
        change = (slopes[0] - slopes[1]) / (2 * step)
        np.testing.assert_allclose(second[index], change, rtol=1e-5, atol=1e-8)


def test_guarded_quotients_and_logarithms():
    x, y = leaf_of([1.0, 2.0]), leaf_of([0.0, 4.0])
    safe = y > 0
    with np.errstate(all="ignore"):
        loss = np.where(safe, x / y, 0.0).sum() + np.where(safe, np.log(y), 0.0).sum()
    first, second = grad(loss, (x, y))
    np.testing.assert_allclose(first.numpy(), [0, 0.25])
    np.testing.assert_allclose(second.numpy(), [0, -2 / 16 + 1 / 4])


def test_gradients_match_the_slope_of_the_function():
    x = leaf_of([0.0, 4.0])
    with np.errstate(divide="ignore"):
        assert grad(np.sqrt(x).sum(), x)[0].tolist() == [np.inf, 0.25]
        assert np.isnan(grad((np.sqrt(x) * np.nan).sum(), x)[0].numpy()).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tangents_of_other_elements_do_not_flow():
    np.testing.assert_array_equal(jacfwd(np.sqrt)(vg.Tensor([0.0, 4.0])).numpy(), [[np.inf, 0], [0, 0.25]])
    base = vg.Tensor([0.0, 2.0])
    expected = [[0, 0], [0, np.sqrt(2) * np.log(2)]]
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(lambda y: base**y)(vg.Tensor([0.5, 0.5])).numpy(), expected)
    assert float(hessian(lambda y: 0.0**y)(vg.Tensor(0.5))) == 0
