"""`numpy.ma`: NumPy's own masked arrays, and `MaskedTensor` for tensors with a history.

A tensor has no mask, so functions of the values alone accept any tensor. Functions that masked tensors do not support
raise for tensors with a history.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.ma

from ..operators.numpy_api.conversion import carries_history, exported
from ..operators.numpy_api.methods import writable_array
from ..tensor.tensor import Tensor
from .masked import FUNCTIONS, MaskedTensor
from .masked_arrays import MaskedArray, with_operators
from .masked_elements import without_history
from .namespace import public_names
from .unsupported import refusing

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = public_names(np.ma)
WAY_OUT = "masked arrays have no derivative here; use np.where(mask, ..., x), x[mask], or the nan functions"
OF_MASKS = ("count_masked", "getmask", "getmaskarray", "isMA", "isMaskedArray", "is_masked", "isarray")
OF_VALUES = ("filled", "getdata")
CLASSES = ("MaskedArray", "masked_array")  # two names of one class
SHARING = ("array", "asarray", "asanyarray")  # results share the memory of an argument


def _with_mask(name: str) -> Callable[..., Any]:
    function = getattr(np.ma, name)

    @functools.wraps(function, updated=(), assigned=("__doc__", "__name__", "__module__"))
    def call(*args: Any, **kwargs: Any) -> Any:
        if name in OF_MASKS:
            return function(*map(without_history, args), **kwargs)
        return args[0] if args and isinstance(args[0], Tensor) else refused[name](*args, **kwargs)

    return call


def _keeping(function: Any, name: str) -> Any:
    """Wrap a function so that it rejects tensors with a history; masked arrays may share the memory of others."""
    refused = refusing(function, f"numpy.ma.{name}", WAY_OUT)
    if refused is function:
        return function

    convert = functools.partial(writable_array, what=f"numpy.ma.{name}") if name in SHARING else exported

    @functools.wraps(refused, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if not (carries_history(args) or carries_history(kwargs)):
            args, kwargs = tuple(map(convert, args)), {key: convert(value) for key, value in kwargs.items()}
        return with_operators(refused(*args, **kwargs))

    return call


refused: dict[str, Any] = {name: _keeping(getattr(np.ma, name), name) for name in __all__ if name not in CLASSES}
globals().update(refused | {name: _with_mask(name) for name in (*OF_MASKS, *OF_VALUES)})
masked_array = MaskedArray


def _of_tensors(name: str) -> Callable[..., Any]:
    plain, masked, asks = globals()[name], FUNCTIONS[name], name in (*OF_MASKS, *OF_VALUES)

    @functools.wraps(plain, updated=(), assigned=("__doc__", "__module__"))
    def call(*args: Any, **kwargs: Any) -> Any:
        is_tensors = isinstance(args[0], MaskedTensor) if args and asks else _is_masked_tensor((args, kwargs))
        return (masked if is_tensors else plain)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def _is_masked_tensor(value: Any) -> bool:
    """Return whether an object is, or would have to become, a masked tensor."""
    if isinstance(value, (list, tuple)):
        return builtins.any(map(_is_masked_tensor, value))
    if isinstance(value, dict):
        return builtins.any(map(_is_masked_tensor, value.values()))
    return isinstance(value, MaskedTensor) or carries_history(value)


globals().update({name: _of_tensors(name) for name in FUNCTIONS if name in __all__})
