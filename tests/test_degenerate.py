"""Determinants of singular matrices, norms with zeros, extrema of what is no number: where formulas divide by zero."""

import math

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.func import hessian, jacfwd

SINGULAR = {
    "zeros": np.zeros((2, 2)),
    "rank 1": np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]),
    "rank n - 1": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]]),
    "equal singular values": np.diag([1.0, 1.0, 0.0]),
    "rank 2 of 4": np.arange(16.0).reshape(4, 4),
    "rank 1, complex": np.outer([1.0, 2j], [0.5 - 1j, 1.0]),
}


def expanded(x):
    """The determinant as the polynomial that it is: Laplace's expansion."""
    if len(x) == 1:
        return x[0, 0]
    others = np.arange(1, len(x))
    return sum(
        (-1) ** j * x[0, j] * expanded(x[np.ix_(others, [k for k in range(len(x)) if k != j])]) for j in range(len(x))
    )


def real_part(function):
    return lambda x: function(x).real


@pytest.mark.parametrize("name", SINGULAR)
def test_derivatives_of_determinants_of_singular_matrices(name):
    """Of the first, second and third order, those of the polynomial."""
    array = SINGULAR[name]
    rng = np.random.default_rng(0)
    directions = [rng.standard_normal(array.shape) for _ in range(2)]
    found = []
    for determinant in (vg.det, expanded):
        x = leaf(array)
        orders = []
        value = determinant(x).real
        for direction in (*directions, None):
            (g,) = grad(value, x, create_graph=True, materialize_grads=True)
            orders.append(g.detach().numpy())
            if direction is None or not g.requires_grad:
                break
            value = (g * direction).real.sum()
        found.append(orders)
    for ours, expected in zip(*found):
        np.testing.assert_allclose(ours, expected, atol=1e-10 * max(1, np.abs(expected).max()))
    if array.dtype.kind == "f":
        expected = hessian(expanded)(vg.Tensor(array)).numpy()
        np.testing.assert_allclose(hessian(vg.det)(vg.Tensor(array)).numpy(), expected, atol=1e-10)
        np.testing.assert_allclose(jacfwd(jacfwd(vg.det))(vg.Tensor(array)).numpy(), expected, atol=1e-10)


def test_the_second_derivative_at_zeros():
    x = leaf(np.zeros((2, 2)))
    (g,) = grad(vg.det(x), x, create_graph=True)
    assert grad(g[0, 1], x)[0].tolist() == [[0, 0], [-1, 0]]


@pytest.mark.parametrize("order", [-0.5, -1, -2, -3, -math.inf])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_norms_of_negative_order_are_zero_beside_a_zero(order):
    x = leaf([0.0, 2.0, 3.0])
    assert grad(vg.vector_norm(x, order), x)[0].tolist() == [0, 0, 0]
    assert grad(np.linalg.norm(x[1:], order), x)[0].tolist()[0] == 0
    rows = leaf([[0.0, 2.0], [1.0, 2.0]])
    (g,) = grad(vg.vector_norm(rows, order, 1).sum(), rows)
    alone = leaf([1.0, 2.0])
    np.testing.assert_allclose(g.numpy(), [[0, 0], grad(vg.vector_norm(alone, order), alone)[0].numpy()])


@pytest.mark.parametrize("order", [math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_maximum_norm_of_complex_numbers_in_any_layout(order, dtype):
    rng = np.random.default_rng(0)
    z = leaf((rng.standard_normal((40, 7)) + 1j * rng.standard_normal((40, 7))).astype(dtype))
    for view in (lambda z: z[::-1], lambda z: z.T, lambda z: z[::3, ::-2], lambda z: z[:, 3], lambda z: z.conj()):
        (g,) = grad(vg.vector_norm(view(z), order), z)
        assert np.count_nonzero(g.numpy()) == 1
        np.testing.assert_allclose(np.abs(g.numpy()).sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("extremum", [vg.max, vg.min, np.ptp, vg.median], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_rows_that_are_no_numbers_leave_the_others_alone(extremum):
    x = leaf([[np.nan, 1.0, 0.0], [2.0, 3.0, 7.0]])
    alone = leaf([2.0, 3.0, 7.0])
    expected = grad(extremum(alone, axis=0), alone)[0].tolist()
    assert grad(extremum(x, axis=1)[1], x)[0].tolist() == [[0, 0, 0], expected]


def test_the_gradient_of_what_is_no_number_goes_to_what_is_none():
    x = leaf([[np.nan, 1.0, np.nan], [2.0, 3.0, 0.0]])
    assert grad(vg.max(x, axis=1).sum(), x)[0].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


def test_powers_at_edges():
    x = leaf([1e-310, 0.0, 2.0, np.inf, -2.0])
    for zeroth in (x**0, x**0.0, x ** np.zeros(5)):
        assert grad(zeroth.sum(), x)[0].tolist() == [0] * 5
    exponent = leaf([0.5 + 1j])
    (g,) = grad(vg.pow(vg.Tensor([-2.0]), exponent).real.sum(), exponent)
    np.testing.assert_allclose(g.numpy(), np.conj((-2 + 0j) ** (0.5 + 1j) * np.log(-2 + 0j)), rtol=1e-12)


@pytest.mark.parametrize("function", [vg.logaddexp, vg.logaddexp2], ids=["base e", "base 2"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_of_an_infinite_exponent_and_a_finite_one_the_greater_has_the_gradient(function):
    x, y = leaf([math.inf, -math.inf, 1.0, 1.0]), leaf([1.0, 1.0, math.inf, -math.inf])
    first, second = grad(function(x, y).sum(), (x, y))
    assert first.tolist() == [1, 0, 0, 1] and second.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("std", [np.nanstd, np.std])
def test_the_deviation_of_one_number_has_gradient_zero(std):
    x = leaf([[1.0, np.nan, np.nan], [1.0, 2.0, 4.0]] if std is np.nanstd else [[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])
    (g,) = grad(std(x, axis=1).sum(), x)
    alone = leaf([1.0, 2.0, 4.0])
    np.testing.assert_allclose(g.numpy(), [[0, 0, 0], grad(np.std(alone), alone)[0].numpy()])


def test_real_eigenvectors_of_a_real_matrix_have_no_phases():
    """Also where the others are complex, or NumPy gives complex numbers for all."""
    matrix = np.array([[2.0, 1.0, 0.5], [-1.0, 2.0, 0.3], [0.2, -0.4, 5.0]])
    weights = np.array([0.3 + 1.0j, -0.7, 0.5j])

    def loss(a):
        values, vectors = np.linalg.eig(a)
        return (vectors[:, 2] * weights).real.sum() + (values * values).real.sum()

    x = leaf(matrix)
    found = grad(loss(x), x)[0].numpy()
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        assert found[place] == pytest.approx((loss(matrix + step) - loss(matrix - step)) / 2e-6, abs=1e-7)
