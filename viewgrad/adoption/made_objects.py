"""Conversion of objects created by adopted code to the user's own classes when they are returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .attributes import change_attributes, instance_dict, set_instance_dict
from .classes import ORIGINAL
from .containers import (
    ATTRIBUTES,
    HOLDING,
    are_same_objects,
    contents_of,
    kind_of_contents,
    write_contents,
)

IMMUTABLE: Final = tuple, frozenset


def hand_over(
    value: Any,
    original_of: Callable[[Any], Any],
    plain: frozenset[type],
    handed: set[int],
    around: frozenset[int] = frozenset(),
) -> Any:
    """Give objects of adopted classes the user's classes, also in attributes and containers.

    Arguments:
        value: the value to return to the user's program.
        original_of: a function that returns the user's own object for an adopted version.
        plain: types of values that are neither adopted nor contain adopted values.
        handed: a set that receives the addresses of the objects whose classes change, and of containers that contain or
            contained an adopted version.
        around: the addresses of the containers around the value, which may be in a cycle.

    Returns:
        The value or its replacement.
    """
    kind = type(value)
    if kind in plain or id(value) in around:
        return value

    def of_users(part: Any) -> Any:
        return hand_over(part, original_of, plain, handed, around | {id(value)})

    if ORIGINAL in vars(kind):
        users = original_of(value)
        if users is not value:
            return users
        object.__setattr__(value, "__class__", vars(kind)[ORIGINAL])
        handed.add(id(value))
        change_attributes(value, of_users)
        return _with_users_items(value, of_users)
    if kind in ATTRIBUTES:
        before = len(handed)
        for name, part in list(vars(value).items()):
            vars(value)[name] = of_users(part)
        if len(handed) > before:
            handed.add(id(value))
        return value
    if kind not in IMMUTABLE and kind not in HOLDING:
        return original_of(value)
    items = list(value) if kind in IMMUTABLE else contents_of(value)
    if plain.issuperset(map(type, items)):
        return value
    before = len(handed)
    new = list(map(of_users, items))
    is_same = are_same_objects(items, new)
    if len(handed) > before or not is_same:
        handed.add(id(value))
    if is_same:
        return value
    if kind in IMMUTABLE:
        return kind(new)
    write_contents(value, new)
    return value


def _with_users_items(value: Any, of_users: Callable[[Any], Any]) -> Any:
    """Replace the items of an object of a subclass of a container; return a new object if it is a tuple."""
    kind = type(value)
    is_tuple = isinstance(value, tuple)
    if not is_tuple and kind_of_contents(kind) is None:
        return value
    items = list(tuple.__iter__(value)) if is_tuple else contents_of(value)
    new = list(map(of_users, items))
    if are_same_objects(items, new):
        return value
    if not is_tuple:
        write_contents(value, new)
        return value
    made = tuple.__new__(kind, new)
    attributes = instance_dict(value)
    if attributes is not None:
        set_instance_dict(made, attributes)
    return made
