"""`min` and `max` of Python in a recorded run: choices by value, where they would have steered the program.

Python compares, and takes one of the values: another one for other arguments, so that the record would not be theirs.
`np.where` of the same comparison gives the same value, and the same gradient, whatever the arguments are.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.modes import TRACE, current_mode
from ...tensor.tensor import Tensor
from ...trace.tracing.patching import Replaced

__all__ = ["extrema_by_value"]


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
    """Return whether these are real numbers, and one of them at least a tensor of floats."""
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


# A block in which `min` and `max` of numbers that are recorded are recorded as choices.
extrema_by_value: Final = Replaced([
    (builtins, "min", builtins.min, _by_value(builtins.min, operator.lt)),
    (builtins, "max", builtins.max, _by_value(builtins.max, operator.gt)),
])  # fmt: skip
