"""Operators that test the kit: faulty ones, each with the property that must detect it, and correct, tricky ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

__all__ = ["FIRST_WRITTEN", "NOTED", "RIGHT", "WRONG", "Entry", "noted", "right", "wrong"]


@attrs.frozen
class Entry:
    """One operator of the gallery.

    Arguments:
        name: its name.
        make: returns a new operator; called once for each test.
        args: the arguments that it is checked with.
        kwargs: the keyword arguments.
        properties: one of these must detect the fault; none for a correct operator.
        means: the author's declarations: a surrogate, a structure, a domain.
    """

    name: str
    make: Callable[[], Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    properties: tuple[str, ...] = ()
    means: dict[str, Any] = attrs.Factory(dict)


WRONG: dict[str, Entry] = {}
RIGHT: dict[str, Entry] = {}
NOTED: dict[str, Entry] = {}
FIRST_WRITTEN: dict[str, Entry] = {}

# Ordinary numbers: no special ones, no duplicates.
M = np.array([[0.7, -1.3, 2.1], [1.9, 0.4, -0.6]])
V = np.array([1.2, -0.8, 0.3])
P = np.array([[0.7, 1.3, 2.1], [1.9, 0.4, 0.6]])  # positive
Q = np.array([1.2, 0.8, 0.3])  # positive
Z = np.array([[0.7 + 0.2j, -1.3 - 0.5j], [0.4 + 1.1j, -0.6 + 0.9j]])


def wrong(*args: Any, by: str | tuple[str, ...], **kwargs: Any) -> Callable[[Any], Any]:
    """Add a faulty operator to the gallery: a class or a function, or one called `make_...` that makes it."""
    properties = (by,) if isinstance(by, str) else by

    def put(thing: Any) -> Any:
        WRONG[_name(thing)] = Entry(_name(thing), _maker(thing), args, kwargs, properties)
        return thing

    return put


def right(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Add a correct operator to the gallery."""

    def put(thing: Any) -> Any:
        RIGHT[_name(thing)] = Entry(_name(thing), _maker(thing), args, kwargs)
        return thing

    return put


def noted(*args: Any, told: str = "NaN where the function has no derivative") -> Callable[[Any], Any]:
    """Add an operator to the gallery that is correct for intended calls, and a text of the notice about others."""

    def put(thing: Any) -> Any:
        NOTED[_name(thing)] = Entry(_name(thing), _maker(thing), args, {}, (told,))
        return thing

    return put


def _name(thing: Any) -> str:
    return str(thing.__name__).removeprefix("make_")


def _maker(thing: Any) -> Callable[[], Any]:
    if isinstance(thing, type):
        return lambda: thing.apply
    if thing.__name__.startswith("make_"):
        return thing
    return lambda: thing
