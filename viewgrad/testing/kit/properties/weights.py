"""Irregular weights, used as gradients of the results."""

from __future__ import annotations

import numpy as np

from ....type_aliases import Array
from ..operator_under_test import Recorded


def rows_of_weights(m: int) -> Array:
    """Return three rows of weights for `m` numbers."""
    numbers = np.arange(m)
    return np.array([np.cos(numbers * (1.0 + k) + k) + 0.3 for k in range(3)])


def weights_like(array: Array, phase: int = 0) -> Array:
    """Return irregular numbers with the shape and dtype of `array`."""
    numbers = np.arange(array.size)
    weights: Array = np.cos(1.7 * numbers + phase) + 0.3
    if array.dtype.kind == "c":
        weights = weights - 1j * np.sin(2.3 * numbers + phase)
    return weights.reshape(array.shape).astype(array.dtype)


def as_starts(row: Array, recorded: Recorded, outputs: list[int]) -> dict[int, Array]:
    """Return the gradients of the outputs for a row of weights; outputs without weight are omitted."""
    starts = {}
    taken = 0
    for i in outputs:
        array = recorded.outputs[i]._array
        parts = 2 if array.dtype.kind == "c" else 1
        part = row[taken : taken + array.size * parts]
        taken += array.size * parts
        if part.any():
            starts[i] = (part.view(complex) if parts == 2 else part).reshape(array.shape).astype(array.dtype)
    return starts
