"""The properties by name, and the functions that check invariants.

An invariant is a variation of a call that must not change values or gradients. Its function receives the baseline of
the call, runs programs, and returns their number.
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
from .threads import in_threads
from .unneeded_work import NEEDLESS

Property = Callable[[Baseline], int]

INVARIANTS: Final[dict[str, Property]] = {
    "state between calls": repeatable,
    "a graph run twice": run_twice,
    "the incoming gradient stays the caller's": gradient_untouched,
    "linear in the incoming gradient": linear,
    "undefined gradients": undefined,
    "layouts of incoming gradients": gradient_layouts,
    "every subset of arguments that require grad": subsets,
    "arguments are not modified": untouched,
    "memory shared with arguments": result_memory,
    "overwritten afterwards": overwritten,
    "arguments used elsewhere": used_elsewhere,
    "the same tensor twice": same_twice,
    "layouts of arguments": input_layouts,
    "threads": in_threads,
    "nothing is left of a call": lifetime,
}
# If these fail, the others cannot be trusted.
FIRST: Final = ("state between calls", "arguments are not modified", "a graph run twice")
# The names of the properties, in the order in which they are checked.
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
    "digits of gradients",
    "dtypes",
    "in-place form",
    "forward mode",
    "second derivatives",
)
# The properties checked in each of many calls.
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


def base_name(title: str) -> str:
    """Return the property that a title, possibly with details, belongs to."""
    return title.split(" (")[0].split(": ")[0]
