"""The methods by which the program of a compiled function, or of its gradient, takes part in transforms.

They are attributes of the object that is transformed. `functools.wraps` copies attributes of one function to another,
and objects may forward attributes that they lack to a function that they call. Both then compute something else than
that function, so a method counts only if it is bound to the object itself.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Final

Function = Callable[..., Any]
OF_GRADIENTS: Final = ("__viewgrad_jvp__", "__viewgrad_rows__", "__viewgrad_batched__")


def program_method(f: Function, name: str) -> Function | None:
    """Return a method of a compiled function or of its gradient, or None for other functions."""
    found = getattr(f, name, None)
    return found if getattr(found, "__self__", None) is f else None


def add_program_method(f: Function, name: str, method: Function) -> None:
    """Add a method to a function; its first argument is the function."""
    setattr(f, name, MethodType(method, f))


def share_program_methods(f: Function, wrapper: Function) -> None:
    """Add the methods of a gradient to a function that computes the same."""
    for name in OF_GRADIENTS:
        method = program_method(f, name)
        if isinstance(method, MethodType):
            add_program_method(wrapper, name, method.__func__)
