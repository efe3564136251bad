"""`scipy.integrate` for tensors: sums of samples, integrals of functions, and differential equations.

Differential equations are solved by SciPy's explicit methods of Runge and Kutta. Their steps are found on plain values,
and taken again on tensors. So the gradient is that of the steps that were taken. It goes to the start, the parameters,
and whatever the right-hand side refers to.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.integrate  # type: ignore[import-untyped]

from ..numpy.functions import lost
from ..numpy.namespace import filled, public_names
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}


def made(function: Any) -> Any:
    """Make a function the counterpart of SciPy's of the same name."""
    MADE[function.__name__] = function
    return function


def _samples(value: Any) -> Any:
    return as_operand(as_argument(value))


# -- samples -----------------------------------------------------------------------------------------------------------


@made
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule."""
    return np.trapezoid(_samples(y), None if x is None else _samples(x), dx, axis)


@made
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The running integral of samples by the trapezoidal rule."""
    y = np.moveaxis(_samples(y), axis, -1)
    widths = dx
    if x is not None:
        x = _samples(x)
        widths = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1), axis=-1)
    sums = (widths * (y[..., 1:] + y[..., :-1]) / 2.0).cumsum(-1)
    if initial is not None:
        sums = np.concatenate([y[..., :1] * 0.0 + initial, sums], -1)
    return np.moveaxis(sums, -1, axis)


@made
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule."""
    if not holds_tensor((y, x, dx)):
        return as_tensors(scipy.integrate.simpson(y, x, dx=dx, axis=axis))
    y = _samples(y)
    if x is None:  # linear in the samples
        weights = scipy.integrate.simpson(np.eye(y.shape[axis]), dx=1.0, axis=-1)
        return np.tensordot(y, weights, ((axis,), (0,))) * dx
    x = _samples(x)
    y = np.moveaxis(y, axis, -1)
    x = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
    count = y.shape[-1]
    if count < 3:
        return trapezoid(y, x)
    widths = np.diff(x, axis=-1)
    pairs = count - 1 if count % 2 else count - 2
    first, second = widths[..., 0:pairs:2], widths[..., 1:pairs:2]
    left, middle, right = y[..., 0:pairs:2], y[..., 1:pairs:2], y[..., 2 : pairs + 1 : 2]
    both = first + second
    total = (
        both
        / 6
        * (left * (2 - second / first) + middle * both * both / (first * second) + right * (2 - first / second))
    ).sum(-1)
    if count % 2 == 0:  # the last interval, by the parabola through the last three samples
        h0, h1 = widths[..., -2], widths[..., -1]
        total = total + y[..., -1] * (2 * h1 * h1 + 3 * h0 * h1) / (6 * (h1 + h0))
        total = total + y[..., -2] * (h1 * h1 + 3 * h0 * h1) / (6 * h0)
        total = total - y[..., -3] * h1**3 / (6 * h0 * (h0 + h1))
    return total


# -- functions ---------------------------------------------------------------------------------------------------------

# The rule of Gauss and Kronrod with 21 nodes, from SciPy itself: its weights are what it makes of the unit vectors.
NODES: Final = 21


@functools.cache
def _rule() -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights


@made
def quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
    """The integral of a function between two bounds; gradients flow to the bounds and to what the function refers to.

    SciPy finds the intervals that are narrow enough; on each of them the function is integrated by Gauss's rule.
    """
    args = args if isinstance(args, tuple) else (args,)

    def plain(x: float) -> float:
        with no_grad():
            value = func(x, *args)
        return float(plain_values(value.detach() if isinstance(value, Tensor) else value))

    low, high = (float(plain_values(bound.detach() if isinstance(bound, Tensor) else bound)) for bound in (a, b))
    found = scipy.integrate.quad(plain, low, high, full_output=1, **options)
    probe = func(
        as_operand(0.5 * (low + high))
        if math.isfinite(low + high)
        else as_operand(low + 1.0 if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0),
        *args,
    )
    if not carries_history((a, b, probe)):
        return found if full_output else found[:2]
    information = found[2]
    count = information["last"]
    starts, ends = information["alist"][:count], information["blist"][:count]
    nodes, weights = _rule()
    total: Any = 0.0
    for start, end in zip(starts, ends):
        for node, weight in zip(nodes, weights):
            place = 0.5 * (start + end) + 0.5 * (end - start) * node
            total = total + 0.5 * (end - start) * weight * _at(func, args, place, a, b, low, high)
    result = (total, found[1])
    return (*result, information) if full_output else result


def _at(func: Callable[..., Any], args: Any, place: float, a: Any, b: Any, low: float, high: float) -> Any:
    """The integrand at a place among the intervals that SciPy found, in the variable that it used there."""
    if math.isfinite(low) and math.isfinite(high):
        if low == high:
            return 0.0
        share = (place - low) / (high - low)
        return func(a + (b - a) * share, *args) * ((b - a) / (high - low))
    away = (1.0 - place) / place
    if math.isfinite(low):
        return func(a + away, *args) / place**2
    if math.isfinite(high):
        return func(b - away, *args) / place**2
    return (func(as_operand(away), *args) + func(as_operand(-away), *args)) / place**2


@made
def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """The integral of a function by Gauss's rule of a fixed order."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    middle, half = (b + a) / 2.0, (b - a) / 2.0
    return half * (as_operand(weights) * func(half * as_operand(nodes) + middle, *args)).sum(-1), None


# -- differential equations --------------------------------------------------------------------------------------------

EXPLICIT: Final = ("RK23", "RK45", "DOP853")


def _depends(fun: Callable[..., Any], t: Any, y: Any, args: Any) -> bool:
    """Whether a right-hand side refers to tensors that have a history."""
    return carries_history(fun(t, y.detach(), *args))


@made
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """The solution of a differential equation from its start, as `scipy.integrate.solve_ivp`.

    The gradient is that of the steps of the explicit methods (RK23, RK45 and DOP853), with their lengths held fixed.

    Raises:
        UnknownFunctionError: for an implicit method, where something has a history.
    """
    start = _samples(y0) * 1.0
    given = () if args is None else tuple(args) if isinstance(args, (list, tuple)) else (args,)
    ends = tuple(float(plain_values(end.detach() if isinstance(end, Tensor) else end)) for end in t_span)
    if carries_history(tuple(t_span)):
        raise lost("scipy.integrate.solve_ivp", "no gradient flows to the ends of the time: scale the time instead")
    times = None if t_eval is None else np.asarray(plain_values(as_argument(t_eval)))
    first = as_operand(start).detach()
    if not carries_history(start) and not _depends(fun, ends[0], first, given):

        def plain(t: float, y: Any) -> Any:
            with no_grad():
                return np.asarray(plain_values(_samples(fun(t, as_tensors(np.array(y)), *given)).detach()))

        solution = scipy.integrate.solve_ivp(
            plain, ends, plain_values(start), method, times, dense_output, events, **options
        )
        for name in ("t", "y"):
            solution[name] = as_tensors(np.array(solution[name]))
        return solution
    if method not in EXPLICIT or events is not None:
        raise lost("scipy.integrate.solve_ivp", f"use one of the methods {', '.join(EXPLICIT)}, without events")

    def right_hand_side(t: Any, y: Any) -> Any:
        return _samples(fun(t, y, *given)) * 1.0

    return _stepped(right_hand_side, ends, start, str(method), times, dense_output, options)  # type: ignore[arg-type]


class Solution(dict[str, Any]):
    """What `solve_ivp` gives: its entries are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _stepped(
    fun: Callable[[Any, Any], Any], ends: tuple[float, float], start: Any, method: str, times: Any, dense: bool,
    options: dict[str, Any],
) -> Solution:  # fmt: skip
    """The steps that SciPy takes on plain values, taken again on tensors."""
    with no_grad():
        plain_solver = getattr(scipy.integrate, method)(
            lambda t, y: np.asarray(plain_values(fun(t, as_tensors(np.array(y))).detach())),
            ends[0],
            np.array(plain_values(start.detach())),
            ends[1],
            **options,
        )
        grid = [ends[0]]
        while plain_solver.status == "running":
            message = plain_solver.step()
            if plain_solver.status == "failed":
                return Solution(t=np.array(grid), y=None, success=False, status=-1, message=message, sol=None)
            grid.append(plain_solver.t)
    solver_class = getattr(scipy.integrate, method)
    y, slope = start, fun(ends[0], start)
    states, pieces = [start], []
    for before, after in itertools.pairwise(grid):
        y_new, slope_new, stages = _one_step(fun, solver_class, before, y, slope, after - before)
        pieces.append((before, after, y, y_new, stages))
        y, slope = y_new, slope_new
        states.append(y)

    def evaluated(t: float) -> Any:
        forward = ends[1] >= ends[0]
        for before, after, y_old, y_new, stages in pieces:
            if (t <= after) if forward else (t >= after):
                return _between(solver_class, method, fun, before, after, y_old, y_new, stages, t)
        return states[-1]

    at = np.asarray(grid) if times is None else times
    values = states if times is None else [states[0] if t == ends[0] else evaluated(float(t)) for t in times]
    return Solution(
        t=as_tensors(np.array(at)),
        y=np.stack(values, -1),
        success=True,
        status=0,
        nfev=plain_solver.nfev,
        njev=0,
        nlu=0,
        message="The solver successfully reached the end of the integration interval.",
        t_events=None,
        y_events=None,
        sol=(lambda t: evaluated(float(t)) if np.ndim(t) == 0 else np.stack([evaluated(float(each)) for each in t], -1))
        if dense
        else None,
    )


def _one_step(
    fun: Callable[[Any, Any], Any], method: Any, t: float, y: Any, slope: Any, h: float
) -> tuple[Any, Any, list[Any]]:
    """One step of a method of Runge and Kutta: the new value, its slope, and the slopes on the way."""
    stages = [slope]
    for place in range(1, method.n_stages):
        weights = method.A[place, :place]
        move = sum((float(w) * k for w, k in zip(weights, stages) if w), y * 0.0)
        stages.append(fun(t + float(method.C[place]) * h, y + h * move))
    weights = method.B
    y_new = y + h * sum((float(w) * k for w, k in zip(weights, stages) if w), y * 0.0)
    slope_new = fun(t + h, y_new)
    return y_new, slope_new, [*stages, slope_new]


def _between(
    method: Any,
    name: str,
    fun: Callable[[Any, Any], Any],
    before: float,
    after: float,
    y_old: Any,
    y_new: Any,
    stages: list[Any],
    t: float,
) -> Any:
    """The value within a step, by the polynomial of the method."""
    h = after - before
    share = (t - before) / h
    if name != "DOP853":
        powers = share ** np.arange(1, method.P.shape[1] + 1)
        weights = method.P @ powers
        return y_old + h * sum((float(w) * k for w, k in zip(weights, stages) if w), y_old * 0.0)
    coefficients = importlib.import_module("scipy.integrate._ivp.dop853_coefficients")
    extended = list(stages)
    for place in range(method.n_stages + 1, coefficients.C.size):
        weights = coefficients.A[place, :place]
        move = sum((float(w) * k for w, k in zip(weights, extended) if w), y_old * 0.0)
        extended.append(fun(before + float(coefficients.C[place]) * h, y_old + h * move))
    delta = y_new - y_old
    parts = [delta, h * stages[0] - delta, 2 * delta - h * (stages[-1] + stages[0])]
    for row in coefficients.D:
        parts.append(h * sum((float(w) * k for w, k in zip(row, extended) if w), y_old * 0.0))
    value = y_old * 0.0
    for place, part in enumerate(reversed(parts)):
        value = (value + part) * (share if place % 2 == 0 else 1 - share)
    return value + y_old


@made
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: int = 0,
    full_output: int = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: int = 0,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: int = 0,
    tfirst: bool = False,
) -> Any:
    """The solution of a differential equation at given times, as `scipy.integrate.odeint`.

    Where something has a history, it is solved by the method DOP853, to ten digits.
    """
    args = args if isinstance(args, tuple) else (args,)
    start, times = np.atleast_1d(_samples(y0)) * 1.0, _samples(t) * 1.0

    def right_hand_side(moment: Any, y: Any) -> Any:
        found = func(moment, y, *args) if tfirst else func(y, moment, *args)
        return np.atleast_1d(_samples(found)) * 1.0

    places = np.asarray(plain_values(times.detach()))
    dependent = carries_history((start, times)) or carries_history(right_hand_side(float(places[0]), start.detach()))  # type: ignore[attr-defined]
    if not dependent:

        def plain(moment: float, y: Any) -> Any:
            with no_grad():
                return np.asarray(plain_values(right_hand_side(moment, as_tensors(np.array(y))).detach()))

        found = scipy.integrate.odeint(
            plain,
            plain_values(start),
            places,
            full_output=full_output,
            rtol=rtol,
            atol=atol,
            tcrit=tcrit,
            h0=h0,
            hmax=hmax,
            hmin=hmin,
            mxstep=mxstep,
            tfirst=True,
        )
        return as_tensors(found)
    if full_output:
        raise lost("scipy.integrate.odeint", "take the solution without full_output")
    if not carries_history(times):
        solution = _stepped(
            right_hand_side,
            (float(places[0]), float(places[-1])),
            start,
            "DOP853",
            places,
            False,
            {"rtol": 1e-10, "atol": 1e-11},
        )
        return np.moveaxis(solution.y, -1, 0)
    rows = [start]
    for before, after in itertools.pairwise(times):  # in the time that goes from 0 to 1 between them
        width = after - before

        def scaled(share: Any, y: Any, before: Any = before, width: Any = width) -> Any:
            return right_hand_side(before + share * width, y) * width

        rows.append(
            _stepped(scaled, (0.0, 1.0), rows[-1], "DOP853", None, False, {"rtol": 1e-10, "atol": 1e-11}).y[:, -1]
        )
    return np.stack(rows)


globals().update(filled(scipy.integrate, MADE, frozenset(), {}))
__all__ = public_names(scipy.integrate)
