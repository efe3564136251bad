"""`scipy.integrate` for tensors: integrals of samples and functions, and differential equations.

Solvers for differential equations are in `initial_values.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.integrate  # type: ignore[import-untyped]

from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.async_safety import in_own_context
from ..tensor.creation import as_operand
from ..tensor.modes import no_grad
from ..tensor.shapes import with_ndim
from .boundary_values import solve_bvp
from .initial_values import ode, odeint, solve_ivp
from .ode_steps import OdeSolution, pinned, plain_number
from .wrap import Accepted, args_tuple, copied, maker, numbers, registrar

if TYPE_CHECKING:
    from .typed.integrate import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}
made: Final = maker(scipy.integrate, MADE, is_checked=True, accepted=Accepted())
checked: Final = maker(scipy.integrate, MADE, is_checked=True)
registered: Final = registrar(MADE)


# -- samples -----------------------------------------------------------------------------------------------------------


@made
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral of samples by the trapezoidal rule."""
    if x is None and not np.ndim(dx):
        return np.trapezoid(numbers(y), axis=axis) * dx
    return np.trapezoid(numbers(y), None if x is None else numbers(x), dx, axis)


@made
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Return the cumulative integral of samples by the trapezoidal rule."""
    y = np.moveaxis(numbers(y), axis, -1)
    widths = dx
    if x is None and np.ndim(dx):  # for an array, SciPy's steps have the shape of `y`
        widths = np.moveaxis(with_ndim(numbers(dx), y.ndim), axis, -1)
    if x is not None:
        x = numbers(x)
        widths = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1), axis=-1)
    sums = (widths * (y[..., 1:] + y[..., :-1]) / 2.0).cumsum(-1)
    if initial is not None:
        sums = np.concatenate([y[..., :1] * 0.0 + initial, sums], -1)
    return np.moveaxis(sums, -1, axis)


@checked  # SciPy requires increasing places
def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Return the cumulative integral of samples by Simpson's rule."""
    samples = np.moveaxis(numbers(y) * 1.0, axis, -1)
    count = samples.shape[-1]
    if count < 3:
        steps = numbers(dx)
        steps = np.expand_dims(steps, axis) if steps.ndim else steps
        total = np.moveaxis(cumulative_trapezoid(y, x, steps, axis), axis, -1)
    else:
        if x is None:
            steps = numbers(dx)
            widths = np.broadcast_to(steps[..., None] if steps.ndim else steps, (*samples.shape[:-1], count - 1))
        else:
            places = numbers(x)
            widths = np.diff(places if places.ndim == 1 else np.moveaxis(places, axis, -1), axis=-1)
        ahead = _first_of_two(samples, widths)
        back = _first_of_two(samples[..., ::-1], widths[..., ::-1])[..., ::-1]
        even = np.concatenate([ahead, back[..., -1:]], -1)
        odd = np.concatenate([back[..., :1], back], -1)
        total = np.where(np.arange(count - 1) % 2 == 0, even, odd).cumsum(-1)
    if initial is not None:
        start = numbers(initial)
        start = np.moveaxis(start, axis, -1) if start.ndim else start
        total = np.concatenate([samples[..., :1] * 0.0 + start, total + start], -1)
    return np.moveaxis(total, -1, axis)


def _first_of_two(y: Any, widths: Any) -> Any:
    """Return the integrals over the first of every two intervals, of the parabola through three samples."""
    first, second = widths[..., :-1], widths[..., 1:]
    # As in SciPy, a quotient with a zero width is 0.
    share, ratio = _quotient(first, first + second), _quotient(first, second)
    last = share * ratio
    sums = (3.0 - share) * y[..., :-2] + (3.0 + last + share) * y[..., 1:-1] - last * y[..., 2:]
    return first / 6.0 * sums


@made
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Return the integral of samples by Romberg's rule."""
    y = numbers(y)
    return np.tensordot(y, scipy.integrate.romb(np.eye(y.shape[axis])), ((axis,), (0,))) * dx


@made
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral of samples by Simpson's rule."""
    y = numbers(y)
    if x is None:  # linear in the samples
        weights = scipy.integrate.simpson(np.eye(y.shape[axis]), dx=1.0, axis=-1)
        return np.tensordot(y, weights, ((axis,), (0,))) * dx
    x = numbers(x)
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
    share = _quotient(first, second)
    parts = left * (2 - _quotient(1.0, share)) + middle * both * _quotient(both, first * second) + right * (2 - share)
    total = (both / 6 * parts).sum(-1)
    if count % 2 == 0:  # the last interval, by the parabola through the last three samples
        h0, h1 = widths[..., -2], widths[..., -1]
        total = total + y[..., -1] * _quotient(2 * h1 * h1 + 3 * h0 * h1, 6 * (h1 + h0))
        total = total + y[..., -2] * _quotient(h1 * h1 + 3 * h0 * h1, 6 * h0)
        total = total - y[..., -3] * _quotient(h1**3, 6 * h0 * (h0 + h1))
    return total


def _quotient(dividend: Any, divisor: Any) -> Any:
    """Return a quotient, or 0 if the divisor is 0."""
    is_zero = plain_values(divisor) == 0
    if not np.any(is_zero):
        return dividend / divisor
    return np.where(is_zero, 0.0, dividend / np.where(is_zero, 1.0, divisor))


# -- functions ---------------------------------------------------------------------------------------------------------

# The 21-point Gauss-Kronrod rule, obtained from SciPy: its weights are the integrals of the unit vectors.
NODES: Final = 21


@functools.cache
def _rule() -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights


def _over_nothing(function: Callable[..., Any], args: Any, a: Any, b: Any) -> Any:
    """Return the integral between equal bounds, with its derivative with respect to them."""
    if not math.isfinite(plain_number(a)):
        return as_operand(0.0)
    low, high = numbers(a), numbers(b)
    return (high - low) * numbers(function(0.5 * (low + high), *args))


@registered
@in_own_context
def quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
    """Return the integral of a function; gradients flow to the bounds and to captured tensors.

    SciPy computes the value and chooses the intervals. The gradient is computed by Gaussian quadrature on these
    intervals, which are divided further where the two results disagree, as at a singularity.
    """
    args = args_tuple(args)
    if options.pop("complex_func", False):
        real = quad(lambda *x: as_operand(func(*x)).real, a, b, args, **options)
        imaginary = quad(lambda *x: as_operand(func(*x)).imag, a, b, args, **options)
        return real[0] + 1j * imaginary[0], (real[1] ** 2 + imaginary[1] ** 2) ** 0.5

    def plain(x: float) -> float:
        with no_grad():
            return plain_number(as_argument(func(x, *args)))

    wave, frequency = WAVES.get(options.get("weight", "")), options.get("wvar")
    low, high, options = plain_number(a), plain_number(b), plain_values(options)
    if high < low:  # SciPy, too, exchanges the bounds, so that its intervals are in ascending order
        integral, *rest = quad(func, b, a, args, full_output, **options)
        return (-integral, *rest)
    found = scipy.integrate.quad(plain, low, high, full_output=1, **options)
    probe = func(
        copied(0.5 * (low + high))
        if math.isfinite(low + high)
        else copied(low + 1.0 if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0),
        *args,
    )
    if not carries_history((a, b, probe, frequency)):
        return found if full_output else found[:2]
    if options.get("weight") is not None:
        if wave is None or not math.isfinite(low + high):
            raise lost("scipy.integrate.quad", "multiply the function by the weight, and omit weight")
        others = {name: value for name, value in options.items() if name not in ("weight", "wvar")}
        weighted = quad(lambda x, *given: numbers(func(x, *given)) * wave(numbers(frequency) * x), a, b, args, **others)
        return (pinned(weighted[0], found[0]), *found[1 : 3 if full_output else 2])
    information = found[2]
    count = information["last"]

    def at(place: float) -> Any:
        return _at(func, args, place, a, b, low, high)

    intervals = list(zip(information["alist"][:count], information["blist"][:count]))
    if low == high:
        return (pinned(_over_nothing(func, args, a, b), 0.0), *found[1 : 3 if full_output else 2])
    total = sum((_by_gauss(at, interval) for interval in _narrow_enough(at, intervals, found[0])), as_operand(0.0))
    result = (pinned(total, found[0]), found[1])
    return (*result, information) if full_output else result


WAVES: Final[dict[Any, Any]] = {"cos": np.cos, "sin": np.sin}  # the weights of functions over finite intervals


def _by_gauss(function: Callable[[float], Any], interval: tuple[float, float]) -> Any:
    """Return the integral over an interval, by Gaussian quadrature."""
    start, end = interval
    nodes, weights = _rule()
    half = 0.5 * (end - start)
    return sum(half * weight * function(0.5 * (start + end) + half * node) for node, weight in zip(nodes, weights))


# Intervals are divided until Gaussian quadrature on them and on their halves agrees, to this fraction of the total.
CLOSE: Final = 1e-11
MOST_INTERVALS: Final = 300


def _narrow_enough(
    function: Callable[[float], Any], intervals: list[tuple[float, float]], found: float
) -> list[tuple[float, float]]:
    """Return intervals on which Gaussian quadrature is sufficiently accurate, starting from those that SciPy found."""

    def plain(interval: tuple[float, float]) -> float:
        with no_grad():
            return plain_number(_by_gauss(function, interval))

    values = {interval: plain(interval) for interval in intervals}
    close = CLOSE * max(abs(found), max(map(abs, values.values())))
    if abs(sum(values.values()) - found) <= close:
        return intervals
    done: list[tuple[float, float]] = []
    waiting = list(values)
    while waiting:
        start, end = interval = waiting.pop()
        middle = 0.5 * (start + end)
        halves = [(start, middle), (middle, end)]
        if len(done) + len(waiting) > MOST_INTERVALS or not start < middle < end:
            done.append(interval)
            continue
        for half in halves:
            values[half] = plain(half)
        if abs(sum(values[half] for half in halves) - values[interval]) <= close:
            done.append(interval)
        else:
            waiting += halves
    return done


@registered
@in_own_context
def quad_vec(
    f: Callable[..., Any], a: Any, b: Any, *, args: Any = (), full_output: bool = False, **options: Any
) -> Any:
    """Return the integral of an array-valued function; gradients flow as for `quad`.

    SciPy computes the value and chooses the intervals. The gradient is computed by Gaussian quadrature on their halves.
    """
    low, high = plain_number(a), plain_number(b)

    def plain(x: float) -> Any:
        with no_grad():
            return np.array(plain_values(numbers(f(x, *args))))

    found, error, information = scipy.integrate.quad_vec(plain, low, high, full_output=True, **options)
    away = low + 1.0 if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0
    probe = f(copied(0.5 * (low + high) if math.isfinite(low + high) else away), *args)
    if not carries_history((a, b, as_argument(probe))):
        total = as_tensors(found)
    elif low == high:
        total = _over_nothing(f, args, a, b) * 1.0
    else:

        def at(place: float) -> Any:
            return _at(lambda x: numbers(f(x, *args)), (), place, a, b, low, high)

        marks = np.array(information.intervals)
        # SciPy's intervals for infinite bounds range from -1 to 1; `_at` combines both sides
        if not math.isfinite(low) and not math.isfinite(high):
            ends = np.unique(np.abs(np.append(marks.reshape(-1), [0.0, 1.0])))
            marks = np.stack([ends[:-1], ends[1:]], -1)
        middles = marks.mean(-1)
        halves = [*zip(marks[:, 0], middles), *zip(middles, marks[:, 1])]
        total = pinned(sum(_by_gauss(at, half) for half in halves), found)
    return (total, error, information) if full_output else (total, error)


@registered
@in_own_context
def nquad(func: Callable[..., Any], ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False) -> Any:
    """Return the integral of a function of several variables; gradients flow as for `quad`."""
    given = () if args is None else args_tuple(args)

    def plain_range(bounds: Any) -> Any:
        if not callable(bounds):
            return tuple(map(plain_number, bounds))
        return lambda *outer: tuple(map(plain_number, bounds(*outer, *given)))

    def plain(*x: float) -> float:
        with no_grad():
            return plain_number(as_argument(func(*x, *given)))

    found = scipy.integrate.nquad(plain, [plain_range(bounds) for bounds in ranges], opts=opts, full_output=full_output)
    total = _integrated(func, given, ranges, opts)
    return (pinned(total, found[0]), *found[1:]) if carries_history(total) else found


def _integrated(func: Callable[..., Any], given: tuple[Any, ...], ranges: Any, opts: Any, *outer: Any) -> Any:
    """Return the integral over the variables that are not in `outer`, innermost first."""
    place = len(ranges) - len(outer) - 1
    if place < 0:
        return func(*outer, *given)
    bounds = ranges[place](*outer, *given) if callable(ranges[place]) else ranges[place]
    each = opts[place] if isinstance(opts, (list, tuple)) else opts
    more = each(*outer, *given) if callable(each) else each or {}
    return quad(lambda x: _integrated(func, given, ranges, opts, x, *outer), *bounds, **more)[0]


@registered
@in_own_context
def dblquad(
    func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """Return the integral of func(y, x) for x from `a` to `b` and y from gfun(x) to hfun(x)."""
    return nquad(func, [_limits(1, gfun, hfun), [a, b]], args, {"epsabs": epsabs, "epsrel": epsrel})


@registered
@in_own_context
def tplquad(
    func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """Return the integral of func(z, y, x) as for `dblquad`, with z from qfun(x, y) to rfun(x, y)."""
    ranges = [_limits(2, qfun, rfun), _limits(1, gfun, hfun), [a, b]]
    return nquad(func, ranges, args, {"epsabs": epsabs, "epsrel": epsrel})


def _limits(count: int, *limits: Any) -> Callable[..., Any]:
    """Return the limits of an inner integral as a function of the outer variables, innermost first."""
    return lambda *outer: [each(*outer[:count][::-1]) if callable(each) else each for each in limits]


def _at(func: Callable[..., Any], args: Any, place: float, a: Any, b: Any, low: float, high: float) -> Any:
    """Return the integrand at a point of SciPy's intervals, in the variable that SciPy used there."""
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
    return (func(copied(away), *args) + func(copied(-away), *args)) / place**2


@registered
@in_own_context
def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """Return the integral of a function by Gaussian quadrature of fixed order."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    middle, half = (b + a) / 2.0, (b - a) / 2.0
    return half * (as_operand(weights) * func(half * as_operand(nodes) + middle, *args)).sum(-1), None


for _function in (solve_ivp, solve_bvp, odeint, ode, OdeSolution):
    registered(_function)
globals().update(filled(scipy.integrate, MADE, frozenset(), {}))
__all__ = public_names(scipy.integrate)
