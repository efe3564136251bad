"""Lowering of indices that are computed integers or arguments, which move a window.

`emission[state, seen[t]]` is compiled to one program for all values of `seen`. If an index is out of range, a guard
fails, and the function itself raises the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...trace.attributes import IndexInput
from ...trace.graph import Graph, Node, Value
from ...trace.types import TensorType, row_strides
from ..element_types import BOOL, INTEGER, as_number
from ..trace_stream import Moved, TracedValue
from .context import LoweringContext, Shape, broadcast_labels

COMPUTED: Final = "a computed index"  # the marker that the trace uses for integers in an index


def is_computed(node: Node) -> bool:
    """Return whether a node has an index that is computed."""
    return any(type(item) is IndexInput for item in node.attributes[-1])


def fixed_indices(graph: Graph) -> set[Value]:
    """Return the integers that must not change, because indexing by them cannot be compiled."""
    found: set[Value] = set()
    for node in graph.block:
        if node.kind == "gather_at":
            given = node.inputs[1:]
        elif node.kind in ("put_at", "add_at", "put_at_unrecorded", "add_at_unrecorded"):
            given = node.inputs[2:]
        else:
            continue
        values = [value for value in given if value is not None]
        if values and not _is_fit(node, values):
            found.update(values)
    return found


def _is_fit(node: Node, given: Sequence[Value]) -> bool:
    """Return whether a read or write by computed integers can be compiled."""
    kinds: list[Any] = [value.type for value in given]
    if any(type(kind) is not TensorType or kind.dtype != INTEGER for kind in kinds):
        return False
    if any(type(item) not in (int, slice, type(None), type(...), IndexInput) for item in node.attributes[-1]):
        return False
    source: Any = node.inputs[0].type  # type: ignore[union-attr]
    window = None if node.kind == "gather_at" else node.attributes[0]
    if not math.prod(source.shape) or (window is not None and window.dtype is not None):
        return False
    if node.kind == "gather_at":
        return True
    # Repeated indices, for which the last write is kept or writes accumulate, are supported for a single index only.
    return node.kind.startswith("put_at") and not any(kind.shape for kind in kinds)


def moved_read(of: LoweringContext, node: Node) -> TracedValue:
    """Return the value of a read by computed integers."""
    source = node.inputs[0]
    assert source is not None
    shape = of.shape_of(source)
    memory = of.read_memory(source)
    sizes, strides, offset, moves = _window(of, shape, row_strides(shape), node.attributes[0], node.inputs[1:])
    return of.read(memory, sizes, strides, offset, moves)


def moved_write(of: LoweringContext, node: Node, unrecorded: bool) -> None:
    """Lower a write by computed integers."""
    target, value = node.inputs[:2]
    assert target is not None and value is not None
    window, pattern = node.attributes
    source = of.operand(value)
    sizes, strides, offset, moves = _window(of, window.sizes, window.strides, pattern, node.inputs[2:])
    memory = of.write_memory(target)
    given, labels = of.write_operand(source, target, value, sizes)
    at = window.offset + offset
    of.write(memory, sizes, given, labels, strides, at, moves=moves, unrecorded=unrecorded)
    of.remember(node.output, memory)


def _window(
    of: LoweringContext, shape: Shape, steps: Shape, pattern: Any, given: Sequence[Value | None]
) -> tuple[Shape, Shape, int, list[Moved]]:
    """Return the window that an index selects if its computed integers are 0, and the integers that move it.

    Arguments:
        of: the context.
        shape, steps: the lengths and strides of the indexed array.
        pattern, write_operand: the index, and the integers in it.
    """
    items = _expanded(pattern, len(shape))
    values = {id(item): given[item.number] for item in items if type(item) is IndexInput}
    spread = np.broadcast_shapes(*[of.shape_of(value) for value in values.values() if value is not None])
    begin = _first_of_integers(items)
    sizes: list[int] = []
    strides: list[int] = []
    offset = axis = 0
    moving: list[tuple[Value, int]] = []  # each with its dimension
    for item in items:
        if item is None:
            sizes.append(1)
            strides.append(0)
            continue
        extent, step = shape[axis], steps[axis]
        axis += 1
        if type(item) is slice:
            start, _, by = item.indices(extent)
            sizes.append(len(range(*item.indices(extent))))
            strides.append(by * step)
            offset += start * step if sizes[-1] else 0
        elif type(item) is IndexInput:
            value = values[id(item)]
            assert value is not None
            moving.append((value, axis - 1))
        else:
            offset += (item if item >= 0 else item + extent) * step
    sizes[begin:begin] = spread
    strides[begin:begin] = [0] * len(spread)
    moves = []
    for value, dim in moving:
        along = broadcast_labels(of.shape_of(value), spread)
        labels = tuple([label if label < 0 else begin + label for label in along])
        found = _counted(of, value, shape[dim])
        if type(found) is TracedValue:
            moves.append(Moved(found, labels, steps[dim]))
        else:
            offset += found * steps[dim]
    return tuple(sizes), tuple(strides), offset, moves


def _expanded(pattern: Any, ndim: int) -> list[Any]:
    """Return an index in which an ellipsis and omitted dimensions are replaced by slices."""
    items = list(pattern)
    named = sum(1 for item in items if item is not None and item is not ...)
    if ... not in items:
        items.append(...)
    at = items.index(...)
    items[at : at + 1] = [slice(None)] * (ndim - named)
    return items


def _first_of_integers(items: Sequence[Any]) -> int:
    """Return the position of the integers' dimensions in the result: that of the integers if they are adjacent."""
    positions = [position for position, item in enumerate(items) if type(item) in (int, IndexInput)]
    return positions[0] if positions == list(range(positions[0], positions[-1] + 1)) else 0


def _counted(of: LoweringContext, value: Value, extent: int) -> Any:
    """Return an index counted from the first element, and emit a check that it is in range."""
    operand = of.operand(value)
    if type(operand) is not TracedValue:
        number = as_number(operand.value, INTEGER)  # type: ignore[union-attr]
        return number if number >= 0 else number + extent
    position = of.apply("wrapped_index", operand, extent, dtype=INTEGER.char)
    of.check_none(of.apply("missing", position, dtype=BOOL.char))
    return position
