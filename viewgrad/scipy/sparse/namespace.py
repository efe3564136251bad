"""The names of SciPy's sparse modules: functions of arrays of tensors, and SciPy's own functions for the rest."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import scipy.sparse  # type: ignore[import-untyped]

from ...numpy.namespace import public_names
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history
from ...tensor.trace_hooks import composed
from .arrays import SparseArray, as_sparse, to_scipy
from .operators import LinearOperator


def namespace(module: types.ModuleType, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public names of a module, with the counterparts and with adapters of the other functions."""
    values = {}
    for name in public_names(module):
        value = getattr(module, name)
        if name in made:
            value = made[name]
        elif callable(value) and not isinstance(value, (type, types.ModuleType)):
            value = _adapted(value, f"{module.__name__}.{name}")
        values[name] = value
    return values


def _adapted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a SciPy function for arrays without history."""

    def on_values(*args: Any, **kwargs: Any) -> Any:
        if any(map(_has_history, (*args, *kwargs.values()))):
            raise lost(name)
        found = function(*map(to_scipy, args), **{key: to_scipy(value) for key, value in kwargs.items()})
        return as_sparse(found) if scipy.sparse.issparse(found) and found.ndim == 2 else as_tensors(found)

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return composed(name, on_values, args, kwargs)

    return call


def _has_history(value: Any) -> bool:
    if isinstance(value, SparseArray):
        return carries_history(value.data)
    if isinstance(value, LinearOperator):
        return value.carries_history()
    if isinstance(value, (list, tuple)):
        return any(map(_has_history, value))
    return carries_history(value)
