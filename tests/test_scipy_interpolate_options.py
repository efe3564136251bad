"""Options of interpolants, all combinations of them: values are SciPy's, and the same calls raise errors."""

import itertools
import warnings

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.interpolate")
from scipy.spatial import Delaunay  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import interpolate as ours  # noqa: E402

RNG = np.random.default_rng(0)
C, X, Y = RNG.normal(size=(4, 5)), np.sort(RNG.normal(size=6)), RNG.normal(size=6)
PLACES = RNG.uniform(-3, 3, 8)  # also beyond the ends
LOOP = np.append(Y[:-1], Y[0])
BEYOND = (True, False, "periodic", None)


def piecewise(name, is_ascending, beyond):
    """Return functions of a module: the polynomial, derivatives, antiderivatives and integrals."""
    x = X if is_ascending else X[::-1]

    def made(m):
        return getattr(m, name)(C, x, beyond)

    yield from (lambda m, nu=nu: made(m)(PLACES, nu) for nu in range(4))
    yield from (lambda m, nu=nu: made(m).derivative(nu)(PLACES) for nu in range(-2, 3))
    yield from (lambda m, nu=nu: made(m).antiderivative(nu)(PLACES) for nu in range(-2, 3))
    if is_ascending or beyond != "periodic":
        yield from (lambda m, ends=ends: made(m).integrate(*ends) for ends in ((-0.3, 0.4), (-3.0, 4.0), (4.0, -3.0)))
    if name == "PPoly":
        yield lambda m: made(m).roots()


def tables(kind):
    """Return functions of a module for `interp1d`, with values in one dimension and in two."""
    rows = np.stack([Y, Y**2], 1)
    for fill, strict in itertools.product((np.nan, "extrapolate", 0.5, (1.0, 2.0)), (None, True, False)):
        options = {"bounds_error": strict, "fill_value": fill}
        yield lambda m, options=options: m.interp1d(X, Y, kind, **options)(PLACES)
        yield lambda m, options=options: m.interp1d(X, rows, kind, axis=0, **options)(PLACES.reshape(2, 4))
    missing = np.where(np.arange(6) == 2, np.nan, Y)
    yield lambda m: m.interp1d(X, missing, kind, bounds_error=False)(PLACES)
    yield lambda m: m.interp1d(X, Y, kind, bounds_error=False)([np.nan, 0.0])
    yield lambda m: m.interp1d(X[::-1], Y, kind, bounds_error=False)(PLACES)
    yield lambda m: m.interp1d(X, Y, kind)(X)
    yield lambda m: m.interp1d(X, Y[:5], kind)
    if kind in ("linear", "nearest", "previous", "next"):
        yield lambda m: m.interp1d([1.5], [6.0], kind, bounds_error=False, fill_value=(2.0, 10.0))([1.0, 1.5, 2.0])


def interpolants(name, options):
    for beyond in BEYOND[: 3 if name in ("CubicSpline", "PchipInterpolator") else 2]:

        def made(m, beyond=beyond):
            return getattr(m, name)(X, LOOP, extrapolate=beyond, **options)

        yield lambda m, made=made: made(m)(PLACES)
        yield lambda m, made=made: made(m).derivative()(PLACES)
        yield lambda m, made=made: made(m).antiderivative()(PLACES)
        yield lambda m, made=made: made(m).integrate(-3.0, 3.0)
    yield lambda m: getattr(m, name)(X[::-1], LOOP, **options)


def splines(degree):
    knots = np.concatenate([[X[0]] * (degree + 1), X[2:4], [X[-1]] * (degree + 1)])
    weights = RNG.normal(size=len(knots) - degree - 1)
    for beyond in BEYOND[:3]:

        def made(m, beyond=beyond):
            return m.BSpline(knots, weights, degree, extrapolate=beyond)

        yield from (lambda m, made=made, nu=nu: made(m)(PLACES, nu) for nu in range(min(degree, 2) + 1))
        yield lambda m, made=made: made(m).antiderivative()(PLACES)
        yield from (lambda m, made=made, ends=ends: made(m).integrate(*ends) for ends in ((-3.0, 3.0), (0.2, 0.5)))


CASES = {
    **{
        f"{name}, {'ascending' if up else 'descending'}, {beyond}": piecewise(name, up, beyond)
        for name, up, beyond in itertools.product(("PPoly", "BPoly"), (True, False), BEYOND)
    },
    **{f"interp1d, {kind}": tables(kind) for kind in (
        "linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 4, 5)},
    **{f"CubicSpline, {ends}": interpolants("CubicSpline", {"bc_type": ends})
       for ends in ("not-a-knot", "natural", "clamped", "periodic", ((1, 0.3), (2, 0.1)))},
    **{name: interpolants(name, {}) for name in ("PchipInterpolator", "Akima1DInterpolator")},
    **{f"BSpline, {degree}": splines(degree) for degree in range(1, 6)},
}  # fmt: skip


def outcome(case, module):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = case(module)
    except ValueError:
        return None
    return np.asarray(found.detach() if isinstance(found, vg.Tensor) else found) if hasattr(found, "shape") else ()


@pytest.mark.parametrize("name", CASES)
def test_values_and_errors_match_scipy(name):
    for case in CASES[name]:
        wanted, found = outcome(case, theirs), outcome(case, ours)
        assert (wanted is None) == (found is None), (wanted, found)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
            assert np.shape(found) == np.shape(wanted)


def test_radial_functions_of_neighbors_reject_points_with_a_history():
    points = RNG.normal(size=(9, 2))
    interpolant = ours.RBFInterpolator(points, points[:, 0], neighbors=4)
    with pytest.raises(UnsupportedFunctionError, match="neighbors"):
        interpolant(vg.Tensor(points[:2] + 0.1, requires_grad=True))


@pytest.mark.parametrize("function", [lambda r: r**3 + 1.0, lambda self, r: r**2 + self.epsilon], ids=["one", "two"])
def test_radial_functions_written_by_users(function):
    values = vg.Tensor([1.0, 2.0, 0.0], requires_grad=True)
    places = [0.0, 1.0, 2.0]
    wanted = theirs.Rbf(places, [1.0, 2.0, 0.0], function=function)(0.4)
    np.testing.assert_allclose(ours.Rbf(places, values, function=function)(0.4).detach().numpy(), wanted)
    assert vg.autograd.gradcheck(lambda y: ours.Rbf(places, y, function=function)(0.4), (values,))
    with pytest.raises(ValueError, match="array of the same shape"):
        ours.Rbf(places, values, function=lambda r: r[0])


def test_no_antiderivative_of_a_spline_leaves_its_coefficients():
    t, c, k = theirs.splrep(np.linspace(0, 1, 8), np.linspace(0, 1, 8) ** 2)
    found = ours.splantider((t, vg.Tensor(c, requires_grad=True), k), 0)
    np.testing.assert_array_equal(found[1].detach().numpy(), theirs.splantider((t, c, k), 0)[1])


REFUSED = {
    "complex values": lambda m, y: m.Akima1DInterpolator(X, y * 1j),
    "too few points": lambda m, y: m.RegularGridInterpolator((X[:3],), y[:3], method="pchip"),
    "scales of a triangulation": lambda m, y: m.LinearNDInterpolator(Delaunay(C[:, :2]), y[:4], rescale=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_interpolants_that_scipy_refuses_are_refused(name):
    for module, values in ((theirs, Y), (ours, vg.Tensor(Y, requires_grad=True))):
        with pytest.raises(ValueError):
            REFUSED[name](module, values)
