"""Objects of SciPy made by code that is not adopted: gradients flow through their methods."""

import numpy as np
import pytest

import viewgrad as vg

pytest.importorskip("scipy")

from scipy import interpolate, sparse, spatial, stats
from scipy.sparse import linalg as sparse_linalg

RNG = np.random.default_rng(0)
PLACES = np.linspace(0.0, 5.0, 8)
VALUES = np.sin(PLACES)
GRID = np.arange(4.0), np.arange(5.0)
ON_GRID = np.add.outer(GRID[0] ** 2, np.cos(GRID[1]))
MATRIX = sparse.csc_array(np.diag([2.0, 3.0, 4.0]) + 0.3 * np.triu(np.ones((3, 3))))
COMPLEX = sparse.csc_array(MATRIX.toarray() * (1.0 + 0.2j))
SCATTERED = RNG.random((12, 2))
HEIGHTS = SCATTERED[:, 0] ** 2 + SCATTERED[:, 1]
RIGHT = np.array([1.0, 2.0, 3.0])


def at(x):
    return np.array([[0.45, 0.5]]) * x


# By name: an object, and a function of a number and the object.
CASES = {
    "splu": (sparse_linalg.splu(MATRIX), lambda x, k: (k.solve(x * RIGHT) ** 2).sum()),
    "splu of columns, transposed": (
        sparse_linalg.splu(MATRIX), lambda x, k: (k.solve(np.outer(x * RIGHT, [1.0, 2.0]), "T") ** 2).sum(),
    ),
    "splu of complex": (sparse_linalg.splu(COMPLEX), lambda x, k: (abs(k.solve(x * RIGHT + 0j, "H")) ** 2).sum()),
    "spilu": (sparse_linalg.spilu(MATRIX), lambda x, k: k.solve(x * RIGHT).sum()),
    "factorized": (sparse_linalg.factorized(MATRIX), lambda x, k: k(x * RIGHT).sum()),
    "solve": (sparse_linalg.splu(MATRIX).solve, lambda x, k: k(x * RIGHT).sum()),
    "RegularGridInterpolator": (
        interpolate.RegularGridInterpolator(GRID, ON_GRID), lambda x, k: k(np.array([[1.2, 2.3]]) * x)[0],
    ),
    "RegularGridInterpolator, cubic": (
        interpolate.RegularGridInterpolator(GRID, ON_GRID, "cubic", False, None), lambda x, k: k([1.2 * x, 4.3])[0],
    ),
    "RectBivariateSpline": (interpolate.RectBivariateSpline(*GRID, ON_GRID), lambda x, k: k.ev(x, 1.3 * x)),
    "RectBivariateSpline, linear": (
        interpolate.RectBivariateSpline(*GRID, ON_GRID, kx=1, ky=2), lambda x, k: k(x, 1.3 * x)[0, 0],
    ),
    "UnivariateSpline": (interpolate.UnivariateSpline(PLACES, VALUES, s=0.01), lambda x, k: k(x) + k.get_residual()),
    "UnivariateSpline, constant beyond": (
        interpolate.UnivariateSpline(PLACES, VALUES, ext=3), lambda x, k: k(x) + k(x + 9.0) * x,
    ),
    "InterpolatedUnivariateSpline": (
        interpolate.InterpolatedUnivariateSpline(PLACES, VALUES),
        lambda x, k: k(x) + k.derivative()(x) + k.integral(0.0, x),
    ),
    "make_interp_spline": (interpolate.make_interp_spline(PLACES, VALUES), lambda x, k: k(x) + k(x, 1)),
    "make_smoothing_spline": (interpolate.make_smoothing_spline(PLACES, VALUES), lambda x, k: k(x)),
    "Akima1DInterpolator": (interpolate.Akima1DInterpolator(PLACES, VALUES), lambda x, k: k(x)),
    "KroghInterpolator": (
        interpolate.KroghInterpolator(PLACES, np.outer([1.0, 2.0], VALUES), axis=1), lambda x, k: k(x).sum(),
    ),
    "BarycentricInterpolator": (interpolate.BarycentricInterpolator(PLACES, VALUES), lambda x, k: k(x)),
    "LinearNDInterpolator": (interpolate.LinearNDInterpolator(SCATTERED, HEIGHTS), lambda x, k: k(at(x))[0]),
    "LinearNDInterpolator, rescaled": (
        interpolate.LinearNDInterpolator(SCATTERED * [1.0, 9.0], HEIGHTS, 0.0, True), lambda x, k: k(at(x) * [1, 9])[0],
    ),
    "RBFInterpolator": (interpolate.RBFInterpolator(SCATTERED, HEIGHTS), lambda x, k: k(at(x))[0]),
    "RBFInterpolator, gaussian": (
        interpolate.RBFInterpolator(SCATTERED, HEIGHTS, kernel="gaussian", epsilon=3.0, smoothing=0.1, degree=1),
        lambda x, k: k(at(x))[0],
    ),
    "Rbf": (interpolate.Rbf(*SCATTERED.T, HEIGHTS, function="gaussian"), lambda x, k: k(0.45 * x, 0.5)),
    "Rotation": (
        spatial.transform.Rotation.from_euler("xyz", [0.1, 0.2, 0.3]), lambda x, k: (k.apply(x * RIGHT) ** 3).sum(),
    ),
    "product of rotations": (
        spatial.transform.Rotation.from_euler("z", 0.1),
        lambda x, k: (spatial.transform.Rotation.from_rotvec([0.0, x, 0.0]) * k).as_matrix()[0, 1],
    ),
    "gaussian_kde": (stats.gaussian_kde(VALUES, 0.7), lambda x, k: k(x)[0] + k.logpdf(x)[0]),
    "gaussian_kde with weights": (stats.gaussian_kde(VALUES, weights=PLACES + 1.0), lambda x, k: k(x)[0]),
    "multivariate_normal": (
        stats.multivariate_normal([0.0, 1.0], [[2.0, 0.3], [0.3, 1.0]]), lambda x, k: k.logpdf(np.array([x, 0.4])),
    ),
    "multivariate_t": (
        stats.multivariate_t([0.0, 1.0], [[2.0, 0.3], [0.3, 1.0]], 3.0), lambda x, k: k.logpdf(np.array([x, 0.4])),
    ),
    "dirichlet": (stats.dirichlet([1.0, 2.0]), lambda x, k: k.logpdf(np.array([x, 2.0 - x]) / 2.0)),
    "pdf": (stats.gamma(2.0, scale=1.3).pdf, lambda x, k: k(x)),
    "ecdf": (stats.ecdf(VALUES), lambda x, k: x * k.cdf.evaluate(0.3)),
    "dia_array": (sparse.dia_array(MATRIX), lambda x, k: ((k @ (x * RIGHT)) ** 2).sum()),
    "bsr_matrix": (sparse.bsr_matrix(MATRIX), lambda x, k: (k * (x * RIGHT)).sum()),
    "lil_array": (sparse.lil_array(MATRIX), lambda x, k: ((k @ (x * RIGHT)) ** 2).sum() + k[0, 1] * x),
    "csr_array": (sparse.csr_array(MATRIX), lambda x, k: (k.T @ (x * RIGHT)).sum() + k.sum() * x),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_flow_through_objects_made_outside(name):
    made, f = CASES[name]
    step = 1e-5
    expected = f(1.1, made), (f(1.1 + step, made) - f(1.1 - step, made)) / (2 * step)

    def captured(x):
        return f(x, made)

    for derivative in (
        lambda: vg.value_and_grad(f)(1.1, made),
        lambda: vg.value_and_grad(captured)(1.1),
        lambda: vg.value_and_grad(vg.adopt(captured))(vg.Tensor(1.1)),
    ):
        found = derivative()
        np.testing.assert_allclose(float(found[0]), expected[0], rtol=1e-9)
        np.testing.assert_allclose(float(found[1]), expected[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["csr_array", "dia_array", "splu", "RegularGridInterpolator", "ecdf", "Rotation"])
def test_compiled_functions_accept_objects_of_scipy(name):
    made, f = CASES[name]
    run = vg.compile(f)
    expected = vg.value_and_grad(f)(1.1, made)
    for _ in range(3):
        np.testing.assert_allclose(vg.value_and_grad(run)(1.1, made), expected, rtol=1e-12)


def scaled(array):
    array *= 2.0


# By name: a function that makes an object, a function of a number and the object, and one that changes the object.
CHANGES = {
    "RegularGridInterpolator": (
        lambda: interpolate.RegularGridInterpolator((np.arange(3.0),), np.array([0.0, 1.0, 4.0])),
        lambda x, k: k([x])[0], lambda k: scaled(k.values),
    ),
    "method": (
        lambda: interpolate.RegularGridInterpolator((np.arange(3.0),), np.array([0.0, 1.0, 4.0])),
        lambda x, k: k([0.9 * x])[0] * x, lambda k: setattr(k, "method", "nearest"),
    ),
    "gaussian_kde": (
        lambda: stats.gaussian_kde(VALUES), lambda x, k: k(x)[0], lambda k: k.set_bandwidth(0.2),
    ),
    "CubicSpline": (lambda: interpolate.CubicSpline(PLACES, VALUES), lambda x, k: k(x), lambda k: scaled(k.c)),
    "UnivariateSpline": (
        lambda: interpolate.UnivariateSpline(PLACES, VALUES, s=0.1), lambda x, k: k(x),
        lambda k: scaled(k._eval_args[1]),
    ),
    "RectBivariateSpline": (
        lambda: interpolate.RectBivariateSpline(*GRID, ON_GRID), lambda x, k: k.ev(x, x), lambda k: scaled(k.tck[2]),
    ),
    "BarycentricInterpolator": (
        lambda: interpolate.BarycentricInterpolator(PLACES[:4], VALUES[:4]), lambda x, k: k(x),
        lambda k: k.set_yi(VALUES[1:5]),
    ),
    "LinearNDInterpolator": (
        lambda: interpolate.LinearNDInterpolator(SCATTERED, HEIGHTS), lambda x, k: k(np.array([[0.3, 0.35]]) * x)[0],
        lambda k: scaled(k.values),
    ),
    "Rbf": (
        lambda: interpolate.Rbf(*SCATTERED.T, HEIGHTS), lambda x, k: k(0.4 * x, 0.5), lambda k: scaled(k.nodes),
    ),
    "csr_array": (
        lambda: sparse.csr_array(MATRIX), lambda x, k: (k @ (x * RIGHT)).sum(), lambda k: scaled(k.data),
    ),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [lambda f: f, vg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_an_object_are_detected(name, compiled):
    make, f, change = CHANGES[name]
    made = make()
    given, captured = vg.value_and_grad(compiled(f)), vg.value_and_grad(compiled(lambda x: f(x, made)))
    step = 1e-6
    for _ in range(2):
        expected = f(1.5, made), (f(1.5 + step, made) - f(1.5 - step, made)) / (2 * step)
        for _ in range(2):
            np.testing.assert_allclose(np.array(given(1.5, made), float), expected, rtol=1e-6)
            np.testing.assert_allclose(np.array(captured(1.5), float), expected, rtol=1e-6)
        change(made)
