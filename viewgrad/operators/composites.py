"""Functions made of operators: each is differentiable because its parts are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ..tensor.tensor import Tensor
from .numpy_dispatch import register

__all__ = ["COMPOSITES", "composite"]

F = TypeVar("F", bound=Callable[..., Any])

COMPOSITES: Final[dict[str, Callable[..., Any]]] = {}


def composite(*numpy: Any, method: bool = True) -> Callable[[F], F]:
    """Make a function public, a method of `Tensor`, and what some NumPy functions mean on tensors."""

    def register_composite(function: F) -> F:
        COMPOSITES[function.__name__] = function
        if method:
            setattr(Tensor, function.__name__, function)
        for each in numpy:
            register(each, function)
        return function

    return register_composite
