"""Analysis of last uses: which writes may happen in place, and which windows must be copied before they are
overwritten.

A value that is a window of another one shares its buffer. A write may happen in place if the old version is not used
later, except by windows that were read before, which are then copied when they are read. This is the copy-on-write of
eager mode, decided ahead of time. See Note [In-place writes in graphs] in docs/notes/symbolic.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..tensor.saved_windows import share_memory
from .graph import Block, Graph, Node, Value
from .types import TensorType, Window

# Writes that are not recorded in the history of the base.
UNRECORDED: Final = frozenset({"overwrite", "put_at_unrecorded", "add_at_unrecorded"})

# The kinds whose output is a new version of their first input.
WRITES: Final = frozenset(
    {"write", "overwrite", "accumulate", "put_at", "put_at_unrecorded", "add_at", "add_at_unrecorded"}
)
# The writes that NumPy executes as assignments, some of which it computes incorrectly if they read the memory they
# write to (`t[:, 2] = t[1]`).
ASSIGNMENTS: Final = frozenset({"write", "overwrite", "add_at", "add_at_unrecorded"})
ALIASES: Final = frozenset({"read", "detach", "sum_to_size"})  # results that may share the buffer of the first input
SHARED: Final = frozenset({"param", "constant"})  # results in memory that the program does not own
# the maximum number of later writes that a window is compared with; a window that outlives more is copied
COMPARED: Final = 16


@attrs.define(eq=False)
class LastUse:
    """The result of the analysis.

    Attributes:
        last: for each value, the number of the last node that uses it: the length of the block for its outputs, and -1
            for unused values.
        in_place: the writes that may happen in place.
        copied: the reads whose window is copied, since it is overwritten before it is used last.
    """

    last: dict[Value, int]
    in_place: set[Node]
    copied: set[Node]


def last_uses(block: Block) -> LastUse:
    """Analyze a block without nested blocks.

    Arguments:
        block: the block.
    """
    nodes = list(block)
    times = {node: number for number, node in enumerate(nodes)}
    times[block.returns] = len(nodes)
    last = {value: last_use(value, times) for node in (block.params, *nodes) for value in node.outputs}
    in_place, writes, buffers = _writes_in_place(nodes, times, last)
    copied = set(_copied_reads(nodes, times, last, writes, buffers))
    return LastUse(last, in_place, copied)


def outlived(graph: Graph) -> set[Value]:
    """Return the values that are used after a write over them."""
    written: set[Value] = set()
    found: set[Value] = set()
    for node in graph.block:
        found.update([value for value in node.inputs if value is not None and value in written])
        if node.kind in WRITES and node.inputs[0] is not None:
            written.add(node.inputs[0])
    return found | written.intersection(value for value in graph.outputs if value is not None)


def last_use(value: Value, times: dict[Node, int]) -> int:
    """Return the number of the last node that uses a value."""
    return max([times[user] for user in value.users], default=-1)


def _writes_in_place(
    nodes: list[Node], times: dict[Node, int], last: dict[Value, int]
) -> tuple[set[Node], dict[Value, list[int]], dict[Value, Value]]:
    """Return the in-place writes, their times by buffer (identified by its first value), and the buffers."""
    in_place: set[Node] = set()
    writes: dict[Value, list[int]] = {}
    buffers: dict[Value, Value] = {}  # values that occupy a whole buffer of the program's own
    for node in nodes:
        if node.kind in WRITES:
            base = node.inputs[0]
            assert base is not None
            buffer = buffers.get(base)
            output = node.output
            if buffer is not None and last[base] == times[node] and node.inputs.count(base) == 1:
                in_place.add(node)
                buffers[output] = buffer
                writes.setdefault(buffer, []).append(times[node])
            else:
                buffers[output] = output
        elif node.kind not in ALIASES and node.kind not in SHARED:
            for value in node.outputs:
                buffers[value] = value
    return in_place, writes, buffers


def _copied_reads(
    nodes: list[Node],
    times: dict[Node, int],
    last: dict[Value, int],
    writes: dict[Value, list[int]],
    buffers: dict[Value, Value],
) -> Iterable[Node]:
    """Yield the nodes that read a window of a buffer that is overwritten before the last use of the window."""
    inside: dict[Value, tuple[Value, Window | None]] = {}  # the buffer of a value, and its window if it is one
    for node in nodes:
        if node.kind not in ALIASES:
            continue
        base = node.inputs[0]
        assert base is not None
        if base in inside:
            buffer, window = inside[base]
            # A window of a window; its position is not computed.
            window = None if node.kind == "read" or window is None else window
        elif base in buffers:
            buffer, window = buffers[base], node.attributes if node.kind == "read" else None
        else:
            continue
        output = node.output
        overwriting = writes.get(buffer, [])
        first = bisect_right(overwriting, times[node])
        until = last[output]
        later = [
            time for time in overwriting[first : first + COMPARED + 1]
            if time < until or (time == until and nodes[time].kind in ASSIGNMENTS)
        ]  # fmt: skip
        if later and (
            window is None or len(later) > COMPARED or any(meet(window, nodes[time]) for time in later)
        ):
            yield node
        else:
            inside[output] = (buffer, window)


def meet(window: Window, write: Node) -> bool:
    """Return whether a write may overlap a window of the same base; False only if it does not."""
    other = write.attributes if type(write.attributes) is Window else write.attributes[0]
    base = write.output.type
    assert type(base) is TensorType
    if window.dtype is not None or other.dtype is not None:
        return True
    low, high = extent(window)
    other_low, other_high = extent(other)
    if high < other_low or other_high < low:
        return False
    if math.prod(window.sizes) <= 1 and math.prod(other.sizes) <= 1:
        return low == other_low
    return shares(window, other, base)


def shares(window: Window, other: Window, base: TensorType) -> bool:
    """Return whether two windows of a base have an element in common."""
    if 0 in window.sizes or 0 in other.sizes:
        return False
    # the contents are not inspected
    memory: np.ndarray[Any, Any] = as_strided(np.empty(1, np.int8), (base.size,), (1,))
    one, two = (as_strided(memory[each.offset :], each.sizes, each.strides) for each in (window, other))
    return share_memory(one, two)


def extent(window: Window) -> tuple[int, int]:
    """Return the smallest and the largest element number of a window."""
    low = high = window.offset
    for size, stride in zip(window.sizes, window.strides, strict=True):
        if stride < 0:
            low += stride * (size - 1)
        else:
            high += stride * (size - 1)
    return low, high
