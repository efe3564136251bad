"""Elimination of common subexpressions: nodes with the same operation on the same values are merged."""

from __future__ import annotations

from typing import Any

from ...trace.attributes import typed
from ...trace.graph import Block, Node, Value
from .constants import is_pure


def eliminate_common_subexpressions(block: Block) -> int:
    """Merge nodes that compute the same operation on the same values.

    Returns:
        The number of removed nodes.
    """
    return _eliminate(block, {})


def _eliminate(block: Block, known: dict[Any, Node]) -> int:
    removed = 0
    if block.owner is not None:
        known = dict(known)
    for node in block:
        for inner in node.blocks:
            removed += _eliminate(inner, known)
        key = key_of(node)
        if key is None:
            continue
        found = known.setdefault(key, node)
        if found is not node:
            for old, new in zip(node.outputs, found.outputs, strict=True):
                old.replace_all_uses_with(new)
            node.destroy()
            removed += 1
    return removed


def key_of(node: Node) -> Any:
    """Return a key shared by nodes with the same computation, or None for a node that cannot be merged."""
    if not is_pure(node) or node.kind == "full":
        return None
    inputs: tuple[Value | None, ...] = node.inputs
    outputs = tuple([value.type for value in node.outputs])
    try:
        key = (node.kind, inputs, typed(node.attributes), outputs)
        hash(key)
    except TypeError:
        return None
    return key
