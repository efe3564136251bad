"""The globals of adopted functions: a dict kept in sync with that of the user's module, with replaced objects.

    the user's module                 adopted functions
    np      -> numpy                  np      -> viewgrad.numpy
    helper  -> <function>     <==>    helper  -> the same code with these globals
    scale   -> 2.0                    scale   -> 2.0

Both are plain dicts, so adopted code looks up names at full speed. When a call from outside begins, `refresh` applies
changes of the module; when it ends, `flush` copies assignments of adopted code (`global scale`) back.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from ..tensor.conversions import ADOPTED
from .builtin_names import BUILTINS, CALLED, adopting_import
from .builtin_uses import ANALYZED, faster_builtins
from .code_objects import assigned_names, looks_up_by_name, mentioned_names
from .containers import HOLDING, REPORTED
from .counterparts import MISSING, attributes_of_library, is_module, replaced_attributes

OWN: Final = ("__builtins__", "__getattr__", ADOPTED)  # additional globals of adopted functions
# Names that a module needs in addition to those used by its functions, for imports and `inspect`.
ALWAYS: Final = ("__name__", "__package__", "__spec__", "__path__", "__file__", "__doc__", "__loader__", "__cached__")


# Python 3.14 evaluates annotations when they are read.
_ANNOTATIONS: Final = "__annotate__" if "__annotate__" in vars(types.FunctionType) else "__annotations__"
_NAMED: Final = operator.attrgetter("__code__", "__defaults__", "__name__", "__doc__", _ANNOTATIONS, "__kwdefaults__")
NAMED_PARTS: Final = 6  # the number of these attributes
_BUILTIN: Final = vars(builtins).get
BUILTIN_TYPES: Final = (types.BuiltinFunctionType, type)


def parts_of(function: types.FunctionType) -> tuple[Any, ...]:
    """Return the attributes of a function that may be reassigned."""
    named: tuple[Any, ...] = _NAMED(function)
    options = named[-1]
    return named if options is None else (*named, *options.values())


def is_as_it_was(function: types.FunctionType, parts: tuple[Any, ...]) -> bool:
    """Return whether none of these attributes was reassigned."""
    now: tuple[Any, ...] = _NAMED(function)
    if now[-1] is not None:
        now = (*now, *now[-1].values())
    return len(now) == len(parts) and all(map(operator.is_, now, parts))


class FunctionSnapshot:
    """The attributes of functions at some time, for a comparison of all of them.

    Arguments:
        functions: for a weak reference to each function, the result of `parts_of`.
    """

    __slots__ = ("_optional", "_parts", "_references")

    def __init__(self, functions: dict[weakref.ref[Any], tuple[Any, ...]]) -> None:
        self._references: Final = tuple(functions)
        self._parts: Final = tuple(itertools.chain.from_iterable(parts[:NAMED_PARTS] for parts in functions.values()))
        # Those with keyword-only defaults, a dict that may change in place.
        optional = [(each, parts) for each, parts in functions.items() if parts[NAMED_PARTS - 1] is not None]
        self._optional: Final[list[tuple[Callable[[], Any], tuple[Any, ...]]]] = optional  # type: ignore[assignment]

    def is_current(self) -> bool:
        """Return whether all functions still exist and none of their attributes was reassigned."""
        try:
            now = itertools.chain.from_iterable(map(_NAMED, map(operator.call, self._references)))
            return all(map(operator.is_, now, self._parts)) and all(
                is_as_it_was(each(), parts) for each, parts in self._optional
            )
        except AttributeError:  # a function was freed
            return False


class _Compared(NamedTuple):
    """A snapshot of a module's names, which other threads may read while names are bound."""

    names: tuple[str, ...]
    values: tuple[Any, ...]
    absent: frozenset[str]
    functions: tuple[str, ...]
    found: tuple[Any, ...]
    builtin_count: int  # the number of built-in names
    libraries: tuple[tuple[Callable[[str], Any], tuple[str, ...], tuple[Any, ...]], ...]  # attributes of their modules
    own: tuple[types.FunctionType, ...]
    parts: tuple[Any, ...]  # the attributes of all of these, in one tuple
    optional: tuple[types.FunctionType, ...]  # those with keyword-only defaults, a dict that may change in place
    options: tuple[Any, ...]


class AdoptedGlobals:
    """The globals of the adopted functions of one module.

    Arguments:
        original: the globals of the module.
        names: the dict for adopted functions.
        adopted: a function that returns the adopted version of a value.
        unadopted: a function that returns the user's own object for an adopted version.
        lock: the lock held while names are bound; also acquired by `adopted`, to avoid deadlocks.
        renew: a function that updates the code and defaults of an adopted function, which may be reassigned at any
            time.
    """

    def __init__(
        self,
        original: dict[str, Any],
        names: dict[str, Any],
        adopted: Callable[[Any], Any],
        unadopted: Callable[[Any], Any],
        lock: AbstractContextManager[Any],
        renew: Callable[[types.FunctionType], None],
    ) -> None:
        self.original: Final = original
        self.names: Final = names
        self.links: Final[set[AdoptedGlobals]] = set()  # the globals of the objects bound here
        self._adopted: Final = adopted
        self._unadopted: Final = unadopted
        self._seen: Final[dict[str, Any]] = {}  # the values in the module, by name
        self._bound: Final[dict[str, Any]] = {}  # their replacements
        self._absent: Final[set[str]] = set()  # used but not defined: built-in names and attributes
        self._builtins_seen: Final[dict[str, Any]] = {}  # the built-in functions that are used
        # The built-in names of functions for which some need not be replaced, by these names and their values.
        self._faster: Final[dict[frozenset[tuple[str, int]], dict[str, Any]]] = {}
        self._imports: Final[dict[types.ModuleType, Any]] = {}  # modules that functions import
        self._watched: Final[dict[tuple[types.ModuleType, str], Any]] = {}  # the values of attributes of libraries
        self._replaces = False  # whether the user's program has replaced attributes of libraries
        self._assigned: set[str] = set()
        self._follows_all = False
        self.may_be_assigned = False  # whether adopted code assigns globals, so that `flush` has something to do
        self._lock: Final = lock
        self._renew: Final = renew
        self._compared = _Compared((), (), frozenset(), (), (), 0, (), (), (), (), ())
        self._has_assigned = False  # whether globals were assigned since `_compared` was noted
        self.containers: tuple[Any, ...] = ()  # the lists and dicts bound here that contain nothing to adopt

    def prepare(self) -> None:
        """Bind the names that every module needs."""
        self.names.clear()
        self.names["__builtins__"] = self._builtins()
        self.names["__getattr__"] = self._further
        self.require(ALWAYS)

    def include(self, code: types.CodeType) -> None:
        """Bind the names that a function uses, and track those that it assigns."""
        with self._lock:
            self._assigned |= assigned_names(code)
            self.require(mentioned_names(code))
            if looks_up_by_name(code):
                self._follows_all = True
            if self._follows_all:
                self.require(self.original)
            self.may_be_assigned = self._follows_all or bool(self._assigned)

    def function(self, code: types.CodeType, name: str, cells: tuple[types.CellType, ...]) -> types.FunctionType:
        """Return a function with these globals, and with Python's built-in functions where they do the same.

        A function takes its built-in names from its globals when it is created. They are exchanged for that moment,
        by calls in C during which no other thread runs.
        """
        mine: dict[str, Any] = self.names["__builtins__"]
        found = faster_builtins(code, self._is_builtin, CALLED)
        if not found:
            return types.FunctionType(code, self.names, name, None, cells)
        key = frozenset((name, id(value)) for name, value in found.items())
        faster = self._faster.setdefault(key, {**mine, **found})
        assign = functools.partial(operator.setitem, self.names, "__builtins__")
        make = functools.partial(types.FunctionType, code, self.names, name, None, cells)
        steps: tuple[Any, ...] = functools.partial(assign, faster), make, functools.partial(assign, mine)
        made: types.FunctionType = list(map(operator.call, steps))[1]
        return made

    def _is_builtin(self, name: str) -> bool:
        own = BUILTINS.get(name, getattr(builtins, name))
        return name not in self.original and self.names["__builtins__"].get(name) is own

    def discard_faster_builtins(self) -> None:
        """Use the replaced built-in names in all functions, since the analysis of their code may no longer hold."""
        for each in self._faster.values():
            each.update(self.names["__builtins__"])

    def require(self, names: Iterable[str]) -> None:
        """Bind names that are not bound yet."""
        with self._lock:
            new = list(filter(self._is_unknown, list(names)))
            for name in new:
                self._bind(name)
            if self._replaces or any(replaced_attributes(module, new) for module, _ in self._libraries()):
                self._refresh_libraries()
            self._note_compared()

    # A function: while a comprehension with a condition runs in a block, CPython 3.13 may leave the block without
    # releasing its lock when a signal arrives.
    def _is_unknown(self, name: str) -> bool:
        return name not in self._seen and name not in self._absent and name not in OWN

    def find(self, name: str) -> Any:
        """Return the adopted version of a global, or MISSING if the module has no such global."""
        self.require((name,))
        return self.names.get(name, MISSING)

    def _further(self, name: str) -> Any:
        """Return an attribute of the module that no adopted function has used so far.

        It is the module's `__getattr__`, since a class with a method of that name would slow down all attributes.
        """
        found = self.find(name)
        if found is not MISSING:
            return found
        users = self.original.get("__getattr__")
        if users is None:
            raise AttributeError(f"module {self.original.get('__name__')!r} has no attribute {name!r}")
        return self._adopted(users)(name)

    def refresh(self) -> None:
        """Apply changes of the module since the last call."""
        if self._has_assigned:
            with self._lock:
                self._note_compared()
        keys, values, absent, functions, found, builtin_count, libraries, own, parts, optional, options = self._compared
        if not (
            all(map(operator.is_, itertools.chain.from_iterable(map(_NAMED, own)), parts))
            and all(map(is_as_it_was, optional, options))
        ):
            with self._lock:
                for function in own:
                    self._renew(function)
                self._note_compared()
        if not all(map(operator.is_, map(_BUILTIN, functions), found)) or len(vars(builtins)) != builtin_count:
            self._refresh_builtins()
        for get, names, before in libraries:
            if not all(map(operator.is_, map(get, names), before)):
                self._refresh_libraries()
                break
        get = self.original.get
        if (
            all(map(operator.is_, map(get, keys), values))
            and self.original.keys().isdisjoint(absent)
            and not (self._follows_all and len(self.original) != len(self._seen) + 1)
        ):
            return
        with self._lock:
            for name in list(self._seen):
                if self.original.get(name, MISSING) is not self._seen[name]:
                    del self._seen[name]
                    self._bind(name)
            for name in self._absent & self.original.keys():
                self._absent.discard(name)
                self._bind(name)
            if self._follows_all:
                self.require(self.original)
            self._note_compared()

    def flush(self) -> None:
        """Copy assignments of adopted code to globals into the module."""
        with self._lock:
            for name in list(self.names.keys() | self._bound.keys()) if self._follows_all else self._assigned:
                value = self.names.get(name, MISSING)
                if value is not self._bound.get(name, MISSING) and name not in OWN:
                    self.assign(name, value)

    def assign(self, name: str, value: Any) -> None:
        """Assign a global of the module, or delete it if the value is MISSING."""
        with self._lock:
            self._absent.discard(name)
            self._note_shadowed(name)
            if value is MISSING:
                for names in (self.original, self.names, self._seen, self._bound):
                    names.pop(name, None)
                self._absent.add(name)
            else:
                self.names[name] = self._bound[name] = value
                self.original[name] = self._seen[name] = self._unadopted(value)
            self._has_assigned = True  # compared once, at the next call, whatever the number of assignments

    def forget_values(self, handed: set[int]) -> None:
        """Mark names as outdated, so that `refresh` binds them again.

        Arguments:
            handed: the addresses of the values of these names.
        """
        with self._lock:
            for name, value in self._bound.items():
                if id(value) in handed:
                    self._seen[name] = MISSING
            self._note_compared()

    def _note_shadowed(self, name: str) -> None:
        if name in ANALYZED:
            self.discard_faster_builtins()

    def _bind(self, name: str) -> None:
        value = self.original.get(name, MISSING)
        if value is MISSING:
            self._absent.add(name)
            self._bound.pop(name, None)
            self.names.pop(name, None)
            plain, mine = vars(builtins).get(name, MISSING), self.names["__builtins__"]
            if plain is not MISSING and mine.setdefault(name, plain) is plain:
                self._bind_builtin(name, plain)
            return
        self._note_shadowed(name)
        self._seen[name] = value
        try:
            self._bound[name] = self.names[name] = self._adopted_value(value)
        except BaseException:
            del self._seen[name]
            raise

    def _bind_builtin(self, name: str, value: Any) -> None:
        """Bind a built-in name, to which the user's program may have assigned a function."""
        self._builtins_seen[name] = value
        new = value if type(value) in BUILTIN_TYPES else self._adopted(value)
        for names in (self.names["__builtins__"], *self._faster.values()):
            names[name] = new

    def _adopted_value(self, value: Any) -> Any:
        new = self._adopted(value)
        return self._with_replaced(value, new, {}) if is_module(value) else new

    def _with_replaced(self, module: types.ModuleType, made: Any, visited: dict[types.ModuleType, Any]) -> Any:
        """Return the counterpart of a library's module, with the attributes that the user's program has replaced."""
        if module in visited:
            return visited[module]
        visited[module] = made
        names = attributes_of_library(module).keys()
        replaced = {name: self._adopted(value) for name, value in replaced_attributes(module, names).items()}
        for name in names - replaced.keys():
            inner: Any = vars(module).get(name)
            if is_module(inner):
                plain = getattr(made, name, inner)
                found = self._with_replaced(inner, plain, visited)
                if found is not plain:
                    replaced[name] = found
        if replaced:
            self._replaces = True
            visited[module] = types.ModuleType(module.__name__, module.__doc__)
            vars(visited[module]).update({**vars(made), **replaced})
        return visited[module]

    def _imported(self, module: types.ModuleType) -> Any:
        """Return the adopted version of a module that a function imports."""
        found = self._imports.get(module)
        if found is None:
            found = self._adopted_value(module)
            with self._lock:
                self._imports[module] = found
                if attributes_of_library(module):
                    self._note_compared()
        return found

    def _library_values(self) -> Iterator[tuple[Callable[[str], Any], tuple[str, ...], tuple[Any, ...]]]:
        """Iterate over the modules of libraries, with the values of attributes at the time they were first used."""
        for module, names in self._libraries():
            get = vars(module).get
            yield get, names, tuple(self._watched.setdefault((module, name), get(name)) for name in names)

    def _libraries(self) -> Iterator[tuple[types.ModuleType, tuple[str, ...]]]:
        """Iterate over the modules of libraries that are used, and the attributes used of each."""
        modules: list[Any] = [value for value in (*self._seen.values(), *self._imports) if is_module(value)]
        used, visited = self._seen.keys() | self._absent, set()
        while modules:
            module = modules.pop()
            names = attributes_of_library(module).keys() & used
            if names and id(module) not in visited:
                visited.add(id(module))
                modules.extend(value for value in map(vars(module).get, names) if is_module(value))
                yield module, tuple(names)

    def _refresh_libraries(self) -> None:
        """Apply replacements of attributes of libraries, such as `numpy.sin = ...`."""
        with self._lock:
            self._imports.clear()
            self._watched.clear()
            self._replaces = False
            for name in [name for name, value in self._seen.items() if is_module(value)]:
                self._bind(name)
            self._note_compared()

    def _refresh_builtins(self) -> None:
        """Apply changes of built-in names, such as those made by the compiler while it traces."""
        with self._lock:
            for name in list(self._builtins_seen):
                found = vars(builtins).get(name, MISSING)
                if found is not MISSING:
                    self._bind_builtin(name, found)
                    continue
                del self._builtins_seen[name]
                for names in (self.names["__builtins__"], *self._faster.values()):
                    names.pop(name, None)
            for name in self._absent & (vars(builtins).keys() - self._builtins_seen.keys()):
                self._bind(name)
            self._note_compared()

    def _note_compared(self) -> None:
        self._has_assigned = False
        functions = self._builtins_seen
        own = tuple(value for value in self._seen.values() if type(value) is types.FunctionType)
        optional = tuple(function for function in own if function.__kwdefaults__)
        self.containers = tuple(value for value in self._bound.values() if type(value) in HOLDING)
        self._compared = _Compared(
            tuple(self._seen), tuple(self._seen.values()), frozenset(self._absent),
            tuple(functions), tuple(functions.values()), len(vars(builtins)),
            tuple(self._library_values()),
            own, tuple(itertools.chain.from_iterable(map(_NAMED, own))), optional, tuple(map(parts_of, optional)),
        )  # fmt: skip

    def _builtins(self) -> dict[str, Any]:
        found = self.original.get("__builtins__", builtins)
        plain = vars(found) if isinstance(found, types.ModuleType) else found
        own = {name: value for name, value in BUILTINS.items() if plain.get(name) is getattr(builtins, name)}
        if "__import__" in plain:
            own["__import__"] = adopting_import(plain["__import__"], self.original, self._imported)
        return {**plain, **own}


class AdoptedModule(types.ModuleType):
    """A user's module as accessed by adopted code, whose attributes are the globals of adopted functions."""

    __slots__ = ("_state",)
    _state: AdoptedGlobals

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The globals of the original, for `vars(module)`; those of adopted functions are `own_globals`."""
        return self._state.original

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_state":
            super().__setattr__(name, value)
        else:
            self._state.assign(name, value)

    def __delattr__(self, name: str) -> None:
        if name not in self._state.original:
            raise AttributeError(name)
        self._state.assign(name, MISSING)

    def __dir__(self) -> list[str]:
        return sorted(self._state.original)

    def __repr__(self) -> str:
        return f"<adopted module {self.__name__!r}>"


REPORTED[AdoptedModule] = types.ModuleType
# Return the dict of a module itself, which for an adopted module contains the globals of adopted functions.
own_globals: Final[Callable[[types.ModuleType], dict[str, Any]]] = vars(types.ModuleType)["__dict__"].__get__
