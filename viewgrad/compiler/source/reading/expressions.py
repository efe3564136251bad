"""Expressions: operators, conditions, items and attributes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ..ir import Block, Const, Get, If, Lazy, Let, Op, Var, is_number, nodes
from ..kinds import BOOL, INT, Num, joined, kind_of_operator
from ..values import CONFLICT, TEXT, Fn, Maybe, Rec, Static, Tup, as_expr, is_plain, joined_values, kind_name
from .arrays import pure
from .indexing import item, sliced
from .names import NameReader
from .operators import arithmetic, comparison
from .scopes import Scope, joined_scopes, means_the_same

__all__ = ["BINARY", "COMPARISONS", "ExpressionReader", "UNARY"]

BINARY: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "left_shift", ast.RShift: "right_shift",
}  # fmt: skip
UNARY: Final = {ast.USub: "neg", ast.UAdd: "positive", ast.Invert: "invert"}
COMPARISONS: Final = {
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
    ast.GtE: "greater_equal",
}  # fmt: skip


class ExpressionReader(NameReader):
    """Reads expressions."""

    def value(self, scope: Scope, node: ast.expr) -> Any:
        """What an expression means."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise self.out.refused(f"`{type(node).__name__}` is not taken", node)
        return method(scope, node)

    def number(self, scope: Scope, node: ast.expr) -> Any:
        """An expression that is a number or an array."""
        found = as_expr(self.value(scope, node))
        if found is None:
            raise self.out.refused("something else than a number or an array", node)
        return found

    def of_Constant(self, scope: Scope, node: ast.Constant) -> Any:
        """A constant."""
        return Static(node.value)

    def of_Name(self, scope: Scope, node: ast.Name) -> Any:
        """A name."""
        return self.lookup(scope, node)

    def of_Tuple(self, scope: Scope, node: ast.Tuple) -> Any:
        """A tuple."""
        return Tup(tuple(self._starred(scope, node.elts)))

    def of_List(self, scope: Scope, node: ast.List) -> Any:
        """A list."""
        return Tup(tuple(self._starred(scope, node.elts)), list)

    def _starred(self, scope: Scope, elements: Sequence[ast.expr]) -> Iterator[Any]:
        for each in elements:
            if isinstance(each, ast.Starred):
                inner = self.value(scope, each.value)
                if not isinstance(inner, Tup):
                    raise self.out.refused("a starred value whose length is not known", each)
                yield from inner.items
            else:
                yield self.value(scope, each)

    def of_Dict(self, scope: Scope, node: ast.Dict) -> Any:
        """A dict with known keys."""
        fields = {}
        for key, value in zip(node.keys, node.values):
            known = None if key is None else self.value(scope, key)
            if not isinstance(known, Static) or not is_plain(known.value):
                raise self.out.refused("a dict whose keys are not known", node)
            fields[known.value] = self.held(self.value(scope, value))
        return Rec(fields)

    def of_JoinedStr(self, scope: Scope, node: ast.JoinedStr) -> Any:
        """A text, which is of no use here."""
        return TEXT

    def of_Lambda(self, scope: Scope, node: ast.Lambda) -> Any:
        """A lambda."""
        return self.nested(scope, node)

    def of_BinOp(self, scope: Scope, node: ast.BinOp) -> Any:
        """An operator."""
        left = self.value(scope, node.left)
        right = self.value(scope, node.right)
        if isinstance(node.op, ast.MatMult):
            return self.matmul(left, right)
        return arithmetic(self.out, BINARY[type(node.op)], left, right)

    def matmul(self, left: Any, right: Any) -> Any:
        """The product of matrices."""
        return pure(self.out, "matmul", [left, right], {})

    def of_UnaryOp(self, scope: Scope, node: ast.UnaryOp) -> Any:
        """An operator of one operand."""
        value = self.value(scope, node.operand)
        if isinstance(node.op, ast.Not):
            test = self.truth(value, node)
            return Static(not test) if isinstance(test, bool) else Lazy("not", (test,), BOOL)
        return arithmetic(self.out, UNARY[type(node.op)], value)

    def of_BoolOp(self, scope: Scope, node: ast.BoolOp) -> Any:
        """`and` and `or`, of conditions."""
        is_and = isinstance(node.op, ast.And)
        found: Any = None
        for number, part in enumerate(node.values):
            last = number == len(node.values) - 1
            if found is None:
                value = self.value(scope, part)
                test = self.truth(value, part)
                if isinstance(test, bool):
                    if test is not is_and:
                        return value
                    if last:
                        return value
                    continue
                found = test
                continue
            found = self.second(scope, part, found, is_and)
        return found

    def second(self, scope: Scope, part: ast.expr, first: Any, is_and: bool) -> Any:
        """A condition that is asked only if the first leaves it open."""
        result: list[Any] = []

        def read() -> None:
            result.append(self.truth(self.value(scope, part), part))

        entry = dict(scope.env)
        block = self.within(read)
        test = result[0]
        if isinstance(test, bool):
            return first if test is is_and else Static(test) if not block else Lazy(
                "and" if is_and else "or", (first, Const(test, BOOL)), BOOL)
        if not block:
            return Lazy("and" if is_and else "or", (first, test), BOOL)
        scope.env = joined_scopes(scope.env, entry)
        name = self.out.fresh("test")
        self.out.kinds[name] = BOOL
        skipped = [Let(name, Const(not is_and, BOOL), self.out.line)]
        asked = [*block, Let(name, test, self.out.line)]
        self.out.emit(If(first, asked, skipped, self.out.line) if is_and else If(first, skipped, asked, self.out.line))
        return Var(name, BOOL)

    def of_Compare(self, scope: Scope, node: ast.Compare) -> Any:
        """Comparisons."""
        left = self.value(scope, node.left)
        found: Any = None
        for operator, part in zip(node.ops, node.comparators):
            right = self.value(scope, part)
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

    def of_IfExp(self, scope: Scope, node: ast.IfExp) -> Any:
        """A conditional expression."""
        test = self.truth(self.value(scope, node.test), node)
        if isinstance(test, bool):
            return self.value(scope, node.body if test else node.orelse)
        sides: list[Any] = []
        entry = dict(scope.env)
        blocks = []
        for part in (node.body, node.orelse):
            scope.env = dict(entry)
            blocks.append(self.within(lambda part=part: sides.append(self.value(scope, part))))  # type: ignore[misc]
        scope.env = entry
        exprs = [as_expr(side) for side in sides]
        if any(expr is None for expr in exprs):
            raise self.out.refused("a choice of something else than numbers and arrays", node)
        kinds = [expr.kind for expr in exprs]
        kind = joined(*kinds)
        if kind is None:
            raise self.out.refused("a choice of two kinds", node)
        if isinstance(kind, Num) and not any(blocks):
            return Lazy("if", (test, *exprs), kind)
        name = self.out.fresh("choice")
        self.out.kinds[name] = kind
        self.out.variables.add(name)
        then, other = [[*block, Let(name, expr, self.out.line)] for block, expr in zip(blocks, exprs)]
        self.out.emit(If(test, then, other, self.out.line))
        return Var(name, kind)

    def of_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        """An item."""
        base = self.value(scope, node.value)
        return item(self.out, base, self.index_items(scope, node.slice), node)

    def within(self, read: Callable[[], None]) -> Block:
        """The statements that something reads."""
        before, self.out.buffer = self.out.buffer, []
        self.unsure += 1
        try:
            read()
            return self.out.buffer
        finally:
            self.out.buffer = before
            self.unsure -= 1

    def looped(self, scope: Scope, read: Callable[[], None]) -> Block:
        """The body of a loop, read until the kinds of variables stay what they are."""
        entry = dict(scope.env)
        numbers = dict(self.out.numbers)
        for _ in range(8):
            scope.env = dict(entry)
            self.out.numbers = dict(numbers)
            body = self.within(read)
            merged = {name: joined_values(value, scope.env.get(name, value)) for name, value in entry.items()}
            if all(means_the_same(merged[name], value) for name, value in entry.items()):
                for name, value in scope.env.items():
                    if name not in entry:
                        merged[name] = value if isinstance(value, (Maybe, Fn)) or value is CONFLICT else Maybe(value)
                scope.env = merged
                return body
            entry = merged
        raise self.out.refused("the kinds of its variables do not settle")

    def fixed(self, expr: Any) -> Any:
        """A bound of a loop as an expression that nothing in it changes."""
        for node in nodes(expr):
            if isinstance(node, Get) or (
                isinstance(node, Var) and node.name in self.out.variables and node.name not in self.out.single
            ):
                return self.out.temporary(expr, "n")
        return expr

    def truth(self, value: Any, node: Any) -> Any:
        """The truth of a value: a bool, or an expression."""
        if isinstance(value, Static):
            if not is_plain(value.value) and not _is_true_by_default(type(value.value)):
                raise self.out.refused(f"the truth of {kind_name(value)}", node)
            return bool(value.value)
        if isinstance(value, Tup):
            return bool(value.items)
        if isinstance(value, (Rec, Fn)):
            return True if isinstance(value, Fn) else bool(value.fields) or value.cls is not dict
        expr = as_expr(value)
        if expr is None or not is_number(expr):
            raise self.out.refused(f"the truth of {kind_name(value)}", node)
        if isinstance(expr, Const):
            return bool(expr.value)
        if expr.kind.dtype == "?":
            return expr
        return Op("not_equal", (expr, Const(0, INT)), kind_of_operator("not_equal", (expr.kind, INT)))

    def nested(self, scope: Scope, node: Any) -> Fn:
        """A function that is defined here."""
        defaults = tuple([self.held(self.value(scope, each)) for each in node.args.defaults])
        kw = tuple([None if each is None else self.held(self.value(scope, each)) for each in node.args.kw_defaults])
        return Fn(node, scope, defaults, kw)

    def index_items(self, scope: Scope, node: ast.expr) -> list[Any]:
        """The items of an index."""
        if isinstance(node, ast.Tuple):
            return [self.index_item(scope, each) for each in node.elts]
        found = self.index_item(scope, node)
        return list(found.items) if isinstance(found, Tup) and found.cls is tuple else [found]

    def index_item(self, scope: Scope, node: ast.expr) -> Any:
        """An item of an index: an expression, a `Slice`, or a known object."""
        if isinstance(node, ast.Slice):
            parts = [None if part is None else self.value(scope, part) for part in (node.lower, node.upper, node.step)]
            return sliced(self.out, parts)
        found = self.value(scope, node)
        if isinstance(found, Static) and isinstance(found.value, slice):
            return sliced(self.out, [None if part is None else Static(part) for part in (
                found.value.start, found.value.stop, found.value.step)])
        return found


def _is_true_by_default(kind: type) -> bool:
    """Whether the objects of a class are true because it does not say when they are."""
    return not hasattr(kind, "__bool__") and not hasattr(kind, "__len__")
