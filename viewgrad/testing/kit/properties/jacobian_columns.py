"""Comparison of columns of a Jacobian with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ....type_aliases import Array
from ..differences import DOUBLE, SINGLE, Estimate, noise_of, quick_estimate, thorough_estimate
from ..operator_under_test import quiet, real_parts
from ..perturb import Moves

RTOL: Final = 3e-7
RTOL_SINGLE: Final = 2e-3
FAR: Final = 20.0  # arguments whose exponentials are far from 1
SIDE: Final = 1e-6  # a relative step for testing whether there are values on both sides
MOST_SINGULAR: Final = 16  # positions
PLACES: Final = (1.371828e-5, -0.7141593e-5, 1.1317724e-4, -1.7932051e-4)  # irregular nearby positions


@attrs.frozen(eq=False)
class Disagreement:
    """An entry of a Jacobian on which two computations disagree."""

    row: int
    direction: Array
    found: float
    low: float
    high: float
    allowed: float


def compare_columns(
    moves: Moves,
    directions: Array,
    rows: Array,
    jacobian: Array,
    again: Callable[[Array], Array | None] | None = None,
    lenient: bool = False,
) -> Disagreement | None:
    """Compare derivatives with finite differences; return a wrong entry, or None.

    Arguments:
        moves: the function.
        directions: the directions of perturbation, as columns.
        rows: weights of its outputs, as rows.
        jacobian: the derivative to be checked, for each row and each position of the vector.
        again: a function that computes the derivatives at another point, to measure their sensitivity.
        lenient: whether to skip derivatives that are not finite.
    """
    columns = _columns_of(moves, rows, jacobian, again, lenient)
    for direction in () if columns is None else directions.T:
        assert columns is not None
        wrong = columns.compared(direction)
        if wrong is not None:
            return columns.narrowed(wrong)
    return None


def glance(moves: Moves, directions: Array, rows: Array, jacobian: Array) -> str:
    """Return the result of a quick comparison: "agree", "none" if values jump, otherwise "unclear"."""
    columns = _columns_of(moves, rows, jacobian)
    for direction in directions.T if columns is not None else ():
        assert columns is not None
        if not columns.settled(direction):
            return "none" if columns.jumps(direction) else "unclear"
    return "agree" if columns is not None and directions.size else "unclear"


def undifferentiable(moves: Moves, rows: Array, jacobian: Array) -> list[int]:
    """Return the positions of the vector at which derivatives are NaN or infinite and the function has no derivative.

    This is the case if the slopes on the two sides differ or are infinite, or if there are values on one side only. It
    may apply to a single output: the derivatives of the others are then NaN too, since zero times NaN is NaN.

    Arguments:
        moves: the function.
        rows: weights of its outputs, as rows.
        jacobian: the derivative, for each row and each position of the vector.
    """
    unknown = ~np.isfinite(jacobian)
    places = np.flatnonzero(unknown.any(axis=0))[:MOST_SINGULAR]
    columns = _columns_of(moves, rows, jacobian) if places.size else None
    if columns is None:
        return []
    return [int(place) for place in places if not columns.are_smooth(int(place))[unknown[:, place]].all()]


def _columns_of(moves: Moves, rows: Array, jacobian: Array, again: Any = None, lenient: bool = False) -> Columns | None:
    """Return a comparison, or None if the function has no values to compare."""
    x = moves.start
    start = moves.at(x)
    if start is None or not np.isfinite(start).all():
        return None
    scales = np.where(np.isfinite(x), np.maximum(np.abs(x), 1.0), 1.0)
    noise = np.full(start.shape, SINGLE if moves.single else DOUBLE)
    if moves.coarse:
        noise[start.astype(np.float32) == start] = SINGLE
    return Columns(moves, x, start, scales, noise, rows, jacobian, again, lenient)


@attrs.define(eq=False)
class Columns:
    """A comparison in progress; see `compare_columns`.

    Arguments:
        scales: the sizes of the elements of the vector, at least 1.
        noise: the relative rounding error of each output; the smallest possible until it is measured.
        last: the step size used for the previous direction.
        nudge: the sensitivity of the derivatives, computed on demand.
        heard: whether the noise has been measured.
    """

    moves: Moves
    x: Array
    start: Array
    scales: Array
    noise: Array
    rows: Array
    jacobian: Array
    again: Callable[[Array], Array | None] | None
    lenient: bool
    last: float = 1.0
    nudge: Array | None = None
    heard: bool = False

    def settled(self, direction: Array) -> bool:
        """Return whether a few differences confirm the derivative."""
        scale, mine, floor = self._expected(direction)
        with quiet():
            if self._settled(direction, scale, mine, self._coarse(), floor):
                return True
            return self._hear_noise() and self._settled(direction, scale, mine, self._coarse(), floor)

    def are_smooth(self, place: int) -> Array:
        """Return, for each row, whether it is differentiable with respect to one component of the vector."""
        along, scale = self._along(np.eye(1, self.x.size, place)[0]), float(self.scales[place])
        weights = np.abs(self.rows)
        with quiet():
            estimate = _weighted(thorough_estimate(along, self.start, scale, self.noise), self.rows)
            smooth: Array = np.isfinite(estimate.error) & ~estimate.kink
            rough = 0.1 * (1.0 + np.abs(estimate.low)) + 10 * weights @ (self.noise * np.abs(self.start)) / SIDE
            for step in (SIDE * scale, -SIDE * scale):
                beside = along(step)
                if beside is None:
                    return np.zeros(len(self.rows), bool)
                smooth &= weights @ ~np.isfinite(beside) == 0
                slopes = self.rows @ np.where(np.isfinite(beside), beside - self.start, 0.0) / step
                smooth &= np.abs(slopes - estimate.low) <= rough  # otherwise the function jumps
        return smooth

    def jumps(self, direction: Array) -> bool:
        """Return whether values jump along a direction in all rows in which differences do not confirm the derivative.
        """
        scale, mine, _ = self._expected(direction)
        along, slopes = self._along(direction), []
        with quiet():
            for step in (1e-7 * scale, 1e-8 * scale):
                above, below = along(step), along(-step)
                if above is None or below is None:
                    return False
                slopes.append(self.rows @ (above - below) / (2 * step))
            rough = 1e4 * np.abs(self.rows) @ (self.noise * np.abs(self.start)) / (1e-8 * scale)
            endless = (np.abs(slopes[1]) > 5 * np.abs(slopes[0])) & (np.abs(slopes[1]) > rough + 1e3 * np.abs(mine))
            right = np.isfinite(mine) & (np.abs(slopes[1] - mine) <= 1e-4 * np.abs(mine) + rough * 1e-3)
        return bool(endless.any() and (endless | right).all())

    def _expected(self, direction: Array) -> tuple[float, Array, Array]:
        """Return the scale of a direction, and the derivative and its tolerance for each row."""
        places = direction != 0
        scale = float((self.scales[places] / np.abs(direction[places])).min())
        with quiet():
            mine = self.jacobian[:, places] @ direction[places]
            terms = np.abs(self.jacobian[:, places]) @ np.abs(direction[places])  # the terms may cancel
            rounding = 16 * DOUBLE * np.nan_to_num(terms, nan=0.0, posinf=0.0)
            return scale, mine, 1e-10 * (np.abs(self.rows) @ np.abs(self.start)) / scale + rounding + 1e-13

    def _coarse(self) -> Array:
        return np.abs(self.rows) @ (self.noise > DOUBLE) > 0

    def compared(self, direction: Array) -> Disagreement | None:
        """Return the worst entry in one direction, or None."""
        if self.settled(direction) or self.jumps(direction):
            return None
        scale, mine, floor = self._expected(direction)
        with quiet():
            rtol = np.where(self._coarse(), RTOL_SINGLE, RTOL)
            estimates: list[Estimate] = []
            for size in (*self._nearby(direction != 0, scale), 1.0, 0.37, 2.3e-2):
                far = thorough_estimate(self._along(direction), self.start, scale * size, self.noise)
                estimate = _weighted(far, self.rows)
                estimates.append(estimate)
                wrong = ~estimate.agrees(mine, rtol, floor)
                if not wrong.any():
                    return None
            wrong &= _unanimous(estimates, mine)
            wrong &= self._beyond_doubt(direction, estimate, mine, rtol, floor)
        if not wrong.any():
            return None
        away = np.maximum(estimate.low - mine, mine - estimate.high)
        size_of = np.maximum(np.maximum(np.abs(estimate.low), np.abs(estimate.high)), 1e-300)
        with quiet():
            excess = np.where(wrong, np.nan_to_num(away / size_of, nan=np.inf), -1.0)
        row = int(np.argmax(excess))
        allowed = float((rtol * size_of + np.broadcast_to(floor, size_of.shape) + 8 * estimate.error)[row])
        low, high = float(estimate.low[row]), float(estimate.high[row])
        return Disagreement(row, direction, float(mine[row]), low, high, allowed)

    def _hear_noise(self) -> bool:
        """Measure the noise of the values; return whether it exceeds the assumption."""
        if self.heard:
            return False
        self.heard, before = True, self.noise
        for part in self.moves.parts():  # each output separately: one may be exact and another inaccurate
            seen = noise_of(lambda vector: self.moves.beside(vector, self.start), self.x, self.scales * part)
            self.noise = self.noise if seen is None else np.maximum(self.noise, seen)
        return bool((self.noise > before).any())

    def narrowed(self, wrong: Disagreement) -> Disagreement:
        """Restrict the disagreement to fewer elements if possible."""
        places = np.flatnonzero(wrong.direction)
        if len(np.unique(wrong.direction[places])) == 1:
            return wrong  # equal elements, which are perturbed together on purpose, or a single element
        for half in (places[: len(places) // 2], places[len(places) // 2 :]):
            part = np.zeros_like(wrong.direction)
            part[half] = 1.0 if len(half) == 1 else wrong.direction[half]
            smaller = self.compared(part)
            if smaller is not None:
                return self.narrowed(smaller)
        return wrong

    def _nearby(self, places: Array, scale: float) -> tuple[float, ...]:
        """Return step sizes that do not cross 0 for arguments near it, since functions such as 1/x jump there."""
        nearest = float(np.abs(self.x[places]).min())
        return (4 * nearest / scale,) if 0 < nearest < 1e-3 * scale else ()

    def _along(self, direction: Array) -> Callable[[float], Array | None]:
        def values(step: float) -> Array | None:
            vector = self.x + step * direction
            if self.moves.single and not self._is_felt(vector, direction, step):
                return None
            return self.moves.beside(vector, self.start)

        return values

    def _stands_still(self, direction: Array, away: Array) -> Array:
        """Return, for each row, whether nothing changes nearby, as for a step function.

        Arguments:
            away: the slopes found by differences.
        """
        places = direction != 0
        scale = float((self.scales[places] / np.abs(direction[places])).min())
        along, weights = self._along(direction), np.abs(self.rows)

        def still(here: float, *there: float) -> Array:
            given = [along(step * scale) for step in (here, *there)]
            if any(values is None for values in given):
                return np.zeros(len(self.rows), bool)
            found: Array = weights @ np.ptp(np.array(given), axis=0) == 0
            return found

        level = still(0.0, 3e-6, 1e-6, -3e-6, -1e-6) | self._whole(direction, scale)
        self._hear_noise()
        exact = ~self._coarse()  # otherwise the shorter steps vanish in single precision
        own = float((np.abs(self.x[places]) / np.abs(direction[places])).min())
        for step in dict.fromkeys((1e-8, 1e-10, 1e-10 * own / scale)):
            # Steps over which the slope would be visible, on both sides, since the start may be at the edge of a step.
            seen = exact & (np.abs(away) * step * scale > 1e3 * DOUBLE * (weights @ np.abs(self.start)))
            seen &= still(step, 3 * step) & still(-step, -3 * step)
            # Cancellation can leave a constant zero, but no other constant.
            elsewhere = [still(place, place + step / 10, place - step / 10) for place in PLACES]
            level |= seen & (np.sum(elsewhere, axis=0) >= 2)
        return level

    def _whole(self, direction: Array, scale: float) -> Array:
        """Return, for each row, whether its outputs are integers nearby, not only due to rounding."""
        whole, small = np.ones(self.start.shape, bool), np.ones(self.start.shape, bool)
        longer = np.zeros(self.start.shape, bool)  # single precision has no longer steps
        for step in (0.0, *(sign * place * size for place in PLACES for size in (1.0, 0.3717) for sign in (1, -1))):
            values = self._along(direction)(step * scale)
            if values is None:
                return np.zeros(len(self.rows), bool)
            whole &= (values == np.round(values)) & (np.abs(values) < 2.0**50)
            small &= np.abs(values) < 2.0**24
            longer |= values.astype(np.float32) != values
        rows: Array = np.abs(self.rows) @ ~(whole & (small | longer)) == 0
        return rows

    def _steep(self, direction: Array, mine: Array) -> Array:
        """Return, for each row, whether a very large derivative is confirmed by smaller steps."""
        places = direction != 0
        scale = float((self.scales[places] / np.abs(direction[places])).min())
        size = np.abs(self.rows) @ np.abs(self.start)
        right = np.zeros(mine.shape, bool)
        for row in np.flatnonzero(np.isfinite(mine) & (size > 0) & (np.abs(mine) * scale > 1e5 * size)):
            step = 1e-3 * size[row] / np.abs(mine[row])
            above, below = self._along(direction)(step), self._along(direction)(-step)
            if above is not None and below is not None:
                slope = self.rows[row] @ (above - below) / (2 * step)
                right[row] = np.abs(slope - mine[row]) <= 1e-3 * np.abs(mine[row])
        return right

    def _right_over_long_steps(self, direction: Array, mine: Array) -> Array:
        """Return, for each row, whether long steps confirm the derivative far from zero.

        Values may be constant over short steps there because digits are lost, as in `log1p(-p)` for `p` near 1.
        """
        places = direction != 0
        right = np.zeros((3, len(mine)), bool)
        if np.abs(self.x[places]).max() >= FAR:
            for i, step in enumerate((1.0, 0.5, 0.2)):
                above, below = self._along(direction)(step), self._along(direction)(-step)
                if above is not None and below is not None:
                    slopes = self.rows @ (above - below) / (2 * step)
                    right[i] = (mine != 0) & np.isfinite(mine) & (np.abs(slopes - mine) <= 0.02 * np.abs(mine))
        found: Array = right.sum(axis=0) >= 2
        return found

    def _right_in_small(self, direction: Array, mine: Array, away: Array) -> Array:
        """Return, for each row, whether short steps confirm the derivative of a small ripple.

        At a kink of the ripple, the one-sided slopes do.
        """
        places = direction != 0
        scale = float((self.scales[places] / np.abs(direction[places])).min())
        right = np.zeros(mine.shape, bool)
        weights = np.abs(self.rows)
        for zoom in 10.0 ** -np.arange(3, 9):
            slopes = []
            for step in (zoom * scale, 0.5 * zoom * scale):
                above, below = self._along(direction)(step), self._along(direction)(-step)
                if above is None or below is None:
                    return right
                sides = above - below, 2 * (above - self.start), 2 * (self.start - below)
                slopes.append(np.array([self.rows @ side / (2 * step) for side in sides]))
            noise = DOUBLE * weights @ np.abs(self.start) / (zoom * scale)
            error = np.abs(slopes[1] - slopes[0]) + 4 * noise + np.abs(slopes[1] - mine)
            right |= (error.min(axis=0) <= 0.05 * away) & (mine != 0) & np.isfinite(mine)
        return right

    def _among_slopes_nearby(self, direction: Array, mine: Array) -> Array:
        """Return, for each row, whether slopes vary nearby and the derivative lies between them.

        Where several sheets of a function meet, such as equal eigenvalues, any of their slopes is correct (F. H.
        Clarke, "Optimization and nonsmooth analysis", 1983).
        """
        places = direction != 0
        scale = float((self.scales[places] / np.abs(direction[places])).min())
        slopes = []
        places_nearby = np.random.default_rng(7).uniform(-1.0, 1.0, (24, self.x.size))
        for place in places_nearby:
            beside = self.x + 1e-5 * self.scales * place
            step = 1e-8 * scale * direction
            above, below = self.moves.beside(beside + step, self.start), self.moves.beside(beside - step, self.start)
            if above is not None and below is not None:
                slopes.append(self.rows @ (above - below) / (2e-8 * scale))
        if len(slopes) < 4 or self.moves.single:
            return np.zeros(mine.shape, bool)
        low, high = np.min(slopes, axis=0), np.max(slopes, axis=0)
        size = np.maximum(np.abs(low), np.abs(high))
        between: Array = (high - low > 0.05 * size + 1e-6) & (low - 1e-4 * size <= mine) & (mine <= high + 1e-4 * size)
        return between

    def _is_felt(self, vector: Array, direction: Array, step: float) -> bool:
        """Return whether low-precision arrays are perturbed by about the requested amount."""
        places = direction != 0
        arrays = self.moves.moved(vector)
        reached = np.concatenate([real_parts(arrays[k]) for k in self.moves.wanted])
        wanted = np.abs(step * direction[places])
        return bool((np.abs(reached - vector)[places] <= 1e-2 * wanted).all())

    def _settled(self, direction: Array, scale: float, mine: Array, coarse: Array, floor: Any) -> bool:
        """Return whether a few nearby values confirm the derivative."""

        def enough(quick: Estimate) -> bool:
            return bool(_weighted(quick, self.rows).trusted(1e-6).all())

        for zoom in dict.fromkeys([self.last, 1.0, 1e-2, 1e-4, 1e-6, *self._nearby(direction != 0, scale)]):
            quick = quick_estimate(self._along(direction), scale * zoom, self.noise, enough)
            if quick is None:
                continue
            estimate = _weighted(quick, self.rows)
            fine = estimate.trusted(1e-6) | coarse
            if (estimate.agrees(mine, RTOL, floor) & fine & np.isfinite(mine)).all():
                self.last = zoom
                return True
            if fine.all():
                return False  # the derivative is known, and a different one was found
        return False

    def _beyond_doubt(self, direction: Array, estimate: Estimate, mine: Array, rtol: Array, floor: Any) -> Array:
        """Return, for each row, whether only a wrong derivative can explain the difference."""
        if self.again is not None and self.nudge is None:
            self.nudge = _sensitivity(self.again, self.x, self.jacobian, self.lenient)
        slack = np.zeros(mine.shape) if self.nudge is None else self.nudge @ np.abs(direction)
        slack = np.where(estimate.kink, 0.0, slack)  # at a jump, any value between the slopes is correct
        wrong = ~estimate.agrees(mine, rtol, floor + 20 * slack)
        wrong &= ~_by_complex_step(self.moves, self.x, direction, self.rows, mine)
        away = np.maximum(estimate.low - mine, mine - estimate.high)
        wrong &= ~((mine == 0) & self._stands_still(direction, away))
        wrong &= ~self._steep(direction, mine)
        if self.lenient:
            wrong &= ~((estimate.low == 0) & (estimate.high == 0) & self._right_over_long_steps(direction, mine))
        if wrong.any():
            wrong &= ~self._right_in_small(direction, mine, away)
        if wrong.any() and np.count_nonzero(self.x == self.x[np.argmax(direction)]) > 1:
            wrong &= ~self._among_slopes_nearby(direction, mine)
        moved = np.count_nonzero(direction)
        if estimate.kink.any() and np.count_nonzero(self.x == self.x[np.argmax(direction)]) > moved:
            wrong &= False  # a tie, for which choosing one of the elements may be correct
        if len(np.unique(np.abs(direction[direction != 0]))) > 1:
            wrong &= ~estimate.kink  # with several kinks at once, each slope may be either one
        if self.lenient or not np.isfinite(estimate.error).all():
            wrong &= np.isfinite(mine)  # zero times the infinite derivative of another output
        return wrong


def _unanimous(estimates: list[Estimate], mine: Array) -> Array:
    """Return, for each row, whether the estimates agree better with each other than with the derivative.

    Steps that are too long for an oscillating function measure a different slope.
    """
    lows, highs = np.array([e.low for e in estimates]), np.array([e.high for e in estimates])
    spread = np.maximum(np.ptp(lows, axis=0), np.ptp(highs, axis=0))
    away = np.maximum(lows - mine, mine - highs).min(axis=0)
    agreed: Array = ~np.isfinite(mine) | ~(spread > 0.3 * away)
    return agreed


def _weighted(estimate: Estimate, rows: Array) -> Estimate:
    """Return the estimate for weighted sums of outputs."""
    up, down = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
    unknown = ~(np.isfinite(estimate.low) & np.isfinite(estimate.high) & np.isfinite(estimate.error))
    low, high = np.where(unknown, 0.0, estimate.low), np.where(unknown, 0.0, estimate.high)
    error = np.abs(rows) @ np.where(unknown, 0.0, estimate.error)
    error = np.where((np.abs(rows) @ unknown) > 0, np.inf, error)
    return Estimate(up @ low + down @ high, up @ high + down @ low, error, np.abs(rows) @ estimate.kink > 0)


def _sensitivity(again: Callable[[Array], Array | None], x: Array, found: Array, lenient: bool) -> Array | None:
    """Return the change of the derivatives if the arguments change by a rounding error.

    With `lenient`, also include their roughness over a wider range, which reveals cancelled digits.
    """
    if found.shape[1] != x.size:
        return None
    change = np.zeros(found.shape)
    turns = np.where(np.arange(x.size) % 2, -0.7, 1.0)
    for size in (8 * DOUBLE, 3e-3, 1e-2) if lenient else (8 * DOUBLE,):
        above, below = again(x * (1 + size * turns)), again(x * (1 - size * turns))
        if above is None or below is None or not above.shape == below.shape == found.shape:
            continue
        rough = np.abs(above + below - 2 * found)
        if size == 8 * DOUBLE:
            rough = np.maximum(np.abs(above - found), np.abs(below - found))
        change = np.maximum(change, np.nan_to_num(rough, nan=0.0))
    return change


def _by_complex_step(moves: Moves, x: Array, direction: Array, rows: Array, found: Array) -> Array:
    """Return, for each row, whether the complex step confirms the derivative, away from poles."""
    nothing = np.zeros(found.shape, bool)
    if any(moves.arrays[k].dtype.kind == "c" for k in moves.wanted):
        return nothing
    results = []
    for step in (1e-9, 1e-12):  # relative to the size of the arguments, so that real parts do not change
        arrays = moves.moved(x)
        taken = 0
        for k in moves.wanted:
            size = arrays[k].size
            arrays[k] = arrays[k] + 1j * step * direction[taken : taken + size].reshape(arrays[k].shape)
            taken += size
        try:
            outputs = moves.values(arrays)
        except Exception:
            return nothing
        if any(output.dtype.kind != "c" for output in outputs) or sum(o.size for o in outputs) != rows.shape[1]:
            return nothing  # not real for real numbers, or not of that shape
        results.append(rows @ np.concatenate([output.reshape(-1).imag for output in outputs]) / step)
    start = moves.at(x)
    plain = None if start is None else moves.beside(x * (1 + 1e-9), start)
    if plain is None or start is None:
        return nothing
    # Only if plain differences are hopeless: a relative change of 1e-9 changes the values by 1e-3.
    steep = np.abs(rows) @ np.abs(plain - start) > 1e-3 * (np.abs(rows) @ np.abs(start))
    agrees: Array = np.isfinite(found) & (np.abs(results[1] - found) <= 1e-5 * np.abs(found) + 1e-9)
    good: Array = agrees & steep & (np.abs(results[0] - results[1]) <= 1e-5 * np.abs(results[1]) + 1e-9)
    return good


def dense_directions(start: Array, places: Sequence[int]) -> list[Array]:
    """Return two directions at `start` that perturb many elements by different amounts."""
    directions = []
    for phase in (0.4, 1.9):
        direction = np.zeros(start.shape)
        amounts = np.cos(2.1 * np.arange(len(places)) + phase) * 0.45 + 0.55
        direction[list(places)] = amounts * np.maximum(np.abs(start[list(places)]), 1.0)
        directions.append(direction)
    return directions
