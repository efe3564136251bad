"""Inputs where formulas divide by zero: singular matrices, norms of zeros, extrema of NaN."""

import math

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import DifferentiabilityError
from viewgrad.func import hessian, jacfwd, jvp
from viewgrad.operators.define import OPERATORS

SINGULAR = {
    "zeros": np.zeros((2, 2)),
    "rank 1": np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]),
    "rank n - 1": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]]),
    "equal singular values": np.diag([1.0, 1.0, 0.0]),
    "rank 2 of 4": np.arange(16.0).reshape(4, 4),
    "rank 1, complex": np.outer([1.0, 2j], [0.5 - 1j, 1.0]),
}


def expanded(x):
    """Return the determinant by Laplace's expansion."""
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
    """The first, second and third derivatives are those of the determinant polynomial."""
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
def test_norms_of_negative_order_are_zero_if_an_element_is_zero(order):
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
def test_nan_rows_do_not_affect_other_rows(extremum):
    x = leaf([[np.nan, 1.0, 0.0], [2.0, 3.0, 7.0]])
    alone = leaf([2.0, 3.0, 7.0])
    expected = grad(extremum(alone, axis=0), alone)[0].tolist()
    assert grad(extremum(x, axis=1)[1], x)[0].tolist() == [[0, 0, 0], expected]


def test_the_gradient_of_nan_goes_to_nan():
    x = leaf([[np.nan, 1.0, np.nan], [2.0, 3.0, 0.0]])
    assert grad(vg.max(x, axis=1).sum(), x)[0].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


def test_a_complex_power_of_a_negative_number():
    exponent = leaf([0.5 + 1j])
    (g,) = grad(vg.pow(vg.Tensor([-2.0]), exponent).real.sum(), exponent)
    np.testing.assert_allclose(g.numpy(), np.conj((-2 + 0j) ** (0.5 + 1j) * np.log(-2 + 0j)), rtol=1e-12)


@pytest.mark.parametrize("std", [np.nanstd, np.std])
def test_the_deviation_of_one_number_has_gradient_zero(std):
    x = leaf([[1.0, np.nan, np.nan], [1.0, 2.0, 4.0]] if std is np.nanstd else [[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])
    (g,) = grad(std(x, axis=1).sum(), x)
    alone = leaf([1.0, 2.0, 4.0])
    np.testing.assert_allclose(g.numpy(), [[0, 0, 0], grad(np.std(alone), alone)[0].numpy()])


def test_real_eigenvectors_of_a_real_matrix_have_no_phases():
    """This holds even if the other eigenvectors are complex, or NumPy returns complex numbers for all."""
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


def test_losses_at_bounded_logarithms_and_zero_targets():
    """The derivative is that of the computation: a clamped logarithm is constant, and a negative target counts as 0."""
    x, target = leaf([0.0, 1e-20, 0.3, 1.0]), leaf([0.3, 0.3, 0.3, 0.3])
    first, second = grad(vg.binary_cross_entropy(x, target, "sum"), (x, target))
    np.testing.assert_allclose(first.numpy(), [0.7, -0.3e20, 0.0, -0.3], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(second.numpy()[[0, 3]], [100.0, -100.0])
    x, target = leaf([0.5, 0.5, 0.5]), leaf([0.0, -0.2, 0.4])
    first, second = grad(vg.kl_div(x, target, "sum"), (x, target))
    np.testing.assert_allclose(first.numpy(), [0, 0, -0.4])
    np.testing.assert_allclose(second.numpy(), [0, 0, math.log(0.4) + 0.5])


@pytest.mark.parametrize("loss", [vg.binary_cross_entropy, vg.binary_cross_entropy_with_logits, vg.kl_div])
def test_losses_of_one_prediction_beside_many_targets(loss):
    x, targets = leaf([[0.4]]), leaf([[0.2, 0.7], [0.6, 0.5]])
    spread, equal = leaf(np.full((2, 2), 0.4)), leaf(targets.detach().numpy())
    first, second = grad(loss(x, targets), (x, targets))
    expected = grad(loss(spread, equal), (spread, equal))
    np.testing.assert_allclose(first.numpy(), [[expected[0].numpy().sum()]])
    np.testing.assert_allclose(second.numpy(), expected[1].numpy())


def test_singular_values_of_zero_have_gradient_zero():
    for values in (vg.svdvals, lambda x: vg.svd(x)[1], lambda x: np.linalg.lstsq(x, np.ones(2), None)[3]):
        x = leaf(np.zeros((2, 2)))
        assert not grad(values(x).sum(), x)[0].numpy().any()
        x = leaf([[3.0, 0.0], [0.0, 0.0]])
        assert grad(values(x).sum(), x)[0].tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("function", [vg.svd, vg.pinv, lambda x: np.linalg.lstsq(x, x, None)])
def test_singular_values_of_matrices_with_nan_raise(function):
    with pytest.raises(np.linalg.LinAlgError, match="infinities or NaN"):
        function(vg.Tensor([[1.0, math.nan], [2.0, 3.0]]))


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_singular_values_of_matrices_with_infinities_raise(number):
    """LAPACK's iteration may not terminate for them."""
    values = vg.svdvals(vg.Tensor([[[1.0, number], [2.0, 3.0]], [[3.0, 0.0], [0.0, 2.0]]]))
    np.testing.assert_allclose(values, [[math.nan] * 2, [3.0, 2.0]], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("function", [np.linalg.pinv, np.linalg.svdvals, lambda x: x.svd()[1], lambda x: x.svd()[0]])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_infinite_matrix_does_not_affect_others_in_the_stack(function, dtype):
    regular = np.array([[3.0, 0.5], [0.25, 2.0]], dtype)
    x, alone = leaf(np.stack([np.array([[1.0, math.inf], [2.0, 3.0]], dtype), regular])), leaf(regular)
    found, expected = function(x), function(alone)
    assert found.dtype == expected.dtype and np.isnan(found[0].detach()).all()
    np.testing.assert_array_equal(found[1].detach(), expected.detach())
    size = lambda result: np.sum(result.real**2 * np.array([1.0, 2.0], result.real.dtype))
    gradient = grad(size(found), x)[0].numpy()
    np.testing.assert_allclose(gradient[1], grad(size(expected), alone)[0].numpy(), rtol=1e-5)
    assert np.isnan(gradient[0]).all()


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    "function", [lambda a: np.linalg.pinv(a, 0.3), lambda a: np.linalg.lstsq(a[0], np.arange(4.0), 0.3)[0]]
)
def test_truncated_singular_values_contribute_to_the_gradient(function, dtype):
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.normal(size=(4, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    a = np.stack([u @ np.diag([3, 2, 0.1]) @ v, u @ np.diag([3, 2, 1]) @ v]).astype(dtype)
    turn = 1 + 0.3j if dtype is complex else 1.0
    weights = np.cos(np.arange(3.0))[:, None] * (1.5 - 0.5j if dtype is complex else 1.0)
    loss = lambda x: (function(x * turn) * weights).real.sum()
    direction = rng.normal(size=a.shape)
    step = 1e-6 * direction
    expected = (loss(a + step) - loss(a - step)) / 2e-6
    x = leaf(a)
    assert (grad(loss(x), x)[0].numpy().real * direction).sum() == pytest.approx(expected, rel=1e-7)
    tangent = jvp(loss, (vg.Tensor(a),), (vg.Tensor(direction.astype(dtype)),))[1]
    assert float(tangent) == pytest.approx(expected, rel=1e-7)


def test_lstsq_with_rcond_outside_0_and_1_has_a_gradient():
    """LAPACK uses its own bound if the given one is not between 0 and 1."""
    matrix, side = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([1.0, 2.0])
    for bound in (1.0, 0.0, 3.0):
        x = leaf(matrix)
        expected = grad(np.linalg.solve(x, side)[0], x)[0].numpy()
        np.testing.assert_allclose(grad(np.linalg.lstsq(x, side, bound)[0][0], x)[0].numpy(), expected, rtol=1e-10)


def test_degenerate_pinv_and_solve_match_numpy():
    row, matrix, side = np.array([[math.inf, 1.0]]), np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([1.0, math.inf])
    try:
        expected = np.linalg.pinv(row)
    except np.linalg.LinAlgError:  # from NumPy 2.5 on
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.pinv(vg.Tensor(row))
    else:
        np.testing.assert_array_equal(np.linalg.pinv(vg.Tensor(row)), expected)
    found, expected = (np.linalg.lstsq(matrix, each, None)[0] for each in (vg.Tensor(side), side))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.pinv(vg.Tensor([1.0, 2.0]))


def test_the_factors_of_dependent_columns_have_no_derivative():
    x = leaf([[0.1, 0.3, 0.7], [0.2, 1.1, 0.7], [0.1, 0.3, 0.7]])
    with pytest.raises(DifferentiabilityError, match="linearly dependent"):
        grad(np.linalg.qr(x)[0][0, 2], x)
    with pytest.raises(DifferentiabilityError, match="linearly dependent"):
        jacfwd(lambda a: np.linalg.qr(a)[0])(x.detach())
    x = leaf([[1.0, 2e-20], [0.0, 1e-20]])  # the second column is short and not parallel to the first
    assert np.isfinite(grad(np.linalg.qr(x)[1].sum(), x)[0].numpy()).all()


def test_interpolation_at_infinity_and_at_repeated_knots():
    places, values = leaf([0.0, 1.0, 1.0]), leaf([2.0, 3.0, 5.0])
    x = leaf([math.inf, -math.inf, 0.5, 1.0])
    result = np.interp(x, places, values)
    assert result.detach().tolist() == [5, 2, 2.5, 5]
    of_x, of_places, of_values = grad(result.sum(), (x, places, values))
    assert of_x.numpy()[:3].tolist() == [0, 0, 1]
    assert of_places.numpy()[0] == -0.5 and of_values.tolist() == [1.5, 0.5, 2]
    left = leaf([-math.inf, 0.0])
    heights = leaf([0.0, 1.0])
    assert grad(np.interp(leaf([-2.0]), left, heights).sum(), heights)[0].tolist() == [0, 1]
    falling = [3.0, 1.0, 2.0]
    points = np.array([0.0, 1.0, 1.5, 2.5, 4.0])
    expected = np.interp(points, falling, [1.0, 2.0, 5.0])
    for x, places, values in ((leaf(points), falling, [1.0, 2.0, 5.0]), (points, falling, leaf([1.0, 2.0, 5.0]))):
        result = np.interp(x, places, values)
        assert result.detach().tolist() == expected.tolist()
        with pytest.raises(ValueError, match="increasing points"):
            result.sum().backward()


def test_operands_of_mismatched_shapes_raise():
    """Broadcasting would compute a meaningless value."""
    ones = vg.ones
    for call, args in (
        (vg.addmv, (ones(2, 2), ones(2, 2), ones(2, 2))),
        (vg.addmm, (ones(2, 4), ones(1, 3), ones(3, 4))),
        (vg.baddbmm, (ones(2, 2, 4), ones(2, 2, 3), ones(2, 3, 1))),
        (vg.linear, (ones(2, 3), ones(1, 3), ones(4))),
        (vg.linear_scan, (ones(1), ones(5))),
        (lambda a, b: vg.solve_triangular(a, b, upper=True), (ones(1, 2), ones(2, 2))),
        (lambda x, w: vg.conv_transpose1d(x, w, padding=3), (ones(1, 1, 4), ones(1, 1, 2))),
        (lambda x: vg.celu(x, 0.0), (ones(2),)),
    ):
        with pytest.raises(ValueError):
            call(*args)


def test_a_layer_without_inputs_has_empty_gradients():
    x, weight, bias = leaf(np.ones((2, 0))), leaf(np.ones((4, 0))), leaf(np.ones(4))
    gradients = grad(vg.linear(x, weight, bias).sum(), (x, weight, bias))
    assert [g.shape for g in gradients] == [(2, 0), (4, 0), (4,)] and gradients[2].tolist() == [2] * 4


def test_repeated_value_gets_the_sum_of_gradients():
    x = leaf([2.0])
    spread = OPERATORS["_scatter_into_zeros"](x, (np.array([0, 1, 1]),), (3,))
    assert spread.detach().tolist() == [2, 4, 0]
    assert grad((spread * np.array([1.0, 10.0, 100.0])).sum(), x)[0].tolist() == [21]


def test_constant_hypergeometric_function_has_zero_gradient():
    special = pytest.importorskip("scipy.special")
    x = leaf([0.5, 1e5])
    assert grad(special.hyp2f1(0.0, 1.5, 2.0, x).sum(), x)[0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tanhshrink_keeps_its_digits_near_zero(dtype):
    """The difference of its two terms cancels there, so the series is used."""
    x = np.array([1e-8, -1e-3, 0.01], dtype)
    wide = x.astype(float)
    series = wide**3 / 3 - 2 * wide**5 / 15 + 17 * wide**7 / 315 - 62 * wide**9 / 2835
    np.testing.assert_allclose(vg.tanhshrink(vg.Tensor(x)).numpy(), series, rtol=8 * np.finfo(dtype).eps)
