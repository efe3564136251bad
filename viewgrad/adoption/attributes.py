"""Access to the stored attributes of objects, bypassing properties and `__getattr__` of their classes."""

from __future__ import annotations

import collections
import operator
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

from .counterparts import MISSING
from .locations import VIEWGRAD, file_of

STATE: Final = "__viewgrad_state__"  # the slot of a view

# The classes in which Python looks up attributes of a class; None while the class is being created. The attribute
# `__mro__` of adopted classes has those that the user's program has.
resolution_order: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
# How objects of a class store their attributes; see `_layout`.
_LAYOUTS: Final[weakref.WeakKeyDictionary[type, _Layout]] = weakref.WeakKeyDictionary()


def hides_class(value: Any) -> bool:
    """Return whether `isinstance` raises for an object, as for a `weakref.proxy` of an object that is gone."""
    try:
        value.__class__  # noqa: B018
    except Exception:
        return True
    return False


def hides_type(value: Any) -> bool:
    """Return whether `isinstance` raises for an object, or takes it for one of a class that it does not derive from.

    A mock of a dict, for example, reports the class `dict`, but has no items. Objects of viewgrad that report another
    class, such as scalars, are not meant.
    """
    if hides_class(value):
        return True
    shown, kind = value.__class__, type(value)
    if shown is kind or (isinstance(shown, type) and issubclass(kind, shown)):
        return False
    return not file_of(kind).startswith(VIEWGRAD)


def change_attributes(value: Any, changed: Callable[[Any], Any]) -> None:
    """Replace the values of attributes of an object."""
    for name, old in list(attributes_of(value)):
        new = changed(old)
        if new is not old:
            store(value, name, new)


def instance_dict(value: Any) -> Any:
    """Return the `__dict__` that an object itself has, or None; the one of a view gives those of the original."""
    descriptor = _layout(type(value)).dict_descriptor()
    return None if descriptor is None else descriptor.__get__(value)


def set_instance_dict(value: Any, new: dict[str, Any]) -> None:
    """Replace the `__dict__` of an object itself."""
    _layout(type(value)).dict_descriptor().__set__(value, new)


def unshare_instance_dict(value: Any) -> None:
    """Replace the `__dict__` of an object by a copy.

    The one that CPython creates shares its keys with those of other objects. Attributes are not found by their position
    in it, so that to read them takes several times as long. The dict is copied and replaced by calls in C, during which
    no other thread assigns attributes.
    """
    descriptor = _layout(type(value)).dict_descriptor()
    if descriptor is not None:
        list(map(descriptor.__set__, (value,), map(dict, (descriptor.__get__(value),))))


def real_dict(value: Any) -> dict[str, Any]:
    """Return the dict of the attributes of an object itself; a dict that is its own `__dict__` has only contents."""
    found = instance_dict(value)
    return {} if found is None or found is value else found


def attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the attributes of an object itself, not of its class."""
    yield from real_dict(value).items()
    for name, descriptor in _slots(value).items():
        try:
            yield name, descriptor.__get__(value)
        except AttributeError:
            continue


def own_attribute(value: Any, name: str) -> Any:
    """Return an attribute of an object itself, not of its class, or MISSING if there is none."""
    found = real_dict(value).get(name, MISSING)
    if found is MISSING and name in _slots(value):
        try:
            return _slots(value)[name].__get__(value)
        except AttributeError:
            return MISSING
    return found


def store(value: Any, name: str, new: Any) -> None:
    """Set an attribute of an object."""
    slot = _slots(value).get(name)
    if slot is None:
        real_dict(value)[name] = new
    else:
        slot.__set__(value, new)


def discard(value: Any, name: str) -> None:
    """Delete an attribute of an object if it exists."""
    slot = _slots(value).get(name)
    if slot is None:
        real_dict(value).pop(name, None)
    elif own_attribute(value, name) is not MISSING:
        slot.__delete__(value)


def has_slots(value: Any) -> bool:
    """Return whether an object has attributes in addition to those in its dict."""
    return bool(_slots(value))


def _slots(value: Any) -> dict[str, Any]:
    return _layout(type(value)).slots()


def _layout(kind: type) -> _Layout:
    """Return how objects of a class store their attributes."""
    found, order = _LAYOUTS.get(kind), resolution_order(kind)
    if found is None or not found.is_of(order):
        found = _LAYOUTS[kind] = _Layout(order)
    return found


class _Layout:
    """How objects of a class store their attributes.

    It refers to classes weakly, since `_LAYOUTS` would otherwise keep its own keys alive: a descriptor refers to its
    class.

    Arguments:
        order: the classes in which Python looks up attributes.
    """

    def __init__(self, order: tuple[type, ...]) -> None:
        self._order: Final = tuple(map(weakref.ref, order))
        self._dict: Callable[[], Any] | None = None  # the class that has the descriptor of the instance dict
        self._slots: Final[dict[str, Callable[[], Any]]] = {}  # by name, the class that has the descriptor
        for base, reference in zip(order, self._order, strict=True):
            for name, each in vars(base).items():
                if name == "__dict__" and self._dict is None and isinstance(each, types.GetSetDescriptorType):
                    self._dict = reference
                if isinstance(each, types.MemberDescriptorType) and each.__objclass__ is not collections.defaultdict:
                    self._slots.setdefault(name, reference)
        self._slots.pop(STATE, None)

    def is_of(self, order: tuple[type, ...]) -> bool:
        """Return whether this is the layout for a resolution order; the bases of a class may be reassigned."""
        return len(order) == len(self._order) and all(map(operator.is_, order, map(operator.call, self._order)))

    def dict_descriptor(self) -> Any:
        """Return the descriptor of the instance dict, or None."""
        return None if self._dict is None else vars(self._dict())["__dict__"]

    def slots(self) -> dict[str, Any]:
        """Return the descriptors of slots by name."""
        return {name: vars(reference())[name] for name, reference in self._slots.items()} if self._slots else {}
