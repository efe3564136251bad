"""The walk over what a function sees: from its code to variables, modules, classes and objects, and on from there.

Of modules and classes, only what the code that was met names is looked at; of all else, everything.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import importlib.util
import logging
import operator
import os
import re
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...tensor.tensor import Tensor
from .impure_reads import DATES, MOMENTS, OUTSIDE

__all__ = ["MOST", "SIMPLE", "Hidden", "Seen", "things_seen", "user_function"]

SIMPLE: Final = (int, float, complex, str, bytes, type(None), np.generic, range, slice)
MOST: Final = 20_000  # things that are looked at
PACKAGES: Final = ("viewgrad", "numpy", "scipy")
CLOSED: Final = frozenset({"builtins", "viewgrad", "logging", "threading", "_thread", "io", "_io"})  # of such objects
FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial)
WRAPPERS: Final = {staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset", "fdel")}
EXACT: Final = (
    bool, int, float, complex, str, bytes, type(None), range, slice, list, tuple, dict, deque, set, frozenset,
    bytearray, memoryview, np.ndarray, types.MappingProxyType,
)  # fmt: skip  # which have no attributes of their own
# Of objects without attributes, those of these packages hold what is compared, or nothing that counts.
PLAIN: Final = frozenset({
    "builtins", "numpy", "viewgrad", "scipy", "numba", "llvmlite", "functools", "_functools", "operator", "_operator",
    "re", "types", "collections", "_collections", "_collections_abc", "datetime", "decimal", "fractions", "itertools",
    "typing", "enum", "random", "_random", "abc", "_abc", "threading", "_thread", "logging", "io", "_io", "attr",
    "array", "string", "_struct", "struct", "zoneinfo", "uuid", "copy", "contextlib", "_contextvars", "contextvars",
    "dataclasses", "numbers", "math", "inspect", "weakref", "_weakrefset",
})  # fmt: skip
LOOKING_UP: Final = frozenset({"globals", "eval", "exec"})
TEXTS: Final = frozenset({"eval", "exec"})  # after which strings may name variables
ASKING: Final = frozenset({"is_leaf", "grad_fn", "_version", "retains_grad", "output_nr", "is_inference"})
OF_MODULES: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # instructions that look names up there


# How a thing is looked up again: in a dict, in a cell, in a sequence, as an attribute, or not at all.
# Or it is what a call gives.
ITEM, CELL, PLACE, ATTRIBUTE, FIXED, CALLED = range(6)


class Hidden(str):
    """Why a function cannot be compiled: it sees what may be another in each run, and does not show it."""


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
        if self.how == CALLED:
            return self.owner(self.key)
        return getattr(self.owner, self.key, None) if self.how == ATTRIBUTE else self.value


class TracedValue(NamedTuple):
    """What a code, and those inside of it, name.

    Arguments:
        variables: names that are looked up in the module of the function.
        names: names of attributes, and strings that could be such names.
        imports: of each `import` its level and the name of the module.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    imports: tuple[tuple[int, str], ...]

    @property
    def looks_up(self) -> bool:
        """Whether names of variables may be put together, or stand in a text."""
        return not LOOKING_UP.isdisjoint(self.names)


_named: Final = weakref.WeakKeyDictionary[types.CodeType, TracedValue]()


def things_seen(function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[Seen]:
    """What a function sees, each thing as often as it is met, in an order that depends on nothing else.

    Arguments:
        function: the function.
        arguments: what is neither a tensor nor an array nor a number among its arguments.
    """
    walk = Walk()
    walk.add(Seen("", user_function(function)))
    for number, argument in enumerate(arguments):
        walk.add(Seen(f"argument {number}", argument))
    return walk.things()


def user_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the user's own function, of which an adopted one, for example, is made."""
    while type(function).__module__.startswith("viewgrad.") and "__wrapped__" in getattr(function, "__dict__", ()):
        function = function.__wrapped__  # type: ignore[attr-defined]
    return function


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
                    yield from self._asked()
                    return
            seen = self.waiting.popleft()
            yield seen
            self._open(seen.path, seen.value)

    def _asked(self) -> Iterator[Seen]:
        """What the names say that would be another in each run."""
        for name in sorted(ASKING & self.names.keys()):
            yield Seen(f"?{name}", Hidden(f"it asks a tensor for {name}, which compiled calls need not have"))
        if MOMENTS & self.names.keys() and any(id(each) in self.opened for each in DATES):
            yield Seen("?now", Hidden("it reads the clock"))

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
                    if value is os.getenv:
                        self.add(Seen(f"{path}.environ", os.environ))
                    if not (is_foreign and (callable(value) or isinstance(value, types.ModuleType))):
                        self.add(Seen(f"{path}.{name}", value, ITEM, content, name))

    def _open(self, path: str, value: Any) -> None:
        if isinstance(value, str):
            if value.isidentifier():
                self.names[value] = None
            return
        if id(value) in OUTSIDE:
            self.add(Seen(path + "?", Hidden(f"it sees a function for {OUTSIDE[id(value)]}")))
            return
        if isinstance(value, (Tensor, types.CodeType)) or type(value) in SIMPLE or id(value) in self.opened:
            return
        self.opened[id(value)] = value
        if isinstance(value, FUNCTIONS):
            self._function(path, value)
        elif isinstance(value, types.ModuleType):
            if _package(value.__name__) not in PACKAGES:
                self.holders.append([path, value, 0])
        elif isinstance(value, type):
            self._class(path, value)
        else:
            if not self._container(path, value) or (type(value) not in EXACT and not isinstance(value, np.generic)):
                self._object(path, value)

    def _container(self, path: str, value: Any) -> bool:
        """Look at what is in a container; whether that is what a thing is."""
        if isinstance(value, (dict, types.MappingProxyType)):
            items = list(value.items())
            self.add(*(Seen(f"{path}[{key!r}]", inner, ITEM, value, key) for key, inner in items))
            self._elements(path, [key for key, _ in items])
        elif isinstance(value, (list, tuple, deque)):
            self.add(*(Seen(f"{path}[{number}]", inner, PLACE, value, number) for number, inner in enumerate(value)))
        elif isinstance(value, (set, frozenset)):
            self._elements(path, list(value))
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                self.add(*(Seen(f"{path}[{number}]", inner) for number, inner in enumerate(value.ravel().tolist())))
        elif isinstance(value, memoryview):
            self.add(Seen(path + ".obj", value.obj))
        else:
            return isinstance(value, SIMPLE)
        return True

    def _elements(self, path: str, elements: list[Any]) -> None:
        """Look at what is not replaced by others without notice: keys, and elements of sets."""
        found = [each for each in elements if type(each) not in SIMPLE]
        self.add(*(Seen(f"{path}{{{number}}}", each) for number, each in enumerate(found)))

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
        if function is os.getenv:
            self.add(Seen(path + ".environ", os.environ))
        if package in PACKAGES or package in sys.stdlib_module_names:
            return
        for key in ("__code__", "__defaults__", "__kwdefaults__"):
            if getattr(function, key) is not None:
                self.add(Seen(path + "." + key, getattr(function, key), ATTRIBUTE, function, key))
        named = _named_by(code)
        self.names.update(dict.fromkeys(named.names))
        looked_up = (*named.variables, *named.names) if named.looks_up else named.variables
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
        if type(kind) is not type:
            self.add(Seen(path + ".__class__", type(kind)))
        self.holders.append([path, kind, 0])

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.add(Seen(path + "()", value.__reduce__()[1]))
        for wrapper, keys in WRAPPERS.items():
            if isinstance(value, wrapper):
                self.add(*(Seen(f"{path}.{key}", getattr(value, key), ATTRIBUTE, value, key) for key in keys))
        if self._hides(path, value, kind):
            return
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


    def _hides(self, path: str, value: Any, kind: type) -> bool:
        """Look at what shows its content in ways of its own; whether there is nothing else to be looked at."""
        if isinstance(value, contextvars.ContextVar):
            self.add(Seen(path + ".get()", value.get(None), CALLED, value.get))
        elif isinstance(value, threading.local):
            self.add(Seen(path + ".__dict__", value.__dict__, ATTRIBUTE, value, "__dict__"))
        elif isinstance(value, threading.Event):
            self.add(Seen(path + ".is_set()", value.is_set(), ATTRIBUTE, value, "_flag"))
        elif isinstance(value, logging.Logger):
            given = ("level", "disabled", "parent")
            self.add(*(Seen(f"{path}.{key}", getattr(value, key), ATTRIBUTE, value, key) for key in given))
        elif isinstance(value, weakref.ref):
            target = value()
            if isinstance(target, type):
                self.add(Seen(path + "()", target))
            elif target is not None:
                self.add(Seen(path + "()", Hidden("it sees a weak reference, of which nobody knows how long it holds")))
        elif not isinstance(value, np.memmap) and _is_opaque(value, kind):
            self.add(Seen(path + "?", Hidden(f"it sees a {kind.__qualname__}, whose content cannot be looked at")))
        else:
            return isinstance(value, np.memmap)  # which is compared as an array
        return True


def _is_opaque(value: Any, kind: type) -> bool:
    """Whether an object holds what Python does not show."""
    packages = [_package(each.__module__) for each in kind.__mro__]
    if not {"_ctypes", "mmap"}.isdisjoint(packages):
        return True
    if packages[0] in PLAIN or packages[0].startswith("_cython") or not packages[0] or hasattr(value, "__dict__"):
        return False
    return not any("__slots__" in vars(each) for each in kind.__mro__)


def _package(module: Any) -> str:
    """The package of a module; classes of Cython's functions have no name of one there, but a descriptor."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def _named_by(code: types.CodeType) -> TracedValue:
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
            elif isinstance(constant, str) and not TEXTS.isdisjoint(names):
                names.update(dict.fromkeys(re.findall(r"[^\W\d]\w*", constant)))
        found = _named[code] = TracedValue(tuple(variables), tuple(names), tuple(imports))
    return found
