"""Conversion between tensors and arrays at the boundary to NumPy's functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from ...tensor.creation import as_its_array, from_numpy, holds_tensor, joined
from ...tensor.escapes import would_lose_history
from ...tensor.tensor import (
    ON_UNSUPPORTED,
    Tensor,
    adds_meaning,
    from_array,
    from_new_array,
    is_numeric_array,
    is_scalar,
)
from ...tensor.trace_hooks import array_of

NESTED: Final = (list, tuple)
OUTPUTS: Final = ("out", "output")  # the names of output arguments in NumPy's and SciPy's functions
STRINGS: Final = frozenset("SUT")  # kinds of dtypes to which even values with a history are converted


def in_layout(tensor: Tensor, order: str | None) -> Tensor:
    """Return a tensor in a memory layout: the tensor itself if it already is, and a copy with its history otherwise.

    Arguments:
        tensor: the tensor.
        order: "C" for row-major, "F" for column-major, "A" for either, "K" or None for any layout.
    """
    if order is not None and not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    order = order and order.upper()
    if order == "F":
        if tensor._array.flags.f_contiguous:
            return tensor
        columns: Tensor = tensor.transpose().contiguous().transpose()
        return columns
    return tensor.contiguous() if order == "C" or (order == "A" and not tensor._array.flags.f_contiguous) else tensor


def carries_history(value: Any) -> bool:
    """Return whether a history would be lost if the tensors in `value`, at any depth, became plain arrays."""
    if isinstance(value, Tensor):
        return would_lose_history(value)
    if isinstance(value, NESTED):
        return any(map(carries_history, value))
    return isinstance(value, dict) and any(map(carries_history, value.values()))


def plain_values(value: Any) -> Any:
    """Return `value` with the tensors in it, at any depth, replaced by read-only arrays."""
    if isinstance(value, Tensor):
        array = array_of(value, "a choice by values")  # their values would be constants of a trace
        if is_scalar(value):
            return array[()]  # NumPy's scalar, even in a traced program
        if isinstance(array, np.ndarray):
            array = array.view()
            array.flags.writeable = False
        return array
    if isinstance(value, NESTED):
        return rebuilt(value, [plain_values(item) for item in value])
    return {key: plain_values(item) for key, item in value.items()} if type(value) is dict else value


def exported(value: Any) -> Any:
    """Convert a tensor to an array for code that keeps the array, so that later writes to the tensor are checked.

    Arguments:
        value: a tensor without history; scalars and other objects are returned unchanged.
    """
    return value.numpy() if isinstance(value, Tensor) and not is_scalar(value) else value


def is_structured(dtype: Any) -> bool:
    """Return whether a dtype has fields, so that arrays of it remain NumPy's."""
    return type(dtype) is list or getattr(dtype, "kind", "") == "V"


def detached_values(value: Any, what: str) -> Any:
    """Return `value` with the tensors in it replaced by arrays.

    Raises:
        TypeError: if one of them has a history.
    """
    if carries_history(value):
        raise TypeError(f"{what} returns an array of plain numbers, which would lose the history of a tensor")
    return plain_values(value)


def on_values(function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function of arrays for the values of tensors, as tensors.

    A tensor passed as output argument, `out=` or SciPy's `output=`, is written to.
    """
    for key in OUTPUTS:
        target = kwargs.get(key)
        if isinstance(target, Tensor):
            buffer = np.array(plain_values(target))
            on_values(function, args, kwargs | {key: buffer})
            return target.copy_(from_array(buffer))
    return as_tensors(function(*map(plain_values, args), **plain_values(kwargs)))


def on_unsupported(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return NumPy's result for operands that tensors do not support, such as dates.

    It is called while the error about them is handled, which it raises again if a history or a mask would be lost.
    Beside a tensor with a history, masked arrays become masked tensors. Ufuncs and their methods apply the rules of the
    operands' classes, unless they write to a tensor.
    """
    if carries_history((*args, kwargs)):
        if holds_masked(args):
            return function(*with_masked_tensors(args), **kwargs)
        raise
    is_ufunc = isinstance(getattr(function, "__self__", function), np.ufunc)
    if (not is_ufunc or _is_written(kwargs.get("out"))) and _would_lose_meaning((*args, *kwargs.values())):
        raise
    out = kwargs.get("out")
    if not isinstance(out, np.ndarray):
        return on_values(function, args, kwargs)
    function(*map(plain_values, args), **plain_values(kwargs))
    return out


def holds_masked(value: Any) -> bool:
    """Return whether a value is a masked array, or contains one at any depth."""
    if isinstance(value, NESTED):
        return any(map(holds_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def with_masked_tensors(value: Any) -> Any:
    """Return `value` with the masked arrays in it, at any depth, replaced by masked tensors."""
    if isinstance(value, np.ma.MaskedArray):
        return importlib.import_module("viewgrad.numpy.masked").as_masked(value)
    return rebuilt(value, [with_masked_tensors(item) for item in value]) if isinstance(value, NESTED) else value


def _is_written(out: Any) -> bool:
    return any(isinstance(each, Tensor) for each in (out if isinstance(out, tuple) else (out,)))


def _would_lose_meaning(value: Any) -> bool:
    """Return whether an argument contains an array whose class adds meaning that NumPy's function would ignore.

    A class with an `__array_ufunc__` of its own, such as a quantity, computes the result itself.
    """
    if isinstance(value, np.ndarray):
        return adds_meaning(value) and type(value).__array_ufunc__ is np.ndarray.__array_ufunc__
    return isinstance(value, NESTED) and any(map(_would_lose_meaning, value))


ON_UNSUPPORTED.append(on_unsupported)


def as_tensors(value: Any, given: tuple[Any, ...] = ()) -> Any:
    """Return the result of a NumPy function with its arrays of numbers converted to tensors.

    Arguments:
        value: the result.
        given: the arguments of the function; results that are one of them, or views of other arrays, share memory.
    """
    if type(value) is np.ndarray:
        if not is_numeric_array(value):
            return value
        if value.base is None and not any(value is argument for argument in given):
            return from_new_array(value)
        return from_numpy(value)
    if isinstance(value, NESTED):
        return rebuilt(value, [as_tensors(item, given) for item in value])
    return value


def rebuilt(value: Any, items: list[Any]) -> Any:
    """Return a list, tuple or named tuple with other items; other types are unchanged."""
    if type(value) in NESTED:
        return type(value)(items)
    return value._make(items) if hasattr(value, "_make") and type(value).__init__ is tuple.__init__ else value


def as_argument(value: Any) -> Any:
    """Convert an argument to the form that operators accept: nested lists with tensors are combined, and integers in
    them made plain.
    """
    if not isinstance(value, NESTED):
        return value if isinstance(value, Tensor | np.ndarray) else as_its_array(value)
    if not holds_tensor(value):
        return value
    if all(tensor.dtype.kind in "biu" for tensor in _tensors_in(value)):
        return _with_numbers(value)
    return joined(value)


def _tensors_in(value: Any) -> Any:
    for item in value:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, NESTED):
            yield from _tensors_in(item)


def _with_numbers(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().tolist()
    return type(value)(map(_with_numbers, value)) if type(value) in NESTED else value
