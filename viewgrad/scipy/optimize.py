"""`scipy.optimize` for functions of tensors: gradients and Jacobians are computed automatically.

The solution depends on the tensors that the function captures, and has a history if they do; see `implicit_diff.py`. It
does not depend on the starting point, which has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.optimize  # type: ignore[import-untyped]
from scipy.sparse import issparse  # type: ignore[import-untyped]

from ..adoption import adopted_arguments
from ..func.program_methods import program_method
from ..func.transforms import grad as grad_of
from ..func.transforms import hessian, hvp, jacrev
from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.async_safety import in_own_context
from ..tensor.signatures import signature_of
from . import elementwise as elementwise
from .constrained import NO_ENDS, at_ends, bound_pairs, constrained_place, constraint_of, plain_bounds
from .implicit_diff import computed_anew, least_place, root_by_elements, root_place
from .legacy_optimize import OLDER
from .linear_programs import linprog
from .losses import has_history, scaled_slopes, squares
from .search_points import SearchPoints
from .sparse.arrays import SparseArray
from .sparse.operators import LinearOperator, is_operator
from .wrap import args_tuple, captures_history, copied, numbers, plain_value, registrar

if TYPE_CHECKING:
    from .typed.optimize import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}
registered: Final = registrar(MADE)
for _function in (linprog, *OLDER.values()):
    registered(_function)


def _place(x0: Any) -> Any:
    return np.array(plain_value(x0), float)


def _with_gradient(fun: Callable[..., Any], args: tuple[Any, ...], points: SearchPoints) -> Callable[..., Any]:
    """Return a function of arrays that returns the value and the gradient; a compiled function uses its program."""
    if program_method(fun, "__viewgrad_gradients__") is not None:
        return lambda x: fun.plain_value_and_grad(x, *args)  # type: ignore[attr-defined]
    return points.value_and_gradient(fun, args)


def _plain(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    return lambda x: np.asarray(plain_value(fun(copied(x), *args)))


def _matrix(jac: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """Convert a Jacobian or Hessian to a function of arrays, whose result may be sparse or a linear operator."""

    def of_array(x: Any) -> Any:
        found = jac(copied(x), *args)
        if isinstance(found, SparseArray):
            return found.pattern.matrix(np.array(plain_value(found.data)))
        if is_operator(found):
            return found.to_scipy() if isinstance(found, LinearOperator) else found
        found = plain_value(found)
        return found if issparse(found) else np.asarray(found)

    return of_array


def _without_history(result: Any) -> Any:
    for key in ("x", "jac", "fun", "hess_inv"):
        if key in result and isinstance(result[key], np.ndarray):
            result[key] = as_tensors(np.array(result[key]))
    return result


WITHOUT_GRADIENT: Final = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
# Methods that need the Hessian, and methods that need its products with vectors; others need only the gradient.
WITH_HESSIAN: Final = frozenset({"dogleg", "trust-exact"})
WITH_PRODUCT: Final = frozenset({"trust-ncg", "trust-krylov"})
CONSTRAINTS: Final = (scipy.optimize.NonlinearConstraint, scipy.optimize.LinearConstraint)


@registered
@in_own_context
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
    """Minimize a function of a tensor, as `scipy.optimize.minimize`; the gradient is computed automatically.

    The Hessian or its products with vectors, for methods that need them, and the Jacobians of constraints are computed
    automatically too.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.optimize import minimize
        >>> found = minimize(lambda x: ((x - vg.Tensor([1.0, 2.0])) ** 2).sum(), [0.0, 0.0])
        >>> found.x.round(5)
        Tensor([1., 2.])
    """
    start, given, points = _place(x0), args_tuple(args), SearchPoints()
    value: Callable[..., Any] = (lambda x, *rest: fun(x, *rest)[0]) if jac is True else fun
    function: Any
    if jac is True:

        def function(x: Any) -> Any:
            value, gradient = fun(copied(x), *given)
            return float(plain_value(value)), np.asarray(plain_value(gradient))
    elif jac is None and str(method).lower() not in WITHOUT_GRADIENT:
        function, jac = _with_gradient(fun, given, points), True
    else:
        function = _number(fun, given)
        if callable(jac):
            jac = _plain(jac, given)
    hess = _matrix(hess, given) if callable(hess) else hess
    name = str(method).lower()
    if hess is None and hessp is None and (name in WITH_HESSIAN or name in WITH_PRODUCT):
        derivative = _with_hessian if name in WITH_HESSIAN else _with_product
        found = derivative(value, given)
        hess, hessp = (found, None) if name in WITH_HESSIAN else (None, found)
    elif hessp is not None:
        hessp = _product(hessp, given)
    items = [constraints] if isinstance(constraints, (dict, *CONSTRAINTS)) else list(constraints)
    plain = [_constraint(item, points) for item in items]
    found = _without_history(
        scipy.optimize.minimize(
            function, start, (), method, jac, hess, hessp, plain_bounds(bounds), plain, tol, callback, options
        )
    )
    points.close()
    limits, conditions = bound_pairs(bounds), [constraint_of(item) for item in adopted_arguments(tuple(items))]
    ends = at_ends(found.x, limits)
    captured = any(
        carries_history((each.low, each.high)) or captures_history(each.function, found.x, ()) for each in conditions
    )
    if captured or captures_history(value, start, given) or ends.depend_on_tensors:
        found.x = constrained_place(lambda x: value(x, *given), found.x, ends, conditions)
        found.fun = numbers(value(found.x, *given)).reshape(())
    return found


def _with_hessian(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Return the Hessian of a function as a function of arrays."""
    second = hessian(lambda x: numbers(fun(x, *args)).reshape(()))
    return lambda x: np.array(plain_value(second(as_tensors(np.array(x)))))


def _with_product(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[Any, Any], Any]:
    """Return the Hessian-vector product of a function as a function of arrays."""

    def product(x: Any, p: Any) -> Any:
        given = (as_tensors(np.array(each, float)) for each in (x, p))
        at, direction = given
        return np.array(plain_value(hvp(lambda x: numbers(fun(x, *args)).reshape(()), (at,), (direction,))[1][0]))

    return product


def _product(hessp: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[Any, Any], Any]:
    return lambda x, p: np.asarray(plain_value(hessp(copied(x), copied(p), *args)))


def _constraint(item: Any, points: SearchPoints) -> Any:
    """Convert a constraint to functions of arrays; the Jacobians are computed automatically."""
    if isinstance(item, scipy.optimize.NonlinearConstraint):
        fun, jac, hess = adopted_arguments((item.fun, item.jac, item.hess))
        second = (lambda x, v: plain_value(hess(copied(x), copied(v)))) if callable(hess) else hess
        limits = (np.asarray(plain_value(each)) for each in (item.lb, item.ub))
        return scipy.optimize.NonlinearConstraint(
            points.value(fun, ()), *limits, _matrix(jac, ()) if callable(jac) else points.jacobian(fun, ()), second,
            item.keep_feasible, item.finite_diff_rel_step, item.finite_diff_jac_sparsity,
        )  # fmt: skip
    if isinstance(item, scipy.optimize.LinearConstraint):
        return scipy.optimize.LinearConstraint(*map(plain_value, (item.A, item.lb, item.ub)), item.keep_feasible)
    if not isinstance(item, dict):
        return item
    args = tuple(item.get("args", ()))
    own = {**item, "fun": points.value(item["fun"], args), "args": ()}
    own["jac"] = _plain(item["jac"], args) if callable(item.get("jac")) else points.jacobian(item["fun"], args)
    return own


@registered
@in_own_context
def minimize_scalar(
    fun: Callable[..., Any], bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None, **options: Any
) -> Any:
    """Minimize a function of one variable."""
    given, limits = args_tuple(args), None if bounds is None else tuple(map(plain_value, bounds))
    function, places = _number(fun, given), plain_values(bracket)
    found = scipy.optimize.minimize_scalar(function, places, limits, method=method, **options)
    ends = NO_ENDS
    if limits is not None:
        near = 1e-5 * (limits[1] - limits[0]) / max(1.0, abs(found.x))
        ends = at_ends(found.x, (bounds[0], bounds[1]), near)
    if captures_history(fun, found.x, given) or ends.depend_on_tensors:
        found.x = least_place(lambda x: fun(x, *given), found.x, ends.free, ends.values)
        found.fun = numbers(fun(found.x, *given)).reshape(())
    return found


@registered
@in_own_context
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: Any = None,
    **options: Any,
) -> Any:
    """Return a differentiable root of a function; the Jacobian is computed automatically.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.optimize import root
        >>> a = vg.Tensor([4.0, 9.0], requires_grad=True)
        >>> found = root(lambda x: x * x - a, [1.0, 1.0]).x
        >>> vg.autograd.grad(found.sum(), a)[0]
        Tensor([0.25      , 0.16666667])
    """
    start, given, points = _place(x0), args_tuple(args), SearchPoints()
    if jac is True:
        both, fun = fun, lambda *x: both(*x)[0]
        jac = _plain(lambda *x: both(*x)[1], given)
    elif callable(jac):
        jac = _plain(jac, given)
    values = _plain(fun, given)
    if jac is None and method in ("hybr", "lm"):
        values, jac = points.value(fun, given), points.jacobian(fun, given)
    found = _without_history(scipy.optimize.root(values, start, (), method, jac, tol, **options))
    points.close()
    if captures_history(fun, found.x._array, given):
        found.x = root_place(lambda x: fun(x, *given), found.x)
    return found


@registered
@in_own_context
def fsolve(
    func: Callable[..., Any], x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0, **options: Any
) -> Any:
    """Return a differentiable root of a function; the Jacobian is computed automatically."""
    start, given, points = _place(x0), args_tuple(args), SearchPoints()
    slope = points.jacobian(func, given) if fprime is None else _plain(fprime, given)
    found = scipy.optimize.fsolve(points.value(func, given), start, (), slope, full_output, **options)
    points.close()
    place = found[0] if full_output else found
    if captures_history(func, place, given):
        place = root_place(lambda x: func(x, *given), place)
    return (place, *as_tensors(found[1:])) if full_output else as_tensors(place)


@registered
def isotonic_regression(y: Any, *, weights: Any = None, increasing: bool = True) -> Any:
    """Return the monotonic values closest to given ones; gradients flow to the values and weights of each block."""
    values, shares = (None if each is None else plain_value(each) for each in (y, weights))
    found = scipy.optimize.isotonic_regression(values, weights=shares, increasing=increasing)
    if carries_history((y, weights)):
        start, sizes = found.blocks[:-1], np.diff(found.blocks)
        y = numbers(y) * 1.0
        totals = np.ones(len(y)) if weights is None else numbers(weights) * 1.0
        found.weights = np.add.reduceat(totals, start)
        found.x = np.repeat(np.add.reduceat(totals * y, start) / found.weights, sizes)
    return _without_history(found)


def _by_steps(name: str) -> Callable[..., Any]:
    """Define the counterpart of a solver that uses no Jacobian."""

    def solve(F: Callable[..., Any], xin: Any, *others: Any, **options: Any) -> Any:
        """Return a differentiable root of a function of a tensor."""
        place = getattr(scipy.optimize, name)(_plain(F, ()), _place(xin), *others, **options)
        return root_place(F, place) if captures_history(F, place, ()) else as_tensors(place)

    solve.__name__ = solve.__qualname__ = name
    return registered(in_own_context(solve))


for _name in (
    "anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing", "newton_krylov"
):  # fmt: skip
    _by_steps(_name)


@registered
@in_own_context
def fixed_point(func: Callable[..., Any], x0: Any, args: Any = (), *others: Any, **options: Any) -> Any:
    """Return a differentiable fixed point of a function of a tensor."""
    given = tuple(args)
    place = scipy.optimize.fixed_point(_plain(func, given), _place(x0), (), *others, **options)
    if captures_history(func, place, given):
        return root_place(lambda x: numbers(func(x, *given)) - x, place)
    return as_tensors(place)


@registered
@in_own_context
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
    """Return the least-squares solution for a function of a tensor; the Jacobian is computed automatically."""
    start, given, named = np.atleast_1d(_place(x0)), tuple(args), kwargs or {}

    def with_names(x: Any, *rest: Any) -> Any:
        return fun(x, *rest, **named)

    points, slope = SearchPoints(), jac
    if jac is None:
        slope = points.jacobian(with_names, given)
    elif callable(jac):
        slope = _matrix(lambda x, *rest: jac(x, *rest, **named), given)
    limits = _limits(bounds)
    residuals = points.value(with_names, given)
    found = _without_history(
        scipy.optimize.least_squares(residuals, start, slope, limits, method, **_settings(options))
    )
    points.close()
    ends = at_ends(found.x, _ends(bounds))
    if has_history(options) or captures_history(with_names, start, given) or ends.depend_on_tensors:

        def cost(x: Any) -> Any:
            return 0.5 * squares(numbers(with_names(x, *given)), options).sum()

        found.x = least_place(cost, found.x, ends.free, ends.values)
        found.fun, found.cost = numbers(with_names(found.x, *given)), cost(found.x)
    return found


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Convert tensors in options to arrays; a loss remains a function of arrays."""
    plain = {"loss": lambda z: np.array(_plain(options["loss"], ())(z))} if callable(options.get("loss")) else {}
    return {name: value if callable(value) else plain_value(value) for name, value in options.items()} | plain


@registered
@in_own_context
def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    *args: Any,
    **options: Any,
) -> Any:
    """Fit a function to data; return the optimal parameters and their covariance, both differentiable."""
    if isinstance(xdata, (list, tuple, np.ndarray)):  # anything else is passed to the function unchanged
        xdata = numbers(xdata)
        xdata = xdata if xdata.dtype.kind in "fc" else xdata.astype(float)

    def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(x: Any, *parameters: Any) -> Any:
            return np.asarray(plain_value(function(copied(x), *parameters)))

        call.__signature__ = signature_of(f)  # type: ignore[attr-defined]  # by which SciPy counts the parameters
        return call

    fitted = scipy.optimize.curve_fit(
        on_arrays(f),
        *map(plain_value, (xdata, ydata, p0, sigma)),
        absolute_sigma,
        *args,
        **_settings(options) | ({"jac": on_arrays(options["jac"])} if callable(options.get("jac")) else {}),
    )
    x = numbers(xdata) if isinstance(xdata, list | tuple) else as_argument(xdata)
    y = numbers(ydata)
    ends = at_ends(fitted[0], _ends(options.get("bounds")))
    is_free = not ends.depend_on_tensors
    if is_free and not has_history(options) and not carries_history((x, y, sigma, f(x, *fitted[0]))):
        return as_tensors(fitted)
    if len(fitted) > 2 or np.ndim(plain_value(1.0 if sigma is None else sigma)) > 1:
        raise lost("scipy.optimize.curve_fit", "omit full_output, and pass sigma as a vector of standard deviations")
    errors = 1.0 if sigma is None else numbers(sigma)

    @computed_anew
    def residual(p: Any) -> Any:
        return (numbers(f(x, *p)) - y) / errors

    def cost(p: Any) -> Any:
        return squares(residual(p), options).sum()

    place = least_place(cost, fitted[0], ends.free, ends.values)
    slopes = scaled_slopes(jacrev(residual)(place), residual(place), options)
    covariances = np.linalg.inv(slopes.mT @ slopes)
    if not absolute_sigma:
        covariances = covariances * (cost(place) / (y.size - place.size))
    return place, covariances


def _limits(bounds: Any) -> Any:
    """Convert bounds to arrays; a pair may consist of a number and a vector."""
    if bounds is None or isinstance(bounds, scipy.optimize.Bounds):
        return bounds
    return tuple([plain_values(as_argument(each)) for each in bounds])


def _ends(bounds: Any) -> Any:
    """Return the lower and upper bounds with their histories."""
    if isinstance(bounds, scipy.optimize.Bounds):
        return bounds.lb, bounds.ub
    return None if bounds is None else tuple(bounds)


# -- functions of one variable -----------------------------------------------------------------------------------------


def _number(fun: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[Any], Any]:
    return lambda x: float(np.asarray(plain_value(fun(copied(x), *given))).reshape(()))


def _with_root(fun: Callable[..., Any], given: tuple[Any, ...], found: Any) -> Any:
    """Return SciPy's result with the history of the root, also inside a report."""
    place = found[0] if isinstance(found, tuple) else found
    if not captures_history(fun, place, given):
        return as_tensors(found)
    place = root_by_elements(lambda x: fun(x, *given), place)
    return (place, *found[1:]) if isinstance(found, tuple) else place


def _between(name: str) -> None:
    scipys = getattr(scipy.optimize, name)

    def find(f: Callable[..., Any], a: Any, b: Any, args: Any = (), *others: Any, **options: Any) -> Any:
        given = args_tuple(args)
        found = scipys(_number(f, given), float(_place(a)), float(_place(b)), (), *others, **options)
        return _with_root(f, given, found)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = f"`scipy.optimize.{name}` of a function of a tensor, with a differentiable result."
    registered(in_own_context(find))


for _name in ("brentq", "brenth", "ridder", "bisect", "toms748"):
    _between(_name)


@registered
@in_own_context
def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Any = None,
    x1: Any = None,
    **options: Any,
) -> Any:
    """Return a differentiable root of a function of one variable, or of several functions."""
    start, given = np.array(plain_value(x0)), tuple(args)
    start = start if start.dtype.kind == "c" else start.astype(float)
    if start.dtype.kind == "c" and captures_history(func, start, given):
        raise lost("scipy.optimize.newton", "use root() with the real and imaginary parts as two unknowns")
    plain = _plain if start.ndim or start.dtype.kind == "c" else _number
    slopes = [None if slope is None else plain(slope, given) for slope in (fprime, fprime2)]
    second = None if x1 is None else _place(x1)
    first = start if start.ndim else start.item()
    settings = {"maxiter": maxiter, "fprime2": slopes[1], "x1": second, **options}
    found = scipy.optimize.newton(plain(func, given), first, slopes[0], (), tol, **settings)
    return _with_root(func, given, found)


@registered
@in_own_context
def root_scalar(f: Callable[..., Any], args: Any = (), *others: Any, **options: Any) -> Any:
    """Return a differentiable root of a function of one variable."""
    given = args_tuple(args)
    if options.get("fprime2") is True:
        all_three, f = f, lambda *x: all_three(*x)[0]
        options |= {"fprime": lambda *x: all_three(*x)[1], "fprime2": lambda *x: all_three(*x)[2]}
    elif options.get("fprime") is True:
        both, f = f, lambda *x: both(*x)[0]
        options["fprime"] = lambda *x: both(*x)[1]
    for name in ("fprime", "fprime2"):
        if callable(options.get(name)):
            options[name] = _number(options[name], given)
    method = others[0] if others else options.get("method")
    wanted = {"newton": ("fprime",), "halley": ("fprime", "fprime2")}.get(str(method).lower(), ())
    derivative: Callable[..., Any] = lambda x, *rest: numbers(f(x, *rest)) * 1.0  # noqa: E731
    for name in wanted:
        derivative = grad_of(derivative)
        if options.get(name) is None:
            options[name] = _number(derivative, given)
    options = {name: value if callable(value) else plain_value(value) for name, value in options.items()}
    found = scipy.optimize.root_scalar(_number(f, given), (), *others, **options)
    found.root = _with_root(f, given, found.root)
    return found


globals().update(filled(scipy.optimize, MADE, frozenset(), {}))
__all__ = public_names(scipy.optimize)
