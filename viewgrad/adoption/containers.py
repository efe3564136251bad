"""Lists, dicts, sets, deques and namespaces of functions, models, arrays and modules as accessed by adopted code.

`METHODS["euler"](x)`, `for layer in self.layers` and `parameters.matrix.copy()` must return adopted versions, and
`DERIVATIVES[np.sin]` and `AREAS[type(shape)]` must find keys that are functions and classes. The container of adopted
code stores adopted items and keys, is read at full speed, and applies each change to the user's own container too.
"""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable
from typing import Any, Final


class AdoptedContainer:
    """A container with adopted contents, which applies writes to the original too.

    Arguments:
        original: the user's container.
        adopted: a function that returns the adopted version of an item.
        unadopted: a function that returns the user's own object for an adopted version.
    """

    _seen: Any  # the contents of the original at the last comparison
    # Replaces the contents by those of the original. It assigns `_seen` last, so that an interruption leaves the
    # contents outdated.
    _fill: Callable[[], None]

    def __init__(self, original: Any, adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]) -> None:
        super().__init__()
        self.original: Final[Any] = original
        self._adopted: Final = adopted
        self._unadopted: Final = unadopted
        self._fill()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The type of the original, which `type` in adopted code returns, too."""
        return REPORTED[type(self)]

    def refresh(self) -> None:
        """Update the contents from the original."""
        if not self._is_current():
            self._fill()

    def _is_current(self) -> bool:
        """Return whether the original has the same contents as before."""
        return len(self.original) == len(self._seen) and all(map(operator.is_, self.original, self._seen))

    def forget_values(self: Any, handed: set[int]) -> None:
        """Mark the contents as outdated if an item has one of the given addresses; see `refresh`."""
        if not handed.isdisjoint(map(id, self)):
            self._seen = [self]  # a value that the original never equals, even if it was cleared


class AdoptedList(AdoptedContainer, list[Any]):
    """A list with adopted items; see `AdoptedContainer`."""

    def _fill(self) -> None:
        seen = list(self.original)
        super().__setitem__(slice(None), list(map(self._adopted, seen)))
        self._seen = seen

    def write_original(self) -> None:
        """Copy the contents of this list into the original."""
        self._seen = list(map(self._unadopted, self))
        self.original[:] = self._seen

    def append(self, item: Any) -> None:
        """Append an item to both lists, in constant time."""
        is_current = len(self) == len(self.original) == len(self._seen)
        super().append(item)
        if is_current:
            self.original.append(self._unadopted(item))
            self._seen.append(self.original[-1])
        else:
            self.write_original()

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        if len(self) == len(self.original) == len(self._seen) and not isinstance(index, slice):
            self.original[index] = self._seen[index] = self._unadopted(value)
        else:
            self.write_original()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(map(self._unadopted, self)),)


class AdoptedDict(AdoptedContainer, dict[Any, Any]):
    """A dict with adopted keys and values; see `AdoptedContainer`."""

    def _is_current(self) -> bool:
        return super()._is_current() and all(map(operator.is_, self.original.values(), self._seen.values()))

    def _fill(self) -> None:
        seen = dict(self.original)
        super().clear()
        for key, value in seen.items():
            super().__setitem__(self._adopted(key), self._adopted(value))
        self._seen = seen

    def forget_values(self, handed: set[int]) -> None:
        """Mark the contents as outdated if a key or value has one of the given addresses; see `refresh`."""
        if not (handed.isdisjoint(map(id, self.values())) and handed.isdisjoint(map(id, self))):
            self._seen = {self.forget_values: self}

    def write_original(self) -> None:
        """Copy the contents of this dict into the original."""
        self._seen = self._for_users()
        self.original.clear()
        self.original.update(self._seen)

    def _for_users(self) -> dict[Any, Any]:
        return {self._unadopted(key): self._unadopted(value) for key, value in self.items()}

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        users = self._unadopted(key)
        self.original[users] = self._seen[users] = self._unadopted(value)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (self._for_users(),)


class AdoptedOrderedDict(AdoptedDict, collections.OrderedDict[Any, Any]):
    """An ordered dict with adopted keys and values; see `AdoptedDict`."""

    def copy(self) -> Any:
        """Return a new ordered dict with the same contents."""
        return collections.OrderedDict(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return collections.OrderedDict, (self._for_users(),)


class AdoptedDefaultDict(AdoptedDict, collections.defaultdict[Any, Any]):
    """A dict with adopted keys, values and default factory; see `AdoptedDict`."""

    def _is_current(self) -> bool:
        return self.original.default_factory is self._factory and super()._is_current()

    def _fill(self) -> None:
        factory = self.original.default_factory
        self.default_factory = self._adopted(factory)
        super()._fill()
        self._factory = factory

    def __missing__(self, key: Any) -> Any:
        """Add a value by the default factory, to the original too: Python 3.14 does not call `__setitem__`."""
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = value = self.default_factory()
        return value

    def copy(self) -> Any:
        """Return a new dict with the same contents and default factory."""
        return collections.defaultdict(self.default_factory, self)

    __copy__ = copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        return collections.defaultdict, (self._unadopted(self.default_factory), self._for_users())


class AdoptedSet(AdoptedContainer, set[Any]):
    """A set with adopted items; see `AdoptedContainer`."""

    def _fill(self) -> None:
        seen = list(self.original)
        items = list(map(self._adopted, seen))
        super().clear()
        super().update(items)
        self._seen = seen

    def write_original(self) -> None:
        """Copy the contents of this set into the original."""
        items = list(map(self._unadopted, self))
        self.original.clear()
        self.original.update(items)
        self._seen = list(self.original)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return set, (list(map(self._unadopted, self)),)


class AdoptedDeque(AdoptedContainer, collections.deque[Any]):
    """A deque with adopted items; see `AdoptedContainer`."""

    def _fill(self) -> None:
        seen = self.original.copy()
        collections.deque.__init__(self, list(map(self._adopted, seen)), seen.maxlen)
        self._seen = seen

    def write_original(self) -> None:
        """Copy the contents of this deque into the original."""
        self._seen = collections.deque(map(self._unadopted, self), self.maxlen)
        self.original.clear()
        self.original.extend(self._seen)

    def copy(self) -> Any:
        """Return a new deque with the same items and maximum length."""
        return collections.deque(self, self.maxlen)

    __copy__ = copy

    def __add__(self, other: Any) -> Any:
        return self.copy() + other

    def __mul__(self, count: Any) -> Any:
        return self.copy() * count

    __rmul__ = __mul__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return collections.deque, (list(map(self._unadopted, self)), self.maxlen)


BESIDES: Final = ("_adopted", "_seen", "_unadopted", "original")  # the slots for what is not an attribute


class AdoptedAttributes:
    """An object with adopted values of all attributes, which applies assignments to the original too.

    Arguments:
        original: the user's object.
        adopted: a function that returns the adopted version of a value.
        unadopted: a function that returns the user's own object for an adopted version.
    """

    __slots__ = ()
    _adopted: Any
    _seen: dict[str, Any]
    _unadopted: Any
    original: Any

    def __init__(self, original: Any, adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]) -> None:
        assign = super().__setattr__
        assign("original", original)
        assign("_adopted", adopted)
        assign("_unadopted", unadopted)
        assign("_seen", {})
        self.refresh()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return REPORTED[type(self)]

    def refresh(self) -> None:
        """Update the values from the original."""
        now, seen, own = vars(self.original), self._seen, vars(self)
        for name in [name for name in seen if name not in now]:
            del seen[name], own[name]
        for name, value in list(now.items()):
            if name not in seen or seen[name] is not value:
                seen[name] = value
                own[name] = self._adopted(value)

    def forget_values(self, handed: set[int]) -> None:
        """Mark the values that have one of the given addresses as outdated; see `refresh`."""
        for name, value in vars(self).items():
            if id(value) in handed:
                self._seen[name] = self  # not a value of the original

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self._seen[name] = self._unadopted(value)
        setattr(self.original, name, self._seen[name])

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        del self._seen[name]
        delattr(self.original, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.original.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self.original)


class AdoptedNamespace(AdoptedAttributes, types.SimpleNamespace):
    """A namespace with adopted values; see `AdoptedAttributes`."""

    __slots__ = ("__weakref__", *BESIDES)


class AdoptedUserDict(AdoptedAttributes, collections.UserDict[Any, Any]):
    """A `UserDict` whose dict is adopted; see `AdoptedAttributes`."""

    __slots__ = BESIDES


class AdoptedUserList(AdoptedAttributes, collections.UserList[Any]):
    """A `UserList` whose list is adopted; see `AdoptedAttributes`."""

    __slots__ = BESIDES


class AdoptedChainMap(AdoptedAttributes, collections.ChainMap[Any, Any]):
    """A `ChainMap` of adopted mappings; see `AdoptedAttributes`."""

    __slots__ = BESIDES


class AdoptedTupleAttributes(AdoptedDict):
    """The `__dict__` of the adopted version of a tuple, whose attributes are assigned without `__setitem__`.

    Arguments:
        owner: the user's tuple.
        original: its `__dict__`.
        adopted: a function that returns the adopted version of a value.
        unadopted: a function that returns the user's own object for an adopted version.
    """

    def __init__(
        self, owner: Any, original: Any, adopted: Callable[[Any], Any], unadopted: Callable[[Any], Any]
    ) -> None:
        self.owner: Final = owner
        super().__init__(original, adopted, unadopted)

    def _fill(self) -> None:
        super()._fill()
        self._bound = contents_of(self)

    def flush(self) -> None:
        """Assign to the original the attributes that adopted code has assigned."""
        now = contents_of(self)
        if not are_same_objects(now, self._bound):
            self.write_original()
            self._bound = now


def kind_of_contents(cls: type) -> Any:
    """Return the built-in container that a class derives from, or None."""
    return next((base for base in cls.__mro__ if base in HOLDING), None)


def contents_of(container: Any) -> list[Any]:
    """Return the items of a list, deque or set, the keys, values and default factory of a dict, or the values of
    attributes.

    Methods of subclasses are bypassed.
    """
    kind = type(container)
    if kind is list:
        return container.copy()  # type: ignore[no-any-return]
    if kind is dict:
        return [*container, *container.values()]
    if isinstance(container, ATTRIBUTES):
        return list(vars(container).values())
    kind = kind_of_contents(kind)
    if not issubclass(kind, dict):
        return list(kind.__iter__(container))
    items = [*kind.__iter__(container), *kind.values(container)]
    if kind is collections.defaultdict:
        items.append(_FACTORY.__get__(container))
    return items


def write_contents(container: Any, items: list[Any]) -> None:
    """Replace the contents of a container by others in the order of `contents_of`, bypassing methods of subclasses."""
    kind = kind_of_contents(type(container))
    if kind is list:
        list.__setitem__(container, slice(None), items)
        return
    if not issubclass(kind, dict):
        kind.clear(container)
        (kind.extend if kind is collections.deque else kind.update)(container, items)
        return
    if kind is collections.defaultdict:
        *items, factory = items
        _FACTORY.__set__(container, factory)
    keys = items[: len(items) // 2]
    if not are_same_objects(keys, list(kind.__iter__(container))):
        kind.clear(container)
    for key, value in zip(keys, items[len(keys) :], strict=True):
        kind.__setitem__(container, key, value)


def are_same_objects(one: list[Any], other: list[Any]) -> bool:
    """Return whether two lists contain the same objects in the same order."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _writing(kind: type, name: str) -> Callable[..., Any]:
    """Return a method that changes the adopted container and then the original."""

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = getattr(super(kind, self), name)(*args, **kwargs)
        self.write_original()
        return result

    write.__name__ = name
    return write


def _writing_both(kind: type, name: str) -> Callable[..., Any]:
    """Return a method that changes the adopted deque and, by the same method, the original."""

    def write(self: Any, *args: Any) -> Any:
        is_current = len(self) == len(self.original) == len(self._seen)
        result = getattr(super(kind, self), name)(*args)
        if is_current:
            users = tuple(map(self._unadopted, args))
            getattr(self.original, name)(*users)
            getattr(self._seen, name)(*users)
        else:
            self.write_original()
        return result

    write.__name__ = name
    return write


for _kind, _names in (
    (
        AdoptedList,
        ("extend", "insert", "pop", "remove", "clear", "sort", "reverse", "__delitem__", "__iadd__", "__imul__"),
    ),
    (
        AdoptedDict,
        ("pop", "popitem", "clear", "update", "setdefault", "__delitem__", "__ior__"),
    ),
    (
        AdoptedSet,
        ("add", "discard", "remove", "pop", "clear", "update", "difference_update", "intersection_update",
         "symmetric_difference_update", "__iand__", "__ior__", "__isub__", "__ixor__"),
    ),
    (AdoptedOrderedDict, ("move_to_end",)),
    (AdoptedDeque, ("extend", "extendleft", "insert", "remove", "__iadd__", "__imul__")),
):  # fmt: skip
    for _name in _names:
        setattr(_kind, _name, _writing(_kind, _name))
for _name in ("append", "appendleft", "pop", "popleft", "clear", "rotate", "reverse", "__setitem__", "__delitem__"):
    setattr(AdoptedDeque, _name, _writing_both(AdoptedDeque, _name))

CONTAINERS: Final[dict[type, Any]] = {
    list: AdoptedList, dict: AdoptedDict, set: AdoptedSet, types.SimpleNamespace: AdoptedNamespace,
    collections.OrderedDict: AdoptedOrderedDict, collections.defaultdict: AdoptedDefaultDict,
    collections.deque: AdoptedDeque, collections.UserDict: AdoptedUserDict, collections.UserList: AdoptedUserList,
    collections.ChainMap: AdoptedChainMap,
}  # fmt: skip
ATTRIBUTES: Final = (types.SimpleNamespace, collections.UserDict, collections.UserList, collections.ChainMap)
# The types that adopted code sees instead of those of its containers.
REPORTED: Final[dict[type, type]] = {**{made: kind for kind, made in CONTAINERS.items()}, AdoptedTupleAttributes: dict}
# Types of containers into which adopted code may put objects that it has created.
HOLDING: Final = frozenset(CONTAINERS).difference(ATTRIBUTES)
_FACTORY: Final[Any] = vars(collections.defaultdict)["default_factory"]
