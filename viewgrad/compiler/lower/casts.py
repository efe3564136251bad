"""Conversions of values from one kind of elements to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..element_types import BOOL, FLOAT, INTEGER
from ..trace_stream import TracedValue

if TYPE_CHECKING:
    from ..lowering import Lowering

__all__ = ["converted"]

# What converts to a dtype.
CONVERSIONS: Final = {FLOAT: "as_float", BOOL: "as_bool", INTEGER: "as_integer"}


def converted(of: Lowering, operand: TracedValue, to: np.dtype[Any]) -> TracedValue:
    """A value in another dtype, as an assignment casts it."""
    if np.dtype(of.stream.places[operand.place][1]) == to:
        return operand
    labels = tuple(range(len(operand.shape)))
    return of.emit(CONVERSIONS[to], [(operand, labels)], operand.shape, labels, to.char)
