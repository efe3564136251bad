"""Records that travel: what a pickle of a compiled function carries of them, so that they need not be made anew.

A record holds what the function saw when it was recorded. So another process uses it only where the function, and all
that it sees there, can be told to be the same. The program is built anew, and compared with the function in its first
call, as any program is.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from ...tensor.tensor import Tensor
from ...trace.graph import Graph
from ..guards.closure_guard import ClosureGuard
from ..guards.closure_walk import SIMPLE

if TYPE_CHECKING:
    from ..api import Specialization

__all__ = ["PickledTrace", "packed", "unpacked"]

PACKAGE: Final = __name__.partition(".")[0]


@attrs.frozen(eq=False)
class PickledTrace:
    """A record on its way.

    Arguments:
        key: the kind of arguments that it is for.
        graph: the record, pickled.
        told: what the function is, and what it saw.
    """

    key: Any
    graph: bytes
    told: tuple[Any, ...]


def packed(function: Callable[..., Any], entry: Specialization, arguments: Sequence[Any]) -> PickledTrace | None:
    """The record of an entry for a pickle; None where it cannot travel.

    Arguments:
        function: what was recorded.
        entry: what is known of it for arguments of one kind.
        arguments: what is neither a tensor nor an array nor a number among these.
    """
    surroundings = entry.surroundings
    if entry.graph is None or entry.refusal is not None or entry.closures or surroundings is None or arguments:
        return None
    told = _told(function, surroundings)
    if told is None or not surroundings.unchanged():
        return None
    if entry.pickled is None:
        try:
            entry.pickled = pickle.dumps(entry.graph)
        except Exception:  # something in it has no pickle: whatever that raises
            return None
    return PickledTrace(entry.key, entry.pickled, told)


def unpacked(traveller: PickledTrace, function: Callable[..., Any], entry: Specialization) -> bool:
    """Whether a record that has arrived is that of a function here; then the entry has it."""
    surroundings = ClosureGuard(function)
    if surroundings.too_many or _told(function, surroundings) != traveller.told:
        return False
    graph = pickle.loads(traveller.graph)
    assert isinstance(graph, Graph)
    entry.graph, entry.surroundings, entry.records, entry.pickled = graph, surroundings, 1, traveller.graph
    return True


def _told(function: Callable[..., Any], surroundings: ClosureGuard) -> tuple[Any, ...] | None:
    """What a function is and sees, so that it can be compared in another process; None where that cannot be told."""
    if not isinstance(function, types.FunctionType):
        return None
    told: list[Any] = [sys.modules[PACKAGE].__version__, _code(function.__code__)]
    for each in surroundings.seen:
        found = _thing(each.value)
        if found is None:
            return None
        told.append((each.path, found))
    return tuple(told)


def _thing(value: Any) -> Any:
    """What a thing is; None where that cannot be told."""
    kind = type(value).__qualname__
    if isinstance(value, SIMPLE):
        return kind, repr(value)
    if isinstance(value, Tensor):
        return kind
    if type(value) is np.ndarray:
        return None if value.dtype.hasobject else (value.shape, value.dtype.str, _digest(value.tobytes()))
    if type(value) in (list, dict, tuple):
        return kind, len(value)
    if isinstance(value, types.ModuleType):
        return kind, value.__name__
    if isinstance(value, types.CodeType):
        return kind, _code(value)
    if isinstance(value, (staticmethod, classmethod, property)):
        return kind
    if isinstance(value, types.FunctionType):
        return kind, value.__module__, value.__qualname__, _code(value.__code__)
    if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
        return kind, getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__)
    return None


def _code(code: types.CodeType) -> tuple[Any, ...]:
    """What a function does."""
    constants = [_code(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts]
    return _digest(code.co_code), code.co_names, code.co_varnames, code.co_freevars, tuple(constants)


def _digest(given: bytes) -> str:
    return hashlib.sha256(given).hexdigest()
