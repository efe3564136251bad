"""Completion of windows of length 0 and 1 with the strides and offsets that they have in an enclosing loop.

A graph does not determine the stride of a dimension of length 1, or the offset of a window without elements. In `a[i,
:i]`, they follow from the windows that the same line accesses in the next iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..trace.graph import Graph, Node, Value
from ..trace.types import Window

PERIODS: Final = 6  # the maximum number of windows of one base that are distinguished on one line
KINDS: Final = frozenset({"read", "write", "overwrite"})


def completed_windows(graph: Graph) -> dict[Node, Window]:
    """Return windows for reads and writes of length 0 or 1, whose strides match those of the accesses around them.

    Arguments:
        graph: the graph.
    """
    rows: dict[Any, list[Node]] = {}
    roots: dict[Value, Value] = {}
    unknown = set()
    for node in graph.block:
        if node.kind not in KINDS:
            continue
        base = node.inputs[0]
        assert base is not None
        root = roots.get(base, base)
        if node.kind != "read":
            roots[node.output] = root
        sizes = node.attributes.sizes
        key = (node.kind, root, node.location, len(sizes))
        rows.setdefault(key, []).append(node)
        if sizes and min(sizes) < 2:
            unknown.add(key)
    found: dict[Node, Window] = {}
    for key in unknown:
        nodes = rows[key]
        for period in range(1, PERIODS + 1):
            lanes = [nodes[start::period] for start in range(period)]
            strides = [_strides(lane) for lane in lanes]
            if all(each is not None for each in strides):
                for lane, steps in zip(lanes, strides):
                    found.update(_completed(lane, steps or []))
                break
    return found


def _strides(lane: Sequence[Node]) -> list[int] | None:
    """Return the strides that all windows have in common as far as they are known, or None if they differ."""
    known: list[int | None] = [None] * len(lane[0].attributes.sizes) if lane else []
    for node in lane:
        window = node.attributes
        if 0 in window.sizes:
            continue
        for dim, (size, stride) in enumerate(zip(window.sizes, window.strides)):
            if size > 1:
                if known[dim] not in (None, stride):
                    return None
                known[dim] = stride
    return [stride or 0 for stride in known]


def _completed(lane: Sequence[Node], strides: list[int]) -> Iterable[tuple[Node, Window]]:
    steps = tuple(strides)
    for position, node in enumerate(lane):
        window: Window = node.attributes
        if 0 in window.sizes:
            offset = _offset(lane, position)
            if offset is not None:
                yield node, Window(window.sizes, steps, offset, window.dtype)
        elif window.strides != steps:
            yield node, Window(window.sizes, steps, window.offset, window.dtype)


def _offset(lane: Sequence[Node], position: int) -> int | None:
    """Return the start of a window without elements, computed from the two windows before it or after it."""
    for direction in (1, -1):
        one, two = position + direction, position + 2 * direction
        if 0 <= min(one, two) and max(one, two) < len(lane):
            near, far = lane[one].attributes, lane[two].attributes
            if 0 not in near.sizes and 0 not in far.sizes and sum(near.sizes) < sum(far.sizes):
                return int(2 * near.offset - far.offset)
    return None
