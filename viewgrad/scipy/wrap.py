"""Wrappers of SciPy's functions for tensors; SciPy's own function runs if no history could be lost."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Final

import numpy as np

from ..adoption import adopting
from ..errors import DifferentiabilityError, UnsupportedFunctionError
from ..numpy.matrices import matrix
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import OUTPUTS, as_argument, carries_history, on_values, plain_values
from ..operators.numpy_api.dispatch import PYTHONS, dtypes_of_loop, in_loops_precision, ufunc_call
from ..tensor.creation import as_operand
from ..tensor.tensor import Tensor, from_array
from ..tensor.trace_hooks import composed, observed

# Options that affect only SciPy's speed, or which arrays it overwrites.
IDLE: Final = frozenset({"check_finite", "overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_ab_b"})


def numbers(value: Any) -> Any:
    """Return an argument as a tensor; tensors in nested lists are combined."""
    return as_operand(as_argument(value))


def floating(value: Any) -> Any:
    """Return an argument as a tensor of floating-point or complex dtype."""
    tensor = numbers(value)
    return tensor if tensor.dtype.kind in "fc" else tensor.astype(float)


def float_copy(value: Any) -> Any:
    """Return an argument, or the result of a function, as a floating-point tensor that shares no memory with it."""
    return numbers(value) * 1.0


def double_copy(value: Any) -> Any:
    """Return an argument as a new tensor in double precision, real or complex."""
    tensor = float_copy(value)
    return tensor.astype(complex if tensor.dtype.kind == "c" else float) if tensor.dtype.char in "efF" else tensor


def copied(value: Any) -> Any:
    """Return a new tensor for a plain array, and a scalar for a number, so that `x` is unchanged after `s = x; s += 1`.
    """
    array = np.array(value)
    return from_array(array if array.ndim else array[()])


def args_tuple(args: Any) -> tuple[Any, ...]:
    """Return the extra arguments that SciPy passes to a function, as a tuple."""
    return args if isinstance(args, tuple) else (args,)


def captures_history(function: Callable[..., Any], x: Any, args: tuple[Any, ...]) -> bool:
    """Return whether the result of a function has a history although its first argument has none."""
    return carries_history(args) or carries_history(function(copied(x), *args))


def vector(value: Any, function: str) -> Any:
    """Return a one-dimensional argument; SciPy versions differ in the treatment of further dimensions."""
    tensor = numbers(value)
    if tensor.ndim > 1:
        raise lost(
            f"scipy.{function}", f"for tensors with a history only vectors are supported, not {tensor.ndim} dimensions"
        )
    return tensor


def of_plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a SciPy function for the values of tensors, as tensors."""
    if len(args) > 1 and args[0] is args[1] and isinstance(args[0], Tensor):
        array = plain_values(args[0])  # one array: `csd` of a series with itself is real
        args = (array, array, *args[2:])
    try:
        return on_values(function, args, kwargs)
    except ValueError as error:
        if "read-only" not in str(error) and "not writeable" not in str(error):
            raise

    def of_copies(*values: Any, **options: Any) -> Any:
        copies = [value.copy() if type(value) is np.ndarray else value for value in values]
        return function(*copies, **{
            key: value.copy() if type(value) is np.ndarray and key not in OUTPUTS else value
            for key, value in options.items()
        })  # fmt: skip

    # Some compiled loops accept only writable arrays, although they do not write.
    return on_values(of_copies, args, kwargs)


def of_detached(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a SciPy function for the detached values of tensors; see `of_plain`."""
    options = {key: value if key in OUTPUTS else detached(value) for key, value in kwargs.items()}
    return of_plain(function, *map(detached, args), **options)


def single_like(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for functions whose results have single precision if their arguments do.

    The functions compute in double precision, since their constants are doubles. Results with a history are converted
    to single precision if NumPy's dtype of the arguments is single.

    Arguments:
        names: the relevant arguments, unless they are None or the name of a window.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            kinds = [_dtype_of(bound.arguments[name]) for name in names]
            dtype = np.result_type(*[kind for kind in kinds if kind is not None])
            return _in_single(found) if dtype.char in "fF" else found

        return call

    return decorate


def _dtype_of(value: Any) -> Any:
    """Return the dtype of an argument, or None for None, strings and tuples that describe something else."""
    is_named = isinstance(value, tuple) and any(isinstance(each, str) for each in value)
    if value is None or isinstance(value, str) or is_named:
        return None
    return numbers(value).dtype


def _in_single(found: Any) -> Any:
    """Return a result whose parts with a history are converted to single precision."""
    if isinstance(found, tuple):
        return tuple(map(_in_single, found))
    if not carries_history(found) or found.dtype.char not in "dD":
        return found
    return found.astype(np.complex64 if found.dtype.kind == "c" else np.float32)


class Accepted:
    """The forms of calls that SciPy's functions have accepted, so that they need not be run again to find errors.

    The form of a call consists of the shapes and dtypes of its arrays, and the values of all other arguments. Errors
    depend only on the form if the arrays have ordinary values: finite and not all equal.
    """

    MOST: Final = 256

    def __init__(self) -> None:
        self._forms: dict[Any, Any] = {}

    def has(self, form: Any) -> bool:
        """Return whether a call of this form was accepted."""
        return form is not None and form in self._forms

    def add(self, form: Any, precision: Any = None) -> None:
        """Record the form of a call, unless it is None, and the precision of its result; see `precision_of`."""
        if form is None:
            return
        if len(self._forms) >= self.MOST:
            self._forms = {}
        self._forms[form] = precision

    def precision(self, form: Any) -> Any:
        """Return the precision of the result of an accepted call."""
        return self._forms.get(form)


def precision_of(result: Any) -> Any:
    """Return whether a result, or each of several in a tuple, is single; None if it is not a floating-point array."""
    if type(result) is tuple:
        return tuple(map(precision_of, result))
    if not isinstance(result, (Tensor, np.ndarray, np.generic, float, complex)):
        return None
    kind = np.dtype(getattr(result, "dtype", float)).char
    return kind in "fF" if kind in "fdFD" else None


def in_precision(result: Any, precision: Any) -> Any:
    """Return a result with the precision of SciPy's; formulas in which constants or steps are doubles lose it."""
    if type(precision) is tuple and type(result) is tuple:
        return tuple(map(in_precision, result, precision))
    if not isinstance(precision, bool) or not isinstance(result, Tensor) or result.dtype.char not in "fdFD":
        return result
    kind = ("f" if precision else "d") if result.dtype.kind == "f" else ("F" if precision else "D")
    return _in_dtype(result, np.dtype(kind))


def form_of(value: Any) -> Any:
    """Return the hashable form of an argument, or None if it has none; see `Accepted`."""
    if isinstance(value, (Tensor, np.ndarray)):
        return value.shape, value.dtype.char
    if isinstance(value, (tuple, list)):
        forms = tuple(map(form_of, value)) if len(value) < 16 else (None,)
        return None if None in forms else (type(value), forms)
    if isinstance(value, dict):
        return form_of(tuple(value.items()))
    return (type(value), value) if value is None or isinstance(value, (str, int, float, bool, np.generic)) else None


def arrays_in(args: Iterable[Any]) -> list[Any]:
    """Return the plain values of arguments that are arrays or tensors."""
    return [plain_values(each) for each in args if isinstance(each, (Tensor, np.ndarray))]


def has_ordinary_values(array: Any) -> bool:
    """Return whether an array is real and its values along the last dimension are finite and clearly different."""
    if array.dtype.char not in "df" or not array.size:
        return False
    if not array.ndim:
        return bool(np.isfinite(array))
    low, high = array.min(-1), array.max(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((high - low > 1e-6 * np.maximum(np.abs(low), np.abs(high))).all())


def maker(
    module: ModuleType, made: dict[str, Any], *, is_checked: bool = False, accepted: Accepted | None = None,
    is_compared: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for the counterparts of a module's functions, which are written for tensors with a history.

    If no argument has a history, SciPy's own function runs, unless it lacks an option that was passed.

    Arguments:
        module: SciPy's module.
        made: the dict that receives the counterparts, by name.
        is_checked: whether SciPy's functions are run first to raise their errors, which is done for cheap ones.
        accepted: the calls known to need no such check, for functions whose errors do not depend on ordinary values.
        is_compared: whether SciPy's functions are run as well, so that its errors, its values outside the domain of the
            formulas, and its dtypes are used. Universal functions always are.
    """

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        if not hasattr(module, name):  # deprecated, and absent from the installed version of SciPy
            return function
        scipys = getattr(module, name)
        known = inspect.signature(function).parameters
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
        further = known.keys() - _parameters(scipys)
        ufunc = scipys if isinstance(scipys, np.ufunc) and scipys.nout == 1 else None

        def call(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(each, matrix) for each in args):  # SciPy converts matrices to arrays
                args = tuple([each.A if isinstance(each, matrix) else each for each in args])
            if ufunc is not None:
                if len(args) > ufunc.nin:
                    *args, kwargs["out"] = args  # type: ignore[assignment]
                if ("out" in kwargs or "where" in kwargs) and (carries_history(args) or carries_history(kwargs)):
                    return ufunc_call(call, ufunc)(*args, **kwargs)
            if not carries_history(args) and not carries_history(kwargs) and further.isdisjoint(kwargs):
                return of_plain(scipys, *args, **kwargs)
            is_new = not further.isdisjoint(kwargs)
            form = form_of((name, args, kwargs)) if accepted is not None and not is_new else None
            checked = None
            if is_checked and not is_new and not _is_accepted(accepted, form, args, kwargs):
                checked = scipys_result(scipys, args, kwargs)
            given = {key: value for key, value in kwargs.items() if key not in IDLE}
            unknown = [] if takes_all else sorted(given.keys() - known.keys())
            if unknown:
                options = ", ".join(unknown)
                raise lost(
                    f"{module.__name__}.{name}", f"options that are not supported for tensors with a history: {options}"
                )
            wanted = scipys_result(scipys, args, kwargs) if is_compared and ufunc is None and not is_new else None
            inputs = args if ufunc is None or ufunc.nin == 1 else in_loops_precision(ufunc, args)
            with _errors_of(scipys, args, kwargs, is_known=is_new or checked is not None):
                result = composed(name, function, inputs, given)
            if checked is not None and accepted is not None:
                _check_shapes(f"{module.__name__}.{name}", result, checked)
                accepted.add(form, precision_of(checked))
            if accepted is not None:
                result = in_precision(result, accepted.precision(form) if checked is None else precision_of(checked))
            if observed() is not None:
                return result if ufunc is None else _in_dtype(result, dtypes_of_loop(ufunc, args)[-1])
            if ufunc is not None:
                plain = [each if type(each) in PYTHONS else plain_values(as_argument(each)) for each in args]
                with np.errstate(all="ignore"):
                    wanted = ufunc(*plain)
            return _compared(f"{module.__name__}.{name}", result, wanted)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = function.__doc__
        made[name] = call
        return call

    return make


def _is_accepted(accepted: Accepted | None, form: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether a call need not be checked by SciPy; calls with functions as options are not."""
    if any(map(callable, kwargs.values())):
        return True
    return accepted is not None and accepted.has(form) and all(map(has_ordinary_values, arrays_in(args)))


@contextlib.contextmanager
def _errors_of(scipys: Callable[..., Any], args: Any, kwargs: dict[str, Any], *, is_known: bool) -> Iterator[None]:
    """Replace the errors of a counterpart by those that SciPy's function raises for the same arguments, if any."""
    try:
        yield
    except (UnsupportedFunctionError, DifferentiabilityError):
        raise
    except Exception:
        if not is_known:
            scipys_result(scipys, args, kwargs)
        raise


def _check_shapes(name: str, result: Any, wanted: Any) -> None:
    """Raise an error if a result, or one of several, has another shape than SciPy's."""
    if isinstance(wanted, (Tensor, np.ndarray)) and result.shape != wanted.shape:
        raise lost(name, f"its formula for tensors returns the shape {result.shape}, SciPy returns {wanted.shape}")
    if isinstance(wanted, tuple):
        for each, other in zip(result, wanted):
            _check_shapes(name, each, other)


def _compared(name: str, result: Any, wanted: Any) -> Any:
    """Return a result, or each of several, with the dtype of SciPy's and with its values at edges."""
    if isinstance(wanted, tuple):
        return tuple(_compared(name, *each) for each in zip(result, wanted, strict=True))
    if not isinstance(wanted, (Tensor, np.ndarray, np.generic)):
        return result
    wanted, result = plain_values(wanted), as_operand(result)
    if result.shape != wanted.shape and not wanted.size:  # no element of an empty array has chosen a formula
        result = result.broadcast_to(wanted.shape)
    return at_edges(name, _in_dtype(result, wanted.dtype), wanted)


def _in_dtype(result: Any, dtype: Any) -> Any:
    return result if result.dtype == dtype else result.astype(dtype)


def with_value_of(found: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Return a result with its own history and the value of a SciPy function, which may be more accurate."""
    if observed() is not None:
        return found
    with np.errstate(invalid="ignore"):
        return found + (function(*plain_values(args)) - plain_values(found))


def at_edges(name: str, result: Any, wanted: Any) -> Any:
    """Return a result with SciPy's values where these are infinite or NaN, as at poles and outside the domain.

    Raises:
        UnsupportedFunctionError: if the results differ elsewhere, so that the formula for tensors is not valid.
    """
    found = plain_values(result)
    close = 1e-4 if found.dtype.char in "fF" else 1e-6
    with np.errstate(invalid="ignore"):
        # The usual case, at a quarter of the cost of `isclose`; infinite values count as close to anything.
        if (np.abs(found - wanted) <= 1e-10 + close * np.abs(wanted)).all() and np.isfinite(wanted).all():
            return result
        other = ~np.isclose(found, wanted, rtol=close, atol=1e-10, equal_nan=True)
    if not np.any(other):
        return result
    if np.any(other & np.isfinite(wanted)):
        raise lost(name, "its formula for tensors with a history is not valid for these arguments; pass their detach()")
    return np.where(other, wanted, result)


def scipys_result(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the result of a SciPy function for plain values, without warnings; it raises for unsupported arguments."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return of_detached(function, *args, **kwargs)


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Return the names of a function's parameters, or nothing if it is compiled."""
    try:
        return set(inspect.signature(function).parameters)
    except ValueError:
        return set()


def registrar(made: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for counterparts that accept functions, which they adopt before calling them.

    Arguments:
        made: the dict that receives the counterparts, by name.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made[function.__name__] = function if isinstance(function, type) else adopting(function)
        return function

    return register


def named_in(made: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that stores functions in a dict, by name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made[function.__name__] = function
        return function

    return register


def make_constant(module: ModuleType, names: Iterable[str], made: dict[str, Any], doc: str) -> None:
    """Wrap functions without gradients, such as those that return positions or ranks.

    Arguments:
        module: SciPy's module.
        names: the names of the functions.
        made: the dict that receives the counterparts, by name.
        doc: the text of their docstrings after the name.
    """
    for name in names:
        made[name] = _constant(f"{module.__name__}.{name}", getattr(module, name), doc)


def _constant(name: str, scipys: Callable[..., Any], doc: str) -> Callable[..., Any]:
    run = functools.partial(of_detached, scipys)

    def call(*args: Any, **kwargs: Any) -> Any:
        return composed(name, run, args, kwargs)

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"`{name}`: {doc}"
    return call


def detached(value: Any) -> Any:
    """Return a value without its history; tensors in nested lists are combined if their shapes agree."""
    try:
        value = as_argument(value)
    except ValueError:
        return type(value)(map(detached, value))
    return value.detach() if hasattr(value, "detach") else value
