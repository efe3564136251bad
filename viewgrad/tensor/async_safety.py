"""Safety against asynchronous exceptions: modes are restored, and it is known whether an in-place write has begun.

See Note [Interrupted writes] in docs/notes/interruption.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from ..errors import AutogradError
from .creation_sites import is_ours

P = ParamSpec("P")
T = TypeVar("T")


def isolated(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a copy of the context, so that its changes to modes are discarded afterwards.

    The caller's context is never changed, so there is no cleanup that a signal could interrupt.
    """
    return copy_context().run(function, *args, **kwargs)


def in_own_context(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that every call of it is `isolated`."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return copy_context().run(function, *args, **kwargs)

    return call


def is_refusal(error: BaseException) -> bool:
    """Return whether an exception from an in-place write comes from a check made before anything was written.

    True for the library's own errors, and for NumPy errors raised in calls by the library. Exceptions from signal
    handlers originate in the user's code.
    """
    if isinstance(error, AutogradError):
        return True
    at = error.__traceback__
    if at is None or not isinstance(error, (ValueError, TypeError, IndexError)):
        return False
    while at.tb_next is not None:
        at = at.tb_next
    return is_ours(at.tb_frame.f_code.co_filename)
