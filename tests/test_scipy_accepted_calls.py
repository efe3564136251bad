"""SciPy's statistics run once for each form of a call; later calls raise, and return NaN, as they do."""

import numpy as np
import pytest
import scipy.stats

import viewgrad as vg
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
