"""Expressions: operators, conditions, items and attributes."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from ..ir import Block, Call, Const, Get, If, Lazy, Let, Op, Set, Var, bound_in, is_number, nodes, statements
from ..library import BINARY_OPERATORS, COMPARISONS, UNARY_OPERATORS
from ..objects import Fields
from ..value_types import BOOL, INT, Arr, Num, joined, kind_of_operator
from ..values import (
    CONFLICT,
    TEXT,
    Cell,
    FunctionValue,
    IteratorValue,
    ListOf,
    ListValue,
    RecordValue,
    Ref,
    SeveralLists,
    Static,
    TupleValue,
    as_expr,
    as_key,
    is_listed,
    is_plain,
    items_in,
    joined_values,
    kind_name,
)
from . import python_code
from .arrays import pure
from .indexing import item, sliced
from .lists import appended, count_of, item_kind, joined_item_kinds, new_list, new_ref, repeated
from .names import NameReader
from .operators import arithmetic, comparison, contains
from .optional import flag_of, is_none_test, negated, shown
from .scopes import Scope, at_times, joined_scopes, means_the_same

# Expressions that are not conditions themselves.
NUMERIC: Final = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Constant, ast.Call, ast.Attribute, ast.IfExp)


class ExpressionReader(NameReader):
    """Reads expressions."""

    def value(self, scope: Scope, node: ast.expr) -> Any:
        """Return the value of an expression."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise self.out.refused(f"`{type(node).__name__}` is not supported", node)
        return method(scope, node)

    def number(self, scope: Scope, node: ast.expr) -> Any:
        """Read an expression that must be a number or an array."""
        found = as_expr(self.value(scope, node))
        if found is None:
            raise self.out.refused("something other than a number or an array is not supported", node)
        return found

    def of_Constant(self, scope: Scope, node: ast.Constant) -> Any:
        """Read a constant."""
        return Static(node.value)

    def of_Name(self, scope: Scope, node: ast.Name) -> Any:
        """Read a name."""
        return self.lookup(scope, node)

    def of_Tuple(self, scope: Scope, node: ast.Tuple) -> Any:
        """Read a tuple."""
        return TupleValue(tuple(self._starred(scope, node.elts)))

    def of_List(self, scope: Scope, node: ast.List) -> Any:
        """Read a list."""
        found = self.displayed(scope, node)
        return self.growing(found) if self.grows(found.site) else found

    def displayed(self, scope: Scope, node: ast.List) -> TupleValue:
        """Read the items of a list display."""
        return TupleValue(tuple(self._starred(scope, node.elts)), list, (scope.file, node.lineno, node.col_offset))

    def grows(self, site: Any) -> bool:
        """Return whether the list created at a source location has an unknown length."""
        return site in self.known_sites or ("heap", site) in self.known_sites

    def growing(self, given: TupleValue, times: Any = None) -> ListValue | Ref:
        """Create a list of unknown length.

        Arguments:
            given: the initial items.
            times: the number of repetitions.
        """
        kind = self.known_now(self.known_sites.get(given.site))
        for each in given.items:
            kind = joined_item_kinds(self.out, kind, item_kind(self.out, each))
        found: ListValue | Ref
        if ("heap", given.site) in self.known_sites:
            found = new_ref(self.out, given.site, kind)
        elif kind is None:
            raise self.out.refused("a list of items that are not constant is not supported")
        else:
            has_views = ("views", given.site) in self.known_sites
            found = new_list(self.out, given.site, kind, self.list_capacity(), has_views)
        if times is not None:
            repeated(self.out, found, given.items, times)
        else:
            for each in given.items:
                appended(self.out, found, each)
        return found

    def known_now(self, kind: Any) -> Any:
        """Return the current kind of the items of a list, including the lists in it."""
        if isinstance(kind, tuple):
            return tuple(map(self.known_now, kind))
        if not isinstance(kind, ListOf):
            return kind
        inner: Any = None
        for site in kind.sites:
            inner = joined_item_kinds(self.out, inner, self.known_now(self.known_sites.get(site)))
        return ListOf(self.known_now(kind.kind) if inner is None else inner, kind.sites)

    def _starred(self, scope: Scope, elements: Sequence[ast.expr]) -> list[Any]:
        values = self.values(scope, [each.value if isinstance(each, ast.Starred) else each for each in elements])
        found: list[Any] = []
        for node, each in zip(elements, values):
            if isinstance(node, ast.Starred):
                each = items_in(each)
            elif isinstance(each, IteratorValue):
                raise self.out.refused("storing an iterator is not supported", node)
            if not isinstance(node, ast.Starred):
                found.append(each)
            elif isinstance(each, TupleValue):
                found += each.items
            else:
                raise self.out.refused("a starred value of unknown length is not supported", node)
        return found

    def values(self, scope: Scope, nodes_: Sequence[ast.expr]) -> list[Any]:
        """Read expressions in order, so that later ones do not change the values of earlier ones."""
        found, marks = [], []
        for node in nodes_:
            found.append(self.value(scope, node))
            marks.append(len(self.out.buffer))
        return self.settled(found, marks)

    def settled(self, values: list[Any], marks: list[int]) -> list[Any]:
        """Return values as they were at the positions in the block where they were read.

        Arguments:
            values: the values.
            marks: for each of them, the length of the block after it was read.
        """
        for number in reversed(range(len(values))):
            later = self.out.buffer[marks[number] :]
            if later:
                names = bound_in(later)
                writes = any(isinstance(stmt, Set) for stmt in statements(later))
                saved: Block = []
                values[number] = self._settled(values[number], names, writes, saved)
                self.out.buffer[marks[number] : marks[number]] = saved
        return values

    def _settled(self, value: Any, names: set[str], writes: bool, saved: Block) -> Any:
        if isinstance(value, TupleValue):
            return TupleValue(tuple([self._settled(each, names, writes, saved) for each in value.items]), value.cls,
                       value.site)
        if isinstance(value, Ref):
            return attrs.evolve(value, number=self._settled(value.number, names, writes, saved))
        expr = as_expr(value)
        if expr is None or isinstance(expr, Const):
            return value
        reads_elements = not isinstance(expr, Var) and not (isinstance(expr, Get) and expr.is_view) and any(
            isinstance(getattr(each, "kind", None), Arr) for each in nodes(expr))
        if not (writes and reads_elements) and not any(
            isinstance(each, Var) and each.name in names for each in nodes(expr)
        ):
            return value
        name = self.out.fresh("t")
        self.out.kinds[name] = expr.kind
        saved.append(Let(name, expr, self.out.line))
        return Var(name, expr.kind)

    def of_Dict(self, scope: Scope, node: ast.Dict) -> Any:
        """Read a dict with known keys."""
        fields = {}
        for key, value in zip(node.keys, node.values):
            known = None if key is None else as_key(self.value(scope, key))
            if not isinstance(known, Static) or not is_plain(known.value):
                raise self.out.refused("a dict whose keys are not constant is not supported", node)
            fields[known.value] = self.copied(self.value(scope, value))
        return self.record(fields, dict, (scope.file, node.lineno, node.col_offset))

    def of_JoinedStr(self, scope: Scope, node: ast.JoinedStr) -> Any:
        """Read an f-string, whose text is not used by programs."""
        return TEXT

    def of_Lambda(self, scope: Scope, node: ast.Lambda) -> Any:
        """Read a lambda."""
        return self.nested(scope, node)

    def of_BinOp(self, scope: Scope, node: ast.BinOp) -> Any:
        """Read a binary operator."""
        if isinstance(node.op, ast.Mult):
            if isinstance(node.left, ast.List):
                return self.multiplied(scope, node.left, self.fixed_value(scope, node.right))
            if isinstance(node.right, ast.List):
                return self.multiplied(scope, node.right, self.fixed_value(scope, node.left))
        left, right = self.values(scope, [node.left, node.right])
        if isinstance(node.op, ast.Add) and any(isinstance(each, (ListValue, Ref)) for each in (left, right)) and all(
            isinstance(each, (ListValue, Ref)) or (isinstance(each, TupleValue) and each.cls is list)
            for each in (left, right)
        ):
            return self.call_own(python_code.concatenated, [left, right])
        if isinstance(node.op, ast.MatMult):
            return self.matmul(left, right)
        found = arithmetic(self.out, BINARY_OPERATORS[type(node.op)], left, right)
        if isinstance(found, TupleValue) and found.cls is list:
            found = attrs.evolve(found, site=(scope.file, node.lineno, node.col_offset, "sum"))
            return self.growing(found) if self.grows(found.site) else found
        return found

    def call_own(self, function: Any, args: list[Any]) -> Any:
        """Inline a function of `python_code`."""
        raise NotImplementedError

    def fixed_value(self, scope: Scope, node: ast.expr) -> Any:
        """Read a value and bind it to a variable."""
        return self.held(self.value(scope, node))

    def multiplied(self, scope: Scope, node: ast.List, times: Any) -> Any:
        """Read `items * times`."""
        items = self.displayed(scope, node)
        expr = as_expr(times)
        is_integer = expr is not None and is_number(expr) and expr.kind.dtype == "l"
        if is_integer and (not isinstance(times, Static) or self.grows(items.site)):
            return self.growing(items, self.fixed(expr))
        found = arithmetic(self.out, "mul", items, times)
        return attrs.evolve(found, site=items.site) if isinstance(found, TupleValue) else found

    def matmul(self, left: Any, right: Any) -> Any:
        """Return the product of matrices."""
        return pure(self.out, "matmul", [left, right], {})

    def of_UnaryOp(self, scope: Scope, node: ast.UnaryOp) -> Any:
        """Read a unary operator."""
        if isinstance(node.op, ast.Not):
            test = self.condition(scope, node.operand)
            return Static(not test) if isinstance(test, bool) else Lazy("not", (test,), BOOL)
        return arithmetic(self.out, UNARY_OPERATORS[type(node.op)], self.value(scope, node.operand))

    def of_BoolOp(self, scope: Scope, node: ast.BoolOp) -> Any:
        """Read `and` and `or`, whose value is one of the operands."""
        return self.operand(scope, node, node.values)

    def nested_operands(self, node: ast.BoolOp, parts: Sequence[ast.expr]) -> ast.IfExp | None:
        """Return `(a and b) or c` as `(b or c) if a else c`, which never has the value of `a`; None for others.

        Likewise, `(a or b) and c` becomes `c if a else (b and c)`.
        """
        inner = parts[0]
        if not isinstance(inner, ast.BoolOp) or type(inner.op) is type(node.op) or not any(
            isinstance(each, NUMERIC) for each in (inner.values[-1], *parts[1:])
        ):
            return None
        *tests, last = inner.values
        rest = parts[1] if len(parts) == 2 else ast.copy_location(ast.BoolOp(node.op, list(parts[1:])), node)
        both = ast.copy_location(ast.BoolOp(node.op, [last, *parts[1:]]), node)
        test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(inner.op, tests), inner)
        sides = (rest, both) if isinstance(node.op, ast.And) else (both, rest)
        return ast.copy_location(ast.IfExp(test, *sides), node)

    def operand(self, scope: Scope, node: ast.BoolOp, parts: Sequence[ast.expr]) -> Any:
        """Return the first operand that determines the result, or the last one."""
        if len(parts) == 1:
            return self.lifted(scope, parts[0])
        other = self.nested_operands(node, parts)
        if other is not None:
            return self.value(scope, other)
        first = self.lifted(scope, parts[0])
        first = self.held(first)
        is_and = isinstance(node.op, ast.And)
        test = self.truth(first, node)
        if isinstance(test, bool):
            return self.operand(scope, node, parts[1:]) if test is is_and else first
        rest: list[Any] = []

        def read() -> Any:
            rest.append(self.operand(scope, node, parts[1:]))
            return rest[0]

        sides = [(read, shown(parts[0], is_and)), (lambda: first, frozenset[str]())]
        found = self.either(scope, test, sides if is_and else sides[::-1], node)
        if isinstance(found, Lazy) and found.kind == BOOL:
            return Lazy("and" if is_and else "or", (test, as_expr(rest[0])), BOOL)
        return found

    def condition(self, scope: Scope, node: ast.expr) -> Any:
        """Read the truth value of an expression: a bool if it is known, otherwise an expression."""
        if not isinstance(node, ast.BoolOp):
            return self.truth(self.value(scope, node), node)
        is_and = isinstance(node.op, ast.And)
        found: Any = None
        for number, part in enumerate(node.values):
            if found is None:
                test = self.condition(scope, part)
                if isinstance(test, bool):
                    if test is not is_and:
                        return test
                    continue
                found = test
                continue
            present = scope.present
            scope.present = present.union(*[shown(each, is_and) for each in node.values[:number]])
            found = self.truth(self.second(scope, part, found, is_and), node)
            scope.present = present
            if isinstance(found, bool):
                return found
        return is_and if found is None else found

    def second(self, scope: Scope, part: ast.expr, first: Any, is_and: bool) -> Any:
        """Read a condition that is evaluated only if the first one does not determine the result."""
        result: list[Any] = []

        def read() -> None:
            result.append(self.condition(scope, part))

        entry = dict(scope.env)
        block = self.within(read)
        scope.env = joined_scopes(scope.env, entry)
        test = result[0]
        if not block:
            if isinstance(test, bool):
                return first if test is is_and else Static(test)
            return Lazy("and" if is_and else "or", (first, test), BOOL)
        test = Const(test, BOOL) if isinstance(test, bool) else test
        name = self.out.fresh("test")
        self.out.kinds[name] = BOOL
        skipped = [Let(name, Const(not is_and, BOOL), self.out.line)]
        evaluated = [*block, Let(name, test, self.out.line)]
        then, other = (evaluated, skipped) if is_and else (skipped, evaluated)
        self.out.emit(If(first, then, other, self.out.line))
        return Var(name, BOOL)

    def of_Compare(self, scope: Scope, node: ast.Compare) -> Any:
        """Read comparisons."""
        tested = is_none_test(scope, node)
        if tested is not None:
            variable, is_wanted = tested
            if variable.name in self.out.inputs or variable.name in self.out.single:
                raise self.out.refused("comparing an argument that may be None with None is not supported", node)
            self.maybe.add(variable.name)
            return flag_of(variable.name) if is_wanted else negated(flag_of(variable.name))
        left, *rest = self.values(scope, [node.left, *node.comparators])
        found: Any = None
        for operator, right in zip(node.ops, rest):
            if isinstance(operator, (ast.In, ast.NotIn)):
                inside = self.contained(left, right, node)
                is_in = isinstance(operator, ast.In)
                test = Static(inside is is_in) if isinstance(inside, bool) else inside if is_in else Lazy(
                    "not", (inside,), BOOL)
            else:
                test = comparison(self.out, operator, left, right, COMPARISONS)
            if found is None:
                found = test
            else:
                one, two = self.truth(found, node), self.truth(test, node)
                if isinstance(one, bool):
                    found = test if one else found
                elif isinstance(two, bool):
                    found = found if two else test
                else:
                    found = Lazy("and", (one, two), BOOL)
            left = right
        return found

    def contained(self, item: Any, container: Any, node: Any) -> Any:
        """Return whether an object is in a container: a bool if it is known, otherwise an expression."""
        if isinstance(container, (ListValue, Ref)):
            return self.call_own(python_code.contains, [container, item])
        return contains(self.out, item, container)

    def of_IfExp(self, scope: Scope, node: ast.IfExp) -> Any:
        """Read a conditional expression."""
        test = self.condition(scope, node.test)
        if isinstance(test, bool):
            return self.value(scope, node.body if test else node.orelse)
        return self.either(scope, test, [
            (functools.partial(self.lifted, scope, part), shown(node.test, is_true))
            for part, is_true in ((node.body, True), (node.orelse, False))
        ], node)

    def either(
        self, scope: Scope, test: Any, sides: Sequence[tuple[Callable[[], Any], frozenset[str]]], node: Any
    ) -> Any:
        """Return the value of one of two branches.

        Arguments:
            scope: the variables.
            test: the condition.
            sides: for each branch, the function that reads it, and the names of the variables that are not None in it.
            node: its node in the syntax tree.
        """
        values: list[Any] = []
        blocks: list[Block] = []
        after: list[dict[str, Any]] = []
        entry, present = dict(scope.env), scope.present
        for read, known in sides:
            scope.env, scope.present = dict(entry), present | known
            blocks.append(self.within(lambda read=read: values.append(read())))  # type: ignore[misc]
            after.append(scope.env)
        scope.env, scope.present = joined_scopes(*after), present
        if any(isinstance(value, Cell) for value in values):
            raise self.out.refused("a conditional expression with 0-d arrays is not supported", node)
        exprs = [as_expr(value) for value in values]
        if not any(blocks) and not any(expr is None for expr in exprs):
            kind = joined(exprs[0].kind, exprs[1].kind)
            if isinstance(kind, Num):
                return Lazy("if", (test, *exprs), kind)
        found = self.choice(values[0], values[1], blocks, node)
        self.out.emit(If(test, blocks[0], blocks[1], self.out.line))
        return found

    def lifted(self, scope: Scope, node: ast.expr) -> Any:
        """Read an expression; a call of an array function is bound to a variable of its own."""
        value = self.value(scope, node)
        return self.out.lifted(value) if isinstance(value, Call) else value

    def choice(self, then: Any, other: Any, blocks: list[Block], node: Any) -> Any:
        """Merge the values from the two sides of a branch: numbers, arrays, or tuples of these."""
        if isinstance(then, Static) and isinstance(other, Static) and joined_values(then, other) is not CONFLICT:
            return then
        if isinstance(then, TupleValue) and isinstance(other, TupleValue) and len(then.items) == len(other.items) \
                and then.cls is other.cls:
            pairs = zip(then.items, other.items)
            return TupleValue(tuple([self.choice(one, two, blocks, node) for one, two in pairs]), then.cls)
        if is_listed(then) and is_listed(other):
            joined_lists = joined_values(then, other)
            if isinstance(joined_lists, SeveralLists):
                raise self.on_one_heap(joined_lists, node)
            if isinstance(then, Ref) and isinstance(other, Ref) and then.heap is other.heap:
                number = self.choice(then.number, other.number, blocks, node)
                return Ref(then.heap, number, joined_item_kinds(self.out, then.of, other.of))
        exprs = [as_expr(side) for side in (then, other)]
        if any(expr is None for expr in exprs):
            raise self.out.refused(
                f"a choice of {kind_name(then)} or {kind_name(other)} is not supported", node)
        kind = joined(exprs[0].kind, exprs[1].kind)
        if kind is None:
            raise self.out.refused("a conditional expression with values of two types is not supported", node)
        name = self.out.fresh("choice")
        self.out.kinds[name] = kind
        self.out.variables.add(name)
        for block, expr in zip(blocks, exprs):
            block.append(Let(name, expr, self.out.line))
        return Var(name, kind)

    def of_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        """Read an item."""
        base = self.value(scope, node.value)
        mark = len(self.out.buffer)
        if isinstance(base, RecordValue) and base.cls is not Fields:
            key = as_key(self.value(scope, node.slice))
            return self.item_by_key(self.settled([base], [mark])[0], key, node)
        items = self.index_items(scope, node.slice)
        return item(self.out, self.settled([base], [mark])[0], items, node)

    def item_by_key(self, base: RecordValue, key: Any, node: Any) -> Any:
        """Return an item of a dict."""
        return item(self.out, base, [key], node)

    def within(self, read: Callable[[], None]) -> Block:
        """Return the statements emitted while `read` runs."""
        before, self.out.buffer = self.out.buffer, []
        self.unsure += 1
        try:
            read()
            return self.out.buffer
        finally:
            self.out.buffer = before
            self.unsure -= 1

    def looped(self, scope: Scope, read: Callable[[], None]) -> Block:
        """Read the body of a loop until the kinds of its variables no longer change."""
        entry = dict(scope.env)
        numbers = dict(self.out.numbers)
        for _ in range(8):
            scope.env, scope.present = dict(entry), frozenset()
            self.out.numbers = dict(numbers)
            body = self.within(read)
            merged = {name: joined_values(value, scope.env.get(name, value)) for name, value in entry.items()}
            if all(means_the_same(merged[name], value) for name, value in entry.items()):
                for name, value in scope.env.items():
                    if name not in entry:
                        merged[name] = at_times(value)
                scope.env = merged
                scope.present = frozenset()
                return body
            entry = merged
        raise self.out.refused("the types of its variables cannot be determined")

    def fixed(self, expr: Any) -> Any:
        """Return a loop bound as an expression that the loop does not change."""
        for node in nodes(expr):
            if isinstance(node, Get) or (
                isinstance(node, Var) and node.name in self.out.variables and node.name not in self.out.single
            ):
                return self.out.temporary(expr, "n")
        return expr

    def truth(self, value: Any, node: Any) -> Any:
        """Return the truth value of a value: a bool if it is known, otherwise an expression."""
        if isinstance(value, Static):
            if not is_plain(value.value) and not _is_true_by_default(type(value.value)):
                raise self.out.refused(f"the truth value of {kind_name(value)} is not supported", node)
            return bool(value.value)
        if isinstance(value, TupleValue):
            return bool(value.items)
        if isinstance(value, (RecordValue, FunctionValue)):
            return True if isinstance(value, FunctionValue) else bool(value.fields) or value.cls is not dict
        if isinstance(value, (ListValue, Ref)):
            return Op("not_equal", (count_of(self.out, value), Const(0, INT)), BOOL)
        expr = as_expr(value)
        if expr is None or not is_number(expr):
            raise self.out.refused(f"the truth value of {kind_name(value)} is not supported", node)
        if isinstance(expr, Const):
            return bool(expr.value)
        expr = self.out.lifted(expr)
        if expr.kind.dtype == "?":
            return expr
        return Op("not_equal", (expr, Const(0, INT)), kind_of_operator("not_equal", (expr.kind, INT)))

    def nested(self, scope: Scope, node: Any) -> FunctionValue:
        """Return the value of a nested function."""
        defaults = tuple([self.held(self.value(scope, each)) for each in node.args.defaults])
        kw = tuple([None if each is None else self.held(self.value(scope, each)) for each in node.args.kw_defaults])
        return FunctionValue(node, scope, defaults, kw)

    def index_items(self, scope: Scope, node: ast.expr) -> list[Any]:
        """Read the items of an index."""
        if isinstance(node, ast.Tuple):
            found, marks = [], []
            for each in node.elts:
                found.append(self.index_item(scope, each))
                marks.append(len(self.out.buffer))
            return self.settled(found, marks)
        found = self.index_item(scope, node)
        return list(found.items) if isinstance(found, TupleValue) and found.cls is tuple else [found]

    def index_item(self, scope: Scope, node: ast.expr) -> Any:
        """Read an item of an index: an expression, a `Slice`, or a known object."""
        if isinstance(node, ast.Slice):
            parts = [None if part is None else self.value(scope, part) for part in (node.lower, node.upper, node.step)]
            return sliced(self.out, parts)
        found = self.value(scope, node)
        if isinstance(found, Static) and isinstance(found.value, slice):
            return sliced(self.out, [None if part is None else Static(part) for part in (
                found.value.start, found.value.stop, found.value.step)])
        return found


def _is_true_by_default(kind: type) -> bool:
    """Return whether the objects of a class are always true because it defines no truth value."""
    return not hasattr(kind, "__bool__") and not hasattr(kind, "__len__")
