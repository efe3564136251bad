"""The runtime of Python programs: functions of arrays, and of numbers if the result may be infinite or NaN."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...operators.codegen.generate import ARRAY_FUNCTIONS
from ...tensor.indices import add_at
from .scalar_runtime import FUNCTIONS, MATH, wrapped

__all__ = ["CAREFUL", "PREFIX", "VECTOR_FUNCTIONS"]

Array = np.ndarray[Any, Any]
PREFIX: Final = "np_"
ALIASES: Final = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "atan2": "arctan2", "lgamma": "gammaln",
}
# Functions that formulas call, or that SciPy has.
OF_FORMULAS: Final = (
    "flowing", "sigmoid", "nonzero_or_one", "over_square", "power_slope", "power_log", "erf", "erfc", "lgamma",
    "digamma", "less_exponent",
)


def window(base: Array, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a window of a flat array."""
    if 0 in sizes:
        return np.empty(sizes, base.dtype)
    itemsize = base.itemsize
    return np.ndarray(sizes, base.dtype, base, offset * itemsize, tuple([stride * itemsize for stride in strides]))


def add_overlapping(
    base: Array, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], value: Any
) -> None:
    """Add to a window that may overlap itself: what comes to one place adds up."""
    if 0 in sizes:
        return
    add_at(base, window(np.arange(base.size), offset, sizes, strides), value)


def _vector_functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Any] = {}
    for name in (
        "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "hypot", "copysign", "abs", "floor", "ceil", "trunc",
        "rint", "square", "sign", "maximum", "minimum", "fmax", "fmin", "power", "exp2", "logaddexp", "floor_divide",
        "where", "logical_and", "logical_or", "logical_not", "remainder", "isfinite",
    ):
        found[name] = getattr(np, ALIASES.get(name, name))
    for name in OF_FORMULAS:
        found[name] = functools.partial(_called_with_arrays, ALIASES.get(name, name))
    found["finite_or_zero"] = lambda a: np.where(np.isfinite(a), a, 0.0)
    found["tie_hit"] = lambda a, extremum: np.add(a == extremum, a != a, dtype=float)
    found["negative"] = np.negative
    found["bool"] = lambda a: np.asarray(a, bool)
    for name in ("add", "multiply", "subtract", "divide"):
        found[name] = getattr(np, name)
    found["as_float"] = lambda a: np.asarray(a, float)
    found |= {"as_integer": _as_integer, "quotient": np.floor_divide, "modulo": np.remainder, "wrapped": _wrapped}
    found["place"] = _place
    found["log_of_sum"] = np.errstate(divide="ignore")(np.log)
    found["exp_share"] = _exp_share
    found["rounded"] = lambda a: np.asarray(np.asarray(a, np.float32), float)
    return {PREFIX + name: function for name, function in found.items()} | {
        "window": window, "add_overlapping": add_overlapping, "add_at": add_at, "add_reduce": np.add.reduce,
        "greatest": np.maximum.reduce, "least": np.minimum.reduce, "broadcast_to": np.broadcast_to,
        "places_at": places_at, "empty": lambda shape, name: np.empty(shape),
    }


def _exp_share(a: Any, total: Any, infinite: Any) -> Any:
    """Return the share of exp(a) in the sum of exponentials whose logarithm is `total`."""
    shares = np.exp(a - np.where(np.isinf(total), 0.0, total))
    shares = np.where(np.isinf(total), 0.0, shares)
    return np.where(a == np.inf, np.where(infinite == 1.0, 1.0, np.nan), shares)


def _as_integer(a: Any) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(a).astype(np.int64)


def _wrapped(a: Any) -> Any:
    """Wrap a Python integer to 64 bits; integer arrays wrap around in NumPy."""
    return wrapped(a) if type(a) is int else a


def _place(a: Any, extent: int) -> Array:
    """Return indices counted from the first element; -1 if they are out of range."""
    counted = np.where(a < 0, a + extent, a)
    return np.where((counted >= 0) & (counted < extent), counted, -1)


def places_at(offset: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return the flat positions of the elements of a window whose offset may be an array."""
    found = np.asarray(offset)
    for dim, (n, stride) in enumerate(zip(sizes, strides)):
        if stride:
            found = found + np.arange(0, n * stride, stride).reshape(-1, *(1,) * (len(sizes) - 1 - dim))
    return np.broadcast_to(found, sizes)


def _called_with_arrays(name: str, *given: Any) -> Any:
    """Return a function of formulas, of arrays and of numbers."""
    return getattr(ARRAY_FUNCTIONS, name)(*[np.asarray(each) for each in given])


VECTOR_FUNCTIONS: Final = _vector_functions()


def _careful(function: Callable[..., Any], of_arrays: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numbers that gives inf or nan where NumPy does."""

    def careful(*given: float) -> Any:
        try:
            return function(*given)
        except (ZeroDivisionError, OverflowError, ValueError):
            return float(of_arrays(*[np.float64(each) for each in given]))

    return careful


CAREFUL: Final = {"divide": _careful(operator.truediv, np.divide)} | {
    name: _careful(function, VECTOR_FUNCTIONS[PREFIX + name])
    for name, function in [*MATH.items(), *[(function.__name__, function) for function in FUNCTIONS]]
    if PREFIX + name in VECTOR_FUNCTIONS
}
