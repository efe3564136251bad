"""NumPy's types for tensors: usable as dtypes, in `isinstance`, and as casts.

Each scalar type is a subclass of NumPy's, so NumPy accepts it for every `dtype` argument. It has no instances of its
own: a call casts a tensor differentiably, and converts anything else to NumPy's scalar.
"""

from __future__ import annotations

import copyreg
import pkgutil
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_tensors, carries_history
from ..operators.numpy_api.methods import writable_array
from ..tensor.creation import COMMON, CONTENTS, empty, from_numpy, holds_tensor, joined, with_arrays
from ..tensor.tensor import Tensor
from ..tensor.tensor import is_scalar as holds_scalar


def is_scalar(value: Any) -> bool:
    """Return whether a tensor is a scalar, like NumPy's."""
    return isinstance(value, Tensor) and not value.ndim


def is_array(value: Any) -> bool:
    """Return whether a value is an array in NumPy's sense: an array, or a tensor with dimensions."""
    return isinstance(value, np.ndarray) or (
        isinstance(value, Tensor) and not holds_scalar(value)
    )


class ScalarType(type):
    """The metaclass of the scalar types."""

    numpy: type[np.generic]

    def __instancecheck__(cls, value: Any) -> bool:
        if isinstance(value, Tensor):
            return not value.ndim and issubclass(value.dtype.type, cls.numpy)
        return isinstance(value, cls.numpy)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.numpy)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) not in COMMON:
            args = *with_arrays(args[:1], cls.numpy), *args[1:]
        if args and holds_tensor(args[0]):
            tensor = args[0] if isinstance(args[0], Tensor) else joined(args[0])
            return tensor.astype(np.dtype(cls.numpy))
        return as_tensors(cls.numpy(*args, **kwargs))

    def __eq__(cls, other: object) -> bool:
        """Return whether a class is this one, NumPy's, or the float class of adopted code; a dtype decides itself."""
        if other is cls or other is cls.numpy or getattr(other, "numpy", None) is cls.numpy:
            return True
        return NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.numpy)

    def __repr__(cls) -> str:
        return repr(cls.numpy)

    def __reduce__(cls) -> Any:
        return cls.numpy.__reduce__


def _scalar_type(numpy: Any) -> Any:
    return ScalarType(
        numpy.__name__,
        (numpy,),
        {"numpy": numpy, "__module__": "numpy", "__slots__": (), "__doc__": numpy.__doc__},
    )


_by_type: Final[dict[Any, Any]] = {
    numpy: _scalar_type(numpy)
    for numpy in {value for value in vars(np).values() if isinstance(value, type) and issubclass(value, np.number)}
}

# The types by their names in NumPy. Bools, strings, dates and objects are NumPy's own: no gradient flows through them.
SCALAR_TYPES: Final[dict[str, Any]] = {
    name: _by_type[value] for name, value in vars(np).items() if isinstance(value, type) and value in _by_type
}

SCALAR_TYPES["sctypeDict"] = {key: _by_type.get(value, value) for key, value in np.sctypeDict.items()}


class PlainArray(np.ndarray[Any, Any]):
    """The base of classes derived from `ndarray` of this namespace: a NumPy array of plain numbers."""

    def __new__(
        cls, shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, order: Any = None
    ) -> Any:
        if carries_history(buffer):
            raise lost(
                f"{cls.__name__}, a class derived from numpy.ndarray,",
                "whose elements are plain numbers; keep the tensor in an attribute, or pass its detach()",
            )
        buffer = writable_array(buffer, f"the memory of a {cls.__name__}")
        return np.ndarray.__new__(cls, shape, dtype, buffer, offset, strides, order)  # `cls` may not be adopted

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Return NumPy's result, also for the counterpart of NumPy's function that a derived class was called with."""
        return super().__array_function__(getattr(function, "numpy", function), types, args, kwargs)

    def view(self, *args: Any, **options: Any) -> Any:
        """Return a view with another class or dtype; see `numpy.ndarray.view`."""
        return super().view(*map(of_numpy, args), **{key: of_numpy(each) for key, each in options.items()})


def of_numpy(kind: Any) -> Any:
    """Return `numpy.ndarray` for the `ndarray` of this namespace, and any other object unchanged."""
    return np.ndarray if kind is ndarray else kind


class ArrayType(type):
    """The metaclass of `ndarray`; subclasses derive from NumPy's class and contain plain numbers."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if any(isinstance(base, ArrayType) for base in bases):
            return type(name, tuple(PlainArray if isinstance(base, ArrayType) else base for base in bases), body)
        return super().__new__(cls, name, bases, body)

    def __instancecheck__(cls, value: Any) -> bool:
        return is_array(value) or type(value) in CONTENTS

    def __subclasscheck__(cls, other: type) -> bool:
        return isinstance(other, ArrayType) or other in CONTENTS or issubclass(other, (Tensor, np.ndarray))

    def __eq__(cls, other: object) -> bool:
        """Return whether a class is the array class, for tests such as `type(x) in (list, np.ndarray)`."""
        return other is cls or other is Tensor or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(Tensor)

    def __repr__(cls) -> str:
        return repr(np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        """Return an attribute of tensors or arrays, for calls such as `np.ndarray.__array_wrap__(self, ...)` in derived
        classes.
        """
        return getattr(Tensor if hasattr(Tensor, name) else np.ndarray, name)


class ndarray(metaclass=ArrayType):
    """The array type: tensors are instances of it, and calling it creates a tensor of a given shape.

    Arguments:
        shape: the lengths of the dimensions.
        dtype: the dtype of the elements.
        buffer: the memory to use, as for `numpy.ndarray`; uninitialized memory if omitted.
        offset, strides, order: as for `numpy.ndarray`.
    """

    def __new__(
        cls, shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, order: Any = None
    ) -> Any:
        if cls is not ndarray:  # `np.ndarray.__new__(cls, shape)` in a derived class
            return PlainArray.__new__(cls, shape, dtype, buffer, offset, strides, order)  # type: ignore[arg-type]
        if buffer is None and strides is None and order in (None, "C"):
            return empty(shape, dtype=dtype)
        array = np.ndarray(shape, dtype, buffer, offset, strides, order)
        return from_numpy(array) if array.base is not None else as_tensors(array)

    def __class_getitem__(cls, item: Any) -> Any:
        return np.ndarray[item]


ndarray.__module__ = "numpy"  # by which libraries recognize arrays


def reduced_type(cls: type) -> Any:
    """Return what pickle stores for a type of this namespace: its name."""
    return pkgutil.resolve_name, (f"viewgrad.numpy:{cls.__name__}",)


for _kind in (ScalarType, ArrayType):
    copyreg.pickle(_kind, reduced_type)
