"""Conversion of objects created by adopted code to the user's own classes when they are returned."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from typing import Any, Final

from .attributes import change_attributes
from .classes import ORIGINAL
from .containers import ATTRIBUTES, HOLDING

CONTAINERS: Final = HOLDING | {tuple, frozenset}


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
        object.__setattr__(value, "__class__", vars(kind)[ORIGINAL])
        handed.add(id(value))
        change_attributes(value, of_users)
        return value
    if kind in ATTRIBUTES:
        before = len(handed)
        for name, part in list(vars(value).items()):
            vars(value)[name] = of_users(part)
        if len(handed) > before:
            handed.add(id(value))
        return value
    if kind not in CONTAINERS:
        return original_of(value)
    items = [*value, *value.values()] if issubclass(kind, dict) else list(value)
    if plain.issuperset(map(type, items)):
        return value
    before = len(handed)
    new = list(map(of_users, items))
    is_same = all(map(operator.is_, items, new))
    if len(handed) > before or not is_same:
        handed.add(id(value))
    if is_same:
        return value
    if kind is tuple or kind is frozenset:
        return kind(new)
    if kind is list:
        value[:] = new
        return value
    value.clear()
    if issubclass(kind, collections.deque):
        value.extend(new)
        return value
    value.update(zip(new[: len(new) // 2], new[len(new) // 2 :], strict=True) if issubclass(kind, dict) else new)
    return value
