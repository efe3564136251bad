"""The classes that 0-d tensors report as `__class__`, so that programs treat them as numbers.

`isinstance` checks `type(x)` first and `x.__class__` next. No class can derive from both `Tensor` and NumPy's numbers,
whose layouts in memory differ. So each of NumPy's number types has a subclass without instances, which `issubclass`
reports as a subclass of `Tensor` too. `functools.singledispatch` relies on that.
"""

from __future__ import annotations

from typing import Any, Final

_MADE: Final[dict[type, Any]] = {}  # by NumPy's type


class NoLength(TypeError, AttributeError):
    """A descriptor that makes `len(x)` raise TypeError and `hasattr(x, "__len__")` false for 0-d tensors."""


class TensorType(type):
    """The metaclass of `Tensor`, which makes 0-d tensors instances of it regardless of their `__class__`."""

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Return whether a class is a subclass, including the classes that 0-d tensors report."""
        return type.__subclasscheck__(cls, subclass) or getattr(subclass, "tensor_class", None) is cls


def number_class(kind: type, tensor_class: TensorType) -> Any:
    """Return the class that 0-d tensors report as `__class__` for NumPy's scalar type `kind`.

    Arguments:
        kind: NumPy's scalar type of its dtype.
        tensor_class: the actual class, which calling the returned class instantiates.
    """
    found = _MADE.get(kind)
    if found is None:
        names = {"__doc__": tensor_class.__doc__, "__module__": tensor_class.__module__, "__new__": _new}
        found = _MADE[kind] = type(tensor_class.__name__, (kind,), names | {"tensor_class": tensor_class})
    return found


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Create a tensor, for `x.__class__(data)`."""
    return cls.tensor_class(*args, **kwargs)
