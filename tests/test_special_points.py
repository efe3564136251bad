"""Derivatives at poles, at zero, far out and where nothing flows; NumPy's reductions with NumPy's options."""

import math

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
from viewgrad.autograd import grad

INF = math.inf

# By mpmath, with 60 digits: the first and the second derivative.
SLOPES = {
    "ellipk": {
        0.0: (0.392699081698724, 0.441786466911), 1e-20: (0.392699081698724, 0.441786466911),
        -1e-9: (0.392699081256938, 0.441786465991), 0.4999999: (0.847212899386549, 1.85407391481),
        0.5000001: (0.847213270201485, 1.85407543979),
    },
    "ellipe": {
        0.0: (-0.392699081698724, -0.147262155637), -1e-9: (-0.392699081551462, -0.147262155453),
        0.4999999: (-0.503430761875472, -0.343782206268), 0.5000001: (-0.503430830631929, -0.343782370813),
    },
    "log_ndtr": {
        -1e10: (1e10, None), -1e4: (10000.0001, -0.99999999), -3.0: (3.28309865493044, -0.929440813215),
        0.0: (0.797884560802865, -0.636619772368), 3.0: (0.00443783904212566, -0.0133332115417),
    },
    "erfcx": {
        1e6: (-5.6418958354691e-13, 1.1283791670938e-18), 49.0: (-0.000234834434982195, 9.57909951083e-6),
        51.0: (-0.000216787592085118, 8.49657797339e-6),
    },
    "dawsn": {
        -1e6: (-5.0000000000075e-13, -1e-18), 49.0: (-0.000208376799487984, 8.51049677162e-6),
        51.0: (-0.000192344724398921, 7.54728625076e-6),
    },
    "rgamma": {
        0.0: (1.0, 1.1544313298), -1.0: (-1.0, 0.845568670197), -5.0: (-120.0, 409.468240424),
        0.5: (1.10779190387287, -0.609003488416), -2.5: (1.16698028563797, 8.80378218339),
    },
    "i0e": {1e10: (-1.99471140208197e-16, None), 700.0: (-1.07762068145106e-5, 2.31001365686e-8), 0.0: (0.0, None)},
    "i1e": {
        1e10: (-1.99471140178276e-16, None), -700.0: (-1.0753106677942e-5, -2.30176065319e-8),
        999.0: (-6.31018709740255e-6, 9.46762675918e-9), 0.0: (0.5, 0.0),
    },
    "logit": {-0.1: (math.nan, None), 0.5: (4.0, 0.0)},
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_special_functions_where_a_textbook_divides_zero_by_zero(name):
    pytest.importorskip("scipy")
    for point, expected in SLOPES[name].items():
        x = leaf([point])
        (first,) = grad(getattr(vg, name)(x), x, create_graph=True)
        (second,) = grad(first.sum(), x)
        for found, wanted in zip((first, second), expected):
            if wanted is not None:
                np.testing.assert_allclose(found.item(), wanted, rtol=1e-6, err_msg=f"{name} at {point}")


def test_the_hypergeometric_function():
    special = pytest.importorskip("scipy.special")
    x = leaf([-0.5, 0.25])
    result = special.hyp2f1(0.5, np.array([1.5, 2.0]), 2.5, x)
    np.testing.assert_allclose(result.detach(), special.hyp2f1(0.5, np.array([1.5, 2.0]), 2.5, x.detach().numpy()))
    expected = special.hyp2f1(1.5, np.array([2.5, 3.0]), 3.5, x.detach().numpy()) * np.array([0.3, 0.4])
    np.testing.assert_allclose(grad(result.sum(), x)[0], expected)


@pytest.mark.parametrize("function", [vg.softmax, vg.log_softmax])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_rows_without_a_value_send_nothing_where_nothing_flows(function):
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


@pytest.mark.parametrize("function", [vg.logaddexp, vg.logaddexp2])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_sum_of_exponentials_that_is_zero_has_gradient_zero(function):
    x, y = leaf([-INF, -INF, 0.0]), leaf([-INF, 1.0, 0.0])
    assert [g.tolist() for g in grad(function(x, y).sum(), (x, y))] == [[0, 0, 0.5], [0, 1, 0.5]]


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
def test_the_deviation_of_chosen_equal_numbers_has_gradient_zero(function):
    x = leaf([2.0, 2.0, 5.0])
    assert grad(function(x, where=np.array([True, True, False])), x)[0].tolist() == [0, 0, 0]
    assert grad(function(x[:2], mean=x[:2].mean(keepdims=True)), x)[0].tolist() == [0, 0, 0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name, points, slope",
    [
        *[(name, [-1.0, 1.0], math.inf) for name in ("arcsin", "arctanh", "erfinv")],
        ("arccos", [-1.0, 1.0], -math.inf),
        *[(name, [0.0], math.inf) for name in ("sqrt", "cbrt", "log", "log2", "log10")],
        *[(name, [0.0, 1.0], math.inf) for name in ("logit", "ndtri")],
        ("arccosh", [1.0], math.inf),
        ("log1p", [-1.0], math.inf),
        ("entr", [0.0], math.inf),
        ("erfcinv", [0.0, 2.0], -math.inf),
        ("gammaln", [0.0], -math.inf),
        ("reciprocal", [0.0], -math.inf),
    ],
)
def test_slopes_at_the_ends_of_a_domain_are_infinite_with_the_sign_of_those_nearby(name, points, slope):
    for dtype in (np.float64, np.float32):
        x = vg.Tensor(np.array(points, dtype), requires_grad=True)
        (gradient,) = vg.autograd.grad(getattr(vg, name)(x).sum(), x)
        assert gradient.tolist() == [slope] * len(points)


def test_determinants_of_matrices_with_infinities():
    """LAPACK's search for singular values never ended for the first of them."""
    first = [[INF, 0.8, 1.2], [0.5, 1.4, 1.0], [INF, -INF, 0.8]]
    x = vg.Tensor([first, np.eye(3), np.zeros((3, 3))], requires_grad=True)
    gradient = vg.autograd.grad(vg.linalg.det(x), x, [vg.ones(3)])[0].numpy()
    np.testing.assert_array_equal(gradient, [np.full((3, 3), np.nan), np.eye(3), np.zeros((3, 3))])
