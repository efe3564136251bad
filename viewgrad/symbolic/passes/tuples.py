"""Lowering of tuples and lists to the values in them."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import GraphError
from ...trace.graph import Block, Graph, Node, Value
from ...trace.types import ListType, TupleType, Type

MAKING = frozenset({"TupleConstruct", "ListConstruct"})
TAKING = frozenset({"TupleUnpack", "ListUnpack"})


def lower_tuples(block: Block) -> int:
    """Replace the unpacking of a tuple that was just constructed by its items.

    Returns:
        The number of removed nodes.
    """
    removed = 0
    for node in block:
        for inner in node.blocks:
            removed += lower_tuples(inner)
        if node.kind in TAKING and node.inputs[0] is not None and node.inputs[0].node.kind in MAKING:
            for value, item in zip(node.outputs, node.inputs[0].node.inputs, strict=True):
                assert item is not None
                value.replace_all_uses_with(item)
            node.destroy()
            removed += 1
    for node in reversed(block):
        if node.kind in MAKING and not node.output.is_used:
            node.destroy()
            removed += 1
    return removed


def has_tuples(graph: Graph) -> bool:
    """Return whether a graph contains tuples or lists."""
    return any(isinstance(value.type, (TupleType, ListType)) for value in graph.inputs) or any(
        node.kind in MAKING or node.kind in TAKING for node in graph.block
    )


def lower_all_tuples(graph: Graph) -> None:
    """Replace inputs and outputs that are tuples or lists by their items, and lower all other tuples.

    Arguments:
        graph: the graph, which is modified.

    Raises:
        GraphError: if the number of items of a list is unknown.
    """
    if not has_tuples(graph):
        return
    block = graph.block
    inputs = block.inputs
    split: list[tuple[Value, list[Value]]] = []
    order: list[Value] = []
    for value in inputs:
        if isinstance(value.type, (TupleType, ListType)):
            parts = block.add_inputs(list(_item_types(graph, value)))
            split.append((value, parts))
            order.extend(parts)
        else:
            order.append(value)
    for value, parts in split:
        kind = "ListConstruct" if isinstance(value.type, ListType) else "TupleConstruct"
        made = Node(kind, parts, None, (value.type,)).insert_before(block.first)
        value.replace_all_uses_with(made.output)
        name = graph.names.pop(value, None)
        if name is not None:
            graph.names.update({part: f"{name}_{number}" for number, part in enumerate(parts)})
    block.order_inputs(order)
    lower_tuples(block)
    if any(isinstance(value.type, (TupleType, ListType)) for value in block.inputs):
        lower_all_tuples(graph)
        return
    block.set_outputs(list(_items(block.outputs)))
    lower_tuples(block)
    for node in block:
        if node.kind in MAKING or node.kind in TAKING:
            raise GraphError(
                f"the node {node.kind} at {graph.where(node)} takes or returns a tuple that cannot be lowered"
            )


def _item_types(graph: Graph, value: Value) -> Iterator[Type]:
    if isinstance(value.type, TupleType):
        yield from value.type.elements
        return
    assert isinstance(value.type, ListType)
    counts = {len(user.outputs) for user in value.users if user.kind == "ListUnpack"}
    if len(counts) != 1:
        raise GraphError(
            f"the number of items of the input %{graph.names.get(value, '')} of type {value.type} is unknown"
        )
    yield from [value.type.element] * counts.pop()


def _items(values: tuple[Value | None, ...]) -> Iterator[Value | None]:
    for value in values:
        if value is not None and value.node.kind in MAKING:
            yield from _items(value.node.inputs)
        else:
            yield value
