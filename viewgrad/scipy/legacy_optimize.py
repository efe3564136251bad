"""The functions of `scipy.optimize` named after their methods, for functions of tensors.

SciPy searches with plain values. Solutions depend on the tensors that the function captures; see `implicit_diff.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import scipy.optimize as theirs  # type: ignore[import-untyped]

from ..func.transforms import jacrev
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_tensors, carries_history
from ..tensor.async_safety import in_own_context
from ..tensor.modes import no_grad
from .constrained import NO_ENDS, Constraint, Ends, at_ends, bound_pairs, constrained_place, plain_bounds
from .implicit_diff import computed_anew
from .wrap import args_tuple, captures_history, copied, float_copy, make_constant, numbers, plain_value

OLDER: Final[dict[str, Any]] = {}
EPSILON: Final = float(np.sqrt(np.finfo(float).eps))  # the step of finite differences
make_constant(theirs, ["linear_sum_assignment"], OLDER, "its results are indices, which have no gradients.")


def _plain(value: Any) -> Any:
    """Return a value without history: a new array for a tensor."""
    found = plain_value(value)
    return np.array(found) if isinstance(found, np.ndarray) else found


def _of_arrays(function: Any, given: tuple[Any, ...]) -> Any:
    """Convert a function of tensors to a function of arrays."""
    if not callable(function):
        return function

    def call(x: Any) -> Any:
        with no_grad():
            return _plain(function(copied(np.asarray(x, float)), *given))

    return call


def _number(function: Any, given: tuple[Any, ...]) -> Any:
    plain = _of_arrays(function, given)
    return lambda x: float(np.asarray(plain(x)).reshape(()))


def _with_place(
    function: Callable[..., Any], found: Any, given: tuple[Any, ...], ends: Ends = NO_ENDS, has_value: bool = True,
    constraints: Sequence[Constraint] = (),
) -> Any:  # fmt: skip
    """Return SciPy's result (an array, a tuple that begins with one, or an object) with the history of the solution.

    Arguments:
        function: the function that was minimized.
        found: SciPy's result.
        given: the further arguments of the function.
        ends: the bounds at which unknowns are.
        has_value: whether the second item of a tuple is the value of the function.
        constraints: the constraints of the search.
    """
    place = found.x if hasattr(found, "x") else found[0] if isinstance(found, tuple) else found
    captures = captures_history(function, np.asarray(place, float), given) or any(
        captures_history(each.function, np.asarray(place, float), ()) for each in constraints
    )
    if not ends.depend_on_tensors and not captures:
        return _as_tensors(found)
    place = constrained_place(lambda x: numbers(function(x, *given)).reshape(()), place, ends, constraints)
    if hasattr(found, "x"):
        found.x, found.fun = place, numbers(function(place, *given)).reshape(())
        return found
    if not isinstance(found, tuple):
        return place
    rest = list(as_tensors(found[1:]))
    if has_value:
        rest[0] = numbers(function(place, *given)).reshape(())
    return place, *rest


def _as_tensors(found: Any) -> Any:
    if not hasattr(found, "x"):
        return as_tensors(found)
    for key in ("x", "fun", "jac"):
        if isinstance(found.get(key), np.ndarray):
            found[key] = as_tensors(np.array(found[key]))
    return found


# The searches whose function returns both its value and gradient, unless the gradient is passed separately.
WITH_SLOPES: Final = frozenset({"fmin_l_bfgs_b", "fmin_tnc"})
SLOPES: Final = ("fprime", "fhess", "jac", "fprime_eqcons", "fprime_ieqcons")
EQUALITIES: Final = ("eqcons", "f_eqcons")
INEQUALITIES: Final = ("ieqcons", "f_ieqcons", "cons")


def _with_args(function: Any, args: tuple[Any, ...]) -> Callable[[Any], Any]:
    return lambda x: function(x, *args)


def _constraints(values: dict[str, Any], given: tuple[Any, ...]) -> list[Constraint]:
    """Return the constraints among the arguments of a search, which are replaced by functions of arrays."""
    found = []
    rest = given if values.get("consargs") is None else args_tuple(values.pop("consargs"))
    for keys, high in ((EQUALITIES, 0.0), (INEQUALITIES, np.inf)):
        for key in [key for key in keys if values.get(key)]:
            functions = values[key] if isinstance(values[key], (list, tuple)) else [values[key]]
            found += [Constraint(_with_args(each, rest), 0.0, high) for each in functions]
            plain = [_of_arrays(each, rest) for each in functions]
            values[key] = plain if functions is values[key] else plain[0]
    return found


def _search(name: str) -> None:
    """Define a search: SciPy runs on plain values, and the history is added to the result."""
    scipys = getattr(theirs, name)
    signature = inspect.signature(scipys)
    first = next(iter(signature.parameters))

    def search(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        values = bound.arguments
        function, given = values[first], args_tuple(values.pop("args", ()))
        value = function
        pairs = name in WITH_SLOPES and values.get("fprime") is None and not values.get("approx_grad")
        if pairs:

            def value(x: Any, *rest: Any) -> Any:
                return function(x, *rest)[0]

        values[first] = _pair(function, given) if pairs else _number(function, given)
        constraints = _constraints(values, given)
        for key in SLOPES:
            if callable(values.get(key)):
                values[key] = _of_arrays(values[key], given)
        bounds = values.get("bounds")
        if bounds is not None:
            values["bounds"] = plain_bounds(bounds)
        for key in ("x0", "x1", "x2", "ranges", "brack"):
            if key in values:
                values[key] = _plain(values[key])
        found = scipys(*bound.args, **bound.kwargs)
        place = found.x if hasattr(found, "x") else found[0] if isinstance(found, tuple) else found
        if values.get("constraints") and captures_history(value, np.asarray(place, float), given):
            raise lost(
                f"scipy.optimize.{name}",
                "with constraints no gradient flows to captured tensors; pass detach() of them",
            )
        return _with_place(value, found, given, at_ends(place, bound_pairs(bounds)), name != "fmin_tnc", constraints)

    search.__name__ = search.__qualname__ = name
    search.__doc__ = f"`scipy.optimize.{name}` of a function of a tensor, with a differentiable result."
    OLDER[name] = in_own_context(search)


def _pair(function: Any, given: tuple[Any, ...]) -> Any:
    """Convert a function of tensors that returns a value and a gradient to a function of arrays."""

    def call(x: Any) -> Any:
        with no_grad():
            value, slope = function(copied(np.asarray(x, float)), *given)
        return float(np.asarray(_plain(value)).reshape(())), np.asarray(_plain(slope), float)

    return call


for _name in (
    "fmin", "fmin_powell", "fmin_bfgs", "fmin_cg", "fmin_ncg", "fmin_l_bfgs_b", "fmin_tnc", "fmin_slsqp", "fmin_cobyla",
    "fminbound", "brent", "golden", "differential_evolution", "dual_annealing", "shgo", "direct", "basinhopping",
    "brute",
):  # fmt: skip
    _search(_name)


@in_own_context
def leastsq(
    func: Callable[..., Any], x0: Any, args: Any = (), Dfun: Any = None, full_output: bool = False, **options: Any
) -> Any:
    """Return the differentiable least-squares solution for a function of a tensor."""
    given = args_tuple(args)
    found = theirs.leastsq(_of_arrays(func, given), _plain(x0), (), _of_arrays(Dfun, given), full_output, **options)
    if not captures_history(func, found[0], given):
        return as_tensors(found)
    place, *rest = _with_place(lambda x: (numbers(func(x, *given)) ** 2).sum(), found, (), has_value=False)
    if full_output and rest[0] is not None:
        slopes = jacrev(computed_anew(lambda x: numbers(func(x, *given))))(place)
        rest[0] = np.linalg.inv(slopes.mT @ slopes)
    return place, *rest


@in_own_context
def nnls(A: Any, b: Any, **options: Any) -> Any:
    """Return the nonnegative least-squares solution and the norm of its residual."""
    plain, rest = theirs.nnls(_plain(A), _plain(b), **options)
    if not carries_history((A, b)):
        return as_tensors(plain), rest
    matrix, right = float_copy(A), float_copy(b)
    places = np.flatnonzero(plain > 0)
    x = as_tensors(np.zeros_like(plain))
    if places.size:
        columns = matrix[:, places]
        x[places] = np.linalg.solve(columns.T @ columns, columns.T @ right)
    away = matrix @ x - right
    return x, np.sqrt((away * away).sum())


def lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), *args: Any, **options: Any) -> Any:
    """Return the least-squares solution within bounds; variables at a bound depend on the bound."""
    limits = (bounds.lb, bounds.ub) if isinstance(bounds, theirs.Bounds) else tuple(bounds)
    plain = tuple(np.asarray(_plain(limit), float) for limit in limits)
    found = theirs.lsq_linear(_plain(A), _plain(b), plain, *args, **options)
    found.x, found.fun = as_tensors(found.x), as_tensors(found.fun)
    if not carries_history((A, b, limits)):
        return found
    matrix, right = float_copy(A), float_copy(b)
    free = found.active_mask == 0
    low, high = (np.broadcast_to(numbers(limit), free.shape) for limit in limits)
    x = np.where(found.active_mask < 0, low, np.where(free, 0.0, high))
    if free.any():
        x[free] = np.linalg.lstsq(matrix[:, free], right - matrix @ x, rcond=None)[0]
    found.x, found.fun = x, matrix @ x - right
    found.cost = 0.5 * (found.fun**2).sum()
    return found


@in_own_context
def approx_fprime(xk: Any, f: Callable[..., Any], epsilon: Any = EPSILON, *args: Any) -> Any:
    """Return the gradient of a function by finite differences."""
    x = np.atleast_1d(float_copy(xk))
    steps = np.broadcast_to(np.asarray(_plain(epsilon), float), x.shape)
    start = numbers(f(x, *args))
    columns = []
    for place in range(x.size):
        moved = x + as_tensors(np.eye(x.size)[place] * steps)
        columns.append((numbers(f(moved, *args)) - start) / float(steps[place]))
    return np.stack(columns, -1)


def check_grad(func: Callable[..., Any], grad: Callable[..., Any], x0: Any, *args: Any, **options: Any) -> Any:
    """Return the norm of the difference between a gradient and finite differences."""
    if not captures_history(func, x0, args) and not captures_history(grad, x0, args) and not carries_history(x0):
        return theirs.check_grad(_number(func, args), _of_arrays(grad, args), _plain(x0), **options)
    if options.keys() - {"epsilon"}:
        raise lost("scipy.optimize.check_grad", "for tensors with a history, only epsilon= is supported")
    slopes = approx_fprime(x0, func, options.get("epsilon", EPSILON), *args)
    return np.sqrt(((numbers(grad(numbers(x0) * 1.0, *args)) - slopes) ** 2).sum())


def rosen(x: Any) -> Any:
    """Return Rosenbrock's function."""
    x = numbers(x)
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(0)


def rosen_der(x: Any) -> Any:
    """Return the gradient of Rosenbrock's function."""
    x = float_copy(x)
    gradient, away = np.zeros_like(x), x[1:] - x[:-1] ** 2
    gradient[:-1] += -400.0 * x[:-1] * away - 2.0 * (1.0 - x[:-1])
    gradient[1:] += 200.0 * away
    return gradient


def rosen_hess(x: Any) -> Any:
    """Return the Hessian of Rosenbrock's function of a vector."""
    x = np.atleast_1d(float_copy(x))
    beside, diagonal = np.diag(-400.0 * x[:-1], 1), np.zeros_like(x)
    diagonal[:-1] += 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    diagonal[1:] += 200.0
    return beside + beside.T + np.diag(diagonal)


def rosen_hess_prod(x: Any, p: Any) -> Any:
    """Return the product of the Hessian of Rosenbrock's function and a vector."""
    return rosen_hess(x) @ numbers(p)


for _function in (leastsq, nnls, lsq_linear, approx_fprime, check_grad, rosen, rosen_der, rosen_hess, rosen_hess_prod):
    OLDER[_function.__name__] = _function
