"""Tuples: lowered to the values in them."""

from __future__ import annotations

from ..graph import Block

__all__ = ["lower_tuples"]

MAKING = frozenset({"TupleConstruct", "ListConstruct"})
TAKING = frozenset({"TupleUnpack", "ListUnpack"})


def lower_tuples(block: Block) -> int:
    """Let what takes a tuple apart that was just put together take its items.

    Returns:
        How many nodes were removed.
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
