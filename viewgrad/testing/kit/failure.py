"""The error raised by a check, with the violated property, the numbers, and a program that reproduces it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Mismatch

if TYPE_CHECKING:
    from .script import Script


class Failure(Mismatch):
    """The error raised if a property of an operator does not hold.

    Attributes:
        property: its name.
        reason: a description of the failure.
        element: the index of the worst element, for numerical failures.
        found: the value that the operator computed there.
        expected: the expected value.
        entries: the elements that differ, with both numbers; only the worst if there are many.
        without_gradient: the argument for which the backward pass returned no gradient, if that is the failure.
        program: Python that fails in the same way in a fresh interpreter, and passes once the operator is fixed.
        others: the failures of other properties, if the check continued.
    """

    def __init__(
        self,
        property: str,
        reason: str,
        script: Script | None = None,
        *,
        element: tuple[int, ...] | None = None,
        found: Any = None,
        expected: Any = None,
        entries: Sequence[str] = (),
        without_gradient: str = "",
    ) -> None:
        super().__init__(reason)
        self.property = property
        self.reason = reason
        self.script = script
        self.element = element
        self.found = found
        self.expected = expected
        self.entries = tuple(entries)
        self.without_gradient = without_gradient
        self.program = ""
        self.others: tuple[Failure, ...] = ()
        self.standalone_program = ""

    def standalone(self) -> str:
        """Return the program of the failure with the operator's source included, without imports of the user's modules.

        If a source cannot be found, the import remains.
        """
        return self.standalone_program or self.program

    @property
    def is_of_digits(self) -> bool:
        """Return whether a number is nearly correct, or NaN because of zero times infinity."""
        found, expected = self.found, self.expected
        if not isinstance(found, float | complex) or not isinstance(expected, float | complex):
            return False
        return not np.isfinite(found) or abs(found - expected) <= 1e-3 * abs(expected)
