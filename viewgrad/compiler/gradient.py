"""Gradients that are compiled, as by `compile(grad(f))`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from ..func.program_methods import share_program_methods
from ..func.transforms import value_and_grad
from ..operators.numpy_api.conversion import carries_history
from ..tensor.creation import as_operand
from .cache import Specialization
from .calls.arguments import is_found_by_name

Function = Callable[..., Any]


class ExplainedFunction(Protocol):
    """A compiled function."""

    @property
    def specializations(self) -> list[Specialization]:
        """The specializations, one for each combination of argument types."""

    def explain(self) -> str:
        """Describe what was compiled."""

    def source(self) -> str:
        """Return the source of the programs."""


class CompiledGradient:
    """The gradient of a function, computed by the program of the function; see `compile`.

    Arguments:
        original: the gradient as returned by `func.grad` or `func.value_and_grad`.
        function: the compiled function.
        gradient: the gradient of the compiled function.
    """

    def __init__(self, original: Function, function: ExplainedFunction, gradient: Function) -> None:
        functools.update_wrapper(self, original, updated=())
        self.original = original
        self.function = function
        self.gradient = gradient
        share_program_methods(gradient, self)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.gradient(*args, **keywords)

    def value_and_grad(self, point: Any, *others: Any, **keywords: Any) -> tuple[Any, Any]:
        """Return the value and its gradient with respect to the first argument; see `Compiled.value_and_grad`."""
        return value_and_grad_at(self, point, *others, **keywords)

    @property
    def specializations(self) -> list[Specialization]:
        """The specializations of the function, one for each combination of argument types."""
        return self.function.specializations

    def explain(self) -> str:
        """Describe what was compiled of the function."""
        return self.function.explain()

    def source(self) -> str:
        """Return the source of the programs of the function, forward and backward."""
        return self.function.source()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        if is_found_by_name(self.original, self):
            return self.original.__qualname__
        return CompiledGradient, (self.original, self.function, self.gradient)

    def __repr__(self) -> str:
        return f"<gradient of {self.function!r}>"


def value_and_grad_at(f: Function, point: Any, *others: Any, **keywords: Any) -> tuple[Any, Any]:
    """Return the value and the gradient at a point as a float and an array, or as tensors if they have a history."""
    found = value_and_grad(f)(as_operand(point) * 1.0, *others, **keywords)
    return found if carries_history(found) else (found[0].item(), found[1].numpy())
