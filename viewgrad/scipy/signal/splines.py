"""Splines of evenly spaced samples with mirror-symmetric boundaries: coefficients, values, and separable filters.

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
from ..wrap import Accepted, floating, maker, numbers
from .convolutions import MADE as CONVOLUTIONS

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted())
CUBIC, QUADRATIC = -2.0 + math.sqrt(3.0), -3.0 + 2.0 * math.sqrt(2.0)  # the poles of the filters


def _both_ways(x: Any, pole: Any, gain: Any, count: int) -> Any:
    """Apply a first-order filter forwards and backwards along the last dimension, with mirror-symmetric boundaries.

    Arguments:
        x: the samples.
        pole, gain: the pole and the gain of the filter.
        count: the number of samples in the sum for the initial value.
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
def symiirorder1(signal: Any, c0: Any, z1: Any, precision: float = -1.0) -> Any:
    """Apply a first-order filter forwards and backwards, with mirror-symmetric boundaries."""
    x, pole, gain = floating(signal), numbers(z1) * 1.0, numbers(c0) * 1.0
    size = abs(plain_values(pole))
    if size >= 1:
        raise ValueError("|z1| must be less than 1.0")
    if x.ndim > 2:
        raise ValueError("Input must be 1D or 2D")
    if not 0 < precision <= 1:
        precision = 1e-6 if x.dtype.char in "fF" else 1e-11
    count, left = 1, size  # the number of terms that are not smaller than the precision
    while left * left > precision * precision and count < x.shape[-1]:
        count, left = count + 1, left * size
    if count >= x.shape[-1]:
        raise ValueError("Sum to find symmetric boundary conditions did not converge.")
    return _both_ways(x, pole, gain, count)


class _Resonance:
    """A filter with the poles r exp(i omega) and r exp(-i omega), applied forwards and backwards.

    Arguments:
        r, omega: the absolute value and the angle of the poles.
    """

    def __init__(self, r: Any, omega: Any) -> None:
        self.r, self.omega = numbers(r) * 1.0, numbers(omega) * 1.0
        self.bottom = np.stack([self.r * 0.0 + 1.0, -2.0 * self.r * np.cos(self.omega), self.r * self.r])
        self.gain = self.bottom.sum()
        self.is_upright = float(plain_values(self.omega)) == 0.0  # the two poles coincide

    def ahead(self, count: int, first: int) -> Any:
        """Return the impulse response at the times from `first` on."""
        k = np.arange(first, first + count)
        sines = k + 1.0 if self.is_upright else np.sin(self.omega * (k + 1)) / np.sin(self.omega)
        return self.gain * self.r**k * sines

    def both_ways(self, k: Any) -> Any:
        """Return the impulse response of the filter and its mirror image at times k."""
        k, square = np.abs(k), self.r * self.r
        ratio = (1.0 - square) / (1.0 + square)
        if self.is_upright:
            return self.gain**2 * (1.0 + square) / (1.0 - square) ** 3 * self.r**k * (1.0 + ratio * k)
        scale = (1.0 + square) / (1.0 - square) / (1.0 - 2.0 * square * np.cos(2.0 * self.omega) + square * square)
        waves = np.cos(self.omega * k) + ratio / np.tan(self.omega) * np.sin(self.omega * k)
        return self.gain**2 * scale * self.r**k * waves

    def __call__(self, x: Any, first: Any, second: Any, limit: float) -> Any:
        """Filter samples forwards and backwards along the last dimension, with mirror-symmetric boundaries.

        Arguments:
            x: the samples.
            first, second: the first two samples of the forward pass.
            limit: the squared weight at which the sums for the last two samples are truncated.
        """
        k = np.arange(x.shape[-1])
        last = self._sum(self.both_ways(k) + self.both_ways(k + 1), x[..., ::-1], limit)
        other = self._sum(self.both_ways(k - 1) + self.both_ways(k + 2), x[..., ::-1], limit)
        forwards = self._run(x[..., 2:], first, second)
        backwards = self._run(forwards[..., -3::-1], last, other)
        return backwards[..., ::-1]

    def _run(self, x: Any, first: Any, second: Any) -> Any:
        two = np.concatenate([first, second], -1)
        linear, square = -self.bottom[1], -self.bottom[2]
        state = np.concatenate([square * first + linear * second, square * second], -1)
        rest, _ = CONVOLUTIONS["lfilter"](self.gain.reshape(1), self.bottom, x, -1, state)
        return np.concatenate([two, rest], -1)

    def _sum(self, weights: Any, x: Any, limit: float) -> Any:
        """Return the weighted sum of samples, up to the first weight whose square is not above a limit."""
        small = plain_values(weights) ** 2 <= limit
        count = int(np.argmax(small)) + 1 if small.any() else small.size
        if limit and count >= small.size:
            raise ValueError("Sum to find symmetric boundary conditions did not converge.")
        return (x[..., :count] * weights[:count]).sum(-1, keepdims=True)

    def starts(self, x: Any, limit: float) -> tuple[Any, Any]:
        """Return the first two samples of the forward pass, with mirrored samples before them."""
        count = x.shape[-1]
        head = self.ahead(2, 0)
        first = head[0] * x[..., :1] + self._sum(self.ahead(count, 1), x, limit)
        second = head[0] * x[..., 1:2] + head[1] * x[..., :1] + self._sum(self.ahead(count, 2), x, limit)
        return first, second


@made
def symiirorder2(input: Any, r: Any, omega: Any, precision: float = -1.0) -> Any:
    """Apply a second-order filter forwards and backwards, with mirror-symmetric boundaries."""
    x = floating(input)
    if x.dtype.kind == "c":
        raise TypeError("symiirorder2 requires real samples")
    if plain_values(r) >= 1.0:
        raise ValueError("r must be less than 1.0")
    if x.ndim > 2:
        raise ValueError("Input must be 1D or 2D")
    if not 0 < precision <= 1:
        precision = 1e-6 if x.dtype.char in "fF" else 1e-11
    if plain_values(r) < 0 or abs(plain_values(omega)) >= math.pi:
        raise lost("scipy.signal.symiirorder2", "it has a derivative only for r >= 0 and |omega| < pi")
    filtered = _Resonance(r, omega)
    # The sums for the initial values are truncated at the precision; those for the final values at its square root, as
    # in SciPy.
    return filtered(x, *filtered.starts(x, precision * precision), precision)


def _smoothing_pole(lamb: Any) -> tuple[Any, Any]:
    """Return the absolute value and the angle of the poles of the smoothing cubic spline filter."""
    lamb = numbers(lamb) * 1.0
    root = np.sqrt(3.0 + 144.0 * lamb)
    xi = 1.0 - 96.0 * lamb + 24.0 * lamb * root
    angle = np.arctan2(np.sqrt(144.0 * lamb - 1.0), np.sqrt(xi))
    size = (24.0 * lamb - 1.0 - np.sqrt(xi)) / (24.0 * lamb)
    return size * np.sqrt((48.0 * lamb + 24.0 * lamb * root) / xi), angle


def _coefficients(signal: Any, pole: float, scale: float) -> Any:
    x = floating(signal)
    if x.ndim != 1:
        raise ValueError("the samples must have one dimension")
    if x.shape[0] == 1:
        return pole / (pole - 1.0) * (x + pole * x)  # as in SciPy, without the scale
    return scale * _both_ways(x, numbers(pole), numbers(-pole), x.shape[0])


@made
def cspline1d(signal: Any, lamb: float = 0.0) -> Any:
    """Return the coefficients of the interpolating cubic spline."""
    if plain_values(lamb) != 0.0:
        if not plain_values(lamb) > 1 / 144.0:
            raise ValueError("lamb must be 0, or above 1/144")
        x, filtered = floating(signal), _Resonance(*_smoothing_pole(lamb))
        first, second = filtered.starts(x, 0.0)
        head = filtered.ahead(2, 0)
        # As in SciPy, whose sum for the second sample has the first two samples in reverse order.
        return filtered(x, first, second + (head[1] - head[0]) * (x[1:2] - x[:1]), 0.0)
    return _coefficients(signal, CUBIC, 6.0)


@made
def qspline1d(signal: Any, lamb: float = 0.0) -> Any:
    """Return the coefficients of the interpolating quadratic spline."""
    if plain_values(lamb) != 0.0:
        raise ValueError("Smoothing quadratic splines not supported yet.")
    return _coefficients(signal, QUADRATIC, 8.0)


def _evaluated(cj: Any, newx: Any, dx: Any, x0: Any, half: float, bump: Any) -> Any:
    """Return the values of a spline whose basis function vanishes beyond a distance of `half`."""
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
    """Return the values of a cubic spline with mirror-symmetric boundaries."""

    def bump(x: Any) -> Any:
        away = np.abs(x)
        near = plain_values(away.detach()) < 1
        return np.where(near, 2.0 / 3.0 - 0.5 * x**2 * (2.0 - away), (2.0 - away) ** 3 / 6.0)

    return _evaluated(cj, newx, dx, x0, 2.0, bump)


@made
def qspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """Return the values of a quadratic spline with mirror-symmetric boundaries."""

    def bump(x: Any) -> Any:
        away = np.abs(x)
        near = plain_values(away.detach()) < 0.5
        return np.where(near, 0.75 - x**2, 0.5 * (away - 1.5) ** 2)

    return _evaluated(cj, newx, dx, x0, 1.5, bump)


@made
def sepfir2d(input: Any, hrow: Any, hcol: Any) -> Any:
    """Apply one filter to the rows and another to the columns of a matrix, with mirror-symmetric boundaries."""
    x, rows, columns = floating(input), floating(hrow), floating(hcol)
    if x.ndim != 2 or rows.ndim != 1 or columns.ndim != 1 or not rows.shape[0] % 2 or not columns.shape[0] % 2:
        raise ValueError("sepfir2d requires a matrix, and vectors of odd lengths")
    if x.shape[1] < rows.shape[0] - 1 or x.shape[0] < columns.shape[0] - 1:
        # SciPy reads outside the matrix
        raise lost("scipy.signal.sepfir2d", "for tensors with a history no filter may be longer than its dimension + 1")
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
        if name == "qspline2d" and plain_values(lamb) > 0.0:
            raise ValueError("Smoothing quadratic splines not supported yet.")
        if not 0 <= precision < 1:
            precision = 1e-3 if x.dtype.char in "fF" else 1e-6
        if plain_values(lamb) > 1 / 144.0:
            poles = _smoothing_pole(lamb)
            rows = MADE["symiirorder2"](x, *poles, precision)
            return MADE["symiirorder2"](rows.T, *poles, precision).T
        gain = -pole * (6.0 if name == "cspline2d" else 8.0)
        along = MADE["symiirorder1"](x, gain, pole, precision)
        return MADE["symiirorder1"](along.T.contiguous(), gain, pole, precision).T

    coefficients.__name__ = name
    degree = "cubic" if name == "cspline2d" else "quadratic"
    coefficients.__doc__ = f"Return the coefficients of the {degree} spline of a matrix."
    made(coefficients)


_of_images("cspline2d", CUBIC)
_of_images("qspline2d", QUADRATIC)


@made
def spline_filter(Iin: Any, lmbda: Any = 5.0) -> Any:
    """Smooth a matrix by a cubic spline."""
    weights = np.array([1.0, 4.0, 1.0], np.float32) / np.float32(6.0)  # in single precision, as in SciPy
    return MADE["sepfir2d"](MADE["cspline2d"](Iin, lmbda), weights, weights)
