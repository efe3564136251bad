"""Arguments of distributions at and beyond the ends of their ranges: values, shapes and errors are SciPy's."""

import inspect
import itertools
import warnings

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.stats")

from leaves import leaf_of  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import stats as ours  # noqa: E402

CONTINUOUS = {
    "norm": (), "expon": (), "uniform": (), "gamma": (2.0,), "beta": (2.3, 0.6), "t": (2.7,), "lognorm": (0.9,),
    "rayleigh": (), "invgamma": (4.1,), "invgauss": (0.15,), "fisk": (3.1,), "genextreme": (-0.1,), "powerlaw": (0.7,),
    "levy": (), "loglaplace": (3.3,), "exponnorm": (1.5,), "weibull_min": (1.8,), "pareto": (2.6,), "cauchy": (),
    "laplace": (), "chi2": (3.0,), "triang": (0.3,),
}  # fmt: skip
DISCRETE = {"poisson": (0.6,), "binom": (5, 0.4), "geom": (0.5,), "nbinom": (5, 0.5)}
LOCATIONS = ({}, {"loc": 0.5}, {"loc": np.array([0.0, 0.25])}, {"loc": np.array([np.nan, 0.0])})
SCALES = ({}, {"scale": np.array([2.0, 0.0])}, {"scale": np.array([-1.0, 1.0])}, {"scale": np.nan})
PLACES = np.array([-np.inf, -1.0, 0.0, 0.4, 1.0, 2.0, np.inf, np.nan])[:, None]
SHARES = np.array([0.0, 1.0, -0.1, 1.1, np.nan, 0.3])[:, None]


def tracked(value):
    return vg.Tensor(np.array(value, float), requires_grad=True) if np.asarray(value).dtype.kind == "f" else value


def outcome(call, args, options):
    """Return the values of a call, None for an error, or the refusal of a gradient."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = call(*args, **options)
    except vg.errors.UnsupportedFunctionError as refusal:
        return refusal
    except (ValueError, TypeError, IndexError):
        return None
    found = found if isinstance(found, tuple) else (found,)
    flat = [item for each in found for item in (each if isinstance(each, tuple) else (each,))]
    return [np.asarray(each.detach() if isinstance(each, vg.Tensor) else each) for each in flat]


def compare(name, method, args, **options):
    scipys, counterpart = getattr(theirs, name), getattr(ours, name)
    wanted = outcome(getattr(scipys, method) if method else scipys, args, options)
    given = {key: tracked(value) if key in ("loc", "scale") else value for key, value in options.items()}
    found = outcome(getattr(counterpart, method) if method else counterpart, [tracked(value) for value in args], given)
    if isinstance(found, vg.errors.UnsupportedFunctionError):
        return
    assert (wanted is None) == (found is None), (name, method, args, options, wanted, found)
    for one, other in zip(wanted or (), found or (), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9, err_msg=f"{name}.{method}, {args}, {options}")
        assert one.shape == other.shape, (name, method, args, options)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions_in_and_beyond_their_domain(name):
    shapes = CONTINUOUS[name]
    for loc, scale in itertools.product(LOCATIONS, SCALES):
        for method in ("pdf", "logcdf", "sf"):
            compare(name, method, (PLACES, *shapes), **loc, **scale)
        for method in ("ppf", "isf"):
            compare(name, method, (SHARES, *shapes), **loc, **scale)
        for method in ("mean", "std", "median", "entropy", "stats"):
            compare(name, method, shapes, **loc, **scale)
    if shapes:
        beyond = [np.array([shape, -50.0, np.nan]) for shape in shapes]
        for method in ("logpdf", "cdf"):
            compare(name, method, (PLACES, *beyond))
        compare(name, "ppf", (SHARES, *beyond))
        compare(name, "mean", beyond)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions_in_and_beyond_their_domain(name):
    shapes = DISCRETE[name]
    beyond = [np.array([shape, -50.0]) if isinstance(shape, float) else shape for shape in shapes]
    for loc in ({}, {"loc": 1}, {"loc": np.array([0.0, 1.0])}):
        for method, given in itertools.product(("pmf", "logpmf", "cdf", "sf"), (shapes, beyond)):
            compare(name, method, (PLACES, *given), **loc)
        for method, given in itertools.product(("mean", "var", "stats"), (shapes, beyond)):
            compare(name, method, given, **loc)


def test_moments_come_in_the_order_of_scipy():
    for moments in ("m", "v", "mv", "vm"):
        compare("gamma", "stats", (2.0,), scale=3.0, moments=moments)


def test_intervals_and_samples_of_invalid_arguments_are_errors():
    for confidence in (0.0, 0.9, 1.0, 1.5, -0.1):
        compare("norm", "interval", (confidence,), loc=1.0)
    for scale in (2.0, 0.0, -1.0):
        compare("norm", "rvs", (), scale=scale, size=3, random_state=1)
    for parameters in ((), (1.0, 2.0)):
        wanted = theirs.norm(*parameters).rvs(3, 7)
        np.testing.assert_allclose(ours.norm(*map(tracked, parameters)).rvs(3, 7).detach(), wanted)


def test_invalid_elements_leave_gradients_of_the_others():
    scale = vg.Tensor([2.0, -1.0], requires_grad=True)
    place = vg.Tensor([0.5, 0.5], requires_grad=True)
    found = ours.norm.logpdf(place, 0.0, scale)
    slopes = vg.autograd.grad(found[0], [place, scale])
    np.testing.assert_allclose(slopes[0], [-0.125, 0.0])
    np.testing.assert_allclose(slopes[1], [-0.5 + 0.25 / 8, 0.0])


SAMPLES = np.random.default_rng(0).normal(size=(9, 4))
MISSING = np.where(np.arange(36).reshape(9, 4) == 5, np.nan, SAMPLES)
STATISTICS = {
    "skew": ({}, {"bias": False}), "kurtosis": ({}, {"fisher": False}), "sem": ({}, {"ddof": 0}),
    "variation": ({}, {"ddof": 20}), "iqr": ({}, {"rng": (10, 90), "scale": "normal"}), "kstat": ({"n": 3},),
    "moment": ({}, {"order": [1, 2]}, {"order": 3, "center": 0.5}), "describe": ({"bias": False},),
    "tmean": ({"limits": (-1, 1)}, {"limits": (9, 10)}), "tvar": ({"limits": (-1, 1)},), "tmin": ({"lowerlimit": 0.0},),
    "tmax": ({"upperlimit": 0.0}, {"upperlimit": -9.0}), "kurtosistest": ({}, {"alternative": "less"}),
    "skewtest": ({},), "normaltest": ({},), "jarque_bera": ({},), "differential_entropy": ({}, {"window_length": 2}),
    "ttest_1samp": ({"popmean": 0.3},), "trim_mean": ({"proportiontocut": 0.2}, {"proportiontocut": 0.6}),
    "zscore": ({}, {"ddof": 1}), "circmean": ({"low": -1.0, "high": 3.0},), "gmean": ({},), "entropy": ({"base": 2},),
}  # fmt: skip


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_with_their_options(name):
    known = inspect.signature(getattr(theirs, name)).parameters
    data_sets = (SAMPLES, abs(SAMPLES), MISSING)
    for options, axis, data in itertools.product(STATISTICS[name], (0, 1, -1, None, 2), data_sets):
        compare(name, None, (data,), axis=axis, **options)
        for further in ({"keepdims": True}, {"nan_policy": "raise"}, {"nan_policy": "omit"}, {"nan_policy": "bad"}):
            if further.keys() <= known.keys():
                compare(name, None, (data,), axis=axis, **options, **further)
    for data in (np.zeros(0), np.zeros((0, 3)), np.array([0.5]), np.array([0.5, 0.7]), np.full(9, np.nan)):
        for options in STATISTICS[name]:
            compare(name, None, (data,), **options)


def test_two_sample_tests_raise_as_in_scipy():
    other, one = SAMPLES[::-1].copy(), np.ones(1)
    pairs = ((SAMPLES, other), (SAMPLES, SAMPLES), (SAMPLES, SAMPLES[:7]), (MISSING, other), (one, one))
    for name, (a, b), axis in itertools.product(
        ("ttest_ind", "ttest_rel", "pearsonr", "f_oneway", "levene", "chisquare"), pairs, (0, 1, None, 2)
    ):
        compare(name, None, (abs(a), abs(b)) if name == "chisquare" else (a, b), axis=axis)


def test_an_exponent_of_the_power_divergence_with_a_history_is_refused():
    with pytest.raises(UnsupportedFunctionError, match="lambda_"):
        ours.power_divergence(np.array([4.0, 6.0, 5.0]), lambda_=vg.Tensor(0.5, requires_grad=True))


@pytest.mark.filterwarnings("ignore")
def test_two_points_lie_on_a_line():
    x, y = (vg.Tensor(each, requires_grad=True) for each in ([1.0, 2.0], [3.0, 5.0]))
    found, wanted = ours.pearsonr(x, y), theirs.pearsonr([1.0, 2.0], [3.0, 5.0])
    assert (found.statistic, found.pvalue) == tuple(wanted)
    assert not any(each.any() for each in vg.autograd.grad(found.statistic + found.pvalue, [x, y]))
    for rise in ([3.0, 5.0], [3.0, 3.0]):
        line = ours.linregress(x, vg.Tensor(rise, requires_grad=True))
        found = [each.item() if isinstance(each, vg.Tensor) else each for each in line]
        np.testing.assert_allclose(found, theirs.linregress([1.0, 2.0], rise))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sample", [[-0.087] * 3, [[1.0, 2.0], [1.0, 3.0]]])
def test_scores_of_equal_values_are_nan(sample):
    found = ours.zscore(vg.Tensor(sample, requires_grad=True))
    np.testing.assert_array_equal(found.detach(), theirs.zscore(np.array(sample)))


def test_moments_by_position():
    k = vg.Tensor(2.0, requires_grad=True)
    assert ours.gamma(2.0).stats("mvsk") == theirs.gamma(2.0).stats("mvsk")
    assert ours.gamma.stats(2.0, 0, 1, "mvsk") == theirs.gamma.stats(2.0, 0, 1, "mvsk")
    assert len(ours.gamma(k).stats("mv")) == len(ours.gamma.stats(k, 0, 1, "mv")) == 2
    assert ours.poisson(k).stats("v").item() == 2.0
    with pytest.raises(UnsupportedFunctionError, match="moments"):
        ours.gamma(k).stats("mvsk")


def test_a_parameter_given_twice_is_an_error():
    with pytest.raises(TypeError, match="loc"):
        ours.gamma.entropy(vg.Tensor(2.0, requires_grad=True), 3, loc=1.0)


@pytest.mark.parametrize("x, alpha", [([0.1, 1.1, 0.3, 0.7], [1.0, 2, 3, 4]), ([0.2, 0.8], [-0.5, 2.0])])
def test_points_outside_the_simplex_are_errors(x, alpha):
    for module, args in ((theirs, (x, alpha)), (ours, (vg.Tensor(x, requires_grad=True), alpha))):
        with pytest.raises(ValueError):
            module.dirichlet.pdf(*args)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, method, args", [
    ("chi", "mean", (1e14,)),
    ("gamma", "entropy", (1e18,)),
    ("chi2", "entropy", (1e15,)),
    ("loguniform", "mean", (1e-200, 1e200)),
    ("t", "entropy", (np.inf,)),
])  # fmt: skip
def test_moments_and_entropies_that_lose_all_digits_are_refused(name, method, args):
    with pytest.raises(UnsupportedFunctionError):
        getattr(getattr(ours, name), method)(*(vg.Tensor(each, requires_grad=True) for each in args))


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("qk", [None, np.array([0.3, 0.3, 0.4])])
def test_slopes_of_entropies_at_zeros(qk):
    pk, h = np.array([0.2, 0.0, 0.8]), 1e-7
    leaf = vg.Tensor(pk, requires_grad=True)
    (slope,) = vg.autograd.grad(ours.entropy(leaf, qk), [leaf])
    assert slope[1] == (np.inf if qk is None else -np.inf)
    for k in (0, 2):
        step = h * np.eye(3)[k]
        wanted = (theirs.entropy(pk + step, qk) - theirs.entropy(pk - step, qk)) / (2 * h)
        np.testing.assert_allclose(slope[k], wanted, rtol=1e-6)


def test_a_rice_distribution_without_an_offset():
    b = vg.Tensor(0.0, requires_grad=True)
    (slope,) = vg.autograd.grad(ours.rice.logpdf(np.array([0.2, 1.0, 5.0]), b).sum(), [b])
    assert slope.item() == 0.0


def test_weights_of_zero_in_a_kernel_density_estimate():
    x, weights, h = np.arange(3.0), np.array([0.0, 1.0, 2.0]), 1e-6
    leaf = vg.Tensor(weights, requires_grad=True)
    (slope,) = vg.autograd.grad(ours.gaussian_kde(x, 3.0, leaf)(x).sum(), [leaf])
    value, at = (theirs.gaussian_kde(x, 3.0, each)(x).sum() for each in (weights, weights + h * np.eye(3)[0]))
    np.testing.assert_allclose(slope[0], (at - value) / h, rtol=1e-4)


def test_expected_values_have_gradients_of_parameters_bounds_and_captured_tensors():
    def mean_square(loc, scale, low):
        normal = ours.norm(loc, scale)
        return normal.expect(lambda x: x * x, lb=low, ub=2.0, conditional=True)

    leaves = [vg.Tensor(each, requires_grad=True) for each in (0.3, 1.2, -1.0)]
    found = mean_square(*leaves)
    wanted = theirs.norm(0.3, 1.2).expect(lambda x: x * x, lb=-1.0, ub=2.0, conditional=True)
    assert found.item() == pytest.approx(wanted, rel=1e-9)
    assert vg.autograd.gradcheck(mean_square, leaves)
    factor = vg.Tensor(1.5, requires_grad=True)
    assert vg.autograd.grad(ours.gamma(2.0).expect(lambda x: factor * x), factor)[0].item() == pytest.approx(2.0)
    assert ours.poisson(2.0).expect(lambda k: k**2) == pytest.approx(6.0)


def test_dirichlet_multinomial():
    counts = np.array([[1, 2, 3], [0, 6, 0], [1, 1, 1]])
    alpha = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = ours.dirichlet_multinomial(alpha, 6).logpmf(counts)
    np.testing.assert_allclose(found.detach().numpy(), theirs.dirichlet_multinomial.logpmf(counts, [1.0, 2.0, 3.0], 6))
    assert vg.autograd.gradcheck(lambda a: ours.dirichlet_multinomial.pmf(counts[:2], a, 6), (alpha,))
    np.testing.assert_allclose(np.asarray(ours.dirichlet_multinomial.mean([1.0, 2.0], 3)), [1.0, 2.0])


def test_expected_values_of_integers_have_gradients_of_parameters_and_captured_tensors():
    mean, factor = vg.Tensor(2.0, requires_grad=True), vg.Tensor(3.0, requires_grad=True)
    found = ours.poisson(mean).expect(lambda k: factor * k * k)
    assert found.item() == pytest.approx(18.0)
    assert [each.item() for each in vg.autograd.grad(found, [mean, factor])] == pytest.approx([15.0, 6.0])
    options = {"loc": 2, "lb": 3, "ub": 6, "conditional": True}
    assert vg.autograd.gradcheck(lambda p: ours.binom.expect(None, (5, p), **options), leaf_of(0.3))
    wanted = theirs.binom.expect(None, (5, 0.3), **options)
    assert ours.binom.expect(None, (5, leaf_of(0.3)), **options).item() == pytest.approx(wanted)


@pytest.mark.filterwarnings("ignore:expect")
def test_expected_values_that_converge_too_slowly_are_refused():
    with pytest.raises(UnsupportedFunctionError, match=r"zipf\.expect"):
        ours.zipf.expect(None, (leaf_of(2.5),))


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_quantiles_have_infinite_slopes_where_the_density_vanishes():
    for q in (0.0, 1.0):
        point = leaf_of(q)
        assert np.isinf(vg.autograd.grad(ours.anglit.ppf(point), point)[0].item())


def test_distributions_without_a_parameter_are_refused_at_once():
    for module, parameter in ((theirs, 2.0), (ours, leaf_of(2.0))):
        with pytest.raises(TypeError):
            module.beta(parameter)
