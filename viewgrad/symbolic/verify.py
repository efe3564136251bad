"""The verifier: whether a graph is one, and each of its nodes one of its kind."""

from __future__ import annotations

from ..errors import GraphError
from .graph import Block, Graph, Node, Value
from .node_types import fault_of

__all__ = ["verify"]


def verify(graph: Graph) -> None:
    """Check that a graph is one.

    Every value is given before it is taken, lists are linked, and users are known. Each node takes and gives what nodes
    of its kind do: so many values, of such shapes and dtypes, with options that fit.

    Arguments:
        graph: the graph.

    Raises:
        GraphError: where it is none; the message says which node is wrong, and how.
    """
    uses: dict[Value, int] = {}
    known = set(graph.inputs)
    seen: set[int] = set()
    _verify_block(graph, graph.block, known, uses, seen)
    for node in graph.nodes():
        fault = fault_of(node)
        if fault is not None:
            raise _error(graph, node, fault)


def _verify_block(graph: Graph, block: Block, known: set[Value], uses: dict[Value, int], seen: set[int]) -> None:
    given: list[Value] = list(block.inputs)
    before = None
    node = block.first
    while True:
        if node.prev is not before:
            raise _error(graph, node, "does not know the node before it")
        if node.block is not block:
            raise _error(graph, node, "stands in a block of which it does not know")
        if id(node) in seen:
            raise _error(graph, node, "stands in two places")
        seen.add(id(node))
        _verify_values(graph, node, known, uses)
        if node is block.returns:
            break
        for each in node.blocks:
            if each.owner is not node:
                raise _error(graph, node, "does not own its block")
            known.update(each.inputs)
            _verify_block(graph, each, known, uses, seen)
        given.extend(node.outputs)
        known.update(node.outputs)
        before = node
        node = node.next
        if node is None:
            raise _error(graph, before, "is the last of a block without being its return")
    for value in given:
        if len(value.users) != uses.get(value, 0):
            raise _error(graph, value.node, f"has {uses.get(value, 0)} uses, and knows of {len(value.users)}")
    known.difference_update(given)  # nothing outside may take them


def _verify_values(graph: Graph, node: Node, known: set[Value], uses: dict[Value, int]) -> None:
    for number, value in enumerate(node.inputs):
        if value is None:
            continue
        if value not in known:
            raise _error(graph, node, f"takes a value as input {number} that is not given before it")
        if node not in value.users:
            raise _error(graph, node, f"is no user of its input {number}")
        uses[value] = uses.get(value, 0) + 1
    for number, value in enumerate(node.outputs):
        if value.node is not node:
            raise _error(graph, node, f"is not the node of its output {number}")


def _error(graph: Graph, node: Node, what: str) -> GraphError:
    return GraphError(f"the node {node.kind} at {graph.where(node)} {what}")
