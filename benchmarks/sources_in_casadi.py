"""Programs for CasADi, rewritten as a step that `mapaccum` repeats. It needs casadi."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

__all__ = ["made"]

SEASON = 52


def _holt_winters(n: int) -> Any:
    state, y, p = ca.MX.sym("state", 2 + SEASON), ca.MX.sym("y"), ca.MX.sym("p", 3)
    level, trend, now = state[0], state[1], state[2]
    error = y - (level + trend + now)
    new = p[0] * (y - now) + (1 - p[0]) * (level + trend)
    slope = p[1] * (new - level) + (1 - p[1]) * trend
    season = p[2] * (y - new) + (1 - p[2]) * now
    step = ca.Function("step", [state, y, p], [ca.vertcat(new, slope, state[3:], season), error * error])
    data = ca.MX.sym("data", n)
    start = ca.vertcat(data[0], ca.MX.zeros(1 + SEASON))
    _, errors = step.mapaccum(n - 1)(start, data[1:].T, ca.repmat(p, 1, n - 1))
    return _both([p, data], ca.sum2(errors))


def _overwritten(n: int) -> Any:
    state, x, a = ca.MX.sym("state"), ca.MX.sym("x"), ca.MX.sym("a", 2)
    new = a[0] * state * (1 - state) + x
    step = ca.Function("step", [state, x, a], [new, new])
    data = ca.MX.sym("data", n)
    _, values = step.mapaccum(n)(a[1], data.T, ca.repmat(a, 1, n))
    return _both([a, data], ca.sum2(values))


def _both(inputs: list[Any], value: Any) -> Any:
    return ca.Function("both", inputs, [value, *[ca.gradient(value, each) for each in inputs]])


STEPS = {"holt-winters": _holt_winters, "overwritten": _overwritten}


def made(name: str) -> Callable[..., tuple[float, Sequence[Any]]] | None:
    """Return the function for the value and gradients of a program; None if it is not written for CasADi."""
    if name not in STEPS:
        return None
    built: dict[int, Any] = {}

    def run(*given: Any) -> tuple[float, Sequence[Any]]:
        n = len(given[-1])
        if n not in built:
            built[n] = STEPS[name](n)
        value, *gradients = built[n](*given)
        return float(value), [np.asarray(each).reshape(array.shape) for each, array in zip(gradients, given)]

    return run
