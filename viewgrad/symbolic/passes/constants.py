"""Constants are pooled, lifted to the front, and folded."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...trace.attributes import Frozen
from ...trace.evaluate import run_node
from ...trace.graph import Block, Node, Value
from ...trace.types import TensorType

FOLDED: Final = 1 << 12  # the maximum number of elements; larger results are computed when the graph runs


def pool_constants(block: Block) -> int:
    """Merge equal constants; those in nested blocks are replaced by one outside.

    Returns:
        The number of removed nodes.
    """
    return _pool(block, {})


def _pool(block: Block, known: dict[Any, Value]) -> int:
    removed = 0
    known = dict(known)
    for node in block:
        if node.kind == "constant":
            key = (node.attributes, node.output.type)
            found = known.setdefault(key, node.output)
            if found is not node.output:
                node.output.replace_all_uses_with(found)
                node.destroy()
                removed += 1
        for inner in node.blocks:
            removed += _pool(inner, known)
    return removed


def lift_constants(block: Block) -> int:
    """Move all constants, including those of nested blocks, to the start of the block, and pool them.

    Returns:
        The number of moved or removed nodes.
    """
    moved = _lift(block, block)
    return moved + pool_constants(block)


def _lift(block: Block, to: Block) -> int:
    moved = 0
    leading = block is to
    place = to.first
    for node in block:
        if node.kind == "constant":
            if not leading:
                if block is not to:
                    place = to.first
                node.unlink().insert_before(place)
                moved += 1
        elif leading:
            leading = False
            place = node
        for inner in node.blocks:
            moved += _lift(inner, to)
    return moved


def fold_constants(block: Block) -> int:
    """Evaluate operators whose inputs are all constants.

    Opaque nodes, guards and random operators are not evaluated, nor are results of more than 4096 elements.

    Returns:
        The number of folded nodes.
    """
    folded = 0
    for node in block:
        for inner in node.blocks:
            folded += fold_constants(inner)
        if not node.inputs or not is_pure(node):
            continue
        if not all(value is not None and value.node.kind == "constant" for value in node.inputs):
            continue
        if any(type(v.type) is not TensorType or v.type.size > FOLDED or v.type.requires_grad for v in node.outputs):
            continue
        arrays = [value.node.attributes[0].array for value in node.inputs if value is not None]
        with np.errstate(all="ignore"):
            results = run_node(node, arrays, str)
        for value, result in zip(node.outputs, results, strict=True):
            made = Node("constant", (), (Frozen(np.array(result, order="C")),), (value.type,), node.location)
            value.replace_all_uses_with(made.insert_before(node).output)
        node.destroy()
        folded += 1
    return folded


def is_pure(node: Node) -> bool:
    """Return whether a node is deterministic and has no side effects."""
    if node.kind in ("guard", "call", "return", "param", "detach") or node.blocks:
        return False
    return not any(hasattr(option, "random") for option in node.attributes or () if type(node.attributes) is tuple)
