"""The nodes of views: each adds what arrives to its window of the accumulator of what the view was taken from."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import numpy as np

from ..tensor.indices import window_at
from ..tensor.node import ONE_EDGE, SCATTER, Node
from .conform import sum_to
from .view_functions import ViewFunction

__all__ = ["AsStridedBackward", "ViewBackward", "layout_of", "places_of", "take_window", "view_node"]

Array = np.ndarray[Any, Any]
ndarray: Final = np.ndarray
np_add: Final = np.add


class ViewBackward(Node):
    """Of a view: adds the gradient to the window that the view is, so that it costs what the view costs.

    Attributes:
        index: the basic index that takes the view from what it was taken from, where one does.
        view_fn: the function that takes it where none does.
        shape: of what it was taken from.
        dtype: of what it was taken from.
        overlaps: whether elements of the view share places in memory, so that their gradients add up.
        order: beside a `view_fn`, the memory layout of what the view was taken from: "C" or "F".
    """

    __slots__ = ("dtype", "edge", "index", "order", "overlaps", "shape", "view_fn")

    kind: ClassVar[int] = SCATTER
    edges = ONE_EDGE

    edge: Any
    index: Any
    view_fn: ViewFunction | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    overlaps: bool
    order: str

    def window(self, accumulator: Any) -> Any:
        """The view's window of an accumulator, an array or a tensor; None where its layout allows none."""
        return take_window(accumulator, self.index, self.view_fn)

    def add_to(self, accumulator: Array, grad: Any) -> None:
        """Add `grad` to the view's window of `accumulator`."""
        view_fn = self.view_fn
        if view_fn is None:
            index = self.index
            window = accumulator[index]
            if type(window) is ndarray:
                np_add(window, grad, window)
            else:  # a number, of a single element
                accumulator[index] = window + grad
            return
        window = None if self.overlaps else take_window(accumulator, None, view_fn)
        if window is not None:
            np_add(window, grad, window)
        elif self.sums:
            np_add(accumulator, sum_to(grad, self.shape), accumulator)
        else:
            np.add.at(accumulator, places_of(self), grad)

    def add_to_recorded(self, accumulator: Any, grad: Any) -> None:
        """The same with tensors, recorded."""
        window = None if self.overlaps else self.window(accumulator)
        if window is not None:
            window.add_(grad)
        elif self.sums:
            accumulator.add_(sum_to(grad, self.shape))
        else:
            accumulator.index_accumulate_(places_of(self), grad)

    @property
    def sums(self) -> bool:
        """Whether the view was broadcast, so that its gradient is a sum; always so for one of a single element."""
        return not self.shape or self.view_fn.broadcasts  # type: ignore[union-attr]

    @property
    def transparent(self) -> bool:
        """Whether a gradient may be added straight to the window, past this node."""
        return self.hooks is None and not self.overlaps


def take_window(buffer: Any, index: Any, view_fn: ViewFunction | None) -> Any:
    """The window of `buffer`, an array or a tensor, that `index` or `view_fn` takes.

    None where `view_fn` copies, because it reshapes and the buffer is laid out otherwise than what the view was taken
    from: what is written to a copy would be lost.
    """
    if view_fn is None:
        return window_at(buffer, index)
    window = view_fn(buffer)
    if view_fn.exact or _is_window(window, buffer):
        return window
    return None


def _is_window(window: Any, buffer: Any) -> bool:
    if type(buffer) is np.ndarray:
        return window.size == 0 or np.may_share_memory(window, buffer)
    view = window._view
    return view is not None and view.base is (buffer if buffer._view is None else buffer._view.base)


def places_of(node: Any) -> tuple[Array, ...]:
    """For each element of the view that `node` takes, the index of its place in what the view is taken from."""
    numbers = node.view_fn(np.arange(math.prod(node.shape)).reshape(node.shape))
    return np.unravel_index(numbers, node.shape)


def layout_of(source: Array) -> str:
    """The order of a gradient buffer from which the views of `source` can be taken as windows."""
    flags = source.flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


class AsStridedBackward(ViewBackward):
    """Of a view whose base has moved on: leads from the view straight to the base's present history."""

    __slots__ = ()


def view_node(name: str) -> type[ViewBackward]:
    """The node class of a view operator."""
    return type(name, (ViewBackward,), {"__slots__": (), "__doc__": f"Of the view `{name.removesuffix('Backward')}`."})
