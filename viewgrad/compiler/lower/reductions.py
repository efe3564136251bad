"""Operators that are made of sums, products and functions of elements: reductions, products of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...operators.define import OPERATORS
from ...trace.attributes import thawed
from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..element_types import FLOAT, HELD, INTEGER
from .casts import converted

if TYPE_CHECKING:
    from ..lowering import Lowering
    from ..trace_stream import TracedValue

__all__ = ["COMPOSITES", "broadcast_labels", "options_of"]

Shape = tuple[int, ...]
FLOATS: Final = frozenset({FLOAT})
LONGEST: Final = 5000  # a running sum or product of so many is written down as a loop
FEW: Final = 4096  # elements of which it is kept which ones are an extremum


def _sum(of: Lowering, node: Node) -> bool:
    value, options = _only_input(of, node, HELD), options_of(node, "axis", "keepdims")
    dtype = of.type_of(node.output).dtype
    if value is None or options is None or dtype not in (FLOAT, INTEGER):
        return False
    of.values[node.output] = _reduced(of, "sum", converted(of, of.named(value), dtype), *options)
    return True


def _mean(of: Lowering, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis", "keepdims")
    if value is None or options is None:
        return False
    of.values[node.output] = _averaged(of, of.named(value), *options)
    return True


def _var(of: Lowering, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis", "ddof", "keepdims")
    if value is None or options is None or not math.prod(of.type_of(value).shape):
        return False
    axis, ddof, keepdims = options
    operand = of.named(value)
    shape = operand.shape
    dims = reduced_dims(axis, len(shape))
    count = math.prod(shape[dim] for dim in dims) - ddof
    if count <= 0:
        return False
    labels = tuple(range(len(shape)))
    mean = _averaged(of, operand, axis, True)
    distances = of.emit("sub", [(operand, labels), (mean, _kept_labels(shape, dims))], shape, labels)
    squares = of.emit("square", [(distances, labels)], shape, labels)
    total = _reduced(of, "sum", squares, axis, keepdims)
    spread = _divided(of, total, float(count))
    if node.kind == "std":
        out = tuple(range(len(spread.shape)))
        spread = of.emit("root", [(spread, out)], spread.shape, out)
    of.values[node.output] = spread
    return True


def _vector_norm(of: Lowering, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "ord", "axis", "keepdims")
    if value is None or options is None or options[0] != 2:
        return False
    operand = of.named(value)
    labels = tuple(range(len(operand.shape)))
    squares = of.emit("square", [(operand, labels)], operand.shape, labels)
    total = _reduced(of, "sum", squares, *options[1:])
    out = tuple(range(len(total.shape)))
    of.values[node.output] = of.emit("root", [(total, out)], total.shape, out)
    return True


def _extremum(of: Lowering, node: Node) -> bool:
    """`max` and `min`: elements that are equal to it share its gradient."""
    value, options = _only_input(of, node), options_of(node, "axis", "keepdims")
    if value is None or options is None or not math.prod(of.type_of(value).shape):
        return False
    axis, keepdims = options
    operand = of.named(value)
    shape = operand.shape
    if not shape:
        of.values[node.output] = of.emit("positive", [(operand, ())], (), ())
        return True
    labels = tuple(range(len(shape)))
    dims = reduced_dims(axis, len(shape))
    spread = _kept_labels(shape, dims)
    found = _reduced(of, "greatest" if node.kind == "max" else "least", operand, axis, True)
    if not node.output.type.requires_grad:
        out = tuple([dim for dim in labels if keepdims or dim not in dims])
        sizes = tuple([1 if dim in dims else n for dim, n in enumerate(shape) if keepdims or dim not in dims])
        kept = tuple([-1 if dim in dims else out.index(dim) for dim in labels])
        of.values[node.output] = of.emit("detach", [(found, kept)], sizes, tuple(range(len(sizes))))
        return True
    hits = of.emit("tie_hit", [(operand, labels), (found, spread)], shape, labels)
    count = _reduced(of, "sum", hits, axis, True)
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    taken = [(operand, labels), (found, spread), (count, spread)]
    kind = "tied"
    if math.prod(shape) <= FEW:
        share = of.emit("share", [(hits, labels), (count, spread)], shape, labels)
        taken[2], kind = (share, labels), "tied_by_share"
    of.values[node.output] = of.emit(kind, taken, shape, out)
    return True


def _logsumexp(of: Lowering, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis", "keepdims")
    if value is None or options is None or not math.prod(of.type_of(value).shape):
        return False
    axis, keepdims = options
    operand = of.named(value)
    labels = tuple(range(len(operand.shape)))
    greatest, powers = _powers(of, operand, axis)
    total = _reduced(of, "sum", powers, axis, keepdims)
    out = tuple(range(len(total.shape)))
    logarithm = of.emit("log_of_sum", [(total, out)], total.shape, out)
    kept = out
    if not keepdims:
        dims = reduced_dims(axis, len(labels))
        rest = [dim for dim in labels if dim not in dims]
        kept = tuple([-1 if dim in dims else rest.index(dim) for dim in labels])
    of.values[node.output] = of.emit("add", [(logarithm, out), (greatest, kept)], total.shape, out)
    return True


def _softmax(of: Lowering, node: Node) -> bool:
    value, options = _only_input(of, node), options_of(node, "axis")
    if value is None or options is None or not math.prod(of.type_of(value).shape):
        return False
    operand = of.named(value)
    (axis,) = options
    if not operand.shape or axis is None:
        return False
    shape, labels = operand.shape, tuple(range(len(operand.shape)))
    spread = _kept_labels(shape, reduced_dims(axis, len(shape)))
    greatest, powers = _powers(of, operand, axis, finite=False)
    total = _reduced(of, "sum", powers, axis, True)
    if node.kind == "softmax":
        of.values[node.output] = of.emit("div", [(powers, labels), (total, spread)], shape, labels)
        return True
    out = tuple(range(len(total.shape)))
    logarithm = of.emit("log", [(total, out)], total.shape, out)
    shifted = of.emit("sub", [(operand, labels), (greatest, spread)], shape, labels)
    of.values[node.output] = of.emit("sub", [(shifted, labels), (logarithm, spread)], shape, labels)
    return True


def _powers(of: Lowering, operand: TracedValue, axis: Any, finite: bool = True) -> tuple[TracedValue, TracedValue]:
    """The greatest of some elements, 0 for an infinite one, and the exponentials of their distances from it."""
    labels = tuple(range(len(operand.shape)))
    greatest = _reduced(of, "greatest", operand, axis, True)
    if finite:
        greatest = of.emit("finite_or_zero", [(greatest, labels)], greatest.shape, labels)
    spread = _kept_labels(operand.shape, reduced_dims(axis, len(labels)))
    shifted = of.emit("sub", [(operand, labels), (greatest, spread)], operand.shape, labels)
    return greatest, of.emit("exp", [(shifted, labels)], operand.shape, labels)


def _running(of: Lowering, node: Node) -> bool:
    """`cumsum`, `cumprod` and `prod`: for kernels a loop, in the order of the elements."""
    value = _only_input(of, node)
    options = options_of(node, "axis", "keepdims") if node.kind == "prod" else options_of(node, "axis")
    if value is None or options is None or not of.native or isinstance(options[0], tuple):
        return False
    shape = of.type_of(value).shape
    axis = options[0]
    if axis is None:
        shape, axis = (math.prod(shape),), 0
    if not shape or not 0 < shape[axis] <= LONGEST or not math.prod(shape):
        return False
    axis %= len(shape)
    memory = of.taken(value)
    strides = row_strides(shape)
    rest = tuple([n for dim, n in enumerate(shape) if dim != axis])
    moves = tuple([n for dim, n in enumerate(strides) if dim != axis])
    labels = tuple(range(len(rest)))
    base = start = 0
    if node.kind != "prod":
        base, start = of.new_part(("running", node.location), math.prod(shape))
    total = None
    for i in range(shape[axis]):
        element = of.stream.read(memory.base, rest, moves, memory.offset + i * strides[axis], node.location)
        if total is None:
            total = element
        else:
            step = "add" if node.kind == "cumsum" else "mul"
            total = of.emit(step, [(total, labels), (element, labels)], rest, labels)
        if node.kind != "prod":
            of.stream.write(base, rest, moves, start + i * strides[axis], total, labels, node.location)
    assert total is not None
    if node.kind != "prod":
        of.remember_part(node.output, base, start)
        return True
    added = len(of.type_of(node.output).shape) - len(rest)  # by keepdims
    out = (*labels[:axis], *((-1,) * added), *labels[axis:])
    of.values[node.output] = of.emit("positive", [(total, labels)], rest, out)
    return True


def _matmul(of: Lowering, node: Node) -> bool:
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
    of.values[node.output] = of.emit("mul", [(first, left), (second, right)], sizes, out)
    return True


def _vecdot(of: Lowering, node: Node) -> bool:
    if None in node.inputs or any(of.type_of(value).dtype != FLOAT for value in node.inputs if value is not None):
        return False
    options = options_of(node, "axis")
    if options is None or options[0] not in (None, -1):
        return False
    first, second = [of.named(value) for value in node.inputs if value is not None]
    shape = np.broadcast_shapes(first.shape, second.shape)
    operands = [(each, broadcast_labels(each.shape, shape)) for each in (first, second)]
    of.values[node.output] = of.emit("mul", operands, shape, tuple(range(len(shape) - 1)))
    return True


def _outer(of: Lowering, node: Node) -> bool:
    if None in node.inputs or any(of.type_of(value).dtype != FLOAT for value in node.inputs if value is not None):
        return False
    first, second = [of.named(value) for value in node.inputs if value is not None]
    if len(first.shape) != 1 or len(second.shape) != 1:
        return False
    of.values[node.output] = of.emit("mul", [(first, (0,)), (second, (1,))], (*first.shape, *second.shape), (0, 1))
    return True


def _clip(of: Lowering, node: Node) -> bool:
    """A clipped value, with one bound or two."""
    kind = of.type_of(node.output)
    if any(value is not None and of.type_of(value).dtype != FLOAT for value in node.inputs) or kind.dtype != FLOAT:
        return False
    given = [value for value in node.inputs if value is not None]
    bounds = "".join(name for name, value in zip(("", "_low", "_high"), node.inputs) if value is not None)
    if not bounds:
        return False
    labels = tuple(range(len(kind.shape)))
    operands = [of.spread(value, kind.shape) for value in given]
    of.values[node.output] = of.emit(f"clip{bounds}", operands, kind.shape, labels)
    return True


COMPOSITES: Final[dict[str, Callable[[Any, Node], bool]]] = {
    "sum": _sum, "mean": _mean, "var": _var, "std": _var, "vector_norm": _vector_norm, "max": _extremum,
    "min": _extremum, "logsumexp": _logsumexp, "softmax": _softmax, "log_softmax": _softmax, "cumsum": _running,
    "cumprod": _running, "prod": _running, "matmul": _matmul, "dot": _matmul, "vecdot": _vecdot, "outer": _outer,
    "clip": _clip,
}  # fmt: skip


# -- what they are made of ---------------------------------------------------------------------------------------------


def _reduced(of: Lowering, name: str, operand: TracedValue, axis: Any, keepdims: bool) -> TracedValue:
    labels = tuple(range(len(operand.shape)))
    dims = reduced_dims(axis, len(labels))
    out = tuple([-1 if dim in dims else dim for dim in labels if keepdims or dim not in dims])
    return of.emit(name, [(operand, labels)], operand.shape, out, of.stream.places[operand.place][1])


def _averaged(of: Lowering, operand: TracedValue, axis: Any, keepdims: bool) -> TracedValue:
    total = _reduced(of, "sum", operand, axis, keepdims)
    return _divided(of, total, float(math.prod(operand.shape[dim] for dim in reduced_dims(axis, len(operand.shape)))))


def _divided(of: Lowering, total: TracedValue, count: float) -> TracedValue:
    labels = tuple(range(len(total.shape)))
    return of.emit("div", [(total, labels), (count, ())], total.shape, labels)


def _kept_labels(shape: Shape, dims: set[int]) -> Shape:
    """The labels of what was reduced over some dimensions, which are kept with length 1."""
    return tuple([-1 if dim in dims else dim for dim in range(len(shape))])


def _only_input(of: Lowering, node: Node, dtypes: Set[Any] = FLOATS) -> Value | None:
    """The first input of a node, where it has no other and that is of one of some dtypes."""
    value = node.inputs[0]
    if value is None or any(other is not None for other in node.inputs[1:]):
        return None
    return value if of.type_of(value).dtype in dtypes else None


def options_of(node: Node, *names: str) -> list[Any] | None:
    """The options of a node; None where another one is not what it is by default."""
    operator = OPERATORS[node.kind]
    given = dict(zip([argument.name for argument in operator.signature.plain], node.attributes or (), strict=True))
    for argument in operator.signature.plain:
        if argument.name not in names and repr(thawed(given[argument.name])) != (argument.default or ""):
            return None
    return [thawed(given[name]) for name in names]


def broadcast_labels(shape: Shape, onto: Shape) -> Shape:
    """The labels of the dimensions of an operand that is broadcast."""
    before = len(onto) - len(shape)
    if before < 0:  # leading dimensions of length 1, as an assignment takes them
        return (-1,) * -before + broadcast_labels(shape[-before:], onto)
    return tuple([
        -1 if extent == 1 and onto[before + dim] != 1 else before + dim for dim, extent in enumerate(shape)
    ])


def reduced_dims(axis: Any, ndim: int) -> set[int]:
    """The dimensions over which a reduction goes."""
    if axis is None:
        return set(range(ndim))
    if not ndim:  # NumPy takes 0 there
        return set()
    return {dim % ndim for dim in (axis if isinstance(axis, tuple) else (axis,))}
