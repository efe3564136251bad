"""Events that tracers and profiles subscribe to, in addition to intercepted calls; see `trace/trace.py`.

If the mode has the bit TRACE, there is an observer. It is notified of everything that interceptors of operators, reads
and writes do not cover: tensors created from numbers and arrays, tensors that share memory, and values that escape.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from ..type_aliases import Array
from .modes import TRACE, current_mode

if TYPE_CHECKING:
    from .tensor import Tensor


class Observer(Protocol):
    """The interface of a subscriber.

    Attributes:
        keeps_indices: whether integers used as indices are kept as arrays, so that they are inputs of the trace.
        guards_values: whether a value that control flow depends on becomes a guard of the trace.
    """

    keeps_indices: bool
    guards_values: bool

    def created(self, tensor: Tensor, data: Tensor | None = None, garbage: bool = False) -> None:
        """Handle a tensor made from numbers or arrays, or from the tensor `data`, without its history.

        Arguments:
            tensor: the tensor.
            data: its source, if that is a tensor.
            garbage: whether its elements are uninitialized.
        """

    def number(self, tensor: Tensor) -> None:
        """Handle a tensor created from a number or another constant of the library."""

    def detached(self, tensor: Tensor, other: Tensor) -> None:
        """Handle `other`, which shares the memory of `tensor` but has a different history."""

    def moved(self, tensor: Tensor, before: Tensor) -> None:
        """Handle a tensor whose elements were moved to another array; `before` is the old one."""

    def escaped(self, tensor: Tensor, how: str, value: Any) -> None:
        """Handle elements of `tensor` that left the library as `value` through `how`."""

    def indexed(self, tensor: Tensor, array: Array) -> None:
        """Handle an index that uses `array`, a copy of the elements of `tensor`."""

    def copied(self, index: Array, array: Array) -> None:
        """Handle `array`, which replaces `index`, a copy of elements of a tensor, in an index."""

    def index_raised(self, items: tuple[Any, ...], error: Exception) -> None:
        """Handle an `error` raised by advanced indexing with arrays, which may contain elements of tensors."""

    def array_option(self, option: Any) -> None:
        """Handle an option of an operator that is or contains an array, which is constant in a graph."""

    def queried(self, tensor: Tensor, what: str) -> None:
        """Handle a query of `tensor` for something other than its elements, such as its text or its gradient."""

    def varies(self, tensor: Tensor) -> bool:
        """Return whether the elements of `tensor` may differ in another run, so that they must not be inspected."""

    def reshaped(self, tensor: Tensor) -> None:
        """Handle an in-place change of the shape of `tensor`, before it happens."""

    def preserved(self, window: Array, copy: Array) -> None:
        """Handle a copy of a window that is about to be written to, or that other code may write to unnoticed."""

    def history_removed(self, tensor: Tensor) -> None:
        """Handle the in-place removal of the history of `tensor`, before it happens."""

    def refuse(self, what: str) -> None:
        """Handle an operation that cannot be recorded."""

    def composed(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function that is composed of operators and may inspect the values of its arguments."""


OBSERVER: Final[ContextVar[Observer]] = ContextVar("viewgrad_observer")


class Profiler(Protocol):
    """The interface for counting and timing calls while the mode has the bit PROFILE; see `autograd/modes/profile.py`.
    """

    def copied(self, nbytes: int, writer: str) -> None:
        """Count bytes saved for backward that were copied because `writer` is about to overwrite them."""

    def step(self, name: str, line: tuple[str, int] | None, run: Callable[[], Any]) -> None:
        """Run a step of a backward pass that belongs to an operator and a line."""

    def alone(self, name: str, run: Callable[[], Any]) -> Any:
        """Run a function that counts as one call, and return its result."""


PROFILER: Final[ContextVar[Profiler]] = ContextVar("viewgrad_profiler")


def observed() -> Observer | None:
    """Return the current observer, or None."""
    return OBSERVER.get() if current_mode() & TRACE else None


def keeps_indices() -> bool:
    """Return whether single integers used as indices are kept as arrays."""
    observer = observed()
    return observer is not None and observer.keeps_indices


def guards_values() -> bool:
    """Return whether a value that control flow depends on becomes a guard of the current trace."""
    observer = observed()
    return observer is not None and observer.guards_values


def array_of(tensor: Tensor, how: str) -> Array:
    """Return the elements of a tensor for a use that is not recorded as an operator, and notify the observer."""
    array: Array = tensor._array
    observer = observed()
    if observer is not None:
        observer.escaped(tensor, how, array)
    return array


def array_of_index(tensor: Tensor) -> Array:
    """Return a copy of the elements of a tensor that is used as an index."""
    array: Array = np.array(tensor._array)
    observer = observed()
    if observer is not None:
        observer.indexed(tensor, array)
    return array


def copied_index(index: Array, array: Array) -> None:
    """Notify the observer that an array of an index was copied."""
    observer = observed()
    if observer is not None:
        observer.copied(index, array)


def index_raised(items: tuple[Any, ...], error: Exception) -> None:
    """Notify the observer that advanced indexing raised an exception."""
    observer = observed()
    if observer is not None:
        observer.index_raised(items, error)


def composed(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of tensors alone that is composed of operators.

    If it inspects values, to make a choice or to compute a starting point with SciPy, it is one opaque step of a trace,
    which is rerun.
    """
    observer = observed()
    return function(*args, **kwargs) if observer is None else observer.composed(name, function, args, kwargs)
