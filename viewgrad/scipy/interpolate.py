"""`scipy.interpolate` for tensors: splines and interpolation in one dimension.

They are differentiable in the values and in the places where they are evaluated. Others are in `pieces.py` and
`grids.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.interpolate  # type: ignore[import-untyped]

from ..numpy.functions import lost
from ..numpy.namespace import filled, public_names
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand
from .grids import GRIDS
from .pieces import PIECES
from .scattered import SCATTERED, LinearNDInterpolator, NearestNDInterpolator, plain_places

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


class PiecewisePolynomial:
    """A piecewise polynomial that is linear in given values.

    Arguments:
        breaks: where the pieces meet.
        basis: the coefficients of the pieces for each value alone: powers from the highest, pieces, values.
        values: the values, the first dimension for `basis`; gradients flow to them.
        extrapolate: whether the first and the last piece go on beyond the ends; NaN there, where not. Or "periodic".
    """

    def __init__(self, breaks: Any, basis: Any, values: Any, extrapolate: Any = True) -> None:
        self.x, self.basis, self.values, self.extrapolate = breaks, basis, values, extrapolate

    @property
    def c(self) -> Any:
        """The coefficients, from the highest power, of each piece."""
        return np.tensordot(self.basis, self.values, ((2,), (0,)))

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        beyond = self.extrapolate if extrapolate is None else extrapolate
        places = as_operand(as_argument(x)) * 1.0
        if beyond == "periodic":
            period = self.x[-1] - self.x[0]
            places = places - np.floor((plain_values(places) - self.x[0]) / period) * period
        flat = places.reshape(-1)
        plain = plain_values(flat)
        pieces = np.clip(np.searchsorted(self.x, plain, "right") - 1, 0, len(self.x) - 2)
        away = flat - self.x[pieces]
        degree = self.basis.shape[0] - 1
        total: Any = 0.0
        for row in range(degree + 1 - nu):
            power = degree - row
            factor = float(np.prod(np.arange(power - nu + 1, power + 1)))
            mixed = np.tensordot(as_operand(self.basis[row][pieces]), self.values, ((1,), (0,)))
            lift = away.reshape((-1,) + (1,) * (mixed.ndim - 1))
            total = total + factor * mixed * (lift ** (power - nu) if power > nu else 1.0)
        if not hasattr(total, "shape"):
            total = np.tensordot(as_operand(self.basis[0][pieces] * 0.0), self.values, ((1,), (0,)))
        if beyond is False:
            outside = (plain < self.x[0]) | (plain > self.x[-1])
            total = np.where(outside.reshape((-1,) + (1,) * (total.ndim - 1)), np.nan, total)
        return total.reshape(places.shape + self.values.shape[1:])

    def derivative(self, nu: int = 1) -> PiecewisePolynomial:
        """The derivative, as such a polynomial."""
        basis = self.basis
        for _ in range(nu):
            degree = basis.shape[0] - 1
            basis = basis[:-1] * np.arange(degree, 0, -1)[:, None, None] if degree else basis * 0.0
        return PiecewisePolynomial(self.x, basis, self.values, self.extrapolate)

    def antiderivative(self) -> PiecewisePolynomial:
        """The integral from the first break, as such a polynomial."""
        degree = self.basis.shape[0]
        raised = self.basis / np.arange(degree, 0, -1)[:, None, None]
        widths = np.diff(self.x)
        powers = widths[None, :] ** np.arange(degree, 0, -1)[:, None]
        over = (raised * powers[:, :, None]).sum(0)
        start = np.concatenate([np.zeros_like(over[:1]), np.cumsum(over, 0)[:-1]])
        return PiecewisePolynomial(self.x, np.concatenate([raised, start[None]]), self.values, self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two places."""
        whole = self.antiderivative()
        return whole(b) - whole(a)


def _knots(x: Any, name: str) -> Any:
    if carries_history(x):
        raise lost(
            f"scipy.interpolate.{name}", "no gradient flows to the places that are interpolated; pass their detach()"
        )
    return np.asarray(plain_values(as_argument(x)), float)


def _spline(
    name: str, make: Callable[[Any, Any], Any], x: Any, y: Any, axis: int, extrapolate: Any
) -> PiecewisePolynomial:
    """A spline through values, from the splines through the unit vectors."""
    knots = _knots(x, name)
    values = np.moveaxis(as_operand(as_argument(y)) * 1.0, axis, 0)  # type: ignore[type-var]
    unit = make(knots, np.eye(len(knots)))
    if isinstance(unit, scipy.interpolate.BSpline):
        columns = [
            scipy.interpolate.PPoly.from_spline((unit.t, unit.c[:, place], unit.k)) for place in range(len(knots))
        ]
        breaks = columns[0].x
        inside = (np.diff(breaks) > 0) & (breaks[:-1] >= knots[0]) & (breaks[1:] <= knots[-1])
        basis = np.stack([column.c[:, inside] for column in columns], -1)
        return PiecewisePolynomial(np.append(breaks[:-1][inside], knots[-1]), basis, values, extrapolate)
    return PiecewisePolynomial(unit.x, unit.c, values, extrapolate)


def _cubic_spline(x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> Any:
    """The cubic spline through values; gradients flow to the values, and to where it is evaluated."""
    if not isinstance(bc_type, str):
        if carries_history(bc_type) or any(np.any(np.asarray(plain_values(end[1])) != 0) for end in bc_type
                                           if not isinstance(end, str)):  # fmt: skip
            raise lost("scipy.interpolate.CubicSpline", "give bc_type by name, or slopes of 0 at the ends")
        bc_type = tuple(
            end if isinstance(end, str) else (end[0], np.zeros(len(_knots(x, "CubicSpline")))) for end in bc_type
        )

    def make(knots: Any, values: Any) -> Any:
        if bc_type == "periodic":
            values = values.copy()
            values[-1] = values[0]  # what the last value is must not matter
        return scipy.interpolate.CubicSpline(knots, values, 0, bc_type)

    periodic = "periodic" if bc_type == "periodic" else True
    return _spline("CubicSpline", make, x, y, axis, periodic if extrapolate is None else extrapolate)


class CubicSpline(PiecewisePolynomial):
    """The cubic spline through values; gradients flow to the values, and to where it is evaluated."""

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        made = _cubic_spline(x, y, axis, bc_type, extrapolate)
        super().__init__(made.x, made.basis, made.values, made.extrapolate)


def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0) -> Any:
    """The spline of degree `k` through values."""
    if t is not None or bc_type is not None:
        raise lost("scipy.interpolate.make_interp_spline", "leave the knots and the conditions at the ends to SciPy")
    return _spline("make_interp_spline", lambda x, y: scipy.interpolate.make_interp_spline(x, y, k), x, y, axis, True)


class interp1d:
    """Interpolation in one dimension; gradients flow to the values and to where they are interpolated.

    Arguments:
        x, y: the places and the values.
        kind: "linear", "nearest", "previous", "next", "zero", "slinear", "quadratic", "cubic", or a spline's degree.
        axis: the dimension of `y` along which the places lie.
        bounds_error: whether a place outside raises an error; so unless `fill_value` is given.
        fill_value: what is there instead, a pair of it for both ends, or "extrapolate".
        copy, assume_sorted: as SciPy has them.
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
        fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        knots = _knots(x, "interp1d")
        values = np.moveaxis(as_operand(as_argument(y)) * 1.0, axis, 0)  # type: ignore[type-var]
        order = np.argsort(knots, kind="stable")
        self.x, self.y, self.kind, self.fill_value = knots[order], values[order], kind, fill_value
        self.axis = axis % values.ndim
        self.extrapolates = isinstance(fill_value, str)
        given = self.extrapolates or isinstance(fill_value, tuple) or not np.all(np.isnan(plain_values(fill_value)))
        self.bounds_error = not given if bounds_error is None else bounds_error
        degrees = {"slinear": 1, "quadratic": 2, "cubic": 3}
        degree = degrees.get(kind, kind if isinstance(kind, int) else None)
        self._spline = make_interp_spline(self.x, self.y, degree) if degree else None

    def __call__(self, x: Any) -> Any:
        places = as_operand(as_argument(x)) * 1.0
        flat = places.reshape(-1)
        plain = plain_values(flat)
        below, above = plain < self.x[0], plain > self.x[-1]
        if self.bounds_error and (below.any() or above.any()):
            raise ValueError("A value in x_new is outside of the interpolation range.")
        found = self._inside(flat, plain)
        if not self.extrapolates and (below.any() or above.any()):
            low, high = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value,) * 2
            shape = (-1,) + (1,) * (found.ndim - 1)
            found = np.where(below.reshape(shape), low, np.where(above.reshape(shape), high, found))
        found = found.reshape(places.shape + self.y.shape[1:])
        count = places.ndim
        return np.moveaxis(found, tuple(range(count)), tuple(range(self.axis, self.axis + count)))

    def _inside(self, flat: Any, plain: Any) -> Any:
        if self._spline is not None:
            return self._spline(flat)
        if self.kind == "linear":
            right = np.clip(np.searchsorted(self.x, plain), 1, len(self.x) - 1)
            left = right - 1
            share = ((flat - self.x[left]) / (self.x[right] - self.x[left])).reshape((-1,) + (1,) * (self.y.ndim - 1))
            return self.y[left] + share * (self.y[right] - self.y[left])
        if self.kind in ("previous", "zero"):
            return self.y[np.clip(np.searchsorted(self.x, plain, "right") - 1, 0, len(self.x) - 1)]
        if self.kind == "next":
            return self.y[np.clip(np.searchsorted(self.x, plain, "left"), 0, len(self.x) - 1)]
        middles = (self.x[1:] + self.x[:-1]) / 2.0
        return self.y[np.searchsorted(middles, plain, "right" if self.kind == "nearest-up" else "left")]


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False
) -> Any:
    """Values interpolated between scattered places; gradients flow to the values, and to where they are asked.

    Arguments:
        points, values: the places, one row for each or an array for each coordinate, and the values there.
        xi: where it is asked for.
        method: "nearest", "linear", or "cubic"; the last for tensors with a history in one dimension alone.
        fill_value: what is outside of the hull of the places, unless "nearest" is asked for.
        rescale: whether each coordinate is brought to the same range before.
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
    **PIECES,
    **GRIDS,
    **SCATTERED,
    "griddata": griddata,
    "CubicSpline": CubicSpline,
    "interp1d": interp1d,
    "make_interp_spline": make_interp_spline,
}
globals().update(filled(scipy.interpolate, MADE, frozenset(), {}))
__all__ = public_names(scipy.interpolate)
