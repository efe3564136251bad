"""The names of a NumPy module, and their counterparts."""

from __future__ import annotations

import pkgutil
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from ..adoption import adopted_callable
from ..adoption.packages import replacement_of
from ..operators.numpy_api.public import public
from ..operators.numpy_api.universal import ufunc
from ..standard.public import common_function

LIBRARIES: Final = ("None", "math", "numpy", "scipy")  # the namespaces themselves set the names of their functions
NUMBERS: Final = (bool, int, float, complex, str, np.ndarray)


class Unbound(staticmethod):  # type: ignore[type-arg]
    """A function that does not bind to instances as a class attribute, like the built-in function that it replaces.

    `activation = math.tanh` in a class body is common, and `self.activation(x)` then calls it with `x` alone.
    """

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return pkgutil.resolve_name, (f"{self.__dict__['home']}:{self.__name__}",)


def unbound(module: types.ModuleType, values: dict[str, Any], home: str) -> None:
    """Wrap the counterparts of built-in functions so that, like these, they do not bind to instances.

    Arguments:
        module: NumPy's module, or another one whose functions have counterparts.
        values: the counterparts, by name.
        home: the name of the module that has them.
    """
    for name, value in values.items():
        if isinstance(value, types.FunctionType) and not hasattr(type(getattr(module, name, value)), "__get__"):
            values[name] = Unbound(value)
            values[name].home, values[name].__name__ = home, name


def public_names(module: types.ModuleType) -> list[str]:
    """Return the public names of a NumPy module."""
    names: Iterable[str] = getattr(module, "__all__", None) or dir(module)
    return sorted({name for name in names if not name.startswith("_")})


def filled(
    module: types.ModuleType, made: Mapping[str, Any], own: Iterable[str], ways_out: Mapping[str, str]
) -> dict[str, Any]:
    """Return the public names of a module with their objects in this namespace.

    Arguments:
        module: NumPy's module.
        made: the counterparts, by name.
        own: the names that refer to NumPy's own objects.
        ways_out: the alternatives to functions that have no operator.
    """
    own = frozenset(own)
    found = {name: _counterpart(module, name, made, own, ways_out) for name in public_names(module)}
    return found | {"__getattr__": added_names(module)}


MARKERS: Final = frozenset({"_NoValue"})  # private names of NumPy that packages pass as arguments


def added_names(module: types.ModuleType) -> Callable[[str], Any]:
    """Return the `__getattr__` of a namespace, which finds its private modules, and attributes that were added to it.

    Arguments:
        module: the original module.
    """

    def __getattr__(name: str) -> Any:
        value = vars(module).get(name)
        if isinstance(value, types.ModuleType):
            return replacement_of(value)
        if name in MARKERS:
            return value
        home = str(getattr(value, "__module__", None)).partition(".")[0]
        is_added = isinstance(value, NUMBERS) or (callable(value) and home not in LIBRARIES)
        if name.startswith("_") or not is_added:
            raise AttributeError(f"module 'viewgrad.{module.__name__}' has no attribute {name!r}")
        return adopted_callable(value) if callable(value) else value

    return __getattr__


def _counterpart(
    module: types.ModuleType, name: str, made: Mapping[str, Any], own: frozenset[str], ways_out: Mapping[str, str]
) -> Any:
    value = getattr(module, name)
    common = common_function(value)
    if common is not None:
        return common
    if name in made:
        return made[name]
    if name in own or isinstance(value, (type, types.ModuleType)) or not callable(value):
        return value
    if isinstance(value, np.ufunc):
        return ufunc(value, ways_out.get(name, ""))
    return public(name, value, way_out=ways_out.get(name, ""), module=f"viewgrad.{module.__name__}")
