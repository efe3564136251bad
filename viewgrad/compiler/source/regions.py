"""Regions: statements on numbers and elements of arrays, which a kernel can execute."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from . import ir
from .expression_text import is_element, reads_complex
from .scalar_forms import scalar_forward, scalar_gradient
from .value_types import DTYPES, Arr, Num


@attrs.define(eq=False)
class Region:
    """Statements that a kernel executes."""

    stmts: ir.Block


def outline_regions(block: ir.Block, kinds: Mapping[str, Any], cells: Collection[str]) -> list[Any]:
    """Return the statements of a block, with those that a kernel can execute combined into regions.

    Arguments:
        block: the block.
        kinds: the type of each variable.
        cells: the variables that contain elements in loops.
    """
    found: list[Any] = []
    waiting: ir.Block = []

    def close() -> None:
        nonlocal waiting
        last = max((n for n, stmt in enumerate(waiting) if isinstance(stmt, (ir.For, ir.While))), default=-1)
        first = next((n for n, stmt in enumerate(waiting) if isinstance(stmt, (ir.For, ir.While))), None)
        if first is None:
            found.extend(waiting)
        else:
            while first and _is_load(waiting[first - 1], cells):
                first -= 1
            found.extend(waiting[:first])
            found.append(Region(waiting[first : last + 1]))
            found.extend(waiting[last + 1 :])
        waiting = []

    for stmt in block:
        if _is_scalar(stmt, kinds):
            waiting.append(stmt)
        else:
            close()
            found.append(stmt)
    close()
    return found


def _is_load(stmt: Any, cells: Collection[str]) -> bool:
    """Return whether a statement loads variables that contain elements in the following loop."""
    names = [name for each in ir.statements([stmt]) for name in ir.assigned(each)]
    return bool(names) and all(name in cells for name in names)


def _is_scalar(stmt: Any, kinds: Mapping[str, Any]) -> bool:
    """Return whether a statement computes only with numbers and elements of arrays."""
    for each in ir.statements([stmt]):
        if isinstance(each, ir.Let):
            if not isinstance(each.value.kind, Num) or each.value.kind.dtype not in DTYPES:
                return False
            if isinstance(kinds.get(each.name), Arr) or kinds[each.name].dtype not in DTYPES:
                return False
        elif isinstance(each, (ir.LetMany, ir.Add, ir.PullCall, ir.Segmented, ir.SegmentedBack)):
            return False
        elif isinstance(each, ir.Set):
            if not is_element(each.index) or isinstance(each.value.kind, Arr):
                return False
        elif isinstance(each, ir.Pop):
            if isinstance(each.target.kind, Arr) or each.target.kind.dtype not in DTYPES:
                return False
            if isinstance(each.target, ir.Get) and not is_element(each.target.index):
                return False
        elif isinstance(each, ir.Push) and (isinstance(each.value.kind, Arr) or each.value.kind.dtype not in DTYPES):
            return False
        for expr in ir.expressions_of(each):
            if not all(_is_scalar_node(node) for node in ir.nodes(expr)):
                return False
    return True


def _is_scalar_node(node: Any) -> bool:
    if isinstance(node, ir.Call):
        return False
    if isinstance(node, ir.Get):
        return isinstance(node.kind, Num) and node.is_basic and is_element(node.index)
    if isinstance(node, ir.Var):
        return isinstance(node.kind, Arr) or node.kind.dtype in DTYPES
    if isinstance(node, ir.Op):
        if isinstance(node.kind, Arr):
            return False
        return scalar_forward(node.name, "".join(arg.kind.dtype for arg in node.args)) is not None
    if isinstance(node, ir.Pull):
        form = scalar_gradient(node.name, node.number, reads_complex(node))
        return isinstance(node.kind, Num) and form is not None
    return True
