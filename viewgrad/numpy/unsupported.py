"""Parts of NumPy that work on arrays only: they accept tensors without history and raise for others."""

from __future__ import annotations

import functools
import types
from typing import Any

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import carries_history, plain_values


def refusing(function: Any, name: str, way_out: str) -> Any:
    """Wrap a NumPy function so that it accepts tensors without history; its result is NumPy's.

    Raises:
        UnsupportedFunctionError: when called with a tensor that has a history.
    """
    if not callable(function) or isinstance(function, type | types.ModuleType):
        return function

    @functools.wraps(function, updated=(), assigned=("__doc__",))
    def call(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(name, way_out)
        return function(*map(plain_values, args), **plain_values(kwargs))

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    return call
