"""Calls of functions of SciPy, and of libraries built on NumPy, on tensors, in a separate process.

SciPy reads `SCIPY_ARRAY_API` when it is imported, so `tests/test_scipy_on_tensors.py` runs this file as a script. It
prints, as JSON, the outcome of each program of `PROGRAMS`: "gradients", or the error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings

import numpy as np

os.environ["SCIPY_ARRAY_API"] = "1"
warnings.simplefilter("ignore")

import viewgrad as vg  # noqa: E402 - which may import SciPy

A = np.array([0.3, 1.2, 0.7, 2.1, 1.6, 0.9, 1.1, 0.4])
B = np.array([0.8, 0.5, 1.9, 0.6, 1.3, 0.2, 0.7, 1.5])
M = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [0.5, -0.3, 1.8]])
PROBABILITIES = A / A.sum()
UNIT = np.array([0.1, 0.4, 0.25, 0.6, 0.8, 0.35])

# By module: the name of a function, a call, and the operands to differentiate.
PROGRAMS = {
    "scipy.special": {
        **{
            name: (lambda f, x: f(x), A)
            for name in "gammaln erf erfc expit log_expit softmax log_softmax logsumexp xlogy_self entr i0 i0e i1 i1e "
            "exprel digamma ndtr log_ndtr sinc logsumexp gamma erfinv_of_tanh".split()
            if name not in ("xlogy_self", "erfinv_of_tanh")
        },
        "logit": (lambda f, x: f(x), UNIT),
        "ndtri": (lambda f, x: f(x), UNIT),
        "xlogy": (lambda f, x: f(x, x + 1), A),
        "rel_entr": (lambda f, x: f(x, x + 1), A),
        "kl_div": (lambda f, x: f(x, x + 1), A),
        "beta": (lambda f, x: f(x, x + 1), A),
        "betaln": (lambda f, x: f(x, x + 1), A),
        "gammainc": (lambda f, x: f(vg.asarray(B), x), A),
        "gammaincc": (lambda f, x: f(vg.asarray(B), x), A),
        "betainc": (lambda f, x: f(vg.asarray(B[:6]), vg.asarray(A[:6]), x), UNIT),
        "stdtr": (lambda f, x: f(3.0, x), A),
        "softplus": (lambda f, x: f(x), A),
        "boxcox": (lambda f, x: f(x, 0.5), A),
        "huber": (lambda f, x: f(1.0, x), A),
    },
    "scipy.stats": {
        **{
            name: (lambda f, x: f(x), A)
            for name in "zscore gmean hmean skew kurtosis sem entropy iqr tmean tvar tstd tsem circmean "
            "circvar circstd differential_entropy boxcox_llf_of gzscore".split()
            if name != "boxcox_llf_of"
        },
        "variation": (lambda f, x: f(x.reshape(2, 4), axis=1), A),
        "moment": (lambda f, x: f(x, 3), A),
        "median_abs_deviation": (lambda f, x: f(x), A[:7]),
        "pmean": (lambda f, x: f(x, 3), A),
        "expectile": (lambda f, x: f(x, 0.3), A),
        "zmap": (lambda f, x: f(x, x * 2 + 1), A),
        "boxcox_llf": (lambda f, x: f(0.5, x), A),
        "yeojohnson_llf": (lambda f, x: f(0.5, x), A),
        "kstat": (lambda f, x: f(x, 3), A),
        "kstatvar": (lambda f, x: f(x, 2), A),
        "lmoment": (lambda f, x: f(x), A),
        "trim_mean": (lambda f, x: f(x, 0.1), A),
        "pearsonr": (lambda f, x: f(x.reshape(2, 4), vg.asarray(B).reshape(2, 4), axis=1).statistic, A),
        "ttest_1samp": (lambda f, x: f(x, 0.5).statistic, A),
        "ttest_ind": (lambda f, x: f(x, vg.asarray(B)).statistic, A),
        "ttest_rel": (lambda f, x: f(x, vg.asarray(B)).statistic, A),
        "f_oneway": (lambda f, x: f(x.reshape(4, 2), vg.asarray(B).reshape(4, 2)).statistic, A),
        "bartlett": (lambda f, x: f(x, vg.asarray(B)).statistic, A),
        "levene": (lambda f, x: f(x, vg.asarray(B)).statistic, A),
        "chisquare": (lambda f, x: f(x, f_exp=x.sum() / 8 * vg.ones(8)).statistic, A),
        "power_divergence": (lambda f, x: f(x, lambda_="log-likelihood").statistic, A),
        "jarque_bera": (lambda f, x: f(x).statistic, A),
        "skewtest": (lambda f, x: f(x).statistic, A),
        "kurtosistest": (lambda f, x: f(x).statistic, A),
        "normaltest": (lambda f, x: f(x).statistic, A),
        "combine_pvalues": (lambda f, x: f(x).statistic, UNIT),
        "linregress": (lambda f, x: f(x, vg.asarray(B)).slope, A),
        "directional_stats": (lambda f, x: f(x.reshape(4, 2)).mean_direction, A),
        "quantile": (lambda f, x: f(x, vg.asarray([0.3, 0.7])), A),
        "describe": (lambda f, x: f(x).variance, A),
        "energy_distance": (lambda f, x: f(x, vg.asarray(B)), A),
        "wasserstein_distance": (lambda f, x: f(x, vg.asarray(B)), A),
        "norm.logpdf": (lambda f, x: f(x), A),
        "gaussian_kde": (lambda f, x: f(vg.asarray(B))(x), A),
    },
    "scipy.signal": {
        "fftconvolve": (lambda f, x: f(x, vg.asarray([0.5, 0.25, 0.25])), A),
        "oaconvolve": (lambda f, x: f(x, vg.asarray([0.5, 0.25, 0.25])), A),
        "convolve": (lambda f, x: f(x, vg.asarray([0.5, 0.25, 0.25])), A),
        "correlate": (lambda f, x: f(x, vg.asarray([0.5, 0.25, 0.25]), method="fft"), A),
        "convolve2d": (lambda f, x: f(x.reshape(4, 2), vg.ones(2, 2)), A),
        "correlate2d": (lambda f, x: f(x.reshape(4, 2), vg.ones(2, 2)), A),
        "hilbert": (lambda f, x: abs(f(x)), A),
        "envelope": (lambda f, x: f(x), A),
        "detrend": (lambda f, x: f(x), A),
        "resample": (lambda f, x: f(x, 5), A),
        "lfilter": (lambda f, x: f(vg.asarray([0.5, 0.5]), vg.asarray([1.0, -0.3]), x), A),
        "sosfilt": (lambda f, x: f(vg.asarray([[0.5, 0.5, 0.0, 1.0, -0.3, 0.0]]), x), A),
        "savgol_filter": (lambda f, x: f(x, 5, 2), A),
        "periodogram": (lambda f, x: f(x)[1], A),
        "welch": (lambda f, x: f(x, nperseg=8)[1], A),
        "csd": (lambda f, x: abs(f(x, vg.asarray(B), nperseg=8)[1]), A),
        "wiener": (lambda f, x: f(x, 3), A),
        "medfilt": (lambda f, x: f(x, 3), A),
        "sosfreqz": (
            lambda f, x: abs(f(vg.concat([x[:3], vg.ones(1), x[3:5]]).reshape(1, 6))[1]),
            np.array([0.5, 0.4, 0.1, -0.3, 0.1]),
        ),
        "freqz": (lambda f, x: abs(f(x)[1]), A),
        "firwin": (lambda f, x: f(5, x), np.array([0.4])),
        "zpk2tf": (lambda f, x: f(x[:2], x[2:4], 1.0)[0], A),
        "sepfir2d": (lambda f, x: f(x.reshape(4, 2), vg.asarray([1.0]), vg.asarray([1.0])), A),
        "lombscargle": (lambda f, x: f(vg.asarray(B), x, vg.asarray([1.0, 2.0])), A),
        "vectorstrength": (lambda f, x: f(x, 2.0)[0], A),
        "gauss_spline": (lambda f, x: f(x, 3), A),
        "sawtooth": (lambda f, x: f(x, 0.5), A),
        "chirp": (lambda f, x: f(x, 1.0, 2.0, 3.0), A),
        "gausspulse": (lambda f, x: f(x, fc=1), A),
    },
    "scipy.ndimage": {
        "gaussian_filter": (lambda f, x: f(x, 1.0), A),
        "uniform_filter": (lambda f, x: f(x, 3), A),
        "convolve": (lambda f, x: f(x, vg.asarray([0.5, 0.25, 0.25])), A),
        "sobel": (lambda f, x: f(x.reshape(4, 2)), A),
        "shift": (lambda f, x: f(x, 0.5), A),
        "map_coordinates": (lambda f, x: f(x, vg.asarray([[0.5, 1.5]]), order=1), A),
    },
    "scipy.linalg": {
        "solve": (lambda f, x: f(x, vg.asarray([1.0, 2.0, 3.0])), M),
        "inv": (lambda f, x: f(x), M),
        "det": (lambda f, x: f(x), M),
        "cholesky": (lambda f, x: f(x @ x.T), M),
        "svdvals": (lambda f, x: f(x), M),
        "expm": (lambda f, x: f(x), M),
        "norm": (lambda f, x: f(x), M),
        "toeplitz": (lambda f, x: f(x), A),
        "circulant": (lambda f, x: f(x), A),
        "block_diag": (lambda f, x: f(x, x), M),
        "khatri_rao": (lambda f, x: f(x, x), M),
        "companion": (lambda f, x: f(x), A),
        "hankel": (lambda f, x: f(x), A),
    },
    "scipy.fft": {
        **{name: (lambda f, x: abs(f(x)) ** 2, A) for name in "fft ifft rfft fftn rfftn ihfft fft2_of".split()[:-1]},
        **{name: (lambda f, x: f(x), A) for name in "irfft hfft fftshift ifftshift irfftn".split()},
        "fft2": (lambda f, x: abs(f(x)), M),
        "rfft2": (lambda f, x: abs(f(x)), M),
        "ifft2": (lambda f, x: abs(f(x)), M),
        "dct": (lambda f, x: f(x), A),
        "dst": (lambda f, x: f(x), A),
        "fht": (lambda f, x: f(x, 0.1, 0.5), A),
        "ifht": (lambda f, x: f(x, 0.1, 0.5), A),
    },
    "scipy.integrate": {
        "trapezoid": (lambda f, x: f(x), A),
        "simpson": (lambda f, x: f(x), A),
        "cumulative_trapezoid": (lambda f, x: f(x), A),
        "cumulative_simpson": (lambda f, x: f(x), A),
        "romb": (lambda f, x: f(x), np.append(A, 0.5)),
        "tanhsinh": (lambda f, x: f(lambda t: vg.exp(-x[0] * t * t), vg.asarray(0.0), vg.asarray(1.0)).integral, A),
        "cubature": (lambda f, x: f(lambda t: vg.exp(-x[0] * t[:, 0] ** 2), vg.zeros(1), vg.ones(1)).estimate, A),
        "nsum": (lambda f, x: f(lambda k: vg.exp(-x[1] * k), vg.asarray(1.0), vg.asarray(6.0)).sum, A),
        "fixed_quad": (lambda f, x: f(lambda t: x[0] * t * t, 0.0, 1.0)[0], A),
        "quad_vec": (lambda f, x: f(lambda t: x * t * t, 0.0, 1.0)[0], A),
        "solve_ivp": (lambda f, x: f(lambda t, y: -x[0] * y, (0.0, 1.0), x[:1]).y[0, -1], A),
    },
    "scipy.differentiate": {
        "derivative": (lambda f, x: f(lambda t, a: vg.sin(a * t), vg.ones(8), args=(x,)).df, A),
        "jacobian": (lambda f, x: f(lambda t: vg.sin(x[0] * t), vg.ones(3)).df, A),
    },
    "scipy.optimize.elementwise": {
        "find_root": (
            lambda f, x: f(lambda t, a: t**3 - a, (vg.zeros(8), vg.full(8, 5.0)), args=(x,)).x,
            A,
        ),
        "find_minimum": (
            lambda f, x: f(lambda t, a: (t - a) ** 2, (-vg.ones(8), vg.ones(8), vg.full(8, 5.0)), args=(x,)).x,
            A,
        ),
    },
    "scipy.optimize": {
        "rosen": (lambda f, x: f(x), A),
        "rosen_der": (lambda f, x: f(x), A),
        "rosen_hess": (lambda f, x: f(x), A),
        "rosen_hess_prod": (lambda f, x: f(x, x), A),
    },
    "scipy.interpolate": {
        "make_interp_spline": (lambda f, x: f(vg.arange(8.0), x)(vg.asarray([0.5, 2.5])), A),
        "CubicSpline": (lambda f, x: f(vg.arange(8.0), x)(vg.asarray([0.5, 2.5])), A),
        "PchipInterpolator": (lambda f, x: f(vg.arange(8.0), x)(vg.asarray([0.5, 2.5])), A),
        "AAA": (lambda f, x: f(vg.arange(8.0), x)(vg.asarray([0.5, 2.5])), A),
        "RBFInterpolator": (lambda f, x: f(vg.arange(8.0).reshape(8, 1), x)(vg.asarray([[0.5], [2.5]])), A),
        "BarycentricInterpolator": (lambda f, x: f(vg.arange(8.0), x)(vg.asarray([0.5, 2.5])), A),
        "KroghInterpolator": (lambda f, x: f(vg.arange(8.0), x)(vg.asarray([0.5, 2.5])), A),
    },
    "scipy.spatial.transform": {
        "Rotation.from_rotvec": (lambda f, x: f(x).as_matrix(), A[:3]),
        "Rotation.from_quat": (lambda f, x: f(x).as_matrix(), A[:4]),
        "Rotation.from_euler": (lambda f, x: f("xyz", x).as_matrix(), A[:3]),
        "Rotation.from_matrix": (lambda f, x: f(x * 1).as_rotvec(), np.eye(3) + 0.1 * M),
    },
    "scipy.spatial.distance": {
        "euclidean": (lambda f, x: f(x, vg.asarray(B)), A),
        "cosine": (lambda f, x: f(x, vg.asarray(B)), A),
        "correlation": (lambda f, x: f(x, vg.asarray(B)), A),
        "sqeuclidean": (lambda f, x: f(x, vg.asarray(B)), A),
        "cityblock": (lambda f, x: f(x, vg.asarray(B)), A),
        "cdist": (lambda f, x: f(x.reshape(4, 2), vg.asarray(B.reshape(4, 2))), A),
        "pdist": (lambda f, x: f(x.reshape(4, 2)), A),
    },
    "scipy.cluster.vq": {
        "whiten": (lambda f, x: f(x.reshape(4, 2)), A),
        "vq": (lambda f, x: f(x.reshape(4, 2), vg.asarray(B.reshape(4, 2))[:2])[1], A),
    },
    "scipy.constants": {
        "convert_temperature": (lambda f, x: f(x, "Celsius", "Kelvin"), A),
        "lambda2nu": (lambda f, x: f(x) * 1e-8, A),
    },
}


def matrix(x):
    """Return numbers as a matrix of four rows."""
    return x.reshape(4, 2)


# The same for libraries that build on arrays.
OTHERS = {
    "sklearn.metrics.pairwise": {
        "rbf_kernel": (lambda f, x: f(matrix(x), gamma=0.5), A),
        "linear_kernel": (lambda f, x: f(matrix(x)), A),
        "polynomial_kernel": (lambda f, x: f(matrix(x), degree=2, gamma=0.5), A),
        "sigmoid_kernel": (lambda f, x: f(matrix(x), gamma=0.5), A),
        "laplacian_kernel": (lambda f, x: f(matrix(x), gamma=0.5), A),
        "cosine_similarity": (lambda f, x: f(matrix(x)), A),
        "euclidean_distances": (lambda f, x: f(matrix(x), vg.asarray(B).reshape(4, 2)), A),
    },
    "sklearn.metrics": {
        "mean_squared_error": (lambda f, x: f(vg.asarray(B), x), A),
        "mean_absolute_error": (lambda f, x: f(vg.asarray(B), x), A),
        "r2_score": (lambda f, x: f(vg.asarray(B), x), A),
        "mean_tweedie_deviance": (lambda f, x: f(vg.asarray(B), x, power=1), A),
    },
    "sklearn.preprocessing": {
        "StandardScaler": (lambda f, x: f().fit(vg.asarray(B).reshape(4, 2)).transform(matrix(x)), A),
        "MinMaxScaler": (lambda f, x: f().fit(vg.asarray(B).reshape(4, 2)).transform(matrix(x)), A),
        "Normalizer": (lambda f, x: f().transform(matrix(x)), A),
        "MaxAbsScaler": (lambda f, x: f().fit(vg.asarray(B).reshape(4, 2)).transform(matrix(x)), A),
    },
    "sklearn.decomposition": {
        "PCA": (lambda f, x: f(n_components=1, svd_solver="full").fit_transform(matrix(x)) ** 2, A),
    },
    "sklearn.linear_model": {
        "Ridge": (lambda f, x: f(solver="svd").fit(vg.asarray(B).reshape(4, 2), x[:4]).coef_, A),
    },
    "xarray": {
        "DataArray.mean": (lambda f, x: f_of_xarray(x).mean("row").data, A),
        "DataArray.sum": (lambda f, x: (f_of_xarray(x) * 2).sum("column").data, A),
        "DataArray.sel": (lambda f, x: f_of_xarray(x).isel(row=1).data, A),
        "DataArray.transpose": (lambda f, x: f_of_xarray(x).transpose("column", "row").data, A),
        "where": (lambda f, x: f(f_of_xarray(x) > 1, f_of_xarray(x), 0.0).data, A),
        "DataArray.dot": (lambda f, x: f_of_xarray(x).dot(f_of_xarray(x), dim="row").data, A),
        "concat": (lambda f, x: f([f_of_xarray(x), f_of_xarray(x)], "row").data, A),
    },
    "einops.array_api": {
        "rearrange": (lambda f, x: f(x, "(a b) -> b a", a=4), A),
        "reduce": (lambda f, x: f(x, "(a b) -> a", "mean", b=2), A),
        "repeat": (lambda f, x: f(x, "a -> a 3"), A),
    },
    "opt_einsum": {
        "contract": (lambda f, x: f("ij,kj,ik->j", matrix(x), matrix(x), vg.ones(4, 4)), A),
    },
}


def f_of_xarray(x):
    """Return a matrix whose dimensions have names."""
    return importlib.import_module("xarray").DataArray(matrix(x), dims=("row", "column"))


def found(module, name):
    """Return a function or method by its name."""
    if module.startswith("sklearn"):
        importlib.import_module("sklearn").set_config(array_api_dispatch=True)
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    return function


def outcome(function, program, at):
    """Return the outcome of a program: "gradients", or an error."""

    def loss(x):
        out = program(function, x)
        if not isinstance(out, vg.Tensor):
            raise TypeError(f"no gradient: it returns {type(out).__name__}")
        return (out * vg.asarray(np.random.default_rng(0).random(out.shape))).sum()

    try:
        x = vg.Tensor(at, requires_grad=True)
        (gradient,) = vg.autograd.grad(loss(x), x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    step = 1e-6
    differences = np.empty(at.shape)
    for index in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * step
            ends.append(float(loss(vg.Tensor(moved)).detach().numpy()))
        differences[index] = (ends[0] - ends[1]) / (2 * step)
    if np.allclose(gradient.detach().numpy(), differences, rtol=1e-4, atol=1e-6):
        return "gradients"
    return f"WRONG: {gradient} instead of {differences}"


def outcomes(tables):
    """Return the outcome for each function of some tables, or None if it is not installed."""
    results = {}
    for module, functions in tables.items():
        for name, (program, at) in functions.items():
            try:
                function = found(module, name)
            except (ImportError, AttributeError):
                results[f"{module}.{name}"] = None
                continue
            results[f"{module}.{name}"] = outcome(function, program, at)
    return results


if __name__ == "__main__":
    json.dump(outcomes(PROGRAMS | OTHERS), sys.stdout, indent=1)
