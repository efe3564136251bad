"""Polynomial interpolation of `scipy.interpolate` for tensors: `BarycentricInterpolator`, `KroghInterpolator`, ...

The interpolants are differentiable with respect to the points, the values, and the evaluation points. They are
evaluated in Newton's form, with the points in an order that avoids cancellation.

Source: A. Bjorck, V. Pereyra, "Solution of Vandermonde Systems of Equations" (1970); L. Reichel, "Newton Interpolation
at Leja Points" (1990), for the order.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import carries_history, plain_values
from .wrap import double_copy


def _spread(points: Any) -> Any:
    """Return an order of points in which each is as far as possible from the preceding ones."""
    order = [int(np.argmax(np.abs(points)))]
    with np.errstate(divide="ignore"):
        away = np.log(np.abs(points - points[order[0]]))
        while len(order) < len(points):
            order.append(int(np.argmax(away)))
            away = away + np.log(np.abs(points - points[order[-1]]))
    return np.array(order)


class ThroughPoints:
    """The polynomial of least degree through given points.

    Arguments:
        xi: the points, which must be distinct.
        yi: the values at the points, along `axis`.
        axis: the axis of the values that belongs to the points.
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        self.xi, values = double_copy(xi), double_copy(yi)
        plain = np.asarray(plain_values(self.xi.detach()))
        if plain.ndim != 1 or not plain.size:
            raise lost(f"scipy.interpolate.{type(self).__name__}", "the points must be a vector")
        self.axis = axis % values.ndim
        values = np.moveaxis(values, self.axis, 0)
        if len(values) != plain.size:
            raise ValueError(f"x and y arrays must be equal in length along interpolation axis {axis}")
        self.shape, values = values.shape[1:], values.reshape(plain.size, -1)
        if len(np.unique(plain)) < plain.size:
            self.points, self.coefficients = self.xi, self._of_repeated(plain, values)
            return
        order = _spread(plain)
        self.points, coefficients = self.xi[order], values[order]
        for k in range(1, plain.size):
            divided = (coefficients[k:] - coefficients[k - 1 : -1]) / (self.points[k:] - self.points[:-k])[:, None]
            coefficients = np.concatenate([coefficients[:k], divided])
        self.coefficients = coefficients

    def _of_repeated(self, plain: Any, values: Any) -> Any:
        """Return the coefficients if there are repeated points."""
        raise ValueError("Elements of `xi` must differ from each other.")

    def __call__(self, x: Any) -> Any:
        """Return the values at x."""
        return self.derivative(x, 0)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Return a derivative at x."""
        return self._up_to(x, int(der))[-1]

    def derivatives(self, x: Any, der: Any = None) -> Any:
        """Return the value and derivatives at x, for orders less than `der`; by default as many as there are points."""
        return np.stack(self._up_to(x, self.xi.size - 1 if der is None else int(der) - 1))

    def _up_to(self, x: Any, highest: int) -> list[Any]:
        """Return the derivatives up to a given order, by Horner's scheme."""
        places = double_copy(x)
        away = places.reshape(-1)[:, None] - self.points
        found = [self.coefficients[-1] + 0.0 * away[:, :1]] + [0.0 * away[:, :1] * self.coefficients[-1]] * highest
        for k in range(self.xi.size - 2, -1, -1):
            step = away[:, k : k + 1]
            for order in range(highest, 0, -1):
                found[order] = found[order] * step + order * found[order - 1]
            found[0] = found[0] * step + self.coefficients[k]
        ndim = places.ndim
        axes = (*range(ndim, ndim + self.axis), *range(ndim), *range(ndim + self.axis, ndim + len(self.shape)))
        return [np.transpose(each.reshape((*places.shape, *self.shape)), axes) for each in found]


class KroghInterpolator(ThroughPoints):
    """The interpolating polynomial in Krogh's form.

    If a point is repeated, further values are derivatives at the point; gradients then flow to the values alone.
    """

    def _of_repeated(self, plain: Any, values: Any) -> Any:
        """Return the coefficients of Newton's form, by divided differences of points that may coincide.

        Source: F. T. Krogh, "Efficient Algorithms for Polynomial Interpolation and Numerical Differentiation" (1970).
        """
        if carries_history(self.xi):
            raise lost("scipy.interpolate.KroghInterpolator", "repeated points have no gradient; pass detach() of them")
        starts = [0]  # the start of the run of equal points
        for place in range(1, len(plain)):
            starts.append(starts[-1] if plain[place] == plain[place - 1] else place)
        if len(np.unique(plain)) < len(set(starts)):
            raise ValueError("Elements of `xi` can't be equal unless they follow one another.")
        # Entry (i, k) of the table is the difference over points i to k.
        table = [values[start] for start in starts]
        found = [table[0]]
        for order in range(1, len(plain)):
            for last in range(len(plain) - 1, order - 1, -1):
                first = last - order
                if plain[first] == plain[last]:
                    table[last] = values[starts[last] + order] / math.factorial(order)
                else:
                    table[last] = (table[last] - table[last - 1]) / (plain[last] - plain[first])
            found.append(table[order])
        return np.stack(found)


class BarycentricInterpolator(ThroughPoints):
    """The interpolating polynomial; values can be set later, and points can be added."""

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None) -> None:
        # The weights, and the order in which SciPy adds points, only determine how the same polynomial is computed.
        self.given = axis
        self.xi = double_copy(xi)
        if yi is not None:
            self.set_yi(yi, axis)

    def set_yi(self, yi: Any, axis: Any = None) -> None:
        """Set the values."""
        self.yi = double_copy(yi)
        super().__init__(self.xi, self.yi, self.given if axis is None else axis)

    def add_xi(self, xi: Any, yi: Any = None) -> None:
        """Add points, with values if the existing points have values."""
        self.xi = np.concatenate([self.xi, double_copy(xi)])
        if yi is not None:
            self.set_yi(np.concatenate([self.yi, double_copy(yi)], self.axis), self.axis)


def _derivatives(polynomial: Any, x: Any, der: Any) -> Any:
    if der is None or np.ndim(der):
        return polynomial.derivatives(x, der if der is None else max(der) + 1)[slice(None) if der is None else der]
    return polynomial.derivative(x, der)


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    """Return values or derivatives of the interpolating polynomial at x."""
    return _derivatives(BarycentricInterpolator(xi, yi, axis), x, der)


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return values or derivatives of the interpolating polynomial at x."""
    return _derivatives(KroghInterpolator(xi, yi, axis), x, der)


THROUGH_POINTS: Final[dict[str, Any]] = {
    made.__name__: made
    for made in (BarycentricInterpolator, KroghInterpolator, barycentric_interpolate, krogh_interpolate)
}
