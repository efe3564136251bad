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


OVERFLOWING = {
    "a reciprocal": lambda x: 1 / (1 + np.exp(3000 * x)),
    "a negative power": lambda x: (1 + np.exp(3000 * x)) ** -0.5,
    "a denominator": lambda x: x / np.cosh(3000 * x),
    "tanh": lambda x: np.tanh(np.exp(3000 * x)),
    "arctan": lambda x: np.arctan(np.exp(3000 * x)),
    "an exponential": lambda x: np.exp(-np.exp(3000 * x)),
    "a norm": lambda x: 1 / np.hypot(x, np.exp(3000 * x)),
    "a product with zeros": lambda x: np.sqrt(x - x) @ np.array([[1.0, 0.0], [0.0, 1.0]]),
    "a power in place": lambda x: (1 + np.exp(3000 * x)).pow_(-1.0),
    "a product in place": lambda x: np.sqrt(x - x).mul_(0.0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OVERFLOWING)
def test_tangents_times_derivatives_of_zero(name):
    f = OVERFLOWING[name]
    x, v = vg.Tensor([0.5, 0.9]), vg.ones(2)

    def along(x):
        return vg.func.jvp(f, (x,), (v,))[1]

    expected = 1 / np.cosh(3000 * x.numpy()) if name == "a denominator" else np.zeros(2)
    np.testing.assert_array_equal(np.abs(along(x)).numpy(), expected)
    np.testing.assert_array_equal(np.abs(vg.func.jvp(along, (x,), (v,))[1]).numpy(), np.zeros(2))
    np.testing.assert_array_equal(np.abs(vg.func.grad(lambda x: along(x).sum())(x)).numpy(), np.zeros(2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_traced_tangents_times_derivatives_of_zero():
    compiled = vg.compile(lambda x: vg.func.jvp(OVERFLOWING["a reciprocal"], (x,), (vg.ones(2),))[1])
    for at in ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.5, 0.9]):
        found = compiled(vg.Tensor(at)).numpy()
    np.testing.assert_array_equal(found, [0, 0])


def test_infinite_tangents_have_influence_elsewhere():
    x, v = vg.Tensor([0.0, 4.0]), vg.ones(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        _, found = vg.func.jvp(lambda x: np.sqrt(x) @ np.array([[1.0, 0.0], [1.0, 1.0]]), (x,), (v,))
        assert found.tolist() == [np.inf, 0.25]
        _, found = vg.func.jvp(lambda x: np.sqrt(x) * np.nan, (x,), (v,))
        assert np.isnan(found.numpy()).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_recorded_gradients_beside_a_masked_row_of_softmax(name):
    rows, factors = [[0.0, 1.0], [2.0, 0.0]], np.array([[1.0, 2.0], [5.0, 3.0]])
    found = []
    for given in (rows, [[-np.inf, -np.inf], *rows]):
        x = leaf_of(given)
        (g,) = grad((getattr(vg, name)(x)[-2:] * factors).sum(), x, create_graph=True)
        found.append((g[-2:].detach().numpy(), grad((g[-2:] * factors).sum(), x)[0][-2:].numpy()))
    np.testing.assert_allclose(*found, rtol=1e-12)


BAD = np.array([[1.0, 2.0, 3.0], [np.inf, 1.0, 2.0], [np.nan, 1.0, 0.0]])
GOOD = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
STACK = np.stack([GOOD + 3 * np.eye(3), np.full((3, 3), np.nan)])
MASKED_PRODUCTS = {
    "cross": (vg.cross, BAD, GOOD),
    "vecdot": (np.linalg.vecdot, BAD, GOOD),
    "outer": (np.outer, [1.0, np.inf, 2.0], [1.0, 0.0, np.nan]),
    "kron": (np.kron, [1.0, np.inf], [1.0, np.nan]),
    "convolve": (np.convolve, [1.0, 2.0, np.inf, 3.0, 4.0, 5.0], [1.0, 2.0]),
    "correlate": (np.correlate, [1.0, 2.0, np.inf, 3.0, 4.0, 5.0], [1.0, 2.0]),
    "cumprod": (np.cumprod, [1.0, 2.0, np.inf, 3.0]),
    "trapezoid": (np.trapezoid, BAD, GOOD),
    "cov": (np.cov, BAD),
    "angle": (np.angle, np.array([1 + 1j, complex(np.nan, 1)])),
    "inv": (np.linalg.inv, STACK),
    "det": (np.linalg.det, STACK),
    "solve": (np.linalg.solve, STACK, np.ones((2, 3, 1))),
    "cholesky": (np.linalg.cholesky, STACK),
}


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", MASKED_PRODUCTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elements_that_only_masked_results_depend_on(name, is_recorded):
    function, *operands = MASKED_PRODUCTS[name]
    found = []
    for replacement in (None, 7.0, 11.0):  # what stands in their place does not matter
        given = [
            leaf_of(np.where(np.isfinite(each), each, each if replacement is None else replacement))
            for each in operands
        ]
        if replacement is not None and name in ("inv", "det", "solve", "cholesky"):
            given[0] = leaf_of(np.stack([STACK[0], replacement * np.eye(3)]))
        result = function(*given)
        if replacement is None:
            ok = np.isfinite(result.detach().numpy())
        loss = np.where(ok, result, 0.0).sum()
        found.append(grad(loss, given, create_graph=is_recorded))
    for first, *others in zip(*found):
        for other in others:
            np.testing.assert_allclose(first.detach().numpy(), other.detach().numpy(), rtol=1e-10, atol=1e-12)
