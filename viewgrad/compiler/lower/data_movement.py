"""Operators that only move elements (rolling, padding, tiles, copies), and sums of products by subscripts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...operators.define import OPERATORS
from ...trace.attributes import thawed
from ...trace.evaluate import forward_call
from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..element_types import FLOAT, HELD
from .reductions import options_of

if TYPE_CHECKING:
    from ..lowering import Lowering

__all__ = ["REARRANGING"]

MOST: Final = 1_000_000  # elements; tables of the places of more take too much memory
WINDOWS_FROM: Final = 500  # elements; of so many parts are copied rather than elements gathered
Shape = tuple[int, ...]


def _copy(of: Lowering, node: Node) -> bool:
    (value,) = node.inputs
    assert value is not None
    kind = of.type_of(value)
    if kind.dtype not in HELD:
        return False
    labels = tuple(range(len(kind.shape)))
    taken = [of.spread(value, kind.shape)]
    of.values[node.output] = of.emit("positive", taken, kind.shape, labels, kind.dtype.char)
    return True


def _moved(of: Lowering, node: Node) -> bool:
    """The elements of an array at other places, which the operator itself says of their numbers."""
    value = _input(of, node)
    if value is None or max(of._size(value), of._size(node.output)) > MOST or not of._size(node.output):
        return False
    shape = of.type_of(value).shape
    if node.kind == "roll" and math.prod(shape) >= WINDOWS_FROM and _rolled(of, node, value):
        return True
    numbers = np.arange(math.prod(shape)).reshape(shape)
    operator = OPERATORS[node.kind]
    args, keywords = forward_call(operator, [numbers], node.attributes)
    places = np.asarray(operator.forward(*args, **keywords))
    if places.shape != of.type_of(node.output).shape:
        return False
    memory = of.taken(value)
    of.values[node.output] = of.stream.gather(memory.base, places, memory.offset, node.location)
    return True


def _rolled(of: Lowering, node: Node, value: Value) -> bool:
    """A rolled array, whose parts are written each to its place."""
    options = options_of(node, "shift", "axis")
    shape = of.type_of(value).shape
    if options is None:
        return False
    shift, axis = options
    if not isinstance(shift, (int, np.integer)) or not isinstance(axis, (int, np.integer)):
        return False
    axis %= len(shape)
    first = int(shift) % shape[axis]
    memory, strides = of.taken(value), row_strides(shape)
    base, start = of.new_part(("rolled", node.location), math.prod(shape))
    labels = tuple(range(len(shape)))
    for extent, source, target in ((shape[axis] - first, 0, first), (first, shape[axis] - first, 0)):
        if extent:
            sizes = (*shape[:axis], extent, *shape[axis + 1 :])
            at = memory.offset + source * strides[axis]
            part = of.stream.read(memory.base, sizes, strides, at, node.location)
            of.stream.write(base, sizes, strides, start + target * strides[axis], part, labels, node.location)
    of.remember_part(node.output, base, start)
    return True


def _pad(of: Lowering, node: Node) -> bool:
    options = options_of(node, "pad_width", "mode", "constant_values")
    value = _input(of, node)
    if value is None or options is None:
        return False
    width, mode, constant = options
    if mode != "constant":
        return _moved(of, node)
    shape = of.type_of(node.output).shape
    if not isinstance(constant, (int, float, np.number)) or not of._size(value):
        return False
    inner = of.type_of(value).shape
    numbers = np.pad(np.zeros(inner), width, constant_values=1.0)
    place = int(np.argmin(numbers))  # of the first element
    strides, labels = row_strides(shape), tuple(range(len(shape)))
    part = of.named(value)
    base, start = of.new_part(("padded", node.location), math.prod(shape))
    of.stream.write(base, shape, strides, start, float(constant), (), node.location)
    of.stream.write(base, inner, strides, start + place, part, labels, node.location)
    of.remember_part(node.output, base, start)
    return True


def _trace(of: Lowering, node: Node) -> bool:
    value = _input(of, node)
    if value is None or options_of(node) is None or len(of.type_of(value).shape) != 2:
        return False
    rows, columns = of.type_of(value).shape
    count = min(rows, columns)
    if not count:
        return False
    memory = of.taken(value)
    diagonal = of.stream.read(memory.base, (count,), (columns + 1,), memory.offset, node.location)
    of.values[node.output] = of.emit("sum", [(diagonal, (0,))], (count,), ())
    return True


def _einsum_pair(of: Lowering, node: Node) -> bool:
    """A sum of products: each letter is a label."""
    (subscripts,) = [thawed(option) for option in node.attributes or ("",)]
    values = [value for value in node.inputs if value is not None and of.type_of(value).dtype == FLOAT]
    if len(values) != 2 or not isinstance(subscripts, str) or "." in subscripts or "->" not in subscripts:
        return False
    given, _, result = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    letters = [*result, *sorted(set(given) - {",", *result})]
    if len(terms) != 2 or any(len(set(term)) < len(term) for term in (*terms, result)):
        return False
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values):
        for letter, extent in zip(term, of.type_of(value).shape, strict=True):
            if sizes.setdefault(letter, extent) != extent:
                return False
    if len(sizes) != len(letters) or not set(result) <= set(sizes):
        return False
    operands = [(of.named(value), tuple(map(letters.index, term))) for value, term in zip(values, terms)]
    extents = tuple([sizes[letter] for letter in letters])
    of.values[node.output] = of.emit("mul", operands, extents, tuple(range(len(result))))
    return True


REARRANGING: Final[dict[str, Callable[[Any, Node], bool]]] = {
    "_contiguous_copy": _copy, "roll": _moved, "tile": _moved, "pad": _pad, "trace": _trace,
    "_einsum_pair": _einsum_pair,
}  # fmt: skip


def _input(of: Lowering, node: Node) -> Value | None:
    """The only input of a node, where it is of floats."""
    given = [value for value in node.inputs if value is not None]
    return given[0] if len(given) == 1 and of.type_of(given[0]).dtype == FLOAT else None
