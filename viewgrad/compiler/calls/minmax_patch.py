"""Python's `min` and `max` in a trace, compiled to selects instead of branches on values.

Python compares the values and returns one of them; for other arguments it may return another one, and the trace would
not be valid. `np.where` with the same comparison has the same value and gradient for all arguments.
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
    """Return whether all values are real numbers, at least one of them a float tensor."""
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


# A context in which `min` and `max` of traced numbers are traced as selects.
extrema_by_value: Final = Replaced([
    (builtins, "min", builtins.min, _by_value(builtins.min, operator.lt)),
    (builtins, "max", builtins.max, _by_value(builtins.max, operator.gt)),
])  # fmt: skip
