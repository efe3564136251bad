"""Splines and interpolation of `viewgrad.scipy.interpolate`: SciPy's values, with gradients to values and places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate as theirs

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.scipy import interpolate as ours

RNG = np.random.default_rng(5)
X = np.array([0.0, 0.7, 1.5, 2.1, 3.0, 4.2, 5.0])
Y = np.array([0.3, 1.2, 0.7, 0.9, 2.5, 2.4, 1.1])
SLOPES = RNG.normal(size=7)
PLACES = np.array([[0.2, 0.9, 1.7], [2.4, 3.3, 4.6]])
BEYOND = np.array([-0.4, 0.5, 5.6])
GRID = (np.array([0.0, 1.0, 2.5, 3.0, 4.5]), np.array([0.0, 0.4, 1.0, 1.7]))
Z = RNG.normal(size=(5, 4))

# by name: the interpolant from the module, the values and the places
THROUGH = {
    "pchip": lambda m, y, x: m.PchipInterpolator(X, y)(x),
    "akima": lambda m, y, x: m.Akima1DInterpolator(X, y)(x),
    "makima": lambda m, y, x: m.Akima1DInterpolator(X, y, method="makima")(x),
    "hermite": lambda m, y, x: m.CubicHermiteSpline(X, y, SLOPES)(x),
    "hermite slope": lambda m, y, x: m.CubicHermiteSpline(X, y, SLOPES).derivative()(x),
    "hermite area": lambda m, y, x: m.CubicHermiteSpline(X, y, SLOPES).antiderivative()(x),
    "univariate": lambda m, y, x: m.UnivariateSpline(X, y, s=0)(x),
    "interpolated": lambda m, y, x: m.InterpolatedUnivariateSpline(X, y, k=2)(x, 1),
    "splrep": lambda m, y, x: m.splev(x, m.splrep(X, y)),
    "splev slope": lambda m, y, x: m.splev(x, m.splrep(X, y, k=2), der=1),
    "bspline": lambda m, y, x: m.BSpline(np.r_[[0.0] * 3, X[1:-2:1], [5.0] * 3], y, 2)(x),
    "cubic": lambda m, y, x: m.CubicSpline(X, y, bc_type="natural").antiderivative(2)(x),
    "cubic along an axis": lambda m, y, x: m.CubicSpline(X, y[:, None].T * SLOPES[:2, None], axis=1)(x),
    "through values": lambda m, y, x: m.make_interp_spline(X, y, 2)(x, 1),
    "natural ends": lambda m, y, x: m.make_interp_spline(X, y, bc_type="natural").antiderivative()(x),
    "knots": lambda m, y, x: m.make_interp_spline(X, y, 1, t=np.r_[X[:1], X, X[-1:]]).c * x.sum(),
    "least squares": lambda m, y, x: m.make_lsq_spline(X, y, np.r_[[0.0] * 4, 2.2, [5.0] * 4], w=X + 1)(x),
    "smoothed": lambda m, y, x: m.make_smoothing_spline(X, y, lam=0.1)(x),
    "derived": lambda m, y, x: m.splev(x, m.splder(m.splrep(X, y))),
    "integrated": lambda m, y, x: m.splev(x, m.splantider(m.splrep(X, y))),
    "knot inserted": lambda m, y, x: m.splev(x, m.insert(1.1, m.splrep(X, y))),
    "area of splrep": lambda m, y, x: m.splint(0.3, 4.0, m.splrep(X, y)) * x,
    "all derivatives": lambda m, y, x: m.spalde(1.2, m.splrep(X, y)) * x.sum(),
    "basis element": lambda m, y, x: m.BSpline.basis_element(X[:4])(x) * y[0],
    "pieces of a spline": lambda m, y, x: m.PPoly.from_spline(m.splrep(X, y))(x),
    "ppoly": lambda m, y, x: m.PPoly(y[:6].reshape(2, 3), X[:4])(x),
}


@pytest.mark.parametrize("name", THROUGH)
def test_splines(name):
    function = THROUGH[name]
    for places in (PLACES, np.array(1.3), BEYOND):
        found = function(ours, vg.Tensor(Y), places)
        np.testing.assert_allclose(found.numpy(), function(theirs, Y, places), rtol=1e-10, atol=1e-12)
    leaves = [vg.Tensor(Y, requires_grad=True), vg.Tensor(PLACES, requires_grad=True)]
    assert gradcheck(lambda y, x: function(ours, y, x), leaves)


def test_knots_of_local_splines_have_gradients():
    x = vg.Tensor(X, requires_grad=True)
    for make in (ours.PchipInterpolator, ours.Akima1DInterpolator):
        assert gradcheck(lambda x, make=make: make(x, Y)(PLACES), x)


# by name: the interpolant from the module, the points, values and places
OF_POINTS = {
    "interp1d": lambda m, x, y, p: m.interp1d(x, np.stack([y, y**2]), axis=1)(p),
    "extrapolated": lambda m, x, y, p: m.interp1d(x, y, "quadratic", fill_value="extrapolate")(p),
    "unsorted": lambda m, x, y, p: m.interp1d(x[::-1], y, "slinear")(p),
    "cubic interp1d": lambda m, x, y, p: m.interp1d(x, y, "cubic")(p),
    "fifth degree": lambda m, x, y, p: m.make_interp_spline(x, y, 5)(p, 2),
    "two columns": lambda m, x, y, p: m.make_interp_spline(x, np.stack([y, y**2], 1), 4)(p),
    "area": lambda m, x, y, p: m.make_interp_spline(x, y, 2).antiderivative()(p),
    "knots": lambda m, x, y, p: m.BSpline(_knots(x), y, 2)(p),
    "slope": lambda m, x, y, p: m.BSpline(_knots(x), y, 2).derivative()(p) + m.BSpline(_knots(x), y, 2)(p, 1),
    "periodic knots": lambda m, x, y, p: m.BSpline(_knots(x), y, 2, extrapolate="periodic")(p + 3.0),
    "not-a-knot": lambda m, x, y, p: m.CubicSpline(x, y)(p),
    "parabola": lambda m, x, y, p: m.CubicSpline(x[:3], y[:3])(p),
    "line": lambda m, x, y, p: m.CubicSpline(x[:2], y[:2])(p),
    "clamped": lambda m, x, y, p: m.CubicSpline(x, y, bc_type="clamped")(p, 1),
    "mixed ends": lambda m, x, y, p: m.CubicSpline(x, y, bc_type=("natural", "not-a-knot"))(p),
    "periodic": lambda m, x, y, p: m.CubicSpline(x, np.concatenate([y[:-1], y[:1]]), bc_type="periodic")(p),
    "given slopes": lambda m, x, y, p: m.CubicSpline(x, y, bc_type=((1, y[2]), (2, 0.5)))(p),
    "given curvature": lambda m, x, y, p: m.CubicSpline(
        x, np.stack([y, y**2]), axis=1, bc_type=((2, y[:2]), (1, y[3:5]))
    )(p),
    "points of splrep": lambda m, x, y, p: m.splev(p * 1.5, m.splrep(x, y), ext=3),
    "area of splrep": lambda m, x, y, p: m.splint(0.4, 9.0, m.splrep(x, y, k=2)) * p,
    "interpolated": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y, k=4)(p),
    "knots of a spline": lambda m, x, y, p: m.UnivariateSpline(x, y, s=0).get_knots()[1] * p,
    "slopes of fixed points": lambda m, x, y, p: m.CubicSpline(X, y, bc_type=((1, 0.4), (2, x[1])))(p),
}  # fmt: skip


def _knots(x):
    return np.concatenate([x[:1], x[:1], x[:-2], x[-1:], x[-1:], x[-1:]])


@pytest.mark.parametrize("name", OF_POINTS)
def test_points_have_gradients(name):
    function = OF_POINTS[name]
    leaves = [vg.Tensor(each, requires_grad=True) for each in (X, Y, PLACES)]
    for places in (PLACES, np.array(1.3)):
        found = function(ours, *leaves[:2], places)
        np.testing.assert_allclose(found.detach().numpy(), function(theirs, X, Y, places), rtol=1e-9, atol=1e-10)
    assert gradcheck(lambda x, y, p: function(ours, x, y, p), leaves)


@pytest.mark.parametrize("kind", ["nearest", "nearest-up", "previous", "next"])
def test_step_interpolants_have_gradients_of_values_only(kind):
    spline = theirs.interp1d(X, Y, kind)
    places = np.array([0.35, 1.1, 2.55])  # in the middle of two points
    assert vg.grad(lambda y, x: np.sum(theirs.interp1d(x, y, kind)(places)), argnums=1)(Y, X).tolist() == [0.0] * 7
    np.testing.assert_allclose(vg.adopt(lambda: spline(places))().numpy(), spline(places))


def test_other_dimensions_and_areas():
    y = np.stack([Y, Y[::-1] ** 2])
    leaf = vg.Tensor(y, requires_grad=True)
    for name in ("PchipInterpolator", "Akima1DInterpolator"):
        found = getattr(ours, name)(X, leaf, axis=1)(PLACES)
        np.testing.assert_allclose(found.detach().numpy(), getattr(theirs, name)(X, y, axis=1)(PLACES), rtol=1e-10)
    spline = ours.UnivariateSpline(X, vg.Tensor(Y, requires_grad=True), s=0)
    right = theirs.UnivariateSpline(X, Y, s=0)
    assert spline.integral(0.3, 4.0).detach().item() == pytest.approx(right.integral(0.3, 4.0))
    np.testing.assert_allclose(spline.derivatives(1.3).detach().numpy(), right.derivatives(1.3), rtol=1e-9)
    np.testing.assert_allclose(spline.get_coeffs().detach().numpy(), right.get_coeffs(), rtol=1e-9)


def test_smoothing_splines_have_gradients_to_places_alone():
    x = vg.Tensor(PLACES, requires_grad=True)
    np.testing.assert_allclose(
        ours.UnivariateSpline(X, Y, s=0.5)(x).detach().numpy(), theirs.UnivariateSpline(X, Y, s=0.5)(PLACES)
    )
    assert gradcheck(ours.UnivariateSpline(X, Y, s=0.5), x)
    assert gradcheck(lambda x: ours.splev(x, theirs.splrep(X, Y, s=0.5)), x)
    with pytest.raises(UnsupportedFunctionError, match="s=0"):
        ours.UnivariateSpline(X, vg.Tensor(Y, requires_grad=True))


@pytest.mark.parametrize("argument", ["x", "lam"])
def test_arguments_of_splines_without_a_derivative_are_named(argument):
    given = {"x": X, "lam": 0.1}
    given[argument] = vg.Tensor(given[argument], requires_grad=True)
    with pytest.raises(UnsupportedFunctionError, match=f"make_smoothing_spline .* no gradient flows to {argument};"):
        ours.make_smoothing_spline(given["x"], Y, lam=given["lam"])


def test_values_beyond_the_ends():
    tck = theirs.splrep(X, Y)
    places = vg.Tensor(BEYOND, requires_grad=True)
    for ext in (0, 1, 3):
        np.testing.assert_allclose(
            ours.splev(places, tck, ext=ext).detach().numpy(), theirs.splev(BEYOND, tck, ext=ext)
        )
    with pytest.raises(ValueError, match="outside"):
        ours.splev(places, tck, ext=2)


def test_splines_of_two_variables():
    z, x, y = (vg.Tensor(each, requires_grad=True) for each in (Z, [0.3, 2.0, 4.4], [0.2, 0.9, 1.6]))
    right = theirs.RectBivariateSpline(*GRID, Z)
    for options in ({}, {"grid": False}, {"dx": 1}, {"grid": False, "dy": 2}):
        found = ours.RectBivariateSpline(*GRID, z)(x, y, **options)
        np.testing.assert_allclose(
            found.detach().numpy(), right([0.3, 2.0, 4.4], [0.2, 0.9, 1.6], **options), atol=1e-9
        )
        assert gradcheck(lambda z, x, y, o=options: ours.RectBivariateSpline(*GRID, z)(x, y, **o), [z, x, y])
    tck = (*right.tck, 3, 3)
    for given in ((0.3, 0.7), ([0.3, 1.0], 0.7), ([0.3, 1.0], [0.2, 0.9, 9.0])):
        leaves = [vg.Tensor(each, requires_grad=True) for each in given]
        np.testing.assert_allclose(ours.bisplev(*leaves, tck).detach().numpy(), theirs.bisplev(*given, tck), atol=1e-12)
    assert gradcheck(lambda x: ours.bisplev(x, 0.7, tck), vg.Tensor(0.3, requires_grad=True))


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interpolation_on_grids(method):
    points = RNG.uniform((0.1, 0.1), (4.4, 1.6), (3, 2))
    z, places = vg.Tensor(Z, requires_grad=True), vg.Tensor(points, requires_grad=True)
    right = theirs.interpn(GRID, Z, points, method)
    np.testing.assert_allclose(ours.interpn(GRID, z, places, method).detach().numpy(), right, rtol=1e-12)
    assert gradcheck(lambda z, x: ours.interpn(GRID, z, x, method), [z, places])
    turned = np.flip(vg.Tensor(Z), [0, 1])  # a list of dimensions, as in NumPy
    np.testing.assert_array_equal(turned.numpy(), Z[::-1, ::-1])
    wide = {"bounds_error": False, "fill_value": None}
    for options in (wide, wide | {"fill_value": -1.0}):
        found = ours.RegularGridInterpolator((GRID[0][::-1], GRID[1]), z, method, **options)((points[:, 0] + 2, 0.5))
        right = theirs.RegularGridInterpolator((GRID[0][::-1], GRID[1]), Z, method, **options)((points[:, 0] + 2, 0.5))
        np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-12)
    with pytest.raises(ValueError, match="out of bounds"):
        ours.interpn(GRID, z, points + 5.0)


@pytest.mark.parametrize(
    "name", ["PchipInterpolator", "Akima1DInterpolator", "CubicSpline", "InterpolatedUnivariateSpline"]
)
def test_classes_can_be_derived(name):
    class Derived(getattr(ours, name)):
        """Programs derive classes from SciPy's."""

        def __init__(self, x, y):
            super().__init__(x, y)
            self.given = x

    spline = Derived(X, vg.Tensor(Y, requires_grad=True))
    assert isinstance(spline, getattr(ours, name)) and spline.given is X
    np.testing.assert_allclose(spline(PLACES).detach().numpy(), getattr(theirs, name)(X, Y)(PLACES), rtol=1e-9)


SCATTERED = RNG.random((9, 2))
HEIGHTS = np.sin(SCATTERED @ [3.0, 2.0])
ASKED = RNG.random((3, 2)) * 0.5 + 0.25


@pytest.mark.parametrize("options", [{}, {"smoothing": 0.1, "degree": 2}], ids=["through", "near"])
@pytest.mark.parametrize("kernel", ["linear", "thin_plate_spline", "quintic", "multiquadric", "gaussian"])
def test_radial_functions(kernel, options):
    options = {"kernel": kernel, "epsilon": 1.7, **options}
    y, d, x = (vg.Tensor(each, requires_grad=True) for each in (SCATTERED, HEIGHTS, ASKED))
    right = theirs.RBFInterpolator(SCATTERED, HEIGHTS, **options)(ASKED)
    np.testing.assert_allclose(ours.RBFInterpolator(y, d, **options)(x).detach().numpy(), right, rtol=1e-7)
    direction = RNG.normal(size=SCATTERED.shape)

    def moved(step, d, x):
        return ours.RBFInterpolator(SCATTERED + step * direction, d, **options)(x)

    assert gradcheck(moved, [vg.Tensor(0.0, requires_grad=True), d, x], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rescale", [False, True])
def test_linear_interpolation_of_scattered_data(rescale):
    values = np.stack([HEIGHTS, HEIGHTS**2], 1)
    v, x = vg.Tensor(values, requires_grad=True), vg.Tensor(ASKED, requires_grad=True)
    right = theirs.LinearNDInterpolator(SCATTERED, values, rescale=rescale)(ASKED)
    found = ours.LinearNDInterpolator(SCATTERED, v, rescale=rescale)(x)
    np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-9)
    assert gradcheck(lambda v, x: ours.LinearNDInterpolator(SCATTERED, v, 0.0, rescale)(x), [v, x])
    with pytest.raises(UnsupportedFunctionError, match="no gradient flows to the data points"):
        ours.LinearNDInterpolator(vg.Tensor(SCATTERED, requires_grad=True), v)


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_griddata(method):
    line, places = np.array([3.0, 1.0, 2.0, 5.0, 4.0]), np.array([1.2, 2.6, 4.9, 7.0])
    v = vg.Tensor(line**2, requires_grad=True)
    right = theirs.griddata(line, line**2, places, method)
    np.testing.assert_allclose(ours.griddata(line, v, places, method).detach().numpy(), right, rtol=1e-9)
    h, far = vg.Tensor(HEIGHTS, requires_grad=True), np.append(ASKED, [[9.0, 9.0]], 0)
    if method == "cubic":
        with pytest.raises(UnsupportedFunctionError, match="RBFInterpolator"):
            ours.griddata(SCATTERED, h, far, method)
        h = h.detach()
    right = theirs.griddata(SCATTERED, HEIGHTS, (far[:, 0], far[:, 1]), method)
    found = ours.griddata(SCATTERED, h, (far[:, 0], far[:, 1]), method)
    np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-9)
    if method != "cubic":
        assert gradcheck(lambda h: ours.griddata(SCATTERED, h, far, method, 0.0), [h])


def test_areas_under_splines_of_two_variables():
    z = vg.Tensor(Z, requires_grad=True)
    ends = (0.2, 3.7, -0.3, 1.5)
    found = ours.RectBivariateSpline(*GRID, z).integral(*ends)
    assert found.detach().item() == pytest.approx(theirs.RectBivariateSpline(*GRID, Z).integral(*ends))
    assert gradcheck(lambda z: ours.RectBivariateSpline(*GRID, z).integral(*ends), z)


POINTS, AT = np.array([0.0, 2.0, 1.0, 3.5]), np.array([[0.3, 2.0], [1.7, 3.0]])


@pytest.mark.parametrize("name", ["KroghInterpolator", "BarycentricInterpolator"])
def test_polynomials_through_points(name):
    values = RNG.standard_normal((2, 4, 3))
    found, right = getattr(ours, name)(POINTS, vg.Tensor(values), axis=1), getattr(theirs, name)(POINTS, values, axis=1)
    for use in (lambda f: f(AT), lambda f: f.derivative(AT, 2), lambda f: f.derivatives(AT, 3), lambda f: f(0.5)):
        np.testing.assert_allclose(use(found).numpy(), use(right), atol=1e-12)
    leaves = [vg.Tensor(each, requires_grad=True) for each in (POINTS, values[:, :, 0], AT)]
    assert gradcheck(lambda x, y, at: getattr(ours, name)(x, y, axis=1)(at), leaves)
    assert gradcheck(lambda x, y, at: getattr(ours, name)(x, y, axis=1).derivative(at), leaves)


@pytest.mark.parametrize("der", [0, 1, [0, 2]])
@pytest.mark.parametrize("name", ["krogh_interpolate", "barycentric_interpolate"])
def test_polynomials_through_points_by_functions(name, der):
    x, y = vg.Tensor(POINTS, requires_grad=True), vg.Tensor(POINTS**2 + 1.0, requires_grad=True)
    right = getattr(theirs, name)(POINTS, POINTS**2 + 1.0, AT[0], der=der)
    np.testing.assert_allclose(getattr(ours, name)(x, y, AT[0], der=der).detach().numpy(), right, atol=1e-12)
    assert gradcheck(lambda x, y: getattr(ours, name)(x, y, AT[0], der=der), (x, y))


def test_many_points_do_not_cancel():
    x = np.cos(np.pi * np.arange(60) / 59)
    found = ours.BarycentricInterpolator(x, vg.Tensor(np.sin(5 * x)))(AT[0] / 3)
    np.testing.assert_allclose(found.numpy(), np.sin(5 * AT[0] / 3), atol=1e-12)


def test_points_and_values_can_be_added_later():
    found = ours.BarycentricInterpolator(np.array([0.0, 1.0, 2.0]))
    found.set_yi(vg.Tensor([1.0, 2.0, 5.0]))
    found.add_xi([3.0], [2.0])
    assert found(0.5).item() == pytest.approx(0.75)


def test_repeated_points_match_scipy():
    assert ours.KroghInterpolator([0.0, 0.0, 1.0], [1.0, 2.0, 3.0])(0.5) == 2.0
    with pytest.raises(UnsupportedFunctionError, match="repeated points"):
        ours.KroghInterpolator(vg.Tensor([0.0, 0.0, 1.0], requires_grad=True), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("has_history", [False, True])
@pytest.mark.parametrize("ext", [0, 1, 2, 3, "zeros", "const"])
def test_derivatives_of_extrapolated_splines_match_scipy(ext, has_history):
    x, y, places = np.array([0.0, 1, 2, 3, 4, 5.1]), np.cos(np.arange(6.0)), np.array([-1.0, 0.5, 2.0, 6.0])
    values = vg.Tensor(y, requires_grad=has_history)
    spline = ours.UnivariateSpline(x, values, s=0, ext=ext)
    wanted = theirs.UnivariateSpline(x, y, s=0, ext=ext)
    for name in ("derivative", "antiderivative"):
        for order in (0, 1, 2):
            our, their = getattr(spline, name)(order), getattr(wanted, name)(order)
            if ext == 2:
                with pytest.raises(ValueError, match="outside"):
                    our(places)
                continue
            np.testing.assert_allclose(our(places).detach().numpy(), their(places), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(
                our.derivative()(places).detach().numpy(), their.derivative()(places), rtol=1e-10, atol=1e-10
            )
    if ext != 2:
        np.testing.assert_allclose(spline(places, 1).detach().numpy(), wanted(places, 1), rtol=1e-10)


def test_gradients_of_derivatives_of_splines_match_differences():
    places, points = np.array([0.5, 1.2, 2.0]), np.array([0.0, 1, 2, 3, 4, 5.1])

    def moments(x, y):
        spline = theirs.UnivariateSpline(x, y, s=0, ext=1)
        return (spline.derivative(2)(places) * spline.antiderivative()(places)).sum()

    assert gradcheck(vg.adopt(moments), [vg.Tensor(each, requires_grad=True) for each in (points, points**2)])


def test_bivariate_splines_of_numbers_have_a_grid_of_one_point():
    x, y = np.arange(5.0), np.arange(6.0)
    z = np.outer(np.sin(x), np.cos(y))
    found, wanted = ours.RectBivariateSpline(x, y, z), theirs.RectBivariateSpline(x, y, z)
    for at in ((1.5, 2.5), (1.5, y), (x, 2.5), (x, y)):
        assert found(*at).shape == wanted(*at).shape
        np.testing.assert_allclose(found(*at).numpy(), wanted(*at), atol=1e-12)


def test_splines_of_high_degrees_are_evaluated():
    """FITPACK, which SciPy uses to convert them to piecewise polynomials, writes beyond its memory."""
    tck = theirs.splantider(theirs.splrep(np.arange(8.0), np.sin(np.arange(8.0))), 5)
    wanted, places = theirs.BSpline(*tck), vg.Tensor(np.linspace(0.5, 6.5, 5), requires_grad=True)
    found = ours.splev(places, tck)
    np.testing.assert_allclose(found.detach().numpy(), wanted(places.detach().numpy()), rtol=1e-9)
    (slope,) = vg.autograd.grad(found.sum(), places)
    np.testing.assert_allclose(slope.numpy(), wanted(places.detach().numpy(), 1), rtol=1e-8)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids_of_one_point_and_nan_match_scipy(method):
    rng = np.random.default_rng(0)
    x, y, values = np.array([2.0]), np.array([1.0, 2.0, 4.0]), rng.normal(size=(1, 3, 2))
    places = [(2.0, 1.5), np.array([2.0, 3.0]), np.array([[2.0, 1.2], [2.0, np.nan], [2.5, 1.0], [2.0, 9.0]])]
    for fill in (np.nan, None, 7.0):
        if fill is None and method == "linear":
            continue  # SciPy does not extrapolate along this axis
        found = ours.RegularGridInterpolator((x, y), vg.Tensor(values), method, False, fill)
        wanted = theirs.RegularGridInterpolator((x, y), values, method, False, fill)
        for place in places:
            np.testing.assert_allclose(found(place).numpy(), wanted(place), rtol=1e-12)
            assert found(place).shape == wanted(place).shape
    with pytest.raises(ValueError, match="strictly ascending or descending"):
        ours.RegularGridInterpolator((y[[0, 2, 1]],), rng.normal(size=3))


def test_complex_values_on_a_grid_stay_complex():
    x, values = np.arange(4.0), np.exp(1j * np.arange(4.0))
    for method in ("slinear", "linear", "cubic"):
        found = ours.RegularGridInterpolator((x,), values, method)(np.array([[0.3], [2.2]]))
        wanted = theirs.RegularGridInterpolator((x,), values, method)(np.array([[0.3], [2.2]]))
        np.testing.assert_allclose(found.numpy(), wanted)


def test_splines_with_repeated_knots_have_as_many_derivatives_as_in_scipy():
    t, c = np.array([0.0] * 4 + [2.0, 2.0] + [4.0] * 4), np.cos(np.arange(10.0))
    places = np.array([0.5, 1.9, 3.0])
    found = ours.splev(places, ours.splder((t, vg.Tensor(c, requires_grad=True), 3), 2))
    np.testing.assert_allclose(found.detach().numpy(), theirs.splev(places, theirs.splder((t, c, 3), 2)), rtol=1e-10)
    for module, weights in ((ours, vg.Tensor(c, requires_grad=True)), (theirs, c)):
        with pytest.raises(ValueError, match="not differentiable 3 times"):
            module.splder((t, weights, 3), 3)


def test_gradients_of_derived_splines_flow_to_knots_and_coefficients():
    t, c, k = theirs.splrep(np.arange(7.0), np.cos(np.arange(7.0)))
    places = np.array([0.7, 2.2, 4.9])

    def moments(t, c):
        derived, integrated = ours.splder((t, c, k), 2), ours.splantider((t, c, k))
        return ours.splev(places, derived) * ours.splev(places, integrated)

    knots = np.cumsum(np.ones(len(t))) * 0.9
    assert gradcheck(moments, [vg.Tensor(each, requires_grad=True) for each in (knots, c[: len(t) - k - 1])])


def test_insert_does_not_use_coefficients_that_fitpack_ignores():
    """SciPy leaves them uninitialized; zero times NaN is NaN."""
    t, c, k = theirs.splrep(X, Y)
    given = vg.Tensor(np.concatenate([c[: -k - 1], np.full(k + 1, np.nan)]), requires_grad=True)
    found = ours.insert(1.1, (t, given, k))
    np.testing.assert_allclose(found[1].detach().numpy()[: -k - 1], theirs.insert(1.1, (t, c, k))[1][: -k - 1])
    found[1].sum().backward()
    assert np.isfinite(found[1].detach().numpy()).all()
    np.testing.assert_allclose(given.grad.numpy().sum(), np.sum(given.grad.numpy()[: -k - 1]))
    periodic = theirs.splrep(X, np.append(Y[:-1], Y[0]), per=True)
    inserted = ours.insert(1.1, periodic, m=2, per=1), theirs.insert(1.1, periodic, m=2, per=1)
    np.testing.assert_allclose(ours.splev(PLACES, inserted[0]), theirs.splev(PLACES, inserted[1]))
