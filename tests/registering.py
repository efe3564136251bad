"""Tables of programs, filled by a decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def registering(table: dict[Callable[..., Any], Any]) -> Callable[[Any], Callable[[Any], Any]]:
    """Return a decorator that registers a program, with the function that draws its arguments.

    Arguments:
        table: the table. The function is given a generator of random numbers and a size.
    """

    def registered(draw: Any) -> Callable[[Any], Any]:
        def register(program: Any) -> Any:
            table[program] = draw
            return program

        return register

    return registered
