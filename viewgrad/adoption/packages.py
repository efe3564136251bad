"""Packages adopted as a whole: imported a second time, with NumPy's objects replaced by viewgrad's at import.

The modules of the package are executed again, from the same files, as separate module objects. An `import` in them
returns viewgrad's namespaces for NumPy, SciPy and math, and the adopted modules for those of the package. Neither
`sys.modules` nor the original package changes. Extension modules and all other packages are the original ones;
compiled functions receive arrays in place of tensors.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import importlib
import importlib.util
import os
import pickle
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from importlib.machinery import SOURCE_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader
from typing import Any, Final

from ..tensor.conversions import ADOPTED
from .builtin_names import BUILTINS
from .compiled_functions import is_compiled, is_extension, of_compiled
from .containers import REPORTED
from .counterparts import MISSING, counterpart, is_replaced_module, namespace
from .generalized_ufuncs import GeneralizedUfunc
from .package_pickling import pickling_functions

PACKAGE: Final = "__viewgrad_package__"  # a global of the modules of an adopted package


class PackageModule(types.ModuleType):
    """A module of an adopted package; submodules are imported on first access.

    It has no slots, so that the package may assign its own class of modules to `__class__`.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Return a submodule that has not been imported yet."""
        if not name.startswith("__") and "__path__" in vars(self):
            found = vars(self)[PACKAGE].find(f"{self.__name__}.{name}")
            if found is not None:
                return found
        own = vars(self).get("__getattr__")
        if own is not None:
            return own(name)  # which has already raised the error of the package
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<adopted module {self.__name__!r}>"

    def __reduce__(self) -> Any:
        return adopted_package, (self.__name__, tuple(sorted(vars(self)[PACKAGE].names)))


class ReplacedModule(types.ModuleType):
    """A module with replaced attributes, such as a private one of NumPy.

    Arguments:
        original: the module.
        replaced: attributes that are already known.
    """

    def __init__(self, original: types.ModuleType, replaced: dict[str, Any]) -> None:
        super().__init__(original.__name__, original.__doc__)
        vars(self).update(replaced, __viewgrad_of__=original)
        vars(self).update({name: getattr(original, name, None) for name in ("__path__", "__spec__", "__file__")})

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the original, or its counterpart."""
        value = getattr(vars(self)["__viewgrad_of__"], name)
        found = _replaced(value)
        return replacement_of(value) if found is MISSING else found

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the original, such as `sys.stdout`; modules with counterparts remain as they are."""
        original = vars(self)["__viewgrad_of__"]
        has_counterpart = is_replaced_module(original.__name__)
        if has_counterpart or name in vars(self):
            vars(self)[name] = value
        if not has_counterpart:
            setattr(original, name, value)

    def __delattr__(self, name: str) -> None:
        original = vars(self)["__viewgrad_of__"]
        known = vars(self).pop(name, MISSING)
        if not is_replaced_module(original.__name__):
            delattr(original, name)
        elif known is MISSING:
            raise AttributeError(f"module {original.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return dir(vars(self)["__viewgrad_of__"])


for _kind in (PackageModule, ReplacedModule):
    REPORTED[_kind] = types.ModuleType


class Modules(MutableMapping[str, Any]):
    """`sys.modules` as accessed by an adopted package, in which its own modules are the adopted ones.

    Arguments:
        names: the names of the packages whose modules are adopted.
        adopted: the modules imported so far.
        replaced: the modules of the standard library that are replaced in the package, by name.
    """

    def __init__(self, names: frozenset[str], adopted: dict[str, Any], replaced: dict[str, Any]) -> None:
        self._names: Final = names
        self._adopted: Final = adopted
        self._replaced: Final = replaced

    def _of(self, name: str) -> dict[str, Any]:
        return self._adopted if str(name).partition(".")[0] in self._names else sys.modules

    def __getitem__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else self._of(name)[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self._of(name)[name] = module

    def __delitem__(self, name: str) -> None:
        del self._of(name)[name]

    def __iter__(self) -> Iterator[str]:
        yield from list(self._adopted)
        yield from (name for name in list(sys.modules) if self._of(name) is sys.modules)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> dict[str, Any]:
        """Return the modules as a dict."""
        return dict(self)


class Package:
    """The adopted modules of a package and of the packages adopted together with it.

    Arguments:
        names: the names of the packages.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names: Final = names
        self._modules: Final[dict[str, types.ModuleType]] = {}
        # Modules of the standard library whose functions find the module of a class in `sys.modules`.
        self._replaced: Final[dict[str, ReplacedModule]] = {}
        system = ReplacedModule(sys, {"modules": Modules(names, self._modules, self._replaced)})
        for module, wanted in ((dataclasses, None), (typing, "get_type_hints"), (enum, "global_enum")):
            copies = _with_globals(module, {"sys": system})
            own = copies if wanted is None else {wanted: copies[wanted]}
            others = {name: replacement_of(value) for name, value in vars(module).items()}
            self._replaced[module.__name__] = ReplacedModule(module, others | own)
        self._replaced["sys"] = system
        self._replaced["pickle"] = ReplacedModule(pickle, pickling_functions(self._reduced, self._member))
        self._lock: Final = threading.RLock()

    def load(self, name: str) -> types.ModuleType:
        """Return a module of the package, importing it if necessary.

        Raises:
            ModuleNotFoundError: if there is no module of that name.
        """
        found = self.find(name)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found

    def find(self, name: str) -> types.ModuleType | None:
        """Find the location of a module, or None if there is no module of that name."""
        with self._lock:
            found = self._modules.get(name)
            if found is not None:
                return found
            parent, _, tail = name.rpartition(".")
            above = self.load(parent) if parent else None
            if name in self._modules:  # the parent has imported it
                return self._modules[name]
            path = getattr(above, "__path__", None)
            spec = None if above is not None and path is None else _spec_of(name, path)
            if spec is None:
                return None
            module = self._executed(name, spec)
            if above is not None:
                setattr(above, tail, module)
            return module

    def _executed(self, name: str, spec: ModuleSpec) -> types.ModuleType:
        loader: Any = spec.loader
        origin = getattr(spec, "origin", None)  # a finder may return an object of its own
        if not hasattr(loader, "get_code") and str(origin).endswith(tuple(SOURCE_SUFFIXES)):
            loader = SourceFileLoader(name, str(origin))  # instead of one that changes the code, as pytest's
        is_source = loader is None or (hasattr(loader, "get_code") and not isinstance(loader, ExtensionFileLoader))
        if not is_source or origin == "built-in":
            module: types.ModuleType = replacement_of(importlib.import_module(name))
            self._modules[name] = module
            return module
        made = PackageModule(name)
        names = vars(made)
        names.update(
            __spec__=spec,
            __loader__=loader,
            __package__=name if spec.submodule_search_locations is not None else name.rpartition(".")[0],
            __builtins__=self._builtins(names),
        )
        names[ADOPTED], names[PACKAGE] = made, self
        if spec.submodule_search_locations is not None:
            names["__path__"] = list(spec.submodule_search_locations)
        if spec.has_location:
            names["__file__"], names["__cached__"] = spec.origin, spec.cached
        self._modules[name] = made
        try:
            code = None if loader is None else loader.get_code(name)
            if code is not None:
                exec(code, names)
        except BaseException:
            self._modules.pop(name, None)
            raise
        users = names.get("__getattr__")
        if users is not None:
            names["__getattr__"] = lambda each: self._adopted(users(each))
        return self._modules.get(name, made)  # the module may have replaced itself by `sys.modules[__name__] = ...`

    def _adopted(self, value: Any) -> Any:
        """Return the adopted version of a module, function or class of the original package, as a lazy loader finds it.

        Such a loader belongs to another package, and imports the original modules.
        """
        is_module = isinstance(value, types.ModuleType)
        home = getattr(value, "__name__" if is_module else "__module__", None)
        if type(home) is not str or home.partition(".")[0] not in self.names:
            return value
        original = sys.modules.get(home)
        if is_module:
            return self.load(home) if value is original else value
        name = getattr(value, "__name__", "")
        is_original = original is not None and vars(original).get(name) is value
        return getattr(self.load(home), name) if is_original else value

    def _reduced(self, value: Any) -> Any:
        """Return what pickle stores for a class or function of the package: its name, and the names of the packages."""
        if isinstance(value, (type, types.FunctionType)):
            module, name = value.__module__, value.__qualname__
            if self._member(module, name) is value:
                return adopted_member, (tuple(sorted(self.names)), module, name)
        return NotImplemented

    def _member(self, module: Any, name: str) -> Any:
        """Return a class or function of the package, or MISSING."""
        if str(module).partition(".")[0] not in self.names:
            return MISSING
        found: Any = self.find(module)
        for part in name.split("."):
            found = getattr(found, part, MISSING)
        return found

    def _builtins(self, names: dict[str, Any]) -> dict[str, Any]:
        return {**vars(builtins), **BUILTINS, "__import__": self._import(names)}

    def _import(self, module_names: dict[str, Any]) -> Callable[..., Any]:
        """Return the `__import__` of a module of the package."""

        def __import__(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> Any:
            if level:
                package = (globals or module_names)["__package__"]
                name = importlib.util.resolve_name("." * level + name, package)
            top = name.partition(".")[0]
            if top not in self.names:
                return self._imported(builtins.__import__(name, None, None, fromlist, 0), fromlist)
            found = self.load(name)
            if not fromlist:
                return self._modules[top]
            if "*" in fromlist and type(found) is ReplacedModule:
                return replacement_of(vars(found)["__viewgrad_of__"], fromlist)
            wanted = getattr(found, "__all__", ()) if "*" in fromlist else fromlist
            for each in wanted:
                if not hasattr(found, each) and hasattr(found, "__path__"):
                    self.find(f"{name}.{each}")
            return found

        return __import__

    def _imported(self, module: Any, wanted: Any) -> Any:
        if module is importlib:
            return ReplacedModule(module, {"import_module": self._import_module})
        found = self._replaced.get(getattr(module, "__name__", ""))
        return replacement_of(module, wanted) if found is None else found

    def _import_module(self, name: str, package: str | None = None) -> Any:
        """Implement `importlib.import_module` in the package."""
        absolute = importlib.util.resolve_name(name, package)
        if absolute.partition(".")[0] in self.names:
            return self.load(absolute)
        return replacement_of(importlib.import_module(absolute))


def _replaced(value: Any) -> Any:
    """Return the replacement of a function, class or module, or MISSING."""
    return of_compiled(value) if is_compiled(value) else counterpart(value)


def replacement_of(value: Any, wanted: Any = ()) -> Any:
    """Return the replacement of an imported module.

    Arguments:
        value: the module.
        wanted: the names that are imported from it.
    """
    found = counterpart(value)
    if found is not MISSING:
        lacking = [name for name in wanted or () if not hasattr(found, name) and hasattr(value, name)]
        if not lacking:
            return found
        return ReplacedModule(value, {name: getattr(found, name) for name in wanted if name not in lacking})
    if not isinstance(value, types.ModuleType):
        return value
    if is_replaced_module(value.__name__):
        return ReplacedModule(value, {})
    if value.__name__ == "numba":
        return ReplacedModule(value, NUMBA)
    if wanted and "*" in wanted:
        wanted = getattr(value, "__all__", None) or [name for name in vars(value) if not name.startswith("_")]
    replaced = {name: _replaced(getattr(value, name, None)) for name in wanted or ()}
    replaced = {name: new for name, new in replaced.items() if new is not MISSING}
    if not replaced and not is_extension(value.__name__):
        return value
    return ReplacedModule(value, {**{name: getattr(value, name, None) for name in wanted}, **replaced})


def _with_globals(module: types.ModuleType, others: dict[str, Any]) -> dict[str, types.FunctionType]:
    """Return copies of the functions of a module, by name, which see each other and the given objects as globals."""
    names = {**vars(module), **others}
    copies: dict[str, types.FunctionType] = {}
    for name, value in vars(module).items():
        if type(value) is types.FunctionType and value.__globals__ is vars(module):
            made = types.FunctionType(value.__code__, names, value.__name__, value.__defaults__, value.__closure__)
            functools.update_wrapper(made, value)
            del made.__wrapped__  # type: ignore[attr-defined]
            copies[name] = made
    for name, made in copies.items():
        given = vars(module)[name].__kwdefaults__
        if given:  # `decorator=dataclass` of `make_dataclass`
            made.__kwdefaults__ = {key: copies.get(getattr(each, "__name__", ""), each) for key, each in given.items()}
    names.update(copies)
    return copies


def _spec_of(name: str, path: Any) -> ModuleSpec | None:
    """Find the location of a module without importing anything."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path) if hasattr(finder, "find_spec") else None
        except KeyError:  # a folder without `__init__.py`, for which Python needs the parent package in `sys.modules`
            spec = ModuleSpec(name, None, is_package=True)
            folders = [os.path.join(each, name.rpartition(".")[2]) for each in path or ()]
            spec.submodule_search_locations = list(filter(os.path.isdir, folders))
        if spec is not None:
            return spec
    return None


def _uncompiled(*args: Any, **options: Any) -> Any:
    """Replace `numba.njit` and similar decorators by one that returns the Python function itself."""

    def uncompiled(function: Any) -> Any:
        function.py_func = function
        return function

    return uncompiled(args[0]) if args and isinstance(args[0], types.FunctionType) else uncompiled


def _vectorized(*args: Any, **options: Any) -> Any:
    """Replace `numba.vectorize` by a function that applies the Python function elementwise."""
    if args and isinstance(args[0], types.FunctionType):
        return namespace("numpy").vectorize(args[0])
    return lambda function: namespace("numpy").vectorize(function)


def _generalized(types: Any, layout: str | None = None, **options: Any) -> Any:
    """Replace `numba.guvectorize`; without types, its first argument is the layout."""
    types, layout = ((), types) if layout is None else (types, layout)
    types = [types] if isinstance(types, str) else types
    return lambda function: GeneralizedUfunc(function, types, layout)


NUMBA: Final[dict[str, Any]] = {
    "guvectorize": _generalized,
    "jit": _uncompiled,
    "njit": _uncompiled,
    "prange": range,
    "vectorize": _vectorized,
}

_PACKAGES: Final[dict[frozenset[str], Package]] = {}
_LOCK: Final = threading.Lock()


def adopted_package(name: str, also: Iterable[str] = ()) -> types.ModuleType:
    """Return a module of a package with viewgrad's objects for NumPy's, imported separately from the original.

    Arguments:
        name: the name of the package, or of a module in it.
        also: the names of imported packages to adopt together with it.
    """
    if is_replaced_module(name):
        found = counterpart(importlib.import_module(name))
        if found is not MISSING:
            return found  # type: ignore[no-any-return]
    return _package_of(frozenset([name.partition(".")[0], *also])).load(name)


def adopted_member(names: Iterable[str], module: str, name: str) -> Any:
    """Return a class or function of an adopted package, as stored by pickle.

    Arguments:
        names: the names of the packages that were adopted together.
        module: the name of the module.
        name: the qualified name of the class or function.
    """
    return functools.reduce(getattr, name.split("."), _package_of(frozenset(names)).load(module))


def _package_of(names: frozenset[str]) -> Package:
    with _LOCK:
        found = _PACKAGES.get(names)
        if found is None:
            found = _PACKAGES[names] = Package(names)
        return found
