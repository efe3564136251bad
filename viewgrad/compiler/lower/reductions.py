"""Lowering of reductions, cumulative sums and products, and matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from typing import Any, Final

import numpy as np

from ...operators.define import OPERATORS
from ...trace.attributes import unfrozen
from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..decompositions import plan_of
from ..element_types import FLOAT, HELD, INTEGER
from ..trace_stream import TracedValue
from .context import LoweringContext, Shape, broadcast_labels, labels_of

FLOATS: Final = frozenset({FLOAT})
LONGEST: Final = 5000  # the number of elements from which a cumulative sum or product becomes a loop
# the number of elements up to which the gradient reads elementwise values instead of recomputing them
FEW: Final = 4096


def _sum(of: LoweringContext, node: Node) -> bool:
    value, options = _only_input(of, node, HELD), options_of(node, "axis", "keepdims")
    dtype = of.type_of(node.output).dtype
    if value is None or options is None or dtype not in (FLOAT, INTEGER):
        return False
    of.assign(node.output, _reduced(of, "sum", of.converted(of.named(value), dtype), *options))
    return True


def _decomposed(of: LoweringContext, node: Node) -> bool:
    """Lower an operator along an axis by the decomposition declared in its row."""
    value = _only_input(of, node)
    if value is None or not of.size_of(value):
        return False
    arguments = [argument.name for argument in OPERATORS[node.kind].signature.plain]
    options = dict(zip(arguments, map(unfrozen, node.attributes or ()), strict=True))
    shape = of.shape_of(value)
    dims = reduced_dims(options.pop("axis"), len(shape))
    keepdims = options.pop("keepdims", True)
    plan = plan_of(node.kind, tuple(options.items()), math.prod(shape[dim] for dim in dims))
    if plan is None:
        return False
    operand = of.named(value)
    has_slope = plan.slope is not None and node.output.type.requires_grad
    labels = labels_of(shape)
    kept = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    values = [of.detached(operand) if has_slope else operand]
    spread = [labels]

    def operand_of(number: int | float) -> tuple[TracedValue | float, Shape]:
        return (values[number], spread[number]) if type(number) is int else (number, ())

    for step in plan.steps[: len(plan.steps) if has_slope else plan.needed]:
        operands = [operand_of(each) for each in step.operands]
        if step.is_reduction:
            found = of.emit(step.operator, operands, shape, kept)
        elif step.is_reduced:
            found = of.apply(step.operator, *[each for each, _ in operands])
        else:
            found = of.emit(step.operator, operands, shape, labels)
        values.append(found)
        spread.append(kept if step.is_reduced else labels)
    result = values[plan.result]
    if has_slope:
        slope = plan.slope_of_kept if math.prod(shape) <= FEW else plan.slope
        assert slope is not None
        given = [(operand, labels), *[operand_of(each) for each in slope.operands[1:]]]
        result = of.emit_with_slope(slope.expression, given, shape, kept)
    of.assign(node.output, result)
    return True


def _running(of: LoweringContext, node: Node) -> bool:
    """Lower `cumsum`, `cumprod` and `prod`; in kernels to a loop in the order of the elements."""
    value = _only_input(of, node)
    options = options_of(node, "axis", "keepdims") if node.kind == "prod" else options_of(node, "axis")
    if value is None or options is None or not of.native or isinstance(options[0], tuple):
        return False
    shape = of.shape_of(value)
    axis = options[0]
    if axis is None:
        shape, axis = (math.prod(shape),), 0
    if not shape or not 0 < shape[axis] <= LONGEST or not math.prod(shape):
        return False
    axis %= len(shape)
    memory, strides = of.read_memory(value), row_strides(shape)
    rest = tuple([n for dim, n in enumerate(shape) if dim != axis])
    moves = tuple([n for dim, n in enumerate(strides) if dim != axis])
    labels = labels_of(rest)
    made = None if node.kind == "prod" else of.new_part("running", math.prod(shape))
    total = None
    for i in range(shape[axis]):
        element = of.read(memory, rest, moves, i * strides[axis])
        if total is None:
            total = element
        else:
            step = "add" if node.kind == "cumsum" else "mul"
            total = of.emit(step, [(total, labels), (element, labels)], rest, labels)
        if made is not None:
            of.write(made, rest, total, labels, moves, i * strides[axis])
    assert total is not None
    if made is not None:
        of.remember(node.output, made)
        return True
    added = len(of.shape_of(node.output)) - len(rest)  # by keepdims
    out = (*labels[:axis], *((-1,) * added), *labels[axis:])
    of.assign(node.output, of.emit("positive", [(total, labels)], rest, out))
    return True


def _matmul(of: LoweringContext, node: Node) -> bool:
    if None in node.inputs or any(of.type_of(value).dtype != FLOAT for value in node.inputs if value is not None):
        return False
    if node.attributes and options_of(node) is None:
        return False
    first, second = [of.named(value) for value in node.inputs if value is not None]
    if not first.shape or not second.shape or (node.kind == "dot" and max(len(first.shape), len(second.shape)) > 2):
        return False
    batch = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    rows, columns = len(first.shape) > 1, len(second.shape) > 1
    row = len(batch)
    middle = row + rows
    sizes = (*batch, *first.shape[-1 - rows :], *second.shape[-1:] * columns)
    left = (*broadcast_labels(first.shape[:-2], batch), *((row,) * rows), middle)
    right = (*broadcast_labels(second.shape[:-2], batch), middle, *((middle + 1,) * columns))
    out = (*range(row), *((row,) * rows), *((middle + 1,) * columns))
    of.assign(node.output, of.emit("mul", [(first, left), (second, right)], sizes, out))
    return True


def _vecdot(of: LoweringContext, node: Node) -> bool:
    if None in node.inputs or any(of.type_of(value).dtype != FLOAT for value in node.inputs if value is not None):
        return False
    options = options_of(node, "axis")
    if options is None or options[0] not in (None, -1):
        return False
    first, second = [of.named(value) for value in node.inputs if value is not None]
    shape = np.broadcast_shapes(first.shape, second.shape)
    operands = [(each, broadcast_labels(each.shape, shape)) for each in (first, second)]
    of.assign(node.output, of.emit("mul", operands, shape, tuple(range(len(shape) - 1))))
    return True


def _outer(of: LoweringContext, node: Node) -> bool:
    if None in node.inputs or any(of.type_of(value).dtype != FLOAT for value in node.inputs if value is not None):
        return False
    first, second = [of.named(value) for value in node.inputs if value is not None]
    if len(first.shape) != 1 or len(second.shape) != 1:
        return False
    of.assign(node.output, of.emit("mul", [(first, (0,)), (second, (1,))], (*first.shape, *second.shape), (0, 1)))
    return True


def _clip(of: LoweringContext, node: Node) -> bool:
    """Lower `clip` with one or two bounds."""
    kind = of.type_of(node.output)
    if any(value is not None and of.type_of(value).dtype != FLOAT for value in node.inputs) or kind.dtype != FLOAT:
        return False
    given = [value for value in node.inputs if value is not None]
    bounds = "".join(name for name, value in zip(("", "_low", "_high"), node.inputs) if value is not None)
    if not bounds:
        return False
    labels = labels_of(kind.shape)
    operands = [of.broadcast(value, kind.shape) for value in given]
    of.assign(node.output, of.emit(f"clip{bounds}", operands, kind.shape, labels))
    return True


REDUCTIONS: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    **{name: _decomposed for name, operator in OPERATORS.items() if operator.decomposition is not None},
    "sum": _sum, "cumsum": _running, "cumprod": _running, "prod": _running, "matmul": _matmul, "dot": _matmul,
    "vecdot": _vecdot, "outer": _outer, "clip": _clip,
}  # fmt: skip


# -- building blocks ---------------------------------------------------------------------------------------------------


def _reduced(of: LoweringContext, name: str, operand: TracedValue, axis: Any, keepdims: bool) -> TracedValue:
    labels = labels_of(operand.shape)
    dims = reduced_dims(axis, len(labels))
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    return of.emit(name, [(operand, labels)], operand.shape, out, of.stream.sites[operand.site][1])


def _only_input(of: LoweringContext, node: Node, dtypes: Set[Any] = FLOATS) -> Value | None:
    """Return the only input of a node if it has one of the given dtypes, or None."""
    value = node.inputs[0]
    if value is None or any(other is not None for other in node.inputs[1:]):
        return None
    return value if of.type_of(value).dtype in dtypes else None


def options_of(node: Node, *names: str) -> list[Any] | None:
    """Return the named options of a node, or None if another option differs from its default."""
    operator = OPERATORS[node.kind]
    given = dict(zip([argument.name for argument in operator.signature.plain], node.attributes or (), strict=True))
    for argument in operator.signature.plain:
        if argument.name not in names and repr(unfrozen(given[argument.name])) != (argument.default or ""):
            return None
    return [unfrozen(given[name]) for name in names]


def reduced_dims(axis: Any, ndim: int) -> set[int]:
    """Return the dimensions of a reduction."""
    if axis is None:
        return set(range(ndim))
    if not ndim:  # NumPy accepts axis 0 there
        return set()
    return {dim % ndim for dim in (axis if isinstance(axis, tuple) else (axis,))}
