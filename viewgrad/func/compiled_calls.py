"""A record of calls of compiled functions, so that a rerun of their caller takes the same paths.

A call runs the Python function until a program is built. Without this record, a checkpointed function could run in
Python first and as a program in the backward pass, with a different graph and different rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class CompiledCalls:
    """The calls of compiled functions during a run, in order.

    Attributes:
        ran_program: for each call, whether a program ran; otherwise the function itself did.
    """

    def __init__(self) -> None:
        self.ran_program: list[bool] = []
        self._repeated: int | None = None  # in a rerun, the number of calls so far
        self._outer: CompiledCalls | None = None  # the record of the enclosing run
        self._first = 0  # the number of the first call in this run

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record the calls of the first run."""
        self._outer = outer = COMPILED_CALLS.get()
        self._first = 0 if outer is None else len(outer.ran_program)
        token = COMPILED_CALLS.set(self)
        try:
            yield
        finally:
            COMPILED_CALLS.reset(token)
            self._outer = None

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Make each call of the second run take the path of the first: the program or the function."""
        self._repeated = 0
        token = COMPILED_CALLS.set(self)
        try:
            yield
        finally:
            COMPILED_CALLS.reset(token)
            self._repeated = None

    def begin(self) -> tuple[int, bool]:
        """Begin a call; return its number and whether the function itself must run."""
        if self._repeated is not None:
            number = self._repeated
            self._repeated += 1
            return number, number < len(self.ran_program) and not self.ran_program[number]
        number, must_run = len(self.ran_program), False
        self.ran_program.append(False)
        if self._outer is not None:
            _, must_run = self._outer.begin()
        return number, must_run

    def end(self, number: int, ran_program: bool) -> None:
        """End a call."""
        if self._repeated is None:
            self.ran_program[number] = ran_program
            if self._outer is not None:
                self._outer.end(self._first + number, ran_program)


COMPILED_CALLS: Final[ContextVar[CompiledCalls | None]] = ContextVar("viewgrad_compiled_calls", default=None)
