"""Assignment targets: names, elements of arrays, and tuples of these."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir import Check, Const, Dim, Get, Op, Set, Var, get, nodes
from ..value_types import BOOL, INT, Arr, Num
from ..values import (
    Cell,
    ListValue,
    Maybe,
    RecordValue,
    Ref,
    Reread,
    Static,
    TupleValue,
    as_expr,
    as_key,
    is_hashed,
    is_key,
    is_plain,
    items_in,
    kind_name,
    leaves_of,
)
from .hash_tables import HashedReader
from .indexing import indexed
from .library_calls import library
from .lists import array_of_list, count_of, item_at, item_kind, set_item
from .operators import arithmetic
from .scopes import Scope, has_calls, variables_in


class TargetReader(HashedReader):
    """Reads assignments."""

    def assign(self, scope: Scope, target: ast.expr, value: Any) -> None:
        """Assign to a target."""
        if isinstance(target, ast.Name):
            self.bind(scope, target.id, value)
        elif isinstance(target, ast.Subscript):
            expr = as_expr(value)
            if expr is not None and not isinstance(expr, (Const, Var)) and has_calls(target):
                value = self.out.temporary(expr)
            found = self.value(scope, target.value)
            if is_hashed(found) or (isinstance(found, RecordValue) and found.cls is dict):
                self.assign_key(scope, found, target, value)
                return
            if isinstance(found, (ListValue, Ref)) or (isinstance(found, TupleValue) and found.site is not None):
                (number,) = self.index_items(scope, target.slice)
                if isinstance(found, TupleValue):
                    raise Reread(found.site, item_kind(self.out, value))
                set_item(self.out, found, number, value)
                return
            base, index = self.place(scope, found, target)
            self.store(base, index, value, target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(each, ast.Starred) for each in target.elts):
                self.assign_starred(scope, target, value)
                return
            value = items_in(value)
            items = self.unpacked(value, len(target.elts), target)
            if not isinstance(value, (TupleValue, Static)):
                items = [self.out.temporary(item) if not isinstance(item, (Static, Var)) else item for item in items]
            elif self.read_each_other(scope, target.elts, items):
                items = [self.copied(item) for item in items]
            for each, item in zip(target.elts, items):
                self.assign(scope, each, item)
        elif isinstance(target, ast.Attribute):
            owner = self.value(scope, target.value)
            if not isinstance(owner, RecordValue) or owner.cls is dict:
                raise self.out.refused("assigning to an argument or captured object is not supported", target)
            self.set_field(owner, target.attr, value)
        else:
            raise self.out.refused("this assignment target is not supported", target)

    def assign_key(self, scope: Scope, found: RecordValue, target: ast.Subscript, value: Any) -> None:
        """Assign to an item of a dict."""
        if is_hashed(found):
            value = self.copied(value)
            self.set_hashed(found, self.copied(self.value(scope, target.slice)), value, target)
            return
        key = as_key(self.value(scope, target.slice))
        if not isinstance(key, Static) or not is_plain(key.value):
            raise self.with_computed_keys(found, key, target)
        if found.prefix and key.value not in found.fields and self.unsure != found.level and is_key(key.value):
            raise self.with_computed_keys(found, key, target)
        self.set_field(found, key.value, value)

    def read_each_other(self, scope: Scope, targets: Sequence[ast.expr], items: Sequence[Any]) -> bool:
        """Return whether values that are assigned together may read the targets, as in `a, b = b, a`."""
        if not all(isinstance(each, ast.Name) for each in targets):
            return True
        known = [scope.env.get(each.id) for each in targets if isinstance(each, ast.Name)]
        values = [value.value if isinstance(value, Maybe) else value for value in known]
        names = {leaf.name for value in values for leaf in variables_in(value)}
        return any(isinstance(node, Var) and node.name in names
                   for item in items for leaf in leaves_of(item) if as_expr(leaf) is not None
                   for node in nodes(as_expr(leaf)))

    def assign_starred(self, scope: Scope, target: ast.Tuple | ast.List, value: Any) -> None:
        """Assign to targets with a starred one, which receives the remaining items."""
        value = items_in(value)
        if not isinstance(value, TupleValue) or len(value.items) < len(target.elts) - 1:
            raise self.out.refused("a starred target for values of unknown number is not supported", target)
        items = list(value.items)
        star = next(n for n, each in enumerate(target.elts) if isinstance(each, ast.Starred))
        rest = len(items) - (len(target.elts) - 1 - star)
        parts = [*items[:star], TupleValue(tuple(items[star:rest]), list), *items[rest:]]
        for each, item in zip(target.elts, parts):
            self.assign(scope, each.value if isinstance(each, ast.Starred) else each, item)

    def unpacked(self, value: Any, count: int, node: Any) -> list[Any]:
        """Return the items of an unpacked value."""
        if isinstance(value, RecordValue) and value.cls is dict:
            return [Static(key) for key in value.fields]
        if isinstance(value, Static) and isinstance(value.value, (tuple, list, str)):
            value = TupleValue(tuple([Static(each) for each in value.value]))
        if isinstance(value, TupleValue):
            if len(value.items) != count:
                raise self.out.refused(f"{len(value.items)} values cannot be unpacked to {count}", node)
            return list(value.items)
        if isinstance(value, (ListValue, Ref)):
            self.out.emit(Check(Op("equal", (count_of(self.out, value), Const(count, INT)), BOOL), self.out.line))
            return [self.copied(item_at(self.out, value, Const(number, INT))) for number in range(count)]
        expr = as_expr(value)
        if expr is None or not isinstance(expr.kind, Arr):
            raise self.out.refused(f"unpacking {kind_name(value)} is not supported", node)
        base = expr if isinstance(expr, Var) else self.out.temporary(expr)
        self.out.emit(Check(Op("equal", (Dim(base, 0), Const(count, INT)), BOOL), self.out.line))
        return [indexed(self.out, base, [Static(number)]) for number in range(count)]

    def place(self, scope: Scope, base: Any, target: ast.Subscript) -> tuple[Any, tuple[Any, ...]]:
        """Return the array and the index to which a subscript writes.

        Arguments:
            scope: the variables.
            base: the container of the item.
            target: the subscript.
        """
        if isinstance(base, Cell):
            items = self.index_items(scope, target.slice)
            if not all(isinstance(each, Static) and each.value is Ellipsis for each in items) or len(items) > 1:
                raise self.out.refused("an index of a 0-d array is not supported", target)
            return base.store, (Const(0, INT),)
        expr = as_expr(base)
        if expr is None or not isinstance(expr.kind, Arr):
            if isinstance(expr, Var) and isinstance(expr.kind, Num) and expr.kind.boxed:
                raise self.out.refused("writing to a 0-d array here is not supported", target)
            raise self.out.refused(f"assigning an item of {kind_name(base)} is not supported", target)
        items = self.index_items(scope, target.slice)
        if isinstance(expr, Get) and expr.is_view:
            inner = indexed(self.out, expr, items)
            if isinstance(inner, Get) and inner.base == expr.base:
                return inner.base, inner.index
        if not isinstance(expr, Var):
            expr = self.out.temporary(expr)
        found = indexed(self.out, expr, items)
        assert isinstance(found, Get)
        return found.base, found.index

    def store(self, base: Any, index: tuple[Any, ...], value: Any, stmt: Any, op: str = "") -> None:
        """Write to an element or a part of an array."""
        if isinstance(value, TupleValue):
            value = library(self.out, "numpy.array", [value], {})
        elif isinstance(value, (ListValue, Ref)):
            value = array_of_list(self.out, value)
        expr = as_expr(value)
        if expr is None:
            raise self.out.refused(f"writing {kind_name(value)} to an array is not supported", stmt)
        target = get(base, index)
        if not np.can_cast(expr.kind.dtype, base.kind.dtype, "same_kind") or (
            expr.kind.dtype in "dfDF" and base.kind.dtype in "?l"
        ):
            given, held = np.dtype(expr.kind.dtype), np.dtype(base.kind.dtype)
            raise self.out.refused(f"writing {given} to an array of {held} is not supported", stmt)
        if expr.kind.ndim > target.kind.ndim:
            raise self.out.refused("assigning an array to a window of fewer dimensions is not supported", stmt)
        self.out.emit(Set(base, index, self.out.lifted(expr), op, self.out.line))

    def update(self, base: Any, index: tuple[Any, ...], name: str | None, value: Any, stmt: Any) -> None:
        """Write the result of `element op value` to an element or a part of an array."""
        expr = as_expr(value)
        if expr is not None and name is None:
            self.store(base, index, self.matmul(get(base, index), expr), stmt)
            return
        if expr is None or name is None:
            raise self.out.refused(f"an in-place operator with {kind_name(value)} is not supported", stmt)
        expr = self.out.lifted(expr)  # once, although it is tried in an operator below
        old = get(base, index)
        new = arithmetic(self.out, name, old, expr)
        simple = name in ("add", "sub") and isinstance(new, Op) and new.kind.dtype == base.kind.dtype
        if simple and new.kind.dtype in "dD":
            self.store(base, index, expr, stmt, name)
        else:
            self.store(base, index, new, stmt)

    def of_NamedExpr(self, scope: Scope, node: ast.NamedExpr) -> Any:
        """Read an assignment expression."""
        self.assign(scope, node.target, self.value(scope, node.value))
        return self.lookup(scope, ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
