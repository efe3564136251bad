"""Threads started by adopted code inside a transform, which inherit the modes of the transform.

A new thread has the default modes. In forward mode it would silently compute without tangents, and `item()` would
detach. A trace cannot record what threads compute, so it ends when one is started, and the function runs eagerly.
"""

from __future__ import annotations

import concurrent
import concurrent.futures
import concurrent.futures.thread
import functools
import threading
import types
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final

from ..tensor.escapes import OUTSIDE, transform_kind
from ..tensor.modes import FORWARD, TRACE, current_mode
from ..tensor.trace_hooks import OBSERVER


class _Counterpart(type):
    """The metaclass of counterparts: instances of the original class count as instances of the counterpart."""

    original: type

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.original) if "original" in vars(cls) else super().__instancecheck__(value)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.original) if "original" in vars(cls) else super().__subclasscheck__(other)


def _in_these_modes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it runs in the modes of the current transform; outside transforms, return it unchanged.
    """
    mode = current_mode()
    if mode & TRACE:
        OBSERVER.get().refuse("starting a thread")
    if not mode & (FORWARD | TRACE) and transform_kind() == OUTSIDE:
        return function
    return functools.partial(copy_context().run, function)


class Thread(threading.Thread, metaclass=_Counterpart):
    """A thread that runs in the modes of the code that starts it."""

    original: Any = threading.Thread

    def start(self) -> None:
        """Start the thread."""
        run = self.run
        found = _in_these_modes(run)
        if found is not run:
            self.run = found  # type: ignore[method-assign]
        super().start()


class Timer(threading.Timer, Thread):
    """A timer whose function runs in the modes of the code that starts the timer."""

    original: Any = threading.Timer


class ThreadPoolExecutor(concurrent.futures.ThreadPoolExecutor, metaclass=_Counterpart):
    """An executor whose calls run in the modes in which they were submitted."""

    original: Any = concurrent.futures.ThreadPoolExecutor

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Submit a call."""
        return super().submit(_in_these_modes(fn), *args, **kwargs)


POOLS: Final = {"ThreadPoolExecutor": ThreadPoolExecutor}
REPLACED: Final[dict[str, tuple[types.ModuleType, dict[str, Any]]]] = {
    "threading": (threading, {"Thread": Thread, "Timer": Timer}),
    "concurrent.futures.thread": (concurrent.futures.thread, POOLS),
    "concurrent.futures": (concurrent.futures, POOLS),
    "concurrent": (concurrent, {}),
}


def replaced_module(name: str) -> types.ModuleType:
    """Return a module like `threading` with these classes.

    Arguments:
        name: a key of REPLACED.
    """
    original, classes = REPLACED[name]
    made = types.ModuleType(name, original.__doc__)
    vars(made).update({**vars(original), **classes})
    if name == "concurrent":
        vars(made)["futures"] = replaced_module("concurrent.futures")
    return made
