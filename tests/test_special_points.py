"""Derivatives at poles, at zero, far out and with zero cotangents; NumPy's reductions with NumPy's options."""

import math

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
from viewgrad.autograd import grad

INF = math.inf

def test_the_hypergeometric_function():
    special = pytest.importorskip("scipy.special")
    x = leaf([-0.5, 0.25])
    result = special.hyp2f1(0.5, np.array([1.5, 2.0]), 2.5, x)
    np.testing.assert_allclose(result.detach(), special.hyp2f1(0.5, np.array([1.5, 2.0]), 2.5, x.detach().numpy()))
    expected = special.hyp2f1(1.5, np.array([2.5, 3.0]), 3.5, x.detach().numpy()) * np.array([0.3, 0.4])
    np.testing.assert_allclose(grad(result.sum(), x)[0], expected)


@pytest.mark.parametrize("function", [vg.softmax, vg.log_softmax])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_rows_without_a_value_have_zero_gradient_for_zero_cotangents(function):
    rows = np.array([[-INF, -INF, -INF], [1.0, 2.0, 3.0], [-INF, 0.0, 1.0]])
    x, alone = leaf(rows), leaf(rows[1:2])
    weights = np.array([1.0, 2.0, 4.0])
    result = np.where(np.isnan(x.detach().numpy()) | (rows == -INF), 0.0, function(x))
    assert not np.isnan(grad((result[1:] * weights).sum(), x, retain_graph=True)[0].numpy()).any()
    (of_all,) = grad((function(x) * weights)[1].sum(), x)
    (of_one,) = grad((function(alone) * weights).sum(), alone)
    np.testing.assert_allclose(of_all.numpy(), [[0.0] * 3, of_one.numpy()[0], [0.0] * 3], rtol=1e-14)
    (spoilt,) = grad(function(x)[0].sum(), x)
    assert np.isnan(spoilt.numpy()[0]).all() and not np.isnan(spoilt.numpy()[1:]).any()


def test_logaddexp_of_complex_numbers():
    a, b = np.array([1 + 1j, 2, -3 + 40j, -INF]), np.array([0.5 - 1j, 1 + 2j, -2, 1 - 1j])
    x, y = leaf(a), leaf(b)
    result = vg.logaddexp(x, y)
    np.testing.assert_allclose(np.exp(result.detach().numpy()), np.exp(a) + np.exp(b))
    for g, part in zip(grad(result.real.sum(), (x, y)), (a, b)):
        np.testing.assert_allclose(g.numpy(), np.conj(np.exp(part) / (np.exp(a) + np.exp(b))), atol=1e-15)
    assert vg.autograd.gradcheck(vg.logaddexp, (leaf(a[:3]), leaf(b[:3])), check_forward_ad=True)


def test_angles_of_tiny_and_huge_numbers():
    z = leaf([1e-200 + 1e-200j, 1e200 - 1e200j, 0j])
    np.testing.assert_allclose(grad(vg.angle(z).sum(), z)[0].numpy(), [-5e199 + 5e199j, 5e-201 + 5e-201j, 0])


# -- NumPy's reductions with their options -----------------------------------------------------------------------------

REDUCTIONS = [
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.cumsum, np.cumprod, np.nansum, np.nanprod, np.nanmean,
    np.nanvar, np.nanstd, np.nanmax, np.nanmin,
]  # fmt: skip
MASK = np.array([True, False, True])
OPTIONS = [
    {}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"initial": 2.5}, {"where": MASK}, {"axis": 1, "where": MASK},
    {"axis": 0, "initial": 3, "where": MASK}, {"dtype": np.int8}, {"dtype": np.float32, "axis": 0},
    {"dtype": np.int16, "axis": 1}, {"axis": 1, "ddof": 1, "where": MASK}, {"dtype": np.float16}, {"dtype": complex},
    {"keepdims": True, "initial": 1}, {"axis": -1, "mean": np.array([[1.0], [2.0], [3.0]])}, {"ddof": 5, "where": MASK},
]  # fmt: skip
OPERANDS = {
    "float64": np.array([[1.0, 2.0, 4.0], [-1.0, 0.5, 3.0], [2.0, 2.0, 7.0]]),
    "float32": np.array([[1.0, 2.0, 4.0], [-1.0, 0.5, 3.0], [2.0, 2.0, 7.0]], np.float32),
    "with NaN": np.array([[1.0, np.nan, 4.0], [np.nan] * 3, [2.0, 2.0, 7.0]]),
    "int8": np.array([[100, 100, 100], [4, 5, 6], [7, 8, 9]], np.int8),
    "bool": np.array([[True, False, True], [True] * 3, [False] * 3]),
}


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::viewgrad.errors.DetachedConversionWarning")
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_reductions_with_numpys_options_have_numpys_value_and_dtype(function, operand):
    array = OPERANDS[operand]
    tolerance = 1e-6 if operand == "float32" else 1e-12
    for options in OPTIONS:
        try:
            expected = function(array, **options)
        except (TypeError, ValueError):
            continue
        x = vg.Tensor(array, requires_grad=array.dtype.kind == "f")
        found = function(x, **options)
        assert found.dtype == expected.dtype and found.shape == expected.shape, options
        allowed = 1e-3 if found.dtype.itemsize < 8 else tolerance
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=allowed, err_msg=str(options))
        out = vg.zeros(found.shape, dtype=found.dtype)
        np.testing.assert_array_equal(function(vg.Tensor(array), **options, out=out).numpy(), found.detach().numpy())


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda function: function.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_of_reductions_with_numpys_options(function):
    array = OPERANDS["float64"] + np.arange(9).reshape(3, 3) * 0.01  # no ties
    weights = np.cos(np.arange(9.0))
    for options in OPTIONS:
        if "dtype" in options or options.get("ddof") == 5:
            continue
        try:
            function(array, **options)
        except (TypeError, ValueError):
            continue

        def total(a, options=options):
            result = function(a, **options)
            return (result * weights[: result.size].reshape(result.shape)).sum()

        x = leaf(array)
        found = grad(total(x), x)[0].numpy()
        expected = np.empty_like(array)
        for place in np.ndindex(array.shape):
            step = np.zeros_like(array)
            step[place] = 1e-6
            expected[place] = (total(array + step) - total(array - step)) / 2e-6
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=str(options))


@pytest.mark.parametrize("function", [np.std, np.nanstd])
def test_std_of_selected_equal_values_has_zero_gradient(function):
    x = leaf([2.0, 2.0, 5.0])
    assert grad(function(x, where=np.array([True, True, False])), x)[0].tolist() == [0, 0, 0]
    assert grad(function(x[:2], mean=x[:2].mean(keepdims=True)), x)[0].tolist() == [0, 0, 0]


def test_determinants_of_matrices_with_infinities():
    """LAPACK's iteration for singular values did not terminate for the first of them."""
    first = [[INF, 0.8, 1.2], [0.5, 1.4, 1.0], [INF, -INF, 0.8]]
    x = vg.Tensor([first, np.eye(3), np.zeros((3, 3))], requires_grad=True)
    gradient = vg.autograd.grad(vg.linalg.det(x), x, [vg.ones(3)])[0].numpy()
    np.testing.assert_array_equal(gradient, [np.full((3, 3), np.nan), np.eye(3), np.zeros((3, 3))])
