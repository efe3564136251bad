"""The traversal of captured state: from a function's code to variables, modules, classes and objects, recursively.

Modules, classes and functions of libraries are inspected only as far as the code uses their attributes; everything else
is inspected completely. Library code (see `libraries`) is not followed. Objects that cannot be inspected prevent
compilation.
"""

from __future__ import annotations

import abc
import array
import contextvars
import copy
import copyreg
import datetime
import decimal
import functools
import gc
import importlib.util
import logging
import operator
import os
import pickle
import random
import re
import struct
import sys
import tempfile
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...adoption.attributes import hides_type
from ...operators.numpy_api.public import is_public
from ...tensor.tensor import Tensor
from ...trace.tracing.patching import PATCHED
from .abstract_classes import AbstractClasses, registered
from .captured import (
    ATTRIBUTE,
    CALLED,
    CELL,
    FIXED,
    INDEX,
    ITEM,
    Attributes,
    CachedResults,
    Captured,
    Content,
    Unguarded,
)  # fmt: skip
from .code_names import BARE_EXCEPT, CodeNames, names_in, package_of_globals
from .impure_reads import DATES, MOMENTS, OF_SETTINGS, OUTSIDE, OWNERS
from .libraries import is_immutable, is_library_class, is_library_function, is_library_module, why_impure
from .settings import (
    CATCHING,
    content_of,
    decimal_context,
    decimal_settings,
    error_handler,
    form_of,
    handlers_of,
    print_options,
    raising_settings,
    time_zone,
    value_in_context,
)

SIMPLE: Final = (int, float, complex, str, bytes, type(None), np.generic, range, slice)
MAX_VALUES: Final = 20_000  # the maximum number of inspected values
MEMBERS: Final = "_member_map_"  # the attribute of an enumeration in which its members are looked up
CLOSED: Final = frozenset({"builtins", "viewgrad", "logging", "threading", "_thread", "io", "_io"})  # not inspected
COUNTERPARTS: Final = ("viewgrad.numpy", "viewgrad.scipy")  # whose objects keep the user's functions and arrays
BOUND: Final = (types.BuiltinMethodType, types.MethodWrapperType)  # methods of objects of C types
VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
ORDERED: Final = OrderedDict[Any, Any]()
ODD_VIEWS: Final[tuple[type, ...]] = (type(ORDERED.keys()), type(ORDERED.values()), type(ORDERED.items()))
DISPATCHERS: Final = (type(np.mean),)  # NumPy's functions
# C types whose bound methods read only state that is inspected.
INSPECTED: Final = (
    str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, deque, range, slice, memoryview,
    array.array, np.ndarray, np.generic, types.MappingProxyType, type, np.random.Generator, np.random.RandomState,
    random.Random, np.ufunc, re.Pattern, decimal.Decimal, datetime.date, datetime.timedelta, struct.Struct, Tensor,
)  # fmt: skip
ABOUT_FUNCTIONS: Final = frozenset({"__name__", "__qualname__", "__doc__", "__annotations__", "__module__"})
ABOUT_CLASSES: Final = frozenset({"__name__", "__qualname__"})  # not among the attributes of a class
OF_IMPORTS: Final = frozenset({"__builtins__", "__loader__", "__spec__"})  # variables of modules that contain no state
# Names by which attributes of functions are looked up implicitly.
OF_ATTRIBUTES: Final = frozenset({"getattr", "hasattr", "vars", "dir", "__dict__", "signature", "get_type_hints"})
# Functions of the standard library that read environment variables.
ENVIRONMENTAL: Final = frozenset({"expanduser", "expandvars", "home", "getproxies", "getproxies_environment"})
# Functions of the standard library, each with the attribute of its argument that it reads.
READ_BY: Final = {"get_type_hints": "__annotations__", "get_annotations": "__annotations__"} | dict.fromkeys(
    ("fields", "asdict", "astuple"), "__dataclass_fields__"
)
LOCAL_TIME: Final = frozenset({"timestamp", "fromtimestamp", "astimezone", "mktime"})
COMMAND_LINE: Final = frozenset({"parse_args", "parse_known_args", "parse_intermixed_args"})
WITH_PROPERTIES: Final = (threading.Thread, logging.Handler)  # closed objects whose properties have state
SYNCHRONIZING: Final = (threading.Semaphore, threading.Condition, threading.Barrier)  # inspected although closed
KEPT_INSIDE: Final = (type(functools.cmp_to_key(lambda a, b: 0)), np.ufunc)  # C objects that refer to a Python function
STATES: Final = frozenset({"getstate", "get_state", "bit_generator"})  # ways to read the state of a generator
PRINTING: Final = frozenset({"str", "repr", "format", "array2string", "array_repr", "array_str", "FORMAT"})
CACHED: Final = functools._lru_cache_wrapper
FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial)
WRAPPERS: Final = {staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset", "fdel")}
EXACT: Final = (
    bool, int, float, complex, str, bytes, type(None), range, slice, list, tuple, dict, deque, set, frozenset,
    bytearray, memoryview, np.ndarray, types.MappingProxyType,
)  # fmt: skip  # which have no attributes of their own
# Objects without attributes from these packages are compared by value, or contain nothing relevant.
PLAIN: Final = frozenset({
    "builtins", "numpy", "viewgrad", "scipy", "numba", "llvmlite", "functools", "_functools", "operator", "_operator",
    "re", "types", "collections", "_collections", "_collections_abc", "datetime", "decimal", "fractions", "itertools",
    "typing", "enum", "random", "_random", "abc", "_abc", "threading", "_thread", "logging", "io", "_io", "attr",
    "array", "string", "_struct", "struct", "zoneinfo", "uuid", "copy", "contextlib", "_contextvars", "contextvars",
    "dataclasses", "numbers", "math", "inspect", "weakref", "_weakrefset",
})  # fmt: skip
LIBRARY: Final = "<library>"  # the prefix of the paths of library attributes
LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))
ASKING: Final = frozenset({"is_leaf", "grad_fn", "_version", "retains_grad", "output_nr", "is_inference"})


NOTHING_INSIDE: Final = frozenset({
    *SIMPLE, bool, Tensor, types.CodeType, np.ufunc, Attributes, CachedResults, Content, Unguarded,
})  # fmt: skip


def captured_values(function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[Captured]:
    """Yield the captured objects of a function, each as often as it is reached, in a deterministic order.

    Arguments:
        function: the function.
        arguments: its arguments that are neither tensors, arrays nor numbers.
    """
    walk = Walk()
    walk.add(Captured("Tensor", Tensor), Captured("", user_function(function)))
    for number, argument in enumerate(arguments):
        walk.add(Captured(f"argument {number}", argument))
    return walk.values()


def user_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the user's function behind a wrapper, such as an adopted function."""
    while type(function).__module__.startswith("viewgrad.") and "__wrapped__" in getattr(function, "__dict__", ()):
        function = function.__wrapped__  # type: ignore[attr-defined]
    return function


class Walk:
    """A traversal of captured state.

    Attributes:
        waiting: values that were found but not yet inspected.
        opened: the inspected values by address, kept alive so that addresses are not reused.
        names: the names in the code found so far.
        holders: modules, classes and functions, each with its path, the location of its attributes, the number of names
            looked up there, whether it belongs to a library, and whether all of its attributes were added.
        attributes: attributes of variables that the code found so far uses.
        abstract: the abstract classes found so far.
        loggers, tensors, functions: the loggers, the tensors and the user's functions found so far.
        reflects: whether code found so far may look up attributes by computed names.
        is_asked: whether the process state looked up by the names used has been added.
        is_direct: the modules referred to by variables whose attributes are known from the code.
    """

    def __init__(self) -> None:
        self.waiting: deque[Captured] = deque()
        self.opened: dict[int, Any] = {}
        self.names: dict[str, None] = {}
        self.holders: list[list[Any]] = []
        self.attributes: set[str] = set()
        self.generators: list[Any] = []
        self.loggers: list[Captured] = []
        self.tensors: list[Captured] = []
        self.functions: list[Captured] = []
        self.abstract = AbstractClasses()
        self.is_asked = False
        self.reflects = False
        self.held_classes: set[int] = set()  # the classes of libraries that are captured

    def add(self, *found: Captured) -> None:
        """Queue a value for inspection."""
        self.waiting.extend(found)

    def values(self) -> Iterator[Captured]:
        """Yield the captured values one after another."""
        for _ in range(MAX_VALUES):
            if not self.waiting:
                self._look_up_names()
                if not self.waiting and not self.is_asked:
                    self.is_asked = True
                    self._add_implied()
                if not self.waiting:
                    yield from self._queried()
                    return
            seen = self.waiting.popleft()
            if hides_type(seen.value):
                seen = Captured(seen.path + "?", Unguarded("it captures an object that hides its type"))
            yield seen
            self._open(seen.path, seen.value)

    def _add_implied(self) -> None:
        """Queue the state that library functions read, and the queried state of objects, as determined by the names
        used.
        """
        for name in READ_BY.keys() & self.names.keys():
            self.names[READ_BY[name]] = None
        self._look_up_names()
        names = self.names.keys()
        if ENVIRONMENTAL & names:
            self.add(Captured("os.environ", os.environ))
        if COMMAND_LINE & names:
            self.add(Captured("sys.argv", sys.argv, ATTRIBUTE, sys, "argv"))
        if "gettempdir" in names:
            self.add(Captured("tempfile.tempdir", tempfile.tempdir, ATTRIBUTE, tempfile, "tempdir"))
        if {"getLogger", "getEffectiveLevel"} & names:
            self.add(Captured("logging.root", logging.root, ATTRIBUTE, logging, "root"))
            self.add(Captured("logging.loggers", logging.root.manager.loggerDict))
        if {id(copy), id(copy.copy), id(copy.deepcopy), id(pickle)} & self.opened.keys():
            self.add(Captured("copyreg.dispatch_table", copyreg.dispatch_table))
        if BARE_EXCEPT in names:
            self.add(Captured("warnings.filters", raising_settings(None), CALLED, raising_settings))
        if {"encode", "decode", "str", "bytes"} & names:
            handlers = [(name, error_handler(name)) for name in names]
            self.add(*(
                Captured(f"codecs[{name}]", handler, CALLED, error_handler, name)
                for name, handler in handlers if isinstance(handler, types.FunctionType)
            ))  # fmt: skip
        if "getLevelName" in names:
            self.add(Captured("logging.levels", vars(logging)["_levelToName"]))
        for each in self.functions if OF_ATTRIBUTES & names else ():
            self.add(Captured(each.path + ".__dict__", each.value.__dict__, ATTRIBUTE, each.value, "__dict__"))
        for each in self.tensors:
            self.add(*(
                Captured(f"{each.path}.{name}", getattr(each.value, name), ATTRIBUTE, each.value, name)
                for name in ("requires_grad",) if name in names
            ))  # fmt: skip
            if not {"shape", "size", "ndim", "dtype", "len"}.isdisjoint(names):
                self.add(Captured(f"{each.path}.shape", form_of(each.value), CALLED, form_of, each.value))

    def _queried(self) -> Iterator[Captured]:
        """Yield attributes that may differ between runs, as determined by the names used."""
        names = self.names.keys()
        for name in sorted(ASKING & names):
            yield Captured(f"?{name}", Unguarded(f"it reads {name} of a tensor, which may differ in compiled calls"))
        if MOMENTS & names and any(id(each) in self.opened for each in DATES):
            yield Captured("?now", Unguarded("it reads the clock"))
        if self.generators and STATES & names:
            yield Captured("?state", Unguarded("it reads the state of a random number generator"))
        if self.abstract.kinds:
            yield Captured("?registered", registered(self.abstract), CALLED, registered, self.abstract)
        for each in self.loggers if {"handlers", "hasHandlers", "filters", "propagate"} & names else ():
            yield Captured(each.path + ".handlers", handlers_of(each.value), CALLED, handlers_of, each.value)
        if LOCAL_TIME & names:
            yield Captured("?zone", time_zone(None), CALLED, time_zone)
        if "flags" in names and (id(decimal) in self.opened or id(decimal.Context) in self.opened):
            yield Captured("?flags", Unguarded("it reads the flags of a decimal context"))
        if "__subclasses__" in names:
            yield Captured("?subclasses", Unguarded("it reads the subclasses of a class"))
        if "cache_info" in names:
            yield Captured("?cached", Unguarded("it reads the statistics of a cached function"))
        if PRINTING & names:
            yield Captured("?printing", print_options(None), CALLED, print_options)

    def _look_up_names(self) -> None:
        """Look up the names found since the last time in modules, classes and functions."""
        names = list(self.names)
        for holder in self.holders:
            path, owner, content, done, is_library, is_whole = holder
            holder[3] = len(names)
            if self.reflects and not is_whole:
                holder[5] = True
                self._add_whole(path, owner, content, is_library)
            for name in names[done:]:
                if name not in content:
                    is_known = name in ABOUT_CLASSES and isinstance(owner, type) and not is_library
                    if is_known or (isinstance(owner, WITH_PROPERTIES) and _is_property(type(owner), name)):
                        self.add(Captured(f"{path}.{name}", getattr(owner, name), ATTRIBUTE, owner, name))
                    continue
                value = content[name]
                if value is os.getenv:
                    self.add(Captured(f"{path}.environ", os.environ))
                if id(value) in PATCHED:
                    is_noticed = id(owner) in OWNERS.get(id(value), ()) and OUTSIDE[id(value)] != OF_SETTINGS
                    if id(value) in OUTSIDE and name in self.attributes and not is_noticed:
                        self.add(Captured(path + "?", Unguarded(f"it captures a function for {OUTSIDE[id(value)]}")))
                    continue
                self.add(Captured(f"{path}.{name}", value, ITEM, content, name))
                if is_library and isinstance(owner, types.ModuleType) and name in self.attributes:
                    self._check_purity(path, value)

    def _add_whole(self, path: str, owner: Any, content: Any, is_library: bool) -> None:
        """Queue everything that code may look up in a module, a class or a function by computed names."""
        is_module = isinstance(owner, types.ModuleType)
        if not is_library:
            self._add_all(path, content, is_module)
        elif is_module and _package(owner.__name__) != "viewgrad":  # which creates its names on first use
            self.add(Captured(f"{path}.__dict__", Content(content), CALLED, Content, content))

    def _add_all(self, path: str, content: dict[str, Any], is_module: bool) -> None:
        """Queue all attributes of a class or function, or the attributes that a module defines."""
        if is_module:
            self.add(Captured(f"{path}.__dict__", Content(content), CALLED, Content, content))
        for name, value in content.items():
            kind = type(value)
            is_imported = issubclass(kind, types.ModuleType) or name in OF_IMPORTS or (
                issubclass(kind, (types.FunctionType, type)) and value.__module__ != content.get("__name__")
            )
            if not (is_module and is_imported):
                self.add(Captured(f"{path}[{name}]", value, ITEM, content, name))

    def _check_purity(self, path: str, value: Any) -> None:
        reason = why_impure(value)
        if reason is not None:
            self.add(Captured(path + "?", Unguarded(f"it captures {reason}")))

    def _hold(self, path: str, owner: Any, content: Any, is_library: bool) -> None:
        """Look up names among the attributes of a module, a class or a function."""
        path = f"{LIBRARY}{path}" if is_library and not path.startswith(LIBRARY) else path
        self.holders.append([path, owner, content, 0, is_library, False])
        if owner is not sys.modules["viewgrad"]:  # viewgrad creates its names on first use
            self.add(Captured(path + "#", Attributes(content, len(content))))

    def _open(self, path: str, value: Any) -> None:
        kind = type(value)
        if kind is str:
            if value.isidentifier():
                self.names[value] = None
            return
        if id(value) in OUTSIDE:
            self.add(Captured(path + "?", Unguarded(f"it captures a function for {OUTSIDE[id(value)]}")))
            return
        if isinstance(value, KEPT_INSIDE):
            self.add(*(
                Captured(f"{path}!{number}", each) for number, each in enumerate(gc.get_referents(value))
                if callable(each)
            ))  # fmt: skip
        if kind is Tensor and id(value) not in self.opened:
            self.opened[id(value)] = value
            self.tensors.append(Captured(path, value))
        if kind is slice:
            self.add(Captured(path + "()", (value.start, value.stop, value.step)))
        if kind is types.CodeType and not path.endswith(".__code__"):
            self.add(Captured(path + "?", Unguarded("it captures a code object, which may refer to any variable")))
        if kind in NOTHING_INSIDE or id(value) in self.opened:
            return
        self.opened[id(value)] = value
        if isinstance(value, FUNCTIONS):
            self._function(path, value)
        elif isinstance(value, BOUND):
            self._bound(path, value)
        elif isinstance(value, DISPATCHERS):
            self._hold(path, value, vars(value), True)
        elif isinstance(value, types.ModuleType):
            self._module(path, value)
        elif isinstance(value, type):
            self._class(path, value)
        elif not self._container(path, value) or (kind not in EXACT and not isinstance(value, np.generic)):
            self._object(path, value)

    def _module(self, path: str, module: types.ModuleType) -> None:
        is_library = is_library_module(module)
        content = vars(module)
        self._hold(path, module, content, is_library)
        if is_library:
            if module is decimal:
                self._decimal()
            return
        for name in ("__getattr__", "__dir__"):  # names that Python looks up implicitly
            if name in content:
                self.add(Captured(f"{path}.{name}", content[name], ITEM, content, name))
        if type(module) is not types.ModuleType:
            self.add(Captured(path + ".__class__", type(module), ATTRIBUTE, module, "__class__"))

    def _bound(self, path: str, method: Any) -> None:
        """Inspect the object to which a method of a C type is bound."""
        owner = method.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            self._check_purity(path, method)
            return
        self.names[method.__name__] = None
        self.add(Captured(path + ".__self__", owner))
        if not isinstance(owner, INSPECTED) and is_library_class(type(owner)):
            name = f"{type(owner).__qualname__}.{method.__name__}"
            reason = Unguarded(f"it captures the method {name}, whose object cannot be inspected")
            self.add(Captured(path + "?", reason))

    def _decimal(self) -> None:
        self.add(Captured("decimal.getcontext()", decimal_context(None), CALLED, decimal_context))

    def _container(self, path: str, value: Any) -> bool:
        """Inspect the items of a container; return whether they determine its value."""
        if isinstance(value, (dict, types.MappingProxyType)):
            items = list(value.items())
            self.add(*(Captured(f"{path}[{key!r}]", inner, ITEM, value, key) for key, inner in items))
            self._elements(path, [key for key, _ in items])
        elif isinstance(value, (list, tuple, deque)):
            self.add(*(Captured(f"{path}[{n}]", inner, INDEX, value, n) for n, inner in enumerate(value)))
        elif isinstance(value, (set, frozenset)):
            self._elements(path, list(value))
        elif isinstance(value, np.ndarray | np.void):
            if value.dtype.hasobject:
                items = np.atleast_1d(value).ravel().tolist()
                self.add(*(Captured(f"{path}[{number}]", inner) for number, inner in enumerate(items)))
        elif isinstance(value, memoryview):
            self.add(Captured(path + ".obj", value.obj))
            if not isinstance(value.obj, (bytes, bytearray, array.array, np.ndarray)):
                self.add(Captured(path + ".tobytes()", value.tobytes(), CALLED, memoryview.tobytes, value))
        elif isinstance(value, VIEWS + ODD_VIEWS):
            self._container(path, value.mapping)  # type: ignore[attr-defined]
        else:
            return isinstance(value, SIMPLE)
        return True

    def _elements(self, path: str, elements: list[Any]) -> None:
        """Inspect the keys of dicts and the elements of sets, which cannot be replaced individually."""
        found = [each for each in elements if type(each) not in SIMPLE]
        self.add(*(Captured(f"{path}{{{number}}}", each) for number, each in enumerate(found)))

    def _function(self, path: str, function: Any) -> None:
        if is_public(function):  # a NumPy name whose code is generated on its first call
            if isinstance(function, types.FunctionType):
                self._hold(path, function, vars(function), True)
            return
        if isinstance(function, types.MethodType):
            self.names[function.__name__] = None
            self.add(Captured(path + ".__self__", function.__self__), Captured(path + ".__func__", function.__func__))
            return
        if isinstance(function, functools.partial):
            for name in ("func", "args", "keywords"):  # __setstate__ replaces them
                self.add(Captured(f"{path}.{name}", getattr(function, name), ATTRIBUTE, function, name))
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._cell(f"{path}<{name}>", cell)
        if function.__dict__:
            self.add(Captured(path + ".__dict__", function.__dict__))
        elif not is_library_function(function):
            self.functions.append(Captured(path, function))
        if function is os.getenv:
            self.add(Captured(path + ".environ", os.environ))
        if is_library_function(function):
            self._check_purity(path, function)
            return
        for key in ("__code__", "__defaults__", "__kwdefaults__"):
            if getattr(function, key) is not None:
                self.add(Captured(path + "." + key, getattr(function, key), ATTRIBUTE, function, key))
        named = names_in(code)
        self.names.update(dict.fromkeys(named.names))
        self.attributes.update([name for _, name in named.attributes])
        self.reflects |= named.reflects
        self.add(*(
            Captured(f"{path}.{name}", getattr(function, name), ATTRIBUTE, function, name)
            for name in sorted(ABOUT_FUNCTIONS & self.names.keys())
        ))  # fmt: skip
        self._variables(path, function, named)

    def _cell(self, path: str, cell: types.CellType) -> None:
        try:
            self.add(Captured(path, cell.cell_contents, CELL, cell))
        except ValueError:  # the cell is still empty
            self.add(Captured(path, content_of(cell), CALLED, content_of, cell))

    def _variables(self, path: str, function: Any, named: CodeNames) -> None:
        """Inspect the global variables that a function uses, and the modules that it imports."""
        variables, builtin = function.__globals__, function.__builtins__
        if named.computes:  # any of them may be used
            self._add_all(path + ".__globals__", variables, True)
        if "__import__" in named.variables:
            self.add(Captured(path + "?", Unguarded("it imports a module by a computed name")))
        looked_up = (*named.variables, *named.names) if named.looks_up else named.variables
        for name in looked_up:
            if name in variables:
                self.add(Captured(f"{path}[{name}]", variables[name], ITEM, variables, name))
            elif name in named.variables:  # a builtin, which a variable of the module may shadow
                self.add(Captured(f"{path}[{name}]", variables.get(name), ITEM, variables, name))
                if name in builtin and id(builtin[name]) not in PATCHED:
                    self.add(Captured(f"builtins.{name}", builtin[name], ITEM, builtin, name))
        for level, name in named.imports:
            if level:
                try:
                    name = importlib.util.resolve_name("." * level + name, package_of_globals(variables))
                except ImportError:  # the import fails too
                    continue
            self.add(Captured(f"{path}({name})", sys.modules.get(name), ITEM, sys.modules, name))

    def _class(self, path: str, kind: type) -> None:
        is_library = is_library_class(kind)
        if isinstance(kind, abc.ABCMeta):
            self.abstract.kinds.append(kind)
        if is_library:
            if kind is decimal.Decimal:
                self._decimal()
            if kind is RecursionError:
                self.add(Captured(path + "?", Unguarded("it handles RecursionError, which depends on its callers")))
            if kind in CATCHING or issubclass(kind, Warning):
                self.add(Captured("warnings.filters", raising_settings(None), CALLED, raising_settings))
            for base in kind.__mro__:
                if not is_immutable(base) and id(base) not in self.held_classes:
                    self.held_classes.add(id(base))
                    self._hold(path, base, vars(base), True)
            return
        content = vars(kind)
        self.add(Captured(path + ".__mro__", kind.__mro__, ATTRIBUTE, kind, "__mro__"))
        # A library calls methods of classes derived from its own, such as encoders.
        above = (*kind.__mro__[:-1], type(kind))
        is_used_by_library = any(base is not type and is_library_class(base) for base in above)
        for name, value in content.items():  # names that Python looks up implicitly
            is_function = isinstance(value, (types.FunctionType, staticmethod, classmethod))
            if (is_function and (is_used_by_library or name[:2] == "__")) or name == MEMBERS:
                self.add(Captured(f"{path}.{name}", value, ITEM, content, name))
        if vars(kind).get("_is_protocol"):
            self.names.update(dict.fromkeys([*content, *content.get("__annotations__", ())]))
        if type(kind) is not type:
            self.add(Captured(path + ".__class__", type(kind)))
        self._hold(path, kind, content, False)

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        self._add_inner(path, value)
        if isinstance(value, random.SystemRandom | types.GenericAlias):
            return
        if self._is_fully_inspected(path, value, kind):
            return
        attributes = getattr(value, "__dict__", None)
        is_closed = _is_closed(kind) and not isinstance(value, (*SYNCHRONIZING, BaseException))
        if is_closed and is_library_class(kind):
            if isinstance(attributes, dict):
                if "__wrapped__" in attributes:
                    wrapped = attributes["__wrapped__"]
                    self.add(Captured(path + ".__wrapped__", wrapped, ITEM, attributes, "__wrapped__"))
                self._hold(path, value, attributes, True)
            return
        if isinstance(attributes, dict):
            is_kept = value.__dict__ is attributes  # it may be replaced
            self.add(Captured(path + ".__dict__", attributes, ATTRIBUTE if is_kept else FIXED, value, "__dict__"))
        for each in kind.__mro__:
            for name, member in vars(each).items():  # attributes outside __dict__: slots, and members of C types
                is_special = name[:2] == "__" and is_library_class(each)
                if type(member) is types.MemberDescriptorType and not is_special:  # None for an empty slot
                    self.add(Captured(f"{path}.{name}", getattr(value, name, None), ATTRIBUTE, value, name))
                elif type(member) is types.GetSetDescriptorType and _package(each.__module__) == "scipy":
                    held = getattr(value, name, None)  # an array shared by a Cython object
                    if isinstance(held, np.ndarray) and held is getattr(value, name, None):
                        self.add(Captured(f"{path}.{name}", held, ATTRIBUTE, value, name))
        self.add(Captured(path + ".__class__", kind, ATTRIBUTE, value, "__class__"))

    def _add_inner(self, path: str, value: Any) -> None:
        """Queue the objects that an object refers to outside attributes, and report what cannot be inspected."""
        if isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.add(Captured(path + "()", value.__reduce__()[1]))
        elif isinstance(value, types.CellType):
            self._cell(path + ".cell_contents", value)
        elif isinstance(value, types.GenericAlias):
            self.add(Captured(path + ".__origin__", value.__origin__), Captured(path + ".__args__", value.__args__))
        elif isinstance(value, BaseException):
            self.add(Captured(path + ".args", value.args, ATTRIBUTE, value, "args"))
        elif isinstance(value, datetime.datetime | datetime.time) and value.tzinfo is not None:
            self.add(Captured(path + ".tzinfo", value.tzinfo))
        elif isinstance(value, CACHED) and not _wraps_library_function(value):
            kept = CachedResults(value)
            self.add(Captured(path + ".cache", kept, CALLED, CachedResults, value))
            self.add(*(Captured(f"{path}.cache[{number}]", each) for number, each in enumerate(kept.results)))
        elif isinstance(value, random.SystemRandom):
            self.add(Captured(path + "?", Unguarded("it captures a system random number generator")))
        elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            self.generators.append(value)
        elif isinstance(value, (np.random.BitGenerator, np.random.SeedSequence)):
            self.add(Captured(path + "?", Unguarded("it captures a random bit generator, whose state may change")))
        for wrapper, keys in WRAPPERS.items():
            if isinstance(value, wrapper):
                self.add(*(Captured(f"{path}.{key}", getattr(value, key), ATTRIBUTE, value, key) for key in keys))

    def _is_fully_inspected(self, path: str, value: Any, kind: type) -> bool:
        """Inspect an object by its own means of exposing its content; return whether nothing else remains to inspect.
        """
        if isinstance(value, contextvars.ContextVar):
            self.add(Captured(path + ".get()", value_in_context(value), CALLED, value_in_context, value))
        elif isinstance(value, contextvars.Context):
            self.add(Captured(path + "?", Unguarded("it captures a contextvars.Context")))
        elif isinstance(value, decimal.Context):
            self.add(Captured(path + "()", decimal_settings(value), CALLED, decimal_settings, value))
        elif isinstance(value, threading.local):
            self.add(Captured(path + ".__dict__", value.__dict__, ATTRIBUTE, value, "__dict__"))
        elif isinstance(value, threading.Event):
            self.add(Captured(path + ".is_set()", value.is_set(), ATTRIBUTE, value, "_flag"))
        elif isinstance(value, logging.Logger):
            self.loggers.append(Captured(path, value))
            given = ("level", "disabled", "parent")
            self.add(*(Captured(f"{path}.{key}", getattr(value, key), ATTRIBUTE, value, key) for key in given))
            manager = value.manager
            self.add(Captured(path + ".manager.disable", manager.disable, ATTRIBUTE, manager, "disable"))
        elif isinstance(value, LOCKS):
            if "locked" in self.names:
                self.add(Captured(path + "?", Unguarded("it reads whether a lock is held")))
        elif isinstance(value, weakref.finalize):
            self.add(Captured(path + "?", Unguarded("it captures a finalizer, which may run at any time")))
        elif isinstance(value, weakref.ref):
            target = value()
            if isinstance(target, type):
                self.add(Captured(path + "()", target))
            elif target is not None:
                reason = Unguarded("it captures a weak reference, whose object may be freed at any time")
                self.add(Captured(path + "()", reason))
        elif not isinstance(value, np.memmap) and _is_opaque(value, kind):
            reason = Unguarded(f"it captures a {kind.__qualname__}, whose content cannot be inspected")
            self.add(Captured(path + "?", reason))
        else:
            return isinstance(value, np.memmap)  # compared as an array
        return True


def _is_closed(kind: type) -> bool:
    """Return whether objects of a class are inspected only for the attributes that a program names."""
    return _package(kind.__module__) in CLOSED and not kind.__module__.startswith(COUNTERPARTS)


def _is_opaque(value: Any, kind: type) -> bool:
    """Return whether an object has state that is inaccessible from Python."""
    packages = [_package(each.__module__) for each in kind.__mro__]
    if not {"_ctypes", "mmap"}.isdisjoint(packages):
        return True
    if packages[0] in PLAIN or packages[0].startswith("_cython") or not packages[0] or hasattr(value, "__dict__"):
        return False
    return not any("__slots__" in vars(each) for each in kind.__mro__)


def _wraps_library_function(cached: Any) -> bool:
    """Return whether a library caches the results of a function of its own, rather than the user's program."""
    wrapped = cached.__wrapped__
    if not isinstance(wrapped, types.FunctionType) or not is_library_function(wrapped):
        return False
    return getattr(sys.modules.get(wrapped.__module__), wrapped.__name__, None) is not wrapped


def _is_property(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), property)


def _package(module: Any) -> str:
    """Return the package of a module, or "" for Cython functions, whose class has a descriptor instead of the name."""
    return module.partition(".")[0] if isinstance(module, str) else ""


