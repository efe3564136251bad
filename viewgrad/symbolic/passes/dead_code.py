"""Elimination of dead code: nodes with unused outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...trace.graph import Block, Value

HAVE_EFFECTS: Final = frozenset({"guard", "return"})


def eliminate_dead_code(block: Block, on_live: Callable[[set[Value]], None] | None = None) -> int:
    """Remove nodes whose outputs are unused, except guards, and unused outputs of nested blocks.

    Arguments:
        block: the block.
        on_live: a function that is called with the live values before anything is removed.

    Returns:
        The number of removed nodes.
    """
    if on_live is not None:
        on_live(live_values(block))
    removed = 0
    for node in reversed(block):
        if node.kind in HAVE_EFFECTS:
            continue
        outputs = node.outputs
        if not any(value.is_used for value in outputs):
            node.destroy()
            removed += 1
            continue
        for inner in node.blocks:
            for number in reversed(range(len(outputs))):
                if not outputs[number].is_used:
                    node.drop_output(number)
                    inner.set_outputs([value for i, value in enumerate(inner.outputs) if i != number])
            removed += eliminate_dead_code(inner)
    return removed


def live_values(block: Block) -> set[Value]:
    """Return the values of a block and its nested blocks on which outputs or guards depend."""
    live: set[Value] = {value for value in block.outputs if value is not None}
    for node in reversed(block):
        if node.kind in HAVE_EFFECTS or not live.isdisjoint(node.outputs):
            live.update(value for value in node.inputs if value is not None)
            for inner in node.blocks:
                live |= live_values(inner)
    return live
