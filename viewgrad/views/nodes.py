"""The nodes of views: each adds what arrives to its window of the accumulator of what the view was taken from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from ..tensor.node import SCATTER, Node

__all__ = ["AsStridedBackward", "ViewBackward", "view_node"]

Array = np.ndarray[Any, Any]
np_add: Final = np.add


class ViewBackward(Node):
    """Of a view: adds the gradient to the window that the view is, so that it costs what the view costs.

    Attributes:
        index: the basic index that takes the view from what it was taken from, where one does.
        view_fn: the function that takes it where none does.
        shape: of what it was taken from.
        dtype: of what it was taken from.
        overlaps: whether elements of the view share places in memory, so that their gradients add up.
    """

    __slots__ = ("dtype", "index", "overlaps", "shape", "view_fn")

    kind: ClassVar[int] = SCATTER

    index: Any
    view_fn: Callable[[Any], Any] | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    overlaps: bool

    def window(self, accumulator: Any) -> Any:
        """The view's window of an accumulator, an array or a tensor."""
        return accumulator[self.index] if self.view_fn is None else self.view_fn(accumulator)

    def add_to(self, accumulator: Array, grad: Any) -> None:
        """Add `grad` to the view's window of `accumulator`."""
        if self.overlaps:
            np.add.at(accumulator, self._places(), grad)
        else:
            window = accumulator[self.index] if self.view_fn is None else self.view_fn(accumulator)
            np_add(window, grad, window)

    def add_to_recorded(self, accumulator: Any, grad: Any) -> None:
        """The same with tensors, recorded."""
        if self.overlaps:
            accumulator.index_accumulate_(self._places(), grad)
        else:
            self.window(accumulator).add_(grad)

    def _places(self) -> tuple[Array, ...]:
        """For each element of the view, the index of its place in what the view was taken from."""
        numbers = self.window(np.arange(math.prod(self.shape)).reshape(self.shape))
        return np.unravel_index(numbers, self.shape)

    @property
    def transparent(self) -> bool:
        """Whether a gradient may be added straight to the window, past this node."""
        return self.hooks is None and not self.overlaps


class AsStridedBackward(ViewBackward):
    """Of a view whose base has moved on: leads from the view straight to the base's present history."""

    __slots__ = ()


def view_node(name: str) -> type[ViewBackward]:
    """The node class of a view operator."""
    return type(name, (ViewBackward,), {"__slots__": (), "__doc__": f"Of the view `{name.removesuffix('Backward')}`."})
