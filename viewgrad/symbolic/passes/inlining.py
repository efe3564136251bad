"""Inlining: a graph put into a block, in the place of what takes its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from ...trace.graph import Block, Graph, Node, Value

__all__ = ["insert_graph"]


def insert_graph(block: Block, graph: Graph, inputs: Sequence[Value], before: Node | None = None) -> list[Value | None]:
    """Copy the nodes of a graph into a block.

    Arguments:
        block: where to.
        graph: the graph; it stays as it is.
        inputs: what stands for its inputs.
        before: the node in front of which the copies go; the end of the block, if left out.

    Returns:
        What stands for its outputs.
    """
    values: dict[Value, Value | None] = dict(zip(graph.inputs, inputs, strict=True))
    return graph.block.copy_into(block, values, None, before, lambda location: -1)
