"""Index arrays that contain elements of tensors, which become inputs of indexing nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...type_aliases import Array
from ..attributes import Frozen, IndexInput
from ..graph import Value


class Indices:
    """The index arrays and the values that they contain."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[Array, Value]] = {}  # by the ids of the arrays, which are kept alive

    def add(self, array: Array, value: Value) -> None:
        """Register an array that contains the elements of a value."""
        self._by_id[id(array)] = (array, value)

    def copied(self, index: Array, array: Array) -> None:
        """Note that an array replaces another one in an index."""
        known = self._by_id.get(id(index))
        if known is not None:
            self.add(array, known[1])

    def hold(self, items: tuple[Any, ...]) -> bool:
        """Return whether one of several arrays contains the elements of a value."""
        return any(id(item) in self._by_id for item in items)

    def pattern(self, items: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Value, ...]]:
        """Return an index by arrays in which arrays that are values are replaced by numbers, and these values."""
        pattern: list[Any] = []
        inputs: list[Value] = []
        for item in items:
            if type(item) is np.ndarray:
                known = self._by_id.get(id(item))
                if known is None:
                    pattern.append(Frozen(item))
                    continue
                pattern.append(IndexInput(len(inputs)))
                inputs.append(known[1])
            else:
                pattern.append(item)
        return tuple(pattern), tuple(inputs)
