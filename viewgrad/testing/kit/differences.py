"""Finite differences with an error model: each entry of a Jacobian has an error estimate.

Only values of the function are used. Differences are computed for a ladder of step sizes and extrapolated (Richardson's
scheme; C. J. F. Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", 1982). The best entry of the scheme is the
derivative, and its neighbours determine the error. One-sided differences detect the edges of domains, and kinks, at
which any number between the two slopes is a derivative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from ...type_aliases import Array

Along = Callable[[float], Array | None]  # the values after a step; None if there are none

DOUBLE: Final = 2.3e-16
SINGLE: Final = 1.2e-7
RATIO: Final = 3.0  # the ratio of successive steps in the long ladder
STAIRS: Final = (1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8)
CANCELLING: Final = 2e-6  # the number of steps over which all digits of a difference may cancel


@attrs.frozen
class Estimate:
    """Derivatives of all outputs along one direction, found numerically.

    Arguments:
        low: the smaller of the two one-sided slopes; the derivative if the function is smooth.
        high: the larger one.
        error: bounds on their errors.
        kink: the mask of outputs for which the two differ.
    """

    low: Array
    high: Array
    error: Array
    kink: Array

    def agrees(self, found: Array, rtol: Array | float, floor: Array | float) -> Array:
        """Return, for each output, whether another derivative is consistent with the estimate."""
        with np.errstate(all="ignore"):
            known = np.isfinite(self.error) & np.isfinite(self.low) & np.isfinite(self.high)
            size = np.maximum(
                np.maximum(np.abs(self.low), np.abs(self.high)), np.where(np.isfinite(found), np.abs(found), 0.0)
            )
            allowed = rtol * size + floor + 8 * self.error
            away = np.maximum(self.low - found, found - self.high)
            finite = np.isfinite(found)
            decisive = np.where(finite, self.error <= 0.1 * np.abs(away), self.error <= 1e-3 * np.maximum(size, 1.0))
            wrong = ~(away <= allowed) & decisive  # NaN is wrong
        fits: Array = ~known | ~wrong
        return fits

    def trusted(self, rtol: float) -> Array:
        """Return, for each output, whether the estimate is accurate to about `rtol`."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        good: Array = self.error <= rtol * size + 1e-10
        return good


def quick_estimate(along: Along, scale: float, noise: Array, enough: Callable[[Estimate], bool]) -> Estimate | None:
    """Estimate from four nearby values, or six if these do not suffice; return None if a value is missing."""
    slopes: list[Array] = []
    largest: Any = 0.0
    estimate: Estimate | None = None
    for power in (11, 10, 9) if (noise <= DOUBLE).all() else (9, 8, 7):
        step = scale * 2.0**-power
        above, below = along(step), along(-step)
        if above is None or below is None:
            return None
        slopes.append((above - below) / (2 * step))
        largest = np.maximum(largest, np.maximum(np.abs(above), np.abs(below)))
        if len(slopes) == 1:
            shortest = step
            continue
        once = [(4 * short - long) / 3 for short, long in itertools.pairwise(slopes)]
        limit, known = (once[0], slopes[0]) if len(once) == 1 else ((16 * once[0] - once[1]) / 15, once[0])
        error = np.abs(limit - known) + 2 * noise * largest / shortest
        estimate = Estimate(limit, limit, error, np.zeros(limit.shape, bool))
        if enough(estimate):
            break
    return estimate


def thorough_estimate(along: Along, start: Array, scale: float, noise: Array, levels: int = 18) -> Estimate:
    """Estimate from central and one-sided differences, for steps from an eighth of `scale` to a billionth."""
    above: list[Array] = []
    below: list[Array] = []
    steps = [scale / 8 * RATIO**-k for k in range(levels)]
    missing = np.full(start.shape, np.nan)
    for step in steps:
        up, down = along(step), along(-step)
        above.append(missing if up is None else up)
        below.append(missing if down is None else down)
    h = np.array(steps).reshape(-1, 1)
    with np.errstate(all="ignore"):
        ups, downs = np.array(above), np.array(below)
        size = np.fmax(np.fmax(np.abs(ups), np.abs(downs)), np.abs(start))
        # Values that vanish at tiny steps may be differences of numbers that do not: they are as uncertain as others.
        size = np.maximum(size, np.sort(np.where(np.isfinite(size), size, 0.0), axis=0)[-3])
        roundoff = 2 * noise * size / h
        center = _extrapolated((ups - downs) / (2 * h), roundoff, 2)
        right = _extrapolated((ups - start) / h, 2 * roundoff, 1)
        left = _extrapolated((start - downs) / h, 2 * roundoff, 1)
        both = np.isfinite(right[1]) & np.isfinite(left[1])
        apart = np.abs(right[0] - left[0])
        extent = np.maximum(np.abs(right[0]), np.abs(left[0]))
        kink = both & (apart > 10 * (right[1] + left[1]) + 1e-6 * extent + 1e-12)
        value, error = center
        for other in (right, left):
            better = ~np.isfinite(error) | (np.isfinite(other[1]) & (other[1] < error) & ~np.isfinite(center[1]))
            value, error = np.where(better, other[0], value), np.where(better, other[1], error)
        # An infinite one-sided slope is a jump; if both slopes are infinite, the jump is at the point itself.
        jump = np.isfinite(center[1]) & ~(np.isfinite(right[1]) & np.isfinite(left[1]))
        error = np.where(jump, np.inf, error)
        low = np.where(kink, np.minimum(right[0], left[0]), value)
        high = np.where(kink, np.maximum(right[0], left[0]), value)
        error = np.where(kink, right[1] + left[1], error)
    return Estimate(low, high, error, kink)


def _extrapolated(slopes: Array, roundoff: Array, order: int) -> tuple[Array, Array]:
    """Return the limit of slopes for decreasing steps, whose errors are powers of the step, with its error."""
    columns = [slopes]
    for j in (1, 2):
        factor = RATIO ** (order * j)
        last = columns[-1]
        better = np.full(slopes.shape, np.nan)
        better[j:] = (factor * last[j:] - last[j - 1 : -1]) / (factor - 1)
        columns.append(better)
    best = np.full(slopes.shape[1:], np.nan)
    least = np.full(slopes.shape[1:], np.inf)
    for j, column in enumerate(columns):
        change = np.abs(np.diff(column, axis=0))
        off = np.full(slopes.shape, np.inf)
        off[2:] = np.maximum(change[1:], change[:-1] / RATIO)
        if j:
            off = np.maximum(off, np.abs(column - columns[j - 1]) / RATIO)
        off = off + roundoff
        for k in range(j + 2, len(slopes)):
            # If all values are equal, the step is too small to have an effect, or the function is constant.
            better_here = np.isfinite(off[k]) & (off[k] < least)
            best = np.where(better_here, column[k], best)
            least = np.where(better_here, off[k], least)
    # Slopes that keep growing as the step shrinks have no limit, even if they grow only like a logarithm.
    with np.errstate(all="ignore"):
        growth = np.diff(np.log(np.abs(slopes[-8:]) + 1e-300), axis=0)
        endless = (growth > 0.2).all(axis=0) & (np.abs(slopes[-1]) > 10)
        gained = np.diff(slopes[4:14], axis=0)
        steadily = np.abs(gained[1:] / gained[:-1] - 1) < 0.05
        endless |= steadily.all(axis=0) & (np.abs(gained) > 100 * roundoff[5:14]).all(axis=0)
    return best, np.where(endless, np.inf, least)


def noise_of(value_at: Callable[[Array], Array | None], x: Array, scale: Array) -> Array | None:
    """Estimate the relative rounding error of the values of each output, or return None if there are no values.

    A function that computes in single precision internally returns values that do not change with a tiny step, or that
    are representable in single precision.
    """
    start = value_at(x)
    if start is None:
        return None
    direction = scale * np.where(np.arange(x.size) % 2, -0.83, 1.0)
    far = value_at(x + 1e-3 * direction)
    moving = direction != 0
    felt = 4 * SINGLE * float(np.abs(x[moving] / direction[moving]).max(initial=0.0))
    steps = [sign * step for step in STAIRS if step >= felt for sign in (1, -1)]
    between = {step: value_at(x + step * direction) for step in steps}
    near = [value_at(x + k * 1e-9 * direction) for k in (-3, -2, -1, 1, 2, 3)]
    noise = np.full(start.shape, DOUBLE)
    if far is None or any(values is None for values in (*near, *between.values())):
        return noise
    moved = np.ptp(np.array([*near, start]), axis=0)
    expected = 6e-6 * np.abs(far - start)
    resolvable = expected > 200 * DOUBLE * (np.abs(start) + np.abs(far))
    coarse = resolvable & (moved < 0.1 * expected)
    for step, values in between.items():  # constant over steps that single precision resolves: a staircase
        assert values is not None
        there = abs(step) / 1e-3 * np.abs(far - start)
        stair = (np.abs(values - start) <= 0.1 * there) & (there >= 8 * SINGLE * np.maximum(np.abs(start), np.abs(far)))
        if abs(step) < CANCELLING:
            stair &= start != 0  # if all digits cancel, the difference is constant as well
        coarse &= ~stair
    with np.errstate(all="ignore"):
        tried = np.array([start, far])
        single = ((tried.astype(np.float32) == tried) & (tried != np.round(tried * 64) / 64)).all(axis=0)
    return np.where(coarse | single, SINGLE, noise)
