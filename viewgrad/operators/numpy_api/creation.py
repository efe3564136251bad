"""NumPy's creation functions, which create tensors, so that tensors can be written into the result.

Arrays of strings, objects and records stay NumPy arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...adoption import adopted_arguments
from ...tensor.creation import COMMON, as_element, as_operand, holds_tensor, joined, with_arrays, without_operators
from ...tensor.creation import _fresh as fresh
from ...tensor.shapes import with_ndim
from ...tensor.tensor import Tensor, has_own_rules, is_scalar
from . import numerical_ranges
from .conversion import (
    NESTED,
    STRINGS,
    as_argument,
    as_tensors,
    detached_values,
    in_layout,
    is_structured,
    plain_values,
)

CREATORS: dict[str, Callable[..., Any]] = {}

# Functions of a shape alone.
MAKERS: Final[dict[Any, Callable[..., Any]]] = {
    np.zeros: lambda shape: fresh(np.zeros(shape), False),
    np.ones: lambda shape: fresh(np.ones(shape), False),
    np.empty: lambda shape: fresh(np.empty(shape), False, garbage=True),
}


def creator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as the counterpart of the NumPy function of the same name."""
    CREATORS[function.__name__] = function
    return function


def _shape(shape: Any) -> Any:
    return as_argument(shape) if isinstance(shape, NESTED) else shape.tolist() if isinstance(shape, Tensor) else shape


@creator
def kaiser(M: Any, beta: Any) -> Any:
    """Return a Kaiser window of `M` values; gradients flow to its shape `beta`."""
    if not holds_tensor(beta):
        return as_tensors(np.kaiser(_shape(M), beta))
    count, beta = int(_shape(M)), as_operand(beta)
    middle = (count - 1) / 2.0 or 1.0
    place = (np.arange(count) - (count - 1) / 2.0) / middle
    return np.i0(beta * np.sqrt(1.0 - place**2)) / np.i0(beta)


# -- from values -------------------------------------------------------------------------------------------------------


@creator
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """Create a tensor from numbers, arrays and tensors in nested lists, as in `numpy.array`; gradients flow to the
    tensors.

    Arguments:
        object: a tensor, an array, a number or nested lists of these.
        dtype: the desired dtype.
        copy: whether to copy a tensor or an array; None to copy only if needed.
        order, subok, ndmin: as for `numpy.array`.
        ndmax, like: accepted for compatibility with NumPy; without effect for tensors.

    Example:
        >>> import viewgrad.numpy as np
        >>> from viewgrad.autograd import grad
        >>> x = np.array([2.0, 3.0]).requires_grad_()
        >>> grad(np.array([x[0] * x[1], 1.0, x[1]]).sum(), x)[0]
        Tensor([3., 3.])
    """
    if not isinstance(object, (Tensor, np.ndarray, list, tuple)):
        created = getattr(type(object), "_created", None)
        if created is not None:  # created for masked tensors
            made = created(object, subok)
            if made is object:
                return made
            object = made
        object = as_element(object, dtype, is_asked=True)
    elif type(object) in NESTED:
        object = with_arrays(object, dtype)
    if is_structured(dtype):
        object = detached_values(object, "a structured dtype")
    if not holds_tensor(object) or np.dtype(dtype if dtype is not None else float).kind not in "biufc":
        given = object
        if holds_tensor(object):
            kind = "" if dtype is None else np.dtype(dtype).kind
            if kind == "O" and _is_ragged(object):
                return _of_objects(object, ndmin)
            given = plain_values(object) if kind in STRINGS else _times(object) if kind in "mM" else _elements(object)
        return as_tensors(np.array(given, dtype=dtype, copy=copy, order=order, subok=subok, ndmin=ndmin), (object,))  # type: ignore[call-overload]
    made = object if isinstance(object, Tensor) else joined(object)
    if dtype is not None and np.dtype(dtype) != made.dtype:
        made = made.astype(np.dtype(dtype))
    elif copy and made is object:
        made = made.clone()
    if is_scalar(made):
        made = made.reshape(())  # NumPy creates a writeable 0-d array from a scalar
    if order in ("A", "a"):  # a copy of an array that is neither is in row-major order
        order = "K" if not copy else "F" if isinstance(object, Tensor) and object._array.flags.fnc else "C"
    return with_ndim(in_layout(made, order), ndmin)


def _elements(value: Any) -> Any:
    """Return nested lists with tensors replaced by lists of their elements, for arrays of objects."""
    if isinstance(value, Tensor) and value.ndim:
        return [_elements(item) for item in value]
    return [_elements(item) for item in value] if isinstance(value, NESTED) else value


def _is_ragged(value: Any) -> bool:
    """Return whether the items of a list have different lengths, so that an array of objects contains them unchanged.
    """
    return isinstance(value, NESTED) and len(set(map(_length, value))) > 1


def _length(item: Any) -> Any:
    """Return the length of an item of a list, as an empty tuple for a number."""
    if isinstance(item, (Tensor, np.ndarray)):
        return item.shape[:1]
    return (len(item),) if isinstance(item, NESTED) else ()


def _of_objects(items: Sequence[Any], ndmin: int) -> Any:
    """Return a one-dimensional array of objects."""
    made = np.empty(len(items), object)
    for place, item in enumerate(items):
        made[place] = item
    return made.reshape((1,) * (ndmin - 1) + made.shape)


def _times(value: Any) -> Any:
    """Return the integers that represent dates and durations; their derivative is zero."""
    return plain_values((value if isinstance(value, Tensor) else joined(value)).detach())


@creator
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """Convert to a tensor; a tensor is returned unchanged, and an array shares its memory."""
    return array(a, dtype, copy=copy, order=order or "K")


@creator
def asanyarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """Convert to a tensor; arrays of a subclass are returned unchanged."""
    return array(a, dtype, copy=copy, order=order or "K", subok=True)


@creator
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Convert to a tensor of at least one dimension in row-major order."""
    made = array(a, dtype, copy=None, ndmin=1)
    return in_layout(made, "C") if isinstance(made, Tensor) else np.ascontiguousarray(made)


@creator
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Convert to a tensor of at least one dimension in column-major order."""
    made = array(a, dtype, copy=None, ndmin=1)
    return in_layout(made, "F") if isinstance(made, Tensor) else np.asfortranarray(made)


@creator
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Convert to a tensor; NaN and infinities raise an error."""
    made = asarray(a, dtype, order)
    np.asarray_chkfinite(made._array if isinstance(made, Tensor) else made)
    return made


@creator
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """Convert to a tensor that meets requirements on its memory layout."""
    if not holds_tensor(a):
        return as_tensors(np.require(a, dtype, requirements), (a,))
    wanted = {name.upper() for name in requirements or ()}
    made = array(a, dtype, copy="ENSUREARRAY" in wanted or None)
    if wanted & {"O", "OWNDATA"} and not made._array.flags.owndata:
        made = made.clone()
    if wanted & {"F", "F_CONTIGUOUS", "FORTRAN"}:
        return in_layout(made, "F")
    return in_layout(made, "C") if wanted & {"C", "C_CONTIGUOUS", "CONTIGUOUS"} else made


@creator
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Return a copy; the copy of a tensor has its history."""
    if has_own_rules(type(a)):
        return np.copy(a, order, subok)  # type: ignore[call-overload]
    return array(a, order=order, subok=subok)


# -- of a shape --------------------------------------------------------------------------------------------------------


@creator
def zeros(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return a tensor of zeros."""
    return as_tensors(np.zeros(_shape(shape), dtype, order))


@creator
def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return a tensor of ones."""
    return as_tensors(np.ones(_shape(shape), dtype, order))


@creator
def empty(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return a tensor with uninitialized elements."""
    return as_tensors(np.empty(_shape(shape), dtype, order))


@creator
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Return a tensor filled with `fill_value`, to which gradients flow."""
    if type(fill_value) not in COMMON:
        (fill_value,) = with_arrays((without_operators(fill_value),), dtype)
    if not holds_tensor(fill_value):
        return as_tensors(np.full(_shape(shape), fill_value, dtype, order))
    value = as_operand(fill_value)
    filled = as_tensors(np.empty(_shape(shape), dtype if dtype is not None else value.dtype, order))
    return filled.copy_(value)


@creator
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Return a tensor with the shape of another one, filled with `fill_value`, to which gradients flow."""
    if has_own_rules(type(a)):
        return np.full_like(a, fill_value, dtype, order, subok, shape)
    like = np.asarray(a._array) if isinstance(a, Tensor) else a
    made = as_tensors(np.empty_like(like, dtype, order, subok, _shape(shape)))
    if not isinstance(made, Tensor):
        return np.full_like(like, fill_value, dtype)
    values = fill_value if holds_tensor(fill_value) else np.asarray(fill_value)
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        # NumPy converts numbers as in an assignment: -1 raises for unsigned integers, and the infinity is cast.
        values = np.full_like(np.empty(values.shape, made.dtype), fill_value)
    return made.copy_(values)


# -- evenly spaced -----------------------------------------------------------------------------------------------------


@creator
def arange(
    start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None, like: Any = None
) -> Any:
    """Return evenly spaced numbers, as `numpy.arange`; gradients flow to the start and the step."""
    if start is None and stop is not None:
        start = 0
    given = (start,) if stop is None and type(step) is int and step == 1 else (start, stop, step)
    if not holds_tensor(given):
        return as_tensors(np.arange(*given, dtype=dtype))
    if start is None or stop is None:
        start, stop = 0, start if stop is None else stop
    bounds = (start, stop, step)
    plain = np.arange(*(each.detach().item() if isinstance(each, Tensor) else each for each in bounds), dtype=dtype)
    if plain.dtype.kind not in "fc" or not (holds_tensor(start) or holds_tensor(step)):
        return as_tensors(plain)
    if plain.size < 2:  # the step may be infinite in this case
        return (start + as_operand(np.zeros(plain.size, plain.dtype))).astype(plain.dtype)
    step = (start + step) - start  # the spacing that NumPy uses, for identical digits
    return (start + step * as_operand(np.arange(plain.size, dtype=plain.dtype))).astype(plain.dtype)


@creator
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`; gradients flow to both."""
    num = operator.index(num)
    if not holds_tensor((start, stop)):
        return as_tensors(np.linspace(start, stop, num, endpoint, retstep, dtype, axis))  # type: ignore[call-overload]
    return numerical_ranges.linspace(start, stop, num, endpoint, retstep, dtype, axis)


@creator
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Return numbers evenly spaced on a logarithmic scale; gradients flow to the exponents and the base."""
    if not holds_tensor((start, stop, base)):
        return as_tensors(np.logspace(start, stop, operator.index(num), endpoint, base, dtype, axis))
    return numerical_ranges.logspace(start, stop, num, endpoint, base, dtype, axis)


@creator
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return numbers evenly spaced on a logarithmic scale between two positive numbers; gradients flow to both."""
    if not holds_tensor((start, stop)):
        return as_tensors(np.geomspace(start, stop, operator.index(num), endpoint, dtype, axis))
    return numerical_ranges.geomspace(start, stop, num, endpoint, dtype, axis)


# -- from functions and sequences --------------------------------------------------------------------------------------


@creator
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """Return the values of a function at the coordinates of an array of the given shape."""
    return adopted_arguments(function)(*as_tensors(np.indices(_shape(shape), dtype=dtype)), **kwargs)


@creator
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """Return a tensor of the items of an iterator; gradients flow to tensors among them."""
    items: list[Any] = []
    for item in iter:
        if len(items) == count:
            break
        items.append(item)
    if len(items) < count:
        raise ValueError(f"iterator too short: expected {count} but iterator had only {len(items)} items")
    return array(items, dtype) if items else as_tensors(np.fromiter(items, dtype))


@creator
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Return the coordinates of the points of a grid."""
    return as_tensors(np.indices(_shape(dimensions), dtype, sparse))  # type: ignore[call-overload]


@creator
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return the identity matrix with `n` rows."""
    return as_tensors(np.identity(int(n), dtype))


@creator
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Return a matrix with ones on a diagonal and zeros elsewhere."""
    return as_tensors(np.eye(int(N), None if M is None else int(M), int(k), dtype, order))
