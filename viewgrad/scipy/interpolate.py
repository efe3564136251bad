"""`scipy.interpolate` for tensors: splines and interpolation in one dimension.

They are differentiable with respect to the values and the evaluation points. Others are in `piecewise.py` and
`grid_interpolation.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.interpolate  # type: ignore[import-untyped]

from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.shapes import along_first
from .barycentric import THROUGH_POINTS
from .fitpack import FITPACK
from .grid_interpolation import GRIDS
from .griddata import SCATTERED, LinearNDInterpolator, NearestNDInterpolator, plain_places
from .piecewise import PIECES, BSpline, CubicHermiteSpline, Pieces, ascending, spline_slopes, through_points
from .wrap import float_copy

if TYPE_CHECKING:
    from .typed.interpolate import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


def _knots(x: Any, name: str) -> Any:
    if carries_history(x):
        raise lost(
            f"scipy.interpolate.{name}", "no gradient flows to the points of evaluation; pass detach() of them"
        )
    return np.asarray(plain_values(as_argument(x)), float)


class CubicSpline(Pieces):
    """A cubic interpolating spline; gradients flow to the points, the values and the evaluation points."""

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        values = float_copy(y)
        axis %= values.ndim
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        beyond = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        if carries_history(x) or _has_slopes(bc_type):
            knots, leading = ascending(x), np.moveaxis(values, axis, 0)
            pieces = CubicHermiteSpline(knots, leading, spline_slopes(knots, leading, bc_type))
            super().__init__(pieces.c, knots, beyond, axis)
            return
        knots = np.asarray(plain_values(as_argument(x)), float)
        unit = scipy.interpolate.CubicSpline(knots, _units(knots, periodic), 0, _ends(bc_type, len(knots)))
        c = np.tensordot(as_tensors(unit.c), np.moveaxis(values, axis, 0), ((2,), (0,)))
        super().__init__(c, unit.x, beyond, axis)


def _has_slopes(bc_type: Any) -> bool:
    """Return whether derivatives other than 0 are given at the ends."""
    if isinstance(bc_type, str):
        return False
    given = [end[1] for end in bc_type if not isinstance(end, str)]
    return carries_history(given) or any(np.any(np.asarray(plain_values(each)) != 0) for each in given)


def _ends(bc_type: Any, count: int) -> Any:
    """Return the conditions at the ends for splines through the unit vectors."""
    if isinstance(bc_type, str):
        return bc_type
    return tuple([end if isinstance(end, str) else (end[0], np.zeros(count)) for end in bc_type])


def _units(knots: Any, periodic: bool) -> Any:
    """Return the unit vectors, one in each column; the last value of a periodic spline does not matter."""
    units = np.eye(len(knots))
    if periodic:
        units[-1] = units[0]
    return units


def _of_units(unit: Any, y: Any, axis: int) -> BSpline:
    """Return a spline that is linear in values, of the splines of the unit vectors."""
    values = float_copy(y)
    c = np.tensordot(as_tensors(unit.c), np.moveaxis(values, axis, 0), ((1,), (0,)))
    axis %= values.ndim
    return BSpline(unit.t, np.moveaxis(c, 0, axis), unit.k, unit.extrapolate, axis)


def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0) -> BSpline:
    """Return the interpolating spline of degree `k`."""
    if bc_type is not None and not isinstance(bc_type, str):
        raise lost("scipy.interpolate.make_interp_spline", "give bc_type by name")
    if (carries_history(x) or carries_history(t)) and bc_type in (None, "not-a-knot"):
        return through_points(float_copy(x), float_copy(y), k, t, axis)
    knots = _knots(x, "make_interp_spline")
    own = None if t is None else _knots(t, "make_interp_spline")
    units = _units(knots, bc_type == "periodic")
    return _of_units(scipy.interpolate.make_interp_spline(knots, units, k, own, bc_type), y, axis)


def splprep(
    x: Any, w: Any = None, u: Any = None, ub: Any = None, ue: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, nest: Any = None, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """Return the knots, coefficients and degree of a curve through points, and the parameters of these.

    Without smoothing, gradients flow to the points and the parameters.
    """
    if not carries_history((x, w, u)):
        given = [None if each is None else plain_values(as_argument(each)) for each in (w, u)]
        plain = [plain_values(as_argument(each)) for each in x]
        found = scipy.interpolate.splprep(plain, *given, ub, ue, k, task, s, t, full_output, nest, per, quiet)
        return as_tensors(found)
    if s != 0 or w is not None or per or full_output or task or ub is not None or ue is not None:
        raise lost("scipy.interpolate.splprep", "gradients flow only without smoothing (s=0), and to open curves")
    points = np.stack([float_copy(each) for each in x])
    if u is None:
        lengths = np.cumsum(np.sqrt((np.diff(points, axis=1) ** 2).sum(0)))
        places = np.concatenate([np.zeros(1), lengths / lengths[-1]])
    else:
        places = float_copy(u)
    curve = through_points(places, points, k, None, 1)
    return [curve.t, list(curve.c), k], places


def make_lsq_spline(x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, **options: Any) -> BSpline:
    """Return the least-squares spline with the given knots."""
    knots, own = _knots(x, "make_lsq_spline"), _knots(t, "make_lsq_spline")
    weights = None if w is None else _knots(w, "make_lsq_spline")
    unit = scipy.interpolate.make_lsq_spline(knots, np.eye(len(knots)), own, k, weights, **options)
    return _of_units(unit, y, axis)


def make_smoothing_spline(x: Any, y: Any, w: Any = None, lam: Any = None, axis: int = 0) -> BSpline:
    """Return a smoothing cubic spline; values with history require `lam`."""
    knots = _knots(x, "make_smoothing_spline")
    weights = None if w is None else _knots(w, "make_smoothing_spline")
    if lam is None and carries_history(y):
        raise lost("scipy.interpolate.make_smoothing_spline", "pass lam, whose default depends on the values")
    if lam is None:
        plain = scipy.interpolate.make_smoothing_spline(knots, plain_values(as_argument(y)), weights, None, axis)
        return BSpline(plain.t, plain.c, plain.k, plain.extrapolate, axis)
    unit = scipy.interpolate.make_smoothing_spline(knots, np.eye(len(knots)), weights, float(_knots(lam, "lam")))
    return _of_units(unit, y, axis)


class interp1d:
    """Interpolation in one dimension; gradients flow to the points, the values and the evaluation points.

    Arguments:
        x, y: the points and the values.
        kind: "linear", "nearest", "previous", "next", "zero", "slinear", "quadratic", "cubic", or a spline's degree.
        axis: the dimension of `y` that belongs to the points.
        bounds_error: whether a point outside raises an error; the default unless `fill_value` is "extrapolate".
        fill_value: the value outside, a pair for both ends, or "extrapolate".
        copy, assume_sorted: as in SciPy.
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
        fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        values = np.moveaxis(float_copy(y), axis, 0)
        knots = float_copy(x) if carries_history(x) else np.asarray(plain_values(as_argument(x)), float)
        if len(knots) != len(values):
            raise ValueError(f"interp1d got {len(knots)} points and {len(values)} values")
        order = np.arange(len(knots)) if assume_sorted else np.argsort(plain_values(knots), kind="stable")
        self.x, self.y, self.kind, self.fill_value = knots[order], values[order], kind, fill_value
        self._places = plain_values(self.x)
        self.axis = axis % values.ndim
        self.extrapolates = isinstance(fill_value, str)
        if self.extrapolates and bounds_error:
            raise ValueError("interp1d cannot extrapolate and raise an error")
        self.bounds_error = not self.extrapolates if bounds_error is None else bounds_error
        degrees = {"quadratic": 2, "cubic": 3}
        degree = degrees.get(kind, kind if isinstance(kind, int) else None)
        self._spline = make_interp_spline(self.x, self.y, degree) if degree else None

    def __call__(self, x: Any) -> Any:
        places = float_copy(x)
        flat = places.reshape(-1)
        plain = plain_values(flat)
        below, above = plain < self._places[0], plain > self._places[-1]
        if self.bounds_error and (below.any() or above.any()):
            raise ValueError("A value in x_new is outside of the interpolation range.")
        found = self._inside(flat, plain)
        if self.extrapolates and self.kind in ("previous", "next"):
            beyond = below if self.kind == "previous" else above  # where there is no such point
            found = np.where(along_first(beyond, found.ndim), np.nan, found)
        elif not self.extrapolates and (below.any() or above.any()):
            low, high = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value,) * 2
            below, above = along_first(below, found.ndim), along_first(above, found.ndim)
            found = np.where(below, low, np.where(above, high, found))
        found = found.reshape(places.shape + self.y.shape[1:])
        count = places.ndim
        return np.moveaxis(found, tuple(range(count)), tuple(range(self.axis, self.axis + count)))

    def _inside(self, flat: Any, plain: Any) -> Any:
        if self._spline is not None:
            return self._spline(flat)
        if len(self.x) == 1:
            return self.y[np.zeros(len(plain), int)]
        if self.kind in ("linear", "slinear"):
            right = np.clip(np.searchsorted(self._places, plain), 1, len(self.x) - 1)
            left = right - 1
            share = along_first((flat - self.x[left]) / (self.x[right] - self.x[left]), self.y.ndim)
            return self.y[left] + share * (self.y[right] - self.y[left])
        if self.kind in ("previous", "zero"):
            found = self.y[np.clip(np.searchsorted(self._places, plain, "right") - 1, 0, len(self.x) - 1)]
            is_nan = along_first(np.isnan(plain), found.ndim)
            return np.where(is_nan, np.nan, found) if self.kind == "zero" and is_nan.any() else found
        if self.kind == "next":
            return self.y[np.clip(np.searchsorted(self._places, plain, "left"), 0, len(self.x) - 1)]
        middles = (self._places[1:] + self._places[:-1]) / 2.0
        return self.y[np.searchsorted(middles, plain, "right" if self.kind == "nearest-up" else "left")]


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False
) -> Any:
    """Interpolate between scattered points; gradients flow to the values and the evaluation points.

    Arguments:
        points, values: the points, one row for each or an array for each coordinate, and the values there.
        xi: the evaluation points.
        method: "nearest", "linear", or "cubic"; for tensors with a history, the last in one dimension only.
        fill_value: the value outside the convex hull of the points, except with "nearest".
        rescale: whether to scale each coordinate to the same range first.
    """
    places = plain_places(points, "griddata")
    if places.shape[1] == 1:
        beyond = "extrapolate" if method == "nearest" else fill_value
        asked = xi[0] if isinstance(xi, tuple) else xi
        return interp1d(places[:, 0], values, method, 0, bounds_error=False, fill_value=beyond)(asked)
    if method == "nearest":
        return NearestNDInterpolator(places, values, rescale)(xi)
    if method == "linear":
        return LinearNDInterpolator(places, values, fill_value, rescale)(xi)
    if carries_history((values, xi)):
        raise lost("scipy.interpolate.griddata", 'use method="linear", or RBFInterpolator, which is smooth')
    return as_tensors(
        scipy.interpolate.griddata(places, plain_values(values), plain_values(xi), method, fill_value, rescale)
    )


MADE: dict[str, Any] = {
    **FITPACK,
    **PIECES,
    **THROUGH_POINTS,
    **GRIDS,
    **SCATTERED,
    "griddata": griddata,
    "CubicSpline": CubicSpline,
    "interp1d": interp1d,
    "make_interp_spline": make_interp_spline,
    "make_lsq_spline": make_lsq_spline,
    "make_smoothing_spline": make_smoothing_spline,
    "splprep": splprep,
}
globals().update(filled(scipy.interpolate, MADE, frozenset(), {}))
__all__ = public_names(scipy.interpolate)
