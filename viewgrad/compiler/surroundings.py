"""What a function sees besides its arguments: variables of enclosing functions and of its module, and defaults.

A recorded run holds what was found there. So before it is used again, all of it is compared with what it was: numbers,
strings and arrays by value, functions by identity and by what they see in their turn. Tensors are looked up anew.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import numpy as np

from ..tensor.tensor import Tensor

__all__ = ["Surroundings", "random_state"]

SIMPLE: Final = (int, float, complex, str, bytes, type(None), np.generic, range, slice)
DEPTH: Final = 6
MOST: Final = 20_000  # things that are looked at
PACKAGES: Final = ("viewgrad", "numpy", "scipy")


@attrs.define(eq=False)
class Surroundings:
    """What a function sees besides its arguments.

    Arguments:
        function: the function.
    """

    function: Callable[..., Any]
    seen: list[tuple[str, Any]] = attrs.Factory(list)

    def __attrs_post_init__(self) -> None:
        self.seen = [(path, _kept(value)) for path, value in self._values()]

    @property
    def too_many(self) -> bool:
        """Whether there is more than is looked at."""
        return len(self.seen) >= MOST

    def unchanged(self) -> bool:
        """Whether everything is as it was; tensors aside."""
        now = self._values()
        for path, value in self.seen:
            found = next(now, None)
            if found is None or found[0] != path or not _same(value, found[1]):
                return False
        return next(now, None) is None

    def path_of(self, tensor: Tensor) -> int | None:
        """The number by which `tensor_at` finds a tensor; None for one that is not seen."""
        for number, (_, value) in enumerate(self._values()):
            if value is tensor:
                return number
        return None

    def tensors_at(self, numbers: list[int]) -> list[Any]:
        """What is seen now at these numbers."""
        if not numbers:
            return []
        wanted = set(numbers)
        found = {number: value for number, (_, value) in enumerate(self._values()) if number in wanted}
        return [found.get(number) for number in numbers]

    @property
    def generators(self) -> list[Any]:
        """The random generators that are seen."""
        return [value for _, value in self.seen if isinstance(value, np.random.Generator)]

    def _values(self) -> Iterator[tuple[str, Any]]:
        budget = [MOST]
        yield from _function(self.function, "", set(), budget, DEPTH)


def random_state(generators: list[Any]) -> Any:
    """The state of NumPy's global random generator, of Python's, and of others."""
    found = np.random.get_state(legacy=False)  # noqa: NPY002 -- what the user may have drawn from
    assert isinstance(found, dict)
    numbers = found["state"]
    key = (numbers["key"].tobytes(), numbers["pos"]) if "key" in numbers else repr(numbers)
    return key, random.getstate(), [repr(generator.bit_generator.state) for generator in generators]


def _function(function: Any, path: str, visited: set[int], budget: list[int], depth: int) -> Iterator[tuple[str, Any]]:
    if id(function) in visited:
        return
    visited.add(id(function))
    if isinstance(function, types.MethodType):
        yield from _value(function.__self__, path + ".__self__", visited, budget, depth)
        function = function.__func__
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield from _function(wrapped, path + ".__wrapped__", visited, budget, depth)
    code = getattr(function, "__code__", None)
    if code is None:
        if not isinstance(function, (type, types.BuiltinFunctionType, np.ufunc)) and hasattr(function, "__dict__"):
            yield from _value(function, path, visited, budget, depth)
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        yield from _value(content, f"{path}<{name}>", visited, budget, depth)
    for name in _names(code):
        if name in function.__globals__:
            yield from _value(function.__globals__[name], f"{path}[{name}]", visited, budget, depth)
    for number, default in enumerate(function.__defaults__ or ()):
        yield from _value(default, f"{path}={number}", visited, budget, depth)
    for name, default in (function.__kwdefaults__ or {}).items():
        yield from _value(default, f"{path}={name}", visited, budget, depth)


def _names(code: types.CodeType) -> list[str]:
    """The names that a function, and those inside of it, may look up in its module."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return list(names)


def _value(value: Any, path: str, visited: set[int], budget: list[int], depth: int) -> Iterator[tuple[str, Any]]:
    budget[0] -= 1
    if budget[0] < 0:
        return
    yield path, value
    if isinstance(value, (Tensor, np.ndarray, type, types.ModuleType, *SIMPLE)):
        return
    if depth == 0 or id(value) in visited:
        return
    if isinstance(value, (types.FunctionType, types.MethodType)):
        module = getattr(value, "__module__", None) or ""
        if module.partition(".")[0] not in PACKAGES:
            yield from _function(value, path, visited, budget, depth - 1)
        return
    visited.add(id(value))
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            yield from _value(inner, f"{path}[{key!r}]", visited, budget, depth - 1)
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(list(value)):
            yield from _value(inner, f"{path}[{number}]", visited, budget, depth - 1)
    else:
        module = type(value).__module__.partition(".")[0]
        if module in PACKAGES or module == "builtins":
            return
        for name, inner in _attributes(value):
            yield from _value(inner, f"{path}.{name}", visited, budget, depth - 1)


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
    if isinstance(now, SIMPLE):
        return type(before) is type(now) and bool(before == now or (before != before and now != now))
    if isinstance(now, tuple):
        return type(before) is type(now) and len(before) == len(now)
    return before is now
