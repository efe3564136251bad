"""The nodes of in-place writes through views, and of copies: `CopySlices` and `CopyBackwards`.

See Note [In-place writes through views] in docs/notes/copy_slices.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from ..tensor.node import ONE, OVERWRITE, PAIR, TWO_EDGES, Node, OptionalEdge, new
from ..tensor.refcounts import ALONE_IN_COPY_SLICES, getrefcount
from ..tensor.tensor import Tensor, as_buffered, from_array
from ..type_aliases import Array
from .unbroadcast import match_spec
from .view_functions import ViewFunction
from .view_nodes import Layout, take_window, zeros_for

ndarray: Final = np.ndarray


class CopyBackwards(Node):
    """The node of `copy_`: the old value has no gradient, and that of the source has the source's shape and dtype."""

    __slots__ = ("edge0", "edge1", "like")

    kind: ClassVar[int] = PAIR
    edges = TWO_EDGES

    edge0: OptionalEdge
    edge1: OptionalEdge
    like: tuple[tuple[int, ...], np.dtype[Any]] | None  # the shape and dtype of the source, if they differ

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients of the old value and of the source."""
        if edges[1] is None:
            return None, None
        return None, grad if self.like is None else match_spec(grad, self.like)

    consume = apply
    apply_recorded = apply


class CopySlices(Node):
    """The node of a write through a view, in the history of the base.

    It takes the view's part of the gradient, runs the node of the write on it, and replaces the part by the gradient of
    the old value.

    Edge 0 leads to the base's old history; the others are those of the wrapped node `fn`. The node stores only how to
    take the view, never the view itself.
    """

    __slots__ = ("edges", "fn", "index", "layout", "view_fn")

    kind: ClassVar[int] = OVERWRITE

    fn: Node
    index: Any
    view_fn: ViewFunction | None
    layout: Layout  # the layout of the gradient

    def apply(self, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Compute the gradients along `edges`; the first is `grad` itself, rewritten in place."""
        return self._overwrite(grad, edges, self.fn.apply)

    def consume(self, grad: Array, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Compute `apply` and release the saved values.

        They are kept if the graph of a recorded backward pass leads to the wrapped node through a saved result, since
        the wrapped node will then run again on its own.
        """
        fn = self.fn
        return self._overwrite(grad, edges, fn.consume if getrefcount(fn) <= ALONE_IN_COPY_SLICES else fn.apply)

    def _overwrite(self, grad: Array, edges: tuple[OptionalEdge, ...], run: Callable[..., Any]) -> tuple[Any, ...]:
        # `edges` determines what the wrapped node computes, except for its edge 0, which is needed exactly if edge 0 of
        # this node is. NumPy returns a scalar for a 0-d gradient; it remains one if no part of it is passed on.
        if self.view_fn is None:
            window = grad[self.index]
            if type(window) is not ndarray:  # a number, for a single element
                return self._overwrite_number(grad, edges, run)
        else:
            window = take_window(np.asarray(grad), None, self.view_fn)
            if window is None:  # in the layout of the gradient, the view would be a copy
                whole, window = zeros_for(self.view_fn, self.layout)
                whole[...] = grad
                grad = whole
        kind = self.fn.kind
        grads = run(window, edges)
        if kind == OVERWRITE:
            return (grad, *(_unshared(g, window) for g in grads[1:]))
        if kind == ONE:
            if edges[0] is not None and grads is not window:
                window[...] = 0 if grads is None else grads
            return (grad,)
        others = [_unshared(g, window) for g in grads[1:]]
        old = grads[0]
        if edges[0] is not None and old is not window:
            window[...] = 0 if old is None else old
        return (grad, *others)

    def _overwrite_number(self, grad: Any, edges: tuple[OptionalEdge, ...], run: Callable[..., Any]) -> tuple[Any, ...]:
        """Rewrite a single element, for which NumPy returns a number rather than a window."""
        part = grad[self.index]
        kind = self.fn.kind
        grads = run(np.asarray(part) if kind == OVERWRITE else part, edges)
        if kind == ONE:
            grads = (grads,)
        if edges[0] is not None:
            grad[self.index] = 0 if grads[0] is None else grads[0]
        return (grad, *grads[1:])

    def apply_recorded(self, grad: Tensor, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Compute `apply` with tensors. The gradient is written to in place, and this write is recorded."""
        grad = as_buffered(grad)
        window = take_window(grad, self.index, self.view_fn)
        if window is None:
            whole = from_array(zeros_for(self.view_fn, self.layout)[0])
            whole.copy_(grad)
            grad = whole
            window = take_window(grad, None, self.view_fn)
        grads = self.fn.apply_recorded(window, edges)
        if self.fn.kind == ONE:
            grads = (grads,)
        others = [g.clone() if g is not None and (g is window or g._view is not None) else g for g in grads[1:]]
        old = grads[0]
        if edges[0] is not None and old is not window:
            if old is None:
                window.zero_()
            else:
                window.copy_(old)
        return (grad, *others)

    def release(self) -> None:
        """Release the values saved by the wrapped node."""
        self.fn.release()


class CopySlicesOfCopy(CopySlices):
    """A `CopySlices` around a `CopyBackwards` that is not created: the node of `x[index] = value`."""

    __slots__ = ("edge0", "edge1", "like")

    edges = TWO_EDGES

    edge0: OptionalEdge
    edge1: OptionalEdge
    view_fn: ClassVar[None] = None  # type: ignore[misc]
    like: tuple[tuple[int, ...], np.dtype[Any]] | None  # the shape and dtype of the value, if they differ

    def name(self) -> str:
        """The name shown to the user."""
        return "CopySlices"

    @property
    def fn(self) -> Node:  # type: ignore[override]
        """The wrapped node, created on first access."""
        node: CopyBackwards = new(CopyBackwards)
        node.edge0 = None
        node.edge1 = self.edge1
        node.hooks = None
        node.sequence_nr = self.sequence_nr
        node.like = self.like
        return node

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`; the first is `grad` itself, with zeros in the window."""
        index = self.index
        window = grad[index]
        value = None
        if type(window) is not ndarray:  # a number, for a single element
            if edges[1] is not None:
                value = window if self.like is None else match_spec(window, self.like)
            if edges[0] is not None:
                grad[index] = 0
            return grad, value
        if edges[1] is not None:
            value = window.copy() if self.like is None else match_spec(window.copy(), self.like)
        if edges[0] is not None:
            window.fill(0)
        return grad, value

    consume = apply

    def release(self) -> None:
        """Do nothing, since no values are saved."""


def _unshared(grad: Any, window: Array) -> Any:
    """Return a gradient that shares no memory with `window`."""
    if grad is window or (type(grad) is ndarray and grad.base is not None):
        return grad.copy()
    return grad
