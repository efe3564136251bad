"""The classes registered with abstract base classes, which `isinstance` depends on."""

from __future__ import annotations

import abc
import itertools
import weakref
from typing import Any, Final

try:
    from _abc import _get_dump as _registry_dump  # type: ignore[import-not-found]
except ImportError:  # the implementation in Python

    def _registry_dump(kind: Any) -> Any:
        return (kind._abc_registry.data,)


# Numbers of classes, which are not reused, unlike addresses.
_numbers: Final = weakref.WeakKeyDictionary[type, int]()
_next_number: Final = itertools.count()


class AbstractClasses:
    """Abstract classes and the classes registered with them.

    Attributes:
        kinds: the classes.
        token: the cache token at which the registrations were read.
        numbers: the numbers of the registered classes, as text.
    """

    __slots__ = ("kinds", "numbers", "token")

    def __init__(self) -> None:
        self.kinds: list[abc.ABCMeta] = []
        self.token: object = None
        self.numbers = ""


def registered(classes: AbstractClasses) -> str:
    """Return the classes registered with abstract classes, or with their subclasses."""
    token = abc.get_cache_token()
    if classes.token != token:
        found: set[type] = set()
        for kind in classes.kinds:
            _add_registered(kind, found)
        numbers = sorted(_numbers.setdefault(each, next(_next_number)) for each in found)
        classes.token, classes.numbers = token, str(numbers)
    return classes.numbers


def _add_registered(kind: abc.ABCMeta, found: set[type]) -> None:
    registry = [each() for each in _registry_dump(kind)[0]]
    found.update([each for each in registry if each is not None])
    for each in (*registry, *kind.__subclasses__()):
        if isinstance(each, abc.ABCMeta):
            _add_registered(each, found)
