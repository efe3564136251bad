"""`scipy.optimize` for functions of tensors: gradients and Jacobians come from this library by themselves.

What is found is a place, which has no history. A function that refers to tensors with one is refused, since the place
depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize  # type: ignore[import-untyped]

from ..autograd.api import grad
from ..numpy.functions import lost
from ..numpy.namespace import filled, public_names
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand
from ..tensor.modes import enable_grad
from ..tensor.tensor import Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}


def made(function: Any) -> Any:
    """Make a function the counterpart of SciPy's of the same name."""
    MADE[function.__name__] = function
    return function


def _place(x0: Any, name: str) -> Any:
    if carries_history(x0):
        raise lost(f"scipy.optimize.{name}", "what is found does not depend on where the search starts; pass detach()")
    return np.array(plain_values(as_argument(x0)), float)


def _refuse_history(value: Any, name: str) -> None:
    if carries_history(value):
        raise lost(
            f"scipy.optimize.{name}",
            "the function refers to tensors that have a history, on which what is found depends; pass their detach()",
        )


def _value(value: Any) -> Any:
    found = plain_values(value.detach() if isinstance(value, Tensor) else as_argument(value))
    return plain_values(found.detach()) if isinstance(found, Tensor) else found


def _with_gradient(fun: Callable[..., Any], args: tuple[Any, ...], name: str) -> Callable[[Any], tuple[float, Any]]:
    """A function of arrays that gives a value and its gradient."""

    def value_and_gradient(x: Any) -> tuple[float, Any]:
        with enable_grad():
            leaf = Tensor(x, requires_grad=True)
            result = as_operand(fun(leaf, *args))
            value = float(np.asarray(_value(result)).reshape(()))
            if not result.requires_grad:
                return value, np.zeros_like(x)
            (gradient,) = grad(result.reshape(()), leaf, allow_unused=True)
        return value, np.zeros_like(x) if gradient is None else np.array(plain_values(gradient))

    return value_and_gradient


def _with_jacobian(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[Any], Any]:
    """The Jacobian of a function, as a function of arrays."""

    def jacobian(x: Any) -> Any:
        with enable_grad():
            leaf = Tensor(np.atleast_1d(x).astype(float), requires_grad=True)
            result = np.atleast_1d(as_operand(as_argument(fun(leaf, *args))))
            rows = []
            for element in result:
                row = grad(element, leaf, retain_graph=True, allow_unused=True)[0] if element.requires_grad else None
                rows.append(np.zeros(leaf.shape) if row is None else np.array(plain_values(row)))
        return np.array(rows)

    return jacobian


def _plain(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    return lambda x: np.asarray(_value(fun(as_tensors(np.array(x)), *args)))


def _probed(fun: Callable[..., Any], x: Any, args: Any, name: str) -> tuple[Any, ...]:
    """The further arguments, once it is known that nothing with a history comes in."""
    given = args if isinstance(args, tuple) else (args,)
    _refuse_history(given, name)
    _refuse_history(fun(as_tensors(np.array(x)), *given), name)
    return given


def _without_history(result: Any) -> Any:
    for key in ("x", "jac", "fun", "hess_inv"):
        if key in result and isinstance(result[key], np.ndarray):
            result[key] = as_tensors(np.array(result[key]))
    return result


WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})


@made
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """The place where a function of a tensor is least, as `scipy.optimize.minimize`; its gradient needs not be given.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.optimize import minimize
        >>> found = minimize(lambda x: ((x - vg.Tensor([1.0, 2.0])) ** 2).sum(), [0.0, 0.0])
        >>> found.x.round(5)
        Tensor([1., 2.])
    """
    start = _place(x0, "minimize")
    given = _probed(fun, start, args, "minimize")
    function: Any
    if jac is True:

        def function(x: Any) -> Any:
            value, gradient = fun(as_tensors(np.array(x)), *given)
            return float(_value(value)), np.asarray(_value(gradient))
    elif jac is None and str(method).lower() not in WITHOUT_GRADIENT:
        function, jac = _with_gradient(fun, given, "minimize"), True
    else:

        def function(x: Any) -> Any:
            return float(np.asarray(_value(fun(as_tensors(np.array(x)), *given))).reshape(()))

        if callable(jac):
            jac = _plain(jac, given)
    hess = _plain(hess, given) if callable(hess) else hess
    each = [constraints] if isinstance(constraints, dict) else constraints
    constraints = [_constraint(item) if isinstance(item, dict) else item for item in each]
    return _without_history(
        scipy.optimize.minimize(
            function, start, (), method, jac, hess, hessp, plain_values(bounds), constraints, tol, callback, options
        )
    )


def _constraint(item: dict[str, Any]) -> dict[str, Any]:
    args = tuple(item.get("args", ()))
    own = {**item, "fun": _plain(item["fun"], args), "args": ()}
    own["jac"] = _plain(item["jac"], args) if callable(item.get("jac")) else _with_jacobian(item["fun"], args)
    return own


@made
def minimize_scalar(
    fun: Callable[..., Any], bracket: Any = None, bounds: Any = None, args: Any = (), **options: Any
) -> Any:
    """The place where a function of a number is least."""
    given = _probed(fun, 0.5 if bounds is None else sum(plain_values(bounds)) / 2, args, "minimize_scalar")

    def function(x: Any) -> float:
        return float(_value(fun(as_operand(x), *given)))

    return scipy.optimize.minimize_scalar(function, plain_values(bracket), plain_values(bounds), **options)


@made
def root(
    fun: Callable[..., Any], x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, **options: Any
) -> Any:
    """The place where a function of a tensor vanishes; its Jacobian needs not be given."""
    start = _place(x0, "root")
    given = _probed(fun, start, args, "root")
    if jac is None and method in ("hybr", "lm"):
        jac = _with_jacobian(fun, given)
    elif callable(jac):
        jac = _plain(jac, given)
    return _without_history(scipy.optimize.root(_plain(fun, given), start, (), method, jac, **options))


@made
def fsolve(
    func: Callable[..., Any], x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0, **options: Any
) -> Any:
    """The place where a function of a tensor vanishes; its Jacobian needs not be given."""
    start = _place(x0, "fsolve")
    given = _probed(func, start, args, "fsolve")
    slope = _with_jacobian(func, given) if fprime is None else _plain(fprime, given)
    return as_tensors(scipy.optimize.fsolve(_plain(func, given), start, (), slope, full_output, **options))


@made
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    args: Any = (),
    kwargs: Any = None,
    **options: Any,
) -> Any:
    """The place where the sum of squares of a function of a tensor is least; its Jacobian needs not be given."""
    start = np.atleast_1d(_place(x0, "least_squares"))
    named = kwargs or {}

    def with_names(x: Any, *rest: Any) -> Any:
        return fun(x, *rest, **named)

    given = _probed(with_names, start, args, "least_squares")
    slope = _with_jacobian(with_names, given) if jac is None else _plain(jac, given) if callable(jac) else jac
    found = scipy.optimize.least_squares(
        _plain(with_names, given), start, slope, plain_values(bounds), method, **options
    )
    return _without_history(found)


@made
def curve_fit(
    f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, *args: Any, **options: Any
) -> Any:
    """The parameters with which a function fits data best."""
    _refuse_history((xdata, ydata, sigma), "curve_fit")
    return as_tensors(
        scipy.optimize.curve_fit(
            lambda x, *parameters: np.asarray(_value(f(as_tensors(np.array(x)), *parameters))),
            plain_values(as_argument(xdata)),
            plain_values(as_argument(ydata)),
            plain_values(p0),
            plain_values(sigma),
            *args,
            **options,
        )
    )


def _of_number(name: str) -> None:
    scipys = getattr(scipy.optimize, name)

    def find(f: Callable[..., Any], *places: Any, args: Any = (), fprime: Any = None, **options: Any) -> Any:
        numbers = [float(_value(_place(place, name))) if not callable(place) else place for place in places]
        given = _probed(f, numbers[0], args, name)
        if name == "newton":
            slope = fprime if fprime is not None else None
            options["fprime"] = None if slope is None else (lambda x: float(_value(slope(as_operand(x), *given))))
        return scipys(lambda x: float(_value(f(as_operand(x), *given))), *numbers, **options)

    find.__name__ = name
    find.__doc__ = f"`scipy.optimize.{name}` of a function of a tensor."
    made(find)


for _name in ("brentq", "brenth", "ridder", "bisect", "newton"):
    _of_number(_name)

globals().update(filled(scipy.optimize, MADE, frozenset(), {}))
__all__ = public_names(scipy.optimize)
