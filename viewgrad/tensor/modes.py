"""The modes that say what is recorded: per thread and per asynchronous task.

All modes live in one integer, read once per operator. Its lowest bit is grad mode, and every other bit is
a feature that is off unless asked for: a plain operator tests `mode > GRAD`, and pays nothing more for
all the features together.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, TypeVar, cast

__all__ = [
    "ModeSwitch",
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

GRAD: Final = 1  # operators record history
INFERENCE: Final = 2  # operators make tensors that can never be recorded
FORWARD: Final = 4  # a dual level is open: operators propagate tangents
PACK: Final = 8  # saved values pass through user hooks
ANOMALY: Final = 16  # nodes remember where they were made
STRICT: Final = 32  # a write to a saved window raises
REPLAY: Final = 64  # views are taken again by replaying their view functions
TRACE: Final = 128  # operators are handed to a tracer instead of being run

MODE: Final[ContextVar[int]] = ContextVar("viewgrad_mode", default=GRAD)
current_mode: Final = MODE.get

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Whether operators record history here and now."""
    return bool(current_mode() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on here and now."""
    return bool(current_mode() & INFERENCE)


class ModeSwitch:
    """Sets and clears bits of the mode, as a context manager or as a decorator.

    As a decorator of a generator function it is in force while the generator's own code runs, and
    not while the generator is suspended.
    """

    def __init__(self, on: int = 0, off: int = 0) -> None:
        self.on = on
        self.off = off
        self._tokens: list[Token[int]] = []

    def __enter__(self) -> ModeSwitch:
        self._tokens.append(MODE.set((MODE.get() | self.on) & ~self.off))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        MODE.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return cast(F, self._around_generator(function))
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{type(self).__name__} cannot decorate the coroutine function {function.__name__!r}: "
                            f"use 'with {type(self).__name__}():' inside it")

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with ModeSwitch(self.on, self.off):
                return function(*args, **kwargs)

        return cast(F, wrapper)

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            try:
                while True:
                    try:
                        with ModeSwitch(self.on, self.off):
                            value = resume()
                    except StopIteration as stop:
                        return stop.value
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.throw, error)
                    else:
                        resume = functools.partial(generator.send, sent)
            finally:
                with ModeSwitch(self.on, self.off):
                    generator.close()

        return wrapper


class no_grad(ModeSwitch):
    """Record no history: `with no_grad():` or `@no_grad()`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.ones(2, requires_grad=True)
        >>> with vg.no_grad():
        ...     (x * 2).requires_grad
        False
    """

    def __new__(cls, function: Any = None) -> Any:
        """Also serve as a bare decorator: `@no_grad`."""
        switch = super().__new__(cls)
        if function is None:
            return switch
        switch.__init__()
        return switch(function)

    def __init__(self, function: None = None) -> None:
        super().__init__(off=GRAD)


class enable_grad(ModeSwitch):
    """Record history, also inside `no_grad`: `with enable_grad():` or `@enable_grad()`."""

    def __init__(self) -> None:
        super().__init__(on=GRAD)


class set_grad_enabled(ModeSwitch):
    """Set grad mode at once, and restore it where used as a context manager.

    Arguments:
        enabled: whether operators record history from here on.
    """

    def __init__(self, enabled: bool) -> None:
        super().__init__(on=GRAD if enabled else 0, off=0 if enabled else GRAD)
        self._tokens.append(MODE.set((MODE.get() | self.on) & ~self.off))
        self._entered = False

    def __enter__(self) -> set_grad_enabled:
        if self._entered:
            super().__enter__()
        self._entered = True
        return self

    def __call__(self, function: F) -> F:
        MODE.reset(self._tokens.pop())
        return super().__call__(function)


class inference_mode(ModeSwitch):
    """Record nothing, and make tensors that autograd can never record.

    Arguments:
        enabled: False leaves an enclosing inference mode for the block.
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__(*((INFERENCE, GRAD) if enabled else (GRAD, INFERENCE)))
