"""`scipy.integrate` for tensors: sums of samples, integrals of functions, and differential equations.

Those of differential equations are in `initial_values.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.integrate  # type: ignore[import-untyped]

from ..numpy.namespace import filled, public_names
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor
from .initial_values import ode, odeint, solve_ivp

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


for _function in (solve_ivp, odeint, ode):
    made(_function)
globals().update(filled(scipy.integrate, MADE, frozenset(), {}))
__all__ = public_names(scipy.integrate)
