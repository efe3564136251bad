"""`numpy.testing` for tensors: assertions compare values and ignore history."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.testing

from ..operators.numpy_api.conversion import plain_values
from .namespace import public_names

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.testing)


def on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function without a derivative so that it is applied to the values of tensors."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(plain_values, args), **plain_values(kwargs))

    return call


for _name in __all__:
    _value = getattr(np.testing, _name)
    globals()[_name] = on_values(_value) if _name.startswith("assert_") and not isinstance(_value, type) else _value
