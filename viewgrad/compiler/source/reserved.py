"""Names reserved for generated programs; variables of the user with these names are renamed."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Final

from ..backends.array_runtime import CAREFUL
from ..backends.scalar_runtime import FUNCTIONS, MATH
from .runtime import HOST, KERNEL

NAMES: Final = frozenset({
    *keyword.kwlist, *dir(builtins), *MATH, *CAREFUL, *HOST, *[each.__name__ for each in (*FUNCTIONS, *KERNEL)],
    "tape", "floats", "integers", "nf", "ni", "program", "pullback", "tape_limit", "reports", "inf", "nan",
    "as_list", "take_list", "as_number", "not_negative", "unsigned", "begin_", "goal_", "state_", "mark_", "_",
})  # fmt: skip
PATTERN: Final = re.compile(r"seed\d+|loop_\d+(_\d+)?|loop\d+(_[a-z]+)?|.*_(bar|list|shape\d+)")


def is_reserved(name: str) -> bool:
    """Return whether a name is reserved for generated programs.

    Arguments:
        name: the name of a variable.
    """
    return name in NAMES or PATTERN.fullmatch(name) is not None
