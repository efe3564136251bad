"""Lowering of reductions, running sums, and products of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from typing import Any, Final

import numpy as np

from ...operators.define import OPERATORS
from ...trace.attributes import unfrozen
from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..element_types import FLOAT, HELD, INTEGER
from ..trace_stream import TracedValue
from .context import LoweringContext, Shape, broadcast_labels, labels_of

FLOATS: Final = frozenset({FLOAT})
LONGEST: Final = 5000  # elements from which a running sum or product becomes a loop
FEW: Final = 4096  # elements up to which the positions of an extremum are kept


def _sum(of: LoweringContext, node: Node) -> bool:
    value, options = _only_input(of, node, HELD), options_of(node, "axis", "keepdims")
    dtype = of.type_of(node.output).dtype
    if value is None or options is None or dtype not in (FLOAT, INTEGER):
        return False
    of.assign(node.output, _reduced(of, "sum", of.converted(of.named(value), dtype), *options))
    return True


def _mean(of: LoweringContext, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis", "keepdims")
    if value is None or options is None:
        return False
    of.assign(node.output, _averaged(of, of.named(value), *options))
    return True


def _var(of: LoweringContext, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis", "ddof", "keepdims")
    if value is None or options is None or not of.size_of(value):
        return False
    axis, ddof, keepdims = options
    operand = of.named(value)
    shape = operand.shape
    dims = reduced_dims(axis, len(shape))
    count = math.prod(shape[dim] for dim in dims) - ddof
    if count <= 0:
        return False
    labels = labels_of(shape)
    mean = _averaged(of, operand, axis, True)
    distances = of.emit("sub", [(operand, labels), (mean, _kept_labels(shape, dims))], shape, labels)
    squares = of.emit("square", [(distances, labels)], shape, labels)
    total = _reduced(of, "sum", squares, axis, keepdims)
    spread = _divided(of, total, float(count))
    if node.kind == "std":
        out = labels_of(spread.shape)
        spread = of.emit("root", [(spread, out)], spread.shape, out)
    of.assign(node.output, spread)
    return True


def _vector_norm(of: LoweringContext, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "ord", "axis", "keepdims")
    if value is None or options is None or options[0] != 2:
        return False
    operand = of.named(value)
    labels = labels_of(operand.shape)
    squares = of.emit("square", [(operand, labels)], operand.shape, labels)
    total = _reduced(of, "sum", squares, *options[1:])
    out = labels_of(total.shape)
    of.assign(node.output, of.emit("root", [(total, out)], total.shape, out))
    return True


def _extremum(of: LoweringContext, node: Node) -> bool:
    """Lower `max` and `min`; equal elements share the gradient."""
    value, options = _only_input(of, node), options_of(node, "axis", "keepdims")
    if value is None or options is None or not of.size_of(value):
        return False
    axis, keepdims = options
    operand = of.named(value)
    shape = operand.shape
    if not shape:
        of.assign(node.output, of.emit("positive", [(operand, ())], (), ()))
        return True
    labels = labels_of(shape)
    dims = reduced_dims(axis, len(shape))
    spread = _kept_labels(shape, dims)
    found = _reduced(of, "greatest" if node.kind == "max" else "least", operand, axis, True)
    if not node.output.type.requires_grad:
        out = tuple([dim for dim in labels if keepdims or dim not in dims])
        sizes = tuple([1 if dim in dims else n for dim, n in enumerate(shape) if keepdims or dim not in dims])
        kept = tuple([-1 if dim in dims else out.index(dim) for dim in labels])
        of.assign(node.output, of.emit("detach", [(found, kept)], sizes, labels_of(sizes)))
        return True
    hits = of.emit("tie_hit", [(operand, labels), (found, spread)], shape, labels)
    count = _reduced(of, "sum", hits, axis, True)
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    taken = [(operand, labels), (found, spread), (count, spread)]
    kind = "tied"
    if math.prod(shape) <= FEW:
        share = of.emit("share", [(hits, labels), (count, spread)], shape, labels)
        taken[2], kind = (share, labels), "tied_by_share"
    of.assign(node.output, of.emit(kind, taken, shape, out))
    return True


def _logsumexp(of: LoweringContext, node: Node) -> bool:
    """Lower `logsumexp`; the gradient of an element is its share, as in the row of the operator."""
    value, options = _only_input(of, node), options_of(node, "axis", "keepdims")
    if value is None or options is None or not of.size_of(value):
        return False
    axis, keepdims = options
    operand = of.named(value)
    shape, labels = operand.shape, labels_of(operand.shape)
    dims = reduced_dims(axis, len(shape))
    plain = of.detached(operand) if value.type.requires_grad else operand
    greatest, powers = _powers(of, plain, axis)
    found = of.apply("add", of.apply("log_of_sum", _reduced(of, "sum", powers, axis, True)), greatest)
    spread = _kept_labels(shape, dims)
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    if not value.type.requires_grad:
        sizes = tuple([1 if dim in dims else n for dim, n in enumerate(shape) if keepdims or dim not in dims])
        kept = tuple([-1 if dim in dims else out.index(dim) for dim in labels])
        of.assign(node.output, of.emit("positive", [(found, kept)], sizes, labels_of(sizes)))
        return True
    infinite = _reduced(of, "sum", of.apply("infinite", plain), axis, True)
    of.assign(node.output, of.emit("logsumexp", [(operand, labels), (found, spread), (infinite, spread)], shape, out))
    return True


def _softmax(of: LoweringContext, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis")
    if value is None or options is None or not of.size_of(value):
        return False
    operand = of.named(value)
    (axis,) = options
    if not operand.shape or axis is None:
        return False
    shape, labels = operand.shape, labels_of(operand.shape)
    spread = _kept_labels(shape, reduced_dims(axis, len(shape)))
    greatest, powers = _powers(of, operand, axis, finite=False)
    total = _reduced(of, "sum", powers, axis, True)
    if node.kind == "softmax":
        of.assign(node.output, of.emit("div", [(powers, labels), (total, spread)], shape, labels))
        return True
    out = labels_of(total.shape)
    logarithm = of.emit("log", [(total, out)], total.shape, out)
    shifted = of.emit("sub", [(operand, labels), (greatest, spread)], shape, labels)
    of.assign(node.output, of.emit("sub", [(shifted, labels), (logarithm, spread)], shape, labels))
    return True


def _powers(
    of: LoweringContext, operand: TracedValue, axis: Any, finite: bool = True
) -> tuple[TracedValue, TracedValue]:
    """Return the maximum of some elements, 0 if it is infinite, and the exponentials of their differences from it."""
    labels = labels_of(operand.shape)
    greatest = _reduced(of, "greatest", operand, axis, True)
    if finite:
        greatest = of.emit("finite_or_zero", [(greatest, labels)], greatest.shape, labels)
    spread = _kept_labels(operand.shape, reduced_dims(axis, len(labels)))
    shifted = of.emit("sub", [(operand, labels), (greatest, spread)], operand.shape, labels)
    return greatest, of.emit("exp", [(shifted, labels)], operand.shape, labels)


def _running(of: LoweringContext, node: Node) -> bool:
    """Lower `cumsum`, `cumprod` and `prod`: in kernels to a loop, in the order of the elements."""
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
    memory, strides = of.taken(value), row_strides(shape)
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
    """Lower `clip`, with one bound or two."""
    kind = of.type_of(node.output)
    if any(value is not None and of.type_of(value).dtype != FLOAT for value in node.inputs) or kind.dtype != FLOAT:
        return False
    given = [value for value in node.inputs if value is not None]
    bounds = "".join(name for name, value in zip(("", "_low", "_high"), node.inputs) if value is not None)
    if not bounds:
        return False
    labels = labels_of(kind.shape)
    operands = [of.spread(value, kind.shape) for value in given]
    of.assign(node.output, of.emit(f"clip{bounds}", operands, kind.shape, labels))
    return True


REDUCTIONS: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    "sum": _sum, "mean": _mean, "var": _var, "std": _var, "vector_norm": _vector_norm, "max": _extremum,
    "min": _extremum, "logsumexp": _logsumexp, "softmax": _softmax, "log_softmax": _softmax, "cumsum": _running,
    "cumprod": _running, "prod": _running, "matmul": _matmul, "dot": _matmul, "vecdot": _vecdot, "outer": _outer,
    "clip": _clip,
}  # fmt: skip


# -- building blocks ---------------------------------------------------------------------------------------------------


def _reduced(of: LoweringContext, name: str, operand: TracedValue, axis: Any, keepdims: bool) -> TracedValue:
    labels = labels_of(operand.shape)
    dims = reduced_dims(axis, len(labels))
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    return of.emit(name, [(operand, labels)], operand.shape, out, of.stream.places[operand.place][1])


def _averaged(of: LoweringContext, operand: TracedValue, axis: Any, keepdims: bool) -> TracedValue:
    total = _reduced(of, "sum", operand, axis, keepdims)
    return _divided(of, total, float(math.prod(operand.shape[dim] for dim in reduced_dims(axis, len(operand.shape)))))


def _divided(of: LoweringContext, total: TracedValue, count: float) -> TracedValue:
    labels = labels_of(total.shape)
    return of.emit("div", [(total, labels), (count, ())], total.shape, labels)


def _kept_labels(shape: Shape, dims: set[int]) -> Shape:
    """Return the labels of a value that was reduced over some dimensions, which are kept with length 1."""
    return tuple([-1 if dim in dims else dim for dim in range(len(shape))])


def _only_input(of: LoweringContext, node: Node, dtypes: Set[Any] = FLOATS) -> Value | None:
    """Return the only input of a node if its dtype is one of the given ones; None otherwise."""
    value = node.inputs[0]
    if value is None or any(other is not None for other in node.inputs[1:]):
        return None
    return value if of.type_of(value).dtype in dtypes else None


def options_of(node: Node, *names: str) -> list[Any] | None:
    """Return the named options of a node; None if any other option differs from its default."""
    operator = OPERATORS[node.kind]
    given = dict(zip([argument.name for argument in operator.signature.plain], node.attributes or (), strict=True))
    for argument in operator.signature.plain:
        if argument.name not in names and repr(unfrozen(given[argument.name])) != (argument.default or ""):
            return None
    return [unfrozen(given[name]) for name in names]


def reduced_dims(axis: Any, ndim: int) -> set[int]:
    """Return the dimensions over which a reduction goes."""
    if axis is None:
        return set(range(ndim))
    if not ndim:  # NumPy takes axis 0 there
        return set()
    return {dim % ndim for dim in (axis if isinstance(axis, tuple) else (axis,))}
