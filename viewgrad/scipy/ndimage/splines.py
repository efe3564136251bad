"""Spline interpolation of images as a function of the coordinates, with derivatives of all orders.

In each half-pixel cell, the interpolant is a polynomial in every coordinate. Its derivative is that of the polynomial
through values at Chebyshev points of the cell, so SciPy's treatment of edges is preserved.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
import scipy.ndimage  # type: ignore[import-untyped]

from ...autograd.function import Function
from ...tensor.tensor import Tensor, from_new_array
from ...type_aliases import Array

CELL = 0.5


@attrs.frozen
class Spline:
    """Spline interpolation of images; see `scipy.ndimage.map_coordinates`.

    Arguments:
        order, mode, cval, prefilter: as for `scipy.ndimage.map_coordinates`.
    """

    order: int
    mode: str
    cval: float
    prefilter: bool

    def __call__(self, images: Array, places: Array) -> Array:
        """Interpolate each image, of shape (count, ...), at points of shape (dimensions, ...)."""
        found = [
            scipy.ndimage.map_coordinates(
                each, places, order=self.order, mode=self.mode, cval=self.cval, prefilter=self.prefilter
            )
            for each in images
        ]
        return np.stack(found)

    def derivative(self, images: Array, places: Array, orders: tuple[int, ...]) -> Array:
        """Compute a derivative of the interpolants: of order `orders[d]` in dimension d."""
        if not any(orders):
            return self(images, places)
        if max(orders) > self.order:
            return np.zeros((len(images), *places.shape[1:]), np.result_type(images, float))
        nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(self.order + 1) + 0.5) / (self.order + 1))
        coefficients = np.linalg.inv(np.vander(nodes, increasing=True))
        total: Any = 0.0
        choices = [range(len(nodes)) if order else (None,) for order in orders]
        starts = [self._cell(x, images.shape[1 + dim]) for dim, x in enumerate(places)]
        for picked in itertools.product(*choices):
            moved, weight = places.copy(), np.ones(places.shape[1:])
            for dim, node in enumerate(picked):
                if node is None:
                    continue
                moved[dim] = starts[dim] + CELL * nodes[node]
                inside = (places[dim] - starts[dim]) / CELL
                weight *= _slope(coefficients[:, node], inside, orders[dim]) / CELL ** orders[dim]
            total = total + weight * self(images, moved)
        return np.asarray(total)

    @staticmethod
    def _cell(x: Array, length: int) -> Array:
        """Return the start of the cell of each point; at the last element, the cell before it."""
        start = np.floor(x / CELL) * CELL
        return np.where(x == length - 1, start - CELL, start)


def _slope(coefficients: Array, x: Array, order: int) -> Array:
    """Return a derivative of a polynomial."""
    terms = [math.perm(n, order) * c * x ** (n - order) for n, c in enumerate(coefficients) if n >= order]
    return np.asarray(sum(terms))


def at_places(spline: Spline, images: Array, places: Any) -> Any:
    """Interpolate images, of shape (count, ...), as a function of the coordinates, of shape (dimensions, ...)."""
    return _AtPlaces.apply(spline, images, (0,) * (images.ndim - 1), places)


class _AtPlaces(Function):
    """A derivative of the interpolants at given points."""

    @staticmethod
    def forward(ctx: Any, spline: Spline, images: Array, orders: tuple[int, ...], places: Tensor) -> Tensor:
        ctx.spline, ctx.images, ctx.orders = spline, _Constant(images), orders
        ctx.save_for_backward(places)
        return from_new_array(np.array(spline.derivative(images, places._array, orders)))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (places,) = ctx.saved_tensors
        slopes = [(grad * slope).sum(0) for slope in _slopes(ctx, places)]
        return None, None, None, np.stack(slopes)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        (places,) = ctx.saved_tensors
        return sum(slope * tangents[3][dim] for dim, slope in enumerate(_slopes(ctx, places)))


class _Constant:
    """Images that have no gradient."""

    def __init__(self, images: Array) -> None:
        self.images = images


def _slopes(ctx: Any, places: Any) -> list[Any]:
    orders = ctx.orders
    return [
        _AtPlaces.apply(ctx.spline, ctx.images.images, (*orders[:dim], orders[dim] + 1, *orders[dim + 1 :]), places)
        for dim in range(len(orders))
    ]
