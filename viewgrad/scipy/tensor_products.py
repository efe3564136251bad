"""Piecewise polynomials and splines in several dimensions from `scipy.interpolate`, for tensors."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.conversion import carries_history, plain_values
from ..tensor.shapes import along_first
from .piecewise import BSpline, PPoly, as_array, horner, is_beyond, spline_basis
from .wrap import double_copy, numbers


class NdPPoly:
    """A piecewise polynomial in several dimensions; gradients flow to coefficients, breakpoints and evaluation points.

    Arguments:
        c: the coefficients: the first dimensions are the powers along each dimension, highest first, followed by the
            pieces along each dimension.
        x: the ascending breakpoints for each dimension.
        extrapolate: whether to extend the outer pieces beyond the ends; otherwise the result there is NaN.
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None) -> None:
        c, x = double_copy(c), tuple(map(double_copy, x))
        count = len(x)
        if any(each.ndim != 1 or each.size < 2 for each in x):
            raise ValueError("x arrays must all be 1-dimensional, with at least 2 points")
        if c.ndim < 2 * count:
            raise ValueError("c must have at least 2*len(x) dimensions")
        if any(np.any(np.diff(as_array(each)) < 0) for each in x):
            raise ValueError("x-coordinates are not in increasing order")
        if any(size != each.size - 1 for size, each in zip(c.shape[count:], x)):
            raise ValueError("x and c do not agree on the number of intervals")
        self._set(c, x, extrapolate)

    def _set(self, c: Any, x: tuple[Any, ...], extrapolate: Any) -> None:
        self.c, self.x, self.extrapolate = c, x, True if extrapolate is None else bool(extrapolate)

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None) -> NdPPoly:
        """Return a polynomial without checks."""
        made = cls.__new__(cls)
        made._set(numbers(c), tuple(map(numbers, x)), extrapolate)
        return made

    def __call__(self, x: Any, nu: Any = None, extrapolate: Any = None) -> Any:
        places, count = _points(x), len(self.x)
        orders = (0,) * count if nu is None else tuple(map(operator.index, nu))
        if len(orders) != count:
            raise ValueError("invalid number of derivative orders nu")
        if places.shape[-1] != count:
            raise ValueError(f"points of {places.shape[-1]} coordinates for a polynomial of {count} dimensions")
        flat = places.reshape(-1, count)
        plain = plain_values(flat.detach())
        pieces, outside = [], np.zeros(len(plain), bool)
        for place, breaks in enumerate(map(as_array, self.x)):
            pieces.append(np.clip(np.searchsorted(breaks, plain[:, place], "right") - 1, 0, len(breaks) - 2))
            outside |= (plain[:, place] < breaks[0]) | (plain[:, place] > breaks[-1])
        found = self.c[(slice(None),) * count + tuple(pieces)]
        for place, (breaks, piece, order) in enumerate(zip(self.x, pieces, orders)):
            away = flat[:, place] - breaks[piece]
            # The points follow the powers of the remaining dimensions.
            away = away.reshape((1,) * (count - 1 - place) + (-1,) + (1,) * (self.c.ndim - 2 * count))
            found = horner(found, away, order)
        if not (self.extrapolate if extrapolate is None else extrapolate):
            found = np.where(along_first(outside, found.ndim), np.nan, found)
        return found.reshape(places.shape[:-1] + self.c.shape[2 * count :])

    def _along(self, axis: int) -> tuple[Any, int]:
        """Return the polynomial along a dimension, whose coefficients are polynomials along the other dimensions."""
        count = len(self.x)
        axis = np.lib.array_utils.normalize_axis_index(axis, count)
        c = np.moveaxis(self.c, (axis, count + axis), (0, 1))
        return PPoly.construct_fast(c, self.x[axis], self.extrapolate), axis

    def _each(self, nu: Any, name: str) -> NdPPoly:
        made = self
        for axis, order in enumerate(nu):
            along, _ = made._along(axis)
            c = np.moveaxis(getattr(along, name)(order).c, (0, 1), (axis, len(self.x) + axis))
            made = NdPPoly.construct_fast(c, self.x, self.extrapolate)
        return made

    def derivative(self, nu: Any) -> NdPPoly:
        """Return the partial derivative of the given orders."""
        return self._each(nu, "derivative")

    def antiderivative(self, nu: Any) -> NdPPoly:
        """Return the antiderivative of the given orders."""
        return self._each(nu, "antiderivative")

    def integrate_1d(self, a: Any, b: Any, axis: int, extrapolate: Any = None) -> Any:
        """Return the integral along one dimension: a polynomial in the others, or the values if there are none."""
        beyond = self.extrapolate if extrapolate is None else bool(extrapolate)
        along, axis = self._along(axis)
        c = along.integrate(a, b, beyond)
        others = self.x[:axis] + self.x[axis + 1 :]
        return NdPPoly.construct_fast(c, others, beyond) if others else c

    def integrate(self, ranges: Any, extrapolate: Any = None) -> Any:
        """Return the integral over a box, given by the ends for each dimension."""
        if len(ranges) != len(self.x):
            raise ValueError("Range not a sequence of correct length")
        found: Any = self
        for ends in ranges:
            found = found.integrate_1d(*ends, 0, extrapolate)
        return found


class NdBSpline:
    """A spline in several dimensions; gradients flow to its knots, coefficients and evaluation points.

    Arguments:
        t: a tuple of the knots along each dimension.
        c: the coefficients; the first dimensions correspond to the knots.
        k: the degree, or one for each dimension.
        extrapolate: whether to extend the outer pieces beyond the ends; otherwise the result there is NaN.
    """

    def __init__(self, t: Any, c: Any, k: Any, *, extrapolate: Any = None) -> None:
        if not isinstance(t, tuple):
            raise ValueError(f"Expect `t` to be a tuple of array-likes. Got {t} instead.")
        self.k = tuple(map(operator.index, k)) if np.ndim(k) else (operator.index(k),) * len(t)
        if len(self.k) != len(t):
            raise ValueError(f"len(t) = {len(t)} != len(k) = {len(self.k)}.")
        self.c = double_copy(c)
        if self.c.ndim < len(t):
            raise ValueError(f"Coefficients must be at least {len(t)}-dimensional.")
        for knots, degree, size in zip(t, self.k, self.c.shape):
            BSpline(knots, np.zeros(size), degree)  # raises for unsupported arguments
            if size != len(as_array(knots)) - degree - 1:
                raise ValueError(f"{len(as_array(knots))} knots of degree {degree} do not match {size} coefficients")
        self.t = tuple([double_copy(each) if carries_history(each) else as_array(each) for each in t])
        self.extrapolate = True if extrapolate is None else bool(extrapolate)

    def __call__(self, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Any:
        places, count = double_copy(xi), len(self.t)
        orders = (0,) * count if nu is None else tuple(map(operator.index, nu))
        if len(orders) != count or min(orders) < 0:
            raise ValueError(f"invalid number of derivative orders {nu = } for ndim = {count}.")
        if places.shape[-1] != count:
            raise ValueError(f"Shapes: xi.shape={places.shape} and ndim={count}")
        beyond = self.extrapolate if extrapolate is None else bool(extrapolate)
        flat, found = places.reshape(-1, count), self.c
        outside: Any = False
        for place, (knots, degree, order) in enumerate(zip(self.t, self.k, orders)):
            rows = spline_basis(flat[:, place], knots, degree, order)
            outside = outside | is_beyond(flat[:, place], knots, degree)
            found = np.einsum("ij,ij...->i...", rows, found) if place else np.tensordot(rows, found, ((1,), (0,)))
        if not beyond:
            found = np.where(along_first(outside, found.ndim), np.nan, found)
        return found.reshape(places.shape[:-1] + self.c.shape[count:])

    def derivative(self, nu: Any) -> Any:
        """Return the partial derivative of the given orders as a piecewise polynomial."""
        orders = tuple(map(operator.index, nu))
        if len(orders) != len(self.t) or min(orders) < 0:
            raise ValueError(f"invalid number of derivative orders {nu = } for ndim = {len(self.t)}.")
        c, breaks = self.c, []
        for place, (knots, degree) in enumerate(zip(self.t, self.k)):
            along = PPoly.from_spline(BSpline.construct_fast(knots, np.moveaxis(c, 2 * place, 0), degree))
            breaks.append(along.x)
            # Powers and pieces follow those of the previous dimensions; see the order of `NdPPoly`.
            c = np.moveaxis(along.c, (0, 1), (place, 2 * place + 1))
        return NdPPoly.construct_fast(c, breaks, self.extrapolate).derivative(orders)


def _points(x: Any) -> Any:
    """Return points with their coordinates along the last dimension."""
    if isinstance(x, tuple):
        return np.stack(np.broadcast_arrays(*map(double_copy, x)), -1)
    points = double_copy(x)
    return points[..., None] if points.ndim == 1 else points


TENSOR_PRODUCTS: Final[dict[str, Any]] = {"NdBSpline": NdBSpline, "NdPPoly": NdPPoly}
