"""What a function sees besides its arguments: variables of enclosing functions and of its module, and defaults.

A recorded run holds what was found there. So before it is used again, all of it is compared with what it was. Numbers,
strings and arrays are compared by value, functions by identity and by what they see in their turn. Tensors are looked
up anew.
"""

from __future__ import annotations

import dis
import functools
import inspect
import random
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...tensor.tensor import Tensor

__all__ = ["SIMPLE", "Surroundings", "random_state"]

SIMPLE: Final = (int, float, complex, str, bytes, type(None), np.generic, range, slice)
COPIED: Final = (set, deque, bytearray)  # which are compared with a copy
DEPTH: Final = 6
MOST: Final = 20_000  # things that are looked at
PACKAGES: Final = ("viewgrad", "numpy", "scipy")
OF_MODULES: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # instructions that look names up there
_names_of: Final = weakref.WeakKeyDictionary[types.CodeType, list[str]]()


# How a thing is looked up again: in a dict, in a cell, in a sequence, as an attribute, or not at all.
ITEM, CELL, PLACE, ATTRIBUTE, FIXED = range(5)


class Seen(NamedTuple):
    """A thing that a function sees.

    Arguments:
        path: how it is reached, for comparison.
        value: the thing.
        how, owner, key: how it is looked up again.
    """

    path: str
    value: Any
    how: int = FIXED
    owner: Any = None
    key: Any = None

    def now(self) -> Any:
        """What is there now."""
        if self.how == ITEM:
            return self.owner.get(self.key)
        if self.how == CELL:
            try:
                return self.owner.cell_contents
            except ValueError:
                return None
        if self.how == PLACE:
            return self.owner[self.key] if self.key < len(self.owner) else None
        return getattr(self.owner, self.key, None) if self.how == ATTRIBUTE else self.value


class Surroundings:
    """What a function sees besides its arguments.

    Arguments:
        function: the function.
        arguments: what is neither a tensor nor an array nor a number among its arguments: functions, objects.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any] = ()) -> None:
        self.function = function
        self.arguments = arguments
        self.seen = list(self._values())
        self.kept = [_kept(each.value) for each in self.seen]
        self.contents = [
            (number, each.value) for number, each in enumerate(self.seen)
            if isinstance(each.value, (np.ndarray, list, dict, *COPIED))
        ]

    @property
    def too_many(self) -> bool:
        """Whether there is more than is looked at."""
        return len(self.seen) >= MOST

    @property
    def has_iterators(self) -> bool:
        """Whether there is something that gives other values each time, and does not show it."""
        return any(hasattr(each.value, "__next__") for each in self.seen)

    def unchanged(self) -> bool:
        """Whether everything is as it was; tensors aside."""
        for each in self.seen:
            if each.now() is not each.value:
                return self._equal()
        return all(_same(self.kept[number], value) for number, value in self.contents)

    def _equal(self) -> bool:
        """Whether all is as it was, found by looking everything up anew."""
        now = self._values()
        for each, kept in zip(self.seen, self.kept):
            found = next(now, None)
            if found is None or found.path != each.path or not _same(kept, found.value):
                return False
        return next(now, None) is None

    def path_of(self, tensor: Tensor) -> int | None:
        """The number by which `tensors_at` finds a tensor; None for one that is not seen."""
        for number, each in enumerate(self.seen):
            if each.value is tensor:
                return number
        return None

    def tensors_at(self, numbers: list[int]) -> list[Any]:
        """What is seen now at these numbers."""
        return [self.seen[number].now() for number in numbers]

    @property
    def generators(self) -> list[Any]:
        """The random generators that are seen."""
        return [each.value for each in self.seen if isinstance(each.value, np.random.Generator)]

    def _values(self) -> Iterator[Seen]:
        budget = [MOST]
        visited: set[int] = set()
        yield from _function(self.function, "", visited, budget, DEPTH)
        for number, argument in enumerate(self.arguments):
            yield from _value(Seen(f"argument {number}", argument), visited, budget, DEPTH)


def random_state(generators: list[Any]) -> Any:
    """The state of NumPy's global random generator, of Python's, and of others."""
    found = np.random.get_state(legacy=False)  # noqa: NPY002 -- what the user may have drawn from
    assert isinstance(found, dict)
    numbers = found["state"]
    key = (numbers["key"].tobytes(), numbers["pos"]) if "key" in numbers else repr(numbers)
    return key, random.getstate(), [repr(generator.bit_generator.state) for generator in generators]


def _function(function: Any, path: str, visited: set[int], budget: list[int], depth: int) -> Iterator[Seen]:
    if id(function) in visited:
        return
    visited.add(id(function))
    if isinstance(function, types.MethodType):
        yield from _value(Seen(path + ".__self__", function.__self__), visited, budget, depth)
        function = function.__func__
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield from _function(wrapped, path + ".__wrapped__", visited, budget, depth)
    if isinstance(function, functools.partial):
        for place, argument in (*enumerate(function.args), *function.keywords.items()):
            yield from _value(Seen(f"{path}({place})", argument), visited, budget, depth)
        yield from _function(function.func, path + ".func", visited, budget, depth)
        return
    code = getattr(function, "__code__", None)
    if code is None:
        of_class = inspect.getattr_static(type(function), "__call__", None)
        if isinstance(of_class, types.FunctionType):
            yield from _function(of_class, path + ".__call__", visited, budget, depth)
        if not isinstance(function, (type, types.BuiltinFunctionType, np.ufunc)) and hasattr(function, "__dict__"):
            yield from _value(Seen(path, function), visited, budget, depth)
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        yield from _value(Seen(f"{path}<{name}>", content, CELL, cell), visited, budget, depth)
    for name in _names(code):
        if name in function.__globals__:
            value = function.__globals__[name]
            yield from _value(Seen(f"{path}[{name}]", value, ITEM, function.__globals__, name), visited, budget, depth)
    for number, default in enumerate(function.__defaults__ or ()):
        yield from _value(Seen(f"{path}={number}", default), visited, budget, depth)
    for name, default in (function.__kwdefaults__ or {}).items():
        yield from _value(Seen(f"{path}={name}", default), visited, budget, depth)


def _names(code: types.CodeType) -> list[str]:
    """The names that a function, and those inside of it, may look up in its module; not those of attributes."""
    found = _names_of.get(code)
    if found is None:
        names = {str(each.argval): None for each in dis.get_instructions(code) if each.opname in OF_MODULES}
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                names.update(dict.fromkeys(_names(constant)))
        found = _names_of[code] = list(names)
    return found


def _value(seen: Seen, visited: set[int], budget: list[int], depth: int) -> Iterator[Seen]:
    budget[0] -= 1
    if budget[0] < 0:
        return
    yield seen
    value, path = seen.value, seen.path
    if isinstance(value, (Tensor, np.ndarray, type, types.ModuleType, *SIMPLE)):
        return
    if depth == 0 or id(value) in visited:
        return
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        module = getattr(value, "__module__", None) or ""
        if module.partition(".")[0] not in PACKAGES:
            yield from _function(value, path, visited, budget, depth - 1)
        return
    visited.add(id(value))
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            yield from _value(Seen(f"{path}[{key!r}]", inner, ITEM, value, key), visited, budget, depth - 1)
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(list(value)):
            yield from _value(Seen(f"{path}[{number}]", inner, PLACE, value, number), visited, budget, depth - 1)
    else:
        module = type(value).__module__.partition(".")[0]
        if module in PACKAGES or module == "builtins":
            return
        for name, inner in _attributes(value):
            yield from _value(Seen(f"{path}.{name}", inner, ATTRIBUTE, value, name), visited, budget, depth - 1)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    found = list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__") and hasattr(value, name):
                found.append((name, getattr(value, name)))
    return found


def _kept(value: Any) -> Any:
    """What is compared later."""
    if isinstance(value, np.ndarray):
        return value, value.copy()
    if isinstance(value, (list, dict)):
        return value, len(value)
    if isinstance(value, COPIED):
        return value, value.copy()
    return value


def _same(before: Any, now: Any) -> bool:
    if isinstance(now, Tensor):
        return isinstance(before, Tensor)
    if isinstance(now, np.ndarray):
        if type(before) is not tuple or before[0] is not now:
            return False
        kept = before[1]
        return bool(kept.shape == now.shape and kept.dtype == now.dtype and kept.tobytes() == now.tobytes())
    if isinstance(now, (list, dict)):
        return type(before) is tuple and len(before) == 2 and before[0] is now and before[1] == len(now)
    if isinstance(now, COPIED):
        return type(before) is tuple and len(before) == 2 and before[0] is now and bool(before[1] == now)
    if isinstance(now, SIMPLE):
        return type(before) is type(now) and bool(before == now or (before != before and now != now))
    if isinstance(now, tuple):
        return type(before) is type(now) and len(before) == len(now)
    return before is now
