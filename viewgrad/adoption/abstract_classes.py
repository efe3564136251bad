"""Abstract container classes in adopted code; as in NumPy, scalars are not instances of them."""

from __future__ import annotations

import abc
import collections
import collections.abc
import functools
import types
import typing
from typing import Any, Final

import numpy as np

from ..tensor.tensor import Tensor, is_scalar

NAMES: Final = ("Iterable", "Sized", "Container", "Collection")
# Methods of tensors that NumPy's scalars do not have; `__len__` is missing on 0-d tensors.
OF_ARRAYS: Final = frozenset({"__iter__", "__contains__"})


class AbstractType(abc.ABCMeta):
    """The metaclass of the abstract classes of adopted code."""

    original: Any

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> Any:
        """Create a class; a class derived from an abstract class here is derived from Python's abstract class."""
        if any(isinstance(base, AbstractType) for base in bases):
            own = tuple(base.original if isinstance(base, AbstractType) else base for base in bases)
            return types.new_class(name, own, options, lambda names: names.update(body))
        return super().__new__(meta, name, bases, body)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.original) and not (isinstance(value, Tensor) and is_scalar(value))

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, cls.original)

    def register(cls, subclass: Any) -> Any:
        """Register a class as a virtual subclass of Python's abstract class."""
        return cls.original.register(subclass)

    def __getitem__(cls, item: Any) -> Any:
        return cls.original[item]

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)

    def __repr__(cls) -> str:
        return repr(cls.original)


def _abstract(original: Any) -> Any:
    body = {"original": original, "__module__": original.__module__, "__doc__": original.__doc__}
    return AbstractType(original.__name__, (), body)


def _replaced(module: types.ModuleType, found: dict[str, Any]) -> types.ModuleType:
    made = types.ModuleType(module.__name__, module.__doc__)
    vars(made).update({**vars(module), **found})
    return made


@functools.cache
def replaced_module(name: str) -> types.ModuleType:
    """Return a module like `collections.abc` with these classes.

    Arguments:
        name: "collections.abc", "collections" or "typing".
    """
    if name == "collections":
        return _replaced(collections, {"abc": replaced_module("collections.abc")})
    if name == "typing":
        return _replaced(typing, {each: _abstract(getattr(typing, each)) for each in NAMES})
    return _replaced(collections.abc, {each: _abstract(getattr(collections.abc, each)) for each in NAMES})


def has_attribute(value: Any, name: str, /) -> bool:
    """Implement `hasattr` in adopted code, where tensors have the attributes of NumPy's arrays.

    So code that recognizes the tensors of other libraries, as by `hasattr(x, "detach")`, treats them as arrays.
    """
    return not _is_hidden(value, name) and hasattr(value, name)


def get_attribute(value: Any, name: str, /, *default: Any) -> Any:
    """Implement `getattr` in adopted code, where `getattr(x, "detach", None)` of a tensor is None, as of an array."""
    return default[0] if default and _is_hidden(value, name) else getattr(value, name, *default)


def _is_hidden(value: Any, name: str) -> bool:
    if not isinstance(value, Tensor) or not is_added(name):
        return False
    # NumPy's scalars have methods of Python's numbers, such as `is_integer`.
    return not hasattr(value.dtype.type, name) if is_scalar(value) else name not in OF_ARRAYS


def is_added(name: str) -> bool:
    """Return whether tensors, or scalars among them, have an attribute that NumPy's arrays or scalars do not have."""
    return name in OF_ARRAYS or (hasattr(Tensor, name) and not hasattr(np.ndarray, name))
