"""Programs that branch on exceptions, and how calls of traced and compiled functions compare with eager calls."""

from __future__ import annotations

import warnings

import numpy as np

import viewgrad as vg
from viewgrad.autograd import grad

RAISED = (np.linalg.LinAlgError, ArithmeticError, ValueError, IndexError, RuntimeWarning)


def outcome(function, point, kind=float):
    """Return the rounded value and gradient of a call, or the class of its exception."""
    x = vg.Tensor(point, dtype=kind, requires_grad=True)
    try:
        y = function(x)
        (slope,) = grad(y.sum(), x, allow_unused=True)
    except RAISED as error:
        return type(error).__name__
    return np.round(y.detach(), 6).tolist(), 0.0 if slope is None else np.round(slope, 6).tolist()


def check_compiled(function, points, executor="python", specialize=None):
    """Check that a compiled function agrees with the function, point by point."""
    compiled = vg.compile(function, executor=executor, specialize=specialize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for point in points:
            assert repr(outcome(compiled, point)) == repr(outcome(function, point)), (point, compiled.explain())
    return compiled


def check_traced(function, points):
    """Check that a traced function agrees with the function, or raises because the graph is not valid for the run."""
    first = vg.Tensor(points[0], requires_grad=True)
    try:
        traced = vg.symbolic.function_of(function, first, escapes="guard")
    except (vg.errors.TraceError, *RAISED):
        return
    for point in points:
        try:
            traced(vg.Tensor(point, requires_grad=True))
        except vg.errors.GuardError:
            continue
        assert repr(outcome(traced, point)) == repr(outcome(function, point)), point
