"""The nodes of reads and writes by index arrays: `x[[2, 0]]`, `x[mask] = value`."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar, Final

import numpy as np

from ..tensor.masked_backward import gradient_masked
from ..tensor.node import GATHER, ONE_EDGE, OVERWRITE, PAIR, TWO_EDGES, Node, OptionalEdge
from ..tensor.saved import RELEASED
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from .unbroadcast import Like, match_spec
from .view_nodes import Layout


class IndexedNode(Node):
    """A node that stores the index arrays of a read or write until it is released."""

    __slots__ = ("index",)

    index: Any

    @property
    def released(self) -> bool:
        """Return whether the saved arrays have been released."""
        try:
            _index_slot(self)
        except AttributeError:
            return True
        return False

    def release(self) -> None:
        """Release the index arrays."""
        with contextlib.suppress(AttributeError):  # released before
            del self.index

    def __getattr__(self, name: str) -> Any:
        if name == "index":
            return RELEASED.array
        raise AttributeError(f"{self.name()} has no {name!r}")


_index_slot: Final = IndexedNode.__dict__["index"].__get__


class IndexBackward(IndexedNode):
    """The node of a read by index arrays, which adds the gradient to the elements that were read."""

    __slots__ = ("edge", "layout", "once")

    kind: ClassVar[int] = GATHER
    edges = ONE_EDGE

    edge: OptionalEdge
    once: bool  # whether no element is read twice
    layout: Layout

    def add_to(self, accumulator: Array, grad: Any) -> None:
        """Add `grad` to the elements of `accumulator` that were read."""
        gradient_masked()
        if self.once:
            accumulator[self.index] += grad
        else:
            np.add.at(accumulator, self.index, grad)

    def add_to_recorded(self, accumulator: Tensor, grad: Tensor) -> None:
        """Implement `add_to` on tensors and record it."""
        gradient_masked()
        accumulator.index_accumulate_(self.index, grad)


class IndexPutBackward(IndexedNode):
    """The node of `x[index] = values` with index arrays; the gradient of the values is that of the written elements."""

    __slots__ = ("edge0", "edge1", "layout", "like", "winners")

    kind: ClassVar[int] = OVERWRITE
    edges = TWO_EDGES
    edge0: OptionalEdge
    edge1: OptionalEdge
    layout: Layout  # the layout of the gradient
    like: Like | None
    winners: Array | None  # if an element is written more than once, the mask of the values that remain

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`; the first is `grad` itself, rewritten in place."""
        gradient_masked()
        values = None
        if edges[1] is not None:
            values = grad[self.index]
            if self.winners is not None:
                values[~self.winners] = 0  # unlike a product, also if an element is infinite
            values = match_spec(values, self.like)
        if edges[0] is not None:
            grad[self.index] = 0
        return grad, values

    apply_recorded = apply


class IndexAccumulateBackward(IndexedNode):
    """The node of an addition to elements selected by index arrays."""

    __slots__ = ("edge0", "edge1", "like")

    kind: ClassVar[int] = PAIR
    edges = TWO_EDGES

    edge0: OptionalEdge
    edge1: OptionalEdge
    like: Like | None

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients of the old value and of the added values, for arrays and tensors."""
        return grad, None if edges[1] is None else match_spec(grad[self.index], self.like)

    apply_recorded = apply
