"""The modes that control recording, per thread and per asynchronous task.

All modes are stored in one integer, read once per operator. Its lowest bit is grad mode. Every other bit is a feature
that is off by default. A plain operator tests `mode > GRAD`, which is the only cost of all features together.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast, overload

GRAD: Final = 1  # operators record history; never together with INFERENCE
INFERENCE: Final = 2  # operators create tensors that can never be recorded
FORWARD: Final = 4  # a dual level is open: operators propagate tangents
PACK: Final = 8  # saved values pass through user hooks
ANOMALY: Final = 16  # nodes record where they were created
STRICT: Final = 32  # a write to a saved window raises
REPLAY: Final = 64  # views are recreated by replaying their view functions
TRACE: Final = 128  # operators are passed to a tracer instead of being run
CHECK_NAN: Final = 256  # with ANOMALY: NaN in a gradient is an error
FUNCTIONAL: Final = 512  # writes replace the value instead of changing memory
PLAIN: Final = 1024  # backward passes use the plain engine
PROFILE: Final = 2048  # calls are counted and timed
NOTING: Final = ANOMALY | PROFILE  # nodes record where they were created
OTHER_ENGINE: Final = ANOMALY | PLAIN | PROFILE  # backward passes do not use the default engine

MODE: Final[ContextVar[int]] = ContextVar("viewgrad_mode", default=GRAD)
current_mode: Final = MODE.get

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Return whether operators record history."""
    return bool(current_mode() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Return whether inference mode is enabled."""
    return bool(current_mode() & INFERENCE)


class ModeSwitch:
    """Set and clear bits of the mode; usable as a context manager or as a decorator.

    It applies to the thread, and to the asynchronous task, that entered it. As a decorator of a generator (or of an
    asynchronous one) it applies while the generator's own code runs, but not while the generator is suspended.

    Arguments:
        on: the bits to be set.
        off: the bits to be cleared.
    """

    def __init__(self, on: int = 0, off: int = 0) -> None:
        self.on = on
        self.off = off

    def __enter__(self) -> Self:
        mode = MODE.get()
        entered = ENTERED.get()
        try:
            ENTERED.set((self, mode, entered))
            MODE.set(switched(mode, self.on, self.off))
            return self
        except BaseException:  # interrupted by a signal: the block is not entered, so it will not be left
            MODE.set(mode)
            ENTERED.set(entered)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._leave()
        except BaseException:  # interrupted by a signal: repeating it is harmless
            self._leave()
            raise

    def _leave(self) -> None:
        entered = ENTERED.get()
        rest, entry = without(entered, self)
        if entry is not None:
            ours = self.on | self.off
            if rest is not entry[2]:
                rest, ours = inherited(entered, entry, ours)
            self._restore(entry[1], ours)
        ENTERED.set(rest)

    def _restore(self, before: int, ours: int) -> None:
        # Restore only these bits: a block in a suspended generator may end after one entered later.
        MODE.set(switched(MODE.get() & ~ours | before & ours, 0, 0))

    def __call__(self, function: F) -> F:
        # Each call enters a new switch, since calls may overlap in other threads or be nested.
        if inspect.isgeneratorfunction(function):
            return cast(F, self._wrap_generator(function))
        if inspect.isasyncgenfunction(function):
            return cast(F, self._wrap_async_generator(function))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with ModeSwitch(self.on, self.off):
                    return await function(*args, **kwargs)

            return cast(F, coroutine)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with ModeSwitch(self.on, self.off):
                return function(*args, **kwargs)

        return cast(F, wrapper)

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
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

    def _wrap_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = generator.__anext__
            try:
                while True:
                    try:
                        with ModeSwitch(self.on, self.off):
                            value = await resume()
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.athrow, error)
                    else:
                        resume = functools.partial(generator.asend, sent)
            finally:
                with ModeSwitch(self.on, self.off):
                    await generator.aclose()

        return wrapper

    def __repr__(self) -> str:
        modes = {name: bit for name, bit in globals().items() if name.isupper() and type(bit) is int}
        bits = {name: bit for name, bit in modes.items() if bit.bit_count() == 1}
        on = [name for name, bit in bits.items() if self.on & bit]
        off = [name for name, bit in bits.items() if self.off & bit]
        return f"{type(self).__name__}(on={'|'.join(on) or 0}, off={'|'.join(off) or 0})"


# The switches entered here and not yet left, each with the previous bits, innermost first. The stack is not stored in
# the switches, since one switch may be entered by several threads and tasks.
Stack = tuple[object, Any, "Stack | None"]
ENTERED: Final[ContextVar[Stack | None]] = ContextVar("viewgrad_entered", default=None)


def without(stack: Stack | None, owner: object) -> tuple[Stack | None, Stack | None]:
    """Return a stack without the innermost entry of `owner`, and that entry, or None if there is none."""
    if stack is None:
        return None, None
    if stack[0] is owner:
        return stack[2], stack
    rest, entry = without(stack[2], owner)
    return (stack, None) if entry is None else ((stack[0], stack[1], rest), entry)


def inherited(stack: Any, left: Stack, bits: int) -> tuple[Stack | None, int]:
    """Make switches that were entered later restore the bits of a switch that is left before them.

    A generator may enter a switch inside a block of its caller, and leave it after that block.

    Arguments:
        stack: the stack of entries.
        left: the entry of the switch being left.
        bits: the bits of that switch.

    Returns:
        The stack without that entry, and the bits that no later switch sets.
    """
    later: list[Stack] = []
    while stack is not left:
        later.append(stack)
        stack = stack[2]
    rest = left[2]
    for owner, before, _ in reversed(later):
        passed = bits & (owner.on | owner.off)  # type: ignore[attr-defined]
        rest = (owner, before & ~passed | left[1] & passed, rest)
        bits &= ~passed
    return rest, bits


class SwitchAtOnce(ModeSwitch):
    """A switch that takes effect when it is created, and is undone at the end of a block if used for one."""

    def __init__(self, on: int = 0, off: int = 0) -> None:
        super().__init__(on, off)
        mode = MODE.get()
        self._made_at: int | None = mode
        MODE.set(switched(mode, on, off))

    def __enter__(self) -> Self:
        if self._made_at is None:
            return super().__enter__()
        ENTERED.set((self, self._made_at, ENTERED.get()))
        self._made_at = None
        return self

    def __call__(self, function: F) -> F:
        if self._made_at is not None:  # as a decorator, it must not change the current mode
            self._restore(self._made_at, self.on | self.off)
            self._made_at = None
        return super().__call__(function)


def switched(mode: int, on: int, off: int) -> int:
    """Return `mode` with bits set and cleared; inference mode keeps grad mode off."""
    mode = (mode | on) & ~off
    return mode & ~GRAD if mode & INFERENCE else mode


@overload
def no_grad(function: F) -> F: ...
@overload
def no_grad(function: None = None) -> ModeSwitch: ...
def no_grad(function: Any = None) -> Any:
    """Do not record history inside the block.

    Use it as `with no_grad():`, `@no_grad()` or `@no_grad`.

    Arguments:
        function: if used as a bare decorator, the function to decorate.

    Returns:
        A context manager that is also a decorator; or the decorated function.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.ones(2, requires_grad=True)
        >>> with vg.no_grad():
        ...     (x * 2).requires_grad
        False
    """
    switch = ModeSwitch(off=GRAD)
    return switch if function is None else switch(function)


@overload
def enable_grad(function: F) -> F: ...
@overload
def enable_grad(function: None = None) -> ModeSwitch: ...
def enable_grad(function: Any = None) -> Any:
    """Record history inside the block, even within `no_grad`.

    Use it as `with enable_grad():`, `@enable_grad()` or `@enable_grad`. It has no effect inside `inference_mode`.

    Arguments:
        function: if used as a bare decorator, the function to decorate.

    Returns:
        A context manager that is also a decorator; or the decorated function.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.ones(2, requires_grad=True)
        >>> with vg.no_grad(), vg.enable_grad():
        ...     (x * 2).requires_grad
        True
    """
    switch = ModeSwitch(on=GRAD)
    return switch if function is None else switch(function)


class set_grad_enabled(SwitchAtOnce):
    """Enable or disable grad mode; as a context manager, restore the previous setting on exit.

    Arguments:
        enabled: whether operators record history.

    Example:
        >>> import viewgrad as vg
        >>> with vg.set_grad_enabled(False):
        ...     vg.is_grad_enabled()
        False
        >>> vg.is_grad_enabled()
        True
    """

    def __init__(self, enabled: bool) -> None:
        super().__init__(on=GRAD if enabled else 0, off=0 if enabled else GRAD)


@overload
def inference_mode(enabled: F) -> F: ...
@overload
def inference_mode(enabled: bool = True) -> ModeSwitch: ...
def inference_mode(enabled: Any = True) -> Any:
    """Record nothing inside the block, and create tensors that can never be recorded.

    Tensors created inside can be written to only inside, and cannot be saved for backward; a `clone()` made outside
    can. Other tensors may be written to as usual, but views of them taken inside cannot be written to in grad mode.

    Arguments:
        enabled: False suspends an enclosing inference mode; if used as a bare decorator, the function to decorate.

    Returns:
        A context manager that is also a decorator; or the decorated function.

    Example:
        >>> import viewgrad as vg
        >>> with vg.inference_mode():
        ...     x = vg.ones(2) * 3
        >>> x.is_inference(), x.requires_grad
        (True, False)
    """
    if callable(enabled):
        return ModeSwitch(on=INFERENCE, off=GRAD)(enabled)
    return ModeSwitch(*((INFERENCE, GRAD) if enabled else (GRAD, INFERENCE)))
