"""NumPy modules written in Python, rebound to use this namespace instead of NumPy's.

Their functions are ordinary programs of array operations. Each is rebuilt with the same code and other globals:
`np.convolve` in it refers to the function of this namespace, so it is differentiable.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any


def borrowed_modules(
    modules: Mapping[types.ModuleType, str], replaced: Mapping[Any, Any]
) -> dict[types.ModuleType, types.ModuleType]:
    """Return copies of modules whose global names refer to other objects.

    Arguments:
        modules: the modules, which may import each other, and the names of their copies.
        replaced: replacements for modules that they import.

    Returns:
        The copies of the modules.
    """
    copies = {module: types.ModuleType(name, module.__doc__) for module, name in modules.items()}
    objects: dict[int, Any] = {id(old): new for old, new in (*replaced.items(), *copies.items())}
    for module, copy in copies.items():
        names = vars(copy)
        for name, value in vars(module).items():
            if name.startswith("__") and name != "__all__":
                continue
            names[name] = _copied(value, module.__name__, names, objects)
    for copy in copies.values():  # rebind it if it was imported from another of the modules
        names = vars(copy)
        for name, value in names.items():
            names[name] = objects.get(id(value), value)
    return copies


def _copied(value: Any, module: str, names: dict[str, Any], objects: dict[int, Any]) -> Any:
    if id(value) in objects:
        return objects[id(value)]
    made = given = value
    inner = getattr(value, "_implementation", None)  # the implementation of a function that NumPy dispatches
    if isinstance(inner, types.FunctionType) and not isinstance(value, types.FunctionType):
        value = inner if inner.__module__ == module else value
    if isinstance(value, types.FunctionType) and value.__module__ == module:
        made = _function(value, names)
    elif isinstance(value, type) and value.__module__ == module:
        made = _class(value, names, objects)
    if made is not given:
        objects[id(given)] = made
    return made


def _function(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__, made.__qualname__ = function.__doc__, function.__qualname__
    return made


def _class(cls: type, names: dict[str, Any], objects: dict[int, Any]) -> type:
    """Return a class whose functions use other globals; `super()` still works in them."""

    def copied(value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            return _function(value, names)
        if isinstance(value, (classmethod, staticmethod)):
            inner = value.__func__
            plain = objects.get(id(inner), inner)
            return type(value)(_function(plain, names) if plain is inner else plain)  # type: ignore[arg-type]
        if isinstance(value, property):
            return property(*(each and _function(each, names) for each in (value.fget, value.fset, value.fdel)))  # type: ignore[arg-type]
        return objects.get(id(value), value)

    body = {name: copied(value) for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    bases = tuple(objects.get(id(base), base) for base in cls.__bases__)
    return type(cls)(cls.__name__, bases, body)
