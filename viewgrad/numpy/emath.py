"""`numpy.emath` for tensors: functions that go over to complex numbers where real ones have no result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor.creation import as_operand, holds_tensor
from .convert import as_tensors, plain_values
from .namespace import public_names

__all__ = public_names(np.emath)


def _extended(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    numpy = getattr(np.emath, name)

    @functools.wraps(numpy, updated=())
    def extended(*args: Any) -> Any:
        if not holds_tensor(args):
            return as_tensors(numpy(*args))
        tensors = [as_operand(arg) for arg in args]
        dtype = np.asarray(numpy(*map(plain_values, tensors))).dtype
        return function(*(tensor.astype(np.result_type(tensor.dtype, dtype)) for tensor in tensors))

    return extended


def _logn(n: Any, x: Any) -> Any:
    return np.log(x) / np.log(n)


globals().update({name: _extended(name, _logn if name == "logn" else getattr(np, name)) for name in __all__})
