"""Array operations inside loops, converted to loops over elements that a kernel can execute.

Views are replaced by the underlying arrays, with the indices composed. An array that is rebound in each iteration
becomes one array that is written to, if nothing else refers to it. If some operation in a loop has no elementwise form,
the loop is left unchanged and runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from . import ir
from .aliases import base_of
from .element_access import NotLowered, Part
from .element_loops import ElementLoops
from .outer_products import expand_outer_products
from .value_types import DTYPES, FLOAT, Arr, Num


def scalarize(block: ir.Block, kinds: dict[str, Any], inputs: Sequence[str], fresh: Callable[[str], str]) -> ir.Block:
    """Return the program with its loops lowered as far as possible.

    Arguments:
        block: the program.
        kinds: the kinds of the variables; new variables are added.
        inputs: the inputs.
        fresh: a function that returns an unused name.
    """
    found: ir.Block = []
    for number, stmt in enumerate(block):
        if isinstance(stmt, (ir.For, ir.While)) and _has_arrays(stmt):
            (lowerable,) = expand_outer_products([stmt])
            current = [*found, lowerable, *block[number + 1 :]]
            before = dict(kinds)
            try:
                lowering = _Lowering(current, len(found), kinds, inputs, fresh)
                new = lowering.statement(lowerable)
            except NotLowered:
                kinds.clear()
                kinds.update(before)
                found.append(stmt)
                continue
            found = lowering.with_copies(found)
            found += [*lowering.before, *new]
        else:
            found.append(stmt)
    return found


def _has_arrays(loop: Any) -> bool:
    for stmt in ir.statements([loop]):
        if isinstance(stmt, ir.Set) and any(isinstance(each, ir.Slice) or isinstance(getattr(each, "kind", None), Arr)
                                         for each in stmt.index):
            return True
        if any(isinstance(getattr(node, "kind", None), Arr) and not isinstance(node, ir.Var)
               for node in ir.nodes_of(stmt)):
            return True
        if any(isinstance(node, ir.Call) for node in ir.nodes_of(stmt)):
            return True
        if isinstance(stmt, ir.Let) and isinstance(stmt.value.kind, Arr):
            return True
    return False


class _Lowering(ElementLoops):
    """Lowers a loop."""

    def block(self, stmts: ir.Block) -> ir.Block:
        found: ir.Block = []
        checked: list[Any] = []  # the checked conditions that are still valid
        for stmt in stmts:
            for new in self.statement(stmt):
                if isinstance(new, ir.Check):
                    if new.test in checked:
                        continue
                    checked.append(new.test)
                else:
                    names = ir.bound_in([new])
                    checked = [test for test in checked if names.isdisjoint(_names_in(test))]
                found.append(new)
        return found

    def statement(self, stmt: Any) -> ir.Block:
        """Return the statements that replace a given one."""
        before, self.out = self.out, []
        try:
            if isinstance(stmt, ir.For):
                low, high = self.number(stmt.low), self.number(stmt.high)
                self.out.append(attrs.evolve(stmt, low=low, high=high, body=self.block(stmt.body)))
            elif isinstance(stmt, ir.While):
                test = self.number(stmt.test)
                self.out.append(attrs.evolve(stmt, test=test, body=self.block(stmt.body)))
            elif isinstance(stmt, ir.If):
                test = self.number(stmt.test)
                self.out.append(ir.If(test, self.block(stmt.then), self.block(stmt.other), stmt.line))
            elif isinstance(stmt, ir.Check):
                self.out.append(attrs.evolve(stmt, test=self.number(stmt.test)))
            elif isinstance(stmt, ir.Set):
                self.write(stmt)
            elif isinstance(stmt, ir.Let):
                self.let(stmt)
            else:
                raise NotLowered
            return self.out
        finally:
            self.out = before

    def let(self, stmt: ir.Let) -> None:
        value = stmt.value
        if isinstance(value.kind, Num):
            if isinstance(value, ir.Call):
                self.reduce(stmt, value)
            else:
                self.out.append(ir.Let(stmt.name, self.number(value), stmt.line))
            return
        if base_of(value) is not None:
            self.view(stmt)
            return
        if value.kind.dtype not in DTYPES:
            raise NotLowered
        if isinstance(value, ir.Call):
            self.array_call(stmt, value)
        else:
            self.assign(stmt.name, value, stmt.line)

    def write(self, stmt: ir.Set) -> None:
        if stmt.base.kind.dtype not in DTYPES:
            raise NotLowered
        target = self.part(ir.Get(stmt.base, stmt.index, FLOAT))
        if not target.extents:
            value = self.number(stmt.value)
            element = target.at([])
            self.out.append(ir.Set(element.base, element.index, value, stmt.op, stmt.line))
            return
        self.fill(target, stmt.value, stmt.op, stmt.line)

    def view(self, stmt: ir.Let) -> None:
        """Replace a view by an index into its base."""
        if len(self.lets[stmt.name]) != 1 or any(
            isinstance(node, ir.Var) and node.name == stmt.name
            for later in ir.statements(self.later) for node in ir.nodes_of(later)
        ):
            raise NotLowered
        counters = {each.name for each in ir.statements([self.loop]) if isinstance(each, ir.For)}
        for node in ir.nodes(stmt.value):
            is_number = isinstance(node, ir.Var) and isinstance(node.kind, Num)
            if is_number and node.name in self.bound_inside - counters:
                raise NotLowered
            if isinstance(node, ir.Get) and node is not stmt.value:
                raise NotLowered
            if isinstance(node, ir.Var) and isinstance(node.kind, Arr) and node.name in self.bound_inside:
                inside = [each for each in ir.statements([self.loop]) if node.name in ir.assigned(each)]
                if node.name not in self.views and (node.name not in self.in_place or len(inside) > 1):
                    raise NotLowered
        value = stmt.value
        if isinstance(value, ir.Call):
            if value.name != "transpose" or len(value.args) > 1 or value.options:
                raise NotLowered
            inner = self.part(value.args[0])
            self.views[stmt.name] = Part(
                inner.name, ("T", inner.key), inner.extents[::-1], lambda at: inner.at(list(at)[::-1]), inner.dtype)
            return
        self.views[stmt.name] = self.part(value)

    def with_copies(self, stmts: ir.Block) -> ir.Block:
        """Return the statements before the loop, with copies for variables that were other names for an array."""
        return [
            ir.Let(stmt.name, ir.Call("copy", (stmt.value,), (), stmt.value.kind), stmt.line)
            if isinstance(stmt, ir.Let) and stmt.name in self.copied and isinstance(stmt.value, ir.Var) else stmt
            for stmt in stmts
        ]


def _names_in(expr: Any) -> set[str]:
    return {node.base.name if isinstance(node, (ir.Dim, ir.Get)) else node.name for node in ir.nodes(expr)
            if isinstance(node, (ir.Dim, ir.Get, ir.Var))}
