"""The properties by name: circumstances, in which values and gradients stay what they are, and all others.

Of a circumstance it is a function of the plain results of a call. It runs programs, and returns how many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..baseline import Baseline
from .cotangents import gradient_layouts, gradient_untouched, linear, undefined
from .lifetime import lifetime
from .memory import overwritten, result_memory, untouched
from .operands import input_layouts, same_twice, subsets, used_elsewhere
from .repetition import repeatable, run_twice
from .unneeded_work import NEEDLESS

__all__ = ["INVARIANTS", "FIRST", "PROPERTIES", "SHORT"]

Property = Callable[[Baseline], int]

INVARIANTS: Final[dict[str, Property]] = {
    "state between calls": repeatable,
    "a graph run twice": run_twice,
    "linear in the incoming gradient": linear,
    "undefined gradients": undefined,
    "layouts of incoming gradients": gradient_layouts,
    "the incoming gradient stays the caller's": gradient_untouched,
    "every subset of arguments that require grad": subsets,
    "arguments are not modified": untouched,
    "memory shared with arguments": result_memory,
    "overwritten afterwards": overwritten,
    "arguments used elsewhere": used_elsewhere,
    "the same tensor twice": same_twice,
    "layouts of arguments": input_layouts,
    "nothing is left of a call": lifetime,
}
# Those without which the others cannot be trusted.
FIRST: Final = ("arguments are not modified", "state between calls", "a graph run twice")
# The names of the properties, in the order in which they are looked at.
PROPERTIES: Final[tuple[str, ...]] = (
    "something to check",
    *FIRST,
    "gradients",
    "values",
    *(name for name in INVARIANTS if name not in FIRST),
    NEEDLESS,
    "special points",
    "ties",
    "indices",
    "options",
    "shapes",
    "complex numbers",
    "dtypes",
    "in-place form",
    "forward mode",
    "second derivatives",
)
# What is looked at in each of many calls.
SHORT: Final = (
    "gradients",
    "values",
    "arguments are not modified",
    "state between calls",
    "every subset of arguments that require grad",
    "overwritten afterwards",
    "layouts of arguments",
    "in-place form",
    "forward mode",
    "second derivatives",
)
