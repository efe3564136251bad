"""How functions of SciPy are made anew for tensors: SciPy's own runs where no history could be lost."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from ..numpy.functions import lost
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand
from ..tensor.observers import composed

__all__ = ["floating", "maker", "numbers", "of_plain"]

# What changes nothing but how fast SciPy is, and what it writes over.
IDLE: Final = frozenset({"check_finite", "overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_ab_b"})


def numbers(value: Any) -> Any:
    """An argument as a tensor; tensors in nested lists are joined."""
    return as_operand(as_argument(value))


def floating(value: Any) -> Any:
    """An argument as a tensor of floating-point or complex numbers."""
    tensor = numbers(value)
    return tensor if tensor.dtype.kind in "fc" else tensor.astype(float)


def of_plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function of SciPy gives for the values of tensors, as tensors."""
    return as_tensors(function(*plain_values(args), **plain_values(kwargs)))


def maker(module: ModuleType, made: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for the counterparts of a module's functions, which are written for tensors with a history.

    Arguments:
        module: SciPy's.
        made: where the counterparts are put, by name.
    """

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        scipys = getattr(module, name)
        known = inspect.signature(function).parameters
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())

        def call(*args: Any, **kwargs: Any) -> Any:
            if not carries_history(args) and not carries_history(kwargs):
                return of_plain(scipys, *args, **kwargs)
            given = {key: value for key, value in kwargs.items() if key not in IDLE}
            unknown = [] if takes_all else sorted(given.keys() - known.keys())
            if unknown:
                options = ", ".join(unknown)
                raise lost(f"{module.__name__}.{name}", f"of tensors with a history it takes no {options}")
            return composed(name, function, args, given)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = function.__doc__
        made[name] = call
        return call

    return make
