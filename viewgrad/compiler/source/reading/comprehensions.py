"""Iterables, comprehensions, and sums of generators."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from ..ir import Call, Check, Const, For, Op, Set, Slice, Var, is_number
from ..library import library_name
from ..syntax_trees import stores_of
from ..value_types import BOOL, INT, Arr
from ..values import (
    HashedDict,
    HashedSet,
    IteratorValue,
    ListValue,
    NotSupported,
    Ref,
    Reread,
    Static,
    TupleValue,
    as_expr,
    as_key,
    items_in,
)
from . import python_code
from .indexing import indexed, item
from .iteration import enumerated, range_of, reversed_sequence, sequence_of, zipped
from .lists import vector_of
from .operators import arithmetic
from .scopes import Deferred, Scope
from .targets import TargetReader

UNROLLED: Final = 16
ITEMS: Final = " items"  # variables that do not occur in any function
GIVEN: Final = " given"
FUNCTION: Final = " function"


class ComprehensionReader(TargetReader):
    """Reads iterables and comprehensions."""

    def summed(self, generator: Deferred, start: Any) -> Any:
        """Return the sum over a generator, computed by a loop."""
        node = generator.node
        scope = generator.scope
        comprehension = node.generators[0]
        sequence = self.sequence(scope, comprehension.iter)
        names = [each.id for each in ast.walk(comprehension.target) if isinstance(each, ast.Name)]
        inner = Scope(scope, dict.fromkeys(names, 2), self.prefix_inside(scope), scope.variables, None, {}, scope.file)
        inner.stores["total "] = 2
        total = self.out.fresh("total")
        inner.env["total "] = self.bound(total, start, False)
        name = self.out.fresh("k")
        self.out.kinds[name] = INT
        line = self.out.line

        def read() -> None:
            self.assign(inner, comprehension.target, sequence.item(Var(name, INT)))
            value = self.value(inner, node.elt)
            self.checked(sequence)
            inner.env["total "] = self.bound(total, arithmetic(self.out, "add", inner.env["total "], value), False)

        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (sequence.low, sequence.high)]
        body = self.looped(inner, read)
        self.out.emit(For(name, low, high, sequence.step, body, line=line))
        return inner.env["total "]

    def listed(self, comprehension: Deferred) -> Any:
        """Return a list of unknown length, of numbers or rows, as an array."""
        node = comprehension.node
        scope = comprehension.scope
        generator = node.generators[0]
        sequence = self.sequence(scope, generator.iter)
        names = [each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)]
        inner = Scope(scope, dict.fromkeys(names, 2), self.prefix_inside(scope), scope.variables, None, {}, scope.file)
        count = sequence.count if isinstance(sequence.count, (Const, Var)) else self.out.temporary(sequence.count, "n")
        name = self.out.fresh("k")
        self.out.kinds[name] = INT
        line = self.out.line
        counter = Var(name, INT)
        number = Op("sub", (counter, sequence.low), INT)
        if sequence.step != 1:
            number = Op("floor_divide", (number, Const(sequence.step, INT)), INT)
        if sequence.step == 1 and sequence.low == Const(0, INT):
            number = counter  # type: ignore[assignment]
        found: list[Any] = []

        def read() -> None:
            self.assign(inner, generator.target, sequence.item(counter))
            found[:] = [as_expr(self.value(inner, node.elt))]
            if sequence.checks and found[0] is not None:
                found[:] = [self.out.temporary(found[0])]
            self.checked(sequence)

        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (sequence.low, sequence.high)]
        probe = self.looped(inner, read)
        if found[0] is None or not is_number(found[0]) or found[0].kind.dtype != "d":
            raise self.out.refused("a list of unknown length of values other than floats is not supported", node)
        array = self.out.temporary(Call("empty", ((count,),), (("dtype", "float64"),), Arr("d", 1)), "listed")
        self.out.emit(Check(Op("less_equal", (Const(0, INT), count), BOOL), line))
        probe.append(Set(array, (number,), found[0], "", line))
        self.out.emit(For(name, low, high, sequence.step, probe, line=line))
        return array

    def checked(self, sequence: Any) -> None:
        """Emit a check, at the end of an iteration, that the lists being iterated over have not changed in length."""
        for test in sequence.checks:
            self.out.emit(Check(test, self.out.line))

    def block(self, scope: Scope, stmts: Sequence[ast.stmt]) -> None:
        """Read statements."""
        raise NotImplementedError

    def sequence(self, scope: Scope, node: ast.expr) -> Any:
        """Return the iterable of a loop: an `Iteration`, or a `TupleValue` of known length."""
        option = node.keywords[0].arg if isinstance(node, ast.Call) and len(node.keywords) == 1 else None
        strict, starts = option == "strict", option == "start"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (strict or starts or not node.keywords):
            function = self.value(scope, node.func)
            name = library_name(function.value) if isinstance(function, Static) else None
            if starts and name != "builtins.enumerate":
                return sequence_of(self.out, self.value(scope, node))
            if name == "builtins.range" and not strict:
                return range_of(self.out, [self.value(scope, arg) for arg in node.args])
            if name == "builtins.zip" or (name in ("builtins.enumerate", "builtins.reversed") and not strict):
                count = 1 if name != "builtins.zip" else len(node.args)
                parts = [self.sequence(scope, arg) for arg in node.args[:count]]
                if name == "builtins.reversed":
                    return reversed_sequence(self.out, parts[0])
                if name == "builtins.zip":
                    known = self.value(scope, node.keywords[0].value) if strict else Static(False)
                    return zipped(self.out, parts, isinstance(known, Static) and bool(known.value))
                first = node.keywords[0].value if starts else node.args[1] if len(node.args) > 1 else None
                start = Static(0) if first is None else self.value(scope, first)
                return enumerated(self.out, parts[0], start)
        return sequence_of(self.out, items_in(self.value(scope, node)))

    def prefix_inside(self, scope: Scope) -> str:
        """Return the prefix of the variables of a comprehension, which has its own scope."""
        return scope.prefix + self.out.fresh("each") + "_"

    def of_ListComp(self, scope: Scope, node: ast.ListComp) -> Any:
        """Read a list comprehension."""
        return self.over_known(scope, node, list)

    def over_known(self, scope: Scope, node: ast.ListComp | ast.GeneratorExp, kind: type) -> Any:
        """Return the items of a comprehension, unrolled over known values or otherwise computed by a loop."""
        site = (scope.file, node.lineno, node.col_offset) if kind is list else None
        if self.grows(site):
            return self.by_loop(scope, node)
        before, numbers = len(self.out.buffer), dict(self.out.numbers)
        try:
            return TupleValue(tuple(self.each(scope, node.elt, node.generators, node)), kind, site)
        except NotSupported:
            del self.out.buffer[before:]
            self.out.numbers = numbers
            return self.by_loop(scope, node)

    def by_loop(
        self, scope: Scope, node: ast.ListComp | ast.GeneratorExp, given: dict[str, Any] | None = None
    ) -> ListValue | Ref:
        """Return a list of the items of a comprehension, filled by a loop.

        Arguments:
            scope: the variables.
            node: the comprehension.
            given: additional variables.
        """
        call = ast.Call(ast.Attribute(ast.Name(ITEMS, ast.Load()), "append", ast.Load()), [node.elt], [])
        empty = self.new_list_at((scope.file, node.lineno, node.col_offset))
        found = self.collected(scope, node, ast.Expr(call), {ITEMS: empty, **(given or {})}).env[ITEMS]
        if not isinstance(found, (ListValue, Ref)):
            raise self.out.refused("a list without items is not supported", node)
        return found

    def list_of(self, scope: Scope, value: Any, node: Any) -> ListValue | Ref:
        """Read `list` of an iterable of unknown length."""
        each = ast.Name("each", ast.Load())
        generator = ast.comprehension(ast.Name("each", ast.Store()), ast.Name(GIVEN, ast.Load()), [], 0)
        made = ast.fix_missing_locations(ast.copy_location(ast.ListComp(each, [generator]), node))
        return self.by_loop(scope, made, {GIVEN: value})

    def of_function(self, scope: Scope, function: Any, value: Any, node: Any, is_filter: bool) -> ListValue | Ref:
        """Read `map` or `filter` as a list."""
        call = ast.Call(ast.Name(FUNCTION, ast.Load()), [ast.Name("each", ast.Load())], [])
        each = ast.Name("each", ast.Load()) if is_filter else call
        generator = ast.comprehension(
            ast.Name("each", ast.Store()), ast.Name(GIVEN, ast.Load()), [call] if is_filter else [], 0)
        made = ast.fix_missing_locations(ast.copy_location(ast.ListComp(each, [generator]), node))
        return self.by_loop(scope, made, {GIVEN: value, FUNCTION: function})

    def of_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        """Read an item or a slice; a slice of a list is a new list."""
        if isinstance(node.slice, ast.Slice):
            base = self.value(scope, node.value)
            if isinstance(base, (ListValue, Ref)):
                view = vector_of(self.out, base)
                if view is None:
                    return self.part_of_list(base, self.index_items(scope, node.slice)[0], node)
                whole = self.out.temporary(view, "items")
                part = indexed(self.out, whole, self.index_items(scope, node.slice))
                return self.list_of(scope, self.out.temporary(part, "items"), node)
            mark = len(self.out.buffer)
            items = self.index_items(scope, node.slice)
            return item(self.out, self.settled([base], [mark])[0], items, node)
        return super().of_Subscript(scope, node)

    def part_of_list(self, base: ListValue | Ref, part: Slice, node: ast.Subscript) -> Any:
        """Read a slice of a list of rows, tuples or lists."""
        if part.step is not None and part.step != Const(1, INT) and part.step != Const(-1, INT):
            raise self.out.refused("a slice with a step of a list of tuples, rows or lists is not supported", node)
        ends = [Static(None) if each is None else each for each in (part.low, part.high)]
        backwards = part.step == Const(-1, INT)
        return self.call_own(python_code.backwards if backwards else python_code.part, [base, *ends])

    def of_DictComp(self, scope: Scope, node: ast.DictComp) -> Any:
        """Read a dict comprehension, unrolled over known values or otherwise as a loop."""
        site = (scope.file, node.lineno, node.col_offset)
        if self.is_hashed_at(site):
            found = self.hashed(HashedDict, site)
            place = ast.Subscript(ast.Name(ITEMS, ast.Load()), node.key, ast.Store())
            self.collected(scope, node, ast.Assign([place], node.value), {ITEMS: found})
            return found
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        fields = {}
        before, numbers = len(self.out.buffer), dict(self.out.numbers)
        try:
            items = self.each(scope, pair, node.generators, node)
        except NotSupported:
            raise Reread(("hashed", site), True) from None
        for each in items:
            key, value = as_key(each.items[0]), each.items[1]
            if not isinstance(key, Static):
                del self.out.buffer[before:]
                self.out.numbers = numbers
                raise Reread(("hashed", site), True)
            fields[key.value] = value
        return self.record(fields, dict, site)

    def of_SetComp(self, scope: Scope, node: ast.SetComp) -> Any:
        """Read a set comprehension."""
        site = (scope.file, node.lineno, node.col_offset)
        found = self.hashed(HashedSet, site)
        adder = ast.Attribute(ast.Name(ITEMS, ast.Load()), "add", ast.Load())
        self.collected(scope, node, ast.Expr(ast.Call(adder, [node.elt], [])), {ITEMS: found})
        return found

    def collected(self, scope: Scope, node: Any, stmt: ast.stmt, given: dict[str, Any]) -> Scope:
        """Read the loops of a comprehension around a statement; return their scope.

        Arguments:
            scope: the variables.
            node: the comprehension.
            stmt: the statement.
            given: additional variables.
        """
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                stmt = ast.If(test, [stmt], [])
            stmt = ast.For(generator.target, generator.iter, [stmt], [])
        ast.fix_missing_locations(ast.copy_location(stmt, node))
        inner = Scope(scope, stores_of([stmt]), self.prefix_inside(scope), scope.variables, None, {}, scope.file,
                      body=[stmt])
        inner.env = given
        self.block(inner, [stmt])
        return inner

    def of_GeneratorExp(self, scope: Scope, node: ast.GeneratorExp) -> Any:
        """Return the items of a generator."""
        return IteratorValue(self.over_known(scope, node, tuple))

    def each(self, scope: Scope, element: ast.expr, generators: list[ast.comprehension], node: Any) -> list[Any]:
        """Return the values of a comprehension over known values."""
        inner = Scope(scope, {}, self.prefix_inside(scope), scope.variables, None, {}, scope.file)
        generator, *rest = generators
        names = [each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)]
        sequence = self.sequence(scope, generator.iter)
        if not isinstance(sequence, TupleValue) and sequence.is_range and isinstance(sequence.low, Const) \
                and isinstance(sequence.high, Const):
            numbers = range(sequence.low.value, sequence.high.value, sequence.step)
            sequence = TupleValue(tuple(map(Static, numbers[: UNROLLED + 1])))
        if not isinstance(sequence, TupleValue) or len(sequence.items) > UNROLLED:
            raise self.out.refused("a comprehension of unknown length is not supported", node)
        found: list[Any] = []
        for each in sequence.items:
            inner.stores = dict.fromkeys(names, 1)
            self.assign(inner, generator.target, each)
            tests = [self.condition(inner, test) for test in generator.ifs]
            if not all(isinstance(test, bool) for test in tests):
                raise self.out.refused("a comprehension with a condition that is not constant is not supported", node)
            if all(tests):
                found += self.each(inner, element, rest, node) if rest else [self.copied(self.value(inner, element))]
        return found
