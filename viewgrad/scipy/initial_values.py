"""Initial value problems: `solve_ivp`, `odeint` and `ode` of `scipy.integrate`, for tensors.

The values are SciPy's. For RK23, RK45, DOP853 and Radau's method, the gradients are those of the steps that SciPy took.
Solutions of the other methods are retraced by smaller steps of DOP853 or Radau's method. Gradients flow to the initial
values, to the times, and to the tensors captured by the right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.integrate  # type: ignore[import-untyped]

from ..adoption import adopted_arguments
from ..autograd.api import grad
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.async_safety import in_own_context
from ..tensor.creation import as_operand
from ..tensor.modes import enable_grad, no_grad
from ..tensor.tensor import Tensor, as_scalar
from .ode_steps import EXPLICIT, IMPLICIT, Trajectory, pinned, plain_number, plain_slope, solved
from .wrap import args_tuple, copied, float_copy, numbers, plain_value

# The tolerances with which DOP853 and Radau's method retrace a solution found by another method.
CLOSELY: Final[dict[str, dict[str, Any]]] = {
    "DOP853": {"rtol": 1e-10, "atol": 1e-11},
    IMPLICIT: {"rtol": 1e-8, "atol": 1e-10},
}
# Options that determine the steps, and with them the error of the solution.
STEP_OPTIONS: Final = frozenset({"rtol", "atol", "max_step", "min_step", "first_step", "h0", "hmax", "hmin"})
FAILED: Final = "the equation could not be solved closely enough for a gradient: scale it, or take another method"


class Solution(dict[str, Any]):
    """The result of `solve_ivp`, whose entries are also attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@in_own_context
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
    """Solve an initial value problem, as `scipy.integrate.solve_ivp`.

    Gradients flow to the initial values, the times (including those of events), and captured tensors.

    Raises:
        UnsupportedFunctionError: for a method defined by the caller, if there is a history to record.
    """
    start: Any = np.atleast_1d(float_copy(y0))
    given = () if args is None else tuple(args) if isinstance(args, (list, tuple)) else (args,)
    ends = tuple(map(plain_number, t_span))
    times = None if t_eval is None else float_copy(t_eval)

    def slope(t: Any, y: Any) -> Any:
        found = fun(t, y[:, None], *given).reshape(-1) if vectorized else fun(t, y, *given)
        return np.atleast_1d(float_copy(found))

    watched = None if events is None else list(events) if isinstance(events, (list, tuple)) else [events]
    name = method if isinstance(method, str) else getattr(method, "__name__", "")
    dependent = carries_history((start, tuple(t_span), times)) or any(
        carries_history(as_argument(each(ends[0], start.detach(), *given))) for each in watched or ()
    )
    dependent = dependent or carries_history(slope(ends[0], start.detach()))
    _check_steps("scipy.integrate.solve_ivp", options)
    for option in ("jac", "rtol", "atol", "max_step", "first_step"):
        if option in options:
            options[option] = _plain_option(options[option], given)
    found = scipy.integrate.solve_ivp(
        plain_slope(slope),
        ends,
        np.array(plain_values(start.detach())),
        method,
        None if times is None else np.array(plain_values(times.detach())),
        dense_output or dependent,
        None if watched is None else [_plain_event(event, given) for event in watched],
        **options,
    )
    if not dependent or found.y is None or not np.size(found.y):
        for key in ("t", "y", "t_events", "y_events"):
            found[key] = as_tensors(found[key])
        return found
    reached = found.sol.t_max if ends[1] >= ends[0] else found.sol.t_min
    path = _path(slope, (ends[0], float(reached)), start, name, found, t_span, options)
    return _with_history(found, path, watched, given, times, tuple(t_span), dense_output)


def _check_steps(name: str, options: dict[str, Any]) -> None:
    """Raise an error for tolerances and step sizes with a history, on which the steps depend."""
    lost_in = [option for option, value in options.items() if option in STEP_OPTIONS and carries_history(value)]
    if lost_in:
        raise lost(name, f"no gradient flows to {', '.join(lost_in)}; pass detach() of it")


def _plain_option(option: Any, given: tuple[Any, ...]) -> Any:
    if not callable(option):
        return plain_value(option)

    def jacobian(t: Any, y: Any) -> Any:
        with no_grad():
            return np.array(plain_value(option(t, as_tensors(np.array(y)), *given)))

    return jacobian


def _plain_event(event: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    def watched(t: float, y: Any) -> float:
        with no_grad():
            return plain_number(as_argument(event(t, as_tensors(np.array(y)), *given)))

    for attribute in ("terminal", "direction"):
        if hasattr(event, attribute):
            setattr(watched, attribute, getattr(event, attribute))
    return watched


def _clock(t_span: Any, ends: tuple[float, float]) -> Callable[[float], Any]:
    """Return the times of steps as functions of the ends, if these have a history."""
    if not carries_history(tuple(t_span)):
        return float
    first, last = t_span
    return lambda t: first + (last - first) * ((t - ends[0]) / (ends[1] - ends[0]))


def _path(
    slope: Any, ends: tuple[float, float], start: Any, method: str, found: Any, t_span: Any, options: dict[str, Any]
) -> Trajectory:
    """Return the solution with its history, from SciPy's steps, or by a single-step method that follows them."""
    clock = _clock(t_span, tuple(map(plain_number, t_span)))  # type: ignore[arg-type]
    if method in EXPLICIT:
        return Trajectory(slope, found.sol.interpolants, start, method, clock)
    if method not in (IMPLICIT, "BDF", "LSODA") or start.dtype.kind == "c":
        raise lost("scipy.integrate.solve_ivp", f"use one of the methods {', '.join(EXPLICIT)}, or real numbers")
    if method == IMPLICIT:
        return Trajectory(slope, found.sol.interpolants, start, IMPLICIT, clock)
    return _followed(slope, ends, start, clock, options)


def _followed(slope: Any, ends: tuple[float, float], start: Any, clock: Any, options: dict[str, Any]) -> Trajectory:
    """Retrace a solution that a multistep method found, by a single-step method."""
    closely = dict(CLOSELY[IMPLICIT])
    closely.update({key: options[key] for key in ("max_step", "jac") if key in options})
    path = solved(slope, ends, start, IMPLICIT, clock, closely)
    if path is None:
        raise lost("scipy.integrate.solve_ivp", FAILED)
    return path


def _with_history(
    found: Any, path: Trajectory, events: Any, given: Any, times: Any, t_span: tuple[Any, Any], dense: bool
) -> Solution:
    """Return SciPy's solution, with the history of the steps."""
    solution = Solution()
    solution.update(found)
    if events is not None:
        moments = [[_moment(event, path, float(t), given) for t in each] for event, each in zip(events, found.t_events)]
        solution["t_events"] = [np.stack(each) if each else as_tensors(np.empty(0)) for each in moments]
        solution["y_events"] = [
            pinned(np.stack([path.at(t) for t in each]), values) if each else as_tensors(np.array(values))
            for each, values in zip(moments, found.y_events)
        ]
    if times is not None:
        places = list(times[: len(found.t)])
    else:
        clock = _clock(t_span, tuple(map(plain_number, t_span)))  # type: ignore[arg-type]
        places = [clock(t) for t in found.t]
        if found.status == 1:  # terminated by an event
            ending = [t for each in moments for t in each if plain_number(t) == found.t[-1]]
            places[-1] = ending[0] if ending else places[-1]
    solution["t"] = pinned(np.stack([as_operand(t) for t in places]), found.t)
    values = [path.at(t) for t in places]
    solution["y"] = pinned(np.stack(values, -1), found.y)
    solution["sol"] = (lambda t: pinned(path.at(t), found.sol(plain_value(t)))) if dense else None
    return solution


def _moment(event: Callable[..., Any], path: Trajectory, found: float, given: tuple[Any, ...]) -> Any:
    """Return the time of an event with its history; it is a root of a function of the solution."""
    with enable_grad():
        place = as_scalar(Tensor(found, requires_grad=True))
        slope: Any
        (slope,) = grad(numbers(event(place, path.at(place), *given)).reshape(()), place)
    moment = copied(found)
    for _ in range(3):
        value = numbers(event(moment, path.at(moment), *given)).reshape(())
        moment = moment - value / slope.detach()
    return pinned(moment, found)


@in_own_context
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
    """Solve a differential equation at given times, as `scipy.integrate.odeint`.

    Gradients flow to the initial values, the times and the tensors captured by the right-hand side. They are those of
    steps of DOP853, or of Radau's method if SciPy found the equation stiff.
    """
    _check_steps("scipy.integrate.odeint", {"rtol": rtol, "atol": atol, "h0": h0, "hmax": hmax, "hmin": hmin})
    args = args_tuple(args)
    start: Any = np.atleast_1d(float_copy(y0))
    times = float_copy(t)

    def slope(moment: Any, y: Any) -> Any:
        found = func(moment, y, *args) if tfirst else func(y, moment, *args)
        return np.atleast_1d(float_copy(found))

    def jacobian(moment: Any, y: Any) -> Any:
        with no_grad():
            y = as_tensors(np.array(y))
            return np.array(plain_value(Dfun(moment, y, *args) if tfirst else Dfun(y, moment, *args)))

    places = np.array(plain_values(times.detach()))
    values, information = scipy.integrate.odeint(
        plain_slope(slope), np.array(plain_values(start.detach())), places,
        Dfun=None if Dfun is None else jacobian, col_deriv=col_deriv, full_output=1, ml=ml, mu=mu,
        rtol=plain_value(rtol), atol=plain_value(atol), tcrit=tcrit, h0=h0, hmax=hmax, hmin=hmin, ixpr=ixpr,
        mxstep=mxstep, mxhnil=mxhnil, mxordn=mxordn, mxords=mxords, printmessg=0, tfirst=True,
    )  # fmt: skip
    if carries_history((start, times)) or carries_history(slope(float(places[0]), start.detach())):
        stiff = bool(np.any(information["mused"] == 2))
        clock = _clock((times[0], times[-1]), (places[0], places[-1]))
        path = _along(slope, (places[0], places[-1]), start, stiff, clock)
        result = pinned(np.stack([path.start, *(path.at(moment) for moment in times[1:])]), values)
    else:
        result = as_tensors(values)
    return (result, information) if full_output else result


def _along(slope: Any, ends: tuple[float, float], start: Any, stiff: bool, clock: Any) -> Trajectory:
    """Return a solution with its history, computed by a suitable method."""
    method = IMPLICIT if stiff else "DOP853"
    path = solved(slope, (float(ends[0]), float(ends[1])), start, method, clock, CLOSELY[method])
    if path is None:
        raise lost("scipy.integrate.odeint", FAILED)
    return path


class ode:
    """A solver that integrates step by step, as `scipy.integrate.ode`."""

    def __init__(self, f: Callable[..., Any], jac: Any = None) -> None:
        self.f, self.jac = f, jac = adopted_arguments((f, jac))
        self.f_params: tuple[Any, ...] = ()
        self.jac_params: tuple[Any, ...] = ()
        self.stiff = False
        self._plain = scipy.integrate.ode(plain_slope(self._slope), None if jac is None else self._jacobian)
        self._y: Any = as_tensors(np.empty(0))

    def _slope(self, t: Any, y: Any) -> Any:
        return np.atleast_1d(float_copy(self.f(t, y, *self.f_params)))

    def _jacobian(self, t: Any, y: Any) -> Any:
        with no_grad():
            return np.array(plain_value(self.jac(t, as_tensors(np.array(y)), *self.jac_params)))

    def set_integrator(self, name: str, **options: Any) -> ode:
        """Choose the method: vode, zvode, lsoda, dopri5 or dop853."""
        _check_steps("scipy.integrate.ode", options)
        self.stiff = name == "lsoda" or str(options.get("method", "")).lower() == "bdf"
        self._plain.set_integrator(name, **{key: plain_value(option) for key, option in options.items()})
        return self

    def set_initial_value(self, y: Any, t: Any = 0.0) -> ode:
        """Set the initial values."""
        self._y = np.atleast_1d(float_copy(y))
        self._plain.set_initial_value(np.array(plain_values(self._y.detach())), plain_number(t))
        return self

    def set_f_params(self, *args: Any) -> ode:
        """Set additional arguments of the right-hand side."""
        self.f_params = args
        return self

    def set_jac_params(self, *args: Any) -> ode:
        """Set additional arguments of the Jacobian."""
        self.jac_params = args
        return self

    def set_solout(self, solout: Callable[..., Any]) -> None:
        """Set a function that is called at every step, with plain values."""
        self._plain.set_solout(solout)

    def integrate(self, t: Any, step: bool = False, relax: bool = False) -> Any:
        """Integrate up to a time and return the values there, with their history."""
        before = self._plain.t
        found = np.array(self._plain.integrate(plain_number(t), step, relax))
        start, after = self._y, self._plain.t
        if not carries_history((start, t)) and not carries_history(self._slope(before, start.detach())):
            self._y = as_tensors(found)
        elif found.dtype.kind == "c":
            raise lost("scipy.integrate.ode", "solve for the real and imaginary parts separately")
        elif before != after:
            clock = _clock((before, t), (before, after))
            path = _along(self._slope, (before, after), start, self.stiff, clock)
            self._y = pinned(path.steps[-1].y_new, found)
        return self._y

    @property
    def t(self) -> Any:
        """The current time."""
        return self._plain.t

    @property
    def y(self) -> Any:
        """The values at the current time."""
        return self._y

    def successful(self) -> bool:
        """Return whether the last integration reached its end."""
        return bool(self._plain.successful())

    def get_return_code(self) -> Any:
        """Return the return code of the last integration."""
        return self._plain.get_return_code()
