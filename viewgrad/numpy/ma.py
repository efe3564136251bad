"""`numpy.ma`: masked arrays, which no tensor can be; tensors that have a history are refused.

A tensor has no mask, and is its own values: functions that ask for these alone take any tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.ma

from ..tensor.tensor import Tensor
from .convert import plain_values
from .namespace import public_names
from .unsupported import refusing

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.ma)
WAY_OUT = "masked arrays have no derivative here; use np.where(mask, ..., x), x[mask], or the nan functions"
OF_MASKS = ("count_masked", "getmask", "getmaskarray", "isMA", "isMaskedArray", "is_masked", "isarray")
OF_VALUES = ("filled", "getdata")


def _with_mask(name: str) -> Callable[..., Any]:
    function = getattr(np.ma, name)

    @functools.wraps(function, updated=(), assigned=("__doc__", "__name__", "__module__"))
    def call(*args: Any, **kwargs: Any) -> Any:
        if not args or not isinstance(args[0], Tensor):
            return refused[name](*args, **kwargs)
        return args[0] if name in OF_VALUES else function(plain_values(args[0].detach()), *args[1:], **kwargs)

    return call


refused: dict[str, Any] = {name: refusing(getattr(np.ma, name), f"numpy.ma.{name}", WAY_OUT) for name in __all__}
globals().update(refused | {name: _with_mask(name) for name in (*OF_MASKS, *OF_VALUES)})
