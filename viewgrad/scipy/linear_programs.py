"""Differentiable solutions of linear programs.

The solution is a vertex: as many constraints are active as there are unknowns, and the solution satisfies their
equations. The active set depends on the values, and is locally constant if the solution is unique and not degenerate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize  # type: ignore[import-untyped]

from ..errors import DifferentiabilityError
from ..operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand
from .wrap import float_copy, numbers


def linprog(
    c: Any, A_ub: Any = None, b_ub: Any = None, A_eq: Any = None, b_eq: Any = None, bounds: Any = (0, None),
    method: str = "highs", callback: Any = None, options: Any = None, x0: Any = None, integrality: Any = None,
) -> Any:  # fmt: skip
    """Return the solution of a linear program; gradients of `x` and `fun` flow to all coefficients and bounds.

    Arguments:
        c, A_ub, b_ub, A_eq, b_eq, bounds, method, callback, options, x0, integrality: as in `scipy.optimize.linprog`.

    Raises:
        DifferentiabilityError: if a coefficient has a history and there is no solution, more than one, or a degenerate
            one (more constraints are active than there are unknowns).

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.optimize import linprog
        >>> limit = vg.Tensor([4.0, 6.0], requires_grad=True)
        >>> found = linprog([-1.0, -1.0], [[1.0, 2.0], [3.0, 1.0]], limit)
        >>> found.fun.backward()
        >>> limit.grad
        Tensor([-0.4, -0.2])
    """
    given = (c, A_ub, b_ub, A_eq, b_eq, bounds)
    values = plain_values(tuple(map(_detached, given)))
    found = scipy.optimize.linprog(
        *values, method=method, callback=callback, options=options, x0=plain_values(x0), integrality=integrality
    )
    if not carries_history(given):
        found.x = as_tensors(found.x)
        return found
    if found.status or (integrality is not None and np.any(integrality)):
        raise DifferentiabilityError(
            f"linprog has no derivative here: {found.message}" if found.status else
            "the solution of a program in integers has no derivative; leave integrality out, or pass detach()"
        )
    equations, right, places = _active(found, given, values)
    found.x = np.linalg.solve(equations, right)
    found.fun = numbers(c) @ found.x
    found.slack = found.ineqlin.residual = _gaps(A_ub, b_ub, found.x)
    found.con = found.eqlin.residual = _gaps(A_eq, b_eq, found.x)
    limits = _limits(bounds, len(found.x))
    for name, sign in (("lower", 1.0), ("upper", -1.0)):
        ends = [-sign * np.inf if pair[sign < 0] is None else numbers(pair[sign < 0]) for pair in limits]
        found[name].residual = np.stack([sign * (each - end) for each, end in zip(found.x, ends)])
    multipliers = np.linalg.solve(equations.T, numbers(c) * 1.0)
    for name in ("ineqlin", "eqlin", "lower", "upper"):
        marginals = as_tensors(np.zeros(len(found[name].marginals)))
        for place, multiplier in zip(places, multipliers):
            if place[0] == name:
                marginals[place[1]] = multiplier
        found[name].marginals = marginals
    return found


def _gaps(matrix: Any, limits: Any, x: Any) -> Any:
    """Return the differences of both sides of constraints."""
    return as_tensors(np.zeros(0)) if matrix is None else numbers(limits).reshape(-1) - numbers(matrix) @ x


def _active(found: Any, given: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return the equations of the constraints that are active at the solution, and their names and places."""
    x = found.x
    size = len(x)
    scale = 1e-7 * (1 + np.abs(x).max(initial=0.0))
    rows: list[Any] = []
    right: list[Any] = []
    places: list[tuple[str, int]] = []
    needed: list[Any] = []  # the multipliers of the active inequalities, none of which may be 0

    def add(matrix: Any, limits: Any, marginals: Any, is_equal: bool) -> None:
        if matrix is None:
            return
        matrix, limits = float_copy(matrix), float_copy(limits)
        gaps = plain_values(limits.detach()).reshape(-1) - plain_values(matrix.detach()) @ x
        chosen = np.flatnonzero(np.ones(len(gaps), bool) if is_equal else np.abs(gaps) <= scale)
        rows.append(matrix[chosen])
        places.extend(("eqlin" if is_equal else "ineqlin", int(place)) for place in chosen)
        right.append(limits.reshape(-1)[chosen])
        needed.extend([] if is_equal else marginals[chosen])

    add(given[3], given[4], None, True)
    add(given[1], given[2], found.ineqlin.marginals, False)
    limits = _limits(given[5], size)
    for place, pair in enumerate(limits):
        for limit, name in zip(pair, ("lower", "upper")):
            if limit is None or not np.isfinite(value := float(plain_values(_detached(limit)))):
                continue
            if abs(value - x[place]) <= scale:
                rows.append(as_operand(np.eye(size)[place : place + 1]))
                right.append(as_operand(limit).reshape(1) * 1.0)
                needed.append(found[name].marginals[place])
                places.append((name, place))
    count = sum(len(each) for each in rows)
    least = 1e-9 * np.abs(np.asarray(values[0])).max(initial=0.0)
    if count != size or np.any(np.abs(needed) <= least):
        raise DifferentiabilityError(
            f"the solution of this linear program has no derivative: {count} constraints are active for {size} "
            "unknowns" + (", one of them with a multiplier of zero" if count == size else "") + ", so it is degenerate "
            "or not unique"
        )
    return np.concatenate(rows), np.concatenate(right), places


def _limits(bounds: Any, size: int) -> list[Any]:
    """Return a pair of bounds for each unknown."""
    if bounds is None:
        return [(0.0, None)] * size
    pairs = list(bounds)
    if len(pairs) == 2 and all(each is None or np.ndim(plain_values(_detached(each))) == 0 for each in pairs):
        return [tuple(pairs)] * size
    return [tuple(pair) for pair in pairs] * (size if len(pairs) == 1 else 1)


def _detached(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_detached, value))
    return value.detach() if hasattr(value, "detach") else value
