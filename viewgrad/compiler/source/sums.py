"""Sums of elementwise expressions as one operation, so that the adjoint of their terms is a number.

In `(x * x).sum()`, all terms have the adjoint of the sum. The array of terms needs no shadow if each array in the
expression has the shape of the result, which is known if there is only one array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from . import ir
from .value_types import Arr


def fuse_sums(block: ir.Block, outside: Collection[str]) -> ir.Block:
    """Return the program with the terms of sums outside loops merged into the sums.

    Arguments:
        block: the program.
        outside: the variables that contain results.
    """
    reads = Counter(ir.variables_in(block))
    bound = Counter(name for stmt in ir.statements(block) for name in ir.assigned(stmt))
    found: ir.Block = []
    for stmt in block:
        before = found[-1] if found else None
        if isinstance(before, ir.Let) and _is_sum_of(stmt, before.name) and _has_one_array(before.value) \
                and reads[before.name] == bound[before.name] == 1 and before.name not in outside:
            call = ir.Call("sum", (ir.mapped(before.value, _squared),), (), stmt.value.kind)
            found[-1] = ir.Let(stmt.name, call, stmt.line)
        else:
            found.append(stmt)
    return found


def _is_sum_of(stmt: Any, name: str) -> bool:
    """Return whether a statement is the sum of all elements of a variable."""
    if not isinstance(stmt, ir.Let) or not isinstance(stmt.value, ir.Call):
        return False
    call = stmt.value
    return call.name == "sum" and not call.options and call.kind.dtype == "d" and len(call.args) == 1 \
        and isinstance(call.args[0], ir.Var) and call.args[0].name == name


def _has_one_array(expr: Any) -> bool:
    """Return whether the operands of an elementwise expression of floats are a single array and constants."""
    leaves: list[Any] = []

    def look(node: Any) -> bool:
        if isinstance(node, ir.Op):
            return node.kind.dtype == "d" and all(map(look, node.args))
        leaves.append(node)
        return isinstance(node, ir.Const) or (isinstance(node, (ir.Var, ir.Get)) and isinstance(node.kind, Arr))

    if not isinstance(expr, ir.Op) or not isinstance(expr.kind, Arr) or not look(expr):
        return False
    arrays = [leaf for leaf in leaves if not isinstance(leaf, ir.Const)]
    return all(leaf == arrays[0] and leaf.kind == Arr("d", expr.kind.ndim) for leaf in arrays)


def _squared(node: Any) -> Any:
    """Return the product of an array with itself as a square, whose gradient is a single product."""
    if isinstance(node, ir.Op) and node.name == "mul" and isinstance(node.kind, Arr) and node.args[0] == node.args[1]:
        return ir.Op("square", node.args[:1], node.kind)
    return node
