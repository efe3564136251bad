"""The counterparts in `viewgrad.numpy`, `viewgrad.scipy` and `viewgrad.math` of the objects of NumPy, SciPy and `math`.

They are looked up by identity: `xp = numpy`, `from numpy import zeros as z` and `helpers.np` all refer to the same
objects. The namespaces are imported when an object of the original module is first looked up, since SciPy alone takes
half a second. A few functions and classes of Python's library have counterparts too; see STANDARD.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
from collections.abc import Collection
from typing import Any, Final

import numpy as np

MISSING: Final = object()
ROOTS: Final = ("math", "numpy", "scipy")  # each has a namespace viewgrad.<root>
STANDARD: Final = {  # Python modules with counterparts, and the modules that define these
    "statistics": "python_functions",
    "cmath": "python_functions",
    "functools": "function_tools",
    "collections.abc": "abstract_classes",
    "collections": "abstract_classes",
    "typing": "abstract_classes",
    "threading": "thread_classes",
    "concurrent.futures.thread": "thread_classes",
    "concurrent.futures": "thread_classes",
    "concurrent": "thread_classes",
}
LAZY: Final = ("scipy", *STANDARD)
# Types with shared instances, which cannot be looked up by identity.
CONSTANTS: Final = (type(None), bool, int, float, complex, str, bytes, tuple, type(Ellipsis))


class Namespaces:
    """The counterparts of the objects of original modules."""

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()
        self._loaded: Final[dict[str, int]] = {}  # by root, the number of its modules at the last import
        self._found: Final[dict[int, tuple[Any, Any]]] = {}
        self._originals: Final[dict[int, tuple[Any, Any]]] = {}
        # The original modules, and their public attributes, by address of the module.
        self._attributes: Final[dict[int, tuple[types.ModuleType, dict[str, Any]]]] = {}

    def counterpart(self, value: Any) -> Any:
        """Return the counterpart of an object, or MISSING if it has none."""
        self._load("math")
        self._load("numpy")
        if isinstance(value, types.ModuleType) and type(value) is not types.ModuleType:
            value = _imported(value)
        found = self._found.get(id(value))
        if found is None:
            for root in LAZY:
                if root in sys.modules and root not in self._loaded and _may_be_of(root, value):
                    self._load(root)
                    found = self._found.get(id(value))
        return MISSING if found is None or found[0] is not value else found[1]

    def original(self, value: Any) -> Any:
        """Return the original of a counterpart, or MISSING for other objects."""
        found = self._originals.get(id(value))
        return MISSING if found is None or found[0] is not value else found[1]

    def attributes(self, module: types.ModuleType) -> dict[str, Any]:
        """Return the public attributes of a module with counterparts, with the values that they had at first."""
        found = self._attributes.get(id(module))
        return {} if found is None or found[0] is not module else found[1]

    def _load(self, root: str) -> None:
        if root in self._loaded:
            return
        with self._lock:
            if root in self._loaded:
                return
            if root in STANDARD:
                made = importlib.import_module(f"{__package__}.{STANDARD[root]}")
                self._pair(sys.modules[root], made.replaced_module(root))
                self._loaded[root] = 1
                return
            importlib.import_module(f"viewgrad.{root}")
            prefix = f"viewgrad.{root}"
            names = sorted(name for name in sys.modules if name == prefix or name.startswith(f"{prefix}."))
            for name in names:
                original = sys.modules.get(name.removeprefix("viewgrad."))
                if original is not None and original is not sys.modules[name]:
                    self._pair(original, sys.modules[name])
            self._loaded[root] = len(names)

    def _pair(self, original: types.ModuleType, counterpart: types.ModuleType) -> None:
        self._note(original, counterpart)
        found = vars(original)  # lazily imported attributes are paired like modules
        public = found.get("__all__") or [name for name in found if not name.startswith("_")]
        attributes = {
            name: MISSING if _is_replaced(found[name], original) else found[name] for name in public if name in found
        }
        self._attributes[id(original)] = original, attributes
        for name, value in vars(counterpart).items():
            if not name.startswith("_") and name in found:
                self._note(attributes.get(name, found[name]), value)

    def _note(self, original: Any, counterpart: Any) -> None:
        if original is MISSING or original is counterpart or isinstance(original, CONSTANTS):
            return
        self._found.setdefault(id(original), (original, counterpart))
        self._originals.setdefault(id(counterpart), (counterpart, original))


def _imported(module: types.ModuleType) -> types.ModuleType:
    """Return the module behind a proxy for a lazy import, if the module has a counterpart."""
    name = object.__getattribute__(module, "__dict__").get("__name__")
    if type(name) is not str or not is_replaced_module(name):
        return module
    return importlib.import_module(name)


def is_module(value: Any) -> bool:
    """Return whether an object is a module."""
    return issubclass(type(value), types.ModuleType)


def _is_replaced(value: Any, module: types.ModuleType) -> bool:
    """Return whether a function in a module of NumPy, SciPy or `math` was defined elsewhere."""
    if not isinstance(value, types.FunctionType) or not is_replaced_module(module.__name__):
        return False
    homes = str(value.__module__), str(value.__globals__.get("__name__"))  # which differ for a decorated function
    return not any(is_replaced_module(home) or home.startswith("viewgrad.") for home in homes)


def replaced_attributes(module: types.ModuleType, names: Collection[str]) -> dict[str, Any]:
    """Return the attributes of a module with counterparts that other code has replaced, such as `numpy.sin`.

    Those that this library replaces while it traces a function are omitted.

    Arguments:
        module: an original module.
        names: the names to consider.
    """
    known, now = attributes_of_library(module), vars(module)
    found = {name: now[name] for name in names if name in known and now.get(name, known[name]) is not known[name]}
    return {name: value for name, value in found.items() if not _is_viewgrads(value)}


def _is_viewgrads(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and str(value.__globals__.get("__name__")).startswith("viewgrad.")


def _may_be_of(root: str, value: Any) -> bool:
    """Return whether an object may belong to a package; ufuncs do not name their module."""
    if isinstance(value, np.ufunc):
        return root == "scipy"
    home = getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", None)
    return type(home) is str and (home == root or home.startswith(f"{root}."))


_NAMESPACES: Final = Namespaces()
counterpart: Final = _NAMESPACES.counterpart
original_of_counterpart: Final = _NAMESPACES.original
attributes_of_library: Final = _NAMESPACES.attributes


@functools.cache
def namespace(name: str) -> Any:
    """Return a namespace of viewgrad by the name of the original module, such as "numpy"."""
    return importlib.import_module(f"viewgrad.{name}")


def is_replaced_module(name: str) -> bool:
    """Return whether a module belongs to a package that has counterparts."""
    return name.partition(".")[0] in ROOTS
