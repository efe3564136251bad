"""The runtime of Python programs: functions of arrays, and functions of numbers that may return infinity or NaN."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...operators.language.namespace import ARRAY_FUNCTIONS
from ...tensor.indices import add_at
from ...type_aliases import Array
from .scalar_runtime import FUNCTIONS, MATH, block_sum, pairwise_sum, wrapped

PREFIX: Final = "np_"
ALIASES: Final = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "atan2": "arctan2", "lgamma": "gammaln",
}


def window(base: Array, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a window of a flat array."""
    if 0 in sizes:
        return np.empty(sizes, base.dtype)
    itemsize = base.itemsize
    return np.ndarray(sizes, base.dtype, base, offset * itemsize, tuple([stride * itemsize for stride in strides]))


def add_overlapping(
    base: Array, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], value: Any
) -> None:
    """Add to a window whose elements may share memory; repeated elements accumulate."""
    if 0 in sizes:
        return
    add_at(base, window(np.arange(base.size), offset, sizes, strides), value)


def _as_integer(a: Any) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(a).astype(np.int64)


def _wrapped(a: Any) -> Any:
    """Wrap a Python integer to 64 bits, since integer arrays wrap around in NumPy."""
    return wrapped(a) if type(a) is int else a


def _wrapped_indices(a: Any, extent: int) -> Array:
    """Return indices counted from the first element, or -1 if they are out of range."""
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
    """Return a function used by formulas that accepts both arrays and numbers."""
    return getattr(ARRAY_FUNCTIONS, name)(*[np.asarray(each) for each in given])


# The functions of numbers with a counterpart for arrays: all except block sums.
SCALAR_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    name: function
    for name, function in {**MATH, **{function.__name__: function for function in FUNCTIONS}}.items()
    if callable(function) and function not in (block_sum, pairwise_sum)
}
# Functions of numbers whose counterpart for arrays is neither a ufunc of the same name nor a function used by formulas.
OWN: Final[dict[str, Callable[..., Any]]] = {
    "as_float": lambda a: np.asarray(a, float),
    "as_integer": _as_integer,
    "finite_or_zero": lambda a: np.where(np.isfinite(a), a, 0.0),
    "log_of_sum": np.errstate(divide="ignore")(np.log),
    "modulo": np.remainder,
    "wrapped_index": _wrapped_indices,
    "quotient": np.floor_divide,
    "rounded": lambda a: np.asarray(np.asarray(a, np.float32), float),
    "tie_hit": lambda a, extremum: np.add(a == extremum, a != a, dtype=float),
    "wrapped": _wrapped,
}


def _of_arrays(name: str) -> Callable[..., Any]:
    """Return the array version of a function of numbers."""
    if name in OWN:
        return OWN[name]
    numpy = getattr(np, ALIASES.get(name, name), None)
    return numpy if isinstance(numpy, np.ufunc) else functools.partial(_called_with_arrays, ALIASES.get(name, name))


VECTOR_FUNCTIONS: Final = {
    **{PREFIX + name: _of_arrays(name) for name in SCALAR_FUNCTIONS},
    **{
        PREFIX + name: getattr(np, name)
        for name in ("abs", "add", "divide", "logical_and", "logical_not", "logical_or", "multiply", "negative",
                     "subtract", "where")
    },
    f"{PREFIX}bool": lambda a: np.asarray(a, bool),
    "window": window, "add_overlapping": add_overlapping, "add_at": add_at, "add_reduce": np.add.reduce,
    "greatest": np.maximum.reduce, "least": np.minimum.reduce, "broadcast_to": np.broadcast_to,
    "places_at": places_at, "empty": lambda shape, name: np.empty(shape),
}  # fmt: skip


def _careful(function: Callable[..., Any], of_arrays: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of numbers so that it returns inf or nan where NumPy does."""

    def careful(*given: float) -> Any:
        try:
            return function(*given)
        except (ZeroDivisionError, OverflowError, ValueError):
            return float(of_arrays(*[np.float64(each) for each in given]))

    return careful


CAREFUL: Final = {"divide": _careful(operator.truediv, np.divide)} | {
    name: _careful(function, VECTOR_FUNCTIONS[PREFIX + name]) for name, function in SCALAR_FUNCTIONS.items()
}
