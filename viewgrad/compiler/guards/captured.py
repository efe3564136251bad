"""Captured values, and how each of them is looked up again."""

from __future__ import annotations

import gc
import operator
from typing import Any, Final, NamedTuple

import numpy as np

# The ways in which a value is looked up: in a dict, a cell or a sequence, as an attribute, never, or by a call.
ITEM, CELL, INDEX, ATTRIBUTE, FIXED, CALLED = range(6)

UNCHANGEABLE: Final = frozenset({object, type(None), bool, int, float, complex, str, bytes, np.float64, np.int64})
LINK: Final = "_lru_list_elem"  # the class of the items of a cache of limited size


class Captured(NamedTuple):
    """A value that a function captures.

    Arguments:
        path: the path by which it is reached, for comparison.
        value: the value.
        how, owner, key: how it is looked up again.
    """

    path: str
    value: Any
    how: int = FIXED
    owner: Any = None
    key: Any = None

    def now(self) -> Any:
        """Return the current value."""
        if self.how == ITEM:
            return self.owner.get(self.key)
        if self.how == CELL:
            try:
                return self.owner.cell_contents
            except ValueError:
                return None
        if self.how == INDEX:
            return self.owner[self.key] if self.key < len(self.owner) else None
        if self.how == CALLED:
            return self.owner(self.key)
        return getattr(self.owner, self.key, None) if self.how == ATTRIBUTE else self.value


class Attributes:
    """The attributes of a module, class or function that the code uses.

    Arguments:
        content: the attributes.
        count: their number. If it changes, the names are looked up again.
    """

    __slots__ = ("content", "count")

    def __init__(self, content: Any, count: int) -> None:
        self.content = content
        self.count = count


class Content:
    """The variables of a module whose code may refer to any of them.

    Arguments:
        variables: the variables.
    """

    __slots__ = ("names", "values")

    def __init__(self, variables: dict[str, Any]) -> None:
        self.names = list(variables)
        self.values = list(variables.values())

    def is_same(self, other: Content) -> bool:
        """Return whether another mapping has the same names with the same objects."""
        return self.names == other.names and all(map(operator.is_, self.values, other.values))


class CachedResults:
    """The results that a function decorated with `functools.lru_cache` keeps, except for those that cannot change.

    Its next calls return these objects, which other code may have written to.

    Arguments:
        cached: the function.
    """

    __slots__ = ("results",)

    def __init__(self, cached: Any) -> None:
        referents = gc.get_referents(cached)
        tables = [each for each in referents if type(each) is dict and each is not cached.__dict__]
        if cached.cache_parameters()["maxsize"] is None:
            referents = [result for table in tables for result in table.values()]
        own = {id(cached.__dict__), id(cached.__wrapped__)}
        own.update(id(table) for table in tables if any(type(each).__name__ == LINK for each in table.values()))
        self.results = [
            each for each in referents
            if type(each) not in UNCHANGEABLE and id(each) not in own and not isinstance(each, type)
        ]  # fmt: skip

    def is_same(self, before: CachedResults) -> bool:
        """Return whether all of the earlier results are still kept.

        An adopted function uses the cache from its first result on.
        """
        known = set(map(id, self.results))
        return (bool(before.results) or not known) and known.issuperset(map(id, before.results))


class Unguarded(str):
    """A reason not to compile a function: it captures state that can change undetected."""
