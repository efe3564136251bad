"""Statistics of `viewgrad.scipy.stats`: values are SciPy's, gradients those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy_cases import call, check, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import gradcheck  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import stats  # noqa: E402

RNG = np.random.default_rng(5)
X, Y = RNG.uniform(0.3, 2.0, 9), RNG.uniform(0.3, 2.0, 9)
M, N = RNG.uniform(0.3, 2.0, (3, 4)), RNG.uniform(0.3, 2.0, (3, 4))
W, P = RNG.uniform(0.2, 1.0, 9), np.array([0.02, 0.3, 0.6])

CASES = [
    *[call(name, X) for name in ("zscore", "gzscore", "gmean", "hmean", "skew", "kurtosis", "sem", "gstd", "variation",
                                 "iqr", "median_abs_deviation", "tmean", "tvar", "tstd", "tsem", "tmin", "tmax",
                                 "circmean", "circvar", "circstd", "differential_entropy", "entropy", "expectile")],
    *[call(name, M, axis=1, keepdims=True) for name in ("skew", "kurtosis", "sem", "variation", "iqr", "tstd")],
    *[call(name, M, axis=None) for name in ("skew", "gmean", "median_abs_deviation", "tmean", "zscore", "hmean")],
    call("zmap", X, Y),
    call("pmean", X, 3),
    call("gmean", np.array(2.5)),
    call("mode", M),
    call("pmean", M, 0.5, axis=1),
    call("gmean", X, weights=W),
    call("hmean", M, axis=1, weights=M[0], keepdims=True),
    call("trim_mean", M, 0.3, 1),
    call("expectile", X, 0.3),
    call("moment", X, 3),
    call("moment", X, 2, center=0.5),
    call("skew", X, bias=False),
    call("kurtosis", X, fisher=False, bias=False),
    call("iqr", X, rng=(10, 80), scale="normal"),
    *[call("kstat", X, n) for n in (1, 2, 3, 4)],
    *[call("kstatvar", X, n) for n in (1, 2)],
    call("tmean", X, (0.5, 1.5)),
    call("tvar", M, (0.35, None), axis=1),
    call("tmin", X, 0.6),
    call("circmean", X, 3.0, 0.1),
    call("circstd", M, axis=1),
    *[call("differential_entropy", X, method=way) for way in ("vasicek", "van es", "ebrahimi", "correa")],
    call("differential_entropy", M, axis=1, base=2, window_length=1),
    call("entropy", X, Y, base=2),
    call("entropy", M, axis=1),
    *[call("boxcox_llf", power, X) for power in (0.5, 0.0)],
    call("boxcox_llf", np.array(0.5), X),
    call("yeojohnson_llf", np.array(0.7), X - 1.0),
    call("boxcox", X, 0.4),
    call("yeojohnson", X - 1.0, 0.4),
    *[call("pearsonr", X, Y, alternative=way) for way in ("two-sided", "less", "greater")],
    call("pearsonr", M, N, axis=1),
    call("linregress", X, Y),
    call("ttest_1samp", X, 1.2),
    call("ttest_1samp", M, 1.2, axis=1, alternative="less", keepdims=True),
    call("ttest_ind", X, Y[:7]),
    call("ttest_ind", X, Y[:7], equal_var=False, alternative="greater"),
    call("ttest_ind", X[:1], Y),
    call("ttest_ind", X, Y[:1], alternative="less"),
    call("ttest_rel", X, Y),
    call("ttest_ind_from_stats", np.array(1.0), np.array(0.4), 8, np.array(1.3), np.array(0.5), 9),
    call("f_oneway", X, Y, W),
    call("f_oneway", M, N, axis=1),
    call("bartlett", X, Y, W),
    call("levene", X, Y, W),
    call("levene", X, Y, center="mean"),
    call("chisquare", X),
    call("chisquare", X, X[::-1].copy(), sum_check=False),
    *[call("power_divergence", X, lambda_=way) for way in ("log-likelihood", "neyman", "cressie-read", 0.3)],
    *[call(name, X) for name in ("skewtest", "jarque_bera")],
    *[call(name, np.concatenate([X, Y, W])) for name in ("kurtosistest", "normaltest")],
    *[call("combine_pvalues", P, method=way) for way in ("fisher", "pearson", "stouffer")],
    call("wasserstein_distance", X, Y[:6]),
    call("wasserstein_distance", X, Y, W, W[::-1].copy()),
    call("energy_distance", X, Y[:6]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_and_gradients(case):
    check("stats", case)


@pytest.mark.parametrize("name", ["boxcox", "yeojohnson"])
def test_the_optimal_power_has_a_gradient(name):
    samples = np.concatenate([X, Y])
    found, power = getattr(stats, name)(vg.Tensor(samples, requires_grad=True))
    right = getattr(scipy.stats, name)(samples)
    np.testing.assert_allclose(power.detach().numpy(), right[1], rtol=1e-6)
    np.testing.assert_allclose(found.detach().numpy(), right[0], rtol=1e-6)
    leaf = vg.Tensor(samples, requires_grad=True)
    (gradient,) = vg.autograd.grad(getattr(stats, name)(leaf)[1], leaf)
    ends = []
    for sign in (1, -1):
        moved = samples.copy()
        moved[2] += sign * 1e-3
        ends.append(getattr(scipy.stats, name)(moved)[1])
    assert gradient[2].item() == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=1e-2)


@pytest.mark.parametrize("width", [None, "silverman", 0.4])
def test_densities_of_samples(width):
    samples, places = vg.Tensor(M, requires_grad=True), vg.Tensor(N[:, :2], requires_grad=True)
    right = scipy.stats.gaussian_kde(np.hstack([M, N]), width)(N[:, :2])

    def density(first, places):
        return stats.gaussian_kde(vg.concat([first, vg.Tensor(N)], axis=1), width)(places)

    np.testing.assert_allclose(density(samples, places).detach().numpy(), right, rtol=1e-8)
    assert gradcheck(density, [samples, places])
    one = stats.gaussian_kde(vg.Tensor(X, requires_grad=True), weights=W)
    theirs = scipy.stats.gaussian_kde(X, weights=W)
    np.testing.assert_allclose(one.logpdf([0.5, 1.0]).detach().numpy(), theirs.logpdf([0.5, 1.0]))
    np.testing.assert_allclose(one.integrate_box_1d(0, 1).detach().numpy(), theirs.integrate_box_1d(0, 1))


def test_ranks_have_no_gradient():
    x = vg.Tensor(X, requires_grad=True)
    np.testing.assert_array_equal(stats.rankdata(x).numpy(), scipy.stats.rankdata(X))
    assert stats.spearmanr(x, Y).statistic == scipy.stats.spearmanr(X, Y).statistic


def test_unsupported_options_raise():
    x = vg.Tensor(X, requires_grad=True)
    with pytest.raises(UnsupportedFunctionError, match="trim"):
        stats.ttest_ind(x, Y, trim=0.1)
    with pytest.raises(UnsupportedFunctionError, match="NaN"):
        stats.skew(x * np.nan, nan_policy="omit")
    with pytest.raises(UnsupportedFunctionError, match="method"):
        stats.pearsonr(x, Y, method=scipy.stats.PermutationMethod())


def test_the_mode_has_the_gradient_of_its_first_occurrence():
    x = vg.Tensor([1.0, 2.0, 3.0, 2.0], requires_grad=True)
    mode, count = stats.mode(x * 1.0)
    (2 * mode).backward()
    assert mode == 2.0 and count == 2
    assert x.grad.tolist() == [0.0, 2.0, 0.0, 0.0]
