"""The verifier, which checks that a graph and each of its nodes are well formed."""

from __future__ import annotations

from ..errors import GraphError
from .graph import Block, Graph, Node, Value
from .signature import ResultSpec, Signature
from .type_rules import fault_of, may_require_grad


def verify(graph: Graph) -> None:
    """Check that a graph is well formed.

    Values are defined before they are used, lists are linked, and users are registered. Each node has inputs, outputs
    and attributes that are valid for its kind, with matching shapes and dtypes.

    Arguments:
        graph: the graph.

    Raises:
        GraphError: if the graph is not well formed; the message names the node and the problem.
    """
    uses: dict[Value, int] = {}
    known = set(graph.inputs)
    seen: set[int] = set()
    _verify_block(graph, graph.block, known, uses, seen)
    for node in graph.nodes():
        fault = fault_of(node)
        if fault is not None:
            raise _error(graph, node, fault)
    for value in graph.inputs:
        if not may_require_grad(value.type):
            raise _error(graph, value.node, f"returns {value.type}, which cannot carry a gradient")
    if graph.signature is not None:
        _verify_signature(graph, graph.signature)


def _verify_signature(graph: Graph, signature: Signature) -> None:
    """Check that the signature describes the inputs and outputs of the graph."""
    kinds = [value.type.with_grad(False) for value in graph.inputs]
    if kinds != [spec.type.with_grad(False) for spec in signature.inputs]:
        said = ", ".join([str(spec.type) for spec in signature.inputs])
        raise GraphError(f"the graph takes {', '.join(map(str, kinds)) or 'nothing'}, but its signature says {said}")
    results = [spec for spec in signature.results if isinstance(spec, ResultSpec)]
    outputs = [(spec.output, spec.type) for spec in results]
    outputs += [(spec.output, signature.inputs[spec.input].type) for spec in signature.mutations]
    for number, kind in outputs:
        value = graph.outputs[number] if number < len(graph.outputs) else None
        if value is None or value.type.with_grad(False) != kind.with_grad(False):
            found = "missing" if value is None else str(value.type)
            raise GraphError(f"the output {number} of the graph is {found}, but its signature says {kind}")


def _verify_block(graph: Graph, block: Block, known: set[Value], uses: dict[Value, int], seen: set[int]) -> None:
    given: list[Value] = list(block.inputs)
    before = None
    node = block.first
    while True:
        if node.prev is not before:
            raise _error(graph, node, "is not linked to the node before it")
        if node.block is not block:
            raise _error(graph, node, "is linked into a block other than its own")
        if id(node) in seen:
            raise _error(graph, node, "occurs in two places")
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
            raise _error(graph, before, "is the last node of a block, but not its return")
    for value in given:
        if len(value.users) != uses.get(value, 0):
            raise _error(graph, value.node, f"has {uses.get(value, 0)} uses, but lists {len(value.users)}")
    known.difference_update(given)  # must not be used from outside


def _verify_values(graph: Graph, node: Node, known: set[Value], uses: dict[Value, int]) -> None:
    for number, value in enumerate(node.inputs):
        if value is None:
            continue
        if value not in known:
            raise _error(graph, node, f"takes a value as input {number} that is not defined before it")
        if node not in value.users:
            raise _error(graph, node, f"is not registered as a user of its input {number}")
        uses[value] = uses.get(value, 0) + 1
    for number, value in enumerate(node.outputs):
        if value.node is not node:
            raise _error(graph, node, f"is not the node of its output {number}")


def _error(graph: Graph, node: Node, what: str) -> GraphError:
    return GraphError(f"the node {node.kind} at {graph.where(node)} {what}")
