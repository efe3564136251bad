"""The steps of ODE solvers, repeated on tensors.

SciPy determines the steps on plain values. A step repeated on tensors depends on its initial values, on its length, and
on the tensors that the right-hand side captures.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np
import scipy.integrate  # type: ignore[import-untyped]

from ..operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..tensor.modes import enable_grad, no_grad
from ..tensor.tensor import Tensor
from .search_points import gradient_at, temporary_leaf
from .wrap import call_nearby

Slope = Callable[[Any, Any], Any]
EXPLICIT: Final = ("RK23", "RK45", "DOP853")
IMPLICIT: Final = "Radau"
# Corrections of the stages of an implicit step; each makes derivatives exact to one more order.
CORRECTIONS: Final = 3
# Jacobians of an earlier step are reused if a correction with them reduces an error by more than this factor;
# corrections are then repeated until the error of derivatives is as small as CONVERGED.
SLOWEST: Final = 1e-3
CONVERGED: Final = 1e-11
DEGREE: Final = 14  # at least the degree of SciPy's interpolating polynomials
FEW: Final = 5  # in smaller systems, a new Jacobian costs less than testing an older one


def pinned(value: Any, found: Any) -> Any:
    """Return a given value with the history of a tensor that equals it up to rounding."""
    return value + (as_tensors(np.array(found)) - value.detach())


def plain_number(value: Any) -> float:
    """Return the value of a tensor or a number."""
    return float(plain_values(value.detach() if isinstance(value, Tensor) else value))


@attrs.define(slots=True, frozen=True)
class Step:
    """A step of a method: its start, its length, and the slopes or increments of its stages."""

    method: str
    fun: Slope
    after: float  # the time at the end of the step, without history
    t: Any
    h: Any
    y_old: Any
    y_new: Any
    stages: list[Any]

    def at(self, t: Any) -> Any:
        """Return the solution within the step, by the interpolating polynomial of the method."""
        share = (t - self.t) / self.h
        if self.method == "DOP853":
            return self._at_eighth_order(share)
        weights = _powers(share, _polynomial(self.method).shape[1]) @ as_tensors(_polynomial(self.method).T)
        move = weights @ np.stack(self.stages[: weights.shape[0]])
        return self.y_old + (move if self.method == IMPLICIT else self.h * move)

    def _at_eighth_order(self, share: Any) -> Any:
        coefficients = importlib.import_module("scipy.integrate._ivp.dop853_coefficients")
        h, y_old, extended = self.h, self.y_old, list(self.stages)
        for place in range(len(self.stages), coefficients.C.size):
            move = weighted(coefficients.A[place, :place], extended, y_old)
            extended.append(self.fun(self.t + float(coefficients.C[place]) * h, y_old + h * move))
        delta = self.y_new - y_old
        parts = [delta, h * self.stages[0] - delta, 2 * delta - h * (self.stages[-1] + self.stages[0])]
        parts += [h * weighted(row, extended, y_old) for row in coefficients.D]
        value = y_old * 0.0
        for place, part in enumerate(reversed(parts)):
            value = (value + part) * (share if place % 2 == 0 else 1 - share)
        return value + y_old


def _powers(share: Any, count: int) -> Any:
    return (as_tensors(np.ones(count)) * share).cumprod()


@functools.cache
def _polynomial(method: str) -> Any:
    """Return the coefficients of the slopes (or increments, if implicit) for each power of the fraction of the step."""
    if method != IMPLICIT:
        return np.array(getattr(scipy.integrate, method).P)
    return np.linalg.inv(_collocation()[0][:, None] ** np.arange(1, 4)).T


@functools.cache
def _collocation() -> tuple[Any, Any]:
    """Return the collocation points of Radau's method of fifth order, and its matrix.

    Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II" (1996), section IV.5.
    """
    places = np.array([(4 - 6**0.5) / 10, (4 + 6**0.5) / 10, 1.0])
    powers = np.arange(3)
    return places, (places[:, None] ** (powers + 1) / (powers + 1)) @ np.linalg.inv(places[:, None] ** powers)


def weighted(weights: Any, slopes: list[Any], like: Any) -> Any:
    """Return the weighted sum of slopes."""
    return sum((float(w) * k for w, k in zip(weights, slopes) if w), like * 0.0)


def _explicit_step(fun: Slope, method: str, t: Any, h: Any, y: Any, slope: Any) -> tuple[Any, list[Any]]:
    """Return the solution after a step of an explicit Runge-Kutta method, and the slopes of the stages."""
    solver = getattr(scipy.integrate, method)
    stages = [slope]
    for place in range(1, solver.n_stages):
        move = weighted(solver.A[place, :place], stages, y)
        stages.append(fun(t + float(solver.C[place]) * h, y + h * move))
    y_new = y + h * weighted(solver.B, stages, y)
    return y_new, [*stages, fun(t + h, y_new)]


def _implicit_step(fun: Slope, t: Any, h: Any, y: Any, found: Any, known: Any) -> tuple[Any, list[Any], Any]:
    """Return the solution after a step of Radau's method, the stages, and their Jacobians.

    Arguments:
        found: SciPy's increments, which are corrected by the equations.
        known: the Jacobians at the stages of an earlier step, or None. They are used as long as corrections converge
            quickly; derivatives then converge at the same rate, and further corrections are made.
    """
    places, matrix = _collocation()
    size = y.size
    times = [t + float(place) * h for place in places]
    weights = as_tensors(np.kron(matrix, np.eye(size)))

    def residual(moves: Any, y: Any = y) -> Any:
        slopes = np.concatenate([fun(time, y + moves[i * size : (i + 1) * size]) for i, time in enumerate(times)])
        return moves - h * (weights @ slopes)

    start = as_tensors(np.array(found).reshape(-1))
    blocks, extra = known, None
    if known is not None and size >= FEW:
        inverse = _inverse(matrix, known, h, size)
        extra = _extra_corrections(lambda moves: residual(moves, y.detach()), start, inverse)
    if extra is None:
        blocks = [_jacobian(fun, plain_number(at), plain_values(y.detach()) + found[i]) for i, at in enumerate(times)]
        inverse, extra = _inverse(matrix, blocks, h, size), 0
    moves = start
    for _ in range(CORRECTIONS + extra):
        moves = moves - as_tensors(inverse) @ residual(moves)
    stages = [moves[i * size : (i + 1) * size] for i in range(3)]
    return y + stages[-1], stages, blocks


def _inverse(matrix: Any, blocks: Any, h: Any, size: int) -> Any:
    """Return the inverse of the Jacobian of the stage equations."""
    slopes = np.block([[matrix[i, k] * blocks[k] for k in range(3)] for i in range(3)])
    return np.linalg.inv(np.eye(3 * size) - plain_number(h) * slopes)


def _extra_corrections(residual: Callable[[Any], Any], start: Any, inverse: Any) -> int | None:
    """Return the number of further corrections needed with an approximate inverse, or None if they converge too slowly.

    The factor by which a correction reduces an error is measured in two directions.
    """
    at = np.array(plain_values(start))
    step = 1e-6 * (1e-3 + float(np.max(np.abs(at), initial=0.0)))
    with no_grad():
        base, slowest = np.array(plain_values(residual(start))), 0.0
        for direction in (np.cos(1.0 + np.arange(at.size)), np.where(np.arange(at.size) % 2, -1.0, 1.0)):
            moved = np.array(plain_values(residual(as_tensors(at + step * direction))))
            rest = direction - inverse @ ((moved - base) / step)
            slowest = max(slowest, float(np.max(np.abs(rest))) / float(np.max(np.abs(direction))))
    if not slowest < SLOWEST:
        return None
    return math.ceil(math.log(CONVERGED) / math.log(max(10.0 * slowest, 1e-9)))


def _jacobian(fun: Slope, t: float, y: Any) -> Any:
    """Return the Jacobian of the right-hand side as an array.

    `jacrev` would record it, at three times the cost, since the right-hand side captures tensors with a history.
    """
    call_nearby(lambda place: fun(t, place), y)
    place = temporary_leaf(y)
    with enable_grad():
        slope = fun(t, place)
    rows = [gradient_at(place, element) for element in slope.reshape(-1)]
    return np.array([np.zeros(place.size) if row is None else row for row in rows])


class Trajectory:
    """The solution of a differential equation on tensors, by the steps that a SciPy method took.

    Arguments:
        fun: the right-hand side, a function of the time and the values.
        steps: SciPy's interpolating polynomials of the steps.
        start: the values at the beginning.
        method: one of `EXPLICIT`, or `IMPLICIT`.
        clock: the time as a tensor, as a function of SciPy's time.
    """

    def __init__(self, fun: Slope, steps: Any, start: Any, method: str, clock: Callable[[float], Any]) -> None:
        self.steps: list[Step] = []
        self.forward = bool(not steps or steps[0].t >= steps[0].t_old)
        self.start = y = start
        self.first = steps[0].t_old if steps else None
        slope = fun(clock(steps[0].t_old), start) if steps and method in EXPLICIT else None
        jacobians: Any = None
        for step in steps:
            t = clock(step.t_old)
            h = clock(step.t) - t
            if method in EXPLICIT:
                y_new, stages = _explicit_step(fun, method, t, h, y, slope)
                slope = stages[-1]
            else:
                moves = step(step.t_old + (step.t - step.t_old) * _collocation()[0]).T - step.y_old
                y_new, stages, jacobians = _implicit_step(fun, t, h, y, moves, jacobians)
            self.steps.append(Step(method, fun, step.t, t, h, y, y_new, stages))
            y = y_new

    def at(self, t: Any) -> Any:
        """Return the solution at one or several times."""
        if np.ndim(t):
            return np.stack([self.at(each) for each in t], -1)
        place = plain_number(t)
        if self.steps and place == self.first and not carries_history(t):
            return self.start
        for step in self.steps:
            if place <= step.after if self.forward else place >= step.after:
                return step.at(t)
        return self.steps[-1].at(t) if self.steps else self.start


def solved(
    fun: Slope, ends: tuple[float, float], start: Any, method: str, clock: Callable[[float], Any], options: Any
) -> Trajectory | None:
    """Return the steps that a method takes between two times on tensors, or None if it fails."""
    with no_grad():
        found = scipy.integrate.solve_ivp(
            plain_slope(fun), ends, np.array(plain_values(start.detach())), method, dense_output=True, **options
        )
    return Trajectory(fun, found.sol.interpolants, start, method, clock) if found.success else None


def plain_slope(fun: Slope) -> Callable[..., Any]:
    """Convert a right-hand side to a function of arrays."""

    def slope(t: Any, y: Any, *args: Any) -> Any:
        with no_grad():
            return np.array(plain_values(fun(t, as_tensors(np.array(y)), *args).detach()))

    return slope


class OdeSolution:
    """The solution of an initial value problem between its steps, as `scipy.integrate.OdeSolution`.

    Gradients flow to the evaluation times. SciPy's interpolants are polynomials, which are evaluated by their Chebyshev
    coefficients.

    Arguments:
        ts, interpolants, alt_segment: as for `scipy.integrate.OdeSolution`.
    """

    def __init__(self, ts: Any, interpolants: Any, alt_segment: bool = False) -> None:
        self._plain = scipy.integrate.OdeSolution(plain_values(ts), interpolants, alt_segment)
        self.interpolants = list(interpolants)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plain, name)

    def __call__(self, t: Any) -> Any:
        times = np.asarray(plain_values(t.detach() if isinstance(t, Tensor) else t))
        found = self._plain(times)
        if not carries_history(t):
            return as_tensors(found)
        # The segments are those that SciPy's solution chooses.
        numbered = [lambda t, n=n: np.full((1, *np.shape(t)), n) for n in range(len(self.interpolants))]
        chosen = scipy.integrate.OdeSolution(self._plain.ts, numbered)
        chosen.side = self._plain.side
        segments = chosen(times)[0]
        if not times.ndim:
            return pinned(_within(self.interpolants[int(segments)], t), found)
        columns = [_within(self.interpolants[int(n)], each) for n, each in zip(segments, t)]
        return pinned(np.stack(columns, -1), found)


def _within(interpolant: Any, t: Any) -> Any:
    """Return the value of an interpolant of SciPy at a time with a history."""
    half, middle = (interpolant.t - interpolant.t_old) / 2.0, (interpolant.t + interpolant.t_old) / 2.0
    places = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    values = interpolant(middle + half * places)
    weights = np.polynomial.chebyshev.chebvander(places, DEGREE).T * (2.0 / (DEGREE + 1))
    coefficients = weights @ values.T
    coefficients[0] /= 2.0
    # Higher coefficients are rounding errors, which would grow outside the step.
    coefficients[np.abs(coefficients) < 1e-13 * np.abs(coefficients).max(0)] = 0.0
    share = (t - middle) / half
    last: Any = share * np.zeros(values.shape[0])
    before = last
    for row in coefficients[:0:-1]:
        last, before = row + 2.0 * share * last - before, last
    return coefficients[0] + share * last - before
