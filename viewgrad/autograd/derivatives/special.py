"""What an operator does while a feature is on that is off by default; see `tensor/modes.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tensor.modes import GRAD, INFERENCE, MODE
from ...tensor.storage import storage_of

if TYPE_CHECKING:
    from .declaration import Operator

__all__ = ["run_special", "run_special_inplace"]


def run_special(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], mode: int) -> Any:
    """Run an operator plainly, and then do to its result what the mode asks for."""
    token = MODE.set(mode & GRAD)
    try:
        result = operator.function(*args, **kwargs)
    finally:
        MODE.reset(token)
    outputs = result if isinstance(result, tuple) else (result,)
    if mode & INFERENCE:
        for output in outputs:
            storage_of(output).inference = True
    return result


def run_special_inplace(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], mode: int) -> Any:
    """The same for the in-place variant."""
    token = MODE.set(mode & GRAD)
    try:
        return operator.inplace_function(*args, **kwargs)
    finally:
        MODE.reset(token)
