"""Pickling of compiled functions with their traces, so that they need not be traced again.

A trace depends on the state that the function captured. Another process uses it only if it can verify that the function
and all of its captured state are the same. The program is rebuilt there and verified in its first call as usual.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...operators.numpy_api.public import is_public
from ...tensor.tensor import Tensor
from ...trace.graph import Graph
from ..guards.captured import Attributes
from ..guards.closure_guard import ClosureGuard
from ..guards.closure_walk import DISPATCHERS, LIBRARY, SIMPLE, user_function
from ..guards.libraries import is_library_value
from .guarded_trace import GuardedTrace

PACKAGE: Final = __name__.partition(".")[0]


@attrs.frozen(eq=False)
class PickledTrace:
    """A trace in a pickle.

    Arguments:
        key: the key of its specialization.
        graph: the pickled trace.
        fingerprint: the fingerprint of the function and its captured state.
    """

    key: Any
    graph: bytes
    fingerprint: tuple[Any, ...]


def packed(
    function: Callable[..., Any], key: Any, trace: GuardedTrace, arguments: Sequence[Any]
) -> PickledTrace | None:
    """Return a trace for a pickle, or None if another process could not check whether it applies.

    Arguments:
        function: the function.
        key, trace: the key of a specialization, and its trace.
        arguments: the arguments that are neither tensors nor arrays nor numbers.
    """
    if trace.closures or arguments:
        return None
    fingerprint = _fingerprint(function, trace.guard)
    if fingerprint is None or not trace.guard.unchanged():
        return None
    graph = trace.pickled_graph()
    return None if graph is None else PickledTrace(key, graph, fingerprint)


def unpacked(pickled: PickledTrace, function: Callable[..., Any]) -> GuardedTrace | None:
    """Return the trace in a pickle, or None if the function or its captured state differs here."""
    guard = ClosureGuard(function)
    if guard.too_many or _fingerprint(function, guard) != pickled.fingerprint:
        return None
    graph = pickle.loads(pickled.graph)
    assert isinstance(graph, Graph)
    return GuardedTrace(graph, guard, pickled=pickled.graph)


def _fingerprint(function: Callable[..., Any], guard: ClosureGuard) -> tuple[Any, ...] | None:
    """Return a function and its captured state in a form comparable across processes, or None if there is none."""
    function = user_function(function)
    if not isinstance(function, types.FunctionType):
        return None
    found: list[Any] = [sys.modules[PACKAGE].__version__, _code(function.__code__)]
    for each in guard.captured:
        if each.path.startswith(LIBRARY) and (type(each.value) is Attributes or is_library_value(each.value)):
            continue  # the state of libraries, which depends on what has been imported
        value = _fingerprint_of(each.value)
        if value is None:
            return None
        found.append((each.path, value))
    return tuple(found)


def _fingerprint_of(value: Any) -> Any:
    """Return the fingerprint of a value, or None if it has none."""
    kind = type(value).__qualname__
    if is_public(value):  # its code is generated on its first call
        return "public", value.__name__
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
    if type(value) is Attributes:
        return kind
    if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc, *DISPATCHERS)):
        return kind, getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__)
    return None


def _code(code: types.CodeType) -> tuple[Any, ...]:
    """Return the fingerprint of code."""
    constants = [_code(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts]
    return _digest(code.co_code), code.co_names, code.co_varnames, code.co_freevars, tuple(constants)


def _digest(given: bytes) -> str:
    return hashlib.sha256(given).hexdigest()
