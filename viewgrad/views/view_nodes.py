"""The nodes of views, which add the gradient to their window of the base's accumulator."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, Final

import numpy as np

from ..tensor.indices import window_at
from ..tensor.node import ONE_EDGE, SCATTER, Node, OptionalEdge, named_node, numbered
from ..tensor.tensor import Tensor, from_array, root_of
from ..type_aliases import Array
from .unbroadcast import sum_to
from .view_functions import ViewFunction

Layout = tuple[tuple[int, ...], "np.dtype[Any]", str]  # the layout of a gradient: shape, dtype, and order "C" or "F"
ndarray: Final = np.ndarray
np_add: Final = np.add


class ViewBackward(Node):
    """The node of a view, which adds the gradient to the view's window, at the cost of the view.

    Attributes:
        layout: the layout of the gradient of the viewed tensor.
        index: the basic index that selects the view, if there is one.
        view_fn: the function that takes the view if there is no such index.
        overlaps: whether elements of the view share memory, so that their gradients accumulate.
    """

    __slots__ = ("edge", "layout")

    kind: ClassVar[int] = SCATTER
    edges = ONE_EDGE

    edge: OptionalEdge
    layout: Layout
    index: Any
    view_fn: ViewFunction | None
    overlaps: bool

    def window(self, accumulator: Any) -> Any:
        """Return the view's window of an accumulator, an array or a tensor, or None if the layout does not allow it."""
        return take_window(accumulator, self.index, self.view_fn)

    def add_to(self, accumulator: Array, grad: Any) -> None:
        """Add `grad` to the view's window of `accumulator`."""
        view_fn = self.view_fn
        if view_fn is None:
            index = self.index
            window = accumulator[index]
            if type(window) is ndarray:
                np_add(window, grad, window)
            else:  # a number, for a single element
                accumulator[index] = window + grad
            return
        window = None if self.overlaps else take_window(accumulator, None, view_fn)
        if window is not None:
            np_add(window, grad, window)
        elif self.sums:
            np_add(accumulator, sum_to(grad, self.layout[0]), accumulator)
        elif self.overlaps:
            np.add.at(accumulator, places_of(view_fn, self.layout[0]), grad)
        else:
            whole, window = zeros_for(view_fn, self.layout)
            window[...] = grad
            np_add(accumulator, whole, accumulator)

    def add_to_recorded(self, accumulator: Any, grad: Any) -> None:
        """Implement `add_to` on tensors and record it."""
        window = None if self.overlaps else self.window(accumulator)
        if window is not None:
            window.add_(grad)
        elif self.sums:
            accumulator.add_(sum_to(grad, self.layout[0]))
        elif self.overlaps:
            accumulator.index_accumulate_(places_of(self.view_fn, self.layout[0]), grad)
        else:
            whole = from_array(zeros_for(self.view_fn, self.layout)[0])
            self.window(whole).copy_(grad)
            accumulator.add_(whole)

    @property
    def sums(self) -> bool:
        """Return whether the view was broadcast, so that its gradient is a sum; always True for a single element."""
        return not self.layout[0] or self.view_fn.broadcasts  # type: ignore[union-attr]

    @property
    def transparent(self) -> bool:
        """Return whether a gradient may be added directly to the window, bypassing this node."""
        return self.hooks is None and not self.overlaps


def take_window(buffer: Any, index: Any, view_fn: ViewFunction | None) -> Any:
    """Return the window of `buffer`, an array or a tensor, selected by `index` or `view_fn`.

    Return None if `view_fn` would copy, because it reshapes and the buffer's layout differs from the viewed tensor's,
    since a write to the copy would be lost.
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
    return view is not None and view.base is root_of(buffer)


def zeros_for(view_fn: Any, layout: Layout) -> tuple[Array, Array]:
    """Return zeros with the layout of the viewed tensor, and the window that `view_fn` takes of them."""
    shape, dtype, _ = layout
    for order in itertools.permutations(range(len(shape))):
        zeros = np.zeros([shape[dim] for dim in order], dtype).transpose(np.argsort(order))
        window = take_window(zeros, None, view_fn)
        if window is not None:
            return zeros, window
    raise AssertionError(f"no layout of {shape} has a window for {view_fn}")


def places_of(view_fn: Any, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return, for each element of the view that `view_fn` takes of an array of the given shape, its index in the array.
    """
    numbers = view_fn(np.arange(math.prod(shape)).reshape(shape))
    # NumPy 2.4 reads large arrays of overlapping windows out of bounds.
    return np.unravel_index(np.ascontiguousarray(numbers), shape)


def layout_of(source: Array) -> Layout:
    """Return the layout of a gradient from which the views of `source` can be taken as windows."""
    flags = source.flags
    return source.shape, source.dtype, "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def layout_for(tensor: Tensor) -> Layout:
    """Return the layout of a tensor's gradient, cached for the tensor whose memory the storage is."""
    array = tensor._array
    storage = tensor._storage
    if storage is None or array is not storage.root:
        return layout_of(array)
    if storage.layout is None:
        storage.layout = layout_of(array)
    return storage.layout


class IndexViewBackward(ViewBackward):
    """The node of a view taken by a basic index."""

    __slots__ = ("index",)

    view_fn = None
    overlaps = False


class ElementBackward(IndexViewBackward):
    """The node of a read of one element, whose result is a scalar and not a view.

    In one dimension, `index` is the number of the element rather than a tuple; see `autograd/scalar_engine.py`.
    """

    __slots__ = ()

    def add_to(self, accumulator: Array, grad: Any) -> None:
        """Add `grad`, a number, to the element of `accumulator`."""
        accumulator[self.index] += grad


class FunctionViewBackward(ViewBackward):
    """The node of a view taken by a view function."""

    __slots__ = ("overlaps", "view_fn")

    index = None


def view_node(name: str, base: type[ViewBackward]) -> Any:
    """Return the node class of a view operator."""
    return named_node(name, base, f"The node of the view operator `{name.removesuffix('Backward')}`.")


def node_pair(name: str) -> tuple[type[IndexViewBackward], type[FunctionViewBackward]]:
    """Return the node classes of a view operator, for views that a basic index can take and for other views."""
    return view_node(name, IndexViewBackward), view_node(name, FunctionViewBackward)


def node_of_view(
    node_class: type[ViewBackward],
    edge: OptionalEdge,
    source: Tensor,
    index: Any,
    view_fn: ViewFunction | None,
    overlaps: bool,
) -> ViewBackward:
    """Return the node of a view of `source`, whose history `edge` leads to."""
    node: Any = numbered(node_class)
    node.edge = edge
    node.layout = layout_for(source)
    if view_fn is None:
        node.index = index
    else:
        node.view_fn = view_fn
        node.overlaps = overlaps
    return node  # type: ignore[no-any-return]


# The edge from an outdated view to the current history of its base.
AS_STRIDED: Final = node_pair("AsStridedBackward")
