"""Functions composed of operators, which are differentiable because their parts are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ..tensor.tensor import Tensor
from ..tensor.trace_hooks import composed
from .numpy_api.dispatch import declare

F = TypeVar("F", bound=Callable[..., Any])

COMPOSITES: Final[dict[str, Callable[..., Any]]] = {}


def composite(*numpy: Any, method: bool = True) -> Callable[[F], F]:
    """Register a function as a public name, as a method of `Tensor`, and as the adapter of NumPy functions."""

    def register_composite(function: F) -> F:
        COMPOSITES[function.__name__] = function
        if method:
            setattr(Tensor, function.__name__, function)
        for each in numpy:
            declare(each, function)
        return function

    return register_composite


def choosing(function: F) -> F:
    """Decorate a function that inspects values: in a trace it is a single opaque step, which runs again each time.

    The function must not write to its arguments, since the step would not record that.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return composed(function.__name__, function, args, kwargs)

    return call  # type: ignore[return-value]
