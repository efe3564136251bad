"""Backward passes in which a mask has set part of a gradient to zero.

Elements excluded by a mask do not influence the result, even if they are infinite or NaN: `np.where(ok, z * a, z)`. In
such a pass, the product of a zero gradient and a factor that is not finite is 0, like the derivative. In other passes
it is NaN, as in NumPy: checking every product for zeros would cost several percent of a backward pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

# The engine runs in a copy of the context, so the flag belongs to one pass and the passes it starts.
_masked: Final[ContextVar[bool]] = ContextVar("viewgrad_masked_run", default=False)
is_masked_run: Final = _masked.get


class MaskedRuns:
    """The state shared by all such passes in this process: until the first one, products do not check for them.

    Attributes:
        any: whether such a pass has occurred.
        classes: the classes of nodes whose methods do not check until then; methods named `masked_...` do.
    """

    __slots__ = ("any", "classes")

    def __init__(self) -> None:
        self.any = False
        self.classes: list[type] = []

    def prepare(self, kind: type) -> None:
        """Install the checking methods in a class of nodes, now or at the first such pass."""
        if self.any:
            _check_for_masked_runs(kind)
        else:
            self.classes.append(kind)

    def begin(self) -> None:
        """Handle the first such pass."""
        self.any = True
        while self.classes:
            _check_for_masked_runs(self.classes.pop())


def _check_for_masked_runs(kind: type) -> None:
    for name in ("apply", "consume", "apply_recorded"):
        setattr(kind, name, getattr(kind, f"masked_{name}"))


MASKED_RUNS: Final = MaskedRuns()


def gradient_masked() -> None:
    """Note that a mask is about to set part of a gradient to zero."""
    if not MASKED_RUNS.any:
        MASKED_RUNS.begin()
    _masked.set(True)


def holds_nan(gradients: Iterable[Any]) -> bool:
    """Return whether one of the arrays contains a NaN; compiled programs without masked products are then rerun."""
    return any(each is not None and np.count_nonzero(np.isnan(each)) for each in gradients)


class unmasked:
    """A context in which products are computed as in NumPy."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _masked.set(False)

    def __exit__(self, *error: object) -> None:
        _masked.reset(self._token)
