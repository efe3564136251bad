"""Names: local variables, variables of enclosing functions, captured variables, and builtins."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import attrs

from ..ir import Check, Const, Op, Slice, Var, is_number, nodes
from ..jumps import is_flag
from ..objects import Guard, ObjectReader
from ..value_types import BOOL, INT, Num, joined
from ..values import (
    CONFLICT,
    Cell,
    CellOrNumber,
    FunctionValue,
    IteratorValue,
    ListValue,
    Maybe,
    OrNone,
    Path,
    RecordValue,
    Ref,
    Reread,
    SeveralLists,
    Static,
    TupleValue,
    as_expr,
    is_key,
    is_none,
    kind_name,
    leaves_of,
)
from .lists import joined_item_kinds, reread
from .optional import unset
from .scopes import Partial, Scope, grows, identifier, is_updated, unboxed, variables_in


class NameReader(ObjectReader):
    """Resolves names and binds them."""

    def __init__(self, static: frozenset[str] = frozenset(), known: dict[Any, Any] | None = None) -> None:
        super().__init__(static)
        self.out.numbers_at = frozenset(site[1] for site in known or () if site[0] == "number")
        self.known_sites = known or {}  # facts about the lists created at source locations
        self.maybe: set[str] = set()
        self.shared: set[str] = set()  # variables that called functions may bind
        self.unsure = 0  # the number of enclosing blocks that may not be executed

    def lookup(self, scope: Scope, node: ast.Name) -> Any:
        """Return the value of a name."""
        name = node.id
        if name in scope.env:
            found = scope.env[name]
            if found is CONFLICT:
                raise self.out.refused(f"{name} has values of several types", node)
            for each in leaves_of(found) if isinstance(found, (TupleValue, RecordValue)) else (found,):
                if isinstance(each, SeveralLists):
                    raise self.on_one_heap(each, node)
                if isinstance(each, CellOrNumber):
                    raise self.as_numbers(each, node)
            if isinstance(found, OrNone) and name in scope.present:
                return found.value
            if isinstance(found, Maybe):
                self._require_variable(scope, name, found.value, node)
                found = self.defined(found.value, node)
            return found
        if name in scope.stores:
            raise self.out.refused(f"{name} is used before it is assigned", node)
        return self.free(scope, name, node)

    def as_numbers(self, found: CellOrNumber, node: Any) -> Exception:
        """Return the error stating that 0-d arrays are used as numbers."""
        first, *others = [("number", site) for site in sorted(found.sites, key=str)]
        if any(site in self.known_sites for site in (first, *others)):
            return self.out.refused("a name that refers to a number or to a 0-d array is not supported", node)
        return Reread(first, True, others)

    def on_one_heap(self, found: SeveralLists, node: Any) -> Exception:
        """Return the error stating that the lists a name may refer to must be on one heap."""
        lists, waiting = [], list(found.lists)
        while waiting:
            each = waiting.pop()
            if isinstance(each, SeveralLists):
                waiting += each.lists
            else:
                lists.append(each)
        for each in lists:
            if isinstance(each, RecordValue) and each.cls is dict:  # a dict with known keys, or one with computed keys
                if each.site is None or not all(map(is_key, each.fields)):
                    return self.out.refused("a name that refers to one of several dicts is not supported", node)
                return Reread(("hashed", each.site), True)
        sites = frozenset([each.site for each in lists if not isinstance(each, Ref)])
        if sites:
            first, *others = [("heap", site) for site in sorted(sites, key=str)]
            return Reread(first, True, others)
        kind: Any = None
        for each in lists:
            kind = joined_item_kinds(self.out, kind, each.of.kind)
        wrong = [each.of.sites for each in lists if each.of.kind != kind]
        return reread(frozenset().union(*wrong), kind) if wrong else self.out.refused(
            "a name that refers to one of several lists is not supported", node)

    def _require_variable(self, scope: Scope, name: str, value: Any, node: ast.Name) -> None:
        """Ensure that a name that may be unbound has a variable with a flag that states whether it is bound.

        Raises:
            Reread: if it has referred to a constant or another variable so far, as in `if x > 0: y = x`.
        """
        variable = scope.prefix + name
        bases = {self.out.bases.get(leaf.name, leaf.name) for leaf in variables_in(value)}
        if is_flag(name) or any(base == variable or base.startswith(f"{variable}_") for base in bases):
            return
        if isinstance(value, RecordValue) and value.prefix and bases:
            return
        site = ("name", variable)
        if site in self.known_sites:
            raise self.out.refused(f"{name}, which may be unassigned, is {kind_name(value)}", node)
        raise Reread(site, True)

    def defined(self, value: Any, node: Any) -> Any:
        """Return a variable that may be undefined, after emitting a check that it is defined."""
        if value is CONFLICT:
            raise self.out.refused("a variable has values of several types", node)
        if isinstance(value, SeveralLists):
            raise self.on_one_heap(value, node)
        if isinstance(value, CellOrNumber):
            raise self.as_numbers(value, node)
        if isinstance(value, ListValue):
            raise Reread(("heap", value.site), True)
        for leaf in variables_in(value):
            if not is_flag(leaf.name.rpartition("__")[2]) and leaf.name not in self.out.inputs:
                self.maybe.add(leaf.name)
                self.out.emit(Check(Var(f"{leaf.name}_known", BOOL), self.out.line))
        return value

    def free(self, scope: Scope, name: str, node: Any) -> Any:
        """Return the value of a name that is not a local variable."""
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
        """Bind a variable to a value."""
        if name in scope.nonlocals:
            self.bind_outside(scope, name, value)
            return
        once = scope.stores.get(name, 1) <= 1 and ("name", scope.prefix + name) not in self.known_sites
        scope.present -= {name}
        if not once:
            unset(self.out, scope.prefix + name, value)
        if isinstance(value, Var) and isinstance(value.kind, Num) and value.kind.boxed:
            if any(is_updated(stmt, name) for stmt in scope.body):
                raise self.out.refused("writing to a 0-d array here is not supported")
            value = unboxed(value)
        if isinstance(value, (TupleValue, RecordValue)):
            value = self.apart(scope.prefix + name, value)
        scope.env[name] = self.bound(scope.prefix + name, value, once)

    def apart(self, name: str, value: Any) -> Any:
        """Bind items to separate variables if they are bound one after another and may read each other's variables.

        For example, in `state = (state[1], state[0])` the second item is read after the first is bound.
        """
        prefix = f"{name}_"
        exprs = [expr for expr in map(as_expr, leaves_of(value)) if expr is not None]
        reads = {node.name for expr in exprs for node in nodes(expr) if isinstance(node, Var)}
        return self.copied(value) if any(each.startswith(prefix) for each in reads) else value

    def bind_outside(self, scope: Scope, name: str, value: Any) -> None:
        """Bind a variable of an enclosing function to a value."""
        owner = scope.outer
        while owner is not None and name not in owner.env:
            owner = owner.outer
        before = None if owner is None else owner.env[name]
        expr = as_expr(value)
        fits = isinstance(before, Var) and expr is not None and joined(before.kind, expr.kind) == before.kind
        if not isinstance(before, Var) or not fits or self.out.let(before.name, expr).name != before.name:
            raise self.out.refused(f"{name} of the enclosing function is assigned a value of another type")

    def record(self, fields: dict[Any, Any], cls: Any, site: Any) -> RecordValue:
        """Return a dict or an object created by the function."""
        if site not in self.known_sites:
            return RecordValue(fields, cls, site)
        found = RecordValue({}, cls, site, self.out.fresh(cls.__name__.lower()), self.unsure)
        for key, value in fields.items():
            self.set_field(found, key, value)
        return found

    def set_field(self, owner: RecordValue, key: Any, value: Any) -> None:
        """Assign an item of a dict, or an attribute of an object.

        Raises:
            Reread: if it is not yet known that its fields are assigned.
        """
        if owner.cls is not dict and owner.cls.__setattr__ is not object.__setattr__:
            raise self.out.refused(f"{owner.cls.__name__} defines __setattr__")
        if not owner.prefix:
            if owner.site is None:
                raise self.out.refused(
                    "assigning to an argument or captured object is not supported")
            raise Reread(owner.site, {})
        name = f"{owner.prefix}_{identifier(str(key))}"
        known = owner.fields.get(key)
        if key not in owner.fields or (is_none(known) and not is_none(value) and self.unsure == owner.level):
            if self.unsure != owner.level:
                raise self.out.refused(f"{key} is first assigned in a loop or branch")
            kind = self.known_sites[owner.site].get(key)
            expr = as_expr(value)
            if kind is not None and kind.dtype == "d" and expr is not None and expr.kind.dtype == "l":
                value = Op("as_float", (expr,), kind)
            owner.fields[key] = self.bound(self.out.fresh(name), value, False)
            self.shared.update(leaf.name for leaf in variables_in(owner.fields[key]))
            return
        before, expr = owner.fields[key], as_expr(value)
        if expr is None or not isinstance(before, Var):
            raise self.out.refused(
                f"{key} changes from {kind_name(before)} to {kind_name(value)}, which is not supported")
        kind = joined(before.kind, expr.kind)
        if kind is None:
            raise self.out.refused(f"{key} has values of several types")
        if kind != before.kind:
            raise Reread(owner.site, {**self.known_sites[owner.site], key: kind})
        if self.out.let(before.name, expr).name != before.name:
            raise self.out.refused(f"{key} has values of several types")

    def bound(self, name: str, value: Any, once: bool) -> Any:
        """Bind a value to a variable and return the variable."""
        self._refuse_iterator(value)
        if isinstance(value, RecordValue) and value.prefix:
            return value
        if isinstance(value, (TupleValue, RecordValue)):
            items = list(enumerate(value.items)) if isinstance(value, TupleValue) else list(value.fields.items())
            kept = {key: self.bound(f"{name}_{key}", item, once) for key, item in items}
            if isinstance(value, TupleValue):
                return TupleValue(tuple(kept.values()), value.cls, value.site)
            return RecordValue(kept, value.cls, value.site)
        if isinstance(value, Static):
            expr = as_expr(value)
            if expr is None or once:
                return value
            value = expr
        if isinstance(value, (FunctionValue, ListValue, Partial, Cell, Slice)):
            return value
        if isinstance(value, Ref):
            return attrs.evolve(value, number=self.bound(name, value.number, once))
        if isinstance(value, Var) and once and self._is_fixed(value):
            return value
        if is_number(value) and value.kind.boxed:
            raise self.out.refused("assigning a 0-d array to another name is not supported")
        if self.unsure and value.kind == INT and grows(name, value):
            for each in {node.name for node in nodes(value) if isinstance(node, Var) and is_number(node)}:
                size = Op("abs", (Var(each, INT),), INT)
                self.out.emit(Check(Op("less", (size, Const(2**31, INT)), BOOL), self.out.line))
        found = self.out.let(name, value)
        if once and not self.unsure:
            self.out.single.add(found.name)
        return found

    def _refuse_iterator(self, value: Any) -> None:
        """Refuse to store an iterator, which would be exhausted when it is used again."""
        if isinstance(value, IteratorValue):
            raise self.out.refused("storing an iterator is not supported")

    def _is_fixed(self, value: Var) -> bool:
        """Return whether a variable is bound exactly once."""
        return value.name in self.out.inputs or value.name in self.out.single

    def held(self, value: Any) -> Any:
        """Return an argument as a value that does not change while the function runs."""
        self._refuse_iterator(value)
        if isinstance(value, TupleValue):
            return TupleValue(tuple([self.held(item) for item in value.items]), value.cls, value.site)
        if isinstance(value, RecordValue):
            held = {key: self.held(item) for key, item in value.fields.items()}
            return value if value.prefix else RecordValue(held, value.cls, value.site)
        if isinstance(value, (Static, FunctionValue, Var, Const, ListValue, Partial, Cell, Slice)):
            return value
        if isinstance(value, Ref):
            return attrs.evolve(value, number=self.held(value.number))
        return self.out.temporary(value)

    def given(self, value: Any) -> Any:
        """Return an argument with the parts that the called function may bind copied to separate variables."""
        self._refuse_iterator(value)
        if isinstance(value, TupleValue):
            return TupleValue(tuple([self.given(item) for item in value.items]), value.cls, value.site)
        if isinstance(value, Ref):
            return attrs.evolve(value, number=self.given(value.number))
        if isinstance(value, Var) and self.shared & {value.name, value.name.rpartition("_")[0]}:  # possibly numbered
            return self.out.temporary(value)
        return self.held(value)

    def copied(self, value: Any) -> Any:
        """Copy a value to new variables."""
        self._refuse_iterator(value)
        if isinstance(value, TupleValue):
            return TupleValue(tuple([self.copied(item) for item in value.items]), value.cls, value.site)
        if isinstance(value, RecordValue) and not value.prefix:
            return RecordValue({key: self.copied(item) for key, item in value.fields.items()}, value.cls, value.site)
        if isinstance(value, (Static, FunctionValue, Const, RecordValue, ListValue, Partial, Cell, Slice)):
            return value
        if isinstance(value, Ref):
            return attrs.evolve(value, number=self.copied(value.number))
        return self.out.temporary(value)
