"""Interpolation on grids from `scipy.interpolate`, for tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.interpolate as theirs  # type: ignore[import-untyped]

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..tensor.shapes import along_first
from .fitpack import bisplev
from .piecewise import BSpline, PchipInterpolator, as_array, horner, spline_basis, through_points
from .tensor_products import TENSOR_PRODUCTS, NdBSpline
from .wrap import double_copy, float_copy


class RectBivariateSpline:
    """A bivariate spline through values on a grid; gradients flow to the values and the evaluation points."""

    def __init__(self, x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: float = 0) -> None:
        plain = theirs.RectBivariateSpline(as_array(x), as_array(y), as_array(z), list(bbox), kx, ky, s)
        tx, ty, c = plain.tck
        c = c.reshape(len(tx) - kx - 1, len(ty) - ky - 1)
        if carries_history((x, y)) or (s and carries_history(z)):
            raise lost("scipy.interpolate.RectBivariateSpline", "gradients flow only to the values, and only with s=0")
        if carries_history(z):
            rows = np.linalg.inv(np.array(plain_values(spline_basis(as_array(x), tx, kx))))
            columns = np.linalg.inv(np.array(plain_values(spline_basis(as_array(y), ty, ky))))
            c = as_tensors(rows) @ float_copy(z) @ as_tensors(columns).T
        self.tck = (tx, ty, c)
        self.degrees = (kx, ky)

    @staticmethod
    def _from_tck(tck: Any, degrees: tuple[int, int]) -> RectBivariateSpline:
        """Return a spline with given knots, coefficients (a matrix) and degrees."""
        spline = RectBivariateSpline.__new__(RectBivariateSpline)
        spline.tck, spline.degrees = tck, degrees
        return spline

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        if not grid:
            return self.ev(x, y, dx, dy)
        x, y = np.atleast_1d(float_copy(x)), np.atleast_1d(float_copy(y))
        return float_copy(bisplev(x, y, (*self.tck, *self.degrees), dx, dy)).reshape(len(x), len(y))

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Return the values at points."""
        places = np.broadcast_arrays(float_copy(xi), float_copy(yi))
        rows = [
            spline_basis(np.clip(each.reshape(-1), t[k], t[-k - 1]), t, k, nu)
            for each, t, k, nu in zip(places, self.tck, self.degrees, (dx, dy))
        ]
        return (rows[0] @ float_copy(self.tck[2]) * rows[1]).sum(-1).reshape(places[0].shape)

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        """Return the integral over a rectangle; the spline is 0 outside the grid."""
        rows = [
            BSpline(t, np.eye(len(t) - k - 1), k).integrate(*(np.clip(float_copy(end), t[k], t[-k - 1]) for end in ab))
            for t, k, ab in zip(self.tck, self.degrees, ((xa, xb), (ya, yb)))
        ]
        return rows[0] @ float_copy(self.tck[2]) @ rows[1]


DEGREES: Final = {"slinear": 1, "cubic": 3, "quintic": 5, "pchip": 3}


class RegularGridInterpolator:
    """Interpolation on a grid; gradients flow to the grid, the values and the evaluation points.

    Arguments:
        points: the grid points along each dimension.
        values: the values on the grid.
        method: "linear", "nearest", "slinear", "cubic", "quintic" or "pchip".
        bounds_error: whether an evaluation point outside the grid is an error.
        fill_value: the value outside the grid; None to extrapolate.
    """

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan,
        **options: Any,
    ) -> None:  # fmt: skip
        grid = [double_copy(axis) if carries_history(axis) else as_array(axis) for axis in points]
        for place, axis in enumerate(map(as_array, grid)):
            if not (np.all(np.diff(axis) > 0) or np.all(np.diff(axis) < 0)):
                raise ValueError(f"The points in dimension {place} must be strictly ascending or descending")
        degree = DEGREES.get(method.removesuffix("_legacy"), 0)
        for place, axis in enumerate(grid):
            if len(axis) <= degree:
                raise ValueError(
                    f"There are {len(axis)} points in dimension {place}, but method {method} requires at least "
                    f"{degree + 1} points per dimension."
                )
        self.values: Any = float_copy(values)
        turned = [place for place, axis in enumerate(map(as_array, grid)) if axis[0] > axis[-1]]
        self.values = np.flip(self.values, tuple(turned)) if turned else self.values
        self.grid: tuple[Any, ...] = tuple(axis[::-1] if place in turned else axis for place, axis in enumerate(grid))
        self._plain_grid = tuple(map(as_array, self.grid))
        self.method, self.bounds_error, self.fill_value, self.options = method, bounds_error, fill_value, options

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        method = self.method if method is None else method
        degree = DEGREES.get(method.removesuffix("_legacy"))
        if method not in ("linear", "nearest") and degree is None:
            raise ValueError(f"Method '{method}' is not defined")
        if nu is not None and method not in ("slinear", "cubic", "quintic"):
            raise ValueError(f"Can only compute derivatives for methods slinear, cubic and quintic, got {method!r}.")
        points = self._points(xi)
        if degree is not None and not carries_history((points, self.values, self.grid)):
            values = np.array(plain_values(self.values))
            scipys = theirs.RegularGridInterpolator(
                self.grid, values, method, self.bounds_error, self.fill_value, **self.options
            )
            return as_tensors(scipys(as_array(points), nu=nu))
        flat = points.reshape(-1, len(self.grid))
        plain = plain_values(flat.detach())
        outside = np.zeros(len(plain), bool)
        for place, axis in enumerate(self._plain_grid):
            beyond = (plain[:, place] < axis[0]) | (plain[:, place] > axis[-1])
            if self.bounds_error and beyond.any():
                raise ValueError(f"One of the requested xi is out of bounds in dimension {place}")
            outside |= beyond
            if degree is not None and len(axis) <= degree:
                raise ValueError(
                    f"There are {len(axis)} points in dimension {place}, but method {method} requires at least "
                    f"{degree + 1} points per dimension."
                )
        if method == "pchip":
            found = self._monotone(flat, plain)
        elif degree is not None:
            found = self._spline(degree)(flat, nu=nu)
        else:
            found = self._mixed(self._corners(flat, plain, method))
        if np.isnan(plain).any():
            found = np.where(along_first(np.isnan(plain).any(1), found.ndim), np.nan, found)
        if self.fill_value is not None and outside.any():
            found = np.where(along_first(outside, found.ndim), self.fill_value, found)
        return found.reshape(points.shape[:-1] + self.values.shape[len(self.grid) :])

    def _spline(self, degree: int) -> NdBSpline:
        """Return the spline through the values."""
        c, knots = self.values, []
        for place, axis in enumerate(self.grid):
            along = through_points(double_copy(axis), c, degree, None, place)
            knots.append(along.t)
            c = np.moveaxis(along.c, 0, place)
        return NdBSpline(tuple(knots), c, degree)

    def _monotone(self, flat: Any, plain: Any) -> Any:
        """Interpolate with monotone cubics along one dimension after another, starting with the last."""
        last = len(self.grid) - 1
        found = PchipInterpolator(self.grid[last], np.moveaxis(self.values, last, 0))(flat[:, last])
        for place in range(last - 1, -1, -1):
            axis, leading = self.grid[place], np.moveaxis(found, place + 1, 0)
            pieces = _pieces(self._plain_grid[place], plain[:, place])
            c = PchipInterpolator(axis, leading).c[:, pieces, np.arange(len(plain))]
            found = horner(c, along_first(flat[:, place] - axis[pieces], c.ndim - 1), 0)
        return found

    def _corners(self, flat: Any, plain: Any, method: str) -> list[list[tuple[Any, Any]]]:
        """Return the indices of the neighbouring grid points for each dimension, with their weights."""
        corners: list[list[tuple[Any, Any]]] = []
        for place, axis in enumerate(self.grid):
            if len(axis) == 1:  # constant along this dimension
                corners.append([(np.zeros(len(plain), int), 1.0)])
                continue
            left = _pieces(self._plain_grid[place], plain[:, place])
            share = (flat[:, place] - axis[left]) / (axis[left + 1] - axis[left])
            if method == "nearest":
                corners.append([(left + (plain_values(share.detach()) > 0.5), 1.0)])
            else:
                corners.append([(left, 1 - share), (left + 1, share)])
        return corners

    def _points(self, xi: Any) -> Any:
        """Return the points with their coordinates along the last dimension."""
        if isinstance(xi, tuple):
            return np.stack(np.broadcast_arrays(*(float_copy(each) for each in xi)), -1)
        points = float_copy(xi)
        return points.reshape(-1, len(self.grid)) if points.ndim == 1 else points

    def _mixed(self, corners: list[list[tuple[Any, Any]]]) -> Any:
        """Return the weighted sum of the values at the corners of cells."""
        mixed: list[tuple[tuple[Any, ...], Any]] = [((), 1.0)]
        for choices in corners:
            mixed = [((*index, i), weight * w) for index, weight in mixed for i, w in choices]
        total: Any = 0.0
        for index, weight in mixed:
            values = self.values[index]
            shaped = along_first(weight, values.ndim) if np.ndim(weight) else weight
            total = total + shaped * values
        return total


def _pieces(axis: Any, places: Any) -> Any:
    """Return the grid cell of each point; the outer cells extend to infinity."""
    return np.clip(np.searchsorted(axis, places, "right") - 1, 0, len(axis) - 2)


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """Interpolate on a grid; see `RegularGridInterpolator`."""
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


GRIDS: Final[dict[str, Any]] = {
    **TENSOR_PRODUCTS,
    "RectBivariateSpline": RectBivariateSpline,
    "RegularGridInterpolator": RegularGridInterpolator,
    "interpn": interpn,
}
