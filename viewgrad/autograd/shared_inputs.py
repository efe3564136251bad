"""Inputs of a transform that share memory: the function receives separate copies and may not write to them.

NumPy runs `f(a, a)` with one array, so a write through one argument changes the other. A transform copies each
argument, and a derivative with respect to one of them treats the others as constants. Both compute the same values
unless the function writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from ..errors import OverlappingWriteError
from ..tensor.equality import is_same_array
from ..tensor.saved_windows import share_memory
from ..tensor.tensor import Tensor

# The copies of inputs with shared memory made by the enclosing transforms.
_SHARING: Final[ContextVar[tuple[Any, ...]]] = ContextVar("viewgrad_sharing", default=())


class Inputs:
    """The inputs of one run of a transformed function, with their copies."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Any, Any]] = []

    def clear(self) -> None:
        """Reset for the inputs of another run."""
        self._pairs = []

    def add(self, source: Any, copy: Any) -> None:
        """Add an input of any type, and the value that replaces it in the call of the function."""
        if isinstance(source, (Tensor, np.ndarray)) and source.ndim:
            self._pairs.append((source, copy))

    @contextmanager
    def kept_separate(self) -> Iterator[None]:
        """Run the function on separate copies.

        Raises:
            OverlappingWriteError: if it has written to a copy of an input that shares memory with another input.
        """
        around, pairs = _SHARING.get(), self._pairs
        self._pairs = []
        sharing = _sharing(pairs) if len(pairs) > 1 else []
        if around:
            sharing += [pair for pair in pairs if any(pair[0] is each for each in around)]
        if not sharing:
            yield
            return
        before = [None if isinstance(copy, Tensor) else copy.copy() for _, copy in sharing]
        token = _SHARING.set((*around, *[copy for _, copy in sharing]))
        try:
            yield
        finally:
            _SHARING.reset(token)
        for (_, copy), old in zip(sharing, before, strict=True):
            if copy._version if old is None else not is_same_array(old, copy):
                raise OverlappingWriteError(
                    f"the function writes to an argument of shape {copy.shape} that shares memory with another "
                    "argument. NumPy would change both, but a transform passes separate copies. If the arguments are "
                    "meant to be independent, pass copies, as in f(a, a.copy())"
                )


def _sharing(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the pairs whose inputs share memory with other inputs."""
    groups = defaultdict(list)
    for source, copy in pairs:
        array = source._array if isinstance(source, Tensor) else source
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        groups[id(owner if owner.base is None else owner.base)].append((array, (source, copy)))
    found = []
    for group in groups.values():
        if len(group) > 1:
            found += [
                pair for array, pair in group
                if any(other is not array and share_memory(array, other) for other, _ in group)
                or sum(other is array for other, _ in group) > 1
            ]  # fmt: skip
    return found
