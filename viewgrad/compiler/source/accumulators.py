"""Accumulation of adjoints in variables, for array elements that a loop only adds to.

In `a_bar[i, k] += b * a[k, j]` the cell is the same in all iterations of the loop over `j`. If no other access in the
loop can refer to it, the terms are summed in a variable, which is added to the cell once. The terms of such a sum, and
of a sum that a loop adds to the adjoint of a number, may be added in any order, so the additions need not wait for each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from . import ir
from .definitions import Definitions
from .dependence import Affine, affine, combined, has_solution, within
from .parallel_loops import root_of
from .value_types import BOOL, FLOAT, Arr, Num


def accumulate_in_variables(
    block: ir.Block, kinds: dict[str, Any], roots: Mapping[str, str], fresh: Callable[[str], str],
    definitions: Definitions, add: str,
) -> ir.Block:
    """Return a reverse program with sums in variables.

    Arguments:
        block: the program.
        kinds: the kinds of the variables; new variables are added.
        roots: the representatives of variables that share memory.
        fresh: a function that returns an unused name.
        definitions: the definitions of variables.
        add: the operator that adds to a sum.
    """
    return ir.with_loops(block, _Accumulators(kinds, roots, fresh, definitions, add).loop)


@attrs.define(eq=False)
class _Accumulators:
    kinds: dict[str, Any]
    roots: Mapping[str, str]
    fresh: Callable[[str], str]
    definitions: Definitions
    add: str

    def loop(self, loop: Any, loops: tuple[Any, ...]) -> ir.Block:
        """Return a loop that adds to sums, with the statements that initialize the sums and add them to their cells."""
        before, loop, after = self.with_sums(loop, loops)
        loop = attrs.evolve(loop, body=ir.with_loops(loop.body, self.loop, (*loops, loop)))
        return [*before, loop if self.add == "add" else self.reordered(loop), *after]

    def with_sums(self, loop: Any, loops: tuple[Any, ...]) -> tuple[ir.Block, Any, ir.Block]:
        """Return the statements that initialize the sums of a loop, the loop, and the statements that add the sums to
        their cells.
        """
        inside = ir.bound_in([loop])
        cells: dict[Any, list[Any]] = {}
        for stmt in ir.statements(loop.body):
            if isinstance(stmt, ir.Set) and stmt.op and self.is_fixed_cell(stmt, inside):
                cells.setdefault((stmt.base.name, stmt.index), []).append(stmt)
        before: ir.Block = []
        after: ir.Block = []
        for (name, index), sets in cells.items():
            if any(self.may_meet(name, index, access, inside) for access in _accesses(loop.body, (*loops, loop))
                   if access.stmt not in sets):
                continue
            total = self.fresh("total")
            base = sets[0].base
            self.kinds[total] = Num(base.kind.dtype)
            variable = ir.Var(total, self.kinds[total])
            add = self.add if base.kind.dtype == "d" else "add"
            terms = {id(stmt): _added_term(stmt, variable, add) for stmt in sets}
            loop = attrs.evolve(loop, body=ir.with_statements(loop.body, terms))
            zero = ir.Const(0.0, FLOAT)
            before.append(ir.Let(total, zero, loop.line))
            added = ir.Set(base, index, variable, "add", loop.line, safe=True)
            after.append(ir.If(ir.Op("not_equal", (variable, zero), BOOL), [added], [], loop.line))
        return before, loop, after

    def reordered(self, loop: Any) -> Any:
        """Return a loop in which the terms added to a scalar adjoint may be reordered."""
        found: dict[str, list[ir.Let] | None] = {}
        for stmt in ir.statements([loop]):
            names = {node.name for node in ir.nodes_of(stmt) if isinstance(node, ir.Var)}
            if isinstance(stmt, ir.Let) and self.is_sum(stmt):
                known = found.setdefault(stmt.name, [])
                if known is not None:
                    known.append(stmt)
                names.discard(stmt.name)
            else:
                names.update(ir.assigned(stmt))
            found.update(dict.fromkeys(names))
        sums = {
            id(stmt): attrs.evolve(stmt, value=attrs.evolve(stmt.value, name=self.add))
            for lets in found.values() for stmt in lets or ()
        }
        (new,) = ir.with_statements([loop], sums)
        return new

    def is_sum(self, stmt: ir.Let) -> bool:
        """Return whether a statement adds a term to the adjoint of a real number and the term does not depend on it."""
        value = stmt.value
        if not ir.is_bar(stmt.name) or not isinstance(value, ir.Op) or value.name not in ("add", self.add):
            return False
        own, term = value.args
        return value.kind == FLOAT and isinstance(own, ir.Var) and own.name == stmt.name and not any(
            isinstance(node, ir.Var) and node.name == stmt.name for node in ir.nodes(term))

    def is_fixed_cell(self, stmt: ir.Set, inside: set[str]) -> bool:
        """Return whether an addition has the same target in all iterations, an element of an array of adjoints."""
        if not ir.is_bar(stmt.base.name) or stmt.base.name in inside:
            return False
        if any(isinstance(each, ir.Slice) or not isinstance(getattr(each, "kind", None), Num) for each in stmt.index):
            return False
        return not any(isinstance(node, ir.Get) or (isinstance(node, ir.Var) and node.name in inside)
                       for each in stmt.index for node in ir.nodes(each))

    def may_meet(self, name: str, index: tuple[Any, ...], access: _Access, inside: set[str]) -> bool:
        """Return whether an access in a loop may refer to a cell that is the same in all iterations."""
        if root_of(access.name, self.roots) != root_of(name, self.roots):
            return False
        if access.name != name or access.index is None or len(access.index) != len(index):
            return True
        counters = {loop.name for loop in access.loops if isinstance(loop, ir.For)}

        def is_fixed(each: str) -> bool:
            return each in counters or each not in inside

        meaning = self.definitions.meaning
        equalities: list[Affine] = []
        for one, other in zip(index, access.index):
            if isinstance(other, ir.Slice) or not isinstance(getattr(other, "kind", None), Num):
                continue
            first, second = affine(one, is_fixed, meaning), affine(other, is_fixed, meaning)
            if first is not None and second is not None:
                equalities.append(combined(first, second, -1))
        bounds: list[Affine] = []
        for loop in access.loops:
            if isinstance(loop, ir.For):
                bounds += within(loop, "", lambda expr: affine(expr, is_fixed, meaning))
        return has_solution(equalities, bounds)


@attrs.frozen(eq=False)
class _Access:
    name: str
    index: tuple[Any, ...] | None
    loops: tuple[Any, ...]
    stmt: Any


def _accesses(block: ir.Block, loops: tuple[Any, ...]) -> Iterator[_Access]:
    """Yield the accesses to arrays in a block, each with the enclosing loops."""
    for stmt in block:
        if isinstance(stmt, ir.Set):
            yield _Access(stmt.base.name, stmt.index, loops, stmt)
        elif isinstance(stmt, (ir.Pop, ir.Add)) and isinstance(stmt.target, ir.Get):
            yield _Access(stmt.target.base.name, stmt.target.index, loops, stmt)
        for expr in ir.expressions_of(stmt):
            yield from _reads(expr, loops, stmt)
        for inner in ir.blocks_of(stmt):
            yield from _accesses(inner, (*loops, stmt) if isinstance(stmt, (ir.For, ir.While)) else loops)
        if isinstance(stmt, (ir.Let, ir.PullCall)):
            for name in ir.assigned(stmt):
                yield _Access(name, None, loops, stmt)


def _reads(expr: Any, loops: tuple[Any, ...], stmt: Any) -> Iterator[_Access]:
    for node in ir.nodes(expr):
        if isinstance(node, ir.Get):
            yield _Access(node.base.name, node.index, loops, stmt)
    bases = {id(node.base) for node in ir.nodes(expr) if hasattr(node, "base")}
    for node in ir.nodes(expr):
        if isinstance(node, ir.Var) and isinstance(node.kind, Arr) and id(node) not in bases:
            yield _Access(node.name, None, loops, stmt)


def _added_term(stmt: ir.Set, total: ir.Var, add: str) -> ir.Let:
    """Return the addition of a term to a sum instead of a cell."""
    value = ir.Op("neg", (stmt.value,), stmt.value.kind) if stmt.op == "sub" else stmt.value
    return ir.Let(total.name, ir.Op(add, (total, value), total.kind), stmt.line)
