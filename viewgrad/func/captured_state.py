"""The state that a function refers to besides its arguments: tensors and random number generators."""

from __future__ import annotations

import contextvars
import gc
import random
import sys
import threading
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from ..adoption.attributes import hides_type, own_attribute
from ..adoption.code_objects import BY_NAME as FUNCTIONS_BY_NAME
from ..adoption.counterparts import MISSING, is_replaced_module
from ..adoption.locations import VIEWGRAD, file_of, is_installed, place_of
from ..adoption.registry import AdoptionRegistry
from ..tensor.tensor import Tensor

LIMIT: Final = 20_000  # the maximal number of inspected objects
GENERATORS: Final = (np.random.Generator, np.random.RandomState, random.Random)
# Names by which a function may look up variables whose names it computes.
BY_NAME: Final = FUNCTIONS_BY_NAME | {"__dict__", "getmembers", "getclosurevars", "locals"}
LONGEST: Final = 200  # the maximal length of a string that may be the name of a variable
INTERNAL: Final = "__viewgrad_"  # the prefix of attributes that adoption adds to classes
STATE: Final = (Tensor, np.ndarray, *GENERATORS)
# Types of objects that refer to no state; modules, whose variables are found by the names that functions use; and the
# registry, to which adopted containers refer, and which refers to all that was ever adopted.
CLOSED: Final = (
    str, bytes, int, float, complex, type(None), np.generic, np.ufunc, types.CodeType, types.ModuleType,
    AdoptionRegistry,
)  # fmt: skip


def reachable(*roots: Any) -> Iterator[Any]:
    """Yield the objects that functions refer to through closures, defaults, bound instances and global names.

    The references of objects are followed, whatever their types, and the methods of the user's classes; of modules, the
    attributes that a function names, also in strings, or all variables of the user's modules if it may compute names.
    Library functions are not searched. The search ends after a number of objects; see `LIMIT`.
    """
    stack: list[Any] = list(roots)
    seen: dict[int, Any] = {}
    while stack and len(seen) < LIMIT:
        each = stack.pop()
        if id(each) in seen:
            continue
        is_hidden = hides_type(each)
        if not is_hidden and isinstance(each, CLOSED):
            continue
        seen[id(each)] = each
        if is_hidden:  # what it stands for may be among its attributes
            stack.extend(gc.get_referents(each))
        else:
            yield each
            stack.extend(_references(each))


def _references(value: Any) -> Iterable[Any]:
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else ()
    if isinstance(value, STATE):
        return ()
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, type):
        return [part for base in _holders(value) for name, part in vars(base).items() if not name.startswith(INTERNAL)]
    if isinstance(value, weakref.ref):
        return (value(),)
    if isinstance(value, contextvars.ContextVar):
        return (value.get(None),)
    if isinstance(value, threading.local):
        return (vars(value),)
    function = own_attribute(value, "function")
    if function is not MISSING and file_of(type(value)).startswith(VIEWGRAD):
        return function, own_attribute(value, "__wrapped__")  # of a compiled or adopted function
    return gc.get_referents(value)


def _of_function(function: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    held = [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if _is_library(function.__globals__):  # the closure may contain a user's function, as that of a transform
        return held
    names = names_in(function.__code__)
    is_open = not BY_NAME.isdisjoint(names)
    named = _variables(function.__globals__, names, is_open)
    modules = [sys.modules[name] for name in names if name in sys.modules]
    holders = [each for value in (*cells, *named, *modules) for each in _holders(value)]
    attributes = [
        found for each in holders for found in _variables(vars(each), names, is_open and not isinstance(each, type))
    ]
    return [*held, *named, *attributes, *vars(function).values()]


def _variables(content: Mapping[str, Any], names: set[str], is_open: bool) -> list[Any]:
    """Return the values of the variables of a module or class with given names, or of all."""
    return list(content.values()) if is_open else [content[name] for name in names if name in content]


def _holders(value: Any) -> list[Any]:
    """Return a user's module, or a class and its bases as far as they are the user's."""
    kind = type(value)
    if issubclass(kind, types.ModuleType):
        return [] if is_installed(place_of(vars(value))) else [value]
    if not issubclass(kind, type):
        return []
    return [base for base in value.__mro__ if not is_installed(file_of(base))]


def _is_library(names: Mapping[str, Any]) -> bool:
    """Return whether a module, given by its globals, is part of viewgrad or of a package with counterparts."""
    return place_of(names).startswith(VIEWGRAD) or is_replaced_module(str(names.get("__name__")))


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
        self.numpy, self.python = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002

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

    def is_current(self) -> bool:
        """Return whether no generator was used since its state was recorded."""
        now = self.again()
        parts = zip([*self.states, self.numpy, self.python], [*now.states, now.numpy, now.python], strict=True)
        return all(_is_same(one, two) for one, two in parts)


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    is_numpys = isinstance(generator, np.random.RandomState)
    return generator.get_state(legacy=False) if is_numpys else generator.getstate()


def _is_same(one: Any, two: Any) -> bool:
    if isinstance(one, dict):
        return all(_is_same(value, two[key]) for key, value in one.items())
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else bool(one == two)
