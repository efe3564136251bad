"""Interrupted programs: an exception is raised at every line, or at every bytecode, of the library."""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import viewgrad
from viewgrad.autograd.hook_runner import accumulating
from viewgrad.operators.language.spec import _making
from viewgrad.tensor.forward_levels import LEVEL
from viewgrad.tensor.modes import ENTERED, current_mode
from viewgrad.tensor.saved_windows import pruning

LOCKS: tuple[Any, ...] = (accumulating, pruning, _making)
PACKAGE = os.path.dirname(viewgrad.__file__) + os.sep


@functools.cache
def at_a_lock(file: str, line: int | None) -> bool:
    """Return whether a line acquires a lock for a block, and releases it after the block, or begins a `try` in it.

    Python handles signals after calls, never between the body of a `with` and the release of its lock, nor at a `try`.
    A tracing function could raise there, outside the block, and the lock would never be released.
    """
    text = linecache.getline(file, line or 0).strip()
    return text == "try:" or re.search(r"^with .*lock[:,]", text, re.IGNORECASE) is not None


class Interrupter:
    """A tracing function that raises KeyboardInterrupt at one of the places that it passes in the library's code.

    Arguments:
        place: the number of that place; None only counts them.
        bytecodes: whether places are bytecodes instead of lines.
    """

    def __init__(self, place: int | None, bytecodes: bool) -> None:
        self.place = place
        self.bytecodes = bytecodes
        self.passed = 0
        self.where = ""

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith((PACKAGE, "<viewgrad ")):
            return None
        if event == "call":
            if frame.f_back is not None and frame.f_back.f_code.co_filename == weakref.__file__:
                return None  # a finalizer, in which Python ignores exceptions
            frame.f_trace_opcodes = self.bytecodes
            return self
        if frame.f_lineno is None:
            return self  # a generator that is being freed, in which Python ignores exceptions too
        is_place = event == ("opcode" if self.bytecodes else "line")
        if is_place and not at_a_lock(frame.f_code.co_filename, frame.f_lineno):
            if self.passed == self.place:
                self.place = None
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
                raise KeyboardInterrupt
            self.passed += 1
        return self

    def run(self, function: Callable[[], Any]) -> bool:
        """Call `function`, and say whether it was interrupted."""
        sys._getframe().f_trace_opcodes = self.bytecodes  # some versions of Python 3.12 read it in `settrace` only
        sys.settrace(self)
        try:
            function()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
            # Locks with distinct names, as in `at_a_lock`.
            for lock in LOCKS:
                while lock._is_owned():
                    lock.release()
        return False


def interruptions(
    prepare: Callable[[], Any], act: Callable[[Any], Any], bytecodes: bool = False, stride: int = 1
) -> Iterator[Any]:
    """Yield each place where `act` was interrupted, with the result of `prepare` after the interruption.

    Arguments:
        prepare: makes a state.
        act: does something to it.
        bytecodes: whether places are bytecodes instead of lines.
        stride: the distance between places that are tried.

    Raises:
        AssertionError: if an interruption leaves a mode behind.
    """
    counting = Interrupter(None, bytecodes)
    state = prepare()
    counting.run(lambda: act(state))
    assert counting.passed
    before = modes()
    for place in range(0, counting.passed, stride):
        state = prepare()
        interrupter = Interrupter(place, bytecodes)
        interrupted = interrupter.run(lambda: act(state))  # noqa: B023
        assert modes() == before, f"interrupted at {interrupter.where}, a mode is left: {modes()}"
        if interrupted:
            yield state, interrupter.where


def modes() -> tuple[Any, ...]:
    """Return the state that an interruption must not change."""
    return current_mode(), ENTERED.get(), LEVEL.get()
