"""`viewgrad.scipy` computes what SciPy does, and its gradients are those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
import importlib  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import gradcheck  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402

RNG = np.random.default_rng(0)
X, Y, TAPS = RNG.standard_normal(12), RNG.standard_normal((3, 8)), RNG.standard_normal(4)
IMAGE, KERNEL = RNG.standard_normal((5, 6)), RNG.standard_normal((3, 2))
MATRIX, VECTOR = RNG.standard_normal((3, 3)), RNG.standard_normal(3)
POSITIVE = MATRIX @ MATRIX.T + np.eye(3)
TIMES = np.sort(RNG.uniform(0, 1, 8))
FEED, BACK = np.array([0.2, 0.3, 0.1]), np.array([1.0, -0.4, 0.2])

CALLS = {
    "linalg": [
        ("inv", MATRIX),
        ("solve", MATRIX, VECTOR),
        ("solve_triangular", MATRIX, VECTOR),
        ("cholesky", POSITIVE),
        ("lu", MATRIX),
        ("lu_factor", MATRIX),
        ("qr", MATRIX),
        ("eigh", POSITIVE),
        ("eigvalsh", POSITIVE),
        ("expm", MATRIX),
        ("sqrtm", POSITIVE),
        ("logm", POSITIVE),
        ("det", MATRIX),
        ("norm", MATRIX),
        ("pinv", MATRIX),
        ("block_diag", MATRIX, VECTOR),
        *([("block_diag", np.stack([MATRIX, MATRIX.T]), POSITIVE)] if scipy.__version__ >= "1.16" else []),
        ("toeplitz", VECTOR),
        ("circulant", VECTOR),
        ("hankel", VECTOR),
        ("companion", VECTOR),
        ("solve_sylvester", MATRIX, POSITIVE, MATRIX),
        ("khatri_rao", MATRIX, MATRIX),
        ("solve_continuous_lyapunov", MATRIX, POSITIVE),
        ("solve_discrete_lyapunov", MATRIX * 0.3, POSITIVE),
    ],
    "special": [
        ("logsumexp", Y),
        ("softmax", Y),
        ("beta", np.abs(X), np.abs(X) + 1),
        ("erfcinv", TIMES + 0.3),
        ("y0", TIMES + 1),
        ("y1", TIMES + 1),
        ("k0", TIMES + 1),
        ("exprel", X),
        ("boxcox", np.abs(X), np.full(12, 0.5)),
        ("binom", TIMES, TIMES),
        ("factorial", TIMES),
        ("erfi", TIMES),
        ("ellipk", TIMES * 0.8 + 0.05),
    ],
    "signal": [
        *[
            (name, *pair, mode)
            for name in ("convolve", "correlate")
            for mode in ("full", "same", "valid")
            for pair in ((X, TAPS), (IMAGE, KERNEL))
        ],
        *[("convolve2d", IMAGE, KERNEL, "same", boundary) for boundary in ("fill", "symm", "wrap")],
        ("correlate2d", IMAGE, KERNEL, "same"),
        ("lfilter", FEED, BACK, X),
        ("lfilter", FEED, BACK, X, -1, TAPS[:2]),
        ("filtfilt", FEED, BACK, np.tile(X, 2)),
        ("detrend", IMAGE),
        ("hilbert", X),
        ("lfilter_zi", FEED, BACK),
        ("sosfilt", np.concatenate([FEED, BACK])[None], X),
    ],
    "ndimage": [
        *[
            (name, IMAGE, KERNEL, None, mode)
            for name in ("correlate", "convolve")
            for mode in ("reflect", "mirror", "nearest", "wrap")
        ],
        ("gaussian_filter", IMAGE, 0.8),
        ("gaussian_filter1d", IMAGE, 1.2, 0, 2),
        ("sobel", IMAGE),
        ("laplace", IMAGE),
        ("uniform_filter", IMAGE, 4),
        ("maximum_filter", IMAGE, 3),
        ("median_filter", IMAGE, 3),
        ("zoom", IMAGE, 1.5),
        ("shift", IMAGE, 0.7),
        ("shift", IMAGE, 0.7, None, 1),
    ],
    "fft": [("dct", VECTOR), ("idct", VECTOR), ("dst", VECTOR), ("fft", X), ("irfft", X)],
    "integrate": [
        ("trapezoid", Y, TIMES),
        ("simpson", Y, TIMES),
        ("simpson", Y[:, :7], TIMES[:7]),
        ("cumulative_trapezoid", Y, TIMES),
    ],
    "spatial.distance": [
        *[
            ("cdist", MATRIX, POSITIVE, metric)
            for metric in ("euclidean", "sqeuclidean", "cityblock", "cosine", "canberra")
        ],
        ("pdist", IMAGE),
    ],
}
CASES = [(module, *call) for module, calls in CALLS.items() for call in calls]


def named(case):
    return "-".join(str(part.shape if isinstance(part, np.ndarray) else part) for part in case)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_and_gradients(case):
    module, name, *args = case
    ours = getattr(importlib.import_module(f"viewgrad.scipy.{module}"), name)
    theirs = getattr(importlib.import_module(f"scipy.{module}"), name)
    places = [place for place, arg in enumerate(args) if isinstance(arg, np.ndarray)]

    def of_tensors(*tensors):
        given = list(args)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return ours(*given)

    leaves = [vg.Tensor(args[place], requires_grad=True) for place in places]
    results, wanted = of_tensors(*leaves), theirs(*args)
    alone = not isinstance(results, tuple)
    for result, right in zip([results] if alone else results, [wanted] if alone else wanted):
        found = result.detach().numpy() if isinstance(result, vg.Tensor) else result
        np.testing.assert_allclose(found, right, rtol=1e-8, atol=1e-9)
    first = 1 if name == "lu" else 0
    assert gradcheck(of_tensors if alone else lambda *given: of_tensors(*given)[first], leaves)


DISTRIBUTIONS = {
    "norm": (0.3, 1.2),
    "t": (2.5, 0.1, 1.3),
    "beta": (2.0, 3.0),
    "gamma": (2.0,),
    "chi2": (3.0,),
    "expon": (),
    "uniform": (),
    "laplace": (),
    "cauchy": (),
    "logistic": (),
    "lognorm": (0.7,),
    "weibull_min": (1.5,),
    "gumbel_r": (),
    "pareto": (2.0,),
    "poisson": (2.0,),
    "bernoulli": (0.3,),
    "geom": (0.3,),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name):
    from scipy import stats as theirs

    from viewgrad.scipy import stats as ours

    parameters = DISTRIBUTIONS[name]
    discrete = name in ("poisson", "bernoulli", "geom")
    values = np.array([1.0, 0.0, 2.0]) if discrete else np.array([0.3, 0.8, 1.7, -0.4])
    density = "logpmf" if discrete else "logpdf"
    with np.errstate(all="ignore"):
        for method in (density, density[3:], *(() if name in ("bernoulli", "geom") else ("cdf", "sf", "logcdf"))):
            found = getattr(getattr(ours, name), method)(vg.Tensor(values), *parameters)
            right = getattr(getattr(theirs, name), method)(values, *parameters)
            np.testing.assert_allclose(found.numpy(), right, rtol=1e-8, atol=1e-12)
        inside = values[np.isfinite(getattr(getattr(theirs, name), density)(values, *parameters))]
        leaves = [vg.Tensor(parameter, requires_grad=True) for parameter in parameters]
        function = getattr(getattr(ours, name), density)
        if leaves:
            assert gradcheck(lambda *given: function(vg.Tensor(inside), *given), leaves)
        if not discrete:
            assert gradcheck(lambda x: function(x, *parameters), vg.Tensor(inside, requires_grad=True))
            cumulative = getattr(ours, name).cdf
            assert gradcheck(lambda x: cumulative(x, *parameters), vg.Tensor(inside, requires_grad=True))


def test_several_variables():
    from scipy import stats as theirs

    from viewgrad.scipy import stats as ours

    point = RNG.standard_normal((4, 3))
    given = [vg.Tensor(each, requires_grad=True) for each in (point, VECTOR, POSITIVE)]
    found = ours.multivariate_normal.logpdf(*given)
    np.testing.assert_allclose(
        found.detach().numpy(), theirs.multivariate_normal.logpdf(point, VECTOR, POSITIVE), rtol=1e-10
    )
    assert gradcheck(ours.multivariate_normal.logpdf, given)
    alpha, share = np.array([1.5, 2.0, 3.0]), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(
        ours.dirichlet.pdf(vg.Tensor(share), alpha).item(), theirs.dirichlet.pdf(share, alpha), rtol=1e-12
    )


def test_integrals_of_functions():
    from viewgrad import numpy as tensors
    from viewgrad.scipy.integrate import quad

    rate, end = vg.Tensor(1.3, requires_grad=True), vg.Tensor(2.0, requires_grad=True)
    assert gradcheck(lambda k, b: quad(lambda t: tensors.exp(-k * t) * tensors.sin(t), 0, b)[0], [rate, end])
    assert gradcheck(lambda k: quad(lambda t: tensors.exp(-k * t * t), -np.inf, np.inf)[0], rate)
    assert quad(lambda t: t * t, 0, 1)[0] == pytest.approx(1 / 3)
    nothing = quad(lambda t: tensors.exp(-rate * t), end, 2.0)[0]
    assert nothing == 0.0 and [each.item() for each in vg.autograd.grad(nothing, [rate, end])] == [0.0, -np.exp(-2.6)]


def test_distributions_subclass_scipy_distributions():
    from viewgrad.scipy.stats import rv_continuous

    class Rising(rv_continuous):
        def _pdf(self, x):
            return 2 * x

    assert Rising(a=0.0, b=1.0).pdf(0.3) == pytest.approx(0.6)


def test_integrals_with_singularities_match_scipy():
    """SciPy extrapolates there; the gradient subdivides the intervals until it agrees with the value."""
    from scipy import integrate as theirs

    from viewgrad import numpy as tensors
    from viewgrad.scipy.integrate import quad

    k, end = vg.Tensor(1.3, requires_grad=True), vg.Tensor(2.0, requires_grad=True)
    found = quad(lambda x: tensors.exp(-k * x) / tensors.sqrt(x), 0.0, 1.0)[0]
    assert found.detach().item() == theirs.quad(lambda x: np.exp(-1.3 * x) / np.sqrt(x), 0.0, 1.0)[0]
    slope = theirs.quad(lambda x: -np.exp(-1.3 * x) * np.sqrt(x), 0.0, 1.0)[0]
    assert vg.autograd.grad(found, k)[0].item() == pytest.approx(slope, rel=1e-7)
    found = quad(lambda x: tensors.arcsin(tensors.sqrt(1 - x * x / (end * end))) * k, 0.0, end)[0]
    assert [each.item() for each in vg.autograd.grad(found, [k, end])] == pytest.approx([2.0, 1.3], rel=1e-6)
    with pytest.raises(UnsupportedFunctionError, match="weight"):
        quad(lambda x: k * x, 0.0, 1.0, weight="alg", wvar=(0.5, 0.5))
    found = quad(lambda x: tensors.exp(1j * k * x), 0.0, 1.0, complex_func=True)[0]
    assert complex(found.detach()) == pytest.approx((np.exp(1.3j) - 1) / 1.3j)


def test_integrals_in_several_variables():
    from scipy import integrate as theirs

    from viewgrad import numpy as tensors
    from viewgrad.scipy import integrate as ours

    k, end = vg.Tensor(1.3, requires_grad=True), vg.Tensor(2.0, requires_grad=True)

    def twice(module, exp, k, end):
        return module.dblquad(lambda y, x: exp(-k * x * y), 0.0, end, lambda x: 0.0, lambda x: x * k)[0]

    assert twice(ours, tensors.exp, k, end).detach().item() == twice(theirs, np.exp, 1.3, 2.0)
    slopes = [each.item() for each in vg.autograd.grad(twice(ours, tensors.exp, k, end), [k, end])]
    steps = [(1e-5, 0.0), (0.0, 1e-5)]
    exact = [twice(theirs, np.exp, 1.3 + h, 2.0 + d) - twice(theirs, np.exp, 1.3 - h, 2.0 - d) for h, d in steps]
    assert slopes == pytest.approx(np.array(exact) / 2e-5, rel=1e-6)
    found = ours.nquad(lambda x, y: k * x * y, [lambda y: (0, y * k), (0, 1)])[0]
    assert vg.autograd.grad(found, k)[0].item() == pytest.approx(3 * 1.3**2 / 8)
    y = vg.Tensor(np.random.default_rng(0).normal(size=(2, 9)), requires_grad=True)
    np.testing.assert_allclose(ours.romb(y, 0.5).detach().numpy(), theirs.romb(y.detach().numpy(), 0.5))
    assert gradcheck(lambda y: ours.romb(y, 0.5), y)


@pytest.mark.slow
def test_integrals_in_three_variables():
    from viewgrad.scipy.integrate import tplquad

    k = vg.Tensor(1.3, requires_grad=True)
    found = tplquad(lambda z, y, x: k * x * y * z * z, 0, 1, 0, 1, 0, lambda x, y: x * k)[0]
    assert vg.autograd.grad(found, k)[0].item() == pytest.approx(4 * 1.3**3 / 30)


@pytest.mark.parametrize(("method", "rtol"), [("RK23", 1e-7), ("RK45", 1e-9), ("DOP853", 1e-9)])
def test_differential_equations(method, rtol):
    from scipy import integrate as theirs

    from viewgrad import numpy as tensors
    from viewgrad.scipy.integrate import solve_ivp

    times = np.linspace(0, 3, 7)
    k, start = vg.Tensor(1.3, requires_grad=True), vg.Tensor([1.0, 0.0], requires_grad=True)

    def solved(k, start, **options):
        return solve_ivp(
            lambda t, y: tensors.stack([y[1], -k * y[0]]), (0, 3), start, method=method, t_eval=times, **options
        ).y

    right = theirs.solve_ivp(lambda t, y: [y[1], -1.3 * y[0]], (0, 3), [1.0, 0.0], method=method, t_eval=times).y
    np.testing.assert_allclose(solved(k, start).detach().numpy(), right, rtol=1e-9, atol=1e-12)
    exact = vg.autograd.grad(solved(k, start, rtol=rtol, atol=rtol / 100)[0, -1], k)[0].item()
    root = np.sqrt(1.3)  # y = cos(sqrt(k) t)
    assert exact == pytest.approx(-np.sin(3 * root) * 3 / (2 * root), rel=1e-5)


def test_splines():
    from scipy import interpolate as theirs

    from viewgrad.scipy.interpolate import CubicSpline, interp1d

    places = np.sort(RNG.uniform(TIMES[0], TIMES[-1], 5))
    for kind in ("linear", "nearest", "previous", "next", "quadratic", "cubic"):
        values = vg.Tensor(Y, requires_grad=True)
        right = theirs.interp1d(TIMES, Y, kind=kind)(places)
        np.testing.assert_allclose(interp1d(TIMES, values, kind=kind)(places).detach().numpy(), right, atol=1e-12)
        assert gradcheck(
            lambda y, kind=kind: interp1d(TIMES, y, kind=kind)(places), vg.Tensor(Y[0], requires_grad=True)
        )
    given = [vg.Tensor(Y[0], requires_grad=True), vg.Tensor(places, requires_grad=True)]
    assert gradcheck(lambda y, x: CubicSpline(TIMES, y)(x), given)


def test_searches_find_their_own_gradients():
    from viewgrad.scipy import optimize

    found = optimize.minimize(lambda x: (x[0] - 1) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2, [0.0, 0.0])
    np.testing.assert_allclose(found.x.numpy(), [1, 1], rtol=1e-4)
    assert found.njev == found.nfev
    assert optimize.brentq(lambda x: x * x - 2, 0, 2) == pytest.approx(np.sqrt(2))
    assert optimize.brentq(lambda x, k: x * x - k, 0, 2, (2,)) == pytest.approx(np.sqrt(2))


def test_functions_without_derivative_match_scipy_or_raise():
    from viewgrad.scipy import special, stats

    plain = stats.epps_singleton_2samp(vg.Tensor(X), vg.Tensor(X + 1.0))
    assert plain.pvalue == scipy.stats.epps_singleton_2samp(X, X + 1.0).pvalue
    with pytest.raises(UnsupportedFunctionError, match=r"scipy\.stats\.epps_singleton_2samp"):
        stats.epps_singleton_2samp(vg.Tensor(X, requires_grad=True), X)
    with pytest.raises(UnsupportedFunctionError, match="zeta"):
        special.zeta(vg.Tensor(X, requires_grad=True))


def test_columns_that_are_arbitrary_have_no_derivative():
    from viewgrad.errors import DifferentiabilityError
    from viewgrad.scipy.linalg import qr

    x = vg.Tensor(RNG.standard_normal((4, 2)), requires_grad=True)
    for ours, theirs in zip(qr(x), importlib.import_module("scipy.linalg").qr(x.detach().numpy())):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, atol=1e-12)
    assert gradcheck(lambda x: qr(x)[1], x)
    with pytest.raises(DifferentiabilityError, match="economic"):
        qr(x)[0].sum().backward()


def test_rotations_and_neighbours():
    from scipy.spatial.transform import Rotation as Theirs

    from viewgrad.scipy.spatial import KDTree
    from viewgrad.scipy.spatial.transform import Rotation

    for order in ("xyz", "ZYX", "YXZ"):
        angles = vg.Tensor(VECTOR, requires_grad=True)
        right = Theirs.from_euler(order, VECTOR)
        turned = Rotation.from_euler(order, angles)
        np.testing.assert_allclose(turned.as_matrix().detach().numpy(), right.as_matrix(), atol=1e-12)
        np.testing.assert_allclose(turned.as_euler(order).detach().numpy(), right.as_euler(order), atol=1e-12)
        np.testing.assert_allclose(turned.as_rotvec().detach().numpy(), right.as_rotvec(), atol=1e-12)
        assert gradcheck(lambda a, order=order: Rotation.from_euler(order, a).as_quat(), angles)
    assert gradcheck(lambda v: Rotation.from_rotvec(v).apply(VECTOR), vg.Tensor(np.zeros(3), requires_grad=True))
    points = vg.Tensor(IMAGE, requires_grad=True)
    assert gradcheck(lambda p: KDTree(p).query(np.ones(6), k=2)[0], points)


@pytest.mark.parametrize(
    "options", [{"dx": 0.3}, {"x": TIMES}, {"x": TIMES, "initial": 1.5}, {"axis": 0}], ids="-".join
)
def test_cumulative_simpson(options):
    from scipy.integrate import cumulative_simpson as theirs

    from viewgrad.scipy.integrate import cumulative_simpson as ours

    y = vg.Tensor(Y, requires_grad=True)
    np.testing.assert_allclose(ours(y, **options).detach().numpy(), theirs(Y, **options), rtol=1e-12)
    assert gradcheck(lambda y: ours(y, **options), [y])
