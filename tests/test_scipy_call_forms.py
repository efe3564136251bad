"""Rarely used options of SciPy's functions: values, dtypes and errors are SciPy's, gradients finite differences'."""

import warnings

import numpy as np
import pytest

theirs = pytest.importorskip("scipy")
for _module in ("interpolate", "signal", "sparse", "spatial"):
    pytest.importorskip(f"scipy.{_module}")

import scipy.signal  # noqa: E402
import scipy.sparse.linalg  # noqa: E402

import viewgrad as vg  # noqa: E402
import viewgrad.scipy as ours  # noqa: E402
from viewgrad.autograd import grad  # noqa: E402

RNG = np.random.default_rng(0)
PLACES = (np.array([0, 2, 1, 0, 2, 0]), np.array([0, 1, 3, 0, 0, 2]))  # one of them twice
STORED, POINTS = RNG.normal(size=6), RNG.random((12, 2))


def stored(m, d, kind):
    return getattr(m.sparse, kind)((d, PLACES), shape=(3, 4))


def reductions():
    for kind in ("coo_array", "csr_array", "csc_matrix"):
        for axis in (None, 0, 1, -1, -2, (0,), (1,), (0, 1), (-1, 0)):
            for name in ("sum", "mean"):
                yield (
                    f"{name}-{kind}-{axis}",
                    lambda m, d, k=kind, a=axis, n=name: getattr(stored(m, d, k), n)(axis=a),
                    (STORED,),
                )
        yield f"real-{kind}", lambda m, d, k=kind: stored(m, d, k).mean(0), (STORED + 1j * STORED[::-1],)
        yield f"single-{kind}", lambda m, d, k=kind: stored(m, d, k).mean(0), (STORED.astype("f4"),)
        yield f"empty-{kind}", lambda m, d, k=kind: getattr(m.sparse, k)((3, 4)).sum() * d, (STORED,)
    for axis in (None, 0, 1):
        for dtype in (bool, "i1", "u2", "f4"):
            yield (
                f"sum-{dtype}-{axis}",
                lambda m, a=axis, t=dtype: m.sparse.csr_array(np.eye(3, 4, dtype=t)).sum(a),
                (),
            )


def stored_parts():
    for kind in ("coo_array", "csr_array", "csc_array", "csr_matrix", "csc_matrix"):
        calls = {
            "data": lambda a: a.data.sum() if a.format == "coo" else a.data,
            "count": lambda a: (a.data * a.data).sum() * a.nnz,
            "nonzero": lambda a: [
                np.stack(a.tocsr().nonzero()).astype(int),
                a.count_nonzero(),
                a.argmax(),
                a.data.sum(),
            ],
            "canonical": lambda a: [a.has_canonical_format, a.data.sum()],
            "rows": lambda a: a.tocsr()[1:].toarray(),
            "element": lambda a: a.tocsr()[0, 2],
            "power": lambda a: a.power(2, dtype=float).toarray(),
            "round": lambda a: a.toarray() + round(a * 7.0).toarray(),
            "duplicates": lambda a: (a.sum_duplicates(), a.data * a.nnz)[1] if a.format == "csr" else a.data.sum(),
            "zeros": lambda a: (lambda b: (b.eliminate_zeros(), b.toarray() * b.nnz)[1])(
                a.tocsr().multiply(np.eye(3, 4)).tocsr()
            ),
        }
        if "matrix" in kind:
            calls["row"] = lambda a: a[1].toarray()
            calls["column"] = lambda a: a[:, 2].toarray()
            calls["getrow"] = lambda a: a.getrow(0).toarray()
            calls["getcol"] = lambda a: a.getcol(2).toarray()
        for name, call in calls.items():
            yield f"{name}-{kind}", lambda m, d, k=kind, f=call: f(stored(m, d, k)), (STORED,)


def trees():
    for p in (1, 2, 3.5, np.inf):
        for box in (None, 1.0, [1.0, 0.0], [1.5, 1.0]):
            yield (
                f"tree-{p}-{box}",
                lambda m, x, y, p=p, b=box: m.spatial.KDTree(x, boxsize=b).query(y, 3, p=p)[0],
                (POINTS, POINTS[:5] + [1.03, -1.02]),
            )
        yield (
            f"distances-{p}",
            lambda m, x, y, p=p: (
                m.spatial.KDTree(x)
                .sparse_distance_matrix(m.spatial.KDTree(y), 0.4, p, output_type="coo_matrix")
                .tocsr()
                .sum(0)
            ),
            (POINTS, POINTS[:5] + [0.03, 0.02]),
        )


X, Y = np.array([-1.0, 0.3, 1.1, 2.0, 3.4, 4.5]), RNG.normal(size=6)
BLOCK, FRESH = RNG.normal(size=(3, 6, 2)), np.array([-1.3, 0.25, 1.7, 4.4, 5.0])
WEIGHTS = RNG.normal(size=(2, 4, 5, 3))  # an extra axis, powers, pieces, and an extra axis
LATER = X[-1] + np.array([0.0, 0.5, 1.5])


def interpolants():
    for kind in (
        "linear",
        "nearest",
        "nearest-up",
        "previous",
        "next",
        "zero",
        "slinear",
        "quadratic",
        "cubic",
        0,
        1,
        4,
    ):
        for fill in (np.nan, "extrapolate"):
            yield (
                f"interp1d-{kind}-{fill}",
                lambda m, x, y, p, k=kind, f=fill: m.interpolate.interp1d(
                    x, y, k, axis=1, bounds_error=False, fill_value=f
                )(p),
                (X, BLOCK, FRESH),
            )
        for dtype in ("f4", "F", "i8"):
            yield (
                f"interp1d-{kind}-{dtype}",
                lambda m, y, k=kind, t=dtype: m.interpolate.interp1d(np.arange(6, dtype="f4"), y.astype(t), k)(
                    np.array([0.4, 3.2], "f4")
                ),
                (Y.astype("f4"),),
            )
        yield (
            f"interp1d-{kind}-missing",
            lambda m, y, k=kind: m.interpolate.interp1d(
                [0, 1, 2, 3, 4, 5], np.where(np.arange(6) == 2, np.nan, 1.0) * y, k
            )([0.5, 1.0, 1.5, 2.0, 3.0, 3.3]),
            (Y,),
        )
    yield (
        "interp1d attributes",
        lambda m, y: (lambda f: (f.x, f.y))(m.interpolate.interp1d(X[::-1], y, axis=1)),
        (BLOCK,),
    )
    pairs = ([(1, 0.5)], [(2, 0.3)]), ([(1, 0.5), (2, 0.1)], None), ("natural", [(1, 2.0)]), "clamped", "natural"
    for ends in (None, *pairs):
        yield (
            f"spline-{ends}",
            lambda m, x, y, p, e=ends: m.interpolate.make_interp_spline(x, y, bc_type=e)(p),
            (X, Y, FRESH),
        )
    yield (
        "spline of slopes of rows",
        lambda m, y, s: m.interpolate.make_interp_spline(X, y, bc_type=([(1, s)], "natural"), axis=1)(FRESH),
        (BLOCK, RNG.normal(size=(3, 2))),
    )
    yield (
        "spline of slopes",
        lambda m, y, s: m.interpolate.make_interp_spline(X, y, 5, bc_type=([(1, s), (2, s * s)], [(1, s), (2, s)]))(
            FRESH
        ),
        (Y, np.array(0.7)),
    )
    for degree in range(5):
        yield (
            f"spline-{degree}",
            lambda m, x, y, p, k=degree: m.interpolate.make_interp_spline(x, y, k)(p),
            (X, Y, FRESH[1:4]),
        )
        yield f"spline values-{degree}", lambda m, y, k=degree: m.interpolate.make_interp_spline(X, y, k)(X), (Y,)
        yield (
            f"spline parts-{degree}",
            lambda m, y, k=degree: m.interpolate.make_interp_spline(X, y, k, axis=1).tck[:2],
            (BLOCK,),
        )
        yield (
            f"complex-{degree}",
            lambda m, y, k=degree: m.interpolate.make_interp_spline(X, y, k)(X),
            (Y + 1j * Y[::-1],),
        )
    knots = np.array([-1.0, -1, -1, -1, 1.5, 4.5, 4.5, 4.5, 4.5])
    for weights in (None, np.array([1.0, 0.5, 2.0, 1.0, 0.3, 1.0])):
        yield (
            f"least squares-{weights is None}",
            lambda m, x, y, p, w=weights: m.interpolate.make_lsq_spline(x, y, knots, w=w, axis=1)(p),
            (X[[0, 1, 2, 3, 4, 5]] * 0.99, BLOCK, FRESH),
        )
    yield (
        "least squares of all",
        lambda m, x, y, t, w: m.interpolate.make_lsq_spline(
            x, y, m.interpolate.BSpline(np.r_[[-1.5] * 4, 0, [4.6] * 4] + 0 * t, np.ones(5), 3).t, w=w
        )(FRESH),
        (X, Y, np.array(0.0), np.array([1.0, 0.5, 2.0, 1.0, 0.3, 1.0])),
    )
    for name in ("KroghInterpolator", "BarycentricInterpolator"):
        yield f"{name}-single", lambda m, y, n=name: getattr(m.interpolate, n)(X, y)(2.5), (Y.astype("f4"),)
    repeated = [0.0, 0.0, 0.0, 1.0, 2.0, 2.0]
    for order in range(4):
        yield (
            f"hermite-{order}",
            lambda m, y, p, o=order: m.interpolate.KroghInterpolator(repeated, y, axis=1).derivative(p, o),
            (BLOCK, FRESH),
        )


def pieces():
    for name in ("PPoly", "BPoly"):

        def made(m, c, x, n=name, **options):
            return getattr(m.interpolate, n)(c, x, **options)

        yield f"{name}-axis", lambda m, c, x, p, f=made: f(m, c, x, axis=1)(p), (WEIGHTS, X, FRESH)
        yield f"{name}-shape", lambda m, c, x, p, f=made: f(m, c[0], x)(p.reshape(5, 1), 1), (WEIGHTS, X, FRESH)
        yield (
            f"{name}-parts",
            lambda m, c, x, f=made: (lambda q: (q.c, q.x))(f(m, c, x, axis=1).derivative()),
            (WEIGHTS, X),
        )
        for order in (-2, -1, 1, 2, 4, 5):
            yield (
                f"{name}-slope-{order}",
                lambda m, c, x, p, f=made, o=order: (lambda q: (q.c, q(p)))(f(m, c, x, axis=1).derivative(o)),
                (WEIGHTS, X, FRESH),
            )
        yield f"{name}-integral", lambda m, c, x, f=made: f(m, c, x, axis=1).integrate(-0.5, 3.0), (WEIGHTS, X)
        yield f"{name}-single", lambda m, c, f=made: f(m, c, X, axis=1)(FRESH), (WEIGHTS.astype("f4"),)
        yield (
            f"{name}-fast",
            lambda m, c, x, p, n=name: getattr(m.interpolate, n).construct_fast(c, x, False)(p),
            (WEIGHTS[0], X, FRESH),
        )
        for place in (LATER[1:], X[0] - LATER[:0:-1]):
            yield (
                f"{name}-extend-{place[0]:.1f}",
                lambda m, c, x, p, f=made, e=place: (lambda q: (q.extend(c[:, :2] * 2.0, e), q.c, q(p))[1:])(
                    f(m, c, x)
                ),
                (WEIGHTS[0], X, np.array([-5.3, -1.7, 0.2, 4.6, 5.2])),
            )
        yield (
            f"{name}-extend-degree",
            lambda m, c, x, p, f=made: (lambda q: (q.extend(c[:3, :2], LATER[1:]), q(p))[1])(f(m, c, x)),
            (WEIGHTS[0], X, np.array([0.2, 4.6, 5.2])),
        )
        yield (
            f"{name}-extend-down",
            lambda m, c, x, p, f=made: (lambda q: (q.extend(c[:, :2], X[0] - LATER[1:]), q(p))[1])(f(m, c, x[::-1])),
            (WEIGHTS[0], X, np.array([0.2, -4.6, -5.2])),
        )
    yield (
        "to powers",
        lambda m, c, x, p: (lambda q: (q.c, q(p)))(m.interpolate.PPoly.from_bernstein_basis(m.interpolate.BPoly(c, x))),
        (WEIGHTS[0], X, FRESH),
    )
    yield (
        "to bernstein",
        lambda m, c, x, p: (lambda q: (q.c, q(p)))(m.interpolate.BPoly.from_power_basis(m.interpolate.PPoly(c, x))),
        (WEIGHTS[0], X, FRESH),
    )
    for orders in (None, 2, 4, [1, 2, 3, 4, 5]):
        yield (
            f"from derivatives-{orders}",
            lambda m, x, y, o=orders: (lambda q: (q.c, q(FRESH[1:4])))(m.interpolate.BPoly.from_derivatives(x, y, o)),
            (X, RNG.normal(size=(6, 3, 2))),
        )
    yield (
        "from uneven derivatives",
        lambda m, y: m.interpolate.BPoly.from_derivatives([0, 1, 2], [[y[0], y[1]], [y[2]], [y[3], y[4], y[5]]])(FRESH),
        (Y,),
    )


GRID = (np.array([0.0, 0.4, 1.3, 2.0, 2.2, 3.1]), np.array([3.0, 2.1, 1.2, 0.9, 0.2, -0.5, -0.8]))
ON_GRID = RNG.normal(size=(6, 7, 2))
NEAR = np.array([[0.3, 1.1], [1.9, -0.3], [0.9, 0.5], [2.15, 2.5]])


def solve(a, b, **options):
    """Solve exactly what `RegularGridInterpolator` solves up to a tolerance."""
    return scipy.sparse.linalg.spsolve(a.tocsc(), b), 0


def dimensions():
    for method in ("slinear", "cubic", "quintic", "pchip", "slinear_legacy", "cubic_legacy", "quintic_legacy"):
        options = {} if "legacy" in method or method == "pchip" else {"solver": solve}
        yield (
            f"grid-{method}",
            lambda m, v, p, n=method, o=options: m.interpolate.RegularGridInterpolator(GRID, v, n, **o)(p),
            (ON_GRID, NEAR),
        )
        for fill in (None, 0.3):
            yield (
                f"grid-{method}-beyond-{fill}",
                lambda m, v, p, n=method, o=options, f=fill: m.interpolate.RegularGridInterpolator(
                    GRID, v, n, bounds_error=False, fill_value=f, **o
                )(p),
                (ON_GRID[..., 0], np.append(NEAR, [[-0.1, 0.0], [1.0, 3.3]], axis=0)),
            )
        if options:
            yield (
                f"grid-{method}-slopes",
                lambda m, v, p, n=method: m.interpolate.RegularGridInterpolator(GRID, v, n, solver=solve)(p, nu=(1, 0)),
                (ON_GRID, NEAR),
            )
    knots = (np.array([-1.0, -1, -1, 0.2, 1.1, 2, 2, 2]), np.array([0.0, 0, 0, 0, 1, 3, 3, 3, 3]))
    c = RNG.normal(size=(5, 5, 2))
    places = np.array([[0.1, 0.5], [1.5, 2.0], [-0.5, 1.2], [2.5, 3.5]])
    for beyond in (True, False):
        yield (
            f"spline in two-{beyond}",
            lambda m, c, p, s, e=beyond: m.interpolate.NdBSpline((knots[0] * s, knots[1]), c, (2, 3), extrapolate=e)(p),
            (c, places, np.array(1.1)),
        )
    for orders in ((1, 0), (0, 2), (1, 1)):
        yield (
            f"spline in two-{orders}",
            lambda m, c, p, o=orders: m.interpolate.NdBSpline(knots, c, (2, 3))(p, nu=o),
            (c, places),
        )
        yield (
            f"spline in two-derivative-{orders}",
            lambda m, c, p, o=orders: m.interpolate.NdBSpline(knots, c, (2, 3)).derivative(o)(p),
            (c, places),
        )
    x, y, c = np.array([0.0, 0.7, 2.0]), np.array([-1.0, 0.5, 1.1, 1.9]), RNG.normal(size=(3, 2, 2, 3, 2))
    places = np.array([[0.3, 0.2], [1.9, 1.0], [0.8, -2.0]])

    def polynomial(m, c, x, y, **options):
        return m.interpolate.NdPPoly(c, (x, y), **options)

    for orders in (None, (1, 0), (0, 1), (2, 1), (3, 0)):
        yield f"pieces in two-{orders}", lambda m, c, x, y, p, o=orders: polynomial(m, c, x, y)(p, o), (c, x, y, places)
        if orders is not None:
            for name in ("derivative", "antiderivative"):
                yield (
                    f"pieces in two-{name}-{orders}",
                    lambda m, c, x, y, p, o=orders, n=name: getattr(polynomial(m, c, x, y), n)(o)(p),
                    (c, x, y, places),
                )
    yield "pieces in two-ends", lambda m, c, x, y, p: polynomial(m, c, x, y, extrapolate=False)(p), (c, x, y, places)
    yield "pieces in two-box", lambda m, c, x, y: polynomial(m, c, x, y).integrate(((0.1, 1.0), (0.0, 1.5))), (c, x, y)
    for axis in (0, 1, -1):
        yield (
            f"pieces in two-strip-{axis}",
            lambda m, c, x, y, a=axis: polynomial(m, c, x, y).integrate_1d(0.1, 1.5, a)([0.3, 1.0]),
            (c, x, y),
        )
    yield "basis", lambda m, t, p: m.interpolate.BSpline.basis_element(t)(p), (X[:5], FRESH)


SAMPLES, TAPS = RNG.normal(size=40), RNG.normal(size=5)
TOP, BOTTOM = np.array([1.0, 0.3, -0.2]), np.array([1.0, -0.4, 0.3, 0.1])
SYSTEM = [RNG.normal(size=size) * 0.4 for size in ((3, 3), (3, 2), (2, 3), (2, 2))]


def signals():
    """Yield calls of `scipy.signal`, those named "single" for single precision too."""
    for axis in (0, 1, -2):
        block = RNG.normal(size=(40, 30))
        yield f"stft-{axis}", lambda m, x, a=axis: m.signal.stft(x, nperseg=8, axis=a), (block,)
        for mode in ("psd", "complex", "magnitude", "phase"):
            yield (
                f"spectrogram-{axis}-{mode}",
                lambda m, x, a=axis, o=mode: m.signal.spectrogram(x, nperseg=8, axis=a, mode=o),
                (block,),
            )
    many = {
        "lfilter": lambda m, x, h: m.signal.lfilter(h, BOTTOM.astype(h.dtype), x),
        "lfilter-state": lambda m, x, h: m.signal.lfilter(h, h * 0.1, x, zi=h[:4]),
        "lfilter_zi": lambda m, x, h: m.signal.lfilter_zi(h, BOTTOM.astype(h.dtype)),
        "lfiltic": lambda m, x, h: m.signal.lfiltic(h, BOTTOM.astype(h.dtype), x[:3]),
        "filtfilt": lambda m, x, h: m.signal.filtfilt(h, BOTTOM.astype(h.dtype), x),
        "doubles": lambda m, x, h: m.signal.lfilter([0.2], [1.0, 0.3], x),
        "sosfilt": lambda m, x, h: m.signal.sosfilt(np.array([[1, 0.1, 0, 1, 0.3, 0.1]], h.dtype), x),
        "sosfiltfilt": lambda m, x, h: m.signal.sosfiltfilt(np.array([[1, 0.1, 0, 1, 0.3, 0.1]], h.dtype), x),
        "detrend": lambda m, x, h: m.signal.detrend(x),
        "hilbert": lambda m, x, h: m.signal.hilbert(x),
        "savgol": lambda m, x, h: m.signal.savgol_filter(x, 5, 2),
        "upfirdn": lambda m, x, h: m.signal.upfirdn(h, x, 2, 3),
        "resample_poly": lambda m, x, h: m.signal.resample_poly(x, 2, 3),
        "decimate": lambda m, x, h: m.signal.decimate(x, 2),
        "decimate-fir": lambda m, x, h: m.signal.decimate(x, 2, ftype="fir"),
        "resample": lambda m, x, h: m.signal.resample(x, 30),
        "welch": lambda m, x, h: m.signal.welch(x, nperseg=8),
        "csd": lambda m, x, h: m.signal.csd(x, x * x, nperseg=8),
        "coherence": lambda m, x, h: m.signal.coherence(x, x * x, nperseg=8),
        "periodogram": lambda m, x, h: m.signal.periodogram(x),
        "istft": lambda m, x, h: m.signal.istft(x.reshape(5, 8) * 1j + x.reshape(5, 8)),
        "freqz": lambda m, x, h: m.signal.freqz(h, BOTTOM.astype(h.dtype), 8),
        "freqz-places": lambda m, x, h: m.signal.freqz(h, 1, np.linspace(0, 1, 4)),
        "zpk2tf": lambda m, x, h: m.signal.zpk2tf(h[:2], h[1:], x[0]),
        "symiirorder1": lambda m, x, h: m.signal.symiirorder1(x, 0.5, 0.3),
        "sepfir2d": lambda m, x, h: m.signal.sepfir2d(x.reshape(5, 8), h[:3], h),
    }
    for name, call in many.items():
        yield name, call, (SAMPLES, TAPS)
        yield f"{name}-single", call, (SAMPLES.astype("f4"), TAPS.astype("f4"))
    yield (
        "sepfir2d-image",
        lambda m, x: m.signal.sepfir2d(x, [1.0, 2, 3], [0.5, 0.1, 0.2, 0.3, 0.1]),
        (RNG.normal(size=(6, 8)),),
    )
    for shape in ((3, 1), (3, 4, 1), (3, 5)):
        yield f"freqz-{shape}", lambda m, b: m.signal.freqz(b, [1, 0.5], 5), (RNG.normal(size=shape),)
    yield (
        "freqz-both",
        lambda m, b, a, w: m.signal.freqz(b, a, w),
        (RNG.normal(size=(3, 4, 1)), RNG.normal(size=(2, 4, 1)), np.array([0.1, 0.5, 1.0])),
    )
    yield "freqz-shape", lambda m, b, w: m.signal.freqz(b, 1, w), (TAPS, RNG.random((2, 3)))
    yield "freqs_zpk", lambda m, k: m.signal.freqs_zpk([], [], k, np.array([1.0, 2.0])), (np.array(1.5),)
    yield (
        "bilinear",
        lambda m, b, a: m.signal.bilinear(b * [0, 0, 1], a * [0, 1, 1, 1], 0.5),
        (np.array([0.1, 0.2, 0.3]), np.array([0.3, 1, 0.5, 0.2])),
    )
    yield "tf2zpk", lambda m, b: m.signal.tf2zpk(b, BOTTOM.astype("f4")), (TOP,)
    yield (
        "sos2zpk",
        lambda m, s: m.signal.sos2zpk(s),
        (np.array([[1.0, 0.2, 0.3, 1, 0.1, 0.2], [2.0, 0.5, 0.0, 1, -0.3, 0.05]]),),
    )
    gains = np.array([0.1, 1.0, 0.8, 0.3, 0.0])
    yield "firwin2", lambda m, g: m.signal.firwin2(20, [0, 0.3, 0.3, 0.6, 1], g * [1, 1, 1, 1, 0]), (gains,)
    yield "firwin2-odd", lambda m, g: m.signal.firwin2(21, [0, 3, 4, 6, 10], g, fs=20, nfreqs=40, window=None), (gains,)
    for count in (20, 21):
        yield (
            f"firwin2-anti-{count}",
            lambda m, g, n=count: m.signal.firwin2(n, [0, 0.3, 0.4, 0.6, 1], g * [0, 1, 1, 1, 0], antisymmetric=True),
            (gains,),
        )
    yield (
        "firwin2-edges",
        lambda m, f, g: m.signal.firwin2(21, f * [0, 1, 1, 1, 0] + [0, 0, 0, 0, 1], g),
        (np.array([0.0, 0.31, 0.4, 0.62, 1.0]), gains),
    )
    for half in (True, False):
        yield (
            f"minimum_phase-{half}",
            lambda m, h, o=half: m.signal.minimum_phase(h, n_fft=128, half=o),
            (np.array([0.1, 0.3, 1.0, 0.3, 0.1]) + 0.01,),
        )
    yield (
        "sweep_poly",
        lambda m, t, p, f: m.signal.sweep_poly(t, p, f * 1.0),
        (np.linspace(0, 1, 6), TOP, np.array(30.0)),
    )
    for top in (np.array([0.7, -0.2]), np.array([1.0, 0.5, -0.3, 0.2, 0.4])):
        for name in ("residue", "residuez"):
            yield f"{name}-{len(top)}", lambda m, b, a, n=name: getattr(m.signal, n)(b, a), (top, BOTTOM * 1.3)
    for name in ("invres", "invresz"):
        for rest in ([], [0.3], [0.2, 0.5, 0.7]):
            yield (
                f"{name}-{rest}",
                lambda m, r, p, k=rest, n=name: getattr(m.signal, n)(r, p, k),
                (TAPS, np.array([0.3, 0.3, 0.5, -0.2, 0.1])),
            )
        yield f"{name}-gain", lambda m, k, n=name: getattr(m.signal, n)([1.0, 2.0], [0.5, 0.3], k), (TOP,)
    for name, size in (("cspline1d", 12), ("qspline1d", 12), ("cspline1d", 1)):
        yield f"{name}-{size}", lambda m, x, n=name: getattr(m.signal, n)(x), (SAMPLES[:size],)
    beyond = np.array([-13.3, -0.4, 0.3, 1.7, 3.9, 4.7, 9.2, 14.7])
    for name in ("cspline1d_eval", "qspline1d_eval"):
        yield name, lambda m, c, x, n=name: getattr(m.signal, n)(c, x, 1.1, 0.2), (TAPS, beyond)
    for name in ("cspline2d", "qspline2d"):
        yield name, lambda m, x, n=name: getattr(m.signal, n)(x), (RNG.normal(size=(25, 21)),)
    yield (
        "symiirorder1-whole",
        lambda m, x: m.signal.symiirorder1(x, 0.4, 0.5, 1.0),
        (SAMPLES,),
    )
    for precision in (0.5, 0.25, 0.1):
        yield (
            f"symiirorder1-{precision}",
            lambda m, x, p=precision: m.signal.symiirorder1(x, 0.4, 0.5, p),
            (SAMPLES,),
        )
    yield (
        "symiirorder1-parts",
        lambda m, x: m.signal.symiirorder1(x, 0.4, -0.6, 1e-3),
        (RNG.normal(size=(2, 30)),),
    )


def systems():
    """Yield calls with linear systems."""
    yield "dlsim", lambda m, a, b, c, d, u: m.signal.dlsim((a, b, c, d, 0.5), u), (*SYSTEM, RNG.normal(size=(6, 2)))
    yield (
        "dlsim-times",
        lambda m, a, b, c, d, u, x: m.signal.dlsim((a, b, c, d, 0.5), u, t=[0.0, 0.4, 1.1, 2.3], x0=x),
        (*SYSTEM, RNG.normal(size=(4, 2)), TOP),
    )
    yield (
        "dlsim-state",
        lambda m, a, b, c, d, x: m.signal.dlsim((a, b, c, d, 1), np.ones((4, 2)), x0=x),
        (*SYSTEM, np.array(0.5)),
    )
    for name in ("dstep", "dimpulse"):

        def made(m, *parts, name=name, **options):
            return getattr(m.signal, name)((*parts, 0.5), **options)

        yield name, lambda m, *parts, f=made: f(m, *parts, n=5), tuple(SYSTEM)
        yield f"{name}-times", lambda m, *parts, f=made: f(m, *parts, t=[0, 1, 3.0], x0=TOP), tuple(SYSTEM)
        yield f"{name}-tf", lambda m, *parts, f=made: f(m, *parts, n=6), (TOP[:2], BOTTOM)
    yield "dfreqresp", lambda m, b, a: m.signal.dfreqresp((b, a, 0.5), [0.1, 1.0, 2.0]), (TOP[:2], BOTTOM)
    yield "dfreqresp-zpk", lambda m, z, p: m.signal.dfreqresp((z, p, 0.3, 0.5), n=6), (TOP[:2], TAPS[:3] * 0.3)
    yield (
        "dfreqresp-ss",
        lambda m, a, b: m.signal.dfreqresp((a, b, [TOP], [[0.2]], True), n=6),
        (SYSTEM[0], SYSTEM[1][:, :1]),
    )
    yield "dbode", lambda m, b, a: m.signal.dbode((b, a, 0.5), n=6), (TOP[:2], BOTTOM)
    times = np.linspace(0, 2, 7)
    for system in (
        scipy.signal.lti(*SYSTEM),
        scipy.signal.lti(TOP[:2], BOTTOM),
        scipy.signal.lti([0.3], [-0.2, -1], 0.7),
    ):
        inputs = 2 if system.inputs == 2 else 1
        yield (
            f"lsim-{type(system).__name__}",
            lambda m, u, s=system: m.signal.lsim(s, u, times),
            (RNG.normal(size=(7, inputs)) if inputs == 2 else RNG.normal(size=7),),
        )
    yield (
        "dlsim-object",
        lambda m, u: m.signal.dlsim(scipy.signal.dlti(TOP[:2], BOTTOM, dt=0.5), u),
        (RNG.normal(size=6),),
    )


CASES = [*reductions(), *stored_parts(), *trees(), *interpolants(), *pieces(), *dimensions(), *signals(), *systems()]


def values(found):
    """Return the arrays in a result, one after another."""
    if isinstance(found, (tuple, list)):
        return [each for item in found for each in values(item)]
    if isinstance(found, vg.numpy.matrix):
        found = found.A
    if isinstance(found, vg.Tensor):
        found = found.detach().numpy()
    return [np.asarray(found)]


def tensors(found):
    if isinstance(found, (tuple, list)):
        return [each for item in found for each in tensors(item)]
    return [found.A if isinstance(found, vg.numpy.matrix) else found]


@pytest.mark.parametrize(("call", "arrays"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_calls_agree_with_scipy_and_finite_differences(call, arrays):
    leaves = [vg.Tensor(each.copy(), requires_grad=True) for each in arrays]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, expected = call(ours, *leaves), values(call(theirs, *arrays))
        mine = values(found)
        single = any(each.dtype.char in "fF" for each in arrays)
        for got, wanted in zip(mine, expected, strict=True):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-4 if single else 1e-8, atol=1e-5 if single else 1e-10)
        if not arrays or single:
            return
        rng = np.random.default_rng(1)
        known = [np.isfinite(each) for each in expected]
        weights = [rng.normal(size=each.shape) + 1j * rng.normal(size=each.shape) for each in expected]
        steps = [rng.normal(size=each.shape) + 1j * rng.normal(size=each.shape) for each in arrays]
        steps = [step if each.dtype.kind == "c" else step.real for each, step in zip(arrays, steps)]

        def weighed(results):
            terms = zip(results, weights, known)
            return sum((each * weight)[mask].sum().real for each, weight, mask in terms if each.dtype.kind in "fc")

        h = 1e-6
        beside = [
            weighed(values(call(theirs, *[each + s * step for each, step in zip(arrays, steps)]))) for s in (h, -h)
        ]
        terms = zip(tensors(found), weights, known)
        loss = sum(
            (each * weight)[mask].sum().real
            for each, weight, mask in terms
            if isinstance(each, vg.Tensor) and each.requires_grad
        )
        slopes = grad(loss, leaves, allow_unused=True)
    slope = sum(
        (np.conj(each.numpy()) * step).sum().real for each, step in zip(slopes, steps) if each is not None
    )  # fmt: skip
    np.testing.assert_allclose(slope, (beside[0] - beside[1]) / (2 * h), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("has_history", [False, True])
def test_the_cross_spectrum_of_a_series_with_itself_is_real(has_history):
    x = vg.Tensor(SAMPLES.copy(), requires_grad=has_history)
    found, expected = ours.signal.csd(x, x, nperseg=8)[1], theirs.signal.csd(SAMPLES, SAMPLES, nperseg=8)[1]
    assert found.dtype == expected.dtype == float
    np.testing.assert_allclose(found.detach().numpy(), expected)


def test_a_nan_beyond_a_spline_does_not_reach_the_gradient_of_its_coefficients():
    knots, places = np.arange(8.0), np.array([1.0, 3.2, 3.7, 9.0])
    for call in (
        lambda c: ours.interpolate.BSpline(knots, c, 3, extrapolate=False)(places),
        lambda c: ours.interpolate.NdBSpline((knots,), c, 3, extrapolate=False)(places[:, None]),
    ):
        c = vg.Tensor([1.0, 2.0, -1.0, 0.5], requires_grad=True)
        np.nansum(call(c)).backward()
        inside = ours.interpolate.BSpline(knots, np.eye(4), 3)(places[1:3]).sum(0)
        np.testing.assert_allclose(c.grad.numpy(), inside)


ERRORS = {
    "piece axis": lambda m, x: m.interpolate.PPoly(x.reshape(1, 2, 3), [0, 1, 2], axis=-1),
    "piece axis 2": lambda m, x: m.interpolate.BPoly(x.reshape(1, 2, 3), [0, 1, 2], axis=2),
    "piece count": lambda m, x: m.interpolate.PPoly(x.reshape(1, 2, 3), [0, 1]),
    "piece order": lambda m, x: m.interpolate.PPoly(x.reshape(2, 3), [0, 1, 0, 2]),
    "periodic": lambda m, x: m.interpolate.make_interp_spline(np.arange(6), x, bc_type="periodic"),
    "duplicates": lambda m, x: m.interpolate.make_interp_spline([0, 0, 1, 2, 3, 4], x),
    "descending": lambda m, x: m.interpolate.make_interp_spline([5, 4, 3, 2, 1, 0], x),
    "too many ends": lambda m, x: m.interpolate.make_interp_spline(np.arange(6), x, bc_type=([(1, 0)] * 2, [(1, 0)])),
    "ends of k=1": lambda m, x: m.interpolate.make_interp_spline(np.arange(6), x, 1, bc_type=([(1, 0)], [(1, 0)])),
    "unknown end": lambda m, x: m.interpolate.make_interp_spline(np.arange(6), x, bc_type=("foo", [(1, 0)])),
    "slopes": lambda m, x: m.interpolate.CubicHermiteSpline(np.arange(6), x, x[:5]),
    "missing": lambda m, x: m.interpolate.CubicHermiteSpline(np.arange(6), x, x * np.nan),
    "missing in a spline": lambda m, x: m.interpolate.CubicSpline(np.arange(6), x * np.nan),
    "length": lambda m, x: m.interpolate.PchipInterpolator(np.arange(5), x),
    "knots": lambda m, x: m.interpolate.BSpline(np.arange(3.0), x, 3),
    "coefficients": lambda m, x: m.interpolate.BSpline(np.arange(11.0), x, 3),
    "krogh": lambda m, x: m.interpolate.KroghInterpolator([0, 1, 0, 2, 3, 4], x),
    "bases": lambda m, x: m.interpolate.BPoly.from_power_basis(m.interpolate.BPoly(x.reshape(2, 3), np.arange(4))),
    "orders": lambda m, x: m.interpolate.BPoly.from_derivatives([0, 1], x.reshape(2, 3), 0),
    "too high orders": lambda m, x: m.interpolate.BPoly.from_derivatives([0, 1], x.reshape(2, 3), 6),
    "fill": lambda m, x: m.interpolate.interp1d(np.arange(6), x, fill_value=[1.0, 2.0], bounds_error=False),
    "one end": lambda m, x: m.interpolate.make_interp_spline(np.arange(6), x, bc_type=1),
    "ends of numbers": lambda m, x: m.interpolate.make_interp_spline(np.arange(6), x, bc_type=(1, 0)),
    "few points": lambda m, x: m.interpolate.RegularGridInterpolator([[0, 1, 2]], x[:3], "cubic")([0.5]),
    "no method": lambda m, x: m.interpolate.RegularGridInterpolator([[0, 1, 2]], x[:3], "foo")([0.5]),
    "slope of a method": lambda m, x: m.interpolate.RegularGridInterpolator([np.arange(6)], x)([0.5], nu=(1,)),
    "knots in one": lambda m, x: m.interpolate.NdBSpline((np.arange(9),), x, 3),
    "table": lambda m, x: m.interpolate.interp1d(np.arange(6), x, "foo"),
    "sparse axis": lambda m, x: stored(m, x, "coo_array").sum(axis=2),
    "sparse axes": lambda m, x: stored(m, x, "coo_array").sum(axis=(0, 0)),
    "sparse no axis": lambda m, x: stored(m, x, "coo_array").sum(axis=()),
    "sparse axis type": lambda m, x: stored(m, x, "coo_array").sum(axis=0.5),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_match_scipy(name):
    with pytest.raises(Exception) as wanted:
        ERRORS[name](theirs, STORED.copy())
    with pytest.raises((ValueError, TypeError, ArithmeticError, NotImplementedError)) as found:
        ERRORS[name](ours, vg.Tensor(STORED.copy(), requires_grad=True))
    assert isinstance(found.value, wanted.type)
