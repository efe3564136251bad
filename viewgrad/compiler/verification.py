"""The debug flag that enables verification of the IR after each pass, in both compilers.

It is set inside `verified_passes()`, or by the environment variable VIEWGRAD_VERIFY_IR.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

_verifies: Final[ContextVar[bool]] = ContextVar("verifies", default=bool(os.environ.get("VIEWGRAD_VERIFY_IR")))


def verifies_passes() -> bool:
    """Return whether the IR is verified after each pass."""
    return _verifies.get()


@contextlib.contextmanager
def verified_passes() -> Iterator[None]:
    """Verify the IR after each pass in a block."""
    token = _verifies.set(True)
    try:
        yield
    finally:
        _verifies.reset(token)
