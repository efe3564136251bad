"""Wrappers of SciPy's functions for tensors; SciPy's own function runs if no history could be lost."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Final

import attrs
import numpy as np

from ..adoption import adopting
from ..errors import AutogradError, DifferentiabilityError, UnsupportedFunctionError
from ..numpy.matrices import matrix
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import (
    NESTED,
    OUTPUTS,
    as_argument,
    carries_history,
    in_layout,
    on_values,
    plain_values,
    rebuilt,
)  # fmt: skip
from ..operators.numpy_api.dispatch import PYTHONS, dtypes_of_loop, in_loops_precision, ufunc_call
from ..tensor.creation import as_operand, holds_tensor, without_operators
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor, from_array
from ..tensor.trace_hooks import composed, observed

# Options that affect only SciPy's speed, or which arrays it overwrites.
NEAR: Final = 1.5e-8  # the relative distance of a neighbouring point
IDLE: Final = frozenset({"check_finite", "overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_ab_b"})


def numbers(value: Any) -> Any:
    """Return an argument as a tensor; tensors in nested lists are combined."""
    return as_operand(as_argument(without_operators(value)))


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


def plain_value(value: Any) -> Any:
    """Return an argument, or the result of a function, without history: an array for a tensor."""
    if isinstance(value, NESTED):
        return rebuilt(value, list(map(plain_value, value))) if holds_tensor(value) else value
    found = as_argument(value)
    return plain_values(found.detach() if isinstance(found, Tensor) else found)


def args_tuple(args: Any) -> tuple[Any, ...]:
    """Return the extra arguments that SciPy passes to a function, as a tuple."""
    return args if isinstance(args, tuple) else (args,)


def call_nearby(function: Callable[..., Any], x: Any, args: tuple[Any, ...] = ()) -> None:
    """Call a function at a neighbouring point, as finite differences do.

    Functions often cache the result for the last argument. This call replaces it, so that the next call at `x` computes
    its result from the tensor that it is given.
    """
    with no_grad(), np.errstate(all="ignore"), contextlib.suppress(Exception):  # it may be undefined there
        function(copied(x + NEAR * np.maximum(1.0, np.abs(x))), *args)


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


def of_plain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
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


def of_detached(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a SciPy function for the detached values of tensors; see `of_plain`."""
    options = {key: value if key in OUTPUTS else detached(value) for key, value in kwargs.items()}
    values = list(map(detached, args))
    if len(args) > 1 and args[0] is args[1]:
        values[1] = values[0]
    return of_plain(function, *values, **options)


class Outcome(tuple[Any, ...]):
    """A named result that can be unpacked, with further attributes that are not unpacked.

    Arguments:
        named: the unpacked results, by name.
        more: the further attributes.
    """

    def __new__(cls, named: dict[str, Any], more: dict[str, Any] | None = None) -> Outcome:
        """Store the results in both forms."""
        self = super().__new__(cls, tuple(named.values()))
        self.__dict__.update(named, **(more or {}))
        return self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this result has no attribute {name}; it has {', '.join(self.__dict__)}")


def by_parts(function: Callable[..., Any], result: Any, *others: Any) -> Any:
    """Apply a function to each part of a result, together with the corresponding parts of other results.

    Parts that another result does not have are passed as None.
    """
    if isinstance(result, Outcome):
        names = list(result.__dict__)
        parts = {
            name: by_parts(function, result.__dict__[name], *[getattr(other, name, None) for other in others])
            for name in names
        }
        return Outcome({name: parts.pop(name) for name in names[: len(result)]}, parts)
    if type(result) is not tuple:
        return function(result, *others)
    padded = [other if isinstance(other, tuple) else (None,) * len(result) for other in others]
    return tuple(by_parts(function, *each) for each in zip(result, *padded))


class Accepted:
    """The forms of calls that SciPy's functions have accepted, so that they need not be run again to find errors.

    The form of a call consists of the shapes and dtypes of its arrays, and the values of all other arguments. Errors
    depend only on the form if the arrays have ordinary values: finite and not all equal.

    Arguments:
        by_value: whether errors depend on other values; if not, calls in traces, which read no values, are accepted.
    """

    MOST: Final = 256

    def __init__(self, *, by_value: bool = True) -> None:
        self._forms: dict[Any, Any] = {}
        self.by_value: Final = by_value

    def has(self, form: Any) -> bool:
        """Return whether a call of this form was accepted."""
        return form is not None and form in self._forms

    def add(self, form: Any, result: Any = None) -> None:
        """Record the form of a call, unless it is None, and the precision and memory layout of its result."""
        if form is None:
            return
        if len(self._forms) >= self.MOST:
            self._forms = {}
        self._forms[form] = by_parts(Kind.of, result)

    def alike(self, form: Any, result: Any) -> Any:
        """Return the result of an accepted call in the precision and memory layout of the first such call.

        Formulas in which constants or steps are doubles lose single precision.
        """
        return by_parts(lambda part, kind: part if kind is None else kind.applied(part), result, self._forms.get(form))


@attrs.frozen
class Kind:
    """The dtype and the memory layout of a result.

    Arguments:
        dtype: the dtype, floating-point or complex.
        order: "C" or "F" for matrices with that layout, None for other arrays.
    """

    dtype: np.dtype[Any]
    order: str | None

    @classmethod
    def of(cls, result: Any) -> Kind | None:
        """Return the kind of an array or number, or None for other objects."""
        if not isinstance(result, (Tensor, np.ndarray, np.generic, float, complex)):
            return None
        array = result._array if isinstance(result, Tensor) else np.asarray(result)  # reads no values of a trace
        is_c, is_f = array.flags.c_contiguous, array.flags.f_contiguous
        return cls(array.dtype, None if is_c == is_f else "C" if is_c else "F") if array.dtype.kind in "fc" else None

    def applied(self, result: Any) -> Any:
        """Return a result in this precision and layout; whether it is complex may depend on values."""
        if not isinstance(result, Tensor) or result.dtype.kind not in "fc":
            return result
        real = np.zeros(0, self.dtype).real.dtype
        return in_layout(
            _in_dtype(result, np.result_type(real, np.complex64) if result.dtype.kind == "c" else real), self.order
        )


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
        is_checked: whether SciPy's functions are run first, so that their errors and dtypes are used, and results that
            differ are refused.
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
        full_name = f"{module.__name__}.{name}"

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
            if is_checked and not is_new:
                checked = _checked(scipys, accepted, form, args, kwargs)
            given = {key: value for key, value in kwargs.items() if key not in IDLE}
            if not takes_all:
                _check_options(full_name, given.keys() - known.keys())
            wanted = scipys_result(scipys, args, kwargs) if is_compared and ufunc is None and not is_new else None
            inputs = args if ufunc is None or ufunc.nin == 1 else in_loops_precision(ufunc, args)
            with _errors_of(full_name, scipys, args, kwargs, is_new=is_new, is_checked=checked is not None):
                result = or_missing(lambda: composed(name, function, inputs, given), checked, (*args, *kwargs.values()))
            result = _settled(full_name, result, checked, accepted, form)
            if observed() is not None:
                return result if ufunc is None else _in_dtype(result, dtypes_of_loop(ufunc, args)[-1])
            if ufunc is not None:
                plain = [each if type(each) in PYTHONS else plain_values(as_argument(each)) for each in args]
                with np.errstate(all="ignore"):
                    wanted = ufunc(*plain)
            return _compared(full_name, result, wanted)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = function.__doc__
        made[name] = call
        return call

    return make


def _checked(scipys: Callable[..., Any], accepted: Accepted | None, form: Any, args: Any, kwargs: Any) -> Any:
    """Return SciPy's result, or None for an accepted call and for arguments that are functions."""
    if any(map(callable, (*args, *kwargs.values()))):
        return None
    if observed() is not None and accepted is not None and not accepted.by_value:
        return None
    if accepted is not None and accepted.has(form) and all(map(has_ordinary_values, arrays_in(args))):
        return None
    if observed() is not None:  # a trace does not depend on the result
        return contextvars.Context().run(scipys_result, scipys, args, kwargs)
    return scipys_result(scipys, args, kwargs)


def _settled(name: str, result: Any, checked: Any, accepted: Accepted | None, form: Any) -> Any:
    """Return a result that is like SciPy's in this call, if that is known, or in an earlier one of the same form."""
    if checked is None:
        return result if accepted is None else accepted.alike(form, result)
    result = like(name, result, checked)
    if accepted is not None:
        accepted.add(form, result)
    return result


def _check_options(name: str, unknown: Iterable[str]) -> None:
    """Raise an error if there are options that the counterpart lacks."""
    options = ", ".join(sorted(unknown))
    if options:
        raise lost(name, f"options that are not supported for tensors with a history: {options}")


@contextlib.contextmanager
def _errors_of(
    name: str, scipys: Callable[..., Any], args: Any, kwargs: dict[str, Any], *, is_new: bool, is_checked: bool
) -> Iterator[None]:
    """Replace the errors of a counterpart by those that SciPy's function raises for the same arguments, if any.

    Raises:
        UnsupportedFunctionError: if SciPy's function accepts arguments, none of them a function, of other shapes or
            types than the counterpart.
    """
    try:
        yield
    except (UnsupportedFunctionError, DifferentiabilityError):
        raise
    except Exception as error:
        if not is_new and not is_checked:
            scipys_result(scipys, args, kwargs)
        if is_new or isinstance(error, AutogradError) or any(map(callable, (*args, *kwargs.values()))):
            raise
        raise lost(name, "its formula for tensors does not accept these arguments; pass their detach()") from error


def or_missing(compute: Callable[[], Any], checked: Any, args: Any) -> Any:
    """Return the result of a formula, or SciPy's result if there is no formula for it.

    It has no elements, and the histories of all arguments; or it is NaN, since there are too few values.

    Arguments:
        compute: a function that evaluates the formula.
        checked: SciPy's result, or None if it is unknown.
        args: the arguments.
    """
    if isinstance(checked, (Tensor, np.ndarray)) and not checked.size and checked.dtype.kind in "fc":
        return sum((each.sum() * 0.0 for each in _tensors_in(args)), numbers(checked))
    try:
        return compute()
    except (ArithmeticError, LookupError, ValueError):
        first = checked[0] if isinstance(checked, tuple) else checked
        if first is None or not np.isnan(plain_values(first)).all():
            raise
        return checked


def _tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in arguments, at any depth."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors_in(each)


def like(name: str, result: Any, wanted: Any) -> Any:
    """Return a result with the dtypes of SciPy's result.

    Raises:
        UnsupportedFunctionError: if its shape or values differ from SciPy's, or if it is complex and SciPy's is not.
    """
    return by_parts(functools.partial(_like, name), result, wanted)


def _like(name: str, result: Any, wanted: Any) -> Any:
    kind = Kind.of(wanted)
    result = as_operand(result) if isinstance(result, (np.ndarray, np.generic)) else result
    if kind is None or not isinstance(result, Tensor):
        return result
    if np.shape(wanted) != result.shape:
        raise lost(name, f"its formula for tensors returns the shape {result.shape}, SciPy returns {np.shape(wanted)}")
    if result.dtype.kind == "c" and kind.dtype.kind == "f":
        raise lost(name, "its formula for tensors returns complex numbers, SciPy returns real ones")
    if observed() is None and _differs(plain_values(result), np.asarray(plain_values(wanted))):
        raise lost(name, "its formula for tensors with a history is not valid for these arguments; pass their detach()")
    return kind.applied(_in_dtype(result, kind.dtype) if result.dtype.kind in "fc" else result)


def _differs(found: Any, wanted: Any) -> bool:
    """Return whether two arrays differ by more than errors of rounding, where both are finite."""
    both = np.isfinite(found) & np.isfinite(wanted)
    sizes = np.abs(wanted[both])
    return bool(sizes.size) and bool((np.abs(found[both] - wanted[both]) > 1e-2 * sizes.max() + 1e-8).any())


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
    """Return a value without its history, and without dimensions as a scalar, which options of SciPy require."""
    if isinstance(value, Tensor):
        value = value.detach()
        return value if value.ndim else value[()]
    return rebuilt(value, [detached(each) for each in value]) if isinstance(value, NESTED) else value
