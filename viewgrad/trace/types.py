"""The types of values in a graph, and windows of memory."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final, NamedTuple

import attrs
import numpy as np


class Type:
    """The type of a value, which is known before the graph runs.

    Attributes:
        requires_grad: whether a gradient can flow to the value.
    """

    __slots__ = ()

    requires_grad: bool = False

    def with_grad(self, requires_grad: bool) -> Type:
        """Return the type with or without a gradient, if this makes a difference."""
        return self


@attrs.frozen
class TensorType(Type):
    """The type of a tensor.

    Arguments:
        dtype: the NumPy dtype of the elements.
        shape: the lengths of the dimensions.
        requires_grad: whether a gradient can flow to the tensor.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    requires_grad: bool = False

    made: ClassVar[dict[tuple[Any, ...], TensorType]] = {}

    @classmethod
    def of(cls, dtype: np.dtype[Any], shape: tuple[int, ...], requires_grad: bool = False) -> TensorType:
        """Return the type. Equal types are a single object, since a graph of a million nodes has few types."""
        key = (dtype, shape, requires_grad)
        found = cls.made.get(key)
        if found is None:
            if len(cls.made) > LIMIT:
                cls.made.clear()
            found = cls.made[key] = cls(dtype, shape, requires_grad)
        return found

    def with_grad(self, requires_grad: bool) -> TensorType:
        """Return the type with or without a gradient."""
        return self if self.requires_grad is requires_grad else TensorType.of(self.dtype, self.shape, requires_grad)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]{' grad' if self.requires_grad else ''}"


LIMIT: Final = 1 << 16  # the number of cached types


@attrs.frozen
class ScalarType(Type):
    """A Python number: "bool", "int", "float" or "complex"."""

    kind: str

    def __str__(self) -> str:
        return self.kind


@attrs.frozen
class ListType(Type):
    """The type of a list of values of one type."""

    element: Type

    def __str__(self) -> str:
        return f"list({self.element})"


@attrs.frozen
class TupleType(Type):
    """The type of a tuple."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple({', '.join(map(str, self.elements))})"


@attrs.frozen
class NoneType(Type):
    """The type of None."""

    def __str__(self) -> str:
        return "none"


@attrs.frozen
class ObjectType(Type):
    """The type of a value that only an opaque step uses."""

    def __str__(self) -> str:
        return "object"


NONE: Final = NoneType()
OBJECT: Final = ObjectType()


class Window(NamedTuple):
    """A strided window on the memory of a base in row-major order.

    Arguments:
        sizes: the lengths of the dimensions.
        strides: the steps between neighbours, in elements; 0 in dimensions of length 1.
        offset: the position of the first element, in elements from the start of the base.
        dtype: the dtype of the elements, if it differs from that of the base (for example, for the real parts of
            complex numbers). Strides and offset are then measured in the smaller of the two dtypes.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype[Any] | None = None

    @property
    def overlaps_itself(self) -> bool:
        """Return whether two elements may share memory; False only if they do not."""
        if 0 in self.sizes:
            return False
        reach = 0
        for stride, size in sorted((abs(t), s) for t, s in zip(self.strides, self.sizes, strict=True) if s > 1):
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    def __str__(self) -> str:
        dtype = "" if self.dtype is None else f", dtype({self.dtype.name!r})"
        return f"window({list(self.sizes)}, {list(self.strides)}, {self.offset}{dtype})"


def row_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array of `shape` in row-major order; 0 in dimensions of length 1."""
    if 0 in shape:
        return (0,) * len(shape)
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step if extent != 1 else 0)
        step *= extent
    return tuple(reversed(strides))


def whole(shape: tuple[int, ...]) -> Window:
    """Return the window that covers a whole base of `shape`."""
    return Window(shape, row_strides(shape), 0)
