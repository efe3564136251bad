"""Bounds checks: indices are proven to be in range, or checked once at the entry of a loop.

All other indices are checked at each access. Checked indices must not be negative; a program that needs negative
indices, which count from the end, is compiled again without this pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs

from . import ir
from .definitions import Definitions
from .dependence import Affine, affine, combined, constraints_of, has_solution, sides_of, within
from .value_types import BOOL, INT, Num


def check_bounds(block: ir.Block, definitions: Definitions) -> ir.Block:
    """Return the program with indices marked that are in range, and with checks at the entry of loops.

    Arguments:
        block: the program.
        definitions: the definitions of its variables.
    """
    return _Bounds(definitions).block(block, (), True)


class _Bounds:
    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.checks: list[dict[Any, Any]] = []  # by enclosing loop, the checks at its entry
        self.changed: list[set[str]] = []  # by enclosing loop, the variables that it binds
        self.conditions: list[tuple[Any, bool]] = []  # the conditions of enclosing branches, and whether they are true

    def block(self, stmts: ir.Block, loops: tuple[Any, ...], always: bool) -> ir.Block:
        """Return a block with its indices marked, and the checks at the entry of its loops.

        Arguments:
            stmts: the block.
            loops: the enclosing loops.
            always: whether each iteration of the innermost loop executes it.
        """
        found: ir.Block = []
        for stmt in stmts:
            if isinstance(stmt, ir.For):
                low, high = self.expr(stmt.low, loops, always), self.expr(stmt.high, loops, always)
                self.checks.append({})
                self.changed.append(ir.bound_in(stmt.body))
                body = self.block(stmt.body, (*loops, stmt), stmt.stop is None and abs(stmt.step) == 1)
                checks = self.checks.pop()
                self.changed.pop()
                new = attrs.evolve(stmt, low=low, high=high, body=body)
                condition: Any = None
                for key, test in checks.items():
                    if not (always and self.lift(key, test, loops)):
                        condition = test if condition is None else ir.Lazy("and", (condition, test), BOOL)
                if condition is not None:
                    found.append(ir.Check(condition, stmt.line, of_index=True))
                found.append(new)
            elif isinstance(stmt, ir.While):
                self.checks.append({})
                self.changed.append(ir.bound_in(stmt.body))
                test = self.expr(stmt.test, (*loops, stmt), False)
                body = self.block(stmt.body, (*loops, stmt), False)
                self.checks.pop()
                self.changed.pop()
                found.append(attrs.evolve(stmt, test=test, body=body))
            elif isinstance(stmt, ir.If):
                test = self.expr(stmt.test, loops, always)
                then, other = [self.under(stmt.test, holds, functools.partial(self.block, inner, loops, False))
                               for holds, inner in ((True, stmt.then), (False, stmt.other))]
                found.append(ir.If(test, then, other, stmt.line))
            elif isinstance(stmt, ir.Let):
                found.append(ir.Let(stmt.name, self.expr(stmt.value, loops, always), stmt.line))
            elif isinstance(stmt, ir.Set):
                value = self.expr(stmt.value, loops, always)
                index = tuple([self.item(each, loops, always) for each in stmt.index])
                safe = stmt.safe or self.is_safe(stmt.base, stmt.index, loops, always)
                found.append(attrs.evolve(stmt, index=index, value=value, safe=safe))
            elif isinstance(stmt, ir.Check):
                if not self.always_holds(stmt.test, loops):
                    found.append(attrs.evolve(stmt, test=self.expr(stmt.test, loops, always)))
            else:
                found.append(stmt)
        return found

    def lift(self, key: Any, test: Any, loops: tuple[Any, ...]) -> bool:
        """Check an index at the entry of the enclosing loop, if the loop does not change it; return whether this was
        possible.
        """
        if not loops or not isinstance(loops[-1], ir.For):
            return False
        outer = loops[-1]
        names = {node.base.name if isinstance(node, ir.Dim) else node.name for node in ir.nodes(test)
                 if isinstance(node, (ir.Dim, ir.Var))}
        if names & self.changed[-1] or outer.name in names:
            return False
        self.checks[-1]["lifted", key] = ir.Lazy("or", (_is_empty(outer), test), BOOL)
        return True

    def item(self, each: Any, loops: tuple[Any, ...], always: bool) -> Any:
        if each is ir.NEW or isinstance(each, ir.Slice):
            return each
        return self.expr(each, loops, always)

    def under(self, test: Any, holds: bool, work: Callable[[], Any]) -> Any:
        """Return the result of a function that processes code executed only if a condition is true, or false."""
        self.conditions.append((test, holds))
        try:
            return work()
        finally:
            self.conditions.pop()

    def expr(self, expr: Any, loops: tuple[Any, ...], always: bool) -> Any:
        """Return an expression with its safe indices marked."""
        if isinstance(expr, ir.Lazy):
            return attrs.evolve(expr, args=self.lazy(expr, loops, always))
        if any(isinstance(node, ir.Lazy) for node in ir.nodes(expr)):
            if isinstance(expr, ir.Op):
                return attrs.evolve(expr, args=tuple([self.expr(arg, loops, always) for arg in expr.args]))
            always = False

        def change(node: Any) -> Any:
            if isinstance(node, ir.Get) and isinstance(node.kind, Num) and not node.safe:
                return attrs.evolve(node, safe=self.is_safe(node.base, node.index, loops, always))
            return node

        return ir.mapped(expr, change)

    def lazy(self, expr: ir.Lazy, loops: tuple[Any, ...], always: bool) -> tuple[Any, ...]:
        """Return the operands of an operator that evaluates the second one conditionally."""
        found = []
        before = len(self.conditions)
        for number, arg in enumerate(expr.args):
            found.append(self.expr(arg, loops, always and number == 0))
            if expr.name in ("and", "or"):
                self.conditions.append((arg, expr.name == "and"))
            elif expr.name == "if":
                del self.conditions[before:]
                self.conditions.append((expr.args[0], number == 0))
        del self.conditions[before:]
        return tuple(found)

    def is_safe(self, base: ir.Var, index: tuple[Any, ...], loops: tuple[Any, ...], always: bool) -> bool:
        """Return whether the integers in an index are in range, possibly due to checks at the entry of the innermost
        loop.
        """
        tests: list[tuple[Any, Any]] = []
        for axis, each in enumerate(index):
            if each is ir.NEW:
                return False
            if isinstance(each, ir.Slice):
                continue
            if not isinstance(each.kind, Num):
                return False
            if not self.in_range(base, axis, each, loops):
                # A constant, such as that of a column, is checked before the loop even if only a branch reads it.
                may_check = (always or isinstance(each, ir.Const)) and loops and isinstance(loops[-1], ir.For)
                test = self.check(base, axis, each, loops) if may_check else None
                if test is None:
                    return False
                tests.append(test)
        if tests:
            for key, test in tests:
                self.checks[-1][key] = test
        return True

    def in_range(self, base: ir.Var, axis: int, each: Any, loops: tuple[Any, ...]) -> bool:
        """Return whether an index is in range for all inputs."""
        known = self.known(loops)
        form = affine(each, known, self.definitions.meaning)
        if form is None or not known(base.name):
            return False
        length = affine(ir.Dim(base, axis), known, self.definitions.meaning)
        if length is None:
            return False
        below = combined(combined({}, form, -1), {"": 1}, -1)  # the index is at most -1
        above = combined(form, length, -1)  # or at least the length
        return not self.may_be(loops, [], [below], [form, length]) and not self.may_be(
            loops, [], [above], [form, length])

    def always_holds(self, test: Any, loops: tuple[Any, ...]) -> bool:
        """Return whether a condition on integers is true for all inputs."""
        known = self.known(loops)
        equal, least, apart = constraints_of(
            test, False, lambda expr: affine(expr, known, self.definitions.meaning))
        if not equal and not least and not apart:
            return False
        forms = [*equal, *least, *apart]
        return not any(self.may_be(loops, equal, [*least, *sides], forms) for sides in sides_of(apart))

    def known(self, loops: tuple[Any, ...]) -> Callable[[str], bool]:
        """Return a function that tests whether a variable has a single value in an iteration of the given loops."""
        names = {loop.name for loop in loops if isinstance(loop, ir.For)}
        return lambda name: name in names or self.definitions.is_fixed(name)

    def may_be(
        self, loops: tuple[Any, ...], equal: list[Affine], least: list[Affine], forms: list[Affine]
    ) -> bool:
        """Return whether some forms can be 0 and others at least 0, given the loops and branches.

        Arguments:
            loops: the enclosing loops.
            equal, least: the forms.
            forms: the forms in which lengths occur.
        """
        known = self.known(loops)

        def form(expr: Any) -> Affine | None:
            return affine(expr, known, self.definitions.meaning)

        equal = list(equal)
        bounds: list[Affine] = []
        for loop in loops:
            if isinstance(loop, ir.For):
                bounds += within(loop, "", form)
        apart: list[Affine] = []
        for test, holds in self.conditions:
            for all_of, new in zip((equal, bounds, apart), constraints_of(test, holds, form)):
                all_of += new
        lengths = {name for each in (*forms, *equal, *bounds, *apart) for name in each if "." in name}
        bounds += [{name: 1} for name in lengths]
        return any(has_solution(equal, [*bounds, *least, *sides]) for sides in sides_of(apart[:2]))

    def check(self, base: ir.Var, axis: int, each: Any, loops: tuple[Any, ...]) -> tuple[Any, Any] | None:
        """Return the condition to check at the entry of the innermost loop."""
        loop = loops[-1]
        changed = self.changed[-1]
        names = {loop.name}

        def known(name: str) -> bool:
            return name in names or name not in changed

        if base.name in changed or any(isinstance(node, ir.Get) for node in ir.nodes(each)):
            return None
        form = affine(each, known)
        if form is None or any(name.partition(".")[0] in changed for name in form if name and name != loop.name):
            return None
        first, last = loop.low, ir.Op("sub" if loop.step > 0 else "add", (loop.high, ir.Const(1, INT)), INT)
        empty = _is_empty(loop)
        length = ir.Dim(base, axis)
        zero = ir.Const(0, INT)

        def at(value: Any) -> Any:
            return ir.mapped(each, lambda node: value if isinstance(node, ir.Var) and node.name == loop.name else node)

        ends = (first, last) if form.get(loop.name, 0) else (first,)
        test: Any = empty
        fits: Any = None
        for end in ends:
            place = at(end)
            for one in (ir.Op("less_equal", (zero, place), BOOL), ir.Op("less", (place, length), BOOL)):
                fits = one if fits is None else ir.Lazy("and", (fits, one), BOOL)
        return (base.name, axis, tuple(sorted(form.items()))), ir.Lazy("or", (test, fits), BOOL)


def _is_empty(loop: ir.For) -> Any:
    return ir.Op("less_equal" if loop.step > 0 else "greater_equal", (loop.high, loop.low), BOOL)
