"""Boundary value problems of `scipy.integrate`, for tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate  # type: ignore[import-untyped]

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.async_safety import in_own_context
from ..tensor.modes import no_grad
from .implicit_diff import root_of_many
from .piecewise import CubicHermiteSpline
from .wrap import float_copy


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a function of tensors to a function of arrays that records nothing."""

    def call(*given: Any) -> Any:
        with no_grad():
            return np.array(plain_values(float_copy(function(*map(as_tensors, given)))))

    return call


@in_own_context
def solve_bvp(
    fun: Callable[..., Any], bc: Callable[..., Any], x: Any, y: Any, p: Any = None, S: Any = None,
    fun_jac: Any = None, bc_jac: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Solve a boundary value problem, as `scipy.integrate.solve_bvp`.

    SciPy determines the mesh and solves the collocation equations on it. Through these equations, gradients flow to the
    tensors captured by the right-hand side and the boundary conditions, and to the ends of the mesh. The initial guess
    has no gradient.

    Raises:
        UnsupportedFunctionError: for a singular term, if there is a history to record.
    """
    mesh = float_copy(x)
    found = scipy.integrate.solve_bvp(
        _plain(fun), _plain(bc), *(np.array(plain_values(float_copy(each).detach())) for each in (x, y)),
        None if p is None else np.array(plain_values(float_copy(p).detach())), S, **options,
    )  # fmt: skip
    y, parameters = (as_tensors(np.array(each)) for each in (found.y, () if p is None else found.p))

    def given(parameters: Any) -> tuple[Any, ...]:
        return () if p is None else (parameters,)

    ends = (as_tensors(np.array(found.y[:, 0])), as_tensors(np.array(found.y[:, -1])), *given(parameters))
    probes = fun(as_tensors(np.array(found.x)), y, *given(parameters)), bc(*ends)
    if carries_history((mesh, *map(as_argument, probes))):
        if S is not None:
            raise lost(
                "scipy.integrate.solve_bvp", "a singular term has no derivative here; solve away from the singularity"
            )
        low, high = found.x[0], found.x[-1]
        nodes = mesh[0] + (mesh[-1] - mesh[0]) * ((found.x - low) / (high - low))
        y, parameters, slopes = _with_history(fun, bc, nodes, found.y, parameters, given)
        found["sol"] = CubicHermiteSpline(nodes, y, slopes, axis=1)
        found["x"], found["yp"] = nodes, slopes
    found["y"] = y
    if p is not None:
        found["p"] = parameters
    for key in ("x", "yp", "rms_residuals"):
        found[key] = as_tensors(found[key])
    return found


def _with_history(
    fun: Callable[..., Any], bc: Callable[..., Any], nodes: Any, y: Any, parameters: Any, given: Callable[..., Any]
) -> tuple[Any, Any, Any]:
    """Return the values on the mesh, the parameters, and the slopes, as the solution of the collocation equations.

    Source: J. Kierzenka, L. F. Shampine, "A BVP solver based on residual control and the MATLAB PSE" (2001).
    """
    widths = np.diff(nodes)
    middles = nodes[:-1] + widths / 2

    def slope(x: Any, y: Any, parameters: Any) -> Any:
        return float_copy(fun(x, y, *given(parameters)))

    def residual(unknown: Any) -> Any:
        values, parameters = unknown[: y.size].reshape(y.shape), unknown[y.size :]
        slopes = slope(nodes, values, parameters)
        halfway = (values[:, 1:] + values[:, :-1]) / 2 - widths / 8 * (slopes[:, 1:] - slopes[:, :-1])
        between = slope(middles, halfway, parameters)
        moves = widths / 6 * (slopes[:, :-1] + slopes[:, 1:] + 4 * between)
        conditions = float_copy(bc(values[:, 0], values[:, -1], *given(parameters)))
        return np.concatenate([(values[:, 1:] - values[:, :-1] - moves).reshape(-1), conditions.reshape(-1)])

    unknown = root_of_many(residual, np.concatenate([y.reshape(-1), plain_values(parameters)]))
    values, parameters = unknown[: y.size].reshape(y.shape), unknown[y.size :]
    return values, parameters, slope(nodes, values, parameters)
