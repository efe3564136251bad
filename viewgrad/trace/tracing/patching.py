"""Functions of Python and of modules that are replaced while programs are traced."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

# A patch: the module or class, the name, the original, and the replacement.
Patch = tuple[Any, str, Callable[..., Any], Callable[..., Any]]
PATCHED: Final[set[int]] = set()  # the ids of all such functions, originals and replacements


class Replaced:
    """Replaces functions, in all threads, while a program is traced in any of them.

    Arguments:
        patches: the functions. A replacement must behave like the original if nothing is traced.
    """

    def __init__(self, patches: Sequence[Patch]) -> None:
        self.patches: Final = patches
        for _, _, given, ours in patches:
            PATCHED.update((id(given), id(ours)))
        self._lock = threading.Lock()
        self._runs = 0  # the number of programs being traced

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Replace the functions for a block."""
        with self._lock:
            self._runs += 1
            for owner, name, given, ours in self.patches:
                if getattr(owner, name, None) is given:
                    setattr(owner, name, ours)
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                for owner, name, given, ours in self.patches:
                    if not self._runs and getattr(owner, name, None) is ours:
                        setattr(owner, name, given)
