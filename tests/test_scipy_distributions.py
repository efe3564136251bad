"""Distributions of `viewgrad.scipy.stats`: quantiles, parameters, random vectors, copies."""

import copy
import pickle

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from leaves import leaf, leaf_of  # noqa: E402

import viewgrad as vg  # noqa: E402
import viewgrad.numpy  # noqa: E402
from viewgrad.autograd import grad, gradcheck, gradgradcheck  # noqa: E402
from viewgrad.scipy import spatial, special, stats  # noqa: E402

PROBABILITIES = (0.1, 0.55, 0.9)

BY_PARAMETERS = {
    "t.ppf": (lambda q, d: stats.t.ppf(q, d), 3.5),
    "beta.ppf": (lambda q, a, b: stats.beta.ppf(q, a, b), 2.0, 3.0),
    "gamma.ppf": (lambda q, a: stats.gamma.ppf(q, a, scale=2.0), 2.0),
    "chi2.isf": (lambda q, d: stats.chi2.isf(q, d), 3.5),
    "weibull_min.ppf": (lambda q, c: stats.weibull_min.ppf(q, c), 2.0),
    "t.cdf": (lambda q, d: stats.t.cdf(q - 0.5, d), 3.5),
    "beta.cdf": (stats.beta.cdf, 2.0, 3.0),
    "gamma.cdf": (stats.gamma.cdf, 2.0),
    "poisson.cdf": (lambda q, mu: stats.poisson.cdf(np.arange(3.0), mu) * q, 2.0),
    "gammaincc": (lambda x, a: special.gammaincc(a, x), 2.0),
    "betainc": (lambda x, a, b: special.betainc(a, b, x), 0.5, 3.0),
}


@pytest.mark.parametrize("name", BY_PARAMETERS)
def test_gradients_by_values_and_parameters(name):
    function, *parameters = BY_PARAMETERS[name]
    inputs = (leaf(*PROBABILITIES), *map(leaf_of, parameters))
    plain = function(*(each.detach() for each in inputs))
    np.testing.assert_allclose(function(*inputs).detach().numpy(), plain.numpy(), rtol=1e-10)  # SciPy 1.13 has 8e-12
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_quantiles_at_the_ends_match_scipy():
    q = leaf(0.0, 0.3, 1.0)
    found = stats.t.ppf(q, 3.0)
    np.testing.assert_allclose(found.detach().numpy(), scipy.stats.t.ppf([0, 0.3, 1], 3.0))
    assert np.isfinite(grad(found[1], q)[0].numpy()).all()


@pytest.mark.parametrize("order", [0.3, 2.0, 40.0, 2000.0])
def test_derivatives_of_incomplete_functions_wrt_order(order):
    step = 1e-4 * order
    ends = np.array([0.98, 1.0, 1.03]) * order
    expected = (scipy.special.gammainc(order + step, ends) - scipy.special.gammainc(order - step, ends)) / (2 * step)
    orders = leaf_of(np.full(3, order))
    (found,) = grad(special.gammainc(orders, ends).sum(), orders)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-9)


def derivatives(function, point, count):
    x = leaf_of(point)
    y, found = function(x), []
    for _ in range(count):
        (y,) = grad(y, x, create_graph=True)
        found.append(y.item())
    return found


AT_ENDS = {
    "betainc at 0": (lambda x: special.betainc(2.0, 2.0, x), 0.0, [0, 6, -12, 0]),
    "betainc at 1": (lambda x: special.betainc(3.0, 2.0, x), 1.0, [0, -12, -48, -72]),
    "betainc of arrays": (lambda x: special.betainc(np.array([1.0, 2.0]), 2.0, x).sum(), 0.0, [2, 4, -12]),
    "betainc by all": (lambda x: special.betainc(leaf_of(2.0), leaf_of(2.0), x), 0.0, [0, 6, -12, 0]),
    "gammainc of order 1": (lambda x: special.gammainc(1.0, x), 0.0, [1, -1, 1, -1]),
    "gammaincc": (lambda x: special.gammaincc(3.0, x), 0.0, [0, 0, -1, 3]),
    "gammainc by all": (lambda x: special.gammainc(leaf_of(2.0), x), 0.0, [0, 1, -2, 3]),
    "exprel": (special.exprel, 0.0, [1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]),
}


@pytest.mark.filterwarnings("ignore::viewgrad.errors.DetachedConversionWarning")
@pytest.mark.parametrize("name", AT_ENDS)
def test_derivatives_of_every_order_at_an_infinite_logarithm(name):
    function, point, expected = AT_ENDS[name]
    np.testing.assert_allclose(derivatives(function, point, len(expected)), expected, atol=1e-12)


def test_densities_of_narrow_distributions_do_not_overflow_in_between():
    for a, b, point in ((2e4, 2e4, 0.5), (1e3, 1.0, 0.9), (1.0, 2e3, 1e-3), (0.5, 0.5, 0.3)):
        found = derivatives(lambda x, a=a, b=b: special.betainc(a, b, x), point, 1)
        np.testing.assert_allclose(found, scipy.stats.beta.pdf([point], a, b), rtol=1e-9)
    for a, point in ((1e4, 1e4), (0.5, 0.1), (3.0, 500.0), (2.0, 1e200)):
        found = derivatives(lambda x, a=a: special.gammainc(a, x), point, 1)
        np.testing.assert_allclose(found, scipy.stats.gamma.pdf([point], a), rtol=1e-9)


COVARIANCES = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_random_vectors_follow_the_covariances(method):
    def vectors(covariances, numpy):
        return numpy.random.default_rng(1).multivariate_normal([1.0, 2.0], covariances, 3, method=method)

    c = leaf_of(COVARIANCES)
    found = vectors(c, viewgrad.numpy)
    np.testing.assert_allclose(found.detach().numpy(), vectors(COVARIANCES, np))
    direction, step = np.array([[0.3, 0.2], [0.2, -0.4]]), 1e-6
    away = vectors(COVARIANCES + step * direction, np) - vectors(COVARIANCES - step * direction, np)
    (gradient,) = grad(found.sum(), c)
    np.testing.assert_allclose((gradient.numpy() * direction).sum(), away.sum() / (2 * step), rtol=1e-6)


def test_random_vectors_of_scipy_and_of_the_old_generator():
    c, mean = leaf_of(COVARIANCES), [1.0, 2.0]
    expected = np.random.RandomState(3).multivariate_normal(mean, COVARIANCES)
    for draw in (stats.multivariate_normal.rvs, viewgrad.numpy.random.multivariate_normal):
        viewgrad.numpy.random.seed(3)
        np.testing.assert_allclose(draw(mean, c).detach().numpy(), expected)


@pytest.mark.parametrize("size", [None, 3, (2, 3)])
@pytest.mark.parametrize("make", [vg.Tensor, leaf_of])
def test_random_values_are_drawn_for_each_of_the_parameters(make, size):
    places, widths = np.array([1.0, 2.0, 3.0]), np.array([[0.5], [2.0]])
    for ours, theirs, parameters in (
        (stats.norm, scipy.stats.norm, (places,)),
        (stats.norm, scipy.stats.norm, (places, widths if size is None else 0.5)),
        (stats.gamma, scipy.stats.gamma, (2.0, places)),
    ):
        found = ours.rvs(*parameters[:-1], make(parameters[-1]), size=size, random_state=1)
        np.testing.assert_allclose(found.detach().numpy(), theirs.rvs(*parameters, size=size, random_state=1))
    assert stats.norm.rvs(make(1.0), random_state=1).shape == ()
    assert stats.norm(make(places)).rvs(random_state=1).shape == (3,)


def test_densities_of_one_vector_have_no_dimensions():
    x = leaf(0.3)
    assert stats.multivariate_normal.logpdf(x, np.zeros(1), np.eye(1)).shape == ()
    assert stats.multivariate_normal.pdf(leaf(0.3, 0.4), np.zeros(1), np.eye(1)).shape == (2,)


@pytest.mark.parametrize(
    "made",
    [
        stats.norm,
        stats.norm(0.0, 2.0),
        stats.multivariate_normal(np.zeros(2)),
        stats.dirichlet,
        spatial.KDTree(np.eye(3)),
    ],
)
def test_copies_and_pickles(made):
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made)


def test_copied_distributions_work():
    frozen = pickle.loads(pickle.dumps(stats.norm(0.0, 2.0)))
    assert frozen.cdf(vg.Tensor(0.0)).item() == 0.5


def _below(x, mean, root):
    return stats.multivariate_normal.cdf(x, mean, root @ root.T + np.eye(len(root)))


def test_probabilities_of_pairs_below_limits():
    rng = np.random.default_rng(3)
    x, mean, root = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(2, 2))
    x[2, 0] = np.inf
    leaves = [leaf_of(each) for each in (x[:2], mean, root)]
    found = _below(x, *leaves[1:]).detach()
    np.testing.assert_allclose(found, scipy.stats.multivariate_normal.cdf(x, mean, root @ root.T + np.eye(2)))
    assert gradcheck(_below, leaves, check_forward_ad=True)
    assert gradgradcheck(_below, leaves)


def test_probabilities_of_three_below_limits():
    rng = np.random.default_rng(4)
    given = [rng.normal(size=3), rng.normal(size=3), rng.normal(size=(3, 3))]
    leaves = list(map(leaf_of, given))
    slopes = grad(_below(*leaves), leaves)
    for place, slope in enumerate(slopes):
        way, step = rng.normal(size=slope.shape), 0.05  # the quadrature is accurate to 1e-5
        ends = []
        for sign in (1, -1):
            moved = list(given)
            moved[place] = moved[place] + sign * step * way
            ends.append(_below(*moved))
        assert abs((ends[0] - ends[1]) / (2 * step) - (slope * way).sum()) < 2e-3


def test_frozen_normal_distributions_of_several_variables():
    mean, covariances = np.array([1.0, 2.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    for cov in (covariances, 2.0, covariances[1]):
        ours = stats.multivariate_normal(leaf_of(mean), leaf_of(cov), allow_singular=True)
        theirs = scipy.stats.multivariate_normal(mean, cov, allow_singular=True)
        np.testing.assert_allclose(ours.entropy().detach(), theirs.entropy())
        np.testing.assert_allclose(ours.rvs(2, 3).detach(), theirs.rvs(2, 3))
        np.testing.assert_allclose(ours.logpdf(mean + 1).detach(), theirs.logpdf(mean + 1))
        np.testing.assert_allclose(ours.mean.detach(), theirs.mean)
        np.testing.assert_allclose(ours.cov.detach(), theirs.cov)
        assert gradcheck(lambda cov: stats.multivariate_normal(mean, cov).entropy(), leaf_of(cov))


def test_the_size_may_follow_the_parameters():
    found = stats.norm.rvs(leaf_of(1.0), 2.0, 3, random_state=0)
    np.testing.assert_allclose(found.detach(), scipy.stats.norm.rvs(1.0, 2.0, 3, random_state=0))
    found = stats.gamma.rvs(2.5, leaf_of(1.0), 2.0, (2, 3), random_state=0)
    np.testing.assert_allclose(found.detach(), scipy.stats.gamma.rvs(2.5, 1.0, 2.0, (2, 3), random_state=0))


@pytest.mark.parametrize("name, method, args", [
    ("t", "logpdf", (1.0, 1e100)),
    ("t", "pdf", (0.5, np.inf)),
    ("weibull_min", "isf", (1.9e-22, 1.0)),
    ("truncnorm", "sf", (39.5, 39.0, 40.0)),
    ("burr", "isf", (1e-20, 5.0, 3.0)),
    ("skellam", "cdf", (-np.inf, 15.0, 8.0)),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_formulas_that_lose_all_digits_at_extreme_arguments_are_refused(name, method, args):
    with pytest.raises(vg.errors.UnsupportedFunctionError):
        getattr(getattr(stats, name), method)(*(leaf_of(each) for each in args))


def test_distributions_are_instances_of_scipys_classes():
    kinds = [
        scipy.stats.rv_continuous, scipy.stats.rv_discrete, scipy.stats.distributions.rv_frozen,
        type(scipy.stats.norm()), type(scipy.stats.poisson(2.0)), type(scipy.stats.norm),
    ]  # fmt: skip
    names = ["norm", "gamma", "poisson", "multivariate_normal", "kappa4", "hypergeom"]
    frozen = [("norm", ()), ("gamma", (2.0,)), ("poisson", (3.0,)), ("multivariate_normal", ([0.0, 0.0],))]
    for kind in kinds:
        for name in names:
            assert isinstance(getattr(stats, name), kind) == isinstance(getattr(scipy.stats, name), kind)
        for name, args in frozen:
            ours, theirs = getattr(stats, name)(*args), getattr(scipy.stats, name)(*args)
            assert isinstance(ours, kind) == isinstance(theirs, kind)
            for made in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
                assert type(made) is type(ours) and made.args == ours.args
