"""Every distribution of `viewgrad.scipy.stats` against SciPy, and its derivatives against finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from leaves import leaf_of  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import grad, gradcheck, gradgradcheck  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import stats  # noqa: E402

# By name: the shape parameters. Points inside the support are given as quantiles.
PARAMETERS = {
    "norm": (), "t": (4.5,), "beta": (2.0, 3.0), "gamma": (2.0,), "chi2": (3.0,), "expon": (), "uniform": (),
    "laplace": (), "cauchy": (), "logistic": (), "lognorm": (0.7,), "weibull_min": (1.5,), "rayleigh": (),
    "gumbel_r": (), "halfnorm": (), "pareto": (2.5,), "f": (3.0, 7.0), "maxwell": (), "chi": (2.5,), "erlang": (2.0,),
    "gengamma": (1.5, 2.0), "nakagami": (1.4,), "invgamma": (3.5,), "invgauss": (0.8,), "wald": (),
    "betaprime": (2.0, 3.5), "exponnorm": (1.3,), "fisk": (2.5,), "burr": (2.0, 1.5), "burr12": (2.0, 1.5),
    "lomax": (3.0,), "gompertz": (0.9,), "exponweib": (1.7, 1.3), "truncexpon": (2.0,), "gibrat": (),
    "foldnorm": (0.8,), "rice": (0.9,), "gumbel_l": (), "genextreme": (0.3,), "genpareto": (0.2,),
    "weibull_max": (1.6,), "invweibull": (2.5,), "genlogistic": (1.4,), "moyal": (), "loggamma": (1.6,),
    "halfcauchy": (), "foldcauchy": (0.7,), "levy": (), "gennorm": (1.7,), "dweibull": (1.5,), "dgamma": (1.6,),
    "skewnorm": (1.2,), "johnsonsu": (0.4, 1.3), "hypsecant": (), "laplace_asymmetric": (1.4,), "vonmises": (1.2,),
    "norminvgauss": (1.5, 0.4), "truncnorm": (-0.7, 1.9), "triang": (0.3,), "loguniform": (0.5, 3.0),
    "reciprocal": (0.5, 3.0), "powerlaw": (1.7,), "johnsonsb": (0.3, 1.2), "arcsine": (), "bradford": (1.5,),
    "ncx2": (3.5, 1.7), "nct": (4.5, 0.8), "ncf": (3.0, 7.0, 1.3),
    "anglit": (), "cosine": (), "semicircular": (), "halflogistic": (),
    "loglaplace": (2.5,), "fatiguelife": (1.3,), "recipinvgauss": (1.3,), "rdist": (2.7,), "pearson3": (0.8,),
}  # fmt: skip
WHOLE = {
    "poisson": (2.3,), "bernoulli": (0.3,), "binom": (5, 0.4), "geom": (0.3,), "nbinom": (3.5, 0.4),
    "betabinom": (5, 1.5, 2.0), "zipf": (2.5,), "logser": (0.6,), "dlaplace": (0.8,), "planck": (0.7,),
}  # fmt: skip
METHODS = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf")
LONG = {"ncf", "nct", "norminvgauss"}  # quadratures


def compared(name, method, place, *parameters, **named):
    """Check a function of a distribution in the place and the parameters; the plain result is SciPy's."""
    inputs = [leaf_of(place), *map(leaf_of, parameters)]
    ours = getattr(getattr(stats, name), method)

    def function(place, *parameters):
        return ours(place, *parameters, **named)

    right = getattr(getattr(scipy.stats, name), method)(place, *parameters, **named)
    np.testing.assert_allclose(function(*inputs).detach().numpy(), right, rtol=1e-7, atol=1e-12)
    assert gradcheck(function, inputs)
    return function, inputs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in PARAMETERS])
def test_continuous_distributions(name):
    parameters = PARAMETERS[name]
    place = getattr(scipy.stats, name).ppf([0.2, 0.63, 0.9], *parameters) * 1.3 + 0.2
    for method in METHODS:
        function, inputs = compared(name, method, place, *parameters, 0.2, 1.3)
        assert method != "logpdf" or gradgradcheck(function, inputs)
    for method in ("ppf", "isf"):
        compared(name, method, np.array([0.2, 0.63]), *parameters, 0.2, 1.3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PARAMETERS)
def test_values_outside_the_support_match_scipy_and_have_zero_gradient(name):
    parameters = PARAMETERS[name]
    low, high = getattr(scipy.stats, name).support(*parameters)
    outside = np.array([end for end in (low - 0.5, high + 0.5) if np.isfinite(end)])
    for method in METHODS[:4:2] if outside.size else ():
        place = leaf_of(outside)
        found = getattr(getattr(stats, name), method)(place, *parameters)
        np.testing.assert_array_equal(
            found.detach().numpy(), getattr(getattr(scipy.stats, name), method)(outside, *parameters)
        )
        found.sum().backward()
        np.testing.assert_array_equal(place.grad.numpy(), 0.0)


@pytest.mark.parametrize("name", ["ncx2", "ncf", "nct"])
@pytest.mark.parametrize("nc", [0.4, 9.0])
@pytest.mark.parametrize("place", [-0.8, 0.0, 2.3])
def test_noncentral_distributions(name, nc, place):
    """The points are near the centre and far from it, on both sides of 0, where the derivative keeps its digits."""
    given = [2.3 if name != "nct" and place <= 0 else place, *PARAMETERS[name][:-1], nc]
    for method in ("logpdf", "cdf"):
        leaves = [leaf_of(each) for each in given]
        found = getattr(getattr(stats, name), method)(*leaves)
        right = getattr(getattr(scipy.stats, name), method)
        assert found.detach().item() == pytest.approx(right(*given), rel=1e-8)
        for at, slope in enumerate(grad(found, leaves)):
            moved = [
                right(*[each + step * (at == other) for other, each in enumerate(given)]) for step in (1e-4, -1e-4)
            ]
            assert slope.item() == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-4, abs=1e-8)
    with pytest.raises(UnsupportedFunctionError, match="too many terms"):
        getattr(stats, name).logpdf(leaf_of(2.3), *PARAMETERS[name][:-1], 1e7)
    with pytest.raises(UnsupportedFunctionError, match="cancel"):
        stats.nct.logpdf(leaf_of(-9.0), 4.5, 9.0)


def test_distributions_without_formulas_refuse_histories():
    """These distributions are SciPy's own, with all their functions."""
    for name in ("kappa3", "hypergeom"):
        ours = getattr(stats, name)
        if name == "kappa3":
            assert ours.pdf(vg.Tensor(0.7), 1.5).item() == scipy.stats.kappa3.pdf(0.7, 1.5)
            assert ours(1.5).cdf(0.7) == scipy.stats.kappa3.cdf(0.7, 1.5)
            with pytest.raises(UnsupportedFunctionError, match=r"kappa3\.pdf"):
                ours.pdf(leaf_of(0.7), 1.5)
        with pytest.raises(UnsupportedFunctionError, match=name):
            ours(leaf_of(0.7))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WHOLE)
def test_discrete_distributions(name):
    parameters = WHOLE[name]
    place = np.array([0.0, 1.0] if name == "bernoulli" else [1.0, 2.0, 3.0])
    which = range(1, len(parameters)) if isinstance(parameters[0], int) else range(len(parameters))
    leaves = [leaf_of(parameters[each]) for each in which]

    def full(given):
        return [*parameters[: len(parameters) - len(which)], *given]

    for method in ("pmf", "logpmf", "cdf", "sf"):
        ours = getattr(getattr(stats, name), method)
        right = getattr(getattr(scipy.stats, name), method)(place, *parameters)
        np.testing.assert_allclose(ours(place, *full(leaves)).detach().numpy(), right, rtol=1e-8)
        assert gradcheck(lambda *given, ours=ours: ours(place, *full(given)), leaves)
        assert gradgradcheck(lambda *given, ours=ours: ours(place, *full(given)), leaves)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*PARAMETERS, *WHOLE])
@pytest.mark.parametrize("moment", ["mean", "var", "entropy"])
def test_moments(name, moment):
    parameters = (PARAMETERS | WHOLE)[name]
    shift = (0.0,) if name in WHOLE else (0.2, 1.3)
    leaves = [leaf_of(each) for each in (*parameters, *shift) if not isinstance(each, int)]
    counts = [each for each in parameters if isinstance(each, int)]

    def function(*given):
        return getattr(getattr(stats, name), moment)(*counts, *given)

    try:
        found = function(*leaves)
    except UnsupportedFunctionError as error:
        assert "has no derivative" in str(error)
        return
    right = getattr(getattr(scipy.stats, name), moment)(*parameters, *shift)
    np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-6)
    assert not np.isfinite(right) or gradcheck(function, leaves)


def test_intervals_and_medians():
    scale = leaf_of(1.3)
    low, high = stats.norm.interval(0.95, loc=0.1, scale=scale)
    np.testing.assert_allclose(
        [low.detach().item(), high.detach().item()], scipy.stats.norm.interval(0.95, loc=0.1, scale=1.3)
    )
    assert gradcheck(lambda s: stats.norm.interval(0.95, loc=0.1, scale=s), scale)
    assert gradcheck(lambda s: stats.gamma.median(2.0, scale=s), scale)
    assert gradcheck(lambda s: stats.gamma.stats(2.0, scale=s), scale)
    assert stats.gamma(2.0, scale=scale).median().requires_grad


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("alpha", "beta"), [(1.5, 0.3), (1.9, -0.7), (0.8, 0.2)])
def test_stable_distributions(alpha, beta):
    x = np.array([-3.0, 0.0, 0.4, 5.0])
    leaves = [vg.Tensor(each, requires_grad=True) for each in (x, alpha, beta, 0.2, 1.3)]
    plain = [leaf.detach().numpy() for leaf in leaves]
    for method in ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"):
        function = getattr(stats.levy_stable, method)
        np.testing.assert_allclose(
            function(*leaves).detach(), getattr(scipy.stats.levy_stable, method)(*plain), rtol=1e-11, atol=1e-13
        )
        assert gradcheck(function, leaves)


def test_stable_distributions_refuse_unsupported_parameters():
    for x, alpha, beta in (
        (500.0, 1.5, 0.0), (1.0, 1.0, 0.5), (1.0, 1.001, 0.5), (1.0, 0.3, 0.0), (1.0, 1.5, 2.0), (30.0, 2.0, 0.0),
    ):  # fmt: skip
        with pytest.raises(UnsupportedFunctionError, match="levy_stable"):
            stats.levy_stable.logpdf(leaf_of(x), alpha, beta)
