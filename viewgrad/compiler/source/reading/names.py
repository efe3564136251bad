"""Names: local variables, those of functions around, captured ones, and builtins."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from ..exits import is_flag
from ..ir import Check, Const, Op, Var, is_number, nodes
from ..kinds import BOOL, INT, Num
from ..objects import Guard, ObjectReader
from ..values import CONFLICT, Fn, Maybe, Path, Rec, Static, Tup, as_expr
from .scopes import Scope, grows, is_updated, unboxed, variables_in

__all__ = ["NameReader"]


class NameReader(ObjectReader):
    """Finds out what names mean, and binds them."""

    def __init__(self, static: frozenset[str] = frozenset()) -> None:
        super().__init__(static)
        self.maybe: set[str] = set()
        self.unsure = 0  # how many blocks around need not be run

    def lookup(self, scope: Scope, node: ast.Name) -> Any:
        """What a name means."""
        name = node.id
        if name in scope.env:
            found = scope.env[name]
            if found is CONFLICT:
                raise self.out.refused(f"{name} is of several kinds", node)
            if isinstance(found, Maybe):
                found = self.defined(found.value, node)
            return found
        if name in scope.stores:
            raise self.out.refused(f"{name} is used before it is assigned", node)
        return self.free(scope, name, node)

    def defined(self, value: Any, node: Any) -> Any:
        """A variable that need not be defined, after a check that it is."""
        if value is CONFLICT:
            raise self.out.refused("a variable is of several kinds", node)
        for leaf in variables_in(value):
            if not is_flag(leaf.name.rpartition("__")[2]) and leaf.name not in self.out.inputs:
                self.maybe.add(leaf.name)
                self.out.emit(Check(Var(f"{leaf.name}_known", BOOL), self.out.line))
        return value

    def free(self, scope: Scope, name: str, node: Any) -> Any:
        """What a name means that is no local variable."""
        if name in scope.cells and scope.path is not None:
            function = scope.path
            cell = function.root if not function.steps else None
            owner = getattr(cell, "__closure__", None)
            if owner is not None:
                try:
                    value = owner[scope.cells[name]].cell_contents
                except ValueError:
                    raise self.out.refused(f"{name} is not assigned yet", node) from None
                return self.object(value, Path(owner[scope.cells[name]], False).to("cell", name), name)
        if scope.outer is not None:
            outer = scope.outer
            if name in outer.env or name in outer.stores:
                return self.lookup(outer, ast.copy_location(ast.Name(name, ast.Load()), node))
            return self.free(outer, name, node)
        if name in scope.variables:
            return self.object(scope.variables[name], Path(scope.variables, False).to("key", name), name)
        builtin = vars(builtins)
        if name in builtin:
            self.guards.setdefault(("absent", id(scope.variables), name), Guard(
                Path(scope.variables, False), name, "absent"))
            return Static(builtin[name])
        raise self.out.refused(f"{name} is not defined", node)

    def bind(self, scope: Scope, name: str, value: Any) -> None:
        """Let a variable have a value."""
        once = scope.stores.get(name, 1) <= 1
        if isinstance(value, Var) and isinstance(value.kind, Num) and value.kind.boxed:
            if any(is_updated(stmt, name) for stmt in scope.body):
                raise self.out.refused("an array without dimensions is written to")
            value = unboxed(value)
        scope.env[name] = self.bound(scope.prefix + name, value, once)

    def bound(self, name: str, value: Any, once: bool) -> Any:
        """A value held by a variable."""
        if isinstance(value, (Tup, Rec)):
            items = list(enumerate(value.items)) if isinstance(value, Tup) else list(value.fields.items())
            kept = {key: self.bound(f"{name}_{key}", item, once) for key, item in items}
            return Tup(tuple(kept.values()), value.cls) if isinstance(value, Tup) else Rec(kept, value.cls)
        if isinstance(value, Static):
            expr = as_expr(value)
            if expr is None or once:
                return value
            value = expr
        if isinstance(value, Fn):
            return value
        if isinstance(value, Var) and once and self._is_fixed(value):
            return value
        if is_number(value) and value.kind.boxed:
            raise self.out.refused("an array without dimensions is given another name")
        if self.unsure and value.kind == INT and grows(name, value):
            for each in {node.name for node in nodes(value) if isinstance(node, Var) and is_number(node)}:
                size = Op("abs", (Var(each, INT),), INT)
                self.out.emit(Check(Op("less", (size, Const(2**31, INT)), BOOL), self.out.line))
        found = self.out.let(name, value)
        if once and not self.unsure:
            self.out.single.add(found.name)
        return found

    def _is_fixed(self, value: Var) -> bool:
        """Whether a variable is bound once in all."""
        return value.name in self.out.inputs or value.name in self.out.single

    def held(self, value: Any) -> Any:
        """An argument as a value that does not change while the function runs."""
        if isinstance(value, Tup):
            return Tup(tuple([self.held(item) for item in value.items]), value.cls)
        if isinstance(value, Rec):
            return Rec({key: self.held(item) for key, item in value.fields.items()}, value.cls)
        if isinstance(value, (Static, Fn, Var, Const)):
            return value
        return self.out.temporary(value)
