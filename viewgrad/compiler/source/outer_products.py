"""Outer products, computed as products of a column and a row in the expression that reads them, without a matrix."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from . import ir
from .value_types import Arr


def expand_outer_products(block: ir.Block) -> ir.Block:
    """Return the statements with outer products inlined that only the next statement reads, as part of its expression.
    """
    counts = Counter(ir.variables_in(block))
    return _rewritten(block, counts)


def _rewritten(block: ir.Block, counts: Counter[str]) -> ir.Block:
    found: ir.Block = []
    for stmt in block:
        before = found[-1] if found else None
        if isinstance(before, ir.Let) and _is_outer_product(before.value) and counts[before.name] == 1:
            whole = _with_product(stmt, before)
            if whole is not None:
                found[-1] = whole
                continue
        if isinstance(stmt, (ir.For, ir.While)):
            stmt = attrs.evolve(stmt, body=_rewritten(stmt.body, counts))
        elif isinstance(stmt, ir.If):
            stmt = ir.If(stmt.test, _rewritten(stmt.then, counts), _rewritten(stmt.other, counts), stmt.line)
        found.append(stmt)
    return found


def _with_product(stmt: Any, product: ir.Let) -> Any:
    """Return a statement with a product inlined, or None if its expression does not read the product."""
    if not isinstance(stmt, (ir.Let, ir.Set)) or not isinstance(stmt.value, (ir.Op, ir.Var)):
        return None
    one, other = product.value.args
    expr = ir.Op("mul", (_with_axis(one, 1), _with_axis(other, 0)), product.value.kind)

    def change(node: Any) -> Any:
        return expr if isinstance(node, ir.Var) and node.name == product.name else node

    value = ir.mapped(stmt.value, change)
    return None if value == stmt.value else attrs.evolve(stmt, value=value)


def _is_outer_product(value: Any) -> bool:
    return isinstance(value, ir.Call) and value.name == "outer" and not value.options and value.kind == Arr("d", 2) \
        and all(map(_is_plain_vector, value.args))


def _is_plain_vector(arg: Any) -> bool:
    if not isinstance(arg, (ir.Var, ir.Get)) or arg.kind != Arr("d", 1):
        return False
    return isinstance(arg, ir.Var) or not any(isinstance(getattr(each, "kind", None), Arr) for each in arg.index)


def _with_axis(vector: Any, number: int) -> ir.Get:
    """Return a vector as a matrix, with a new axis of length 1."""
    base, index = (vector, (ir.FULL,)) if isinstance(vector, ir.Var) else (vector.base, vector.index)
    place = next(n for n, each in enumerate(index) if isinstance(each, ir.Slice))
    return ir.get(base, (*index[: place + number], ir.NEW, *index[place + number :]))
