"""The walk over what a function sees: from its code to variables, modules, classes and objects, and on from there.

Of modules and classes, only what the code that was met names is looked at; of all else, everything.
"""

from __future__ import annotations

import dis
import functools
import importlib.util
import operator
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...tensor.tensor import Tensor

__all__ = ["MOST", "SIMPLE", "Seen", "things_seen"]

SIMPLE: Final = (int, float, complex, str, bytes, type(None), np.generic, range, slice)
MOST: Final = 20_000  # things that are looked at
PACKAGES: Final = ("viewgrad", "numpy", "scipy")
CLOSED: Final = frozenset({"builtins", "viewgrad", "logging", "threading", "_thread", "io", "_io"})  # of such objects
FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial)
WRAPPERS: Final = {staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset", "fdel")}
OF_MODULES: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # instructions that look names up there


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


class Named(NamedTuple):
    """What a code, and those inside of it, name.

    Arguments:
        variables: names that are looked up in the module of the function.
        names: names of attributes, and strings that could be such names.
        imports: of each `import` its level and the name of the module.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    imports: tuple[tuple[int, str], ...]


_named: Final = weakref.WeakKeyDictionary[types.CodeType, Named]()


def things_seen(function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[Seen]:
    """What a function sees, each thing as often as it is met, in an order that depends on nothing else.

    Arguments:
        function: the function.
        arguments: what is neither a tensor nor an array nor a number among its arguments.
    """
    walk = Walk()
    walk.add(Seen("", function))
    for number, argument in enumerate(arguments):
        walk.add(Seen(f"argument {number}", argument))
    return walk.things()


class Walk:
    """A walk over what is seen.

    Attributes:
        waiting: what was found, and not yet looked at.
        opened: by its address, what was looked at; held, so that the address remains its own.
        names: what the code that was met names.
        holders: modules and classes, each with how many of the names were looked up in it.
    """

    def __init__(self) -> None:
        self.waiting: deque[Seen] = deque()
        self.opened: dict[int, Any] = {}
        self.names: dict[str, None] = {}
        self.holders: list[list[Any]] = []

    def add(self, *found: Seen) -> None:
        """Note what is to be looked at."""
        self.waiting.extend(found)

    def things(self) -> Iterator[Seen]:
        """One thing after the other."""
        for _ in range(MOST):
            if not self.waiting:
                self._look_up_names()
                if not self.waiting:
                    return
            seen = self.waiting.popleft()
            yield seen
            self._open(seen.path, seen.value)

    def _look_up_names(self) -> None:
        """Look up in modules and classes what was named since the last time."""
        names = list(self.names)
        for holder in self.holders:
            path, owner, done = holder
            holder[2] = len(names)
            content = vars(owner)
            is_foreign = isinstance(owner, types.ModuleType) and _package(owner.__name__) in sys.stdlib_module_names
            for name in names[done:]:
                if name in content:
                    value = content[name]
                    if not (is_foreign and (callable(value) or isinstance(value, types.ModuleType))):
                        self.add(Seen(f"{path}.{name}", value, ITEM, content, name))

    def _open(self, path: str, value: Any) -> None:
        if isinstance(value, str):
            if value.isidentifier():
                self.names[value] = None
            return
        if isinstance(value, (Tensor, types.CodeType, *SIMPLE)) or id(value) in self.opened:
            return
        self.opened[id(value)] = value
        if isinstance(value, FUNCTIONS):
            self._function(path, value)
        elif isinstance(value, types.ModuleType):
            if _package(value.__name__) not in PACKAGES:
                self.holders.append([path, value, 0])
        elif isinstance(value, type):
            self._class(path, value)
        elif isinstance(value, (dict, types.MappingProxyType)):
            self.add(*(Seen(f"{path}[{key!r}]", inner, ITEM, value, key) for key, inner in list(value.items())))
        elif isinstance(value, (list, tuple, deque)):
            self.add(*(Seen(f"{path}[{number}]", inner, PLACE, value, number) for number, inner in enumerate(value)))
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                self.add(*(Seen(f"{path}[{number}]", inner) for number, inner in enumerate(value.ravel().tolist())))
        else:
            self._object(path, value)

    def _function(self, path: str, function: Any) -> None:
        if isinstance(function, types.MethodType):
            self.add(Seen(path + ".__self__", function.__self__), Seen(path + ".__func__", function.__func__))
            return
        if isinstance(function, functools.partial):
            given = (*enumerate(function.args), *function.keywords.items())
            self.add(Seen(path + ".func", function.func), *(Seen(f"{path}({place})", each) for place, each in given))
            return
        code, variables = function.__code__, function.__globals__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.add(Seen(f"{path}<{name}>", cell.cell_contents, CELL, cell))
            except ValueError:  # not assigned yet
                continue
        if function.__dict__:
            self.add(Seen(path + ".__dict__", function.__dict__))
        package = _package(function.__module__)
        if package in PACKAGES or package in sys.stdlib_module_names:
            return
        for key in ("__code__", "__defaults__", "__kwdefaults__"):
            if getattr(function, key) is not None:
                self.add(Seen(path + "." + key, getattr(function, key), ATTRIBUTE, function, key))
        named = _named_by(code)
        self.names.update(dict.fromkeys(named.names))
        looked_up = (*named.variables, *named.names) if "globals" in named.variables else named.variables
        for name in looked_up:
            if name in variables:
                self.add(Seen(f"{path}[{name}]", variables[name], ITEM, variables, name))
        for level, name in named.imports:
            if level:
                name = importlib.util.resolve_name("." * level + name, variables.get("__package__") or "")
            if name in sys.modules and _package(name) not in PACKAGES:
                self.add(Seen(f"{path}({name})", sys.modules[name], ITEM, sys.modules, name))

    def _class(self, path: str, kind: type) -> None:
        package = _package(kind.__module__)
        if package in PACKAGES or package in sys.stdlib_module_names:
            return
        content = vars(kind)
        self.add(*(Seen(f"{path}<{number}>", base) for number, base in enumerate(kind.__mro__[1:])))
        for name, value in content.items():  # what Python looks up by itself
            if name[:2] == "__" and isinstance(value, (types.FunctionType, staticmethod, classmethod)):
                self.add(Seen(f"{path}.{name}", value, ITEM, content, name))
        self.holders.append([path, kind, 0])

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.add(Seen(path + "()", value.__reduce__()[1]))
        for wrapper, keys in WRAPPERS.items():
            if isinstance(value, wrapper):
                self.add(*(Seen(f"{path}.{key}", getattr(value, key), ATTRIBUTE, value, key) for key in keys))
        attributes = getattr(value, "__dict__", None)
        if _package(kind.__module__) in CLOSED:
            if isinstance(attributes, dict) and "__wrapped__" in attributes:
                self.add(Seen(path + ".__wrapped__", attributes["__wrapped__"], ITEM, attributes, "__wrapped__"))
            return
        if isinstance(attributes, dict):
            self.add(Seen(path + ".__dict__", attributes))
        for each in kind.__mro__:
            slots = each.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__weakref__", "__dict__") and hasattr(value, name):
                    self.add(Seen(f"{path}.{name}", getattr(value, name), ATTRIBUTE, value, name))
        self.add(Seen(path + ".__class__", kind, ATTRIBUTE, value, "__class__"))


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _named_by(code: types.CodeType) -> Named:
    """What a code, and those inside of it, name."""
    found = _named.get(code)
    if found is None:
        variables: dict[str, None] = {}
        names = dict.fromkeys(code.co_names)
        imports: dict[tuple[int, str], None] = {}
        level = 0
        for each in dis.get_instructions(code):
            if each.opname in OF_MODULES:
                variables[str(each.argval)] = None
            elif each.opname == "IMPORT_NAME":
                imports[level, str(each.argval)] = None
            elif isinstance(each.argval, int) and "CONST" in each.opname:
                level = each.argval
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                inner = _named_by(constant)
                variables.update(dict.fromkeys(inner.variables))
                names.update(dict.fromkeys(inner.names))
                imports.update(dict.fromkeys(inner.imports))
            elif isinstance(constant, str) and constant.isidentifier():
                names[constant] = None
        found = _named[code] = Named(tuple(variables), tuple(names), tuple(imports))
    return found
