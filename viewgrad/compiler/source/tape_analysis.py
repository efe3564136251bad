"""Tape analysis: the values that the forward program saves, and those that the reverse recomputes.

In the reverse, variables and arrays are restored to their previous values. Overwritten values are saved on a tape if an
adjoint reads them. Some values are recomputed, and counters are counted down.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import attrs

from . import ir
from .adjoint_rules import Reverser
from .aliases import base_of
from .definitions import Definitions
from .dependence import Access, may_overwrite
from .liveness import reads_of
from .value_types import INT, Arr, Num

CHEAP: Final = frozenset({
    "add", "sub", "mul", "div", "neg", "positive", "square", "abs", "sqrt", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal", "maximum", "minimum", "nonzero", "finite", "remainder", "floor_divide",
    "as_float", "as_integer", "as_single", "flowing",
})
LONG: Final = 16  # operators; larger expressions are saved rather than recomputed


class TapeAnalysis:
    """Decides which values are stored on the tape, which are recomputed, and which counters are counted down.

    Arguments:
        block: the program.
        kinds, roots, active, fresh, definitions, wraps, results: as for `adjoint`.
    """

    def __init__(
        self, block: ir.Block, kinds: dict[str, Any], roots: dict[str, str], active: set[str],
        fresh: Callable[[str], str], definitions: Definitions, wraps: bool, results: Collection[str],
        preaccumulates: bool = False,
    ) -> None:
        self.block = block
        self.results = set(results)
        self.kinds = kinds
        self.roots = roots
        self.active = active
        self.fresh = fresh
        self.fixed = set(definitions.fixed)
        self.meaning = definitions.meaning
        self.wraps = wraps
        self.reverser = Reverser(active, roots, fresh, kinds, preaccumulates)
        self.reverses: dict[int, ir.Block] = {}
        self.firsts: dict[int, ir.Block] = {}  # by statement, the reads of values from after it
        self.positions: dict[int, int] = {}
        self.block_ends: dict[int, int] = {}  # the ends of blocks
        self.loops: dict[int, tuple[Any, ...]] = {}
        # conditions of enclosing branches, and whether they are true
        self.conditions: dict[int, tuple[tuple[Any, bool], ...]] = {}
        self.lets: dict[str, list[Any]] = {}
        self.reads: dict[str, list[Access]] = {}  # by root, the reads of arrays by adjoints
        self.pushes: set[int] = set()
        self.recomputed: dict[int, list[ir.Let]] = {}  # by block
        self.skipped: set[int] = set()  # statements that are recomputed
        self.saved: dict[int, list[str]] = {}  # by block, the values saved at its end
        self.local: dict[int, list[str]] = {}  # by block, variables whose adjoints exist only inside it
        self.asked_again: set[int] = set()  # branches whose condition is evaluated again
        self.notes: list[tuple[int, str]] = []
        self.born: dict[str, tuple[Any, ...]] = {}  # the loops around the only statement that creates an array
        self.counted: dict[int, int] = {}  # by counter, its increment
        self.lasts: dict[int, str] = {}  # by loop, the variable for its last counter
        self.is_decided = False  # whether the saved parts of arrays have been decided
        self.repeated: set[int] = set()  # loops that are rerun before their reverse

    # -- analysis ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Decide which values are saved."""
        self._locate(self.block, ())
        for name, stmts in self.lets.items():
            is_array = len(stmts) == 1 and isinstance(self.kinds.get(name), Arr)
            if is_array and isinstance(stmts[0], ir.Let) and base_of(stmts[0].value) is None:
                self.born[name] = self.loops[id(stmts[0])]
        for stmt in ir.statements(self.block):
            if isinstance(stmt, (ir.Let, ir.LetMany, ir.Set)):
                self.firsts[id(stmt)], self.reverses[id(stmt)] = self.reverser.reverse(stmt)
        self._choose_counters()
        self._choose_tests(self.block)
        self.readers = self._readers()
        self._choose_recomputed(self.block, is_loop=False)
        self._choose_saved(self.block)
        self._collect_reads(self.block)
        self._decide_sets()
        self.is_decided = True
        self._flow(self.block, set())

    def _locate(self, block: ir.Block, loops: tuple[Any, ...], tests: tuple[tuple[Any, bool], ...] = ()) -> None:
        for stmt in block:
            self.conditions[id(stmt)] = tests
            self.positions[id(stmt)] = len(self.positions) + len(self.block_ends)
            self.loops[id(stmt)] = loops
            if isinstance(stmt, (ir.Let, ir.LetMany)):
                for name in (stmt.name,) if isinstance(stmt, ir.Let) else stmt.names:
                    self.lets.setdefault(name, []).append(stmt)
            if isinstance(stmt, ir.For):
                self.lets.setdefault(stmt.name, []).append(stmt)
                self._locate(stmt.body, (*loops, stmt), tests)
            elif isinstance(stmt, ir.While):
                self._locate(stmt.body, (*loops, stmt), tests)
            elif isinstance(stmt, ir.If):
                self._locate(stmt.then, loops, (*tests, (stmt.test, True)))
                self._locate(stmt.other, loops, (*tests, (stmt.test, False)))
        self.block_ends[id(block)] = len(self.positions) + len(self.block_ends)

    def _choose_counters(self) -> None:
        """Select the integers that the reverse counts down, because they are incremented by a constant."""
        for stmt in ir.statements(self.block):
            if isinstance(stmt, ir.Let) and stmt.value.kind == INT and self.kinds[stmt.name] == INT:
                value = stmt.value
                if isinstance(value, ir.Op) and value.name in ("add", "sub") and len(value.args) == 2:
                    left, right = value.args
                    if isinstance(left, ir.Var) and left.name == stmt.name and isinstance(right, ir.Const):
                        self.counted[id(stmt)] = right.value if value.name == "add" else -right.value

    def _reads_of(self, exprs: Iterator[Any]) -> tuple[set[str], list[Any]]:
        """Return the numbers, arrays and parts of arrays that expressions read."""
        numbers: set[str] = set()
        arrays: list[Any] = []

        def look(expr: Any) -> None:
            if isinstance(expr, ir.Get):
                if not ir.is_bar(expr.base.name):
                    arrays.append(expr)
                for item in expr.index:
                    for part in (item.low, item.high, item.step) if hasattr(item, "low") else (item,):
                        if part is not None and hasattr(part, "kind"):
                            look(part)
                return
            if isinstance(expr, ir.Dim):
                return
            if isinstance(expr, ir.Var):
                if isinstance(expr.kind, Arr):
                    if not ir.is_bar(expr.name):
                        arrays.append(expr)
                else:
                    numbers.add(expr.name)
                return
            if isinstance(expr, ir.Call) and expr.name in ("zeros_like", "ones_like", "empty_like"):
                return
            for child in ir.children(expr):
                look(child)

        for expr in exprs:
            look(expr)
        return numbers, arrays

    def _uses(self, stmt: Any) -> tuple[set[str], list[Any]]:
        """Return the numbers, arrays and parts of arrays that the reverse of a statement reads."""
        found: ir.Block = self.reverses.get(id(stmt), [])
        exprs: list[Any] = []
        for each in ir.statements(found):
            exprs += list(ir.expressions_of(each))
            if isinstance(each, ir.Set):
                exprs.append(ir.Get(each.base, each.index, each.base.kind))
        if isinstance(stmt, ir.Set) and (not self.is_decided or id(stmt) in self.pushes):  # the location is recomputed
            exprs.append(ir.Get(ir.Var("_bar", stmt.base.kind), stmt.index, stmt.base.kind))
        numbers, arrays = self._reads_of(iter(exprs))
        made = {name for each in (*ir.statements(found), *self.firsts.get(id(stmt), ())) for name in ir.assigned(each)}
        numbers = {name for name in numbers if name not in made and not ir.is_bar(name)}
        arrays = [each for each in arrays if (each.base.name if isinstance(each, ir.Get) else each.name) not in made]
        return numbers, arrays

    def _uses_after(self, stmt: Any) -> tuple[set[str], list[Any]]:
        """Return the values from after a statement that its reverse reads."""
        return self._reads_of(expr for each in self.firsts.get(id(stmt), ()) for expr in ir.expressions_of(each))

    def _changes(self, block: ir.Block, start: int = 0) -> tuple[set[str], list[ir.Set]]:
        """Return the numbers that statements bind, and their writes to arrays."""
        numbers: set[str] = set()
        writes: list[ir.Set] = []
        for stmt in ir.statements(block[start:]):
            numbers.update(ir.assigned(stmt))
            if isinstance(stmt, ir.Set):
                writes.append(stmt)
        return numbers, writes

    def _is_stable(self, expr: Any, at: int, loops: tuple[Any, ...], changed: set[str], writes: list[ir.Set]) -> bool:
        """Return whether an expression has the same value after some statements of the same iteration.

        Arguments:
            expr: the expression.
            at: its position.
            loops: the enclosing loops.
            changed, writes: the variables that the statements bind, and their writes.
        """
        if any(isinstance(each, ir.Call) for each in ir.nodes(expr)):
            return False
        numbers, arrays = self._reads_of(iter([expr]))
        if numbers & changed:
            return False
        for each in ir.nodes(expr):
            if isinstance(each, (ir.Dim, ir.Get)) and each.base.name in changed:
                return False
        for each in arrays:
            name = each.base.name if isinstance(each, ir.Get) else each.name
            for write in writes:
                if self._root(write.base.name) != self._root(name):
                    continue
                if not isinstance(each, ir.Get) or self.wraps or write.base.name != name or name not in self.fixed:
                    return False
                read = Access(name, each.index, loops, at)
                access = Access(name, write.index, self.loops[id(write)], self.positions[id(write)])
                if may_overwrite(access, read, self._is_fixed, same_iteration=True, meaning=self.meaning):
                    return False
        return True

    def _choose_tests(self, block: ir.Block) -> None:
        for stmt in ir.statements(block):
            if isinstance(stmt, ir.If):
                changed, writes = self._changes([stmt])
                if self._is_stable(stmt.test, self.positions[id(stmt)], self.loops[id(stmt)], changed, writes):
                    self.asked_again.add(id(stmt))

    def _choose_recomputed(self, block: ir.Block, is_loop: bool) -> None:
        for stmt in block:
            for inner in ir.blocks_of(stmt):
                self._choose_recomputed(inner, True)
        if not is_loop:
            return
        chosen: list[ir.Let] = []
        inside = {id(each) for each in ir.statements(block)}
        own = set(map(id, block))
        for number, stmt in enumerate(block):
            if not isinstance(stmt, ir.Let) or isinstance(stmt.value.kind, Arr) or len(self.lets[stmt.name]) != 1:
                continue
            if not self.loops[id(stmt)] or id(stmt) in self.counted:
                continue
            size = [each for each in ir.nodes(stmt.value) if isinstance(each, ir.Op)]
            if len(size) > LONG or any(each.name not in CHEAP for each in size):
                continue
            changed, writes = self._changes(block, number)
            changed = (changed - {stmt.name}) | {stmt.name}
            if not self._is_stable(stmt.value, self.positions[id(stmt)], self.loops[id(stmt)], changed, writes):
                continue
            if any(id(each) in self.skipped and id(each) not in own for name in self._reads_of(iter([stmt.value]))[0]
                   for each in self.lets.get(name, ())):
                continue  # the statement reads a value that is recomputed only in another block
            at = self.positions[id(stmt)]
            if all(id(each) in inside and self.positions[id(each)] > at for each in self.readers.get(stmt.name, ())):
                chosen.append(stmt)
        if chosen:
            self.recomputed[id(block)] = chosen
            self.skipped.update(id(stmt) for stmt in chosen)

    def _readers(self) -> dict[str, list[Any]]:
        """Return, for each number, the statements whose reverses read it."""
        found: dict[str, list[Any]] = {}
        for stmt in ir.statements(self.block):
            for name in self._read_by_reverse(stmt):
                found.setdefault(name, []).append(stmt)
        return found

    def _choose_saved(self, block: ir.Block) -> None:
        """Save values used in one iteration at its end, so that nothing is carried between iterations."""
        forward: dict[str, list[Any]] = {}
        for stmt in ir.statements(self.block):
            for name in set(reads_of(stmt)):
                forward.setdefault(name, []).append(stmt)
        users = dict(self.readers)
        for stmts in self.recomputed.values():
            for stmt in stmts:
                for name in self._reads_of(iter([stmt.value]))[0]:
                    users[name] = [*users.get(name, ()), stmt]
        self._choose_local(block, forward, users)

    def _choose_local(self, block: ir.Block, forward: dict[str, list[Any]], users: dict[str, list[Any]]) -> None:
        inside = {id(each) for each in ir.statements(block)}

        def within(stmts: list[Any], at: float) -> bool:
            return all(id(each) in inside and self.positions[id(each)] > at for each in stmts)

        for stmt in block:
            for inner in ir.blocks_of(stmt):
                self._choose_local(inner, forward, users)
            if not isinstance(stmt, ir.Let) or isinstance(self.kinds[stmt.name], Arr) or not self.loops[id(stmt)]:
                continue
            name, at = stmt.name, self.positions[id(stmt)]
            if len(self.lets[name]) != 1 or id(stmt) in self.counted or name in self.results:
                continue
            is_own = name not in self._uses(stmt)[0]  # it reads at most its own result
            if id(stmt) not in self.skipped and users.get(name) and within(users[name], at - is_own):
                self.saved.setdefault(id(block), []).append(name)
                self.skipped.add(id(stmt))
            if name in self.active and within(forward.get(name, []), at):
                self.local.setdefault(id(block), []).append(name)
                self.reverses[id(stmt)] = [
                    each for each in self.reverses[id(stmt)]
                    if not (isinstance(each, ir.Let) and each.name == ir.bar(name) and isinstance(each.value, ir.Const))
                ]

    def _read_by_reverse(self, stmt: Any) -> set[str]:
        """Return the numbers that the reverse of a statement reads, including tests and bounds."""
        if isinstance(stmt, ir.If) and id(stmt) in self.asked_again:
            return self._reads_of(iter([stmt.test]))[0]
        if isinstance(stmt, ir.For):
            return self._reads_of(iter([stmt.low, stmt.high]))[0]
        return self._uses(stmt)[0] | self._uses_after(stmt)[0]

    def _collect_reads(self, block: ir.Block) -> None:
        for stmt in block:
            loops, at = self.loops[id(stmt)], self.positions[id(stmt)]
            arrays = self._uses(stmt)[1]
            if isinstance(stmt, ir.If) and id(stmt) in self.asked_again:
                self._note_reads(self._reads_of(iter([stmt.test]))[1], loops, max(
                    self.block_ends[id(stmt.then)], self.block_ends[id(stmt.other)]))
            elif isinstance(stmt, ir.For):
                arrays = self._reads_of(iter([stmt.low, stmt.high]))[1]
            tests = self.conditions[id(stmt)]
            self._note_reads(arrays, loops, at, tests)
            self._note_reads(self._uses_after(stmt)[1], loops, at + 0.5, tests)
            if id(stmt) in self.repeated:  # it reads its operands again, after later statements were reversed
                again = [expr for each in ir.statements([stmt]) for expr in ir.expressions_of(each)]
                names = {node.name for expr in again for node in ir.nodes(expr)
                         if isinstance(node, ir.Var) and isinstance(node.kind, Arr)}
                variables = [ir.Var(name, self.kinds[name]) for name in sorted(names)]
                self._note_reads(variables, (), self.block_ends[id(stmt.body)])
            for inner in ir.blocks_of(stmt):
                self._collect_reads(inner)
        for stmt in self.recomputed.get(id(block), ()):
            self._note_reads(self._reads_of(iter([stmt.value]))[1], self.loops[id(stmt)], self.block_ends[id(block)])

    def _note_reads(
        self, arrays: list[Any], loops: tuple[Any, ...], at: float, tests: tuple[tuple[Any, bool], ...] = ()
    ) -> None:
        for each in arrays:
            name = each.base.name if isinstance(each, ir.Get) else each.name
            index = each.index if isinstance(each, ir.Get) else None
            self.reads.setdefault(self._root(name), []).append(Access(name, index, loops, at, tests))

    def _root(self, name: str) -> str:
        return self.roots.get(name, name)

    def _is_fixed(self, name: str) -> bool:
        return name in self.fixed

    def _flow(self, block: ir.Block, needed: set[str]) -> None:
        """Decide which overwritten numbers are saved; `needed` contains those that earlier adjoints read."""
        for stmt in block:
            if isinstance(stmt, (ir.Let, ir.LetMany)):
                uses = self._uses(stmt)[0]
                names = ir.assigned(stmt)
                for name in names:
                    is_kept = id(stmt) not in self.skipped and id(stmt) not in self.counted
                    if is_kept and isinstance(self.kinds[name], Num) and name in needed | uses:
                        self.pushes.add(id(stmt))
                needed |= uses
                if id(stmt) not in self.counted:
                    needed.difference_update(names)
                needed |= self._uses_after(stmt)[0]
            elif isinstance(stmt, ir.Set):
                needed |= self._uses(stmt)[0] | self._uses_after(stmt)[0]
            elif isinstance(stmt, ir.If):
                then, other = set(needed), set(needed)
                self._flow(stmt.then, then)
                self._flow(stmt.other, other)
                needed.clear()
                needed.update(then, other)
                if id(stmt) in self.asked_again:
                    needed |= self._reads_of(iter([stmt.test]))[0]
            elif isinstance(stmt, (ir.For, ir.While)):
                if isinstance(stmt, ir.For):
                    needed |= self._reads_of(iter([stmt.low, stmt.high]))[0]
                while True:
                    inside = set(needed)
                    self._flow(stmt.body, inside)
                    if inside <= needed:
                        break
                    needed |= inside
                if id(stmt) in self.repeated:
                    again = (expr for each in ir.statements([stmt]) for expr in ir.expressions_of(each))
                    needed |= self._reads_of(again)[0]
        for stmt in self.recomputed.get(id(block), ()):
            needed |= self._reads_of(iter([stmt.value]))[0]

    def _decide_sets(self) -> None:
        """Decide which overwritten parts of arrays are saved."""
        for stmt in ir.statements(self.block):
            if not isinstance(stmt, ir.Set):
                continue
            name = stmt.base.name
            write = Access(name, stmt.index, self.loops[id(stmt)], self.positions[id(stmt)], self.conditions[id(stmt)])
            for read in self.reads.get(self._root(name), ()):
                if self._hits(write, read):
                    self.pushes.add(id(stmt))
                    break

    def _hits(self, write: Access, read: Access) -> bool:
        comparable = write.base == read.base and (write.base in self.fixed or write.base in self.born)
        within = len(self.born.get(write.base, ()))
        if not comparable:
            write = attrs.evolve(write, index=None)
            within = 0
        elif self.wraps:
            write = attrs.evolve(write, index=None)
        return may_overwrite(write, read, self._is_fixed, within, meaning=self.meaning)
