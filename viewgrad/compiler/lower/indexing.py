"""Lowering of reads, writes and additions by constant index arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...trace.attributes import IndexInput, unfrozen
from ...trace.graph import Node
from ...trace.last_use import UNRECORDED
from ..trace_stream import TracedValue
from .context import LoweringContext, Memory, Shape, is_single
from .dynamic_index import is_computed, moved_read, moved_write

ROUNDS: Final = 32  # the maximum number of additions to one position


def _index(of: LoweringContext, node: Node) -> bool:
    value = node.inputs[0]
    assert value is not None
    if is_computed(node) and of.fixed.isdisjoint(node.inputs[1:]):
        of.assign(node.output, moved_read(of, node))
        return True
    (pattern,) = node.attributes
    positions = _positions(of, node, of.shape_of(value), pattern)
    memory = of.read_memory(value)
    many_indices = of.stream.has_many_indices("gather", node.location, memory.base, positions.shape)
    strides = None if many_indices else _strides_of(positions)
    if strides is None:
        of.assign(node.output, of.gather(memory, positions))
    else:
        of.assign(node.output, of.read(memory, positions.shape, strides, int(positions.flat[0])))
    return True


def _index_put(of: LoweringContext, node: Node) -> bool:
    target, value = node.inputs[:2]
    assert target is not None and value is not None
    unrecorded = node.kind in UNRECORDED
    if is_computed(node) and of.fixed.isdisjoint(node.inputs[2:]):
        moved_write(of, node, unrecorded)
        return True
    window, pattern = node.attributes
    numbers = np.arange(of.size_of(target))
    positions = _positions(of, node, window.sizes, pattern, _window_of(numbers, window))
    source = of.operand(value)
    memory = of.write_memory(target)
    given, labels = of.write_operand(source, target, value, positions.shape)
    last = _last_occurrences(positions)
    many_indices = of.stream.has_many_indices("scatter", node.location, memory.base, positions.shape)
    if last is not None:
        part, labels = _picked(of, given, labels, positions.shape, last)
        of.scatter(memory, positions.reshape(-1)[last], part, labels, unrecorded)
    elif many_indices or (strides := _strides_of(positions)) is None:
        of.scatter(memory, positions, given, labels, unrecorded)
    else:
        of.write(memory, positions.shape, given, labels, strides, int(positions.flat[0]), unrecorded=unrecorded)
    of.remember(node.output, memory)
    return True


def _index_add(of: LoweringContext, node: Node) -> bool:
    """Add a value to elements of a buffer; repeated elements accumulate, one occurrence after another."""
    target, value = node.inputs[:2]
    assert target is not None and value is not None
    window, pattern = node.attributes
    numbers = np.arange(of.size_of(target))
    positions = _positions(of, node, window.sizes, pattern, _window_of(numbers, window))
    rounds = _rounds(positions)
    if len(rounds) > ROUNDS or is_single(target):
        raise of.refused("adding to the same element many times is not compiled")
    source = of.operand(value)
    memory = of.write_memory(target)
    given, labels = of.write_operand(source, target, value, positions.shape)
    for chosen in rounds:
        part, of_part = _picked(of, given, labels, positions.shape, chosen)
        here = positions.reshape(-1)[chosen]
        before = of.gather(memory, here)
        total = of.emit("add", [(before, (0,)), (part, of_part)], here.shape, (0,), of.type_of(target).dtype.char)
        of.scatter(memory, here, total, (0,), node.kind in UNRECORDED)
    of.remember(node.output, memory)
    return True


def _picked(of: LoweringContext, given: Any, labels: Shape, shape: Shape, chosen: Any) -> tuple[Any, Shape]:
    """Return selected elements of a value that is broadcast to a shape, in sequence, and their labels."""
    if type(given) is not TracedValue:
        return given, ()
    memory: Memory = of.new_part("picked", math.prod(shape), of.dtype_of(given))
    of.write(memory, shape, given, labels)
    return of.gather(memory, chosen), (0,)


def _positions(
    of: LoweringContext, node: Node, shape: Shape, pattern: Any, numbers: Any = None
) -> np.ndarray[Any, Any]:
    """Return the numbers of the elements that an index selects.

    Arguments:
        of, node: the context and the node.
        shape: the shape of the indexed array.
        pattern: the index.
        numbers: the element numbers of the array; by default, those of an array in C order.
    """
    given = node.inputs[1 if node.kind == "gather_at" else 2 :]
    known = [None if value is None else of.expected.get(value) for value in given]
    if any(type(item) is IndexInput and known[item.number] is None for item in pattern):
        raise of.refused("an index by computed arrays is not compiled")
    pattern = [known[item.number] if type(item) is IndexInput else item for item in pattern]
    if numbers is None:
        numbers = np.arange(math.prod(shape)).reshape(shape)
    found: np.ndarray[Any, Any] = np.asarray(numbers[tuple([unfrozen(item) for item in pattern])])
    return found


def _last_occurrences(positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return the indices of positions that do not occur again later, or None if no position is repeated."""
    flat = positions.reshape(-1)
    _, first = np.unique(flat[::-1], return_index=True)
    return None if len(first) == flat.size else np.sort(flat.size - 1 - first)


def _rounds(positions: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the positions of first occurrences of indices, then those of second occurrences, and so on."""
    flat = positions.reshape(-1)
    order = np.argsort(flat, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(flat[order]) != 0]) if flat.size else np.zeros(0, int)
    ranks = np.empty(flat.size, int)
    ranks[order] = np.arange(flat.size) - np.repeat(begins, np.diff(np.r_[begins, flat.size]))
    return [np.flatnonzero(ranks == rank) for rank in range(int(ranks.max(initial=-1)) + 1)]


def _strides_of(positions: np.ndarray[Any, Any]) -> Shape | None:
    """Return the strides of the window that the positions form, or None if they do not form one or are repeated."""
    if not positions.size:
        return None
    strides = tuple([
        int(positions.take(1, axis).flat[0] - positions.flat[0]) if n > 1 else 0
        for axis, n in enumerate(positions.shape)
    ])
    window = positions.flat[0] + sum(np.ix_(*[np.arange(n) * step for n, step in zip(positions.shape, strides)]))
    return strides if np.array_equal(window, positions) and np.unique(positions).size == positions.size else None


def _window_of(flat: np.ndarray[Any, Any], window: Any) -> np.ndarray[Any, Any]:
    """Return a window of an array in C order."""
    strides = [stride * flat.itemsize for stride in window.strides]
    return np.ndarray(window.sizes, flat.dtype, flat, window.offset * flat.itemsize, strides)


INDEXING: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    "gather_at": _index, "put_at": _index_put, "put_at_unrecorded": _index_put, "add_at": _index_add,
    "add_at_unrecorded": _index_add,
}  # fmt: skip
