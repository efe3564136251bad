"""The reverse of a program: the program extended by pushes to the tape, and the program that runs backwards."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import attrs

from . import ir
from .accumulators import accumulate_in_variables
from .activity import active_names
from .aliases import base_of, roots_of
from .definitions import Definitions
from .dependence import Access
from .snapshots import Changes, in_segments, reversed_segment
from .tape_analysis import TapeAnalysis
from .value_types import BOOL, FLOAT, INT, Arr, Num, adjoint_kind


@attrs.define(eq=False)
class Adjoint:
    """A program and its reverse.

    Attributes:
        forward: the program, with its pushes to the tape.
        backward: the program that runs backwards.
        active: the variables that have an adjoint.
        numbers: the adjoints of numbers, which are initialized to 0.
        notes: for each value saved on the tape, its line and its name.
    """

    forward: ir.Block
    backward: ir.Block
    active: set[str]
    numbers: list[str]
    notes: list[tuple[int, str]]


def adjoint(
    block: ir.Block, kinds: dict[str, Any], wanted: Collection[str], results: Collection[str],
    fresh: Callable[[str], str], definitions: Definitions, wraps: bool = False,
    is_segmented: bool = False, add: str = "add", preaccumulates: bool = False,
) -> Adjoint:
    """Return the reverse of a program.

    Arguments:
        block: the program.
        kinds: the kinds of the variables; new variables are added.
        wanted: the inputs whose gradients are requested.
        results: the variables that contain results.
        fresh: a function that returns an unused name.
        definitions: the definitions of its variables.
        wraps: whether indices may be negative, so that different indices may refer to the same cell.
        is_segmented: whether the outermost loops run in segments, so that their tapes are bounded.
        add: the operator that adds to a sum of adjoints.
        preaccumulates: whether partial derivatives of expressions are computed before they are multiplied by adjoints.
    """
    roots = roots_of(block)
    active = active_names(block, roots, wanted, results)
    analysis = Reversal(block, kinds, roots, active, fresh, definitions, wraps, results, preaccumulates)
    if is_segmented:
        analysis.repeated = {id(stmt) for stmt in block if isinstance(stmt, (ir.For, ir.While))}
    analysis.run()
    if is_segmented:
        forward, backward = analysis.segmented()
    else:
        forward, backward = analysis.forward(block), analysis.backward(block)
        if not wraps:
            backward = accumulate_in_variables(backward, kinds, roots, fresh, definitions, add)
    local = {name for names in analysis.local.values() for name in names}
    numbers = [ir.bar(name) for name in sorted(active - local) if isinstance(kinds[name], Num)]
    for name in active:
        kinds[ir.bar(name)] = adjoint_kind(kinds[name])
    return Adjoint(forward, backward, active, numbers, analysis.notes)


class Reversal(TapeAnalysis):
    """Generates the program with its tape and the program that runs backwards, as decided by the tape analysis."""

    # -- the program forwards ------------------------------------------------------------------------------------------

    def forward(self, block: ir.Block) -> ir.Block:
        """Return the program with its pushes to the tape."""
        found: ir.Block = []
        for stmt in block:
            line = stmt.line
            if isinstance(stmt, (ir.Let, ir.LetMany)):
                if id(stmt) in self.pushes:
                    for name in ir.assigned(stmt):
                        found.append(ir.Push(ir.Var(name, self.kinds[name]), line))
                        self.notes.append((line, name))
                for name in self._rebound(stmt):
                    found += [ir.Push(ir.Var(name, self.kinds[name]), line)]
                    if name in self.active:
                        found.append(ir.Push(ir.Var(ir.bar(name), self.kinds[name]), line))
                found.append(stmt)
                found += self._shadows(stmt)
            elif isinstance(stmt, ir.Set):
                if id(stmt) in self.pushes:
                    place = ir.Get(stmt.base, stmt.index, ir.place_kind(stmt.base, stmt.index), stmt.safe)
                    found.append(ir.Push(ir.Call("copy", (place,), (), place.kind) if place.kind.ndim and place.is_view
                                      else place, line))
                    self.notes.append((line, f"{stmt.base.name}[...]"))
                found.append(stmt)
            elif isinstance(stmt, ir.For):
                last = self._last(stmt)
                found.append(attrs.evolve(stmt, body=self.forward(stmt.body), last=last))
                if last is not None and self.loops[id(stmt)]:
                    found.append(ir.Push(ir.Var(last, INT), line))
            elif isinstance(stmt, ir.While):
                count = self._last(stmt)
                found.append(attrs.evolve(stmt, body=self.forward(stmt.body), count=count))
                if count is not None and self.loops[id(stmt)]:
                    found.append(ir.Push(ir.Var(count, INT), line))
            elif isinstance(stmt, ir.If):
                then, other = self.forward(stmt.then), self.forward(stmt.other)
                if id(stmt) not in self.asked_again and self._is_reversed(stmt):
                    then = [*then, ir.Push(ir.Const(1, INT), line)]
                    other = [*other, ir.Push(ir.Const(0, INT), line)]
                found.append(attrs.evolve(stmt, then=then, other=other))
            else:
                found.append(stmt)
        return found + [ir.Push(ir.Var(name, self.kinds[name]), 0) for name in self.saved.get(id(block), ())]

    def _last(self, loop: Any) -> str | None:
        """Return the variable that stores how far a loop ran, or None for a loop that always runs to its end."""
        if isinstance(loop, ir.For) and loop.stop is None:
            return None
        if id(loop) not in self.lasts:
            name = self.fresh(f"{loop.name}_last" if isinstance(loop, ir.For) else "count")
            self.kinds[name] = INT
            self.lasts[id(loop)] = name
        return self.lasts[id(loop)]

    def _rebound(self, stmt: Any) -> list[str]:
        """Return the arrays whose variables a statement rebinds and that must be recovered in the reverse."""
        if not self.loops[id(stmt)] and all(len(self.lets[name]) == 1 for name in ir.assigned(stmt)):
            return []
        return [name for name in ir.assigned(stmt) if isinstance(self.kinds[name], Arr)]

    def _shadows(self, stmt: Any) -> ir.Block:
        """Return the adjoints of the arrays that a statement creates, as arrays of zeros or as the same views."""
        found: ir.Block = []
        for name in ir.assigned(stmt):
            kind = self.kinds[name]
            if name not in self.active or not isinstance(kind, Arr):
                continue
            value = stmt.value if isinstance(stmt, ir.Let) else None
            base = base_of(value)
            if base is None:
                shadow: Any = ir.Call("zeros_like", (ir.Var(name, kind),), (("dtype", adjoint_kind(kind).dtype),), kind)
            elif isinstance(value, ir.Var):
                shadow = ir.Var(ir.bar(value.name), kind)
            elif isinstance(value, ir.Get):
                shadow = attrs.evolve(value, base=ir.Var(ir.bar(base.name), base.kind), safe=True)
            else:
                assert isinstance(value, ir.Call)
                shadow = attrs.evolve(value, args=(ir.Var(ir.bar(base.name), base.kind), *value.args[1:]))
            found.append(ir.Let(ir.bar(name), shadow, stmt.line))
        return found

    def segmented(self) -> tuple[ir.Block, ir.Block]:
        """Return the program and its reverse with the outermost loops in segments."""
        forward: ir.Block = []
        backward: list[ir.Block] = []
        bound: set[str] = set()
        for stmt in self.block:
            ahead, back = self.forward([stmt]), self.backward([stmt])
            if id(stmt) in self.repeated and any(isinstance(each, ir.Push) for each in ir.statements(ahead)):
                known = {name for name in self.kinds if name in bound or name not in self.lets}
                changes = Changes(stmt, ahead, self.kinds, self.roots, self.active, known.__contains__,
                                  self._is_kept_as_it_is)
                loop = in_segments(stmt, ahead, self._without_pushes([stmt]), self._last(stmt), changes.state(),
                                   self.fresh, self.kinds)
                ahead, back = [loop], [ir.SegmentedBack(loop, reversed_segment(loop, back), stmt.line)]
            forward += ahead
            backward.append(back)
            bound.update(name for each in ir.statements([stmt]) for name in ir.assigned(each))
        return forward, [stmt for block in reversed(backward) for stmt in block]

    def _without_pushes(self, block: ir.Block) -> ir.Block:
        """Return statements without pushes, but with the adjoints of the arrays that they create."""
        found: ir.Block = []
        for stmt in block:
            if isinstance(stmt, (ir.For, ir.While)):
                found.append(attrs.evolve(stmt, body=self._without_pushes(stmt.body)))
            elif isinstance(stmt, ir.If):
                then, other = self._without_pushes(stmt.then), self._without_pushes(stmt.other)
                found.append(ir.If(stmt.test, then, other, stmt.line))
            else:
                found.append(stmt)
                if isinstance(stmt, (ir.Let, ir.LetMany)):
                    found += self._shadows(stmt)
        return found

    def _is_kept_as_it_is(self, name: str, loop: Any) -> bool:
        """Return whether a loop reads the same values from an array if it is rerun from some iteration on."""
        if name not in self.fixed or any(other != name and root == self._root(name)
                                         for other, root in self.roots.items()):
            return False
        writes = [stmt for stmt in ir.statements([loop]) if isinstance(stmt, ir.Set) and stmt.base.name == name]
        if any(id(stmt) in self.pushes or stmt.op for stmt in writes):
            return False
        for stmt in ir.statements([loop]):
            for each in self._reads_of(ir.expressions_of(stmt))[1]:
                if (each.base.name if isinstance(each, ir.Get) else each.name) != name:
                    continue
                read = Access(name, each.index if isinstance(each, ir.Get) else None, self.loops[id(stmt)],
                              self.positions[id(stmt)])
                for write in writes:
                    access = Access(name, write.index, self.loops[id(write)], self.positions[id(write)])
                    if self._hits(access, read):
                        return False
        return True

    # -- the program backwards -----------------------------------------------------------------------------------------

    def _is_reversed(self, stmt: Any) -> bool:
        """Return whether a statement has anything to undo or to differentiate."""
        if isinstance(stmt, (ir.Let, ir.LetMany)):
            return bool(self.reverses.get(id(stmt)) or id(stmt) in self.pushes or self._rebound(stmt)
                        or id(stmt) in self.counted)
        if isinstance(stmt, ir.Set):
            return bool(self.reverses.get(id(stmt)) or id(stmt) in self.pushes)
        if isinstance(stmt, (ir.If, ir.For, ir.While)):
            inside = ir.blocks_of(stmt)
            return any(id(inner) in self.saved or any(map(self._is_reversed, inner)) for inner in inside) or (
                isinstance(stmt, (ir.For, ir.While)) and self._last(stmt) is not None and bool(self.loops[id(stmt)])
            )
        return False

    def backward(self, block: ir.Block) -> ir.Block:
        """Return the program that runs backwards."""
        saved = reversed(self.saved.get(id(block), ()))
        found: ir.Block = [ir.Pop(ir.Var(name, self.kinds[name]), 0) for name in saved]
        found += [ir.Let(stmt.name, stmt.value, stmt.line) for stmt in self.recomputed.get(id(block), ())]
        found += [ir.Let(ir.bar(name), ir.Const(0.0, FLOAT), 0) for name in self.local.get(id(block), ())]
        for stmt in reversed(block):
            found += self.firsts.get(id(stmt), ())
            if isinstance(stmt, (ir.Let, ir.LetMany)):
                found += self._undone(stmt)
            elif isinstance(stmt, ir.Set):
                if id(stmt) in self.pushes:
                    place = ir.Get(stmt.base, stmt.index, ir.place_kind(stmt.base, stmt.index), safe=True)
                    found.append(ir.Pop(place, stmt.line))
                found += self.reverses[id(stmt)]
            elif isinstance(stmt, (ir.For, ir.While)):
                found += self._loop_backwards(stmt)
            elif isinstance(stmt, ir.If) and self._is_reversed(stmt):
                found += self._branch_backwards(stmt)
        return found

    def _undone(self, stmt: Any) -> ir.Block:
        """Return the reverse of a binding."""
        line = stmt.line
        if id(stmt) in self.counted:
            value = ir.Op("sub", (ir.Var(stmt.name, INT), ir.Const(self.counted[id(stmt)], INT)), INT)
            return [ir.Let(stmt.name, value, line)]
        pops: ir.Block = []
        if id(stmt) in self.pushes:
            pops += [ir.Pop(ir.Var(name, self.kinds[name]), line) for name in reversed(ir.assigned(stmt))]
        back: ir.Block = []
        for name in reversed(self._rebound(stmt)):
            if name in self.active:
                back.append(ir.Pop(ir.Var(ir.bar(name), self.kinds[name]), line))
            back.append(ir.Pop(ir.Var(name, self.kinds[name]), line))
        return self._in_order(stmt, pops, back)

    def _loop_backwards(self, stmt: Any) -> ir.Block:
        """Return the reverse of a loop, with as many iterations as were run, last one first."""
        found: ir.Block = []
        last = self._last(stmt)
        if last is not None and self.loops[id(stmt)]:
            found.append(ir.Pop(ir.Var(last, INT), stmt.line))
        if self._is_reversed(stmt):
            body = self.backward(stmt.body)
            if isinstance(stmt, ir.For):
                found.append(ir.For(stmt.name, stmt.low, stmt.high, stmt.step, body, last, None, True, stmt.line))
            else:
                found.append(ir.While(stmt.test, body, last, None, True, stmt.line))
        return found

    def _branch_backwards(self, stmt: ir.If) -> ir.Block:
        """Return the reverse of a branch, for the side that was taken."""
        found: ir.Block = []
        test = stmt.test
        if id(stmt) not in self.asked_again:
            name = self.fresh("way")
            self.kinds[name] = INT
            found.append(ir.Pop(ir.Var(name, INT), stmt.line))
            test = ir.Op("equal", (ir.Var(name, INT), ir.Const(1, INT)), BOOL)
        found.append(ir.If(test, self.backward(stmt.then), self.backward(stmt.other), stmt.line))
        return found

    def _in_order(self, stmt: Any, pops: ir.Block, back: ir.Block) -> ir.Block:
        """Return the reverse of a binding; the adjoint of an array is read before its variable is rebound."""
        reverse = self.reverses.get(id(stmt), [])
        if not back:
            return [*pops, *reverse]
        # Operands are read with their old values, so an array that is rebound from itself must be recovered first.
        names = set(ir.assigned(stmt))
        reads = set(ir.variables_in(reverse))
        if not names & reads and not {ir.bar(name) for name in names if self._adds_to(reverse, name)}:
            return [*pops, *reverse, *back]
        saved: ir.Block = []
        renamed: dict[str, str] = {}
        for name in names:
            if name in self.active:
                new = self.fresh("b")
                self.kinds[new] = self.kinds[name]
                renamed[ir.bar(name)] = new
                saved.append(ir.Let(new, ir.Var(ir.bar(name), self.kinds[name]), stmt.line))
        return [*saved, *pops, *back, *_with_first_grads(reverse, renamed)]

    def _adds_to(self, reverse: ir.Block, name: str) -> bool:
        bar = ir.bar(name)
        return any(
            (isinstance(each, ir.Set) and each.base.name == bar) or (isinstance(each, ir.Add) and bar == (
                each.target.base.name if isinstance(each.target, ir.Get) else each.target.name))
            for each in ir.statements(reverse)
        )


def _with_first_grads(reverse: ir.Block, renamed: dict[str, str]) -> ir.Block:
    """Return the reverse of a binding whose adjoint is read under another name but accumulated under its own."""
    def change(expr: Any) -> Any:
        if isinstance(expr, ir.Var) and expr.name in renamed:
            return ir.Var(renamed[expr.name], expr.kind)
        return expr

    found: ir.Block = []
    for stmt in reverse:
        if isinstance(stmt, ir.Let):
            found.append(ir.Let(stmt.name, ir.mapped(stmt.value, change), stmt.line))
        elif isinstance(stmt, ir.Add):
            found.append(ir.Add(stmt.target, ir.mapped(stmt.value, change), stmt.line))
        elif isinstance(stmt, ir.Set):
            found.append(attrs.evolve(stmt, value=ir.mapped(stmt.value, change)))
        elif isinstance(stmt, ir.PullCall):
            grads = tuple([None if each is None else ir.mapped(each, change) for each in stmt.grads])
            found.append(attrs.evolve(stmt, grads=grads))
        elif isinstance(stmt, ir.If):
            found.append(ir.If(ir.mapped(stmt.test, change), _with_first_grads(stmt.then, renamed),
                            _with_first_grads(stmt.other, renamed), stmt.line))
        else:
            found.append(stmt)
    return found
