"""Making tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ForeignTypeError
from .modes import INFERENCE, current_mode
from .storage import Storage, storage_of
from .tensor import Tensor, _check_dtype, from_array, plain_array

__all__ = [
    "arange",
    "as_operand",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def _fresh(array: np.ndarray[Any, Any], requires_grad: bool) -> Tensor:
    _check_dtype(array.dtype)
    out = from_array(array)
    if current_mode() & INFERENCE:
        storage_of(out).inference = True
    return out.requires_grad_() if requires_grad else out


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over the memory of `array`, without copying: each sees the writes of the other.

    Since the array's owner may write to it unseen, what is saved from such a tensor for backward is copied when it is
    saved.

    Arguments:
        array: an array of bools, integers, floats or complex numbers in native byte order.

    Raises:
        TypeError: for anything else, and for arrays that mean more than their elements, as masked ones do.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> a = np.zeros(2)
        >>> t = vg.from_numpy(a)
        >>> t[0] = 5.0
        >>> a
        array([5., 0.])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy takes a numpy.ndarray, not {type(array).__name__}")
    if not array.dtype.isnative:
        raise TypeError(
            f"from_numpy takes an array in native byte order, not {array.dtype.str}; use Tensor(array), which converts"
        )
    _check_dtype(array.dtype)
    out = from_array(plain_array(array).view())
    storage = out._storage = Storage(out._array, foreign=True)
    storage.inference = bool(current_mode() & INFERENCE)
    return out


def asarray(data: Any, dtype: Any = None) -> Tensor:
    """`data` as a tensor: itself where it is one, sharing memory where it is an array, a fresh one otherwise.

    Arguments:
        data: a tensor, an array, a number or nested sequences of numbers.
        dtype: the dtype wanted; a tensor or array of another dtype is converted (a tensor differentiably).
    """
    if isinstance(data, Tensor):
        if dtype is None or data.dtype == np.dtype(dtype):
            return data
        converted: Tensor = data.astype(dtype)
        return converted
    if isinstance(data, np.ndarray) and (dtype is None or data.dtype == np.dtype(dtype)):
        return from_numpy(data)
    return Tensor(data, dtype)


as_tensor = asarray


def as_operand(value: Any) -> Tensor:
    """What an operator takes for a tensor, as one, by itself: a number, an array, or nested sequences of numbers."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return from_array(np.array(value))
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, Tensor) for item in value):
            raise TypeError(
                "a list of tensors is not a tensor; join them with stack() or concatenate(), which are differentiable"
            )
        return Tensor(value)
    raise ForeignTypeError(f"cannot make a tensor operand of {type(value).__name__}")


def zeros(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros; `shape` is one tuple or the lengths one by one."""
    return _fresh(np.zeros(_shape(shape), dtype), requires_grad)


def ones(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A tensor of ones; `shape` is one tuple or the lengths one by one."""
    return _fresh(np.ones(_shape(shape), dtype), requires_grad)


def empty(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A tensor whose elements are whatever the memory held; `shape` is one tuple or the lengths one by one."""
    return _fresh(np.empty(_shape(shape), dtype), requires_grad)


def full(shape: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the given shape with `fill_value` in every element."""
    return _fresh(np.full(shape, fill_value, dtype), requires_grad)


def arange(*args: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Evenly spaced numbers: `arange(stop)` or `arange(start, stop, step=1)`, as `numpy.arange`."""
    return _fresh(np.arange(*args, dtype=dtype), requires_grad)


def linspace(start: float, stop: float, num: int = 50, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included."""
    return _fresh(np.linspace(start, stop, num, dtype=dtype), requires_grad)


def eye(n: int, m: int | None = None, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """The identity matrix with `n` rows and `m` (as many, where left out) columns."""
    return _fresh(np.eye(n, m, dtype=dtype), requires_grad)


def zeros_like(other: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros with the shape, dtype and memory layout of `other`."""
    return _fresh(np.zeros_like(_array(other), dtype), requires_grad)


def ones_like(other: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones with the shape, dtype and memory layout of `other`."""
    return _fresh(np.ones_like(_array(other), dtype), requires_grad)


def empty_like(other: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor with the shape, dtype and memory layout of `other`."""
    return _fresh(np.empty_like(_array(other), dtype), requires_grad)


def full_like(other: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`fill_value` in every element, with the shape, dtype and memory layout of `other`."""
    return _fresh(np.full_like(_array(other), fill_value, dtype), requires_grad)


def _array(other: Any) -> Any:
    return other._array if isinstance(other, Tensor) else other


def _shape(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape
