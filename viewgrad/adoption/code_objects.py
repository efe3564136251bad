"""Analysis of code objects: the global names that they use and assign."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .counterparts import MISSING, is_replaced_module

ASSIGNING: Final = frozenset({dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]})
# Types of values that cannot change without being rebound.
FIXED: Final = (type(None), bool, int, float, complex, str, bytes, np.generic, np.ufunc, types.BuiltinFunctionType)
UNSTEADY: Final = frozenset({"random", "open", "input", "time", "environ"})  # functions whose results vary
# Functions and attributes that access globals by name.
BY_NAME: Final = frozenset({"globals", "eval", "exec", "vars", "f_globals", "__globals__"})


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def mentioned_names(code: types.CodeType) -> set[str]:
    """Return the global and attribute names used by a function and the functions nested in it."""
    return {name for each in _codes(code) for name in each.co_names}


def assigned_names(code: types.CodeType) -> set[str]:
    """Return the globals that a function and the functions nested in it assign or delete."""
    return {
        instruction.argval
        for each in _codes(code)
        if not ASSIGNING.isdisjoint(each.co_code[::2])
        for instruction in dis.get_instructions(each)
        if instruction.opcode in ASSIGNING
    }


def looks_up_by_name(code: types.CodeType) -> bool:
    """Return whether a function may access any global of its module, for example with `eval`."""
    return not BY_NAME.isdisjoint(mentioned_names(code))


def captured(function: types.FunctionType) -> list[tuple[dict[str, Any], str, Any]] | None:
    """Return the globals that a function and the functions it calls depend on: their dict, name and value.

    Arguments:
        function: the function.

    Returns:
        The list, or None if the function depends on something that can change without being rebound, such as an array.
    """
    found: list[tuple[dict[str, Any], str, Any]] = []
    functions, seen = [function], set()
    while functions:
        each = functions.pop()
        if each in seen:
            continue
        seen.add(each)
        names = mentioned_names(each.__code__)
        if each.__closure__ or not UNSTEADY.isdisjoint(names) or looks_up_by_name(each.__code__):
            return None
        for name in names:
            value = each.__globals__.get(name, MISSING)
            found.append((each.__globals__, name, value))
            if type(value) is types.FunctionType:
                functions.append(value)
            elif type(getattr(value, "__wrapped__", None)) is types.FunctionType:
                functions.append(value.__wrapped__)
            elif not _is_fixed(value):
                return None
    return found


def _is_fixed(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return is_replaced_module(value.__name__)
    return value is MISSING or isinstance(value, FIXED)
