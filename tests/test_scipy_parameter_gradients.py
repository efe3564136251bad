"""Gradients with respect to coordinates, parameters and coefficients, against differences of SciPy's own values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import scipy.optimize
import scipy.special
import scipy.stats

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import gradcheck, gradgradcheck
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError
from viewgrad.scipy import ndimage, optimize, special, stats

RNG = np.random.default_rng(0)


def leaf(data):
    return vg.Tensor(data, requires_grad=True)


def differences(f, point, step=1e-6):
    """Return the Jacobian of a function of arrays, by central differences."""
    columns = []
    for place in np.ndindex(point.shape):
        move = np.zeros_like(point)
        move[place] = step
        columns.append((np.asarray(f(point + move)) - np.asarray(f(point - move))) / (2 * step))
    return np.stack(columns, -1)


def compare(ours, scipys, point, rtol=1e-6, atol=1e-7):
    """Compare the values and slopes of a function of tensors with those of SciPy's function of arrays."""
    np.testing.assert_allclose(ours(leaf(point)).detach().numpy(), scipys(point), rtol=1e-10, atol=1e-12)
    found = func.jacrev(ours)(vg.Tensor(point)).numpy()
    expected = differences(scipys, point)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=rtol, atol=atol)


# -- images ------------------------------------------------------------------------------------------------------------

IMAGE = RNG.normal(size=(6, 7))
PLACES = np.array([[1.3, 2.6, 4.9, -0.3, 5.2], [2.2, 1.1, 0.1, 3.3, 6.4]])


@pytest.mark.parametrize("mode", ["constant", "nearest", "reflect", "mirror", "wrap", "grid-wrap", "grid-constant"])
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_derivatives_of_map_coordinates_wrt_coordinates(order, mode):
    options = {"order": order, "mode": mode, "cval": 0.7}
    compare(
        lambda places: ndimage.map_coordinates(IMAGE, places, **options),
        lambda places: scipy.ndimage.map_coordinates(IMAGE, places, **options),
        PLACES, 1e-5, 1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("order", [2, 3])
def test_derivatives_of_map_coordinates(order):
    image, places = leaf(RNG.normal(size=(4, 3))), leaf([[0.6, 2.2], [1.3, 0.8]])
    f = lambda image, places: ndimage.map_coordinates(image, places, order=order, cval=0.5)
    assert gradcheck(f, (image, places)) and gradgradcheck(f, (image, places))
    forward, reverse = (each(f, (0, 1))(image.detach(), places.detach()) for each in (func.jacfwd, func.jacrev))
    for a, b in zip(forward, reverse):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-10)


def test_derivatives_of_transforms_wrt_parameters():
    compare(
        lambda s: ndimage.shift(IMAGE, s, order=3), lambda s: scipy.ndimage.shift(IMAGE, s, order=3),
        np.array([0.3, -1.4]), 1e-5, 1e-5,
    )  # fmt: skip
    matrix = np.array([[0.9, 0.13], [-0.21, 1.08]])
    for order in (2, 4):
        compare(
            lambda m, order=order: ndimage.affine_transform(IMAGE, m, [0.33, 0.21], order=order, mode="nearest"),
            lambda m, order=order: scipy.ndimage.affine_transform(IMAGE, m, [0.33, 0.21], order=order, mode="nearest"),
            matrix, 1e-4, 1e-4,
        )  # fmt: skip
    # At the identity, all positions are elements, and the last ones lie on the edge.
    slopes = func.jacrev(lambda s: ndimage.shift(IMAGE, s, order=3, mode="nearest"))(vg.zeros(2)).numpy()
    inner = differences(lambda s: scipy.ndimage.shift(IMAGE, s, order=3, mode="nearest"), np.zeros(2))[1:-1, 1:-1]
    np.testing.assert_allclose(slopes[1:-1, 1:-1], inner, atol=1e-5)


# -- special functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [(1.1, 2, 3, 0.5), (0.5, -1.3, 2.2, -3.0), (2, 3, 4.5, 0.93), (-2, 1.5, 0.7, 0.4), (0.2, 0.3, 1.4, -50)],
)
def test_derivatives_of_hyp2f1_wrt_parameters(point):
    point = np.array(point, float)
    compare(lambda p: special.hyp2f1(*p), lambda p: scipy.special.hyp2f1(*p), point, 1e-5, 1e-6)


def test_hyp2f1_second_derivatives_and_arrays():
    parameters = tuple(map(leaf, (1.1, [0.4, 2.0], 3.0, [0.5, -0.7])))
    assert gradcheck(special.hyp2f1, parameters) and gradgradcheck(special.hyp2f1, parameters)
    z = leaf([0.2, 0.3])
    assert gradcheck(lambda z: special.hyp2f1(1.0, 2.0, 3.0, z), (z,))
    with pytest.raises(UnsupportedFunctionError, match="below 1"):
        special.hyp2f1(leaf(1.0), 2.0, 3.0, 1.5)


# -- distributions -----------------------------------------------------------------------------------------------------

SHAPE = np.array([[2.0, 0.5], [0.5, 1.0]])
X = RNG.normal(size=(3, 2))


@pytest.mark.parametrize(
    "ours, theirs, point",
    [
        (lambda p: stats.multivariate_t.logpdf(p, [0.1, 0.2], SHAPE, 3.0),
         lambda p: scipy.stats.multivariate_t.logpdf(p, [0.1, 0.2], SHAPE, 3.0), X),
        (lambda p: stats.multivariate_t.pdf(X, p, SHAPE, 3.0),
         lambda p: scipy.stats.multivariate_t.pdf(X, p, SHAPE, 3.0), np.array([0.1, 0.2])),
        (lambda p: stats.multivariate_t(None, SHAPE, p).logpdf(X[0]),
         lambda p: scipy.stats.multivariate_t.logpdf(X[0], None, SHAPE, p), np.array(3.0)),
        (lambda p: stats.multivariate_t.logpdf(X, None, SHAPE * p, 3.0),
         lambda p: scipy.stats.multivariate_t.logpdf(X, None, SHAPE * p, 3.0), np.array(1.3)),
        (lambda p: stats.multinomial.logpmf([1, 2, 0], 3, vg.stack([p[0], p[1], 1 - p.sum()])),
         lambda p: scipy.stats.multinomial.logpmf([1, 2, 0], 3, [p[0], p[1], 1 - p.sum()]), np.array([0.2, 0.5])),
        (lambda p: stats.multinomial.pmf([[1, 2], [0, 3]], 3, vg.stack([p, 1 - p])),
         lambda p: scipy.stats.multinomial.pmf([[1, 2], [0, 3]], 3, [p, 1 - p]), np.array(0.4)),
        (lambda p: stats.wishart.logpdf(SHAPE * p[0], p[1], SHAPE.T * p[2]),
         lambda p: scipy.stats.wishart.logpdf(SHAPE * p[0], p[1], SHAPE.T * p[2]), np.array([1.2, 4.5, 0.8])),
        (lambda p: stats.skellam.logpmf([-2, 0, 3], p[0], p[1]),
         lambda p: scipy.stats.skellam.logpmf([-2, 0, 3], p[0], p[1]), np.array([1.5, 2.5])),
        (lambda p: stats.skellam.mean(p[0], p[1]) + stats.skellam.var(p[0], p[1]),
         lambda p: scipy.stats.skellam.mean(*p) + scipy.stats.skellam.var(*p), np.array([1.5, 2.5])),
    ],
)  # fmt: skip
def test_distributions(ours, theirs, point):
    compare(ours, theirs, point, 1e-5)


@pytest.mark.filterwarnings("ignore:Some rows of `p` do not sum to 1:FutureWarning")
def test_multinomial_probabilities_that_do_not_sum_to_one_match_scipy():
    """SciPy up to 1.17 replaces the last one; SciPy 1.18 returns NaN."""
    given = [[0.2, 0.5, 0.4], [0.2, 0.5, 0.3]]
    for p in given:
        found = stats.multinomial.logpmf([1, 2, 0], 3, leaf(p)).detach().numpy()
        np.testing.assert_allclose(found, scipy.stats.multinomial.logpmf([1, 2, 0], 3, p))


# -- linear programs ---------------------------------------------------------------------------------------------------

C, A, B = np.array([-1.0, -1.5, 0.3]), np.array([[1.0, 2.0, 0.5], [3.0, 1.0, -1.0]]), np.array([4.0, 6.0])
BOUNDS = np.array([[0.0, 3.0], [0.1, 2.0], [0.2, 5.0]])


def solved(linprog, p):
    bounds = [(p[11 + 2 * i], p[12 + 2 * i]) for i in range(3)]
    return linprog(p[:3], p[3:9].reshape(2, 3), p[9:11], bounds=bounds)


def test_linprog():
    point = np.concatenate([C, A.ravel(), B, BOUNDS.ravel()])
    for pick in (
        lambda found: found.fun, lambda found: found.x, lambda found: found.slack, lambda found: found.lower.residual,
        lambda found: found.ineqlin.marginals, lambda found: found.upper.marginals,
    ):  # fmt: skip
        both = [lambda p, m=m, pick=pick: pick(solved(m.linprog, p)) for m in (optimize, scipy.optimize)]
        compare(*both, point)
    equal = lambda linprog, p: linprog(C, A_eq=[[1.0, 1.0, 1.0]], b_eq=p[:1], A_ub=A, b_ub=p[1:]).fun
    compare(*[lambda p, m=m: equal(m.linprog, p) for m in (optimize, scipy.optimize)], np.array([1.9, 4.0, 6.0]))
    value = lambda p: solved(optimize.linprog, p).fun
    slopes = differences(lambda p: func.grad(value)(vg.Tensor(p)).numpy(), point)
    np.testing.assert_allclose(func.hessian(value)(vg.Tensor(point)).numpy(), slopes, atol=1e-7)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([-1.0, -1.0], [[1.0, 1.0]], [1.0]), "not unique"),
        (([-1.0, -2.0], [[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0]), "degenerate"),
        (([-1.0, -2.0], [[-1.0, 1.0]], [1.0]), "unbounded"),
    ],
)
def test_linear_programs_without_a_derivative(arguments, message):
    with pytest.raises(DifferentiabilityError, match=message):
        optimize.linprog(leaf(arguments[0]), *arguments[1:])
