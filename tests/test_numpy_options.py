"""NumPy's functions with all their options: values, dtypes, scalars and gradients."""

import operator

import numpy as np
import pytest
from leaves import leaf_of as leaf

import viewgrad as vg
import viewgrad.numpy
from viewgrad.autograd import forward_ad, grad
from viewgrad.tensor.tensor import is_scalar

MATRIX = np.array([[0.4, -1.3, 0.9], [1.1, 0.6, -0.7]])


def slope(function, array, direction, step=1e-6):
    return (function(array + step * direction) - function(array - step * direction)) / (2 * step)


def check(function, *arrays):
    """Check the value against NumPy's, and derivatives in both modes against finite differences."""
    tensors = [leaf(array) for array in arrays]
    found, expected = function(*tensors), function(*arrays)
    assert found.shape == np.shape(expected) and found.dtype == expected.dtype
    assert is_scalar(found) == isinstance(expected, np.generic)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    weights = np.cos(np.arange(np.size(expected))).reshape(np.shape(expected))
    gradients = grad((found * weights).sum().real, tensors, allow_unused=True)
    directions = [np.sin(np.arange(array.size) + 1.0).reshape(array.shape) for array in arrays]
    along = sum(float((g.numpy().conj() * d).real.sum()) for g, d in zip(gradients, directions) if g is not None)

    def moved(step):
        return float((function(*(a + step * d for a, d in zip(arrays, directions))) * weights).sum().real)

    assert along == pytest.approx((moved(1e-6) - moved(-1e-6)) / 2e-6, rel=1e-6, abs=1e-8)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(vg.Tensor(a), vg.Tensor(d.astype(a.dtype))) for a, d in zip(arrays, directions)]
        tangent = forward_ad.unpack_dual((function(*duals) * weights).sum().real).tangent
    assert (0.0 if tangent is None else float(tangent)) == pytest.approx(along, rel=1e-9, abs=1e-12)


# -- ufuncs at indices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.maximum])
def test_ufuncs_at_indices_read_values_before_they_write(ufunc):
    def f(x):
        t = x * 1.0
        ufunc.at(t, [2, 0, 2, 3], t[::-1])
        return (t * t).sum()

    x = np.array([0.3, 1.7, -0.6, 0.9])
    assert float(f(x)) == pytest.approx(float(vg.value_and_grad(f)(x)[0]), 1e-12)
    differences = [(f(x + 1e-6 * row) - f(x - 1e-6 * row)) / 2e-6 for row in np.eye(4)]
    np.testing.assert_allclose(vg.grad(f)(x), differences, 1e-6, 1e-8)


@pytest.mark.parametrize("index", [1, -1, (slice(None), 0), (1, 2)])
def test_sums_at_single_places_can_be_traced(index):
    def f(x):
        t = x * 1.0
        np.add.at(t, index, x[0, 0])
        return (t * t).sum()

    x = np.arange(6.0).reshape(2, 3) + 0.5
    compiled = vg.compile(f, executor="python", specialize=True)
    for _ in range(3):
        np.testing.assert_allclose(vg.grad(compiled)(x), vg.grad(f)(x), 1e-12)


# -- folding ufuncs that are no sums -----------------------------------------------------------------------------------


# arctan2 is not among them: on some processors NumPy's own fold with it skips elements.
@pytest.mark.parametrize("ufunc", [np.hypot, np.logaddexp, np.copysign, np.fmax, np.subtract, np.float_power])
def test_reductions_by_any_ufunc_begin_with_its_identity_and_choose(ufunc):
    array = np.abs(MATRIX) + 0.2
    check(lambda a: ufunc.reduce(a), array)
    check(lambda a: ufunc.reduce(a, axis=1, keepdims=True), array)
    mask = np.array([[True, False, True], [True, True, True]])
    check(lambda a: ufunc.reduce(a, axis=1, initial=0.7, where=mask), array)
    check(lambda a: ufunc.reduce(a[0, 0, ...], axis=0), array)
    assert np.hypot.reduce(leaf([-1.5])).item() == 1.5


def test_reductions_of_bools_accept_all_options():
    x, a = leaf(MATRIX), MATRIX
    for ufunc in (np.logical_and, np.logical_or, np.logical_xor):
        for options in ({}, {"axis": 1, "where": a > 0}, {"axis": None, "keepdims": True}, {"initial": True}):
            found, expected = ufunc.reduce(x, **options), ufunc.reduce(a, **options)
            assert found.dtype == bool and np.array_equal(found, expected), (ufunc, options)
        assert ufunc.accumulate(x, axis=1).dtype == bool
        assert ufunc.reduceat(x, [0, 1]).dtype == bool


def test_empty_reductions_have_the_requested_dtype():
    empty = leaf(np.zeros((2, 0), np.float32))
    assert np.min(empty, initial=0).dtype == np.float32
    assert np.float_power.reduce(leaf(np.zeros(0)), initial=2).dtype == np.float64
    assert np.arctan2.accumulate(leaf(np.zeros(0)), dtype=np.float32).dtype == np.float32


def test_reductions_are_cast_to_any_out():
    z = leaf([1 + 2j, 3 - 1j])
    out = vg.zeros(())
    with pytest.warns(np.exceptions.ComplexWarning):
        np.sum(z, out=out)
    assert out.item() == 4.0 and grad(out, z)[0].tolist() == [1, 1]


def test_integer_results_are_scalars():
    assert is_scalar(leaf([1.0, 3.0]).var(dtype=int))


# -- branch cuts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "points", "along"),
    [
        (np.arcsin, [2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0)], 1),
        (np.arccos, [2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0)], 1),
        (np.arccosh, [0.5 + 0j, complex(0.5, -0.0), -2 + 0j, complex(-2, -0.0)], 1),
        (np.arcsinh, [2j, complex(-0.0, 2), -2j, complex(-0.0, -2)], 1j),
    ],
)
def test_derivatives_on_branch_cuts_follow_numpys_side(function, points, along):
    for point in points:
        z = leaf([point])
        derivative = grad(function(z).real.sum(), z)[0].numpy().conj()[0]
        ends = [np.array([point]), np.array([point])]
        for end, step in zip(ends, (1e-6, -1e-6)):  # in place, so that zeros keep their signs
            part = end.real if along == 1 else end.imag
            part += step
        differences = (function(ends[0]) - function(ends[1]))[0] / (2e-6 * along)
        assert derivative == pytest.approx(differences, rel=1e-6), point


def test_emath_extends_to_complex_numbers():
    for function in (np.emath.arccos, np.emath.arcsin, np.emath.arctanh, np.emath.sqrt, np.emath.log):
        check(function, np.array([1.4, 0.3, -0.6, -1.7]))
    assert np.emath.sqrt(leaf(np.array([-1.0], np.longdouble))).dtype == np.complex128


# -- arguments that carry gradients of their own -----------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile])
def test_gradients_flow_to_the_fractions_of_quantiles(function):
    check(lambda a, q: function(a, q, axis=1), MATRIX, np.array([0.3, 0.8]))
    check(lambda a, q: function(a, q), MATRIX, np.array(0.37))


@pytest.mark.parametrize("function", [np.percentile, np.nanpercentile])
def test_gradients_flow_to_percentages(function):
    check(lambda a, q: function(a, q, axis=0, keepdims=True), MATRIX, np.array([31.0, 83.0]))
    with pytest.raises(vg.errors.DifferentiabilityError):
        function(leaf(MATRIX), leaf(30.0), method="hazen")
    with pytest.raises(vg.errors.DifferentiabilityError):
        leaf(MATRIX).percentile(leaf(30.0))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(2, 1), (0, 2), 1])
@pytest.mark.parametrize(("function", "whole"), [(np.nanquantile, 1), (np.nanpercentile, 100)])
def test_nanquantile_axis_order_matches_numpy(function, whole, axis, keepdims):
    """If NaN is ignored, NumPy moves only the last dimension of the fractions to the front."""
    values, q = np.sin(np.arange(12.0) ** 2).reshape(2, 2, 3), np.array([[0.23, 0.35, 0.62], [0.87, 0.12, 0.79]])
    values[0, 1, 1] = np.nan
    weights = np.cos(np.arange(np.size(function(values, q, axis=axis))))
    missing = np.where(np.isnan(values), np.nan, 0.0)
    check(lambda a: function(a + missing, q * whole, axis=axis, keepdims=keepdims), np.nan_to_num(values))
    check(lambda p: function(values, p, axis=axis, keepdims=keepdims).reshape(-1) * weights, q * whole)


def test_ldexp_of_non_integer_exponents():
    x, y = leaf([1.5, -2.0]), leaf([0.5, 2.0])
    (of_x, of_y) = grad(np.ldexp(x, y).sum(), (x, y))
    np.testing.assert_allclose(of_x, [2**0.5, 4])
    np.testing.assert_allclose(of_y, np.log(2) * np.array([1.5 * 2**0.5, -8]))


@pytest.mark.parametrize("act", [
    lambda a, x: np.add.at(a, [0], x), lambda a, x: np.subtract.at(a, [0], x), lambda a, x: np.remainder.at(a, [0], x),
])  # fmt: skip
def test_at_never_writes_tensors_to_plain_arrays(act):
    with pytest.raises(TypeError, match="plain array"):
        act(np.ones(2), leaf(0.7))


def test_evenly_spaced_numbers_between_tensors():
    check(lambda a, b: np.linspace(a, b, 4), MATRIX[0], MATRIX[1])
    check(lambda a, b: np.logspace(a, b, 3), np.array(0.2), np.array(0.9))
    check(lambda a, b: np.geomspace(a, b, 3), np.array(0.2), np.array(0.9))


def test_interpolation_of_a_periodic_function():
    places, values = np.array([0.1, 0.9, 1.7, 2.2]), np.array([0.3, -0.5, 0.8, 0.1])
    check(lambda x, xp, fp: np.interp(x, xp, fp, period=2.5), np.array([-3.1, 0.4, 2.4, 7.0]), places, values)
    check(lambda x, fp, end: np.interp(x, places, fp, left=end), np.array([-3.1, 0.4, 7.0]), values, np.array(0.2))


# -- margins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "mean"}, {"mode": "maximum", "stat_length": 2}, {"mode": "minimum"}, {"mode": "median"},
        {"mode": "linear_ramp"}, {"mode": "linear_ramp", "end_values": ((0.5, 1.5), (2.0, -1.0))},
        {"mode": "mean", "stat_length": ((1, 2), (2, 1))}, {"mode": "reflect", "reflect_type": "odd"},
        {"mode": "symmetric", "reflect_type": "odd"}, {"mode": "constant", "constant_values": (0.3, 0.6)},
    ],
)  # fmt: skip
@pytest.mark.parametrize("widths", [1, (1, 0), ((1, 1), (2, 1)), [(0, 1), (2, 2)]])
def test_pad_in_every_mode(options, widths):
    array = np.array([[0.4, -1.3, 0.9, 0.2], [1.1, 0.6, -0.7, 0.5], [0.8, -0.2, 0.1, 1.4]])
    check(lambda a: np.pad(a, widths, **options), array)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap", "symmetric", "mean", "linear_ramp", "empty"])
def test_pad_of_a_scalar(mode):
    for widths in (0, (1, 2), ((1, 2),)):
        check(lambda a, widths=widths: np.pad(a, widths, mode), np.array(1.3))


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("widths", [(5, 0), (4, 9), ((3, 7), (1, 4))])
def test_pad_reflects_repeatedly(mode, widths):
    check(lambda a: np.pad(a, widths, mode, reflect_type="odd"), MATRIX)
    check(lambda a: np.pad(a, widths, mode, reflect_type="even"), MATRIX)


def test_pad_with_a_function():
    def written(line, widths, dim, options):
        line[: widths[0]] = line[widths[0]] * (dim + options["scale"])
        line[len(line) - widths[1] :] = line[widths[0]] ** 2

    check(lambda a: np.pad(a, ((1, 2), (2, 0)), written, scale=0.7), MATRIX)
    check(lambda a: np.pad(a, 0, "empty"), MATRIX)
    inside = (slice(1, -1), slice(1, -1))
    check(lambda a: np.pad(a, 1, "empty")[inside] * 1.0, MATRIX)


def test_gradients_flow_to_constant_values_of_pad():
    check(lambda a, c: np.pad(a, 1, constant_values=c), MATRIX, np.array(0.3))
    check(lambda a, c: np.pad(a, 2, "linear_ramp", end_values=c), MATRIX, np.array([0.3, 0.7]))


# -- what drawn calls found --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.add.outer(a, a[0], out=np.zeros_like(a, shape=(2, 3, 3)) * 1.0),
        lambda a: np.multiply.outer(a[0], a, dtype=complex),
        lambda a: np.clip(a, -0.5, 0.8, where=a > 0, out=a * 1.0),
        lambda a: np.clip(a[0, 0], None, 0.1, where=np.True_),
        lambda a: np.fft.fftn(a[0], axes=(-1, 0)), lambda a: np.fft.fft2(a, s=(4, 2, 5), axes=(0, 1, 0)),
        lambda a: np.fft.rfftn(a, axes=(0, 1, 1)), lambda a: np.fft.irfftn(a + 1j, axes=(1, 0, 1)),
        lambda a: np.polyfit(a[0, :1], a[1, :1], 1), lambda a: np.polymul(a[0], []),
        lambda a: np.fft.ifftn(a, axes=(0, 1, 0), norm="ortho"),
        lambda a: np.fft.fftn(a[0, 0, ...]) * (1 + 2j),
        lambda a: np.quantile(a, [0.2, 0.7], axis=1, weights=a * a + 0.1, method="inverted_cdf"),
        lambda a: np.nanquantile(a, 0.4, axis=-1, keepdims=True, weights=a * a + 0.1, method="inverted_cdf"),
        lambda a: np.percentile(a, [[20], [90]], weights=np.ones_like(a), method="inverted_cdf"),
        lambda a: np.quantile(a[0, 0, ...], 0.3, keepdims=True),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::numpy.exceptions.RankWarning")
def test_options_that_drawn_calls_reported(function):
    check(function, MATRIX)


@pytest.mark.skipif(not hasattr(np, "cumulative_sum"), reason="NumPy 2.1")
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,)])
def test_cumulative_sums_begin_with_initial(shape):
    axis = -1 if len(shape) > 1 else None
    for run in ("cumulative_sum", "cumulative_prod"):
        check(lambda a, run=run: getattr(np, run)(a, axis=axis, include_initial=True), np.full(shape, 0.7))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("q", [0.3, [0.2, 0.9], [[0.2], [0.9]]])
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_quantiles_of_empty_arrays(shape, q):
    for axis in (None, 0, -1):
        for dtype in (np.float64, np.float32):
            x, a = leaf(np.zeros(shape, dtype)), np.zeros(shape, dtype)
            found, expected = np.nanquantile(x, q, axis=axis), np.nanquantile(a, q, axis=axis)
            assert found.shape == np.shape(expected) and found.dtype == expected.dtype
            assert grad(found.sum(), x)[0].shape == shape


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile, np.percentile])
@pytest.mark.parametrize("q", [0.3, [0.2, 0.9], [[0.2], [0.9]]])
def test_quantiles_of_single_values(function, q):
    check(lambda a: function(a, q, axis=()), MATRIX)
    truths = MATRIX > 0
    for method in ("lower", "nearest"):
        found, expected = (function(values, q, axis=(), method=method) for values in (vg.Tensor(truths), truths))
        assert found.dtype == expected.dtype == np.bool and np.array_equal(found, expected)


def test_empty_take_can_be_differentiated_twice():
    x = leaf(np.zeros((0, 0)))
    (gradient,) = grad((np.take(x * x, [0, -1, 0], axis=-1) ** 2).sum(), x, create_graph=True)
    assert grad(gradient.sum(), x)[0].shape == (0, 0)


def test_copyto_with_empty_masks_copies_nothing():
    y = leaf(np.zeros((0, 3))) * 2.0
    np.copyto(y, y, where=np.array([], bool))
    with pytest.raises(ValueError, match="broadcast"):
        np.copyto(y, 1.0, where=np.ones((5, 3), bool))


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="NumPy up to 2.2 has no largest element of nothing"
)
def test_norms_of_empty_arrays_have_a_gradient():
    x = leaf(np.zeros((2, 0)))
    assert grad(np.linalg.vector_norm(x, ord=np.inf), x)[0].shape == (2, 0)


def test_functions_of_other_dtypes():
    assert np.i0(leaf(np.array([0.3], np.longdouble))).dtype == np.longdouble
    assert np.poly(leaf(np.array([0.5, 0.25], np.float16))).dtype == np.poly(np.array([0.5, 0.25], np.float16)).dtype
    assert np.linalg.cond(leaf([[np.inf, 1.0], [2.0, 3.0]])).item() == np.inf
    z = leaf([0.3 - 1.2j, -2 + 0.5j, 40j])
    step = 1e-6
    found = grad(vg.silu(z).real.sum(), z)[0].numpy()
    value = z.detach().numpy()
    for direction in (1, 1j):
        above, below = (moved / (1 + np.exp(-moved)) for moved in (value + step * direction, value - step * direction))
        slopes = (above - below).real / (2 * step)
        np.testing.assert_allclose((found.conj() * direction).real, slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.rot90(a, axes=(1, 1)), lambda a: np.rot90(a, axes=(1, -1)), lambda a: np.rot90(a[0]),
        lambda a: np.var(a, ddof=1, correction=1), lambda a: np.nanstd(a, ddof=1, correction=0),
        lambda a: np.add.accumulate(a[0, 0, ...]), lambda a: np.fft.fftn(a, s=(2, 3, 4)),
        lambda a: np.subtract.reduce(a, axis=(0, 1)), lambda a: np.linalg.matrix_norm(a[0], ord=np.inf),
        lambda a: np.linalg.norm(a[0], 1, axis=(0, 1)), lambda a: np.linalg.norm(a, axis=()),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_calls_that_numpy_rejects_raise(function):
    for array in (MATRIX, leaf(MATRIX)):
        with pytest.raises((ValueError, TypeError, IndexError)):
            function(array)


# -- other options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.ones_like(a, dtype=int, order="F", subok=True) * a, lambda a: np.copy(a, "K"),
        lambda a: np.extract([True, False, True], a), lambda a: np.meshgrid(a[0], a[1], sparse=True)[1],
        lambda a: np.meshgrid(a[0], a[1], copy=False, indexing="ij")[0], lambda a: np.broadcast_to(a, (2, 2, 3), True),
        lambda a: np.median(a.copy(), overwrite_input=True), lambda a: np.linalg.trace(a, dtype=complex),
        lambda a: np.vecdot(a, a, casting="safe"), lambda a: np.divmod(a, 0.37, dtype=float)[1],
        lambda a: np.linalg.vector_norm(a, ord=None), lambda a: np.linalg.matrix_norm(a, ord=np.inf),
        lambda a: np.linalg.matrix_norm(np.zeros((0, 0)) * a.sum(), ord=2) + a,
        lambda a: np.linalg.multi_dot([a[0], a[1]]),
        lambda a: np.squeeze(a.sum(), axis=-1), lambda a: np.remainder.reduceat(a[0], [0, 1], axis=None),
        lambda a: np.isclose(a.sum(), 1.0) * a, lambda a: np.unique_values(a * 1j), lambda a: np.unwrap(a * 5),
        lambda a: np.partition(a, -1), lambda a: np.linalg.qr(a, "r"), lambda a: np.cov(a[0]),
        lambda a: np.linalg.pinv(a[:, :2] + a[:, :2].T, hermitian=True), lambda a: np.polysub(a[0], True),
        lambda a: np.linalg.svd(a[:, :2] + a[:, :2].T, hermitian=True)[1], lambda a: np.modf(a, dtype=float)[0],
        lambda a: np.linalg.svd(a @ a.T - np.eye(2), hermitian=True)[2] ** 2, lambda a: np.size(a, (0, 1)) * a,
        lambda a: np.spacing(a) * 1e10, lambda a: np.vander(a[0], 2),
        lambda a: np.sort_complex(a.ravel()),
        lambda a: np.nanstd(a + 1j * a[::-1], dtype=np.float64),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_options_that_change_dtype_position_or_layout(function):
    try:
        function(MATRIX)
    except (TypeError, ValueError) as error:  # in NumPy 2.0
        pytest.skip(str(error))
    check(function, MATRIX)


@pytest.mark.parametrize("function", [np.cov, np.corrcoef, np.sort_complex, np.vander])
def test_float32_becomes_float64_as_in_numpy(function):
    a = np.array([0.4, -1.3, 0.9], np.float32)
    assert function(leaf(a)).dtype == function(a).dtype


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_values_at_infinity():
    x = leaf([np.inf, -np.inf, 1.25])
    assert np.modf(x)[0].tolist() == [0, 0, 0.25] and np.unwrap(x)[0].item() == np.inf
    y, z = leaf([3.0, -1.0]), leaf([-np.inf, np.inf])
    assert grad(np.arctan2(y, z).sum(), (y, z))[0].tolist() == [0, 0]
    assert np.multiply.reduceat(leaf([np.inf + 0.5j]), [0])[0].item() == np.inf + 0.5j
    assert np.vander(leaf([np.nan]), 1).tolist() == [[1]]


@pytest.mark.parametrize("function", [np.maximum, np.minimum])
def test_forward_and_reverse_mode_agree_at_nan(function):
    a, b = np.array([np.nan, 1.0]), np.array([1.0, 2.0])
    x, y = leaf(a), leaf(b)
    total = sum(float(g.numpy()[0]) for g in grad(function(x, y).sum(), (x, y)))
    with forward_ad.dual_level():
        duals = (forward_ad.make_dual(vg.Tensor(v), vg.Tensor([1.0, 0.0])) for v in (a, b))
        assert float(forward_ad.unpack_dual(function(*duals)).tangent.numpy()[0]) == total


# -- what calls of several tensors found -------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [np.array([0.3, 1.2 + 0.4j, -0.5j, 2.0]), np.array([0.3, 1.2, -0.5, 2.0])])
@pytest.mark.parametrize("options", [{}, {"w": np.array([1.0, 0.5, 2.0, 1.5])}, {"cov": True}, {"full": True}])
def test_polynomials_that_fit_complex_numbers(points, options):
    values = np.array([0.2 - 1j, 0.7, 1.1 + 0.2j, -0.4j])
    found, expected = np.polyfit(leaf(points), leaf(values), 1, **options), np.polyfit(points, values, 1, **options)
    for ours, theirs in zip(found[:2], expected[:2]) if options.keys() & {"cov", "full"} else [(found, expected)]:
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-10)
    if not options:
        check(lambda x, y: np.polyfit(x, y, 1), points, values)


def test_sums_of_weights_have_the_dtype_of_numpy():
    places = [0, 1, 1, 3]
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        weights = np.array([0.5, 1, 2, 4], dtype)
        if dtype != np.longdouble:
            assert np.bincount(places, leaf(weights)).dtype == np.float64
        assert np.histogram(places, 2, weights=leaf(weights))[0].dtype == dtype
    check(lambda w: np.histogram(places, 2, weights=w)[0], np.array([0.5 + 1j, 1, 2j, 4]))


def test_zero_dim_results_are_scalars_as_in_numpy():
    check(lambda a: np.modf(a[0, 0, ...])[0], MATRIX)
    for optimize in (False, True, "greedy"):
        check(lambda a, optimize=optimize: np.einsum("ij,ij->", a, a, optimize=optimize), MATRIX)
        check(lambda a, optimize=optimize: np.einsum("ij->", a, optimize=optimize), MATRIX)
    for point in (0.7, -0.7):
        check(lambda a: np.piecewise(a, [a < 0, a >= 0], [lambda x: x**2, lambda x: 3 * x]), np.array(point))


def test_einsum_diagonal_needs_equal_lengths():
    for array in (MATRIX, leaf(MATRIX)):
        with pytest.raises(ValueError, match=r"don't match|different lengths"):
            np.einsum("ii->i", array)


def test_counts_of_empty_input_are_integers():
    weights = leaf(np.zeros(0))
    for places in ([], np.zeros(0, int), vg.Tensor(np.zeros(0, int))):
        found = np.bincount(places, weights=weights, minlength=2)
        assert found.dtype == np.bincount([], weights=[], minlength=2).dtype and found.tolist() == [0, 0]


def test_polynomials_with_leading_zeros_match_numpy():
    for first, second in (([0.0, 1.5, 0.0], [0.5, 2.0]), ([0.0, 0.0], [1.0, 2.0]), ([[1.0, 2.0, 3.0]], [0.5, 2.0])):
        for function in (np.polymul, np.polyadd, np.polysub, np.polydiv):
            try:
                expected = function(np.array(first), second)
            except ValueError:
                continue
            found = function(leaf(first), second)
            for ours, theirs in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected))):
                np.testing.assert_array_equal(ours.detach().numpy(), theirs)
    x = leaf([0.0, 1.5, 0.0])
    assert grad(np.polymul(x, [0.5, 2.0]).sum(), x)[0].tolist() == [0, 2.5, 2.5]


LARGEST, SMALLEST = np.finfo(float).max, np.finfo(float).smallest_subnormal
OF_NUMBERS = {
    "frexp": np.frexp,
    "modf": np.modf,
    "ldexp up": lambda x: np.ldexp(x, 1024),
    "ldexp down": lambda x: np.ldexp(x, -40),
    "ldexp from the smallest": lambda x: np.ldexp(x, 2097),
    "ldexp out of range": lambda x: (np.ldexp(x, 5000), np.ldexp(x, -5000)),
    "divmod of a number": lambda x: np.divmod(7, x),
    "divmod by a number": lambda x: np.divmod(x, 2.5),
    "linspace to": lambda x: np.linspace(0, x, 3),
    "linspace from": lambda x: np.linspace(x, np.float16(2.5), 4),
    "logspace": lambda x: np.logspace(0, x, 3),
    "geomspace": lambda x: np.geomspace(1, abs(x) + 1, 3),
    "square": lambda x: x**2,
}


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.bool_])
def test_dtypes_and_extreme_values_of_scalars(name, dtype):
    """Integers become floats of NumPy's width, Python numbers are weak, and no intermediate result overflows."""
    values = [1.5, -2.25, LARGEST, SMALLEST, 0.0, np.inf] if dtype is np.float64 else [3, 7, 0]
    with np.errstate(all="ignore"):
        for number in np.array(values).astype(dtype):
            expected = OF_NUMBERS[name](number)
            found = OF_NUMBERS[name](vg.Tensor([number])[0])
            for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected))):
                assert (one.dtype, one.shape) == (other.dtype, other.shape), number
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-2 if one.dtype == np.float16 else 1e-6)


def test_spaced_numbers_end_at_stop():
    for stop in np.random.default_rng(0).normal(size=50):
        x = leaf([0.1, stop])
        for points in (np.linspace(x[0], x[1], 7), np.geomspace(x[0], x[1] * x[1] + 1.0, 7)[:-1]):
            assert points[0].detach().item() == 0.1
        last = np.linspace(x[0], x[1], 7)[-1]
        assert last.detach().item() == stop
        assert grad(last, x)[0].tolist() == [0.0, 1.0]


def test_unique_values_are_gathered():
    x = leaf([3.0, 1.0, 3.0])
    values = np.unique(x)
    assert grad((values * np.array([5.0, 7.0])).sum(), x)[0].tolist() == [7, 5, 0]


@pytest.mark.parametrize("function", [np.tril, np.triu])
def test_tril_of_a_vector_has_a_gradient_of_its_shape(function):
    x = leaf([1.0, 2.0, 3.0])
    assert grad(function(x).sum(), x)[0].tolist() == ([3, 2, 1] if function is np.tril else [1, 2, 3])


def test_sort_is_in_place():
    x = leaf([3.0, 1.0, 2.0])
    t = x * 1.0
    assert t.sort() is None
    assert grad((t * np.array([1.0, 10.0, 100.0])).sum(), x)[0].tolist() == [100, 1, 10]


def test_split_needs_equal_division():
    with pytest.raises(ValueError, match="equal"):
        np.split(leaf([1.0, 2.0, 3.0]), 2)


def test_differences_of_order_zero_are_the_values():
    assert np.diff(leaf([1.0, 2.0]), n=0, prepend=1.0).tolist() == [1, 2]


def test_unique_all_keeps_every_nan():
    x = np.array([np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(np.unique_all(vg.Tensor(x)).values.numpy(), np.unique_all(x).values)


def test_logsumexp_with_weights():
    x = leaf([1.0, 2.0])
    weights = np.array([1.0, 3.0])
    (g,) = grad(vg.logsumexp(x, b=weights), x)
    shares = weights * np.exp([1.0, 2.0])
    np.testing.assert_allclose(g, shares / shares.sum())


def test_repeating_a_number_along_its_only_axis():
    s = leaf(2.0)
    assert grad(np.repeat(s, 3, axis=0).sum(), s)[0].item() == 3.0


def test_numbers_of_repetitions_are_truncated():
    x = leaf([1.0, 2.0])
    found = np.repeat(x, 2.7)
    assert found.tolist() == np.repeat([1.0, 2.0], 2.7).tolist()
    assert grad(found.sum(), x)[0].tolist() == [2.0, 2.0]


def test_concatenate_and_dot_write_to_out():
    x = leaf([1.0, 2.0])
    joined, product = vg.zeros(4), vg.zeros(())
    np.concatenate([x, x], out=joined)
    np.dot(x, x, out=product)
    assert grad(joined.sum() + product, x)[0].tolist() == [4, 6]
    assert np.concatenate([x, x], dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("join", [np.concatenate, np.stack])
def test_joining_casts_to_out(join):
    arrays = [np.array([1.5, 2.5]), np.array([3.5, 4.5])]
    tensors = list(map(vg.Tensor, arrays))
    shape = join(arrays).shape
    expected = join(arrays, out=np.zeros(shape, int), casting="unsafe")
    assert join(tensors, out=vg.zeros(shape, dtype=int), casting="unsafe").tolist() == expected.tolist()
    for given in (arrays, tensors):
        make = np.zeros if given is arrays else vg.zeros
        with pytest.raises(TypeError):
            join(given, out=make(shape, dtype=int))
        with pytest.raises(TypeError, match=r"out.*dtype"):
            join(given, out=make(shape), dtype=np.float32)


@pytest.mark.parametrize("number", [300, -300, 2**40, 2**63, -(2**63) - 1, 2**70, 5])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_integers_beyond_the_dtype_are_compared(dtype, number):
    array = np.array([1, 5, 100], dtype)
    for values in (array, array[:1].reshape(()), array[1]):
        tensor = vg.Tensor(values) if isinstance(values, np.ndarray) else vg.Tensor(array)[1]
        for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
            assert compare(tensor, number).tolist() == compare(values, number).tolist()
            assert compare(number, tensor).tolist() == compare(number, values).tolist()
        assert np.less(number, tensor).tolist() == np.less(number, values).tolist()
    for ufunc in (np.divide, np.hypot, np.logaddexp, np.logical_and, np.copysign) if abs(number) < 2**62 else ():
        found, expected = ufunc(vg.Tensor(array), number), ufunc(array, number)
        assert found.dtype == expected.dtype and np.allclose(found, expected, rtol=2e-3)
        assert (number / vg.Tensor(array)).tolist() == (number / array).tolist()
    if not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        with pytest.raises(OverflowError):
            vg.Tensor(array) + number


@pytest.mark.parametrize("condition", [[True, False], [1, 0], [0.5, 0.0]])
def test_the_dtype_of_where_ignores_the_condition(condition):
    values = np.array([1.0, 2.0], np.float16)
    for given in (np.array(condition), vg.Tensor(condition)):
        assert np.where(given, vg.Tensor(values), 2.0).dtype == np.where(np.array(condition), values, 2.0).dtype
        assert np.where(given, -1, vg.Tensor(values)).dtype == np.float16


def test_conjugate_of_bools_is_integer_as_in_numpy():
    array = np.array([True, False])
    assert np.conj(vg.Tensor(array)).dtype == np.conj(array).dtype
    assert vg.Tensor(array).conj().dtype == array.conj().dtype
    out = vg.zeros(2)
    assert np.conjugate(vg.Tensor(array), out=out) is out and out.tolist() == [1, 0]


@pytest.mark.parametrize("values", [[0.1] * 3, [[0.1, 0.1, 0.1], [0.1, 0.2, 0.4]], [0.1 + 0.3j] * 3])
@pytest.mark.parametrize("ddof", [0, 1])
def test_std_of_equal_values_has_zero_gradient_despite_rounding(values, ddof):
    x = vg.Tensor(values, requires_grad=True)
    deviation = np.std(x, axis=-1, ddof=ddof)
    assert np.all(deviation.detach() != 0)
    (gradient,) = vg.autograd.grad(deviation.sum(), x, create_graph=True)
    (second,) = vg.autograd.grad(gradient.real.sum(), x)
    same = np.atleast_2d(np.ptp(np.array(values).real, axis=-1) == 0).T
    for each in (
        gradient,
        second,
        vg.func.jacfwd(lambda x: np.std(x, axis=-1, ddof=ddof))(x).sum(0) if same.all() else 0,
    ):
        assert not np.where(same, np.array(vg.asarray(each).detach()), 0).any()
    if not same.all():
        assert abs(gradient.detach()[1]).min() > 0.01


def test_gradient_of_equal_values_is_positive_zero():
    values = np.full(4, 0.5)
    assert not np.signbit(np.gradient(vg.Tensor(values)).numpy()).any() and not np.signbit(np.gradient(values)).any()


WHOLE_NUMBERS = [
    "np.add.reduceat(a, [0, 1])", "np.multiply.reduceat(a, [0, 1])", "np.logaddexp.reduce(a, initial=0.5)",
    "np.hypot.reduce(a)", "np.hypot.accumulate(a)", "np.true_divide.reduce(a, initial=0.5)", "np.i0(a)",
    "np.linalg.norm(a[None], 1)", "np.linalg.norm(a[None], -np.inf)", "np.gradient(a)",
    "np.select([a > 1], [a], 0.3)", "np.select([a > 1, a > 0], [a, a.astype(np.float16)], 0.3)",
    "np.quantile(a, 0.3, axis=(), method='nearest')",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE_NUMBERS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_are_computed_in_numpys_dtypes(text, dtype):
    array = np.array([3, 1, 2], dtype)
    found, expected = (eval(text, {"np": np, "a": values}) for values in (vg.Tensor(array), array))
    assert found.dtype == expected.dtype and np.allclose(found, expected, rtol=2e-3 if dtype != np.int64 else 1e-12)


def test_underdetermined_polynomials_have_least_coefficients():
    x, y = np.array([0.5, 0.5, 1.0, 1.0]), leaf([1.3, 1.1, 0.7, 0.2])
    with pytest.warns(np.exceptions.RankWarning):
        found = np.polyfit(x, y, 2)
    with pytest.warns(np.exceptions.RankWarning):
        np.testing.assert_allclose(found.detach(), np.polyfit(x, y.detach().numpy(), 2))
    (gradient,) = grad(np.polyval(found, 0.5), y)
    np.testing.assert_allclose(gradient, [0.5, 0.5, 0, 0], atol=1e-12)
    for given in (x, vg.Tensor(x)):
        _, residuals, rank, _, rcond = np.polyfit(given, y.detach().numpy(), 2, full=True)
        assert (np.shape(residuals), rank, rcond) == ((0,), 2, 4 * np.finfo(float).eps)


def test_integer_variance_overflows_as_in_numpy():
    a = np.array([-9223372036854775808, -1, 1, 0])
    with np.errstate(all="ignore"):
        for spread in (np.var, np.std):
            found = np.asarray(spread(vg.Tensor(a), dtype=np.float16).detach())
            assert found == spread(a, dtype=np.float16) == np.inf and found.dtype == np.float16


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3), (1, 1, 1, 3), (3,), (1,), ()])
def test_copyto_by_a_mask_takes_more_leading_dimensions(shape):
    source, mask = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape), np.array([True, False, True])
    expected = np.zeros((2, 3))
    np.copyto(expected, source, where=mask)
    y, x = vg.zeros((2, 3)), vg.Tensor(source, requires_grad=True)
    np.copyto(y, x, where=mask)
    np.testing.assert_array_equal(np.asarray(y.detach()), expected)
    y.sum().backward()
    assert x.grad.shape == shape and x.grad.sum().item() == 4.0


def test_dtypes_are_options_of_functions_that_create_arrays():
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert vg.numpy.zeros_like(x, dtype=x.dtype, shape=(2,)).tolist() == [0, 0]
    filled = vg.numpy.full_like(x, x[1], dtype=x.dtype, shape=(2,))
    assert grad(filled.sum(), x)[0].tolist() == [0, 2, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize("number", [1 - 2e-16, 1, 1 + 1e-9j, 1.5])
def test_isclose_compares_numbers_in_the_precision_of_the_array(dtype, number):
    array = np.array([1, 2], dtype)
    for tolerances in ({"rtol": 0, "atol": 0}, {}):
        expected = np.isclose(array, number, **tolerances).tolist()
        assert np.isclose(vg.Tensor(array), number, **tolerances).tolist() == expected
        assert np.isclose(number, vg.Tensor(array), **tolerances).tolist() == np.isclose(
            number, array, **tolerances
        ).tolist()


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_infinite_numbers_fill_integers_as_in_numpy():
    wanted = np.full_like(np.arange(3), np.inf)
    np.testing.assert_array_equal(viewgrad.numpy.full_like(vg.Tensor(np.arange(3)), np.inf).numpy(), wanted)


@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median", "linear_ramp"])
@pytest.mark.parametrize("widths", [((0, 0), (1, 0)), ((1, 0), (0, 0)), 1, 0])
def test_padding_of_empty_dimensions(mode, widths):
    for shape in ((0, 2), (2, 0)):
        try:
            wanted = np.pad(np.zeros(shape), widths, mode)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                viewgrad.numpy.pad(leaf(np.zeros(shape)), widths, mode)
        else:
            assert viewgrad.numpy.pad(leaf(np.zeros(shape)), widths, mode).shape == wanted.shape


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_of_given_sizes_without_axes_warn_as_in_numpy(name):
    for library, array in ((np, np.ones((3, 4))), (viewgrad.numpy, leaf(np.ones((3, 4))))):
        with pytest.warns(DeprecationWarning, match="`axes` should not be `None`"):
            getattr(library.fft, name)(array, (2, 2))


def test_casting_rules_of_out_are_numpys():
    a, b = leaf([1.5, 2.0]), leaf([3.0, 4.0])
    with pytest.raises(TypeError, match=r"np\.einsum: a result of float64 cannot be written to out= of float32"):
        viewgrad.numpy.einsum("i,i->i", a, b, out=vg.zeros(2, dtype=np.float32))
    assert viewgrad.numpy.einsum("i,i->i", a, b, out=vg.zeros(2, dtype=np.float32), casting="same_kind").requires_grad
    chosen = viewgrad.numpy.choose(np.array([0, 1]), [a.detach(), b.detach()], out=vg.zeros(2, dtype=int))
    np.testing.assert_array_equal(chosen.numpy(), [1, 4])


@pytest.mark.parametrize("name", ["sin", "asarray", "add"])
def test_an_order_that_is_no_string_is_a_type_error(name):
    for library, array in ((np, np.ones(2)), (viewgrad.numpy, leaf(np.ones(2)))):
        with pytest.raises(TypeError):
            getattr(library, name)(*[array] * (2 if name == "add" else 1), order=3)


@pytest.mark.parametrize("dtype", ["f4", "F", "f8"])
def test_joined_numbers_have_no_dtype_of_their_own_in_flattened_arrays(dtype):
    x = np.arange(3).astype(dtype)
    for call in (
        lambda x: np.concatenate([x, 3], axis=None), lambda x: np.concatenate([4.5, x, 3], None),
        lambda x: np.union1d(x, 3.5),
    ):  # fmt: skip
        found = call(vg.Tensor(x, requires_grad=True))
        assert found.dtype == call(x).dtype
        np.testing.assert_array_equal(found.detach(), call(x))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # NumPy's own
@pytest.mark.parametrize("name", ["histogram", "histogram_bin_edges", "histogramdd"])
def test_edges_of_complex_bins_are_complex(name):
    x = np.array([1.0 + 2.0j, 2.0 - 1.0j, 0.5j])
    found, wanted = (getattr(np, name)(each) for each in (vg.Tensor(x, requires_grad=True), x))
    if name == "histogram_bin_edges":
        found, wanted = (None, found), (None, wanted)
    mine, theirs = (each[0] if name == "histogramdd" else each for each in (found[1], wanted[1]))
    np.testing.assert_allclose(mine.detach(), theirs)
    if wanted[0] is not None:
        np.testing.assert_array_equal(found[0], wanted[0])


def test_the_rank_of_a_polynomial_fit_has_numpys_dtype():
    y = np.arange(5.0) ** 2
    found = np.polyfit(np.arange(5.0), vg.Tensor(y, requires_grad=True), 2, full=True)[2]
    assert found.dtype == np.polyfit(np.arange(5.0), y, 2, full=True)[2].dtype


def test_accumulated_results_have_numpys_memory_layout():
    base = np.arange(24.0).reshape(4, 3, 2)
    for order in ((0, 1, 2), (1, 2, 0), (2, 1, 0)):
        x = base.transpose(order)
        for axis in range(3):
            found = np.hypot.accumulate(vg.from_numpy(base).transpose(order), axis)
            assert found.numpy().strides == np.hypot.accumulate(x, axis).strides
