"""`min` and `max` of Python in a recorded run: choices by value, where they would have steered the program.

Python compares, and takes one of the values: another one for other arguments, so that the record would not be theirs.
`np.where` of the same comparison gives the same value, and the same gradient, whatever the arguments are.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ...tensor.modes import TRACE, current_mode
from ...tensor.tensor import Tensor

__all__ = ["extrema_by_value"]

_lock: Final = threading.Lock()
_runs = [0]  # how many runs are being recorded


def _by_value(original: Callable[..., Any], is_before: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def extremum(*args: Any, **options: Any) -> Any:
        if options or not current_mode() & TRACE:
            return original(*args, **options)
        items = list(args[0]) if len(args) == 1 else args
        if not _are_numbers(items):
            return original(items)
        best = items[0]
        for item in items[1:]:
            best = np.where(is_before(item, best), item, best)[()]
        return best

    return extremum


def _are_numbers(items: Any) -> bool:
    """Whether these are real numbers, and one of them at least a tensor of floats."""
    has_floats = False
    for item in items:
        if isinstance(item, Tensor):
            kind = item.dtype.kind
            if item.ndim or kind not in "fi":
                return False
            has_floats = has_floats or kind == "f"
        elif type(item) not in (int, float) and not isinstance(item, (np.floating, np.integer)):
            return False
    return has_floats


PYTHONS: Final = {"min": builtins.min, "max": builtins.max}
OURS: Final = {
    "min": _by_value(builtins.min, operator.lt),
    "max": _by_value(builtins.max, operator.gt),
}


@contextlib.contextmanager
def extrema_by_value() -> Iterator[None]:
    """A block in which `min` and `max` of numbers that are recorded are recorded as choices.

    They are put in Python's place for all threads, and are Python's own in those where nothing is recorded.
    """
    with _lock:
        _runs[0] += 1
        for name, ours in OURS.items():
            if getattr(builtins, name) is PYTHONS[name]:
                setattr(builtins, name, ours)
    try:
        yield
    finally:
        with _lock:
            _runs[0] -= 1
            for name, ours in OURS.items():
                if not _runs[0] and getattr(builtins, name) is ours:
                    setattr(builtins, name, PYTHONS[name])
