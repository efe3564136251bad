"""Access to the stored attributes of objects, bypassing properties and `__getattr__` of their classes."""

from __future__ import annotations

import collections
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

from .counterparts import MISSING

STATE: Final = "__viewgrad_state__"  # the slot of a view

# The classes in which Python looks up attributes of a class; None while the class is being created. The attribute
# `__mro__` of adopted classes has those that the user's program has.
resolution_order: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
# How objects of a class store their attributes; see `_layout`.
_LAYOUTS: Final[weakref.WeakKeyDictionary[type, tuple[Any, Any, dict[str, Any]]]] = weakref.WeakKeyDictionary()


def change_attributes(value: Any, changed: Callable[[Any], Any]) -> None:
    """Replace the values of attributes of an object."""
    for name, old in list(attributes_of(value)):
        new = changed(old)
        if new is not old:
            store(value, name, new)


def instance_dict(value: Any) -> Any:
    """Return the `__dict__` that an object itself has, or None; the one of a view gives those of the original."""
    descriptor = _layout(type(value))[0]
    return None if descriptor is None else descriptor.__get__(value)


def set_instance_dict(value: Any, new: dict[str, Any]) -> None:
    """Replace the `__dict__` of an object itself."""
    _layout(type(value))[0].__set__(value, new)


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
    return _layout(type(value))[1]


def _layout(kind: type) -> tuple[Any, dict[str, Any]]:
    """Return the descriptor of the instance dict of a class, or None, and the descriptors of its slots."""
    found, order = _LAYOUTS.get(kind), resolution_order(kind)
    if found is None or found[0] is not order:  # the bases of a class may be reassigned
        content = [item for base in order for item in vars(base).items()]
        dicts = [each for name, each in content if name == "__dict__" and isinstance(each, types.GetSetDescriptorType)]
        slots = {
            name: each
            for name, each in content
            if isinstance(each, types.MemberDescriptorType)
            and name != STATE
            and each.__objclass__ is not collections.defaultdict
        }
        found = _LAYOUTS[kind] = (order, dicts[0] if dicts else None, slots)
    return found[1], found[2]
