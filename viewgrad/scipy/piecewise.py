"""Piecewise polynomials and splines of `scipy.interpolate` for tensors, given by coefficients or through points."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import Any, Final

import numpy as np
import scipy.interpolate as theirs  # type: ignore[import-untyped]

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.shapes import along_first
from .wrap import double_copy, float_copy, numbers


def as_array(value: Any) -> Any:
    return np.array(plain_values(numbers(value).detach()), float)


class _Piecewise:
    """The common base of piecewise polynomials in different bases."""

    c: Any
    x: Any
    extrapolate: Any
    axis: int

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        c, x = double_copy(c), double_copy(x)
        if c.ndim < 2:
            raise ValueError("Coefficients array must be at least 2-dimensional.")
        if not 0 <= axis < c.ndim - 1:
            raise ValueError(f"axis={axis} must be between 0 and {c.ndim - 1}")
        if axis:
            c = np.moveaxis(c, (axis, axis + 1), (0, 1))
        if x.ndim != 1 or x.size < 2:
            raise ValueError("x must be 1-dimensional, with at least 2 breakpoints")
        if not c.shape[0]:
            raise ValueError("polynomial must be at least of order 0")
        if c.shape[1] != x.size - 1:
            raise ValueError("number of coefficients != len(x)-1")
        _direction(as_array(x))
        self._set(c, x, extrapolate, axis)

    def _set(self, c: Any, x: Any, extrapolate: Any, axis: int) -> None:
        beyond = True if extrapolate is None else extrapolate
        self.c, self.x, self.axis = c, x, axis
        self.extrapolate = beyond if isinstance(beyond, str) else bool(beyond)

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Any:
        """Return a polynomial without checks; powers and pieces are the first dimensions of `c` regardless of the axis.
        """
        made = cls.__new__(cls)
        made._set(numbers(c), numbers(x), extrapolate, axis)
        return made

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        beyond = self.extrapolate if extrapolate is None else extrapolate
        places = double_copy(x)
        ends = plain_values(self.x.detach())
        if isinstance(beyond, str):
            places = places - np.floor((plain_values(places.detach()) - ends[0]) / (ends[-1] - ends[0])) * (
                self.x[-1] - self.x[0]
            )
        flat = places.reshape(-1)
        plain = plain_values(flat.detach())
        if ends[0] > ends[-1]:  # breakpoints are searched in ascending order
            ends, plain = -ends, -plain
        pieces = np.clip(np.searchsorted(ends, plain, "right") - 1, 0, len(ends) - 2)
        total = self._values(along_first(flat - self.x[pieces], self.c.ndim - 1), pieces, nu)
        if not beyond:
            outside = (plain < ends[0]) | (plain > ends[-1])
            total = np.where(along_first(outside, self.c.ndim - 1), np.nan, total)
        total = total.reshape(places.shape + self.c.shape[2:])
        if self.axis:
            count = places.ndim
            total = np.moveaxis(total, tuple(range(count)), tuple(range(self.axis, self.axis + count)))
        return total

    def _values(self, away: Any, pieces: Any, nu: int) -> Any:
        """Return the values or derivatives of pieces at given distances from their left breakpoints."""
        raise NotImplementedError

    def antiderivative(self, nu: int = 1) -> Any:
        """Return the antiderivative."""
        raise NotImplementedError

    def _raised(self, c: Any, more: int) -> Any:
        """Return the coefficients for a higher degree."""
        raise NotImplementedError

    def extend(self, c: Any, x: Any) -> None:
        """Add pieces at one end.

        Arguments:
            c: the coefficients of the new pieces.
            x: their breakpoints without the shared one, ordered like the existing breakpoints.
        """
        c, x = double_copy(c), double_copy(x)
        if c.ndim < 2 or x.ndim != 1:
            raise ValueError(f"invalid dimensions for c or x: {c.ndim} and {x.ndim}")
        if x.shape[0] != c.shape[1] or c.shape[2:] != self.c.shape[2:]:
            raise ValueError(f"Shapes of x {x.shape}, c {c.shape} and self.c {self.c.shape} are incompatible")
        if not c.size:
            return
        new, own = as_array(x), as_array(self.x)
        direction = _direction(own)
        if _direction(new) * direction < 0:
            raise ValueError("`x` is in the different order than `self.x`.")
        degree = max(c.shape[0], self.c.shape[0])
        parts = [self._raised(each, degree - each.shape[0]) for each in (self.c, c)]
        breaks = [self.x, x]
        if direction * (new[0] - own[-1]) < 0:
            if direction * (new[-1] - own[0]) > 0:
                raise ValueError("`x` is neither on the left or on the right from `self.x`.")
            parts, breaks = parts[::-1], breaks[::-1]
        self.c, self.x = np.concatenate(parts, 1), np.concatenate(breaks)

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


def _direction(x: Any) -> int:
    """Return 1 for ascending breakpoints, -1 for descending ones, and 0 for a single one; raise an error otherwise."""
    steps = np.diff(x)
    if np.all(steps >= 0):
        return 1 if len(x) > 1 else 0
    if np.all(steps <= 0):
        return -1
    raise ValueError("`x` must be strictly increasing or decreasing.")


def horner(c: Any, away: Any, nu: int) -> Any:
    """Return the values or derivatives of polynomials whose coefficients are along the first dimension."""
    count = c.shape[0]
    total = c[0] * 0.0
    for place in range(count - nu):
        power = count - 1 - place
        factor = float(np.prod(np.arange(power - nu + 1, power + 1)))
        total = total * away + factor * c[place]
    return total


class PPoly(_Piecewise):
    """A piecewise polynomial, given by the coefficients of each piece, highest power first, and the breakpoints.

    Gradients flow to the coefficients, the breakpoints and the evaluation points.

    Arguments:
        c: the coefficients; the first dimensions are powers and pieces.
        x: the breakpoints, ascending or descending.
        extrapolate: whether to extend the first and the last piece beyond the ends; otherwise the result there is NaN.
            Or "periodic".
        axis: the interpolation axis: the dimension of `c` for the powers, which precedes that for the pieces.
    """

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Any = None) -> PPoly:
        """Convert a spline, given as an object or by its knots, coefficients and degree."""
        spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
        pieces = spline.derivative(0)
        beyond = spline.extrapolate if extrapolate is None else extrapolate
        made: PPoly = PPoly.construct_fast(pieces.c, pieces.x, beyond, pieces.axis)
        return made

    @classmethod
    def from_bernstein_basis(cls, bp: Any, extrapolate: Any = None) -> Any:
        """Convert a polynomial from the Bernstein basis."""
        if not isinstance(bp, BPoly):
            raise TypeError(f".from_bernstein_basis only accepts BPoly instances. Got {type(bp)} instead.")
        degree = bp.c.shape[0] - 1
        widths = along_first(np.diff(bp.x), bp.c.ndim - 1)
        powers, differences = [], bp.c
        for power in range(degree + 1):
            powers.append(math.comb(degree, power) * differences[0] / widths**power)
            differences = np.diff(differences, axis=0)
        beyond = bp.extrapolate if extrapolate is None else extrapolate
        return cls.construct_fast(np.stack(powers[::-1]), bp.x, beyond, bp.axis)

    def _values(self, away: Any, pieces: Any, nu: int) -> Any:
        return horner(self.c[:, pieces], away, nu)

    def _raised(self, c: Any, more: int) -> Any:
        return np.concatenate([np.zeros((more, *c.shape[1:])), c])

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative as a piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            degree = c.shape[0] - 1
            factors = along_first(np.arange(degree, 0, -1.0), c.ndim)
            c = c[:-1] * factors if degree else c * 0.0
        made: PPoly = PPoly.construct_fast(c, self.x, self.extrapolate, self.axis)
        return made

    def antiderivative(self, nu: int = 1) -> PPoly:
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
        beyond = False if nu and isinstance(self.extrapolate, str) else self.extrapolate  # not periodic
        made: PPoly = PPoly.construct_fast(c, self.x, beyond, self.axis)
        return made

    def roots(self, *args: Any, **kwargs: Any) -> Any:
        """Return the roots, for coefficients without history."""
        return self._scipys("roots")(*args, **kwargs)

    def solve(self, *args: Any, **kwargs: Any) -> Any:
        """Return the points with a given value, for coefficients without history."""
        return self._scipys("solve")(*args, **kwargs)

    def _scipys(self, name: str) -> Any:
        if carries_history((self.c, self.x)):
            raise lost(f"scipy.interpolate.PPoly.{name}", "find the point with viewgrad.scipy.optimize.brentq")
        return getattr(theirs.PPoly(as_array(self.c), as_array(self.x), self.extrapolate), name)


class BPoly(_Piecewise):
    """A piecewise polynomial in the Bernstein basis; gradients flow as for `PPoly`.

    Arguments:
        c: the coefficients; the first dimensions are basis polynomials and pieces.
        x: the breakpoints.
        extrapolate, axis: as for `PPoly`.
    """

    def _values(self, away: Any, pieces: Any, nu: int) -> Any:
        """Evaluate in the Bernstein basis, which avoids the loss of digits in high powers."""
        weights, widths = self.c, along_first(np.diff(self.x), self.c.ndim - 1)
        degree = weights.shape[0] - 1
        if nu > degree:
            return weights[0][pieces] * 0.0
        for _ in range(nu):
            weights, degree = np.diff(weights, axis=0) * (degree / widths), degree - 1
        share = away / widths[pieces]
        total, power, rest = weights[0][pieces] * 1.0, share * 0.0 + 1.0, 1.0 - share
        for place in range(1, degree + 1):  # as in Horner's rule, in `rest`
            power = power * share
            total = total * rest + math.comb(degree, place) * power * weights[place][pieces]
        return total

    def _raised(self, c: Any, more: int) -> Any:
        degree = c.shape[0] - 1
        weights = np.zeros((degree + more + 1, degree + 1))
        for own in range(degree + 1):
            for step in range(more + 1):
                weights[own + step, own] = (
                    math.comb(degree, own) * math.comb(more, step) / math.comb(degree + more, own + step)
                )
        return np.tensordot(as_tensors(weights), c, ((1,), (0,)))

    def derivative(self, nu: int = 1) -> BPoly:
        """Return the derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c, widths = self.c, along_first(np.diff(self.x), self.c.ndim - 1)
        for _ in range(nu):
            degree = c.shape[0] - 1
            c = degree * np.diff(c, axis=0) / widths if degree else c * 0.0
        made: BPoly = BPoly.construct_fast(c, self.x, self.extrapolate, self.axis)
        return made

    def antiderivative(self, nu: int = 1) -> BPoly:
        """Return the antiderivative."""
        if nu < 0:
            return self.derivative(-nu)
        c, widths = self.c, along_first(np.diff(self.x), self.c.ndim - 1)
        for _ in range(nu):
            sums = np.cumsum(c, 0) * widths / c.shape[0]
            start = np.concatenate([sums[-1][:1] * 0.0, np.cumsum(sums[-1], 0)[:-1]])
            c = np.concatenate([start[None], sums + start])
        beyond = False if nu and isinstance(self.extrapolate, str) else self.extrapolate  # not periodic
        made: BPoly = BPoly.construct_fast(c, self.x, beyond, self.axis)
        return made

    @classmethod
    def from_power_basis(cls, pp: Any, extrapolate: Any = None) -> Any:
        """Convert a polynomial from the power basis."""
        if not isinstance(pp, PPoly):
            raise TypeError(f".from_power_basis only accepts PPoly instances. Got {type(pp)} instead.")
        degree, widths = pp.c.shape[0] - 1, along_first(np.diff(pp.x), pp.c.ndim - 1)
        rows = []
        for place in range(degree + 1):
            total: Any = 0.0
            for power in range(place + 1):
                share = math.comb(place, power) / math.comb(degree, power)
                total = total + share * pp.c[degree - power] * widths**power
            rows.append(total)
        beyond = pp.extrapolate if extrapolate is None else extrapolate
        return cls.construct_fast(np.stack(rows), pp.x, beyond, pp.axis)

    @classmethod
    def from_derivatives(cls, xi: Any, yi: Any, orders: Any = None, extrapolate: Any = None) -> BPoly:
        """Return the polynomial with given values and derivatives at points; gradients flow to all of them.

        Arguments:
            xi: the points, ascending.
            yi: for each point, the value followed by derivatives.
            orders: the degree of each piece, or of all; by default, all derivatives are used.
            extrapolate: as for `PPoly`.
        """
        x, given = double_copy(xi), [np.atleast_1d(double_copy(each)) for each in yi]
        if len(x) != len(given):
            raise ValueError("xi and yi need to have the same length")
        if np.any(np.diff(as_array(x)) <= 0):
            raise ValueError("x coordinates are not in increasing order")
        if not hasattr(as_argument(yi[0]), "__len__"):
            raise ValueError("Using a 1-D array for y? Please .reshape(-1, 1).")
        count = len(given) - 1
        degrees = list(orders) if np.ndim(orders) else [orders] * count
        if any(degree is not None and degree <= 0 for degree in degrees):
            raise ValueError("Orders must be positive.")
        pieces = []
        for place, degree in enumerate(degrees):
            left, right = given[place], given[place + 1]
            first, second = len(left), len(right)
            if degree is not None:
                wanted = degree + 1
                second = min(wanted - min(wanted // 2, first), second)
                first = min(wanted - second, first)
                if first + second != wanted:
                    raise ValueError(
                        f"{len(left)} and {len(right)} derivatives are too few for a polynomial of order {degree}"
                    )
            pieces.append(_of_ends(x[place + 1] - x[place], left[:first], right[:second]))
        size = max(len(left) + len(right) for left, right in itertools.pairwise(given))
        size = max([size, *[degree for degree in degrees if degree is not None]])
        raised = [cls._raised(cls.__new__(cls), piece, size - len(piece)) for piece in pieces]
        return cls(np.stack(raised, 1), x, extrapolate)


def _of_ends(width: Any, left: Any, right: Any) -> Any:
    """Return the Bernstein coefficients of the polynomial with given derivatives at its ends.

    Source: a derivative at an end depends on as many coefficients as its order; G. Farin, "Curves and Surfaces for
    CAGD" (2002), chapter 5.
    """
    if left.shape[1:] != right.shape[1:]:
        raise ValueError(f"Shapes of ya {left.shape} and yb {right.shape} are incompatible")
    degree = len(left) + len(right) - 1
    sides = []
    for derivatives, step in ((left, width), (right, -width)):
        found: list[Any] = []
        for order in range(len(derivatives)):
            scaled = derivatives[order] * step**order / math.perm(degree, order)
            for known in range(order):
                scaled = scaled - (-1) ** (order - known) * math.comb(order, known) * found[known]
            found.append(scaled)
        sides.append(found)
    return np.stack([*sides[0], *sides[1][::-1]])


def prepared(x: Any, y: Any, axis: int, slopes: Any = None) -> tuple[Any, Any, int, Any]:
    """Return points, values and slopes with the dimension of the points first, and the original position of that
    dimension.
    """
    if numbers(x).dtype.kind == "c":
        raise ValueError("`x` must contain real values.")
    x, y = double_copy(x), double_copy(y)
    slopes = None if slopes is None else double_copy(slopes)
    if slopes is not None and slopes.shape != y.shape:
        raise ValueError("The shapes of `y` and `dydx` must be identical.")
    axis %= y.ndim
    if x.ndim != 1 or x.shape[0] < 2:
        raise ValueError("`x` must be 1-dimensional, with at least 2 elements.")
    if x.shape[0] != y.shape[axis]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    for name, values in (("x", x), ("y", y), ("dydx", slopes)):
        if values is not None and not np.isfinite(plain_values(values.detach())).all():
            raise ValueError(f"`{name}` must contain only finite values.")
    if np.any(np.diff(as_array(x)) <= 0):
        raise ValueError("`x` must be strictly increasing sequence.")
    return x, np.moveaxis(y, axis, 0), axis, None if slopes is None else np.moveaxis(slopes, axis, 0)


class CubicHermiteSpline(PPoly):
    """A cubic interpolant with given slopes."""

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, y, axis, slopes = prepared(x, y, axis, dydx)
        widths = along_first(np.diff(x), y.ndim)
        steep = np.diff(y, axis=0) / widths
        bent = (slopes[:-1] + slopes[1:] - 2 * steep) / widths
        c = np.stack([bent / widths, (steep - slopes[:-1]) / widths - bent, slopes[:-1], y[:-1]])
        self._set(c, x, extrapolate, axis)


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
        x, y, axis, _ = prepared(x, y, axis)
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
    """Return the slope at an end, computed from three points and limited to preserve monotonicity."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = np.sign(plain_values(slope.detach())) != np.sign(plain_values(m0.detach()))
    steep = (np.sign(plain_values(m0.detach())) != np.sign(plain_values(m1.detach()))) & (
        np.abs(plain_values(slope.detach())) > 3.0 * np.abs(plain_values(m0.detach()))
    )
    return np.where(turned, 0.0, np.where(steep, 3.0 * m0, slope))


class Akima1DInterpolator(CubicHermiteSpline):
    """The cubic interpolant of H. Akima (1970), or its modification "makima"."""

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        x, y, axis, _ = prepared(x, y, axis)
        if y.dtype.kind == "c":
            raise ValueError("`Akima1DInterpolator` only works with real values for `y`")
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
    """Return the splines whose coefficients are unit vectors: breakpoints, and coefficients by power, piece and spline.
    """
    t = np.frombuffer(knots)
    count = len(t) - degree - 1
    inside = np.flatnonzero(np.diff(t[degree : count + 1]) > 0) + degree
    if not degree and t[-1] == t[-2]:  # a repeated last knot adds a piece that consists of one point
        inside = np.append(inside, count - 1)
    units = theirs.BSpline(t, np.eye(count), degree)  # PPoly.from_spline crashes for degrees over 5
    powers = [units(t[inside], nu) / math.factorial(nu) for nu in range(degree, -1, -1)]
    return np.append(t[inside], t[count]), np.stack(powers)


def is_beyond(x: Any, t: Any, k: int) -> Any:
    """Return whether points lie outside the interval of a spline's knots."""
    plain, knots = plain_values(x.detach()), as_array(t)
    return (plain < knots[k]) | (plain > knots[-k - 1])


def spline_basis(x: Any, t: Any, k: int, nu: int = 0, extrapolate: Any = True) -> Any:
    """Return the values at given points, in rows, of the splines whose coefficients are unit vectors."""
    if carries_history(t):
        return _basis_of_knots(float_copy(x), float_copy(t), int(k), nu, extrapolate)
    breaks, basis = _unit_splines(as_array(t).tobytes(), int(k))
    return PPoly.construct_fast(basis, breaks, extrapolate)(x, nu)


def _basis_of_knots(x: Any, t: Any, k: int, nu: int, extrapolate: Any) -> Any:
    """Return the values of the basis splines, differentiable with respect to the knots.

    Source: C. de Boor, "On calculating with B-splines" (1972): the recurrences for values and derivatives.
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
        knots, c, k = as_array(t), double_copy(c), operator.index(k)
        if k < 0:
            raise ValueError("Spline order cannot be negative.")
        if c.ndim < 1:
            raise ValueError("Coefficients must be at least 1-dimensional.")
        axis = np.lib.array_utils.normalize_axis_index(axis, c.ndim)
        count = knots.size - k - 1
        if knots.ndim != 1 or count < k + 1:
            raise ValueError(f"Need at least {2 * k + 2} knots for degree {k}")
        if not np.isfinite(knots).all() or (np.diff(knots) < 0).any():
            raise ValueError("Knots must be finite, and in a non-decreasing order.")
        if len(np.unique(knots[k : count + 1])) < 2:
            raise ValueError("Need at least two internal knots.")
        if c.shape[axis] < count:
            raise ValueError("Knots, coefficients and degree are inconsistent.")
        self._set(t, np.moveaxis(c, axis, 0), k, extrapolate, axis)

    def _set(self, t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> None:
        self.t = double_copy(t) if carries_history(t) else as_array(t)
        self.c, self.k, self.axis = c, k, axis
        self.extrapolate = extrapolate if isinstance(extrapolate, str) else bool(extrapolate)

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Any:
        """Return a spline without checks; the first dimension of `c` corresponds to the knots regardless of the axis.
        """
        made = cls.__new__(cls)
        made._set(t, numbers(c), int(k), extrapolate, axis)
        return made

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        places = double_copy(x)
        beyond = self.extrapolate if extrapolate is None else extrapolate
        beyond = beyond if isinstance(beyond, str) else bool(beyond)
        c = self.c[: len(self.t) - self.k - 1]
        flat = places.reshape(-1)
        # NaN only at the end: inside the rows it would affect the gradients of all coefficients.
        rows = spline_basis(flat, self.t, self.k, nu, beyond or True)
        found = np.tensordot(rows, c, ((1,), (0,)))
        if not beyond:
            found = np.where(along_first(is_beyond(flat, self.t, self.k), found.ndim), np.nan, found)
        found = found.reshape(places.shape + c.shape[1:])
        count = places.ndim
        return np.moveaxis(found, tuple(range(count)), tuple(range(self.axis, self.axis + count)))

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> BSpline:
        """Return the basis element for the given knots."""
        knots = double_copy(t)
        degree = len(knots) - 2
        whole = np.concatenate([np.repeat(knots[:1] - 1.0, degree), knots, np.repeat(knots[-1:] + 1.0, degree)])
        c = np.zeros(len(whole))
        c[degree] = 1.0
        return cls(whole, c, degree, extrapolate)

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

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative as a piecewise polynomial."""
        return self._pieces().derivative(nu)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the antiderivative as a piecewise polynomial."""
        return self._pieces().antiderivative(nu)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral between two points; without extrapolation, the spline is 0 beyond its ends."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        if not beyond:
            low, high = self.t[self.k], self.t[-self.k - 1]
            a, b = np.clip(float_copy(a), low, high), np.clip(float_copy(b), low, high)
        return self._pieces().integrate(a, b, beyond or True)

    def _pieces(self) -> PPoly:
        c = self.c[: len(self.t) - self.k - 1]
        if carries_history(self.t):
            return self._pieces_of_knots(c)
        breaks, basis = _unit_splines(self.t.tobytes(), self.k)
        powers = np.tensordot(as_tensors(np.array(basis)), c, ((2,), (0,)))
        made: PPoly = PPoly.construct_fast(powers, as_tensors(np.array(breaks)), self.extrapolate, self.axis)
        return made

    def _pieces_of_knots(self, c: Any) -> PPoly:
        """Return the Taylor polynomials at the breakpoints."""
        knots = as_array(self.t)
        inside = np.flatnonzero(np.diff(knots[self.k : len(c) + 1]) > 0) + self.k
        breaks = self.t[np.append(inside, len(c))]
        powers = []
        for nu in range(self.k, -1, -1):
            rows = spline_basis(breaks[:-1], self.t, self.k, nu)
            powers.append(np.tensordot(rows, c, ((1,), (0,))) / math.factorial(nu))
        made: PPoly = PPoly.construct_fast(np.stack(powers), breaks, self.extrapolate, self.axis)
        return made


def through_points(x: Any, y: Any, k: int, t: Any, axis: int, ends: Any = ((), ())) -> BSpline:
    """Return the interpolating spline, differentiable with respect to the points.

    Arguments:
        x, y: the points, and the values along `axis`.
        k: the degree.
        t: the knots; None for SciPy's.
        axis: the dimension of the values that corresponds to the points.
        ends: for both ends, pairs of the order of a derivative and its value there.
    """
    axis %= y.ndim
    if k == 0:
        made: BSpline = BSpline.construct_fast(np.concatenate([x, x[-1:]]), np.moveaxis(y, axis, 0), 0, True, axis)
        return made
    if t is None and any(ends):
        t = np.concatenate([np.repeat(x[:1], k), x, np.repeat(x[-1:], k)])
    elif t is None:
        inner, half = (x, (k + 1) // 2) if k % 2 else ((x[1:] + x[:-1]) / 2.0, k // 2)
        inner = inner[half : len(inner) - half]
        t = np.concatenate([np.repeat(x[:1], k + 1), inner, np.repeat(x[-1:], k + 1)])
    values = np.moveaxis(y, axis, 0)
    shape = values.shape[1:]
    rows, right = [spline_basis(x, t, k)], [values.reshape(len(x), -1)]
    for place, conditions in zip((x[:1], x[-1:]), ends, strict=True):
        for order, value in conditions:
            rows.append(spline_basis(place, t, k, order))
            right.append((numbers(value) + np.zeros(shape)).reshape(1, -1))
    count = len(t) - k - 1
    if sum(len(each) for each in rows) != count:
        raise ValueError(
            "The number of derivatives at boundaries does not match: "
            f"expected {count - len(x)}, got {len(ends[0])}+{len(ends[1])}"
        )
    c = np.linalg.solve(np.concatenate(rows), np.concatenate(right)).reshape((count, *shape))
    made = BSpline.construct_fast(t, c, k, True, axis)
    return made


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return values or derivatives of the monotone cubic interpolant.

    Arguments:
        xi, yi: the points, and the values along `axis`.
        x: the evaluation points.
        der: the order of the derivative; for a list of orders, a list of results is returned.
        axis: the axis of `yi` along which the points lie.
    """
    pieces = PchipInterpolator(xi, yi, axis)
    return [pieces(x, nu) for nu in der] if isinstance(der, list | tuple) else pieces(x, der)


PIECES: Final[dict[str, Any]] = {
    "Akima1DInterpolator": Akima1DInterpolator,
    "BPoly": BPoly,
    "BSpline": BSpline,
    "CubicHermiteSpline": CubicHermiteSpline,
    "PPoly": PPoly,
    "PchipInterpolator": PchipInterpolator,
    "pchip_interpolate": pchip_interpolate,
}
