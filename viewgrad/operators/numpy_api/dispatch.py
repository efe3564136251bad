"""The dispatch of NumPy's ufuncs and functions to operators, with options such as `out=` and `where=`.

The options of the operators have NumPy's names; differences (the names of the arrays, `out=`, `dtype=`) are translated
here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np

from ...errors import UnsupportedTypeError
from ...tensor.adapters import AdapterTable, meaning
from ...tensor.creation import as_operand, zeros
from ...tensor.tensor import FUNCTIONS, UFUNCS, Tensor
from ...tensor.trace_hooks import array_of
from .conversion import in_layout

# NumPy options that have another name here.
RENAMED: Final = {"a_min": "min", "a_max": "max"}
# Options that do not influence the values returned by an operator.
IDLE: Final = frozenset({"kind", "stable", "casting", "optimize", "subok", "overwrite_input"})


# The parameters of compiled functions that have more parameters than the corresponding operators.
COMPILED: Final[dict[str, Callable[..., Any]]] = {
    "concatenate": lambda arrays, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "dot": lambda a, b, out=None: None,
    "where": lambda condition, x=None, y=None, /: None,
}


JOINING: Final = (np.concatenate, np.stack)  # functions that apply `casting=` to `out=`


def declare(numpy: Any, function: Callable[..., Any]) -> None:
    """Declare that an operator implements a NumPy function, a ufunc, or a ufunc method given as `(ufunc, "reduce")`.

    See `viewgrad.tensor.adapters.AdapterTable`.
    """
    for table, key, adapter in _adapters(numpy, function):
        table.declare(key, adapter)


def register(numpy: Any, function: Callable[..., Any]) -> None:
    """Register `function` as the adapter of a NumPy function, a ufunc, or a ufunc method given as `(ufunc, "reduce")`.
    """
    for table, key, adapter in _adapters(numpy, function):
        table[key] = adapter


def _adapters(numpy: Any, function: Callable[..., Any]) -> Iterator[tuple[AdapterTable, Any, Callable[..., Any]]]:
    if isinstance(numpy, tuple):
        yield UFUNCS, numpy, ufunc_method(function, *numpy)
    elif isinstance(numpy, np.ufunc):
        call = ufunc_call(function if _promotes_as_numpy(numpy) else _in_loops_precision(function, numpy), numpy)
        yield UFUNCS, (numpy, "__call__"), call
        if numpy.nin == 2 and numpy.signature is None:
            yield UFUNCS, (numpy, "outer"), ufunc_outer(call)
    else:
        yield FUNCTIONS, numpy, array_function(function, numpy)


def in_numpy_names(options: dict[str, Any]) -> dict[str, Any]:
    """Translate the options that PyTorch calls `dim` and `keepdim` to NumPy's names.

    Raises:
        TypeError: if an option is given by both names.
    """
    for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
        if theirs in options and ours in options:
            raise TypeError(f"{theirs} and {ours} are two names for one option: pass only one")
    return {{"dim": "axis", "keepdim": "keepdims"}.get(name, name): value for name, value in options.items()}


def write_out(result: Tensor, out: Any, name: str, casting: Any = "same_kind") -> Tensor:
    """Write `result` to the argument `out=`, under NumPy's conditions."""
    check_out(result.dtype, out, name, casting)
    if result.shape != out.shape:
        raise ValueError(f"{name}: out= has shape {out.shape}, but the result has shape {result.shape}")
    written: Tensor = out.copy_(result)
    return written


def require_tensor(out: Any, name: str) -> None:
    """Raise if the target of a tensor result is not a tensor."""
    if not isinstance(out, Tensor):
        error = UnsupportedTypeError if isinstance(out, np.ndarray) else TypeError
        raise error(
            f"{name} of tensors cannot write to a plain array, which has no history; create the array with "
            "zeros(), empty() or array() of viewgrad.numpy instead of numpy"
        )


def check_out(dtype: Any, out: Any, name: str, casting: Any = "same_kind") -> None:
    require_tensor(out, name)
    if not np.can_cast(dtype, out.dtype, casting):
        raise TypeError(f"{name}: a result of {dtype} cannot be written to out= of {out.dtype}")


def check_cast(source: Any, target: Any, casting: Any, name: str) -> None:
    """Raise if a casting rule does not allow the conversion from one dtype to another."""
    if not np.can_cast(source, target, casting):
        raise TypeError(f"{name} cannot cast {source} to {np.dtype(target)} by the rule {casting!r}")


def of_dtype(result: Any, dtype: Any) -> Any:
    """Return the result in the requested dtype; for small integers the operator may have widened it."""
    return result if dtype is None or result.dtype == np.dtype(dtype) else result.astype(dtype)


# -- ufuncs ------------------------------------------------------------------------------------------------------------

PYTHONS: Final = frozenset({int, float, complex})  # types whose dtype depends on the other arguments
SINGLE: Final = frozenset(map(np.dtype, ("float16", "float32", "complex64")))


def dtypes_of_loop(ufunc: np.ufunc, inputs: Any) -> tuple[Any, ...]:
    """Return the dtypes of the arguments and the result of the compiled loop that a ufunc selects."""
    kinds = [type(each) if type(each) in PYTHONS else as_operand(each).dtype for each in inputs]
    return ufunc.resolve_dtypes((*kinds, None))


def _promotes_as_numpy(ufunc: np.ufunc) -> bool:
    """Return whether dtypes are promoted as by NumPy's arithmetic, which SciPy's functions of several arguments do not.
    """
    return ufunc.nin == 1 or ufunc.nout > 1 or getattr(np, ufunc.__name__, None) is ufunc


def in_loops_precision(ufunc: np.ufunc, inputs: Any) -> Any:
    """Return the inputs, converted from single to double precision where the loop that a ufunc selects has doubles.

    SciPy's loops for `beta(x, 2)` and `kn(2, x)` do, whereas operators compute in the precision of their tensors.
    """
    if not any(getattr(each, "dtype", None) in SINGLE for each in inputs):
        return inputs
    kinds = dtypes_of_loop(ufunc, inputs)
    if kinds[-1].char not in "dD":
        return inputs
    return tuple([
        as_operand(each).astype(kind) if getattr(each, "dtype", None) in SINGLE else each
        for each, kind in zip(inputs, kinds)
    ])  # fmt: skip


def _in_loops_precision(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*inputs: Any) -> Any:
        return function(*in_loops_precision(ufunc, inputs))

    return call


def ufunc_call(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[..., Any]:
    """Wrap an operator to support a ufunc's `out=`, `where=` and `dtype=`."""
    name = ufunc.__name__

    def call(*inputs: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        if len(inputs) > ufunc.nin:
            *inputs, out = inputs  # type: ignore[assignment]
        casting = "same_kind"
        if options:
            casting = options.get("casting", casting)
            np.can_cast(float, float, casting)  # raises for unknown casting rules
            inputs = converted(ufunc, inputs, **options)  # type: ignore[assignment]
        if out is None:
            if where is True:
                result = function(*inputs)
                return in_layout(result, options["order"]) if "order" in options else result
            out = unwritten(ufunc, inputs, where)
        if where is True:
            result = function(*inputs)
            if isinstance(out, Tensor) and result.shape != out.shape:
                result = result.broadcast_to(out.shape)
            return write_out(result, out, f"np.{name}", casting)
        check_out(out.dtype, out, f"np.{name}")
        # Only selected elements are computed, since the operator or its gradient may be undefined elsewhere.
        chosen_by = array_of(where, "where=") if isinstance(where, Tensor) else where
        mask = np.array(np.broadcast_to(chosen_by, out.shape), bool)
        result = function(*(chosen(value, mask) for value in inputs))
        check_out(result.dtype, out, f"np.{name}", casting)
        out[mask] = result
        return out

    call.means = meaning(function)  # type: ignore[attr-defined]
    return call


def converted(ufunc: np.ufunc, inputs: Any, dtype: Any = None, casting: str = "same_kind", **others: Any) -> list[Any]:
    """Convert the inputs to the dtypes in which a ufunc computes, given its `dtype` or `signature`.

    Raises:
        TypeError: for an option that does not apply to tensors, or a dtype that the inputs cannot be cast to.
    """
    unknown = others.keys() - {"order", "subok"}
    if unknown:
        options = ", ".join(sorted(unknown))
        raise TypeError(f"np.{ufunc.__name__} of tensors supports out=, where= and dtype=, not {options}")
    if dtype is None:
        return list(inputs)
    tensors = [as_operand(value, True) for value in inputs]
    wanted = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    given = tuple(tensor.dtype for tensor in tensors) + (None,) * ufunc.nout
    computed = ufunc.resolve_dtypes(given, signature=wanted, casting=casting)  # type: ignore[arg-type]
    return [tensor if tensor.dtype == kind else tensor.astype(kind) for tensor, kind in zip(tensors, computed)]


def unwritten(ufunc: np.ufunc, inputs: Any, where: Any) -> Tensor:
    """Return the array that a ufunc writes to without `out=`: zeros, since NumPy leaves masked elements undefined."""
    tensors = [as_operand(value, True) for value in inputs]
    shape = np.broadcast_shapes(np.shape(where), *(tensor.shape for tensor in tensors))
    given = tuple(tensor.dtype for tensor in tensors) + (None,) * ufunc.nout
    return zeros(shape, dtype=ufunc.resolve_dtypes(given)[-1])


def chosen(value: Any, mask: np.ndarray[Any, Any]) -> Any:
    """Return the elements of an operand where `mask` is true."""
    if type(value) in (bool, int, float, complex):
        return value
    value = as_operand(value)
    return value.broadcast_to(mask.shape)[mask] if value.ndim else value


def ufunc_outer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply an operator to every pair of elements of two tensors."""

    def outer(first: Any, second: Any, **options: Any) -> Any:
        first, second = as_operand(first), as_operand(second)
        return function(first.reshape(first.shape + (1,) * second.ndim), second, **options)

    return outer


def ufunc_method(function: Callable[..., Any], ufunc: np.ufunc, kind: str) -> Callable[..., Any]:
    """Wrap a reduction or cumulative reduction with its defaults as a ufunc method."""

    def method(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        array = as_operand(array)
        if kind == "accumulate" and not array.ndim:
            raise TypeError("cannot accumulate on a scalar")
        if kind == "accumulate" and axis is None:
            if array.ndim != 1:
                raise TypeError(f"np.{ufunc.__name__}.accumulate requires a single axis")
            axis = 0
        result = of_dtype(function(array if dtype is None else array.astype(dtype), axis=axis, **options), dtype)
        return result if out is None else write_out(result, out, f"np.{ufunc.__name__}.{kind}")

    return method


# -- functions ---------------------------------------------------------------------------------------------------------


@functools.cache
def numpy_parameters(numpy: Any) -> list[inspect.Parameter] | None:
    """Return the parameters of a NumPy function, or None if they are unknown."""
    try:
        return list(inspect.signature(numpy).parameters.values())
    except ValueError:  # compiled functions have signatures since NumPy 2.4
        if numpy.__name__ not in COMPILED:
            return None
        return list(inspect.signature(COMPILED[numpy.__name__]).parameters.values())


def renamed_parameters(theirs: Iterable[inspect.Parameter], ours: Collection[str]) -> dict[str, str]:
    """Return the library's names for NumPy parameters with different names."""
    arrays = [parameter.name for parameter in theirs if parameter.default is inspect.Parameter.empty]
    return {given: own for given, own in zip(arrays, ours) if given not in ours} | RENAMED


def _converted(operands: Any, dtype: Any, casting: Any, name: str) -> Any:
    """Convert an operand, or a list of operands, to another dtype if the casting rule allows it."""
    if not isinstance(operands, (list, tuple)):
        return as_operand(operands).astype(dtype)
    tensors = [as_operand(item) for item in operands]
    for tensor in tensors:
        check_cast(tensor.dtype, dtype, casting, name)
    return [tensor.astype(dtype) for tensor in tensors]


def array_function(function: Callable[..., Any], numpy: Any) -> Callable[..., Any]:
    """Wrap an operator with a NumPy function's parameter names and its `out=` and `dtype=`."""
    name = f"np.{numpy.__name__}"
    theirs = numpy_parameters(numpy)
    if theirs is None:
        return function
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters.values()):
        return function
    ours = list(parameters)
    defaults = {parameter.name: parameter.default for parameter in theirs}
    renamed = renamed_parameters(theirs, ours)
    names = [renamed.get(parameter.name, parameter.name) for parameter in theirs]
    alike = next((i for i, (a, b) in enumerate(zip(names, ours)) if a != b), min(len(names), len(ours)))

    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) <= alike:
            return function(*args)
        if len(args) > len(names):
            raise TypeError(f"{name} takes at most {len(names)} positional arguments")
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            given[renamed.get(key, key)] = value
        out, dtype = (None if key in ours else given.pop(key, None) for key in ("out", "dtype"))
        for key in [key for key in given if key not in ours]:
            value = given.pop(key)
            if key == "casting":
                np.can_cast(float, float, value)  # raises for unknown casting rules
            if key not in IDLE and value is not defaults.get(key, IDLE):
                supported = ", ".join(own for own in names if own in ours or own in ("out", "dtype"))
                raise TypeError(f"{name} of tensors supports the options {supported}, not {key}")
        if dtype is not None and ours[0] in given:
            given[ours[0]] = _converted(given[ours[0]], dtype, kwargs.get("casting", "same_kind"), name)
        if out is not None and dtype is not None and numpy in JOINING:
            raise TypeError(f"{numpy.__name__}() takes only one of out= and dtype=")
        result = of_dtype(function(**given), dtype)
        casting = kwargs.get("casting", "same_kind") if numpy in JOINING else "same_kind"
        return result if out is None else write_out(result, out, name, casting)

    call.means = function  # type: ignore[attr-defined]
    return call
