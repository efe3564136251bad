"""Folding of sums to a size: consecutive ones are merged, and those that sum nothing are removed."""

from __future__ import annotations

from ...trace.graph import Block
from ...trace.types import TensorType


def fold_sum_to_size(block: Block) -> int:
    """Merge consecutive sums to a size, and remove those that do not change the size.

    Returns:
        The number of removed sums.
    """
    removed = 0
    for node in block:
        for inner in node.blocks:
            removed += fold_sum_to_size(inner)
        if node.kind != "sum_to_size":
            continue
        source = node.inputs[0]
        assert source is not None
        earlier = source.node
        if earlier.kind == "sum_to_size":
            node.replace_input(0, earlier.inputs[0])
            if not earlier.output.is_used:
                earlier.destroy()
                removed += 1
        source = node.inputs[0]
        assert source is not None and type(source.type) is TensorType
        if source.type.shape == node.attributes[0]:
            node.output.replace_all_uses_with(source)
            node.destroy()
            removed += 1
    return removed
