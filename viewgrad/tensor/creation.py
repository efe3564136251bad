"""Functions that create tensors."""

from __future__ import annotations

import math
import weakref
from array import array as TypedArray
from collections.abc import Callable, Mapping
from numbers import Rational
from types import FunctionType
from typing import Any, Final

import numpy as np

from ..errors import UnsupportedTypeError
from .captured_storage import CapturedStorage, Surroundings, watch
from .modes import GRAD, current_mode
from .storage import Storage, storage_of
from .tensor import Tensor, _check_dtype, from_array, notify_created, plain_array
from .trace_hooks import observed

# Classes whose objects are arrays with operators of their own, such as matrices, with the functions that return the
# tensor of an object.
CONTENTS: Final[dict[type, Callable[[Any], Tensor]]] = {}
CPU: Final = "cpu"
OBJECT: Final = np.dtype(object)


def _fresh(array: np.ndarray[Any, Any], requires_grad: bool, garbage: bool = False) -> Tensor:
    _check_dtype(array.dtype)
    out = from_array(array)
    if current_mode() > GRAD:
        notify_created(out, garbage=garbage)
    return out.requires_grad_(requires_grad) if requires_grad else out


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor that shares the memory of `array`.

    Writes to either are visible in the other. Because the owner of the array may write to it at any time, values saved
    from such a tensor for backward are copied when they are saved.

    Arguments:
        array: an array of bools, integers, floats or complex numbers in native byte order.

    Raises:
        TypeError: for anything else, including array subclasses such as masked arrays.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> a = np.zeros(2)
        >>> t = vg.from_numpy(a)
        >>> t[0] = 5.0
        >>> a
        array([5., 0.])
    """
    out = over_memory(array)
    watch(storage_of(out))
    return out


def over_memory(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor that shares the memory of `array`, for the duration of one operation or call.

    In contrast to `from_numpy`, the memory is not registered by `watch`, which takes as long as the rest.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy expects a numpy.ndarray, not {type(array).__name__}")
    if not array.dtype.isnative:
        raise TypeError(
            f"from_numpy requires native byte order, not {array.dtype.str}; use Tensor(array), which converts"
        )
    _check_dtype(array.dtype)
    out = from_array(plain_array(array).view())
    out._storage = Storage(out._array, foreign=True)
    if current_mode() > GRAD:
        notify_created(out)
    return out


def as_captured(array: np.ndarray[Any, Any], surroundings: Surroundings) -> Tensor:
    """Return a tensor over a captured array itself, with its shape and flags, that records no history.

    Arguments:
        array: a `numpy.ndarray`, not of a subclass, in native byte order.
        surroundings: the program that captures it.
    """
    storage = CapturedStorage(array, surroundings)
    out = from_array(storage.root)
    out._storage = storage
    storage.tensor = weakref.ref(out)
    if current_mode() > GRAD:
        notify_created(out)
    return out


def captured_array(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """Return the array that a tensor was created from by `as_captured`; None for all other tensors, including its
    views.
    """
    storage = tensor._storage
    return tensor._array if type(storage) is CapturedStorage and tensor._array is storage.root else None


def checked_device(device: object) -> None:
    """Raise unless `device` is None or "cpu".

    Raises:
        ValueError: for anything but "cpu" and None.
    """
    if device not in (None, CPU):
        raise ValueError(f"the device must be 'cpu', not {device!r}")


def asarray(data: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert `data` to a tensor: return a tensor unchanged, share the memory of an array, and copy anything else.

    Arguments:
        data: a tensor, an array, a number or a nested sequence of numbers.
        dtype: the desired dtype; a tensor or array of another dtype is converted (a tensor differentiably).
        device: None or "cpu".
        copy: True to always copy (a tensor by `clone()`); False to raise an error instead of copying.

    Raises:
        ValueError: if `copy=False` and a copy is needed.
    """
    checked_device(device)
    same = dtype is None or getattr(data, "dtype", None) == np.dtype(dtype)
    if copy is False and not (same and isinstance(data, (Tensor, np.ndarray))):
        raise ValueError(f"a copy is needed to make a tensor of dtype {dtype} from {type(data).__name__}")
    if isinstance(data, Tensor):
        converted: Tensor = data if same else data.astype(dtype)
        return converted.clone() if copy and converted is data else converted
    if same and not copy and isinstance(data, np.ndarray):
        return from_numpy(data)
    return Tensor(data, dtype)


as_tensor = asarray


def as_operand(value: Any, is_of_ufunc: bool = False) -> Tensor:
    """Convert an operand to a tensor: a number, an array, or nested sequences of numbers.

    Arguments:
        value: the operand.
        is_of_ufunc: whether it is an operand of a ufunc or of one of Python's operators. For these a class with an
            `__array_ufunc__`, such as a series of pandas, follows rules of its own; functions convert it to an array,
            unless it has an `__array_function__` too.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype is OBJECT:
            return of_objects(value)
        return over_memory(value) if value.dtype.isnative else Tensor(value)
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return from_number(np.array(value))
    if isinstance(value, Rational):
        return from_number(np.array(float(value)))
    if isinstance(value, (list, tuple)):
        return joined(value) if holds_tensor(value) else Tensor(value)
    if isinstance(value, range):
        return Tensor(np.array(value))
    made = as_its_array(value, is_asked=not is_of_ufunc and not hasattr(type(value), "__array_function__"))
    if made is not value:
        return as_operand(made, is_of_ufunc)
    if is_number_sequence(value):
        array = np.array(value)
        if array.dtype != OBJECT:
            return as_operand(array)
    raise UnsupportedTypeError(f"cannot make a tensor operand of {type(value).__name__}")


def of_objects(array: np.ndarray[Any, Any]) -> Tensor:
    """Convert an array of objects, among them 0-d tensors, to one tensor.

    Raises:
        TypeError: for objects that are neither tensors nor numbers.
    """
    if array.size and not isinstance(array, np.ma.MaskedArray):
        flat = array.reshape(-1).tolist()
        if holds_tensor(flat) and not any(np.ndim(item) for item in flat):
            made: Tensor = joined(flat).reshape(array.shape)
            return made
    return over_memory(array)  # which rejects it


def is_number_sequence(value: Any) -> bool:
    """Return whether an object, such as a deque, is a sequence that NumPy converts to an array of its items."""
    return is_sequence(type(value)) and not isinstance(value, NO_SEQUENCES)


def as_its_array(value: Any, *, is_asked: bool = False) -> Any:
    """Convert an object to an array or a tensor: the result of its `__array__`, or the items of a sequence of tensors.

    Other objects are returned unchanged, including those with `__array_ufunc__`, such as quantities with units, and
    arrays of other libraries with `__array_priority__`, which follow rules of their own.

    Arguments:
        value: the object.
        is_asked: whether an array was requested explicitly, as by `numpy.asarray`, so that these objects are converted
            too.
    """
    kind = type(value)
    if isinstance(value, (Tensor, np.generic, np.ndarray)):
        return value
    if hasattr(kind, "__array__"):
        if hasattr(kind, "__array_ufunc__") and not is_asked:
            return value
        made = value.__array__()
        is_plain = isinstance(made, np.ndarray) and (is_asked or not hasattr(kind, "__array_priority__"))
        return made if is_plain or isinstance(made, Tensor) else value
    if is_number_sequence(value):
        items = list(value)
        return joined(items) if holds_tensor(items) else value
    return value


def without_operators(value: Any) -> Any:
    """Return the tensor in an object of a class in `CONTENTS`, where its operators do not matter; others unchanged."""
    contents = CONTENTS.get(type(value))
    return value if contents is None else contents(value)


def as_its_number(value: Any, method: str = "__float__") -> Any:
    """Convert an object to the number that its method returns, which may be a tensor; `float` and `complex` reject it.

    Other objects are returned unchanged. Among them are arrays of other libraries, which would lose their history.

    Arguments:
        value: the object.
        method: `"__float__"` or `"__complex__"`.
    """
    kind = type(value)
    convert = getattr(kind, method, None)
    if type(convert) is FunctionType and not isinstance(value, (Tensor, np.ndarray)):
        made = convert(value)
        if isinstance(made, Tensor) or (isinstance(made, (float, complex)) and not hasattr(kind, "__array__")):
            return made
    return value


# Types of arguments, and of items of lists, that never contain tensors in a form of their own.
COMMON: Final = frozenset({
    Tensor, np.ndarray, float, int, bool, complex, str, bytes, type(None), slice, range, type, type(Ellipsis),
    np.float64, np.float32, np.int64, np.bool_, np.complex128,
})  # fmt: skip


def with_arrays(args: Any, dtype: Any = None) -> Any:
    """Replace objects that contain tensors by tensors, also inside lists.

    Such an object has an `__array__` that returns a tensor, or is a sequence of tensors whose class is not list. If a
    dtype is given, it may also have a `__float__` or `__complex__` that returns a tensor.

    Arguments:
        args: the arguments of a NumPy function, or the items of a list: a list or a tuple.
        dtype: the dtype to which the items are converted.
    """
    return args if COMMON.issuperset(map(type, args)) else type(args)([_with_arrays(each, dtype) for each in args])


def _with_arrays(value: Any, dtype: Any) -> Any:
    if type(value) in (list, tuple):
        return with_arrays(value, dtype)
    return value if type(value) in COMMON else as_element(value, dtype)


def as_element(value: Any, dtype: Any, *, is_asked: bool = False) -> Any:
    """Convert an object that contains tensors to a tensor, as NumPy does for a dtype: to an array, or to a number.

    Arguments:
        value: the object.
        dtype: a dtype; if it is None or not that of floating-point numbers, NumPy does not call `__float__`.
        is_asked: see `as_its_array`.
    """
    made = as_its_array(value, is_asked=is_asked)
    kind = type(value)
    if made is not value or dtype is None or hasattr(kind, "__array__") or is_sequence(kind):
        return made
    wanted = np.dtype(dtype)
    if wanted.kind not in "fc":
        return value
    is_complex = wanted.kind == "c" and hasattr(kind, "__complex__")
    number = as_its_number(value, "__complex__" if is_complex else "__float__")
    return as_scalar(number, np.complex128 if is_complex else np.float64) if isinstance(number, Tensor) else number


def as_scalar(value: Tensor, dtype: Any) -> Any:
    """Convert a single-element tensor to a scalar, which is not affected by later writes to the tensor."""
    if value.size != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    if value.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise TypeError(f"float() argument must be a string or a real number, not '{value.dtype}'")
    return value.astype(dtype).reshape(-1)[0]


def is_sequence(kind: type) -> bool:
    """Return whether NumPy converts objects of a class item by item, unless they are among `NO_SEQUENCES`."""
    return hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not hasattr(kind, "__array_ufunc__")


# Objects with a length and items that NumPy does not treat as sequences.
NO_SEQUENCES: Final = (str, bytes, bytearray, memoryview, Mapping, np.dtype, Tensor, TypedArray)


def as_assigned(value: Any, dtype: np.dtype[Any]) -> Tensor:
    """Convert an assigned value to a tensor of a given dtype; as in NumPy, None becomes NaN and strings are parsed.

    Objects of other libraries are rejected, since they would lose their mask, units or history.
    """
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if dtype.kind in "iu":
        exact = type(value) is int or (type(value) is float and not math.isfinite(value))
    else:
        exact = False
    if exact or (type(value) is complex and dtype.kind != "c"):
        # raises NumPy's own error for values that the dtype cannot represent
        return from_number(np.asarray(value, dtype))
    try:
        made = as_operand(without_operators(value))
        if dtype.kind != "c" and made._array.dtype.kind == "c" and type(value) in (list, tuple):
            np.asarray(made._array.tolist(), dtype)  # keeps the dtype
        return made
    except (UnsupportedTypeError, TypeError):
        made = as_its_number(value)
        if made is not value:
            return as_operand(made)
        if not (value is None or isinstance(value, (str, bytes, list, tuple))):
            raise
        if type(value) in (list, tuple):
            value = with_arrays(value, dtype)
        if holds_tensor(value):
            return joined(value, dtype)
        return from_number(np.asarray(value, dtype))


def from_number(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor over `array`, which is a number or another internal value that depends on no tensor."""
    out = from_array(array)
    observer = observed()
    if observer is not None:
        observer.number(out)
    return out


def array(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor with a copy of `data`.

    Gradients flow to `data` if it is a tensor, and to tensors in nested lists.

    Arguments:
        data: anything that `numpy.array` accepts, which may contain tensors.
        dtype: the desired dtype.
        requires_grad: whether to compute gradients with respect to the tensor; only for data without history.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.array([1.0, 2.0], requires_grad=True)
        >>> vg.array([x[1], 3.0])
        Tensor([2., 3.], grad_fn=<StackBackward>)
    """
    if type(data) is np.ndarray and data.dtype is OBJECT:
        data = of_objects(data)
    elif not isinstance(data, (Tensor, np.ndarray, list, tuple)):
        data = as_element(data, dtype, is_asked=True)
    elif type(data) in (list, tuple):
        data = with_arrays(data, dtype)
    if not holds_tensor(data):
        return Tensor(data, dtype, requires_grad)
    made: Any = data.clone() if isinstance(data, Tensor) else joined(data)
    made = made if dtype is None else made.astype(dtype)
    return made.requires_grad_(requires_grad) if requires_grad else made  # type: ignore[no-any-return]


def holds_tensor(value: object) -> bool:
    """Return whether `value` is a tensor, or nested lists and tuples that contain one."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_tensor, value))
    return isinstance(value, Tensor)


def joined(nested: Any, dtype: np.dtype[Any] | None = None) -> Tensor:
    """Combine nested lists that contain tensors into one tensor, as `numpy.array` does for numbers.

    Arguments:
        nested: the lists.
        dtype: the dtype to which None and strings among the items are converted; if omitted, these are rejected.
    """
    items = [as_operand(item) if dtype is None else as_assigned(item, dtype) for item in nested]
    tensor: Tensor = np.stack(items).contiguous()  # type: ignore[attr-defined]  # in row-major order, unlike a stack
    return tensor


def zeros(
    shape: Any = (), *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of zeros.

    Arguments:
        shape: a tuple, or the lengths as separate arguments; a dtype may follow a tuple or a single length.
        dtype: the dtype; float64 if omitted.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.zeros(2, 3).shape
        (2, 3)
    """
    return _filled_by(np.zeros, shape, more, dtype, device, requires_grad)


def ones(
    shape: Any = (), *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of ones.

    Arguments:
        shape: a tuple, or the lengths as separate arguments; a dtype may follow a tuple or a single length.
        dtype: the dtype; float64 if omitted.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.ones(2)
        Tensor([1., 1.])
    """
    return _filled_by(np.ones, shape, more, dtype, device, requires_grad)


def empty(
    shape: Any = (), *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor with uninitialized elements.

    Arguments:
        shape: a tuple, or the lengths as separate arguments; a dtype may follow a tuple or a single length.
        dtype: the dtype; float64 if omitted.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.empty((2, 3)).shape
        (2, 3)
    """
    return _filled_by(np.empty, shape, more, dtype, device, requires_grad)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor filled with one value.

    Arguments:
        shape: a tuple, or a single length.
        fill_value: a number, or a tensor that can be broadcast to the shape; its gradient is the sum over its copies.
        dtype: the dtype; by default the dtype of `fill_value`.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.full(2, 7.0)
        Tensor([7., 7.])
    """
    checked_device(device)
    if isinstance(fill_value, Tensor):
        return _filled(np.empty(shape, fill_value.dtype if dtype is None else dtype), fill_value, requires_grad)
    return _fresh(np.full(shape, fill_value, dtype), requires_grad)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return evenly spaced numbers in a half-open interval.

    Arguments:
        start: the first number; if given alone, the end, with 0 as the first number.
        stop: the end, which is not included.
        step: the distance between neighbours.
        dtype: the dtype; by default the dtype of the numbers.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.arange(3.0)
        Tensor([0., 1., 2.])
    """
    checked_device(device)
    if stop is None:
        start, stop = 0, start
    return _fresh(np.arange(start, stop, step, dtype=dtype), requires_grad)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a given number of evenly spaced numbers in an interval.

    Arguments:
        start: the first number.
        stop: the last number, if it is included.
        num: the number of elements.
        endpoint: whether `stop` is included.
        dtype: the dtype; a floating-point dtype if omitted.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.linspace(0, 1, 3)
        Tensor([0. , 0.5, 1. ])
    """
    checked_device(device)
    return _fresh(np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype), requires_grad)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: Any = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    Arguments:
        n_rows: the number of rows.
        n_cols: the number of columns; `n_rows` if omitted.
        k: the diagonal; positive numbers are above the main diagonal.
        dtype: the dtype; float64 if omitted.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the tensor.

    Example:
        >>> import viewgrad as vg
        >>> vg.eye(2)
        Tensor([[1., 0.],
                [0., 1.]])
    """
    checked_device(device)
    return _fresh(np.eye(n_rows, n_cols, k, float if dtype is None else dtype), requires_grad)


def zeros_like(other: Any, /, dtype: Any = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return zeros with the shape, dtype and memory layout of `other`.

    Arguments:
        other: a tensor or an array.
        dtype: the dtype; by default that of `other`.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the result.

    Example:
        >>> import viewgrad as vg
        >>> vg.zeros_like(vg.Tensor([1.0, 2.0]))
        Tensor([0., 0.])
    """
    checked_device(device)
    return _fresh(np.zeros_like(_array(other), dtype), requires_grad)


def ones_like(other: Any, /, dtype: Any = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return ones with the shape, dtype and memory layout of `other`.

    Arguments:
        other: a tensor or an array.
        dtype: the dtype; by default that of `other`.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the result.

    Example:
        >>> import viewgrad as vg
        >>> vg.ones_like(vg.Tensor([1.0, 2.0]))
        Tensor([1., 1.])
    """
    checked_device(device)
    return _fresh(np.ones_like(_array(other), dtype), requires_grad)


def empty_like(other: Any, /, dtype: Any = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return an uninitialized tensor with the shape, dtype and memory layout of `other`.

    Arguments:
        other: a tensor or an array.
        dtype: the dtype; by default that of `other`.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the result.

    Example:
        >>> import viewgrad as vg
        >>> vg.empty_like(vg.Tensor([1.0, 2.0])).shape
        (2,)
    """
    checked_device(device)
    return _fresh(np.empty_like(_array(other), dtype), requires_grad, garbage=True)


def full_like(
    other: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor filled with `fill_value`, with the shape, dtype and memory layout of `other`.

    Arguments:
        other: a tensor or an array.
        fill_value: a number, or a tensor that can be broadcast to the shape; gradients flow to it.
        dtype: the dtype; by default that of `other`.
        device: None or "cpu".
        requires_grad: whether to compute gradients with respect to the result.

    Example:
        >>> import viewgrad as vg
        >>> vg.full_like(vg.Tensor([1.0, 2.0]), 3.0)
        Tensor([3., 3.])
    """
    checked_device(device)
    if isinstance(fill_value, Tensor):
        return _filled(np.empty_like(_array(other), dtype), fill_value, requires_grad)
    return _fresh(np.full_like(_array(other), fill_value, dtype), requires_grad)


def _filled(array: np.ndarray[Any, Any], value: Tensor, requires_grad: bool) -> Tensor:
    """Return a tensor over `array` after assigning `value` to all elements."""
    out = _fresh(array, False, garbage=True)
    out.copy_(value)
    return out.requires_grad_(requires_grad) if requires_grad else out


def _array(other: Any) -> Any:
    return np.asarray(other._array) if isinstance(other, Tensor) else other  # a traced number is not an array


def _filled_by(make: Any, shape: Any, more: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """Return a filled tensor of a shape that is given as a tuple or as lengths; a dtype may follow, as in NumPy."""
    checked_device(device)
    if len(more) == 1 and not isinstance(more[0], (int, np.integer)):
        (dtype,) = more
    elif more:
        shape = (shape, *more)
    return _fresh(make(shape, float if dtype is None else dtype), requires_grad, garbage=make is np.empty)
