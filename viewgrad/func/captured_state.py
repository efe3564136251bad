"""The state that a function refers to besides its arguments: tensors and random number generators."""

from __future__ import annotations

import functools
import random
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from ..adoption import AdoptedFunction
from ..adoption.code_objects import BY_NAME as FUNCTIONS_BY_NAME
from ..adoption.locations import is_installed, place_of
from ..tensor.tensor import Tensor

LIMIT: Final = 10_000  # the maximal number of inspected objects
LIBRARIES: Final = ("builtins", "numpy", "viewgrad", "scipy")
GENERATORS: Final = (np.random.Generator, np.random.RandomState, random.Random)
# Names by which a function may look up variables whose names it computes.
BY_NAME: Final = FUNCTIONS_BY_NAME | {"__dict__", "getmembers", "getclosurevars", "locals"}
LONGEST: Final = 200  # the maximal length of a string that may be the name of a variable
STATE: Final = (Tensor, np.ndarray, *GENERATORS)


def reachable(*roots: Any) -> Iterator[Any]:
    """Yield the objects that functions refer to through closures, defaults, bound instances and global names.

    Containers and attributes of instances are searched too; of the user's modules and classes, the attributes that a
    function names, also in strings, or all variables of modules if it may compute names. Library functions are not
    searched.
    """
    stack: list[Any] = list(roots)
    seen: dict[int, Any] = {}
    while stack and len(seen) < LIMIT:
        each = stack.pop()
        if id(each) in seen or isinstance(each, (str, bytes, int, float, complex, type, types.ModuleType, type(None))):
            continue
        seen[id(each)] = each
        yield each
        stack.extend(_children(each))


def _children(value: Any) -> list[Any]:
    if isinstance(value, STATE):
        return []
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        return [getattr(value, "__func__", None), value.__self__]
    if isinstance(value, AdoptedFunction):
        return [value.function, value.__wrapped__]
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if type(value).__module__.partition(".")[0] in LIBRARIES:
        return []
    kinds = type(value).__mro__
    slots = [getattr(value, name, None) for kind in kinds for name in getattr(kind, "__slots__", ())]
    shared = [each for kind in kinds for each in vars(kind).values() if isinstance(each, STATE)]
    call = type(value).__dict__.get("__call__")
    return [*getattr(value, "__dict__", {}).values(), *slots, *shared, call]


def _of_function(function: types.FunctionType) -> list[Any]:
    if function.__module__ is not None and function.__module__.partition(".")[0] in LIBRARIES[1:]:
        closure = function.__closure__ or ()
        return [cell.cell_contents for cell in closure if _is_filled(cell)]  # such as a transform of a user's function
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    names = names_in(function.__code__)
    is_open = not BY_NAME.isdisjoint(names)
    named = _variables(function.__globals__, names, is_open)
    modules = [sys.modules[name] for name in names if name in sys.modules]
    holders = [each for value in (*cells, *named, *modules) for each in _holders(value)]
    attributes = [
        found for each in holders for found in _variables(vars(each), names, is_open and not isinstance(each, type))
    ]
    return [*cells, *named, *attributes, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _variables(content: Mapping[str, Any], names: set[str], is_open: bool) -> list[Any]:
    """Return the values of the variables of a module or class with given names, or of all."""
    return list(content.values()) if is_open else [content[name] for name in names if name in content]


def _holders(value: Any) -> tuple[Any, ...]:
    """Return a user's module, or a user's class and its bases, whose attributes a function may name."""
    if not isinstance(value, (type, types.ModuleType)):
        return ()
    module = sys.modules.get(value.__module__) if isinstance(value, type) else value
    if module is not None and is_installed(place_of(vars(module))):
        return ()
    return value.__mro__ if isinstance(value, type) else (value,)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def names_in(code: types.CodeType) -> set[str]:
    """Return the names used in a function's code and in the code of functions defined inside it, also in strings."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    strings = [each for each in code.co_consts if type(each) is str]
    parts = [part for each in strings for part in (each, *each.split(".")) if len(each) <= LONGEST]
    return set(code.co_names).union(parts, *map(names_in, inner))


class RandomState:
    """The states of random number generators: the global ones of NumPy and Python, and given ones.

    Arguments:
        generators: the given ones; their states are read on construction.
    """

    def __init__(self, generators: list[Any]) -> None:
        self.generators = generators
        self.states = [_state(each) for each in generators]
        self.numpy, self.python = np.random.get_state(), random.getstate()  # noqa: NPY002

    def restore(self) -> None:
        """Restore the recorded states of all generators."""
        for each, state in zip(self.generators, self.states):
            if isinstance(each, np.random.Generator):
                each.bit_generator.state = state
            elif isinstance(each, np.random.RandomState):
                each.set_state(state)
            else:
                each.setstate(state)
        np.random.set_state(self.numpy)  # noqa: NPY002
        random.setstate(self.python)

    @classmethod
    def of(cls, *roots: Any) -> RandomState:
        """Return the states of the global generators, and of those that functions and arguments refer to."""
        return cls([each for each in reachable(*roots) if isinstance(each, GENERATORS)])

    def again(self) -> RandomState:
        """Return the current states of the same generators."""
        return RandomState(self.generators)


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()
