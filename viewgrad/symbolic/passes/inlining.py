"""Inlining of a graph into a block."""

from __future__ import annotations

from collections.abc import Sequence

from ...trace.graph import Block, Graph, Node, Value


def insert_graph(block: Block, graph: Graph, inputs: Sequence[Value], before: Node | None = None) -> list[Value | None]:
    """Copy the nodes of a graph into a block.

    Arguments:
        block: the block to copy into.
        graph: the graph, which is not modified.
        inputs: the replacements of its inputs.
        before: the node before which to insert the copies; by default the end of the block.

    Returns:
        The replacements of its outputs.
    """
    values: dict[Value, Value | None] = dict(zip(graph.inputs, inputs, strict=True))
    return graph.block.copy_into(block, values, None, before, lambda location: -1)
