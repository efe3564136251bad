"""SciPy objects created outside adopted code, and replacements with the same content through which gradients flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .counterparts import MISSING, namespace

Builder = Callable[[Any, Any], Any]  # the type of functions of the object and the counterpart of its subpackage


def of_scipy(value: Any) -> Any:
    """Return the replacement of a SciPy object, or MISSING for an object that is not replaced."""
    for kind in type(value).__mro__[:-1]:
        found = _BUILDERS.get(kind.__name__)
        if found is not None:
            place = "scipy." + found[0]
            if kind.__module__.startswith(place) or kind.__name__ == "SuperLU":  # whose module is called builtins
                return found[1](value, getattr(namespace("scipy"), found[0]))
    return MISSING


# -- scipy.interpolate -------------------------------------------------------------------------------------------------


def _of_pieces(name: str) -> Builder:
    def build(value: Any, interpolate: Any) -> Any:
        return getattr(interpolate, name).construct_fast(value.c, value.x, value.extrapolate, value.axis)

    return build


def _b_spline(value: Any, interpolate: Any) -> Any:
    return interpolate.BSpline.construct_fast(value.t, value.c, value.k, value.extrapolate, value.axis)


def _piecewise_nd(value: Any, interpolate: Any) -> Any:
    return interpolate.NdPPoly.construct_fast(value.c, value.x, value.extrapolate)


def _b_spline_nd(value: Any, interpolate: Any) -> Any:
    return interpolate.NdBSpline(value.t, value.c, value.k, extrapolate=value.extrapolate)


def _interp1d(value: Any, interpolate: Any) -> Any:
    kind = value._kind if value._kind != "spline" else value._spline.k
    options = {"bounds_error": value.bounds_error, "fill_value": value.fill_value}
    return interpolate.interp1d(value.x, value.y, kind, value.axis, **options)


def _univariate(value: Any, interpolate: Any) -> Any:
    made = interpolate.UnivariateSpline._from_tck(value._eval_args, value.ext)
    made._plain = value
    return made


def _bivariate(value: Any, interpolate: Any) -> Any:
    tx, ty, c = value.tck
    kx, ky = value.degrees
    return interpolate.RectBivariateSpline._from_tck((tx, ty, c.reshape(len(tx) - kx - 1, -1)), (kx, ky))


def _regular_grid(value: Any, interpolate: Any) -> Any:
    return interpolate.RegularGridInterpolator(
        value.grid, value.values, value.method, value.bounds_error, value.fill_value
    )


def _through_points(value: Any, interpolate: Any) -> Any:
    """Return the counterpart of a `BarycentricInterpolator` or `KroghInterpolator`."""
    values = value.yi.reshape(len(value.xi), *value._y_extra_shape)
    return getattr(interpolate, type(value).__name__)(value.xi, np.moveaxis(values, 0, value._y_axis), value._y_axis)


def _scattered(value: Any, interpolate: Any) -> Any:
    values = value.values.reshape(len(value.values), *value.values_shape)
    is_scaled = value.scale is not None
    points = value.points * value.scale + value.offset if is_scaled else value.tri
    fill = complex(value.fill_value) if value.is_complex else float(np.real(value.fill_value))
    return interpolate.LinearNDInterpolator(points, values, fill, is_scaled)


def _cubic(value: Any, interpolate: Any) -> Any:
    return interpolate.CloughTocher2DInterpolator.from_scipy(value)


def _ode_solution(value: Any, integrate: Any) -> Any:
    return integrate.OdeSolution(value.ts, value.interpolants, value.side == ("right" if value.ascending else "left"))


def _orthogonal(value: Any, special: Any) -> Any:
    return special.polynomials.orthopoly1d.from_scipy(value)


def _radial(value: Any, interpolate: Any) -> Any:
    if value.d_dtype is complex:
        return MISSING
    degree = int(value.powers.sum(1).max()) if len(value.powers) else -1
    values = value.d.reshape(len(value.y), *value.d_shape)
    return interpolate.RBFInterpolator(
        value.y, values, value.neighbors, value.smoothing, value.kernel, value.epsilon, degree
    )


def _radial_of_coordinates(value: Any, interpolate: Any) -> Any:
    if not isinstance(value.function, str) or value.norm != "euclidean" or value.mode != "1-D":
        return MISSING
    made = interpolate.Rbf(
        *value.xi, value.di, function=value.function, epsilon=value.epsilon, smooth=value.smooth
    )
    made.nodes = namespace("numpy").asarray(value.nodes)
    return made


# -- scipy.stats -------------------------------------------------------------------------------------------------------


def _frozen(value: Any, stats: Any) -> Any:
    if type(value.dist).__name__ == "rv_histogram":
        return _histogram(value.dist, stats)(*value.args, **value.kwds)
    family = getattr(stats, value.dist.name, None)
    return MISSING if family is None else family(*value.args, **value.kwds)


def _histogram(value: Any, stats: Any) -> Any:
    return stats.rv_histogram(value._histogram, density=value._density)


def _multivariate(name: str, attributes: str) -> Builder:
    """Return a builder of a frozen multivariate distribution whose parameters are stored in attributes."""

    def build(value: Any, stats: Any) -> Any:
        return getattr(stats, name)(*[getattr(value, attribute) for attribute in attributes.split()])

    return build


def _multivariate_normal(value: Any, stats: Any) -> Any:
    return stats.multivariate_normal(value.mean, value.cov_object.covariance, allow_singular=value.allow_singular)


def _kernel_density(value: Any, stats: Any) -> Any:
    return stats.gaussian_kde(value.dataset, value.factor, value.weights)


# -- scipy.sparse and scipy.spatial ------------------------------------------------------------------------------------


def _sparse(value: Any, sparse: Any) -> Any:
    if value.ndim != 2:
        return MISSING
    kind = type(value).__name__
    if value.format not in ("csr", "csc", "coo"):
        kind = "csr_" + kind.rpartition("_")[2]
    return getattr(sparse, kind)(value)


def _factored(value: Any, sparse: Any) -> Any:
    return sparse.linalg.SuperLU.from_scipy(value)


def _operator(value: Any, sparse: Any) -> Any:
    return sparse.linalg.LinearOperator.from_scipy(value)


def _rotation(value: Any, spatial: Any) -> Any:
    return spatial.transform.Rotation.from_quat(value.as_quat())


# The builders by the names of SciPy's classes.
_BUILDERS: Final[dict[str, tuple[str, Builder]]] = {
    "PPoly": ("interpolate", _of_pieces("PPoly")),
    "BPoly": ("interpolate", _of_pieces("BPoly")),
    "BSpline": ("interpolate", _b_spline),
    "NdPPoly": ("interpolate", _piecewise_nd),
    "NdBSpline": ("interpolate", _b_spline_nd),
    "interp1d": ("interpolate", _interp1d),
    "UnivariateSpline": ("interpolate", _univariate),
    "BivariateSpline": ("interpolate", _bivariate),
    "RegularGridInterpolator": ("interpolate", _regular_grid),
    "BarycentricInterpolator": ("interpolate", _through_points),
    "KroghInterpolator": ("interpolate", _through_points),
    "LinearNDInterpolator": ("interpolate", _scattered),
    "RBFInterpolator": ("interpolate", _radial),
    "Rbf": ("interpolate", _radial_of_coordinates),
    "CloughTocher2DInterpolator": ("interpolate", _cubic),
    "OdeSolution": ("integrate", _ode_solution),
    "orthopoly1d": ("special", _orthogonal),
    "rv_histogram": ("stats", _histogram),
    "rv_frozen": ("stats", _frozen),
    "gaussian_kde": ("stats", _kernel_density),
    "multivariate_normal_frozen": ("stats", _multivariate_normal),
    "multivariate_t_frozen": ("stats", _multivariate("multivariate_t", "loc shape df")),
    "dirichlet_frozen": ("stats", _multivariate("dirichlet", "alpha")),
    "wishart_frozen": ("stats", _multivariate("wishart", "df scale")),
    "_spbase": ("sparse", _sparse),
    "SuperLU": ("sparse", _factored),
    "LinearOperator": ("sparse", _operator),
    "Rotation": ("spatial", _rotation),
}
