"""The classes that tensors without dimensions name as their own, so that programs take them for numbers.

`isinstance` looks at `type(x)` first and at `x.__class__` next. Python does not let one class be that of tensors and of
NumPy's numbers at once, since the two lie in memory differently. So there is a class below each of NumPy's numbers, of
which no object is ever made, and `issubclass` finds it below `Tensor` too. `functools.singledispatch` asks in that way.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["NoLength", "TensorType", "number_class"]

_MADE: Final[dict[type, Any]] = {}  # by NumPy's type


class NoLength(TypeError, AttributeError):
    """Raise TypeError for `len(x)`, and make `hasattr(x, "__len__")` false, for a tensor without dimensions."""


class TensorType(type):
    """The metaclass of `Tensor`: makes 0-d tensors instances of it, whatever their `__class__`."""

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Return whether a class is a base of this one, as for the classes that tensors without dimensions name."""
        return type.__subclasscheck__(cls, subclass) or getattr(subclass, "tensor_class", None) is cls


def number_class(kind: type, tensor_class: TensorType) -> Any:
    """Return the class that a tensor without dimensions of NumPy's type `kind` names as its own.

    Arguments:
        kind: the type of NumPy's numbers of its dtype.
        tensor_class: what it is actually; the class found makes such tensors where it is called.
    """
    found = _MADE.get(kind)
    if found is None:
        names = {"__doc__": tensor_class.__doc__, "__module__": tensor_class.__module__, "__new__": _new}
        found = _MADE[kind] = type(tensor_class.__name__, (kind,), names | {"tensor_class": tensor_class})
    return found


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a tensor, for `x.__class__(data)`."""
    return cls.tensor_class(*args, **kwargs)
