"""Lowering of determinants, inverses and linear systems of small matrices to scalars, and of diagonal matrices.

Filters use these in each step, where a NumPy call would take longer than everything else. For up to three rows,
cofactors are as accurate as elimination. Nearly singular matrices are left to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from ...trace.graph import Node, Value
from ...trace.types import row_strides
from ..element_types import BOOL, FLOAT
from ..trace_stream import TracedValue
from .context import LoweringContext, labels_of
from .reductions import options_of

LARGEST: Final = 3
LEAST: Final = 1e-6  # relative to its terms; a smaller determinant has lost too many digits
Rows = list[list[Any]]


def _det(of: LoweringContext, node: Node) -> bool:
    rows = _rows(of, node)
    if rows is None:
        return False
    of.assign(node.output, of.apply("positive", _determinant(of, rows)))
    return True


def _slogdet(of: LoweringContext, node: Node) -> bool:
    rows = _rows(of, node)
    if rows is None:
        return False
    determinant = _regular(of, node, rows)
    size = of.apply("abs", determinant)
    for output, name, operand in zip(node.outputs, ("sign", "log"), (determinant, size), strict=True):
        of.assign(output, of.apply(name, operand))
    return True


def _inv(of: LoweringContext, node: Node) -> bool:
    rows = _rows(of, node)
    if rows is None:
        return False
    determinant = _regular(of, node, rows)
    count = len(rows)
    made = of.new_part("inverse", count * count)
    for i in range(count):
        for j in range(count):
            of.write(made, (), of.apply("div", _cofactor(of, rows, j, i), determinant), offset=i * count + j)
    of.remember(node.output, made)
    return True


def _solve(of: LoweringContext, node: Node) -> bool:
    rows = _rows(of, node)
    right = node.inputs[1]
    if rows is None or right is None or of.type_of(right).dtype != FLOAT:
        return False
    shape = of.shape_of(right)
    count = len(rows)
    if len(shape) not in (1, 2) or shape[0] != count or 0 in shape:
        return False
    determinant = _regular(of, node, rows)
    rest = shape[1:]
    memory, moves, labels = of.read_memory(right), row_strides(rest), labels_of(rest)
    step = math.prod(rest)
    given = [of.read(memory, rest, moves, i * step) for i in range(count)]
    made = of.new_part("solution", count * step)
    for i in range(count):
        terms = [
            of.emit("mul", [(_cofactor(of, rows, j, i), ()), (given[j], labels)], rest, labels) for j in range(count)
        ]
        total = terms[0]
        for term in terms[1:]:
            total = of.emit("add", [(total, labels), (term, labels)], rest, labels)
        value = of.emit("div", [(total, labels), (determinant, ())], rest, labels)
        of.write(made, rest, value, labels, moves, i * step)
    of.remember(node.output, made)
    return True


def _diag_embed(of: LoweringContext, node: Node) -> bool:
    value = node.inputs[0]
    if value is None or of.type_of(value).dtype != FLOAT or options_of(node) is None:
        return False
    shape = of.shape_of(value)
    if len(shape) != 1 or not shape[0]:
        return False
    count = shape[0]
    operand = of.named(value)
    made = of.new_part("diagonal", count * count)
    of.write(made, shape, operand, (0,), (count + 1,))
    of.remember(node.output, made)
    return True


SMALL_MATRICES: Final[dict[str, Callable[[LoweringContext, Node], bool]]] = {
    "det": _det, "slogdet": _slogdet, "inv": _inv, "solve": _solve, "diag_embed": _diag_embed,
}  # fmt: skip


# -- building blocks ---------------------------------------------------------------------------------------------------


def _rows(of: LoweringContext, node: Node) -> Rows | None:
    """Return the elements of the matrix that a node operates on, or None if it is not small."""
    value: Value | None = node.inputs[0]
    if value is None or of.type_of(value).dtype != FLOAT or node.location in of.near_singular:
        return None
    shape = of.shape_of(value)
    if len(shape) != 2 or shape[0] != shape[1] or not 0 < shape[0] <= LARGEST:
        return None
    memory, count = of.read_memory(value), shape[0]
    return [
        [of.read(memory, (), (), i * count + j) for j in range(count)]
        for i in range(count)
    ]


def _cofactor(of: LoweringContext, rows: Rows, i: int, j: int) -> Any:
    """Return the signed determinant of the matrix without a row and a column."""
    if len(rows) == 1:
        return 1.0
    found = _determinant(of, [[*row[:j], *row[j + 1 :]] for row in (*rows[:i], *rows[i + 1 :])])
    return of.apply("neg", found) if (i + j) % 2 else found


def _determinant(of: LoweringContext, rows: Rows, signed: bool = True) -> TracedValue:
    """Return the determinant or, without signs, the sum of the magnitudes of its terms."""
    if len(rows) == 1:
        return rows[0][0]  # type: ignore[no-any-return]
    total = None
    for j, first in enumerate(rows[0]):
        minor = _determinant(of, [[*row[:j], *row[j + 1 :]] for row in rows[1:]], signed)
        term = of.apply("mul", first, minor)
        step = "sub" if signed and j % 2 else "add"
        total = term if total is None else of.apply(step, total, term)
    assert total is not None
    return total


def _regular(of: LoweringContext, node: Node, rows: Rows) -> TracedValue:
    """Return the determinant, and emit a guard that it is not the difference of almost equal terms."""
    determinant = _determinant(of, rows)
    size = of.apply("abs", determinant)
    sizes = [[of.apply("abs", each) for each in row] for row in rows]
    least = of.apply("mul", _determinant(of, sizes, signed=False), LEAST)
    of.check(of.apply("greater", size, least, dtype=BOOL.char), True)
    of.stream.regular.add(node.location)
    return determinant
