"""Dicts and sets with computed keys, which are integers or tuples of integers.

A dict display without computed keys is a record with known fields. If one of its keys turns out to be computed, the
function is read again, and the dict is a hash table (see `hash_table_code`): lists of keys and values, and an array.
"""

from __future__ import annotations

import ast
from typing import Any, Final

import attrs

from ..ir import Const, Op
from ..value_types import BOOL, INT, Num
from ..values import (
    DictItems,
    HashedDict,
    HashedSet,
    IteratorValue,
    ListValue,
    RecordValue,
    Ref,
    Reread,
    Static,
    TupleValue,
    as_expr,
    is_hashed,
    is_key,
    is_plain,
    items_in,
)
from . import hash_table_code as code
from .expressions import ExpressionReader
from .library_calls import library
from .lists import count_of, item_kind, kind_of_items
from .scopes import Scope

# For each function that creates the value of a missing key, its implementation.
FACTORIES: Final = {float: code.new_float, int: code.new_integer, list: code.new_list}


class HashedReader(ExpressionReader):
    """Reads dicts and sets with computed keys."""

    # -- creation ------------------------------------------------------------------------------------------------------

    def of_Dict(self, scope: Scope, node: ast.Dict) -> Any:
        """Read a dict display."""
        site = (scope.file, node.lineno, node.col_offset)
        if not self.is_hashed_at(site):
            return super().of_Dict(scope, node)
        found = self.hashed(HashedDict, site)
        for key, value in zip(node.keys, node.values):
            if key is None:
                raise self.out.refused("a dict display with ** is not supported", node)
            given = self.value(scope, key)
            self.set_hashed(found, self.copied(given), self.value(scope, value), node)
        return found

    def of_Set(self, scope: Scope, node: ast.Set) -> Any:
        """Read a set display, which is known if its items are."""
        items = [self.copied(self.value(scope, each)) for each in node.elts]
        site = (scope.file, node.lineno, node.col_offset)
        if not self.is_hashed_at(site) and all(isinstance(each, Static) and is_plain(each.value) for each in items):
            return TupleValue(tuple(map(Static, {each.value for each in items})), set, site)
        return self.set_of(items, site, node)

    def is_hashed_at(self, site: Any) -> bool:
        """Return whether the dict created at a source location has computed keys."""
        return ("hashed", site) in self.known_sites

    def hashed(self, cls: type, site: Any, make: Any = None) -> RecordValue:
        """Create an empty dict or set.

        Arguments:
            cls: `HashedDict` or `HashedSet`.
            site: the source location where it is created.
            make: for a `defaultdict`, the function that creates the values of missing keys.
        """
        parts = ("keys", "values") if cls is HashedDict else ("keys",)
        fields = {name: self.new_list_at((*site, name)) for name in parts}
        size = self.out.temporary(Op("mul", (Const(2, INT), self.list_capacity()), INT), "size")
        table = library(self.out, "numpy.full", [size, Static(-1)], {})
        fields["table"] = self.out.temporary(table, "table")
        if make is not None:
            fields["make"] = make
        return RecordValue(fields, cls, ("hashed", site))

    def new_list_at(self, site: Any) -> Any:
        """Create an empty list."""
        empty = TupleValue((), list, site)
        return self.growing(empty) if self.grows(site) else empty

    def set_of(self, items: list[Any], site: Any, node: Any) -> RecordValue:
        """Create a set of items."""
        found = self.hashed(HashedSet, site)
        for each in items:
            self.call_own(code.insert_key, self.parts_of(found, each, node))
        return found

    def set_from(self, given: Any, site: Any, node: Any) -> RecordValue:
        """Create a set of the items of an iterable."""
        if isinstance(given, TupleValue):
            return self.set_of([self.copied(each) for each in given.items], site, node)
        found = self.hashed(HashedSet, site)
        expr = as_expr(given)
        kind = kind_of_items(given) if isinstance(given, (ListValue, Ref)) else None if expr is None else Num(
            expr.kind.dtype)
        slot = code.slot_of_tuple if isinstance(kind, tuple) else code.slot_of_number
        if isinstance(found.fields["keys"], TupleValue):
            self.check_kind(kind, node)
            raise Reread(found.fields["keys"].site, kind)
        self.call_own(code.add_all, [found.fields["keys"], found.fields["table"], given, Static(slot)])
        return found

    def counter(self, site: Any) -> RecordValue:
        """Create a `Counter`, whose missing items are 0."""
        found = self.hashed(HashedDict, site)
        return attrs.evolve(found, fields={**found.fields, "absent": Static(0)})

    def default_dict(self, make: Any, site: Any, node: Any) -> RecordValue:
        """Create a `defaultdict`."""
        if isinstance(make, Static):
            if make.value not in FACTORIES:
                raise self.out.refused("a defaultdict of this factory is not supported", node)
            make = Static(FACTORIES[make.value])
        return self.hashed(HashedDict, site, make)

    # -- operations ----------------------------------------------------------------------------------------------------

    def parts_of(self, base: RecordValue, key: Any, node: Any, values: bool = False) -> list[Any]:
        """Return the lists of a dict or set, a key, and the function for its slot.

        Raises:
            Reread: if the kind of the keys is still unknown.
        """
        kind = item_kind(self.out, key)
        self.check_kind(kind, node)
        keys = base.fields["keys"]
        if isinstance(keys, TupleValue):
            raise Reread(keys.site, kind)
        slot = code.slot_of_tuple if isinstance(kind, tuple) else code.slot_of_number
        return [keys, base.fields["table"], *([base.fields["values"]] if values else []), key, Static(slot)]

    def check_kind(self, kind: Any, node: Any) -> None:
        """Reject keys of an unsupported kind."""
        parts = kind if isinstance(kind, tuple) else (kind,)
        if not parts or not all(isinstance(part, Num) and part.dtype == "l" for part in parts):
            raise self.out.refused("computed keys other than integers, or tuples of integers, are not supported", node)

    def item_by_key(self, base: RecordValue, key: Any, node: Any) -> Any:
        """Return an item of a dict."""
        if is_hashed(base):
            return self.item_of_hashed(base, self.copied(key), node)
        if base.cls is dict and (not isinstance(key, Static) or not is_plain(key.value)):
            raise self.with_computed_keys(base, key, node)
        return super().item_by_key(base, key, node)

    def truth(self, value: Any, node: Any) -> Any:
        """Return the truth value of a value: a bool if it is known, otherwise an expression."""
        if not is_hashed(value):
            return super().truth(value, node)
        keys = value.fields["keys"]
        if isinstance(keys, TupleValue):
            raise self.out.empty(node)
        return Op("not_equal", (count_of(self.out, keys), Const(0, INT)), BOOL)

    def item_of_hashed(self, base: RecordValue, key: Any, node: Any) -> Any:
        """Read `items[key]`."""
        if base.cls is HashedSet:
            raise self.out.refused("an item of a set is not supported", node)
        given = self.parts_of(base, key, node, values=True)
        if "absent" in base.fields:
            values = base.fields["values"]
            if isinstance(values, TupleValue):
                raise Reread(values.site, INT)
            return self.call_own(code.get, [*given, base.fields["absent"]])
        if "make" in base.fields:
            return self.call_own(code.item_or_new, [*given, base.fields["make"]])
        return self.call_own(code.item, given)

    def set_hashed(self, base: RecordValue, key: Any, value: Any, node: Any) -> None:
        """Read `items[key] = value`."""
        if base.cls is HashedSet:
            raise self.out.refused("an item of a set is not supported", node)
        values = base.fields["values"]
        if isinstance(values, TupleValue):
            raise Reread(values.site, item_kind(self.out, value))
        self.call_own(code.set_item, [*self.parts_of(base, key, node, values=True), value])

    def contained(self, item: Any, container: Any, node: Any) -> Any:
        """Return whether an object is in a container: a bool if it is known, otherwise an expression."""
        if is_hashed(container):
            return self.call_own(code.contains, self.parts_of(container, item, node))
        if isinstance(container, RecordValue) and container.cls is dict and not isinstance(item, Static):
            raise self.with_computed_keys(container, item, node)
        return super().contained(item, container, node)

    def with_computed_keys(self, base: RecordValue, key: Any, node: Any) -> Exception:
        """Return the error stating that a dict has computed keys.

        Arguments:
            base: the dict.
            key: a key that is not among those known so far, or None.
            node: the syntax node for the source location.
        """
        is_other = isinstance(key, Static) and not is_key(key.value)
        if base.site is None or is_other or not all(map(is_key, base.fields)):
            return self.out.refused("a key that is not constant is not supported", node)
        return Reread(("hashed", base.site), True)

    def hashed_method(self, base: RecordValue, name: str, args: list[Any], node: Any) -> Any:
        """Return the result of a method of a dict or set with computed keys."""
        args = list(map(items_in, args))
        keys, table, values = [base.fields.get(part) for part in ("keys", "table", "values")]
        count = len(args)
        if base.cls is HashedSet:
            if name == "add" and count == 1:
                self.call_own(code.insert_key, self.parts_of(base, args[0], node))
                return Static(None)
            if name in ("discard", "remove") and count == 1:
                self.call_own(code.discard if name == "discard" else code.remove, self.parts_of(base, args[0], node))
                return Static(None)
            if name == "clear" and not args:
                return self.call_own(code.clear_set, [keys, table])
            raise self.out.refused(f"set.{name} is not supported", node)
        if name in ("keys", "values") and not args:
            return IteratorValue(base.fields[name])
        if name == "items" and not args:
            return IteratorValue(DictItems(keys, values))
        if name == "get" and count in (1, 2):
            if count == 1:
                raise self.out.refused("dict.get without a default is not supported", node)
            if isinstance(values, TupleValue):
                raise Reread(values.site, item_kind(self.out, args[1]))
            return self.call_own(code.get, [*self.parts_of(base, args[0], node, values=True), args[1]])
        if name == "setdefault" and count == 2:
            if isinstance(values, TupleValue):
                raise Reread(values.site, item_kind(self.out, args[1]))
            return self.call_own(code.set_default, [*self.parts_of(base, args[0], node, values=True), args[1]])
        if name == "pop" and count == 1:
            return self.call_own(code.pop_item, self.parts_of(base, args[0], node, values=True))
        if name == "clear" and not args:
            return self.call_own(code.clear, [keys, table, values])
        raise self.out.refused(f"dict.{name} is not supported", node)
