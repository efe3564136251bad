"""Maximum-likelihood estimates and distribution functions of SciPy's distributions."""

import numpy as np
import pytest
from scipy import optimize, stats

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError

X = np.array([1.0, 2.0, 4.0, 3.5, 2.2, 1.7, 0.6])
FITS = {
    "norm": (X, {}), "norm with a location": (X, {"floc": 1.0}), "gamma": (X, {"floc": 0}), "lognorm": (X, {"floc": 0}),
    "beta": (X / 6, {"floc": 0, "fscale": 1}), "expon": (X, {"floc": 0}), "gumbel_r": (X, {}), "logistic": (X, {}),
    "rayleigh": (X, {"floc": 0}), "vonmises": (0.3 * X, {"fscale": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_gradients_match_central_differences(name):
    data, fixed = FITS[name]
    fitted = lambda x: sum((n + 1) * each for n, each in enumerate(getattr(stats, name.split()[0]).fit(x, **fixed)))
    value, slope = vg.func.value_and_grad(fitted)(data)
    assert value == pytest.approx(fitted(data), rel=1e-9)
    expected = [(fitted(data + step) - fitted(data - step)) / 2e-5 for step in 1e-5 * np.eye(len(data))]
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-5)


def test_estimates_by_an_inexact_search_have_the_derivatives_of_the_optimum():
    def shape(x):
        slope = lambda k: (x**k * np.log(x)).sum() / (x**k).sum() - 1 / k - np.log(x).mean()
        return optimize.brentq(slope, 0.1, 20.0, xtol=1e-14)

    slope = vg.func.grad(lambda x: stats.weibull_min.fit(x, floc=0)[0])(X)
    expected = [(shape(X + step) - shape(X - step)) / 2e-5 for step in 1e-5 * np.eye(len(X))]
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_fixed_parameters_have_gradients():
    slope = vg.func.grad(lambda loc: stats.norm.fit(X, floc=loc)[1])(1.2)
    assert slope == pytest.approx((1.2 - X.mean()) / np.sqrt(((X - 1.2) ** 2).mean()))


@pytest.mark.parametrize("k", [-3, -1, 0, 2])
def test_skellam_distribution_functions(k):
    p = np.array([2.0, 1.5])
    for name in ("cdf", "sf"):
        of = lambda p, name=name: getattr(stats.skellam, name)(k, p[0], p[1])
        value, slope = vg.func.value_and_grad(of)(p)
        assert value == pytest.approx(of(p), rel=1e-10)
        expected = [(of(p + step) - of(p - step)) / 2e-5 for step in 1e-5 * np.eye(2)]
        np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_lower_limits_of_the_multivariate_normal_distribution_are_refused():
    of = lambda p: stats.multivariate_normal.cdf([0.5, 0.7], np.zeros(2), np.eye(2), lower_limit=-p)
    with pytest.raises(UnsupportedFunctionError, match="lower_limit"):
        vg.func.grad(of)(np.array([0.3, 0.5]))


@pytest.mark.parametrize("name", ["expon", "uniform", "pareto"])
def test_estimates_at_the_end_of_a_support_have_no_derivative(name):
    with pytest.raises(DifferentiabilityError, match="not stationary"):
        vg.func.grad(lambda x: sum(getattr(stats, name).fit(x, **({"floc": 0} if name == "pareto" else {}))))(X)
