"""SciPy's functions run once for each form of a call; results of later calls have their dtypes and errors."""

import importlib

import numpy as np
import pytest
import scipy.stats

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.scipy import stats
from viewgrad.scipy.stats import axis_policy
from viewgrad.scipy.wrap import Accepted, form_of

SAMPLE = np.random.default_rng(0).standard_normal(10)
OTHER = np.random.default_rng(1).standard_normal(10)


def tracked(value):
    return vg.Tensor(value, requires_grad=True)


def accept(name, *args, **options):
    """Call a statistic twice with ordinary values; return the second result."""
    getattr(stats, name)(*map(tracked, args), **options)
    return getattr(stats, name)(*map(tracked, args), **options)


@pytest.mark.parametrize("name", ["skew", "ttest_1samp", "sem"])
def test_scipy_does_not_run_again_for_a_call_of_the_same_form(name, monkeypatch):
    options = {"popmean": 0.25} if name == "ttest_1samp" else {}
    expected = getattr(scipy.stats, name)(OTHER, **options)
    accept(name, SAMPLE, **options)
    monkeypatch.setattr(axis_policy, "scipys_result", lambda *_: pytest.fail("SciPy's function ran"))
    found = getattr(stats, name)(tracked(OTHER), **options)
    found = [each.detach() for each in (found if isinstance(found, tuple) else [found])]
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "sample", [np.full(10, 0.1), np.where(np.arange(10) == 3, np.nan, SAMPLE), np.full(10, np.inf)]
)
@pytest.mark.parametrize("name", ["skew", "kurtosis", "zscore", "sem", "variation", "jarque_bera"])
def test_accepted_calls_have_the_nan_of_scipy(name, sample):
    accept(name, SAMPLE)
    with np.errstate(all="ignore"):
        found = getattr(stats, name)(tracked(sample))
        expected = getattr(scipy.stats, name)(sample)
    found = [each.detach() for each in (found if isinstance(found, tuple) else [found])]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected if len(found) > 1 else [expected]))


def test_accepted_calls_raise_for_other_options_and_values():
    accept("skew", SAMPLE)
    accept("pearsonr", SAMPLE, OTHER)
    accept("tmean", SAMPLE, limits=(-1.0, 1.0))
    with pytest.raises(ValueError, match="nan_policy"):
        stats.skew(tracked(SAMPLE), nan_policy="drop")
    with pytest.raises(ValueError, match=r"axis|Axis"):
        stats.skew(tracked(SAMPLE), axis=1)
    with pytest.raises(ValueError, match=r"broadcastable|same length"):
        stats.pearsonr(tracked(SAMPLE), tracked(OTHER[1:]))
    with pytest.raises(ValueError, match="alternative"):
        stats.pearsonr(tracked(SAMPLE), tracked(OTHER), alternative="more")
    with pytest.raises(ValueError, match="No array values"):
        stats.tmean(tracked(SAMPLE + 100.0), limits=(-1.0, 1.0))


def test_forms_tell_shapes_dtypes_and_options_apart():
    forms = [
        form_of(each)
        for each in (
            (tracked(SAMPLE),), (tracked(SAMPLE[1:]),), (tracked(SAMPLE.astype("f4")),), (tracked(SAMPLE), 1),
            (tracked(SAMPLE), True), (tracked(SAMPLE), 1.0), ([tracked(SAMPLE)],), (tracked(SAMPLE), {"bias": False}),
        )
    ]  # fmt: skip
    assert None not in forms and len(set(forms)) == len(forms)
    assert form_of((SAMPLE, np.mean)) is None  # a function may depend on anything


def test_the_number_of_forms_is_bounded():
    accepted = Accepted()
    for count in range(3 * Accepted.MOST):
        accepted.add(count)
    accepted.add(None)
    assert accepted.has(3 * Accepted.MOST - 1) and not accepted.has(None) and not accepted.has(0)


SQUARE = np.random.default_rng(2).standard_normal((4, 4))
CALLS = [
    *[("ndimage", name, ()) for name in ("mean", "variance", "standard_deviation", "median", "sum", "center_of_mass")],
    *[("ndimage", name, ([[1, 1, 2, 2]] * 4, [1, 2])) for name in ("mean", "variance", "maximum", "sum_labels")],
    *[("ndimage", name, (2,)) for name in ("zoom", "fourier_uniform", "fourier_gaussian", "fourier_shift",
                                           "fourier_ellipsoid", "median_filter", "grey_closing", "uniform_filter")],
    ("ndimage", "shift", (0.5,)), ("ndimage", "rotate", (20.0,)), ("ndimage", "gaussian_filter", (1.0,)),
    ("ndimage", "map_coordinates", (np.array([[0.5, 2.2], [0.7, 1.1]]),)), ("ndimage", "distance_transform_bf", ()),
    *[("integrate", name, ()) for name in ("simpson", "trapezoid", "cumulative_simpson", "cumulative_trapezoid")],
    ("signal", "detrend", (0,)), ("signal", "vectorstrength", (2.0,)), ("signal", "welch", ()),
    *[("stats", name, ()) for name in ("tvar", "tmean", "tstd", "tsem", "kurtosis", "skew", "describe", "entropy",
                                       "differential_entropy", "gstd", "mode", "theilslopes", "zscore", "iqr")],
    ("stats", "ttest_1samp", (0.5,)), ("stats", "f_oneway", (SQUARE[:3] + 1.0,)), ("stats", "bartlett", (SQUARE,)),
    ("special", "softmax", ()), ("special", "log_softmax", ()), ("linalg", "det", ()),
]  # fmt: skip
KINDS = {
    "float32": SQUARE.astype("f4"), "complex64": (SQUARE + 1j * SQUARE.T).astype("F"), "complex128": SQUARE + 0.5j,
    "empty": np.zeros((0, 4)), "0-d": np.array(2.0), "1-d": SQUARE[0], "column-major": np.asfortranarray(SQUARE[:3]),
}  # fmt: skip


def parts_of(result):
    """Return the floating-point arrays in a result."""
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in parts_of(each)]
    if isinstance(result, int):
        return []
    array = result.detach().numpy() if isinstance(result, vg.Tensor) else np.asarray(result)
    return [array] if array.dtype.kind in "fc" else []


def outcome(function, *args):
    try:
        return parts_of(function(*args)), None
    except Exception as error:
        return None, type(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_like_scipys_in_every_call(kind):
    for module, name, args in CALLS:
        array = np.abs(KINDS[kind]) + 0.1 if (module, name) == ("stats", "gstd") else KINDS[kind]
        function = getattr(importlib.import_module(f"viewgrad.scipy.{module}"), name)
        wanted, error = outcome(getattr(importlib.import_module(f"scipy.{module}"), name), array, *args)
        for _ in range(2):
            found, own = outcome(function, tracked(array), *args)
            if own is UnsupportedFunctionError or (kind.startswith("complex") and own is not None):
                break  # loud
            assert own is error, (name, own, error)
            if error is None:
                for mine, theirs in zip(found, wanted, strict=True):
                    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), name
                    assert mine.flags.c_contiguous or not theirs.flags.c_contiguous, name
                    assert mine.flags.f_contiguous or not theirs.flags.f_contiguous, name
                    np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tvar", "tstd", "describe", "energy_distance", "wasserstein_distance"])
def test_statistics_of_complex_samples_that_differ_are_refused(name):
    samples = [tracked(SAMPLE + 0.5j * OTHER), tracked(OTHER * 1j)][: 2 if name.endswith("distance") else 1]
    with pytest.raises(UnsupportedFunctionError):
        getattr(stats, name)(*samples)


def test_arguments_that_only_scipy_accepts_are_refused():
    linalg = importlib.import_module("viewgrad.scipy.linalg")
    with pytest.raises(UnsupportedFunctionError, match="does not accept"):
        linalg.cholesky_banded(tracked([4.0, 1.0, 2.0]))


def test_gradients_of_results_without_elements_and_in_single_precision():
    ndimage = importlib.import_module("viewgrad.scipy.ndimage")
    x = tracked(np.zeros((0, 3)))
    ndimage.median_filter(x, 3).sum().backward()
    assert x.grad.shape == (0, 3)
    assert gradcheck(lambda x: ndimage.zoom(x, 2), (tracked(SQUARE[0]),))
    single = tracked(SQUARE[0].astype("f4"))
    assert vg.autograd.grad(ndimage.zoom(single, 2).sum(), single)[0].dtype == np.float32


def test_functions_called_by_filters_run_once_for_each_element():
    ndimage = importlib.import_module("viewgrad.scipy.ndimage")
    calls = []
    ndimage.generic_filter(tracked(SQUARE[0]), lambda x: calls.append(x) or x.sum(), 3)
    assert len(calls) == 4
    with pytest.raises(RuntimeError, match="no footprint"):
        ndimage.generic_filter(tracked(SQUARE[0]), lambda x: x.sum())
    with pytest.raises(RuntimeError, match="complex dtype"):
        ndimage.gaussian_filter(tracked(SQUARE + 1j), 1.0, output=np.float32)


@pytest.mark.parametrize("name", ["uniform_filter", "zoom"])
def test_calls_that_scipy_accepts_by_their_form_are_compiled(name):
    ndimage = importlib.import_module("viewgrad.scipy.ndimage")
    compiled = vg.compile(lambda x: getattr(ndimage, name)(x, 2).sum(), executor="python")
    for _ in range(3):
        compiled(tracked(SAMPLE)).backward()
    assert "runs eagerly" not in str(compiled.explain())
