"""Piecewise polynomials and splines of `scipy.interpolate`, for tensors: by their coefficients, and through points."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
import scipy.interpolate as theirs  # type: ignore[import-untyped]

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..tensor.shapes import along_first
from .wrap import float_copy, numbers


def as_array(value: Any) -> Any:
    return np.array(plain_values(numbers(value).detach()), float)


class Pieces:
    """A piecewise polynomial, given by the coefficients of each piece, from the highest power, and the breakpoints.

    Gradients flow to the coefficients, the breakpoints and the evaluation points.

    Arguments:
        c: the coefficients, with dimensions for powers, pieces, and further ones.
        x: the breakpoints, ascending or descending.
        extrapolate: whether to extend the first and the last piece beyond the ends; otherwise the result there is NaN.
            Or "periodic".
        axis: the interpolation axis.
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.c, self.x, self.axis = float_copy(c), float_copy(x), axis
        self.extrapolate = True if extrapolate is None else extrapolate

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Any = None) -> Pieces:
        """Return the pieces of a spline, given as an object or by its knots, coefficients and degree."""
        spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
        pieces = spline.derivative(0)
        return Pieces(pieces.c, pieces.x, spline.extrapolate if extrapolate is None else extrapolate, pieces.axis)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        beyond = self.extrapolate if extrapolate is None else extrapolate
        places = float_copy(x)
        ends = plain_values(self.x.detach())
        if isinstance(beyond, str):
            places = places - np.floor((plain_values(places.detach()) - ends[0]) / (ends[-1] - ends[0])) * (
                self.x[-1] - self.x[0]
            )
        flat = places.reshape(-1)
        plain = plain_values(flat.detach())
        if ends[0] > ends[-1]:  # the pieces are searched for in ascending order
            ends, plain = -ends, -plain
        pieces = np.clip(np.searchsorted(ends, plain, "right") - 1, 0, len(ends) - 2)
        total = self._values(along_first(flat - self.x[pieces], self.c.ndim - 1), pieces, nu)
        if beyond is False:
            outside = (plain < ends[0]) | (plain > ends[-1])
            total = np.where(along_first(outside, self.c.ndim - 1), np.nan, total)
        total = total.reshape(places.shape + self.c.shape[2:])
        if self.axis:
            count = places.ndim
            total = np.moveaxis(total, tuple(range(count)), tuple(range(self.axis, self.axis + count)))
        return total

    def _values(self, away: Any, pieces: Any, nu: int) -> Any:
        """Return the values, or derivatives, at distances from the first breakpoints of pieces."""
        count = self.c.shape[0]
        total = self.c[0][pieces] * 0.0
        for place in range(count - nu):
            power = count - 1 - place
            factor = float(np.prod(np.arange(power - nu + 1, power + 1)))
            total = total * away + factor * self.c[place][pieces]
        return total

    def derivative(self, nu: int = 1) -> Pieces:
        """Return the derivative as a piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            degree = c.shape[0] - 1
            factors = along_first(np.arange(degree, 0, -1.0), c.ndim)
            c = c[:-1] * factors if degree else c * 0.0
        return Pieces(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Pieces:
        """Return the antiderivative as a piecewise polynomial."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            count = c.shape[0]
            raised = c / along_first(np.arange(count, 0, -1.0), c.ndim)
            widths = along_first(np.diff(self.x), c.ndim - 1)
            over: Any = 0.0
            for place in range(count):
                over = (over + raised[place]) * widths if place else raised[place] * widths
            start = np.concatenate([over[:1] * 0.0, np.cumsum(over, 0)[:-1]])
            c = np.concatenate([raised, start[None]])
        beyond = False if nu and isinstance(self.extrapolate, str) else self.extrapolate  # it is not periodic
        return Pieces(c, self.x, beyond, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral between two points."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        whole, first, last = self.antiderivative(), self.x[0], self.x[-1]
        if not isinstance(beyond, str):
            return whole(b, 0, beyond) - whole(a, 0, beyond)
        period, of_period = last - first, whole(last, 0, True)

        def up_to(place: Any) -> Any:
            count = np.floor((plain_values(numbers(place).detach()) - as_array(first)) / as_array(period))
            return count * of_period + whole(place - count * period, 0, True)

        return up_to(b) - up_to(a)

    def roots(self, *args: Any, **kwargs: Any) -> Any:
        """Return the roots, for coefficients without history."""
        return self._scipys("roots")(*args, **kwargs)

    def solve(self, *args: Any, **kwargs: Any) -> Any:
        """Return the points with a given value, for coefficients without history."""
        return self._scipys("solve")(*args, **kwargs)

    def _scipys(self, name: str) -> Any:
        if carries_history((self.c, self.x)):
            raise lost(f"scipy.interpolate.PPoly.{name}", "find the place by viewgrad.scipy.optimize.brentq")
        return getattr(theirs.PPoly(as_array(self.c), as_array(self.x), self.extrapolate), name)


class BPoly(Pieces):
    """A piecewise polynomial in Bernstein's basis; gradients flow as for `PPoly`.

    Arguments:
        c: the coefficients, with dimensions for basis polynomials, pieces, and further ones.
        x: the breakpoints.
        extrapolate, axis: as for `PPoly`.
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        weights, breaks = float_copy(c), float_copy(x)
        degree = weights.shape[0] - 1
        widths = along_first(np.diff(breaks), weights.ndim - 1)
        powers, differences = [], weights
        for power in range(degree + 1):
            powers.append(math.comb(degree, power) * differences[0] / widths**power)
            differences = np.diff(differences, axis=0)
        super().__init__(np.stack(powers[::-1]), breaks, extrapolate, axis)
        self._weights, self._widths = weights, widths

    def _values(self, away: Any, pieces: Any, nu: int) -> Any:
        """Evaluate in Bernstein's basis, which keeps digits that powers of high degrees lose."""
        weights, widths = self._weights, self._widths
        degree = weights.shape[0] - 1
        if nu > degree:
            return weights[0][pieces] * 0.0
        for _ in range(nu):
            weights, degree = np.diff(weights, axis=0) * (degree / widths), degree - 1
        share = away / widths[pieces]
        total, power, rest = weights[0][pieces] * 1.0, share * 0.0 + 1.0, 1.0 - share
        for place in range(1, degree + 1):  # as Horner's rule, in `rest`
            power = power * share
            total = total * rest + math.comb(degree, place) * power * weights[place][pieces]
        return total

    @classmethod
    def from_derivatives(cls, xi: Any, yi: Any, orders: Any = None, extrapolate: Any = None) -> BPoly:
        """Return the polynomial with given values and derivatives at points, which have no history."""
        if carries_history((xi, yi)):
            raise lost("scipy.interpolate.BPoly.from_derivatives", "use CubicHermiteSpline")
        found = theirs.BPoly.from_derivatives(plain_values(xi), plain_values(yi), orders, extrapolate)
        return cls(found.c, found.x, found.extrapolate, found.axis)


def ascending(x: Any) -> Any:
    """Return points as a tensor; raise ValueError if they do not ascend."""
    if not np.all(np.diff(as_array(x)) > 0):
        raise ValueError("the points x must be strictly increasing")
    return float_copy(x)


def _leading(y: Any, axis: int) -> tuple[Any, int]:
    """Return values with the dimension of the places first, and which dimension that was."""
    y = float_copy(y)
    return (np.moveaxis(y, axis, 0), axis % y.ndim)


class CubicHermiteSpline(Pieces):
    """A cubic interpolant with given slopes."""

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, (y, axis), slopes = float_copy(x), _leading(y, axis), _leading(dydx, axis)[0]
        widths = along_first(np.diff(x), y.ndim)
        steep = np.diff(y, axis=0) / widths
        bent = (slopes[:-1] + slopes[1:] - 2 * steep) / widths
        c = np.stack([bent / widths, (steep - slopes[:-1]) / widths - bent, slopes[:-1], y[:-1]])
        super().__init__(c, x, extrapolate, axis)


def spline_slopes(x: Any, y: Any, bc_type: Any) -> Any:
    """Return the slopes at the points of a cubic spline through them.

    Source: C. de Boor, "A Practical Guide to Splines" (1978), chapter 4.

    Arguments:
        x, y: tensors of the points and values, along the first dimension.
        bc_type: the conditions at the ends, as in `scipy.interpolate.CubicSpline`.
    """
    count, shape = len(x), y.shape[1:]
    h, y = np.diff(x), y.reshape(count, -1)
    steep = np.diff(y, axis=0) / h[:, None]
    if isinstance(bc_type, str) and bc_type == "periodic":
        before, rise = np.roll(h, 1), np.roll(steep, 1, axis=0)
        place = np.eye(count - 1)
        matrix = (2 * (before + h))[:, None] * place
        matrix = matrix + h[:, None] * np.roll(place, -1, axis=1) + before[:, None] * np.roll(place, 1, axis=1)
        inner = np.linalg.solve(matrix, 3 * (h[:, None] * rise + before[:, None] * steep))
        return np.concatenate([inner, inner[:1]]).reshape((count, *shape))
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if count == 2:
        ends = tuple([(1, steep[0]) if isinstance(end, str) and end == "not-a-knot" else end for end in ends])
    names = {"clamped": (1, 0.0), "natural": (2, 0.0)}
    conditions = [names.get(end, end) if isinstance(end, str) else end for end in ends]
    is_parabola = count == 3 and all(isinstance(end, str) for end in conditions)
    rows, right = [], []
    for end, (condition, first, last) in enumerate(zip(conditions, (0, -1), (1, -2), strict=True)):
        towards = 1.0 if end == 0 else -1.0
        units = np.eye(count)
        if is_parabola:
            rows.append(as_tensors(units[first] + units[last]))
            right.append(2 * steep[first])
        elif isinstance(condition, str):
            near, far = h[first], h[last]
            both = near + far
            rows.append(far * units[first] + both * units[last])
            right.append(((near + 2 * both) * far * steep[first] + near * near * steep[last]) / both)
        elif condition[0] == 1:
            rows.append(as_tensors(units[first]))
            right.append(numbers(condition[1]).reshape(-1) + 0.0 * steep[0])
        else:
            rows.append(2 * units[first] + as_tensors(units[last]))
            right.append(3 * steep[first] - towards * 0.5 * h[first] * numbers(condition[1]).reshape(-1))
    inner = np.eye(count)[1:-1]
    middle = h[1:, None] * np.eye(count)[:-2] + (2 * (h[:-1] + h[1:]))[:, None] * inner
    middle = middle + h[:-1, None] * np.eye(count)[2:]
    known = 3 * (h[1:, None] * steep[:-1] + h[:-1, None] * steep[1:])
    matrix = np.concatenate([rows[0][None], middle, rows[1][None]])
    values = np.concatenate([right[0][None], known, right[1][None]])
    return np.linalg.solve(matrix, values).reshape((count, *shape))


class PchipInterpolator(CubicHermiteSpline):
    """A monotone cubic interpolant.

    Source: F. N. Fritsch, J. Butland, "A method for constructing local monotone piecewise cubic interpolants" (1984).
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, (y, axis) = ascending(x), _leading(y, axis)
        slopes = _monotone_slopes(x, y)
        super().__init__(x, np.moveaxis(y, 0, axis), np.moveaxis(slopes, 0, axis), axis, extrapolate)


def _monotone_slopes(x: Any, y: Any) -> Any:
    h = along_first(np.diff(x), y.ndim)
    steep = np.diff(y, axis=0) / h
    if y.shape[0] == 2:
        return np.concatenate([steep, steep])
    before, after = steep[:-1], steep[1:]
    flat = (np.sign(plain_values(before.detach())) * np.sign(plain_values(after.detach()))) <= 0
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    one = np.where(flat, 1.0, before), np.where(flat, 1.0, after)
    inner = np.where(flat, 0.0, (w1 + w2) / (w1 / one[0] + w2 / one[1]))
    first = _end_slope(h[0], h[1], steep[0], steep[1])
    last = _end_slope(h[-1], h[-2], steep[-1], steep[-2])
    return np.concatenate([first[None], inner, last[None]])


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """Return the slope at an end, of three points, kept monotone."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = np.sign(plain_values(slope.detach())) != np.sign(plain_values(m0.detach()))
    steep = (np.sign(plain_values(m0.detach())) != np.sign(plain_values(m1.detach()))) & (
        np.abs(plain_values(slope.detach())) > 3.0 * np.abs(plain_values(m0.detach()))
    )
    return np.where(turned, 0.0, np.where(steep, 3.0 * m0, slope))


class Akima1DInterpolator(CubicHermiteSpline):
    """The cubic interpolant of H. Akima (1970), or its modification "makima"."""

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        x, (y, axis) = ascending(x), _leading(y, axis)
        slopes = _akimas_slopes(x, y, method)
        beyond = False if extrapolate is None else extrapolate
        super().__init__(x, np.moveaxis(y, 0, axis), np.moveaxis(slopes, 0, axis), axis, beyond)


def _akimas_slopes(x: Any, y: Any, method: str) -> Any:
    steep = np.diff(y, axis=0) / along_first(np.diff(x), y.ndim)
    left = 2 * steep[:1] - steep[1:2]
    right = 2 * steep[-1:] - steep[-2:-1]
    steep = np.concatenate([2 * left - steep[:1], left, steep, right, 2 * right - steep[-1:]])
    change = np.abs(np.diff(steep, axis=0))
    if method == "makima":
        change = change + 0.5 * np.abs(steep[1:] + steep[:-1])
    before, after = change[:-2], change[2:]
    both: Any = before + after
    plain = plain_values(both.detach())
    uneven = plain > 1e-9 * np.max(plain, initial=-np.inf)
    mixed = (after * steep[1:-2] + before * steep[2:-1]) / np.where(uneven, both, 1.0)
    even = 0.0 * mixed if method == "makima" else 0.5 * (steep[3:] + steep[:-3])
    return np.where(uneven, mixed, even)


# -- splines by their coefficients -------------------------------------------------------------------------------------


@functools.lru_cache(64)
def _unit_splines(knots: bytes, degree: int) -> tuple[Any, Any]:
    """Return the splines whose coefficients are unit vectors: breakpoints, and powers, pieces, splines."""
    t = np.frombuffer(knots)
    count = len(t) - degree - 1
    inside = np.flatnonzero(np.diff(t[degree : count + 1]) > 0) + degree
    units = theirs.BSpline(t, np.eye(count), degree)  # PPoly.from_spline crashes for degrees over 5
    powers = [units(t[inside], nu) / math.factorial(nu) for nu in range(degree, -1, -1)]
    return np.append(t[inside], t[count]), np.stack(powers)


def spline_basis(x: Any, t: Any, k: int, nu: int = 0, extrapolate: Any = True) -> Any:
    """Return the values at places, one row for each, of the splines whose coefficients are the unit vectors."""
    if carries_history(t):
        return _basis_of_knots(float_copy(x), float_copy(t), int(k), nu, extrapolate)
    breaks, basis = _unit_splines(as_array(t).tobytes(), int(k))
    return Pieces(basis, breaks, extrapolate)(x, nu)


def _basis_of_knots(x: Any, t: Any, k: int, nu: int, extrapolate: Any) -> Any:
    """Return the values of the basis splines, with gradients with respect to the knots.

    Source: C. de Boor, "On calculating with B-splines" (1972): the recurrence for values, and that for derivatives.
    """
    knots, plain = plain_values(t.detach()), plain_values(x.detach())
    count = len(knots) - k - 1
    if isinstance(extrapolate, str):
        low, high = t[k], t[count]
        x = x - np.floor((plain - knots[k]) / (knots[count] - knots[k])) * (high - low)
        plain = plain_values(x.detach())
    interval = np.clip(np.searchsorted(knots, plain, "right") - 1, k, count - 1)
    found = as_tensors((interval[:, None] == np.arange(len(knots) - 1)).astype(float))
    for degree in range(1, k + 1):
        widths = t[degree:] - t[:-degree]
        is_empty = plain_values(widths.detach()) == 0
        rates = np.where(is_empty, 0.0, 1.0 / np.where(is_empty, 1.0, widths))
        if degree <= k - nu:
            scaled = (x[:, None] - t[None, :-degree]) * rates * found[:, : len(widths)]
            falling = (t[None, degree:] - x[:, None]) * rates * found[:, : len(widths)]
            found = scaled[:, :-1] + falling[:, 1:]
        else:
            scaled = degree * rates * found[:, : len(widths)]
            found = scaled[:, :-1] - scaled[:, 1:]
    if extrapolate is False:
        found = np.where(((plain < knots[k]) | (plain > knots[count]))[:, None], np.nan, found)
    return found if nu <= k else found * 0.0


class BSpline:
    """A spline, given by its knots and coefficients.

    Gradients flow to the knots, the coefficients and the evaluation points.
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t = float_copy(t) if carries_history(t) else as_array(t)
        self.c, self.k, self.extrapolate, self.axis = float_copy(c), int(k), extrapolate, axis

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        places = float_copy(x)
        beyond = self.extrapolate if extrapolate is None else extrapolate
        c = np.moveaxis(self.c, self.axis, 0)[: len(self.t) - self.k - 1]
        rows = spline_basis(places.reshape(-1), self.t, self.k, nu, beyond)
        found = np.tensordot(rows, c, ((1,), (0,))).reshape(places.shape + c.shape[1:])
        count = places.ndim
        return np.moveaxis(found, tuple(range(count)), tuple(range(self.axis, self.axis + count)))

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> BSpline:
        """Return the basis element for the given knots."""
        made = theirs.BSpline.basis_element(as_array(t), extrapolate)
        return cls(made.t, made.c, made.k, extrapolate)

    @classmethod
    def design_matrix(cls, x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
        """Return SciPy's design matrix, for points without history."""
        if carries_history((x, t)):
            raise lost("scipy.interpolate.BSpline.design_matrix", "evaluate a BSpline with a coefficient of 1 instead")
        return theirs.BSpline.design_matrix(as_array(x), as_array(t), k, extrapolate)

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def derivative(self, nu: int = 1) -> Pieces:
        """Return the derivative as a piecewise polynomial."""
        return self._pieces().derivative(nu)

    def antiderivative(self, nu: int = 1) -> Pieces:
        """Return the antiderivative as a piecewise polynomial."""
        return self._pieces().antiderivative(nu)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral between two points; without extrapolation, the spline is 0 beyond its ends."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        if not beyond:
            low, high = self.t[self.k], self.t[-self.k - 1]
            a, b = np.clip(float_copy(a), low, high), np.clip(float_copy(b), low, high)
        return self._pieces().integrate(a, b, beyond or True)

    def _pieces(self) -> Pieces:
        c = np.moveaxis(self.c, self.axis, 0)[: len(self.t) - self.k - 1]
        if carries_history(self.t):
            return self._pieces_of_knots(c)
        breaks, basis = _unit_splines(self.t.tobytes(), self.k)
        return Pieces(np.tensordot(as_tensors(np.array(basis)), c, ((2,), (0,))), breaks, self.extrapolate, self.axis)

    def _pieces_of_knots(self, c: Any) -> Pieces:
        """Return the Taylor polynomials at the breakpoints."""
        knots = as_array(self.t)
        inside = np.flatnonzero(np.diff(knots[self.k : len(c) + 1]) > 0) + self.k
        breaks = self.t[np.append(inside, len(c))]
        powers = []
        for nu in range(self.k, -1, -1):
            rows = spline_basis(breaks[:-1], self.t, self.k, nu)
            powers.append(np.tensordot(rows, c, ((1,), (0,))) / math.factorial(nu))
        return Pieces(np.stack(powers), breaks, self.extrapolate, self.axis)


def through_points(x: Any, y: Any, k: int, t: Any, axis: int) -> BSpline:
    """Return the interpolating spline, with gradients with respect to the points."""
    if t is None:
        inner, half = (x, (k + 1) // 2) if k % 2 else ((x[1:] + x[:-1]) / 2.0, k // 2)
        inner = inner[half : len(inner) - half]
        t = np.concatenate([np.repeat(x[:1], k + 1), inner, np.repeat(x[-1:], k + 1)])
    axis %= y.ndim
    values = np.moveaxis(y, axis, 0)
    rows = spline_basis(x, t, k)
    c = np.linalg.solve(rows, values.reshape(len(x), -1)).reshape(values.shape)
    return BSpline(t, np.moveaxis(c, 0, axis), k, True, axis)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return values or derivatives of the monotone cubic interpolant.

    Arguments:
        xi, yi: points and values; the points along `axis`.
        x: the evaluation points.
        der: the order of the derivative; for several, a list of results is returned.
        axis: the axis of `yi` along which the points lie.
    """
    pieces = PchipInterpolator(xi, yi, axis)
    return [pieces(x, nu) for nu in der] if isinstance(der, list | tuple) else pieces(x, der)


PIECES: Final[dict[str, Any]] = {
    "Akima1DInterpolator": Akima1DInterpolator,
    "BPoly": BPoly,
    "BSpline": BSpline,
    "CubicHermiteSpline": CubicHermiteSpline,
    "PPoly": Pieces,
    "PchipInterpolator": PchipInterpolator,
    "pchip_interpolate": pchip_interpolate,
}
