"""Code objects: which global names they mention and assign."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Final

__all__ = ["assigned_names", "looks_up_by_name", "mentioned_names"]

ASSIGNING: Final = frozenset({dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]})
BY_NAME: Final = frozenset({"globals", "eval", "exec", "vars"})  # functions that reach globals code does not mention


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def mentioned_names(code: types.CodeType) -> set[str]:
    """The names that a function and those nested in it may look up among the globals; attributes are among them."""
    return {name for each in _codes(code) for name in each.co_names}


def assigned_names(code: types.CodeType) -> set[str]:
    """The globals that a function and those nested in it assign or delete."""
    return {
        instruction.argval
        for each in _codes(code)
        if not ASSIGNING.isdisjoint(each.co_code[::2])
        for instruction in dis.get_instructions(each)
        if instruction.opcode in ASSIGNING
    }


def looks_up_by_name(code: types.CodeType) -> bool:
    """Return whether a function may reach any global of its module, as by `eval`."""
    return not BY_NAME.isdisjoint(mentioned_names(code))
