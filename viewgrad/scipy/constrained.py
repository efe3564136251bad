"""Solutions at bounds and constraints: minimizers that depend on them.

An element at a bound equals the bound. A minimizer under constraints is a root of the equations of Karush, Kuhn and
Tucker for the active constraints, by which it depends on what the function, the constraints and the bounds capture.

Source: J. Nocedal, S. Wright, "Numerical Optimization" (2006), chapter 12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np
import scipy.optimize as theirs  # type: ignore[import-untyped]

from ..errors import DifferentiabilityError
from ..func.transforms import grad, jacrev
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from .implicit_diff import computed_anew, least_place, root_by_newton
from .wrap import float_copy, numbers

NEAR: Final = 1e-9  # the maximum relative distance from a bound at which an element counts as being at the bound
ACTIVE: Final = 1e-5  # the maximum relative distance from its limit at which a constraint counts as active
Function = Callable[[Any], Any]


@attrs.frozen
class Ends:
    """The elements of a point that are at their bounds.

    Attributes:
        free: the mask of the other elements; None without bounds.
        values: the point, with the elements at bounds replaced by these bounds; None without bounds.
    """

    free: Any
    values: Any

    @property
    def depend_on_tensors(self) -> bool:
        """True if any bound that is attained has a history."""
        return self.free is not None and not np.all(self.free) and carries_history(self.values)


NO_ENDS: Final = Ends(None, None)


def bound_pairs(bounds: Any) -> tuple[Any, Any] | None:
    """Return the lower and upper bounds, with their histories, from pairs of bounds or a `scipy.optimize.Bounds`."""
    if bounds is None:
        return None
    if isinstance(bounds, theirs.Bounds):
        return bounds.lb, bounds.ub
    lows, highs = [], []
    for low, high in bounds:
        lows.append(numbers(-np.inf if low is None else low) * 1.0)
        highs.append(numbers(np.inf if high is None else high) * 1.0)
    return np.stack(lows), np.stack(highs)


def plain_bounds(bounds: Any) -> Any:
    """Return bounds without history, for SciPy."""
    if bounds is None or isinstance(bounds, theirs.Bounds) or not carries_history(bounds):
        return plain_values(as_argument(bounds))
    return list(zip(*[plain_values(as_argument(each)).tolist() for each in bound_pairs(bounds) or ()]))


def at_ends(place: Any, limits: tuple[Any, Any] | None, near: Any = NEAR) -> Ends:
    """Return which elements of a point are at their bounds.

    Arguments:
        place: the point, without history.
        limits: the lower and the upper bounds, with their histories; None without bounds.
        near: the maximum relative distance from a bound.
    """
    if limits is None:
        return NO_ENDS
    x = np.asarray(plain_values(place), float)
    low, high = (np.broadcast_to(numbers(each), x.shape) for each in limits)
    least = near * np.maximum(1, np.abs(x))
    is_low, is_high = (np.asarray(plain_values(each)) for each in (x - low <= least, high - x <= least))
    values = np.where(is_low, low, np.where(is_high, high, x)) if carries_history((low, high)) else as_tensors(x.copy())
    return Ends(~(is_low | is_high), values)


@attrs.frozen
class Constraint:
    """A constraint `low <= function(x) <= high`, in terms of functions of tensors."""

    function: Function
    low: Any
    high: Any


def constraint_of(item: Any) -> Constraint:
    """Convert a constraint from one of SciPy's forms."""
    if isinstance(item, theirs.NonlinearConstraint):
        return Constraint(item.fun, item.lb, item.ub)
    if isinstance(item, theirs.LinearConstraint):
        matrix = item.A.toarray() if hasattr(item.A, "toarray") else item.A
        return Constraint(lambda x: numbers(matrix) @ x, item.lb, item.ub)
    args = tuple(item.get("args", ()))
    return Constraint(lambda x: item["fun"](x, *args), 0.0, 0.0 if item["type"] == "eq" else np.inf)


def constrained_place(function: Function, place: Any, ends: Ends, constraints: Sequence[Constraint]) -> Any:
    """Return a minimizer under constraints, with its history.

    Arguments:
        function: a scalar-valued function, which may refer to tensors that have a history.
        place: the minimizer.
        ends: the elements at their bounds.
        constraints: the constraints; their functions and limits may refer to tensors that have a history.

    Raises:
        DifferentiabilityError: if an active constraint does not influence the minimizer.
    """
    found = np.asarray(plain_values(place), float)
    active = [each for item in constraints for each in _active(item, found)]
    if not active:
        return least_place(function, place, ends.free, ends.values)
    function = computed_anew(function)
    places = np.flatnonzero(np.ones(found.shape, bool) if ends.free is None else ends.free)

    def moved(elements: Any) -> Any:
        x = numbers(found if ends.values is None else ends.values) * 1.0
        x[places] = elements
        return x

    def residuals(elements: Any) -> Any:
        x = moved(elements)
        return np.concatenate([each(x) for each, _ in active])

    residuals_anew = computed_anew(residuals)

    def value(elements: Any) -> Any:
        return float_copy(function(moved(elements))).reshape(())

    start = as_tensors(found[places].copy())
    slope, slopes = (np.asarray(plain_values(of(start).detach())) for of in (grad(value), jacrev(residuals_anew)))
    multipliers = np.linalg.lstsq(slopes.T, slope, rcond=None)[0]
    at = as_tensors(found.copy())
    one_sided = np.concatenate([np.full(len(each(at)), is_one_sided) for each, is_one_sided in active])
    if np.any(one_sided & (multipliers <= ACTIVE * max(1e-3, float(np.max(np.abs(slope), initial=0.0))))):
        raise DifferentiabilityError(
            "the solution has no derivative with respect to the tensors that the function captures: it is at a "
            "constraint that does not influence it, or the search stopped too early; use a smaller tolerance, omit the "
            "constraint, or pass detach() of the captured tensors"
        )

    def stationarity(unknowns: Any) -> Any:
        elements, factors = unknowns[: places.size], unknowns[places.size :]
        slope = grad(lambda each: value(each) - (residuals(each) * factors).sum())(elements)
        return np.concatenate([slope, residuals_anew(elements)])

    return moved(root_by_newton(stationarity, np.concatenate([found[places], multipliers]))[: places.size])


def _active(item: Constraint, found: Any) -> list[tuple[Function, bool]]:
    """Return the residuals of the active parts of a constraint, and whether each is one-sided."""

    def values(x: Any) -> Any:
        return np.atleast_1d(float_copy(item.function(x))).reshape(-1)

    at = np.asarray(plain_values(values(as_tensors(found.copy())).detach()))
    low, high = (np.broadcast_to(numbers(each) * 1.0, at.shape) for each in (item.low, item.high))
    plain_low, plain_high = (np.asarray(plain_values(each)) for each in (low, high))
    least = ACTIVE * np.maximum(1, np.abs(at))
    equal = plain_low == plain_high
    parts: list[tuple[Function, bool]] = []
    if equal.any():
        parts.append((lambda x: values(x)[equal] - low[equal], False))
    at_low, at_high = ~equal & (at - plain_low <= least), ~equal & (plain_high - at <= least)
    if at_low.any():
        parts.append((lambda x: values(x)[at_low] - low[at_low], True))
    if at_high.any():
        parts.append((lambda x: high[at_high] - values(x)[at_high], True))
    return parts
