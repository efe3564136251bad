"""`scipy.interpolate` for tensors: splines and interpolation in one dimension.

They are differentiable with respect to the values and the evaluation points. Other interpolants are in `piecewise.py`
and `grid_interpolation.py`.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

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
from .piecewise import (
    PIECES,
    BSpline,
    CubicHermiteSpline,
    PPoly,
    prepared,
    spline_basis,
    spline_slopes,
    through_points,
)
from .wrap import double_copy, float_copy, floating, numbers

if TYPE_CHECKING:
    from .typed.interpolate import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


def _without_history(value: Any, function: str, name: str) -> Any:
    """Return an argument with respect to which a function of SciPy has no derivative here, as an array."""
    if carries_history(value):
        raise lost(f"scipy.interpolate.{function}", f"no gradient flows to {name}; pass detach() of it")
    return np.asarray(plain_values(as_argument(value)), float)


class CubicSpline(PPoly):
    """A cubic interpolating spline; gradients flow to the points, the values and the evaluation points."""

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        places, values, axis, _ = prepared(x, y, axis)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        beyond = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        if carries_history(x) or _has_slopes(bc_type):
            pieces = CubicHermiteSpline(places, values, spline_slopes(places, values, bc_type))
            self._set(pieces.c, places, beyond, axis)
            return
        knots = plain_values(places)
        unit = scipy.interpolate.CubicSpline(knots, _units(knots, periodic), 0, _ends(bc_type, len(knots)))
        c = np.tensordot(as_tensors(unit.c), values, ((2,), (0,)))
        self._set(c, as_tensors(unit.x), beyond, axis)


def _has_slopes(bc_type: Any) -> bool:
    """Return whether nonzero derivatives are given at the ends."""
    if isinstance(bc_type, str):
        return False
    given = [end[1] for end in bc_type if not isinstance(end, str)]
    return carries_history(given) or any(np.any(np.asarray(plain_values(each)) != 0) for each in given)


def _ends(bc_type: Any, count: int) -> Any:
    """Return the end conditions for splines through the unit vectors."""
    if isinstance(bc_type, str):
        return bc_type
    return tuple([end if isinstance(end, str) else (end[0], np.zeros(count)) for end in bc_type])


def _units(knots: Any, periodic: bool) -> Any:
    """Return the unit vectors as columns; the last value of a periodic spline is ignored."""
    units = np.eye(len(knots))
    if periodic:
        units[-1] = units[0]
    return units


def _of_units(unit: Any, y: Any, axis: int) -> BSpline:
    """Return a spline that is linear in its values, constructed from the splines of the unit vectors."""
    values = double_copy(y)
    axis = np.lib.array_utils.normalize_axis_index(axis, values.ndim)
    c = np.tensordot(as_tensors(unit.c), np.moveaxis(values, axis, 0), ((1,), (0,)))
    made: BSpline = BSpline.construct_fast(unit.t, c, unit.k, unit.extrapolate, axis)
    return made


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> BSpline:
    """Return the interpolating spline of degree `k`; gradients flow to everything except the knots of a periodic
    spline.

    Arguments:
        x, y: the points, ascending, and the values along `axis`.
        k: the degree.
        t: the knots, whose number follows from the points, the degree and the conditions.
        bc_type: "not-a-knot", "periodic", "natural", "clamped", or for each end one of the last two, or pairs of the
            order of a derivative and its value.
        axis: the dimension of the values that corresponds to the points.
        check_finite: whether to raise ValueError for points or values that are not finite.
    """
    plain, values = plain_values(double_copy(x).detach()), double_copy(y)
    axis = np.lib.array_utils.normalize_axis_index(axis, values.ndim)
    if check_finite and not (np.isfinite(plain).all() and np.isfinite(plain_values(values.detach())).all()):
        raise ValueError("Array must not contain infs or nans.")
    if plain.ndim != 1 or np.any(np.diff(plain) <= 0):
        raise ValueError("Expect x to be a 1D strictly increasing sequence.")
    if plain.size != values.shape[axis]:
        raise ValueError(f"Shapes of x {plain.shape} and y {values.shape} are incompatible")
    is_named = isinstance(bc_type, str)
    if is_named and bc_type == "periodic":
        leading = plain_values(np.moveaxis(values, axis, 0).detach())
        if not np.allclose(leading[0], leading[-1], atol=1e-15):
            raise ValueError("First and last points does not match while periodic case expected")
    if k < 2 and not (bc_type is None or (is_named and bc_type in ("not-a-knot", "periodic"))):
        raise ValueError(f"Too much info for k={k}: bc_type can only be None.")
    if k == 0 and t is not None:
        raise ValueError("Too much info for k=0: t can only be None.")
    if k == 0 or (not is_named and bc_type is not None) or (
        (carries_history(x) or carries_history(t)) and bc_type != "periodic"
    ):
        named = None if bc_type == "not-a-knot" else bc_type
        try:
            left, right = (named, named) if is_named or bc_type is None else bc_type
        except TypeError as error:
            raise ValueError(f"Unknown boundary condition: {bc_type}") from error
        knots = None if t is None else double_copy(t)
        return through_points(double_copy(x), values, k, knots, axis, (_conditions(left, k), _conditions(right, k)))
    knots = _without_history(x, "make_interp_spline", "x")
    own = None if t is None else _without_history(t, "make_interp_spline", "t")
    if k == 1 and own is None:  # the values are the coefficients
        return through_points(double_copy(x), values, k, None, axis)
    units = _units(knots, bc_type == "periodic")
    return _of_units(scipy.interpolate.make_interp_spline(knots, units, k, own, bc_type), y, axis)


def _conditions(end: Any, k: int) -> list[tuple[int, Any]]:
    """Return the derivatives prescribed at an end of a spline, with their orders."""
    named = {"clamped": [(1, 0.0)], "natural": [(2, 0.0)]}
    if isinstance(end, str):
        if end not in named:
            raise ValueError(f"Unknown boundary condition: {end}")
        return named[end]
    try:
        found = [(operator.index(order), value) for order, value in end] if end is not None else []
    except TypeError as error:
        raise ValueError("bc_type must be a pair of lists of pairs of an order and a value") from error
    if not all(0 <= order <= k for order, _ in found):
        raise ValueError(f"Bad boundary conditions: the orders are 0 to {k}")
    return found


def splprep(
    x: Any, w: Any = None, u: Any = None, ub: Any = None, ue: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, nest: Any = None, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """Return the knots, coefficients and degree of a curve through points, and the parameter of each point.

    Without smoothing, gradients flow to the points and the parameters.
    """
    if not carries_history((x, w, u)):
        given = [None if each is None else plain_values(as_argument(each)) for each in (w, u)]
        plain = [plain_values(as_argument(each)) for each in x]
        found = scipy.interpolate.splprep(plain, *given, ub, ue, k, task, s, t, full_output, nest, per, quiet)
        return as_tensors(found)
    if s != 0 or w is not None or per or full_output or task or ub is not None or ue is not None:
        raise lost("scipy.interpolate.splprep", "gradients flow only without smoothing (s=0), and only for open curves")
    points = np.stack([float_copy(each) for each in x])
    if u is None:
        lengths = np.cumsum(np.sqrt((np.diff(points, axis=1) ** 2).sum(0)))
        places = np.concatenate([np.zeros(1), lengths / lengths[-1]])
    else:
        places = float_copy(u)
    curve = through_points(places, points, k, None, 1)
    return [curve.t, list(np.moveaxis(curve.c, 0, 1)), k], places


def make_lsq_spline(x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, **options: Any) -> BSpline:
    """Return the least-squares spline with the given knots; gradients flow to all arguments."""
    if carries_history((x, t, w)):
        places, knots, values = double_copy(x), double_copy(t), double_copy(y)
        axis = np.lib.array_utils.normalize_axis_index(axis, values.ndim)
        values = np.moveaxis(values, axis, 0)
        weights = None if w is None else double_copy(w)
        # This raises for unsupported arguments.
        scipy.interpolate.make_lsq_spline(
            *plain_values((places.detach(), values.detach(), knots.detach())), k,
            None if weights is None else plain_values(weights.detach()), **options,
        )  # fmt: skip
        rows, right = spline_basis(places, knots, k), values.reshape(len(places), -1)
        if weights is not None:
            rows, right = rows * weights[:, None], right * weights[:, None]
        c = np.linalg.solve(rows.mT @ rows, rows.mT @ right).reshape((rows.shape[1], *values.shape[1:]))
        made: BSpline = BSpline.construct_fast(knots, c, k, True, axis)
        return made
    knots, own = _without_history(x, "make_lsq_spline", "x"), _without_history(t, "make_lsq_spline", "t")
    plain = None if w is None else _without_history(w, "make_lsq_spline", "w")
    unit = scipy.interpolate.make_lsq_spline(knots, np.eye(len(knots)), own, k, plain, **options)
    return _of_units(unit, y, axis)


def make_smoothing_spline(x: Any, y: Any, w: Any = None, lam: Any = None, axis: int = 0) -> BSpline:
    """Return a smoothing cubic spline; values with history require `lam`."""
    knots = _without_history(x, "make_smoothing_spline", "x")
    weights = None if w is None else _without_history(w, "make_smoothing_spline", "w")
    if lam is None and carries_history(y):
        raise lost("scipy.interpolate.make_smoothing_spline", "pass lam, whose default depends on the values")
    if lam is None:
        plain = scipy.interpolate.make_smoothing_spline(knots, plain_values(as_argument(y)), weights, None, axis)
        found: BSpline = BSpline.construct_fast(plain.t, plain.c, plain.k, plain.extrapolate, plain.axis)
        return found
    strength = float(_without_history(lam, "make_smoothing_spline", "lam"))
    unit = scipy.interpolate.make_smoothing_spline(knots, np.eye(len(knots)), weights, strength)
    return _of_units(unit, y, axis)


TABLES: Final = ("linear", "nearest", "nearest-up", "previous", "next")


class interp1d:
    """Interpolation in one dimension; gradients flow to the points, the values and the evaluation points.

    Arguments:
        x, y: the points and the values.
        kind: "linear", "nearest", "previous", "next", "zero", "slinear", "quadratic", "cubic", or a spline's degree.
        axis: the dimension of `y` that corresponds to the points.
        bounds_error: whether a point outside raises an error; the default unless `fill_value` is "extrapolate".
        fill_value: the value outside, a pair of values for the two ends, or "extrapolate".
        copy, assume_sorted: as in SciPy.
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
        fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        degrees = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
        if not isinstance(kind, int) and kind not in (*degrees, *TABLES):
            raise NotImplementedError(f"{kind} is unsupported: use splines for other types.")
        degree = None if kind in TABLES else degrees.get(kind, kind)
        values, knots = float_copy(y), numbers(x)
        if knots.ndim != 1 or not values.ndim:
            raise ValueError("x must have exactly one dimension, and y at least one")
        self.axis = axis % values.ndim
        if len(knots) != values.shape[self.axis]:
            raise ValueError(f"interp1d got {len(knots)} points and {values.shape[self.axis]} values")
        if len(knots) < (1 if degree is None else degree + 1):
            raise ValueError(f"x and y arrays must have at least {1 if degree is None else degree + 1} entries")
        order = np.arange(len(knots))
        if not assume_sorted:
            order = np.argsort(plain_values(knots.detach()), kind="stable")
        self._leading = np.moveaxis(values, self.axis, 0)[order]
        self.x, self.y = knots[order], np.moveaxis(self._leading, 0, self.axis)
        self.copy, self.fill_value = copy, fill_value
        self._kind, self._degree = kind, degree
        self._places = plain_values(self.x.detach())
        self.extrapolates = isinstance(fill_value, str)
        if self.extrapolates and bounds_error:
            raise ValueError("interp1d cannot both extrapolate and raise an error")
        for value in fill_value if isinstance(fill_value, tuple) else () if self.extrapolates else (fill_value,):
            np.broadcast_to(np.empty(np.shape(plain_values(value))), self._leading.shape[1:] or (1,))
        self.bounds_error = not self.extrapolates if bounds_error is None else bounds_error
        self._spline = None
        if degree is not None:  # computed in double precision
            self._leading = double_copy(self._leading)
            if degree > 1 and not self._has_nan():
                self._spline = make_interp_spline(self.x, self._leading, degree)

    def _has_nan(self) -> bool:
        return bool(np.isnan(self._places).any() or np.isnan(plain_values(self._leading.detach())).any())

    def __call__(self, x: Any) -> Any:
        places = floating(x)
        flat = places.reshape(-1)
        plain = plain_values(flat.detach())
        below, above = plain < self._places[0], plain > self._places[-1]
        if self.bounds_error and (below.any() or above.any()):
            raise ValueError("A value in x_new is outside of the interpolation range.")
        found = self._inside(flat, plain)
        if self.extrapolates and self._kind in ("previous", "next"):
            beyond = below if self._kind == "previous" else above  # if there is no such point
            found = np.where(along_first(beyond, found.ndim), np.nan, found)
        elif not self.extrapolates and (below.any() or above.any()):
            low, high = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value,) * 2
            below, above = along_first(below, found.ndim), along_first(above, found.ndim)
            found = np.where(below, low, np.where(above, high, found)).astype(found.dtype)
        found = found.reshape(places.shape + self._leading.shape[1:])
        count = places.ndim
        return np.moveaxis(found, tuple(range(count)), tuple(range(self.axis, self.axis + count)))

    def _inside(self, flat: Any, plain: Any) -> Any:
        """Return the values, extrapolated beyond the ends."""
        x, y = self.x, self._leading
        if self._spline is not None:
            return self._spline(flat)
        if self._degree is not None and self._degree > 1:  # some points or values are NaN
            return y[np.zeros(len(plain), int)] * np.nan
        if len(x) == 1:
            return y[np.zeros(len(plain), int)]
        if self._kind == "linear":
            if y.ndim == 1 and not self.extrapolates and {x.dtype.char, y.dtype.char} <= {"d", "l"}:
                return np.interp(flat, x, y)  # as in SciPy, which differs next to a NaN
            right = np.clip(np.searchsorted(self._places, plain), 1, len(x) - 1)
            left = right - 1
            slopes = (y[right] - y[left]) / along_first(x[right] - x[left], y.ndim)
            return slopes * along_first(flat - x[left], y.ndim) + y[left]
        if self._degree == 1:
            left = np.clip(np.searchsorted(self._places, plain, "right") - 1, 0, len(x) - 2)
            share = along_first((flat - x[left]) / (x[left + 1] - x[left]), y.ndim)
            return y[left] * (1.0 - share) + y[left + 1] * share
        if self._kind == "previous" or self._degree == 0:
            found = y[np.clip(np.searchsorted(self._places, plain, "right") - 1, 0, len(x) - 1)]
            is_nan = along_first(np.isnan(plain), found.ndim)
            return np.where(is_nan, np.nan, found) if self._degree == 0 and is_nan.any() else found
        if self._kind == "next":
            return y[np.clip(np.searchsorted(self._places, plain, "left"), 0, len(x) - 1)]
        middles = self._places / 2.0
        middles = middles[1:] + middles[:-1]
        return y[np.searchsorted(middles, plain, "right" if self._kind == "nearest-up" else "left")]


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False
) -> Any:
    """Interpolate between scattered points; gradients flow to the values and the evaluation points.

    Arguments:
        points, values: the points, as rows of an array or as an array for each coordinate, and their values.
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
