"""Splines of evenly spaced samples with mirrored ends: their coefficients, their values, and separable filters.

Source: M. Unser, A. Aldroubi, M. Eden, "B-Spline Signal Processing" (1993).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from .. import ndimage
from ..wrap import floating, maker, numbers, single_like
from .convolutions import MADE as CONVOLUTIONS

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE)
CUBIC, QUADRATIC = -2.0 + math.sqrt(3.0), -3.0 + 2.0 * math.sqrt(2.0)  # the poles of the filters


def _both_ways(x: Any, pole: Any, gain: Any, count: int) -> Any:
    """Apply a filter of one pole forwards and backwards along the last dimension, with mirrored ends.

    Arguments:
        x: the samples.
        pole, gain: of the filter.
        count: the number of samples in the sum for the start.
    """
    weights = pole ** np.arange(1, count + 1)
    first = x[..., :1] + (x[..., :count] * weights).sum(-1, keepdims=True)
    bottom = np.stack([numbers(1.0) + 0.0 * pole, -pole])
    ones = np.ones(1)
    rest, _ = CONVOLUTIONS["lfilter"](ones, bottom, x[..., 1:], -1, first * pole)
    ahead = np.concatenate([first, rest], -1)
    last = -gain / (pole - 1.0) * ahead[..., -1:]
    back, _ = CONVOLUTIONS["lfilter"](numbers(gain).reshape(1), bottom, ahead[..., -2::-1], -1, last * pole)
    return np.concatenate([back[..., ::-1], last], -1)


@made
@single_like("signal")
def symiirorder1(signal: Any, c0: Any, z1: Any, precision: float = -1.0) -> Any:
    """Apply a filter of first order forwards and backwards, with mirrored ends."""
    x, pole, gain = floating(signal), numbers(z1) * 1.0, numbers(c0) * 1.0
    size = abs(plain_values(pole))
    if size >= 1:
        raise ValueError("|z1| must be less than 1.0")
    if x.ndim > 2:
        raise ValueError("Input must be 1D or 2D")
    if not 0 < precision <= 1:
        precision = 1e-6 if x.dtype.char in "fF" else 1e-11
    count, left = 1, size  # as many terms as are not smaller than the precision
    while left * left > precision * precision and count < x.shape[-1]:
        count, left = count + 1, left * size
    if count >= x.shape[-1]:
        raise ValueError("Sum to find symmetric boundary conditions did not converge.")
    return _both_ways(x, pole, gain, count)


def _coefficients(signal: Any, pole: float, scale: float) -> Any:
    x = floating(signal)
    if x.ndim != 1:
        raise ValueError("the samples must have one dimension")
    if x.shape[0] == 1:
        return pole / (pole - 1.0) * (x + pole * x)  # as SciPy, without the scale
    return scale * _both_ways(x, numbers(pole), numbers(-pole), x.shape[0])


@made
def cspline1d(signal: Any, lamb: float = 0.0) -> Any:
    """Return the coefficients of the cubic spline through samples."""
    if plain_values(lamb) != 0.0:
        raise lost("scipy.signal.cspline1d", "smoothing (lamb) is not supported for tensors with a history")
    return _coefficients(signal, CUBIC, 6.0)


@made
def qspline1d(signal: Any, lamb: float = 0.0) -> Any:
    """Return the coefficients of the quadratic spline through samples."""
    if plain_values(lamb) != 0.0:
        raise ValueError("Smoothing quadratic splines not supported yet.")
    return _coefficients(signal, QUADRATIC, 8.0)


def _evaluated(cj: Any, newx: Any, dx: Any, x0: Any, half: float, bump: Any) -> Any:
    """Return the values of a spline whose basis function vanishes at a distance of `half`."""
    c, x = floating(cj), (floating(newx) - numbers(x0)) / numbers(dx)
    count = c.shape[0]
    if not count:
        raise ValueError("Spline coefficients 'cj' must not be empty.")
    plain = plain_values(x.detach())
    sign, start = np.ones(plain.shape), np.zeros(plain.shape)
    if count > 1:
        period = 2.0 * (count - 1)
        start = -period * np.floor(plain / period)
        is_beyond = plain + start > count - 1
        sign, start = np.where(is_beyond, -1.0, 1.0), np.where(is_beyond, period - start, start)
    x = x * sign + start
    lowest = np.floor(plain_values(x.detach()) - half).astype(int) + 1
    total: Any = 0.0
    for place in range(round(2 * half)):
        knot = lowest + place
        total = total + c[np.clip(knot, 0, count - 1)] * bump(x - knot)
    return total


@made
def cspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """Return the values of a cubic spline, mirrored at its ends."""

    def bump(x: Any) -> Any:
        away = np.abs(x)
        near = plain_values(away.detach()) < 1
        return np.where(near, 2.0 / 3.0 - 0.5 * x**2 * (2.0 - away), (2.0 - away) ** 3 / 6.0)

    return _evaluated(cj, newx, dx, x0, 2.0, bump)


@made
def qspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """Return the values of a quadratic spline, mirrored at its ends."""

    def bump(x: Any) -> Any:
        away = np.abs(x)
        near = plain_values(away.detach()) < 0.5
        return np.where(near, 0.75 - x**2, 0.5 * (away - 1.5) ** 2)

    return _evaluated(cj, newx, dx, x0, 1.5, bump)


@made
@single_like("input")
def sepfir2d(input: Any, hrow: Any, hcol: Any) -> Any:
    """Apply one filter to the rows and another to the columns of a matrix, with mirrored ends."""
    x, rows, columns = floating(input), floating(hrow), floating(hcol)
    if x.ndim != 2 or rows.ndim != 1 or columns.ndim != 1 or not rows.shape[0] % 2 or not columns.shape[0] % 2:
        raise ValueError("sepfir2d takes a matrix, and vectors of odd lengths")
    if carries_history((rows, columns)):
        for axis, weights in ((1, rows), (0, columns)):
            half = weights.shape[0] // 2
            margin = [(half, half) if axis == dim else (0, 0) for dim in range(2)]
            padded: Any = np.pad(x, margin, "symmetric")
            x = padded.unfold(axis, weights.shape[0]) @ weights[::-1]
        return x
    return ndimage.convolve1d(ndimage.convolve1d(x, rows, 1, mode="reflect"), columns, 0, mode="reflect")


def _of_images(name: str, pole: float) -> None:
    def coefficients(signal: Any, lamb: float = 0.0, precision: float = -1.0) -> Any:
        x = floating(signal)
        if plain_values(lamb) > (1 / 144.0 if name == "cspline2d" else 0.0):
            raise lost(f"scipy.signal.{name}", "smoothing (lamb) is not supported for tensors with a history")
        if not 0 <= precision < 1:
            precision = 1e-3 if x.dtype.char in "fF" else 1e-6
        gain = -pole * (6.0 if name == "cspline2d" else 8.0)
        along = MADE["symiirorder1"](x, gain, pole, precision)
        return MADE["symiirorder1"](along.T, gain, pole, precision).T

    coefficients.__name__ = name
    degree = "cubic" if name == "cspline2d" else "quadratic"
    coefficients.__doc__ = f"Return the coefficients of the {degree} spline of a matrix."
    made(single_like("signal")(coefficients))


_of_images("cspline2d", CUBIC)
_of_images("qspline2d", QUADRATIC)
