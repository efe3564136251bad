"""The memory that a graph keeps for its backward pass, by kind of node and by source line."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

import attrs
import numpy as np

from ...tensor.creation_sites import line_of
from ...tensor.node import AccumulateGrad, Node
from ...tensor.saved import PreservedTensor, SavedConstant, SavedTensor
from ...tensor.tangents import DualSaved
from ...tensor.tensor import Tensor, current_edge
from ...views.copy_slices import CopySlices, CopySlicesOfCopy
from ..text_tables import line_text, table_text
from .describe import nodes_from, saved_entries

WITH_ARRAY: Final = (SavedTensor, SavedConstant, PreservedTensor)


@attrs.define
class MemoryRow:
    """The memory kept by the nodes of one kind, or by the nodes created at one line.

    Arguments:
        name: the kind, or the line.
        nodes: the number of nodes.
        values: the number of values they keep; a value shared by several nodes counts once, for the oldest.
        saved: the number of bytes of these values.
        held: the number of bytes of the buffers kept alive for them; a buffer counts once, for the oldest.
        copied: the number of bytes of the values that were copied before a write.
    """

    name: str
    nodes: int = 0
    values: int = 0
    saved: int = 0
    held: int = 0
    copied: int = 0


@attrs.frozen
class Memory:
    """The memory that a graph keeps; `print` shows it as two tables.

    Arguments:
        total: the totals.
        kinds: a row for each kind of node.
        lines: a row for each known line of the program.
    """

    total: MemoryRow
    kinds: list[MemoryRow]
    lines: list[MemoryRow]

    def __str__(self) -> str:
        tables = []
        for head, rows in (("node", self.kinds), ("line", self.lines)):
            ordered = sorted(rows, key=lambda row: (-row.held, -row.saved, -row.nodes))
            cells = [attrs.astuple(row)[1:] + (row.name,) for row in ordered]
            last = (*attrs.astuple(self.total)[1:], self.total.name)
            names = ("nodes", "values", "bytes saved", "bytes held", "bytes copied", head)
            tables.append(table_text(names, cells, last, 20))
        return "\n\n".join(tables)


def memory(*tensors: Tensor) -> Memory:
    """Return the memory that the history of tensors keeps for the backward pass.

    A saved window keeps its whole buffer alive: compare `held` with `saved`. Values copied because a write was about to
    change them have their own buffers: see `copied`. Nodes created inside `vg.autograd.profile()` have a known line.
    The memory of the nodes themselves, and of values packed by hooks, is not counted.

    Arguments:
        tensors: tensors such as the loss; history that they share is counted once.

    Returns:
        A record with a row for each kind of node and a row for each line.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.ones(1000, requires_grad=True)
        >>> y = x * 2
        >>> v = y[:10]
        >>> loss = (v * v).sum()
        >>> y[0] = 5.0
        >>> kept = vg.autograd.graph.memory(loss).total
        >>> kept.nodes, kept.values, kept.saved, kept.held, kept.copied
        (4, 2, 88, 88, 80)
    """
    total = MemoryRow("in all")
    kinds: dict[Hashable, MemoryRow] = {}
    lines: dict[Hashable, MemoryRow] = {}
    values: set[int] = set()
    buffers: set[int] = set()
    for node in reversed(nodes_from(current_edge(tensor) for tensor in tensors)):
        if isinstance(node, AccumulateGrad):  # a leaf, which saves nothing
            continue
        line, name = line_of(node), node.name()
        rows = (
            total,
            kinds.setdefault(name, MemoryRow(name)),
            lines.setdefault(line, MemoryRow(line_text(line))),
        )
        for row in rows:
            row.nodes += 1
        for array, copied in _saved_arrays(node):
            buffer = _buffer(array)
            value = id(array) if isinstance(array, np.ndarray) else None
            seen = value in values
            held = 0 if id(buffer) in buffers else buffer.nbytes
            if value is not None:
                values.add(value)
                buffers.add(id(buffer))
            for row in () if seen else rows:
                row.values += 1
                row.saved += array.nbytes
                row.held += held
                row.copied += array.nbytes if copied else 0
    return Memory(total, list(kinds.values()), list(lines.values()))


def _saved_arrays(node: Node) -> Iterator[tuple[Any, bool]]:
    """Yield the arrays and numbers that a node saves, each with whether it was copied before a write."""
    if isinstance(node, CopySlices) and not isinstance(node, CopySlicesOfCopy):
        yield from _saved_arrays(node.fn)
    for _, saved in saved_entries(node):
        inner = saved.inner if isinstance(saved, DualSaved) else saved
        if type(inner) in WITH_ARRAY:
            yield inner.array, type(inner) is PreservedTensor
        elif isinstance(inner, np.ndarray | np.generic):
            yield inner, False


def _buffer(array: Any) -> Any:
    """Return the array that owns the memory of `array`, as recorded by NumPy."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array
