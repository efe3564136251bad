"""Lowering of operators that combine windows of arrays: differences, triangles, cross products, `argmax`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..element_types import BOOL, FLOAT, HELD, INTEGER
from ..trace_stream import TracedValue
from .context import LoweringContext, Shape, labels_of
from .reductions import options_of, reduced_dims

MOST: Final = 8  # the maximum order of repeated differences


def _window(of: LoweringContext, value: Value, starts: Sequence[int], sizes: Shape) -> TracedValue:
    """Return a part of an array, given its start and shape."""
    strides = row_strides(of.shape_of(value))
    return of.read(of.read_memory(value), sizes, strides, sum(start * stride for start, stride in zip(starts, strides)))


def _floats(of: LoweringContext, node: Node) -> list[Value] | None:
    """Return the inputs of a node, if all are floats and nonempty."""
    values = [value for value in node.inputs if value is not None]
    if len(values) < len(node.inputs) or any(of.type_of(value).dtype != FLOAT for value in values):
        return None
    return values if all(of.size_of(value) for value in values) else None


def _diff(of: LoweringContext, node: Node) -> bool:
    values, options = _floats(of, node), options_of(node, "n", "axis")
    if values is None or options is None or not of.size_of(node.output):
        return False
    times, axis = options
    shape = of.shape_of(values[0])
    if not 1 <= times <= MOST or not shape:
        return False
    axis %= len(shape)
    sizes = tuple([n - (dim == axis) for dim, n in enumerate(shape)])
    begin = [0] * len(shape)
    low = _window(of, values[0], begin, sizes)
    begin[axis] = 1
    found = of.apply("sub", _window(of, values[0], begin, sizes), low)
    for _ in range(times - 1):
        made, strides = of.new_part("differences", math.prod(sizes)), row_strides(sizes)
        of.write(made, sizes, found)
        sizes = tuple([n - (dim == axis) for dim, n in enumerate(sizes)])
        found = of.apply("sub", *[of.read(made, sizes, strides, moved * strides[axis]) for moved in (1, 0)])
    of.assign(node.output, found)
    return True


def _extremum_place(of: LoweringContext, node: Node) -> bool:
    """Lower `argmax` and `argmin`: the least index of an element that is the extremum or NaN."""
    values, options = _floats(of, node), options_of(node, "axis", "keepdims")
    if values is None or options is None:
        return False
    axis, keepdims = options
    operand = of.named(values[0])
    shape, ndim = operand.shape, len(operand.shape)
    if not shape:
        return False
    labels = tuple(range(ndim))
    dims = reduced_dims(axis, ndim)
    spread = tuple([-1 if dim in dims else dim for dim in labels])
    extremum = of.emit("greatest" if node.kind == "argmax" else "least", [(operand, labels)], shape, spread)
    counted = np.arange(math.prod(shape)).reshape(shape) if axis is None else np.arange(shape[axis % ndim])
    numbers = of.constant("numbers", counted.astype(float), shared=True)
    along = labels if axis is None else (axis % ndim,)
    hits = of.emit("tie_hit", [(operand, labels), (extremum, spread)], shape, labels)
    positions = of.emit("index_if_hit", [(hits, labels), (numbers, along)], shape, labels)
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    first = of.emit("least", [(positions, labels)], shape, out)
    of.assign(node.output, of.converted(first, INTEGER))
    return True


def _part_of_matrix(of: LoweringContext, node: Node) -> bool:
    """Lower `tril` and `triu`, which set the elements of the other triangle to zero."""
    values, options = _floats(of, node), options_of(node, "k")
    if values is None or options is None or len(of.shape_of(values[0])) < 2:
        return False
    shape = of.shape_of(values[0])
    part = np.tril if node.kind == "tril" else np.triu
    kept = part(np.ones(shape[-2:]), options[0])
    mask = of.constant(f"{node.kind} {options[0]}", kept, shared=True)
    labels = labels_of(shape)
    taken = [(of.converted(mask, BOOL), labels[-2:]), (of.named(values[0]), labels), (0.0, ())]
    of.assign(node.output, of.emit("where", taken, shape, labels))
    return True


def _cross(of: LoweringContext, node: Node) -> bool:
    values, options = _floats(of, node), options_of(node, "axis")
    if values is None or options is None or options[0] not in (-1, None):
        return False
    shapes = [of.shape_of(value) for value in values]
    if any(not shape or shape[-1] != 3 for shape in shapes) or shapes[0] != shapes[1]:
        return False
    shape = shapes[0]
    sizes, labels = shape[:-1], tuple(range(len(shape) - 1))
    made = of.new_part("crossed", math.prod(shape))
    strides = row_strides(shape)
    parts = [[_window(of, value, (*(0,) * len(sizes), dim), (*sizes, 1)) for dim in range(3)] for value in values]
    along = (*labels, -1)
    for dim in range(3):
        one, other = (dim + 1) % 3, (dim + 2) % 3
        products = [
            of.emit("mul", [(parts[0][first], along), (parts[1][second], along)], sizes, labels)
            for first, second in ((one, other), (other, one))
        ]
        of.write(made, sizes, of.apply("sub", *products), labels, strides[:-1], dim)
    of.remember(node.output, made)
    return True


def _tensordot(of: LoweringContext, node: Node) -> bool:
    """Lower `tensordot`: sums of products over the last axes of the first array and the first axes of the second."""
    values, options = _floats(of, node), options_of(node, "axes")
    if values is None or options is None:
        return False
    shapes = [of.shape_of(value) for value in values]
    axes = options[0]
    if isinstance(axes, (int, np.integer)):
        sides = [list(range(len(shapes[0]) - axes, len(shapes[0]))), list(range(axes))]
    else:
        sides = [[int(axis) for axis in np.atleast_1d(side)] for side in axes]
        sides = [[axis % len(shape) for axis in side] for side, shape in zip(sides, shapes)]
    rest = [[dim for dim in range(len(shape)) if dim not in side] for side, shape in zip(sides, shapes)]
    kept = len(rest[0]) + len(rest[1])
    order = [(shapes[number], dim) for number in (0, 1) for dim in rest[number]]
    sizes = tuple([shape[dim] for shape, dim in [*order, *[(shapes[0], dim) for dim in sides[0]]]])
    labels = []
    for number, shape in enumerate(shapes):
        first = number * len(rest[0])
        along = {dim: first + position for position, dim in enumerate(rest[number])}
        along |= {dim: kept + position for position, dim in enumerate(sides[number])}
        labels.append(tuple([along[dim] for dim in range(len(shape))]))
    taken = [(of.named(value), each) for value, each in zip(values, labels)]
    of.assign(node.output, of.emit("mul", taken, sizes, tuple(range(kept))))
    return True


def _searchsorted(of: LoweringContext, node: Node) -> bool:
    """Lower `any`, `all` and `count_nonzero` of bools."""
    (value,), options = node.inputs, options_of(node, "axis", "keepdims")
    if value is None or options is None or of.type_of(value).dtype != BOOL:
        return False
    shape = of.shape_of(value)
    if not shape or not math.prod(shape):
        return False
    axis, keepdims = options
    labels, dims = labels_of(shape), reduced_dims(axis, len(shape))
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    operand = of.named(value)
    count = of.emit("sum", [(of.converted(operand, FLOAT), labels)], shape, out)
    kept = labels_of(count.shape)
    if node.kind == "count_nonzero":
        of.assign(node.output, of.converted(count, INTEGER))
        return True
    if node.kind == "any":
        of.assign(node.output, of.emit("not_equal", [(count, kept), (0.0, ())], count.shape, kept, BOOL.char))
        return True
    full = float(math.prod(shape[dim] for dim in dims))
    of.assign(node.output, of.emit("equal", [(count, kept), (full, ())], count.shape, kept, BOOL.char))
    return True


def _take(of: LoweringContext, node: Node) -> bool:
    """Lower `take` with constant indices."""
    value, given = node.inputs
    options = options_of(node, "axis", "mode")
    if value is None or given is None or options is None or of.type_of(value).dtype not in HELD:
        return False
    if given.node.kind != "constant":
        return False
    indices, (axis, mode) = given.node.attributes[0].array, options
    shape = of.shape_of(value)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    positions = np.asarray(np.take(numbers, indices, axis, mode=mode))
    if not positions.size or positions.shape != of.shape_of(node.output):
        return False
    memory = of.read_memory(value)
    of.assign(node.output, of.gather(memory, positions))
    return True


WINDOWED: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    "diff": _diff, "argmax": _extremum_place, "argmin": _extremum_place, "tril": _part_of_matrix,
    "triu": _part_of_matrix, "cross": _cross, "tensordot": _tensordot, "any": _searchsorted, "all": _searchsorted,
    "count_nonzero": _searchsorted, "take": _take,
}  # fmt: skip
