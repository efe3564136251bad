"""A record of calls of compiled functions, so that a rerun of their caller takes the same paths.

A call runs the Python function until a program is built. Without this record, a checkpointed function could run in
Python first and as a program in the backward pass, with a different graph and different rounding. A traced run has a
different graph from a plain one, too: checkpoints inside it, for example, run directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Final


class Path(Enum):
    """How a call of a compiled function was made: by the function, by a traced run of it, or by a program."""

    FUNCTION = "function"
    TRACED = "traced"
    PROGRAM = "program"


class CompiledCalls:
    """The calls of compiled functions during a run, in order.

    Attributes:
        paths: how each call was made.
    """

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self._repeated: int | None = None  # in a rerun, the number of calls so far
        self._outer: CompiledCalls | None = None  # the record of the enclosing run
        self._first = 0  # the number of the first call in this run

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record the calls of the first run."""
        self._outer = outer = COMPILED_CALLS.get()
        self._first = 0 if outer is None else len(outer.paths)
        token = COMPILED_CALLS.set(self)
        try:
            yield
        finally:
            COMPILED_CALLS.reset(token)
            self._outer = None

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Make each call of the second run take the path of the first."""
        self._repeated = 0
        token = COMPILED_CALLS.set(self)
        try:
            yield
        finally:
            COMPILED_CALLS.reset(token)
            self._repeated = None

    def begin(self) -> tuple[int, Path | None]:
        """Begin a call, or the choice of a program for a batch; return its number and its path, None for any."""
        if self._repeated is not None:
            number = self._repeated
            self._repeated += 1
            return number, self.paths[number] if number < len(self.paths) else None
        number, path = len(self.paths), None
        self.paths.append(Path.FUNCTION)
        if self._outer is not None:
            _, path = self._outer.begin()
        return number, path

    def end(self, number: int, path: Path) -> None:
        """End a call."""
        if self._repeated is None:
            self.paths[number] = path
            if self._outer is not None:
                self._outer.end(self._first + number, path)


COMPILED_CALLS: Final[ContextVar[CompiledCalls | None]] = ContextVar("viewgrad_compiled_calls", default=None)
