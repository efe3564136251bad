"""Determinants, inverses and systems of equations of small matrices, by elements; and matrices with a given diagonal.

Filters have them in each step, where a call of NumPy's function takes longer than all else. By cofactors, which for up
to three rows are as good as elimination. Matrices that are nearly singular are left to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...trace.graph import Node, Value
from ...trace.types import row_strides
from .reductions import options_of

if TYPE_CHECKING:
    from ..lowering import Lowering
    from ..trace_stream import TracedValue

__all__ = ["SMALL_MATRICES"]

LARGEST: Final = 3
LEAST: Final = 1e-6  # of its terms: a determinant that is smaller has lost too many digits
FLOAT: Final = np.dtype(float)
Rows = list[list[Any]]


def _det(of: Lowering, node: Node) -> bool:
    rows = _rows(of, node)
    if rows is None:
        return False
    of.values[node.output] = of.emit("positive", [(_determinant(of, rows), ())], (), ())
    return True


def _slogdet(of: Lowering, node: Node) -> bool:
    rows = _rows(of, node)
    if rows is None:
        return False
    determinant = _regular(of, node, rows)
    size = of.emit("abs", [(determinant, ())], (), ())
    for output, name, operand in zip(node.outputs, ("sign", "log"), (determinant, size), strict=True):
        of.values[output] = of.emit(name, [(operand, ())], (), ())
    return True


def _inv(of: Lowering, node: Node) -> bool:
    rows = _rows(of, node)
    if rows is None:
        return False
    determinant = _regular(of, node, rows)
    count = len(rows)
    base, start = of.new_part(("inverse", node.location), count * count)
    for i in range(count):
        for j in range(count):
            value = of.emit("div", [(_cofactor(of, rows, j, i), ()), (determinant, ())], (), ())
            of.stream.write(base, (), (), start + i * count + j, value, (), node.location)
    of.remember_part(node.output, base, start)
    return True


def _solve(of: Lowering, node: Node) -> bool:
    rows = _rows(of, node)
    right = node.inputs[1]
    if rows is None or right is None or of.type_of(right).dtype != FLOAT:
        return False
    shape = of.type_of(right).shape
    count = len(rows)
    if len(shape) not in (1, 2) or shape[0] != count or 0 in shape:
        return False
    determinant = _regular(of, node, rows)
    rest = shape[1:]
    memory, moves, labels = of.taken(right), row_strides(rest), tuple(range(len(rest)))
    step = math.prod(rest)
    given = [
        of.stream.read(memory.base, rest, moves, memory.offset + i * step, node.location) for i in range(count)
    ]
    base, start = of.new_part(("solution", node.location), count * step)
    for i in range(count):
        terms = [
            of.emit("mul", [(_cofactor(of, rows, j, i), ()), (given[j], labels)], rest, labels) for j in range(count)
        ]
        total = terms[0]
        for term in terms[1:]:
            total = of.emit("add", [(total, labels), (term, labels)], rest, labels)
        value = of.emit("div", [(total, labels), (determinant, ())], rest, labels)
        of.stream.write(base, rest, moves, start + i * step, value, labels, node.location)
    of.remember_part(node.output, base, start)
    return True


def _diag_embed(of: Lowering, node: Node) -> bool:
    value = node.inputs[0]
    if value is None or of.type_of(value).dtype != FLOAT or options_of(node) is None:
        return False
    shape = of.type_of(value).shape
    if len(shape) != 1 or not shape[0]:
        return False
    count = shape[0]
    operand = of.named(value)
    base, start = of.new_part(("diagonal", node.location), count * count)
    of.stream.write(base, shape, (count + 1,), start, operand, (0,), node.location)
    of.remember_part(node.output, base, start)
    return True


SMALL_MATRICES: Final[dict[str, Callable[[Any, Node], bool]]] = {
    "det": _det, "slogdet": _slogdet, "inv": _inv, "solve": _solve, "diag_embed": _diag_embed,
}  # fmt: skip


# -- what they are made of ---------------------------------------------------------------------------------------------


def _rows(of: Lowering, node: Node) -> Rows | None:
    """The elements of the matrix that a node takes; None where it is no small one."""
    value: Value | None = node.inputs[0]
    if value is None or of.type_of(value).dtype != FLOAT or node.location in of.irregular:
        return None
    shape = of.type_of(value).shape
    if len(shape) != 2 or shape[0] != shape[1] or not 0 < shape[0] <= LARGEST:
        return None
    memory, count = of.taken(value), shape[0]
    return [
        [of.stream.read(memory.base, (), (), memory.offset + i * count + j, node.location) for j in range(count)]
        for i in range(count)
    ]


def _cofactor(of: Lowering, rows: Rows, i: int, j: int) -> Any:
    """The signed determinant of the matrix without a row and a column."""
    if len(rows) == 1:
        return 1.0
    found = _determinant(of, [[*row[:j], *row[j + 1 :]] for row in (*rows[:i], *rows[i + 1 :])])
    return of.emit("neg", [(found, ())], (), ()) if (i + j) % 2 else found


def _determinant(of: Lowering, rows: Rows, signed: bool = True) -> TracedValue:
    """The determinant; without signs, what its terms would come to if none of them took away from another."""
    if len(rows) == 1:
        return rows[0][0]  # type: ignore[no-any-return]
    total = None
    for j, first in enumerate(rows[0]):
        minor = _determinant(of, [[*row[:j], *row[j + 1 :]] for row in rows[1:]], signed)
        term = of.emit("mul", [(first, ()), (minor, ())], (), ())
        step = "sub" if signed and j % 2 else "add"
        total = term if total is None else of.emit(step, [(total, ()), (term, ())], (), ())
    assert total is not None
    return total


def _regular(of: Lowering, node: Node, rows: Rows) -> TracedValue:
    """The determinant; where it is nothing but a difference of equals, the program is not for this matrix."""
    determinant = _determinant(of, rows)
    size = of.emit("abs", [(determinant, ())], (), ())
    sizes = [[of.emit("abs", [(each, ())], (), ()) for each in row] for row in rows]
    least = of.emit("mul", [(_determinant(of, sizes, signed=False), ()), (LEAST, ())], (), ())
    is_regular = of.emit("greater", [(size, ()), (least, ())], (), (), "?")
    of.stream.check(is_regular, True, node.location)
    of.stream.regular.add(node.location)
    return determinant
