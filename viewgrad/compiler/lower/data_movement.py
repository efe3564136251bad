"""Lowering of operators that move elements (concatenating, rolling, padding, tiling, copying), and of `einsum`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from ...operators.define import OPERATORS
from ...trace.attributes import unfrozen
from ...trace.evaluate import forward_call
from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..element_types import FLOAT, HELD
from .context import LoweringContext, labels_of
from .reductions import options_of

MOST: Final = 1_000_000  # elements; larger tables of positions need too much memory
WINDOWS_FROM: Final = 500  # the number of elements from which parts are copied instead of gathered


def _concatenate(of: LoweringContext, node: Node) -> bool:
    """Lower `stack` and `concatenate`: write the parts of an array."""
    shape, dtype = of.shape_of(node.output), of.type_of(node.output).dtype
    options = options_of(node, "axis")
    if any(value is None or of.type_of(value).dtype not in HELD for value in node.inputs) or dtype not in HELD:
        return False
    if options is None:
        return False
    flattened = options[0] is None
    axis = 0 if flattened else options[0] % max(1, len(shape))
    made = of.new_part("joined", math.prod(shape), dtype)
    strides = row_strides(shape)
    step = strides[axis] if len(strides) else 0
    position = 0
    for value in node.inputs:
        assert value is not None
        part = of.converted(of.named(value), dtype)
        if node.kind == "stack":
            moves = (*strides[:axis], *strides[axis + 1 :])
            extent = 1
        elif flattened:
            moves, extent = row_strides(part.shape), math.prod(part.shape)
        else:
            moves, extent = strides, part.shape[axis]
        of.write(made, part.shape, part, None, moves, position * step)
        position += extent
    of.remember(node.output, made)
    return True


def _copy(of: LoweringContext, node: Node) -> bool:
    (value,) = node.inputs
    assert value is not None
    kind = of.type_of(value)
    if kind.dtype not in HELD:
        return False
    labels = labels_of(kind.shape)
    taken = [of.broadcast(value, kind.shape)]
    of.assign(node.output, of.emit("positive", taken, kind.shape, labels, kind.dtype.char))
    return True


def _permute(of: LoweringContext, node: Node) -> bool:
    """Lower operators that move elements by applying the operator to the element numbers."""
    value = _input(of, node)
    if value is None or max(of.size_of(value), of.size_of(node.output)) > MOST or not of.size_of(node.output):
        return False
    shape = of.shape_of(value)
    if node.kind == "roll" and math.prod(shape) >= WINDOWS_FROM and _roll(of, node, value):
        return True
    numbers = np.arange(math.prod(shape)).reshape(shape)
    operator = OPERATORS[node.kind]
    args, keywords = forward_call(operator, [numbers], node.attributes)
    positions = np.asarray(operator.forward(*args, **keywords))
    if positions.shape != of.shape_of(node.output):
        return False
    memory = of.read_memory(value)
    of.assign(node.output, of.gather(memory, positions))
    return True


def _roll(of: LoweringContext, node: Node, value: Value) -> bool:
    """Lower `roll` of a large array to writes of its parts."""
    options = options_of(node, "shift", "axis")
    shape = of.shape_of(value)
    if options is None:
        return False
    shift, axis = options
    if not isinstance(shift, (int, np.integer)) or not isinstance(axis, (int, np.integer)):
        return False
    axis %= len(shape)
    first = int(shift) % shape[axis]
    memory, strides = of.read_memory(value), row_strides(shape)
    made = of.new_part("rolled", math.prod(shape))
    for extent, source, target in ((shape[axis] - first, 0, first), (first, shape[axis] - first, 0)):
        if extent:
            sizes = (*shape[:axis], extent, *shape[axis + 1 :])
            part = of.read(memory, sizes, strides, source * strides[axis])
            of.write(made, sizes, part, None, strides, target * strides[axis])
    of.remember(node.output, made)
    return True


def _pad(of: LoweringContext, node: Node) -> bool:
    options = options_of(node, "pad_width", "mode", "constant_values")
    value = _input(of, node)
    if value is None or options is None:
        return False
    width, mode, constant = options
    if mode != "constant":
        return _permute(of, node)
    shape = of.shape_of(node.output)
    if not isinstance(constant, (int, float, np.number)) or not of.size_of(value):
        return False
    inner = of.shape_of(value)
    numbers = np.pad(np.zeros(inner), width, constant_values=1.0)
    position = int(np.argmin(numbers))  # the position of the first element
    strides = row_strides(shape)
    part = of.named(value)
    made = of.new_part("padded", math.prod(shape))
    of.write(made, shape, float(constant), (), strides)
    of.write(made, inner, part, None, strides, position)
    of.remember(node.output, made)
    return True


def _trace(of: LoweringContext, node: Node) -> bool:
    value = _input(of, node)
    if value is None or options_of(node) is None or len(of.shape_of(value)) != 2:
        return False
    rows, columns = of.shape_of(value)
    count = min(rows, columns)
    if not count:
        return False
    memory = of.read_memory(value)
    diagonal = of.read(memory, (count,), (columns + 1,))
    of.assign(node.output, of.emit("sum", [(diagonal, (0,))], (count,), ()))
    return True


def _einsum_pair(of: LoweringContext, node: Node) -> bool:
    """Lower `einsum` of two operands, whose letters become labels."""
    (subscripts,) = [unfrozen(option) for option in node.attributes or ("",)]
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
        for letter, extent in zip(term, of.shape_of(value), strict=True):
            if sizes.setdefault(letter, extent) != extent:
                return False
    if len(sizes) != len(letters) or not set(result) <= set(sizes):
        return False
    operands = [(of.named(value), tuple(map(letters.index, term))) for value, term in zip(values, terms)]
    extents = tuple([sizes[letter] for letter in letters])
    of.assign(node.output, of.emit("mul", operands, extents, tuple(range(len(result)))))
    return True


DATA_MOVEMENT: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    "stack": _concatenate, "concatenate": _concatenate, "_contiguous_copy": _copy, "roll": _permute, "tile": _permute,
    "pad": _pad, "trace": _trace, "_einsum_pair": _einsum_pair,
}  # fmt: skip


def _input(of: LoweringContext, node: Node) -> Value | None:
    """Return the only input of a node, if its dtype is floating-point."""
    given = [value for value in node.inputs if value is not None]
    return given[0] if len(given) == 1 and of.type_of(given[0]).dtype == FLOAT else None
