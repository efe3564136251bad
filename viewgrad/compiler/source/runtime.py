"""The runtime of generated programs: functions of numbers for kernels, and functions of arrays for the host code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from ...autograd.api import pull_back
from ...errors import DetachedConversionError
from ...func.transforms import jvp
from ...operators.define import OPERATORS
from ...operators.language.namespace import ARRAY_FUNCTIONS
from ...tensor.conversions import handles_conversion_errors
from ...tensor.indices import add_at
from ...tensor.modes import enable_grad
from ...tensor.tensor import Tensor, from_array
from .segments import Segments, Tape, copied, put_back


class Bailout(Exception):
    """Raised if a program encounters an unsupported case; the function then runs eagerly."""


class CapacityExceeded(Exception):
    """Raised if the lists of a program have no room for another item."""


# -- in kernels --------------------------------------------------------------------------------------------------------


def at(index: int, length: int) -> int:
    if index < 0 or index >= length:
        raise IndexError
    return index


def at_wrapped(index: int, length: int) -> int:
    if index < 0:
        index += length
    if index < 0 or index >= length:
        raise IndexError
    return index


def nonzero(value: Any) -> Any:
    if value == 0:
        raise ZeroDivisionError
    return value


def finite(value: float, operand: float) -> float:
    if value - value != 0.0 and operand - operand == 0.0:
        raise OverflowError
    return value


def finite2(value: float, one: float, other: float) -> float:
    if value - value != 0.0 and one - one == 0.0 and other - other == 0.0:
        raise OverflowError
    return value


def plus(total: float, value: float) -> float:
    """Return a sum whose terms may be added in any order."""
    return total + value


def int_power(base: int, exponent: int) -> int:
    found = 1
    for _ in range(exponent):
        found *= base
    return found


def conj(value: Any) -> Any:
    return value.conjugate()


def csquare(value: Any) -> Any:
    return value * value


def csign(value: Any) -> Any:
    size = abs(value)
    return value if size == 0.0 else value / size


def cexp(value: Any) -> Any:
    return np.exp(value)


def clog(value: Any) -> Any:
    return np.log(value)


def csqrt(value: Any) -> Any:
    return np.sqrt(value)


def csin(value: Any) -> Any:
    return np.sin(value)


def ccos(value: Any) -> Any:
    return np.cos(value)


def cpower_slope(base: Any, exponent: Any) -> Any:
    return base * 0.0 if exponent == 0 else exponent * base ** (exponent - 1)


KERNEL: Final = (
    at, at_wrapped, nonzero, finite, finite2, plus, int_power, conj, csquare, csign, cexp, clog, csqrt, csin, ccos,
    cpower_slope,
)


# -- outside kernels ---------------------------------------------------------------------------------------------------


def add_to(target: Any, value: Any) -> None:
    """Add a value to an array that may have been broadcast against it."""
    shape = value.shape if isinstance(value, (np.ndarray, np.generic)) else np.shape(value)
    if shape and shape != target.shape:
        value = np.asarray(value)
        if value.ndim > target.ndim:
            value = value.sum(tuple(range(value.ndim - target.ndim)))
        axes = tuple([axis for axis, n in enumerate(value.shape, target.ndim - value.ndim)
                      if n != 1 and target.shape[axis] == 1])
        if axes:
            value = value.sum(tuple([axis - target.ndim + value.ndim for axis in axes]), keepdims=True)
    target += value


def add_at_index(target: Any, index: Any, value: Any) -> None:
    """Add to the elements at an index, once for each occurrence."""
    if np.shape(value) != np.shape(target[index]):
        whole = np.zeros(np.shape(target[index]), target.dtype)
        add_to(whole, value)
        value = whole
    add_at(target, index, value)


def last_written(target: Any, index: Any) -> Any:
    """Return the values at an index, and 0 where a later value of the same assignment was written."""
    values = target[index]
    numbers = np.arange(values.size).reshape(values.shape)
    owner = np.empty(target.shape, np.int64)
    owner[index] = numbers
    return np.where(owner[index] == numbers, values, 0)


def viewed(base: Any, view: Any) -> Any:
    """Return the view, or give up if it is a copy."""
    if not np.may_share_memory(base, view) and view.size:
        raise Bailout
    return view


def writable(view: Any) -> Any:
    """Return a view that can be written to."""
    view.flags.writeable = True
    return view


def gradients_of(
    name: str, args: tuple[Any, ...], options: dict[str, Any], wanted: tuple[bool, ...], grads: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the gradients of the arguments of a function of arrays.

    Arguments:
        name: the name of the function in NumPy.
        args: its arguments; tuples of arrays are arguments too.
        options: its options.
        wanted: for each array, in order, whether its gradient is requested.
        grads: the gradients of its results.
    """
    direct = DIRECT.get(name)
    if direct is not None and not any(isinstance(each, tuple) or np.iscomplexobj(each) for each in (*args, grads[0])):
        quick: tuple[Any, ...] | None = direct(args, options, grads[0])
        if quick is not None:
            return quick
    if name == "astype":
        return (np.real(grads[0]),)
    with enable_grad():
        leaves: list[Any] = []
        numbers = iter(wanted)

        def leaf(value: Any) -> Any:
            is_wanted = next(numbers)
            if not isinstance(value, (np.ndarray, np.generic, float, complex)):
                leaves.append(None)
                return value
            tensor = Tensor(value, requires_grad=is_wanted)
            leaves.append(tensor if is_wanted else None)
            return tensor

        given = [[leaf(each) for each in arg] if isinstance(arg, tuple) else leaf(arg) for arg in args]
        function = tangent_of if name == "tangent" else operator.attrgetter(name)(np)  # tensors override these
        result = _of_sequences(function, given, options)
        results = result if isinstance(result, tuple) else (result,)
        seeds = [from_array(np.asarray(g, r.dtype)) if g is not None and isinstance(r, Tensor) else None
                 for r, g in zip(results, grads)]
        made = pull_back(results, seeds, leaves)
    return tuple([None if leaf is None else _array_of(each, leaf) for each, leaf in zip(made, leaves)])


def _of_sequences(function: Callable[..., Any], given: list[Any], options: dict[str, Any]) -> Any:
    """Call a function whose arguments may be lists of tensors, which are combined unless the function does so itself.

    If it does not accept tensors, the function that was compiled runs instead.
    """
    try:
        with handles_conversion_errors():
            return function(*given, **options)
    except DetachedConversionError:
        if not any(isinstance(arg, list) for arg in given):
            raise
        joined = [np.stack(arg) if isinstance(arg, list) else arg for arg in given]
        return function(*joined, **options)


def tangent_of(
    *given: Any, function: str, options: Any, along: tuple[bool, ...], groups: tuple[int, ...]
) -> Any:
    """Return the derivative of a function of arrays along a direction.

    Arguments:
        given: its arguments, followed by the tangents of some of them.
        function: its name in NumPy.
        options: names and values of its options.
        along: for each argument, whether it has a tangent.
        groups: for each argument, the number of arrays if it is a tuple; otherwise -1.
    """
    count = len(along)
    moving = [n for n, is_moving in enumerate(along) if is_moving]
    target: Any = tangent_of if function == "tangent" else operator.attrgetter(function)(np)

    def call(*parts: Any) -> Any:
        flat = list(given[:count])
        for n, part in zip(moving, parts):
            flat[n] = part
        rest = iter(flat)
        args = [next(rest) if size < 0 else [next(rest) for _ in range(size)] for size in groups]
        return _of_sequences(target, args, dict(options))

    _, found = jvp(call, [_as_tensor(given[n]) for n in moving], [_as_tensor(each) for each in given[count:]])
    if any(isinstance(each, Tensor) for each in given):
        return found
    return tuple([each._array[()] for each in found]) if isinstance(found, tuple) else found._array[()]


def _as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)


def flowing_arrays(value: Any, tangent: Any) -> Any:
    """Return a derivative, but 0 where the tangent from which it is computed is 0."""
    return np.where(np.equal(tangent, 0.0), 0.0, value)


def _array_of(found: Any, leaf: Any) -> Any:
    return np.zeros(leaf.shape) if found is None else found._array[()]


def _of_sum(args: Any, options: dict[str, Any], grad: Any) -> Any:
    (array,) = args
    axis = options.get("axis")
    if options.get("keepdims") or axis is None:
        return (np.broadcast_to(grad, np.shape(array))[()],)
    return (np.broadcast_to(np.expand_dims(grad, axis), array.shape),) if isinstance(axis, int) else None


def _of_mean(args: Any, options: dict[str, Any], grad: Any) -> Any:
    found = _of_sum(args, options, grad)
    size = np.size(grad)
    whole = np.size(args[0])
    return None if found is None or not whole else (found[0] * (size / whole),)


def _of_arange(args: Any, options: dict[str, Any], grad: Any) -> Any:
    if options.keys() - {"dtype"}:
        return None
    start, step = np.sum(grad), np.sum(grad * np.arange(len(grad)))
    return (0.0,) if len(args) == 1 else (start, 0.0, step)[: len(args)]


def _of_product(args: Any, options: dict[str, Any], grad: Any) -> Any:
    a, b = args
    if options or np.ndim(a) not in (1, 2) or np.ndim(b) not in (1, 2):
        return None
    if a.ndim == 1 and b.ndim == 1:
        return grad * b, grad * a
    if a.ndim == 1:
        return b @ grad, np.multiply.outer(a, grad)
    if b.ndim == 1:
        return np.multiply.outer(grad, b), a.T @ grad
    return grad @ b.T, a.T @ grad


DIRECT: Final[dict[str, Callable[..., Any]]] = {
    "sum": _of_sum, "mean": _of_mean, "matmul": _of_product, "dot": _of_product,
    "outer": lambda args, options, grad: (grad @ args[1], args[0] @ grad) if all(
        np.ndim(each) == 1 for each in args) else None,
    "flatten": lambda args, options, grad: (grad.reshape(args[0].shape),),
    "astype": lambda args, options, grad: (grad,), "arange": _of_arange,
}  # fmt: skip


class _Rows:
    """The forward functions of rows, as attributes."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        forward = OPERATORS[name].forward
        return lambda *args: forward(*[np.asarray(arg) for arg in args])


HOST: Final[dict[str, Any]] = {
    "np": np, "add_to": add_to, "add_at_index": add_at_index, "last_written": last_written, "viewed": viewed,
    "writable": writable, "Segments": Segments, "Tape": Tape, "copied": copied, "put_back": put_back,
    "gradients_of": gradients_of, "tangent_of": tangent_of, "flowing_arrays": flowing_arrays, "Bailout": Bailout,
    "CapacityExceeded": CapacityExceeded,
    "rows": _Rows(), "formulas": ARRAY_FUNCTIONS, "asarray": np.asarray, "math": math,
    "NONE": SimpleNamespace(),
}  # fmt: skip
