"""Overrides of class methods, and of other descriptors that use the class, in the classes of views.

The class of a view is an internal one. `model.count()` of a class method must pass the adopted class of the user's
`Model`, so that `cls is Model`, `isinstance(x, cls)` and `cls.calls += 1` mean what they mean in the user's program.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any, Final

from .attributes import resolution_order
from .counterparts import MISSING

# Types of descriptors that make no use of the class.
OF_OBJECTS: Final = (
    types.FunctionType, staticmethod, property, functools.cached_property, types.MemberDescriptorType,
    types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
)  # fmt: skip


class WithClass:
    """A descriptor that calls another one with the adopted class instead of the class of the view.

    Arguments:
        descriptor: the other descriptor.
        made: the adopted class.
    """

    __slots__ = ("descriptor", "made")

    def __init__(self, descriptor: Any, made: type) -> None:
        self.descriptor: Final = descriptor
        self.made: Final = made

    def __get__(self, view: Any, kind: Any = None) -> Any:
        return type(self.descriptor).__get__(self.descriptor, view, self.made)


class DataWithClass(WithClass):
    """`WithClass` for a data descriptor."""

    __slots__ = ()

    def __set__(self, view: Any, value: Any) -> None:
        type(self.descriptor).__set__(self.descriptor, view, value)

    def __delete__(self, view: Any) -> None:
        type(self.descriptor).__delete__(self.descriptor, view)


class BoundToClass(staticmethod):  # type: ignore[type-arg]
    """A method bound to the adopted class, which is called without a `__get__` written in Python."""


def override_descriptors(views: type, made: type, names: Iterable[str]) -> None:
    """Update the overrides in a class of views.

    Arguments:
        views: the class of views that fetch all attributes at once, from which the others derive.
        made: the adopted class.
        names: the names of attributes of the adopted class that may have changed.
    """
    for name in names:
        if name.startswith("__"):
            continue
        found = next((vars(base)[name] for base in resolution_order(made) if name in vars(base)), MISSING)
        if _uses_class(found):
            type.__setattr__(views, name, _with_class(found, made))
        elif isinstance(vars(views).get(name), (WithClass, BoundToClass)):
            type.__delattr__(views, name)


def _uses_class(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "__get__") and not issubclass(kind, OF_OBJECTS) and not issubclass(kind, type)


def _with_class(found: Any, made: type) -> Any:
    if type(found) is classmethod and type(found.__func__) is types.FunctionType:
        return BoundToClass(found.__get__(None, made))
    kind = type(found)
    return (DataWithClass if hasattr(kind, "__set__") or hasattr(kind, "__delete__") else WithClass)(found, made)
