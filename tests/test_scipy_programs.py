"""Plain programs with functions of SciPy, differentiated unmodified: SciPy's values, and slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.constants
from scipy import fftpack, interpolate, ndimage, optimize, signal, sparse, spatial, special, stats
from scipy.sparse.linalg import spsolve

import viewgrad as vg
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.scipy import spatial as our_spatial

ORDER = np.arange(5.0)


def row(x):
    return np.array([x, 1.0, 2.0, x * x, 0.3])


def table(x):
    return np.array([[x, 1.0, 2.0], [x * x, 0.3, 0.2]])


def points(x):
    return np.array([[0.0, 0.0], [x, 0.0], [0.0, 2.0], [x, 2 * x], [0.4, 0.5 * x]])


def of_families(x):
    """Orthogonal polynomials as objects, at a number and at an array."""
    made = [special.legendre(4), special.chebyt(3), special.hermite(4), special.genlaguerre(3, 0.4)]
    made += [special.jacobi(3, 0.2, 0.3), special.sh_legendre(3), special.chebyc(3), special.legendre(0)]
    made += [special.legendre(3, monic=True), special.gegenbauer(3, 0.6, monic=True)]
    return sum(f(x) + f(np.array([x, 0.2])).sum() for f in made) + made[0].weights.sum() * x


def of_periods(x):
    """Return operators of periodic sequences."""
    found = [fftpack.diff(row(x), 2, period=3.0), fftpack.shift(row(x), 0.3), fftpack.hilbert(row(x))]
    found += [fftpack.tilbert(row(x), 0.5), fftpack.itilbert(row(x), 0.5), fftpack.ihilbert(row(x)[:4])]
    found += [f(row(x), 0.3, 0.4) for f in (fftpack.sc_diff, fftpack.cs_diff, fftpack.ss_diff, fftpack.cc_diff)]
    return sum((each * ORDER[: len(each)]).sum() for each in found)


def real_transforms(x):
    found = [f(row(x), n) for f in (fftpack.rfft, fftpack.irfft) for n in (None, 3, 4, 7, 8)]
    total = sum((each * np.arange(len(each))).sum() for each in found)
    return total + (fftpack.rfft(table(x), axis=0) ** 2).sum() + (fftpack.irfft(table(x)) ** 2).sum()


def cosine_transforms(x):
    found = [f(table(x), kind) for f in (fftpack.dct, fftpack.idct, fftpack.dst, fftpack.idst) for kind in (1, 2, 3)]
    found += [fftpack.dctn(table(x)), fftpack.idstn(table(x), 2), fftpack.idctn(table(x), norm="ortho")]
    return sum((each * ORDER[:3]).sum() for each in found)


def fourier_filters(x):
    spectrum = np.fft.fft2(table(x))
    found = [ndimage.fourier_shift(spectrum, (0.3, 0.4)), ndimage.fourier_gaussian(spectrum, sigma=0.5)]
    found += [ndimage.fourier_uniform(spectrum, 3), ndimage.fourier_ellipsoid(spectrum, 2.0)]
    found += [ndimage.fourier_shift(np.fft.rfft(table(x)), [0.3, 0.2], n=3)]
    return sum((np.abs(each) * ORDER[: each.shape[1]]).sum() for each in found)


def scattered(x):
    names = ("multiquadric", "inverse", "gaussian", "linear", "cubic", "quintic", "thin_plate")
    places = np.array([0.0, 1.0, 2.0, x]), np.array([0.3, 2.0, x * x, 1.0])
    values = np.array([x, 2.0, x * x, 1.0])
    made = [interpolate.Rbf(*places, values, function=name, smooth=0.1 * x) for name in names]
    made.append(interpolate.Rbf(*places, values, function="gaussian", epsilon=x))
    return sum(f(np.array([0.5 * x, 0.1]), np.array([0.2, 0.4])).sum() for f in made)


def curve(x):
    through = [np.array([0.0, x, 2.0, 3.0, 4.0, 5.0]), np.array([0.0, 1.0, x, 2.0, 1.0, x])]
    tck, u = interpolate.splprep(through, s=0)
    at_given, _ = interpolate.splprep(through, s=0, k=4, u=np.array([0.0, 0.2, 0.3 * x, 0.7, 0.8, 1.0]))
    return sum(c.sum() for c in at_given[1]) + u[2] + sum(np.sum(each) for each in interpolate.splev([0.1, 0.6], tck))


def bernstein(x):
    pieces = interpolate.BPoly(np.array([[1.0, x], [2.0, 3.0], [x * x, 1.0]]), np.array([0.0, 1.0, 1.0 + x]))
    return pieces(1.2 * x) + pieces.derivative()(0.4) + pieces.integrate(0.2, 1.7)


def least_squares_spline(x):
    spline = interpolate.LSQUnivariateSpline(np.arange(5.0), row(x), [1.5], w=np.arange(1.0, 6.0), k=2)
    return spline(2.2 * x) + spline.integral(0.3, 3.0)


def diagonal_systems(x):
    m = sparse.lil_matrix((4, 4))
    m.setdiag([1.0, 2.0, x, 3.0])
    m.setdiag(x * x, 1)
    m[3, [0, 1]] = [x, 3.0]
    m[2, :] = m[2, :] * 2
    m[1, 1] += x
    return spsolve(m.tocsr(), np.ones(4)).sum() + m[0, 1] + m.nnz


def assembled(x):
    """Return the stiffness matrix of a chain of springs, assembled from their own matrices."""
    stiffness = sparse.lil_matrix((5, 5))
    for number in range(4):
        ends = [number, number + 1]
        stiffness[np.ix_(ends, ends)] += np.array([[1.0, -1.0], [-1.0, 1.0]]) * x * (number + 1)
    stiffness[0, :] = 0
    stiffness[0, 0] = 1.0
    return spsolve(stiffness.tocsc(), np.arange(5.0)).sum()


def written(x):
    a = sparse.lil_array((3, 3))
    a[0, :] = x
    a[:, 2] = np.array([1.0, x, 2.0])
    b = sparse.csr_matrix(np.eye(3) * x).tolil()
    b[[0, 1], [1, 2]] = [x, x * x]
    c = sparse.dok_matrix((3, 3))
    c[2, 1] = x * x
    return (a.T @ a).sum() + (a * 2).sum() + (b.T @ np.arange(3.0)).sum() + (b @ c).toarray()[1, 1] + c[0, 0]


def windows(x):
    found = [signal.windows.kaiser(5, x), signal.get_window(("kaiser", x), 5), signal.get_window(x, 5, False)]
    found += [signal.get_window(("general gaussian", 1.5, x), 5), signal.windows.tukey(5, 0.3 * x), np.kaiser(5, x)]
    return sum((each * ORDER).sum() for each in found)


def finite_responses(x):
    found = [signal.firwin(5, 0.3 * x), signal.firwin(5, 0.3 * x, pass_zero=False, scale=False)]
    found += [signal.firwin(5, [0.2, 0.5 * x]), signal.firwin(5, [20.0, 40 * x], fs=200, pass_zero="bandpass")]
    found += [signal.firwin(5, 0.4, window=("kaiser", x)), signal.firwin(5, 0.3 * x, width=0.2)]
    return sum((each * ORDER).sum() for each in found)


def bins(x):
    values = np.array([[x, x * x, 3.0, x, 2.0], [1.0, x, 2.0, 3.0, 0.1]])
    names = ("mean", "std", "sum", "median", "min", "max", "count", np.sum)
    edges = [0.0, 0.2, 0.3, 0.9]
    return sum(np.nansum(stats.binned_statistic([0.1, 0.5, 0.7, 0.72, 0.8], values, s, edges)[0]) for s in names)


PROGRAMS = {
    each.__name__: each
    for each in (
        of_families, of_periods, real_transforms, cosine_transforms, fourier_filters, scattered, curve, bernstein,
        least_squares_spline, diagonal_systems, assembled, written, windows, finite_responses, bins,
    )
} | {
    "standard forms": lambda x: (
        stats.norm._cdf(x) + stats.gamma._pdf(x, 2.0) + stats.beta._ppf(0.2 * x, 2.0, 3.0) + stats.t._logpdf(x, 3.0)
        + stats.poisson._pmf(2, x) + stats.expon._sf(x)
    ),
    "hull": lambda x: spatial.ConvexHull(points(x)).volume + spatial.ConvexHull(points(x)).area,
    "hull of a solid": lambda x: (
        spatial.ConvexHull(np.concatenate([np.eye(3), x * np.ones((1, 3)), np.zeros((1, 3))])).volume
        * spatial.ConvexHull(np.concatenate([np.eye(3), x * np.ones((1, 3)), np.zeros((1, 3))])).area
    ),
    "triangulation": lambda x: sum(
        np.abs(np.linalg.det(points(x)[corners][1:] - points(x)[corners][0])) * corners[0]
        for corners in spatial.Delaunay(points(x)).simplices
    ),
    "hausdorff": lambda x: spatial.distance.directed_hausdorff(table(x), table(0.9))[0],
    "isotonic": lambda x: (
        (optimize.isotonic_regression(row(x)).x * ORDER).sum()
        + (optimize.isotonic_regression(row(x), weights=row(x) + 1, increasing=False).x * ORDER).sum()
    ),
    "newton_krylov": lambda x: optimize.newton_krylov(
        lambda y: y**3 - x * np.array([1.0, 2.0]), np.ones(2), f_tol=1e-12
    ).sum(),
    "temperatures": lambda x: sum(
        scipy.constants.convert_temperature(x * np.arange(2.0), old, new).sum()
        for old in "CKFR" for new in ("Celsius", "Kelvin", "Fahrenheit", "Rankine")
    ),
    "wavelengths": lambda x: scipy.constants.lambda2nu(x) * 1e-8 + scipy.constants.nu2lambda(x) * 1e-8,
    "trimmed": lambda x: (
        (stats.trimboth(row(x), 0.2) ** 2).sum() + (stats.trim1(row(x), 0.25) ** 2).sum()
        + stats.trim1(row(x), 0.25, "left").sum() + stats.trimboth(table(x).T, 0.34, 0).sum()
    ),
    "percentiles": lambda x: (
        stats.scoreatpercentile(row(x), [10, 40]).sum()
        + stats.scoreatpercentile(row(x), 30, limit=(0.5, 3.0), interpolation_method="lower")
    ),
    "theilslopes": lambda x: (
        sum(stats.theilslopes(row(x))) + stats.theilslopes(row(x), ORDER**2 * x, method="joint").intercept
    ),
    "mgrid": lambda x: (np.mgrid[x : 3 * x : 5j, 0:2:3j] ** 2).sum() + (np.mgrid[0 : 2.1 : 0.5 * x] ** 2).sum(),
    "ogrid": lambda x: (np.ogrid[x:3.9:0.5, 0:2:3j][0] ** 2).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_programs_keep_their_values_and_have_gradients(name):
    f, x, h = PROGRAMS[name], 1.3, 1e-5
    value, slope = vg.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-9)
    expected = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)
    np.testing.assert_allclose(slope, expected, rtol=2e-6, atol=1e-7)


def test_hull_attributes_without_gradient_raise():
    x = vg.Tensor(points(1.3), requires_grad=True)
    hull, plain = our_spatial.ConvexHull(x), our_spatial.ConvexHull(points(1.3))
    np.testing.assert_array_equal(hull.vertices, spatial.ConvexHull(points(1.3)).vertices)
    np.testing.assert_array_equal(plain.equations, spatial.ConvexHull(points(1.3)).equations)
    assert isinstance(hull, our_spatial.ConvexHull)
    with pytest.raises(UnsupportedFunctionError, match="equations"):
        hull.equations


def test_edges_of_bins_have_no_gradient():
    with pytest.raises(UnsupportedFunctionError, match="edges"):
        vg.grad(lambda x: stats.binned_statistic(row(x), ORDER).statistic.sum())(1.3)


def test_complex_elements_do_not_fit_into_a_real_array():
    def f(x):
        a = sparse.lil_matrix((2, 2))
        a[0, 0] = 1j * x
        return x

    with pytest.raises(TypeError, match="complex"):
        vg.grad(f)(1.3)
