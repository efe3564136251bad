"""Derivatives with respect to parameters near values at which formulas have 0 / 0, or large terms that cancel."""

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.special")
scipy_stats = pytest.importorskip("scipy.stats")

import viewgrad as vg  # noqa: E402
from viewgrad.scipy import special, stats  # noqa: E402


def derivatives(function, at):
    """Return the value, the first and the second derivative of a function of a number."""
    x = vg.Tensor(at, requires_grad=True)
    value = function(x)
    (first,) = vg.autograd.grad(value, x, create_graph=True)
    (second,) = vg.autograd.grad(first, x)
    return float(value.detach()), float(first.detach()), float(second)


@pytest.mark.parametrize("order", [0.0, 1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("x", [0.01, 0.5, 3.0])
def test_incomplete_gamma_functions_of_small_orders(order, x):
    value, first, _ = derivatives(lambda a: special.gammainc(a, x), order)
    np.testing.assert_allclose(value, theirs.gammainc(order, x), rtol=1e-14)
    np.testing.assert_allclose(first, -theirs.exp1(x), rtol=max(1e-9, 20 * order))  # the limit; DLMF, 8.19
    value, upper, second = derivatives(lambda a: special.gammaincc(a, x), order)
    np.testing.assert_allclose(value, theirs.gammaincc(order, x), rtol=1e-14)
    np.testing.assert_allclose(upper, -first, rtol=1e-9)
    slope = derivatives(lambda a: special.gammaincc(a, x), order + 1e-6)[1]
    np.testing.assert_allclose(second, (slope - upper) / 1e-6, rtol=1e-4)


@pytest.mark.parametrize(("a", "b"), [(1e-4, 2.0), (2.0, 1e-4), (1e-4, 1e-3), (0.3, 0.2), (1e-4, 30.0)])
def test_incomplete_beta_function_of_small_parameters(a, b):
    for x in (0.01, 0.3, 0.98):
        parameters = [vg.Tensor(each, requires_grad=True) for each in (a, b, x)]
        found = vg.autograd.grad(special.betainc(*parameters), parameters)
        for place, step in enumerate((a / 100, b / 100, 1e-6)):
            above, below = [a, b, x], [a, b, x]
            above[place] += step
            below[place] -= step
            expected = (theirs.betainc(*above) - theirs.betainc(*below)) / (2 * step)
            np.testing.assert_allclose(float(found[place]), expected, rtol=2e-4, atol=1e-7)


def test_the_ends_of_incomplete_integrals_stay_finite():
    a = vg.Tensor([0.2, 0.2, 0.7], requires_grad=True)
    for found in (special.gammainc(a, np.array([0.0, 1.0, 0.0])), special.betainc(a, 0.3, np.array([0.0, 1.0, 0.5]))):
        assert np.isfinite(vg.autograd.grad(found.sum(), a)[0]).all()


@pytest.mark.parametrize("power", [0.0, 1e-12, 1e-8, -1e-8, 1e-5])
def test_box_cox_likelihood_of_small_powers(power):
    data = np.random.default_rng(0).random(12) + 0.5
    found = derivatives(lambda lmb: stats.boxcox_llf(lmb, data), power)
    around = [derivatives(lambda lmb: stats.boxcox_llf(lmb, data), at) for at in (-1e-3, 1e-3)]
    np.testing.assert_allclose(found, np.mean(around, 0), rtol=1e-4)
    np.testing.assert_allclose(derivatives(lambda lmb: stats.boxcox_llf(lmb, data), 0.3)[0],
                               scipy_stats.boxcox_llf(0.3, data), rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("skew", [0.0, 1e-8, 1e-4, -1e-3, 0.1, -0.24, 0.26, 0.8])
@pytest.mark.parametrize("method", ["logpdf", "cdf", "sf"])
def test_pearsons_distribution_of_small_skewness(skew, method):
    counterpart, scipys = getattr(stats.pearson3, method), getattr(scipy_stats.pearson3, method)
    for z in (-1.5, 0.7, 2.0):
        value, first, second = derivatives(lambda s: counterpart(z, s), skew)  # noqa: B023
        np.testing.assert_allclose(value, scipys(z, skew), rtol=1e-5)
        # SciPy's functions are accurate from here on; they are differentiated by polynomials through their values.
        step = 0.04
        places = skew + step * np.arange(-4, 5)
        places = places[np.abs(places) > 0.02]
        fitted = np.polynomial.Polynomial.fit(places, scipys(z, places), min(6, len(places) - 1)).convert()
        np.testing.assert_allclose(
            [first, second], [fitted.deriv(1)(skew), fitted.deriv(2)(skew)], rtol=2e-3, atol=2e-4
        )
        slope = derivatives(lambda x: counterpart(x, skew), z)[1]
        expected = (scipys(z + 1e-2, skew) - scipys(z - 1e-2, skew)) / 2e-2  # SciPy's rounds to 1e-6
        np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-4)


def test_pearsons_distribution_mixes_formulas_by_element():
    skew, z = np.array([0.0, 0.1, -0.5, 1.0]), np.array([0.3, -1.0, 0.2, -2.5])
    for method in ("logpdf", "cdf", "sf", "ppf"):
        given = np.array([0.3, 0.1, 0.2, 0.9]) if method == "ppf" else z
        together = vg.Tensor(skew, requires_grad=True)
        found = getattr(stats.pearson3, method)(given, together)
        np.testing.assert_allclose(found.detach(), getattr(scipy_stats.pearson3, method)(given, skew), rtol=1e-7)
        (gradient,) = vg.autograd.grad(np.where(np.isfinite(found.detach()), found, 0.0).sum(), together)
        for place in range(3):
            alone = vg.Tensor(skew[place], requires_grad=True)
            (one,) = vg.autograd.grad(getattr(stats.pearson3, method)(given[place], alone), alone)
            np.testing.assert_allclose(gradient[place], one, rtol=1e-12)


def test_von_mises_density_is_differentiable_at_concentration_0():
    x, kappa = np.array([0.3, 2.0]), vg.Tensor([0.0, 1e-9], requires_grad=True)
    np.testing.assert_allclose(vg.autograd.grad(stats.vonmises.logpdf(x, kappa).sum(), kappa)[0], np.cos(x), atol=1e-8)


@pytest.mark.parametrize(
    ("name", "method", "args"),
    [
        ("f", "cdf", (1.275e23, 1.7, 0.001)),
        ("f", "logsf", (5.398e-15, 0.05, 1.7)),
        ("f", "sf", (5.429e-60, 0.05, 1.7)),
        ("f", "ppf", (0.9, 1.7, 0.05)),
        ("betaprime", "cdf", (2.149e20, 1.7, 0.05)),
        ("betaprime", "logsf", (7.97e-47, 0.001, 1.7)),
        ("betaprime", "ppf", (0.03, 1.7, 0.001)),
        ("loggamma", "cdf", (-916.9, 0.001)),
        ("loggamma", "logsf", (-3507.0, 0.001)),
        ("loggamma", "ppf", (0.4, 0.001)),
        ("loggamma", "cdf", (0.3, 1.7)),
        ("gennorm", "cdf", (0.3, 500.0)),
        ("gengamma", "cdf", (0.4, 0.01, 500.0)),
        ("exponnorm", "logpdf", (0.7, 1e-3)),
        ("exponnorm", "sf", (0.7, 1e-3)),
        ("exponnorm", "cdf", (3.0, 0.2)),
    ],
)
def test_distributions_if_a_part_of_the_formula_rounds_to_0_or_1(name, method, args):
    counterpart, scipys = getattr(getattr(stats, name), method), getattr(getattr(scipy_stats, name), method)
    parameters = [vg.Tensor(each, requires_grad=True) for each in args]
    value = counterpart(*parameters)
    np.testing.assert_allclose(value.detach(), scipys(*args), rtol=1e-7)
    for place, slope in enumerate(vg.autograd.grad(value, parameters)):
        above, below = list(args), list(args)
        above[place] *= 1 + 1e-3
        below[place] *= 1 - 1e-3
        expected = (scipys(*above) - scipys(*below)) / (2e-3 * args[place])
        np.testing.assert_allclose(slope, expected, rtol=5e-2, atol=1e-7 * abs(scipys(*args) / args[place]))


def test_generalized_normal_quantiles_near_the_uniform_distribution():
    """SciPy returns 0 there, because an intermediate power underflows."""
    np.testing.assert_allclose(
        stats.gennorm.ppf(vg.Tensor([0.1, 0.4, 0.9], requires_grad=True), 1e5).detach(), [-0.8, -0.2, 0.8], rtol=1e-4
    )
    zero = vg.Tensor(0.0, requires_grad=True)
    np.testing.assert_allclose(vg.autograd.grad(stats.gennorm.cdf(zero, 1e5), zero)[0], 0.5, rtol=1e-4)


def test_exponentially_modified_normal_densities_of_small_shape():
    """For a shape k, the logarithm is that of the normal one and k z, up to k^2."""
    for k in (1e-9, 1e-6, 1e-4):
        shape = vg.Tensor(k, requires_grad=True)
        found = stats.exponnorm.logpdf(0.7, shape)
        np.testing.assert_allclose(found.detach(), scipy_stats.norm.logpdf(0.7) + k * 0.7, rtol=1e-7)
        np.testing.assert_allclose(vg.autograd.grad(found, shape)[0], 0.7, rtol=1e-3)
