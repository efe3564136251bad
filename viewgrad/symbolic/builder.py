"""A builder, which inserts nodes into a graph at an insertion point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..trace.attributes import Frozen
from ..trace.graph import Block, Graph, Node, Value
from ..trace.types import TensorType, Type


class Builder:
    """Inserts nodes at an insertion point.

    Arguments:
        graph: the graph. Initially, nodes are inserted at its end.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.symbolic import Builder, Graph, TensorType
        >>> graph = Graph()
        >>> x = graph.add_input(TensorType.of(np.dtype(float), (2,)), "x")
        >>> builder = Builder(graph)
        >>> y = builder.insert("exp", [x], (), x.type)
        >>> graph.block.set_outputs([y.output])
        >>> with builder.at(y):
        ...     doubled = builder.insert("mul", [x, builder.constant(np.array(2.0))], (), x.type)
        >>> y.replace_input(0, doubled.output)
        >>> print(graph)
        graph(%x : float64[2]):
          %1 : float64[] = constant(; array(2.0, 'float64'))
          %2 : float64[2] = mul(%x, %1)
          %3 : float64[2] = exp(%2)
          return (%3)
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.point: Node = graph.block.returns

    def insert(
        self, kind: str, inputs: Sequence[Value | None], attributes: Any, *types: Type, location: int = -1
    ) -> Node:
        """Insert a node before the insertion point."""
        return Node(kind, inputs, attributes, types, location).insert_before(self.point)

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """Insert a constant."""
        kind = TensorType.of(array.dtype, array.shape)
        return self.insert("constant", (), (Frozen(np.array(array, order="C")),), kind).output

    @contextmanager
    def at(self, point: Node | Block) -> Iterator[Builder]:
        """Set the insertion point inside the block, to a node to insert before, or to the end of a graph block."""
        before, self.point = self.point, point.returns if isinstance(point, Block) else point
        try:
            yield self
        finally:
            self.point = before
