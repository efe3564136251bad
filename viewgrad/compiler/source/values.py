"""The abstract values of names while a function is read: expressions, known objects, and trees of these."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from .ir import Const, Get, Slice, Var, is_number
from .value_types import INT, Kind, Num, joined, kind_of


class NotSupported(Exception):
    """Raised for a construct that the source compiler does not support.

    Attributes:
        reason: the reason.
        line: the line, or 0.
        file: the file.
    """

    def __init__(self, reason: str, line: int = 0, file: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.file = file


class Empty(NotSupported):
    """Raised if an item is read from a list whose kind of items is still unknown."""


class Reread(Exception):
    """Raised to read the function again with more knowledge about an object that it creates.

    Attributes:
        site: the source location where the object is created.
        known: its known properties.
        others: the source locations where other objects with the same known properties are created.
    """

    def __init__(self, site: Any, known: Any, others: Sequence[Any] = ()) -> None:
        super().__init__(site)
        self.site = site
        self.known = known
        self.others = others


@attrs.frozen(eq=False)
class Path:
    """An access path to an object, starting from an argument or from an object that does not change.

    Attributes:
        root: the number of the argument, or the object.
        is_argument: whether it is an argument.
        steps: pairs of a way ("attr", "item", "cell", "key") and a name or number.
    """

    root: Any
    is_argument: bool
    steps: tuple[tuple[str, Any], ...] = ()

    def to(self, how: str, key: Any) -> Path:
        """Return the path extended by one step."""
        return Path(self.root, self.is_argument, (*self.steps, (how, key)))

    def now(self, arguments: Any) -> Any:
        """Follow the path.

        Raises:
            Exception: if there is no object at the path.
        """
        found = arguments[self.root] if self.is_argument else self.root
        for how, key in self.steps:
            if how == "attr":
                found = getattr(found, key)
            elif how == "cell":
                found = found.cell_contents
            else:
                found = found[key]
        return found

    def __str__(self) -> str:
        return "".join(f".{key}" if how == "attr" else f"[{key!r}]" for how, key in self.steps if how != "cell")


@attrs.frozen(eq=False)
class Static:
    """An object that is known at compile time."""

    value: Any
    path: Path | None = None


@attrs.frozen(eq=False)
class TupleValue:
    """A tuple or list of a known length.

    Attributes:
        items: its items.
        cls: its class.
        site: the source location where a list is created.
    """

    items: tuple[Any, ...]
    cls: Any = tuple
    site: Any = None


@attrs.frozen
class Row:
    """The kind of arrays that are items of a list.

    Attributes:
        dtype: the character of their dtype.
        ndim: the number of their dimensions.
    """

    dtype: str
    ndim: int = 1


@attrs.frozen(eq=False)
class Rows:
    """The positions of arrays in the flat array that stores the items of a list consecutively.

    Attributes:
        starts: the start of the elements of each item.
        sizes: the length of each item along each axis.
    """

    starts: Var
    sizes: tuple[Var, ...]


@attrs.frozen(eq=False)
class ListValue:
    """A list of unknown length.

    Attributes:
        site: the source location where it is created.
        count: the variable for its length.
        kind: the kind of its items: a kind of numbers, a `Row`, or a tuple of them.
        stores: the arrays that store the items, one for each part of an item.
        rows: the positions of arrays; None for numbers.
        capacity: the number of items for which there is room.
        has_views: whether arrays in it are read as views, so that they can be written to in place.
    """

    site: Any
    count: Var
    kind: Any
    stores: tuple[Var, ...]
    rows: tuple[Rows | None, ...]
    capacity: Any
    has_views: bool = False


@attrs.frozen(eq=False)
class Cell:
    """A 0-d array created by the function.

    Attributes:
        store: the single-element array that stores it.
        site: the source location where it is created.
    """

    store: Var
    site: Any

    @property
    def element(self) -> Get:
        """The element."""
        return Get(self.store, (Const(0, INT),), Num(self.store.kind.dtype), safe=True)


@attrs.frozen(eq=False)
class IteratorValue:
    """An iterator, which may be used only where it is created, since it is exhausted afterwards.

    Attributes:
        value: its items.
    """

    value: Any


def items_in(value: Any) -> Any:
    """Return the items of an iterator; return other values unchanged."""
    return value.value if isinstance(value, IteratorValue) else value


@attrs.frozen(eq=False)
class CellOrNumber:
    """A name that refers to a 0-d array or to a number.

    Attributes:
        sites: the source locations where the arrays are created.
    """

    sites: frozenset[Any]


@attrs.frozen
class ListOf:
    """The kind of lists that are items of a list.

    Attributes:
        kind: the kind of their items; None if they are empty.
        sites: the source locations where they are created.
    """

    kind: Any
    sites: frozenset[Any]


@attrs.frozen(eq=False)
class Heap:
    """The storage of lists that are items of other lists.

    Attributes:
        stores: the arrays that store the items of all lists, one for each part of an item.
        firsts: for each list, the position of its first item.
        counts: for each list, its length.
        sizes: for each list, the number of items for which there is room.
        used: the variable for the used size of the stores.
        lists: the variable for the number of lists.
        capacity: the capacity for items and for lists.
    """

    stores: tuple[Var, ...]
    firsts: Var
    counts: Var
    sizes: Var
    used: Var
    lists: Var
    capacity: Any


@attrs.frozen(eq=False)
class Ref:
    """A list on a heap.

    Attributes:
        heap: the heap that stores it.
        number: its number on the heap.
        of: the kind of its items, and the source locations where it may be created.
    """

    heap: Heap
    number: Any
    of: ListOf


@attrs.frozen(eq=False)
class SeveralLists:
    """A name that refers to lists created at several locations, not all of them on one heap yet, or to several dicts.

    Attributes:
        lists: the lists or dicts.
    """

    lists: tuple[Any, ...]


@attrs.frozen(eq=False)
class RecordValue:
    """A dict with known keys, or an object that is used only through its attributes.

    Attributes:
        fields: the items or attributes.
        cls: its class.
        site: the source location where it is created; None for arguments.
        prefix: the prefix of the variables for the fields, if these are assigned; otherwise "".
        level: the number of conditional blocks around the source location where it is created.
    """

    fields: dict[Any, Any]
    cls: Any = dict
    site: Any = None
    prefix: str = ""
    level: int = 0


class HashedDict(dict[Any, Any]):
    """The class of records that represent dicts with computed keys.

    Such a record has lists of "keys" and "values", and the array of a hash "table". The record of a `defaultdict` also
    has the function to "make" missing values, and that of a `Counter` has the value of "absent" keys.
    """


class HashedSet(set[Any]):
    """The class of records that represent sets with computed items; these have "keys" and the hash "table"."""


@attrs.frozen(eq=False)
class DictItems:
    """The items of a dict with computed keys, as pairs of keys and values.

    Attributes:
        keys, values: the lists that store them.
    """

    keys: Any
    values: Any


@attrs.frozen(eq=False)
class ListResult:
    """A list among the results, whose length is known after the program has run.

    Attributes:
        arrays: the variables for its items, along their first axes, one for each part of an item.
        kind: the kind of its items.
    """

    arrays: tuple[Var, ...]
    kind: Any


@attrs.frozen(eq=False)
class FunctionValue:
    """A function defined inside the function being read, or a lambda."""

    node: ast.FunctionDef | ast.Lambda
    scope: Any
    defaults: tuple[Any, ...] = ()
    kw_defaults: tuple[Any, ...] = ()


@attrs.frozen(eq=False)
class Maybe:
    """A variable that may be undefined."""

    value: Any


@attrs.frozen(eq=False)
class OrNone(Maybe):
    """A variable that is None or has a value."""


def is_none(value: Any) -> bool:
    """Return whether a value is None."""
    return isinstance(value, Static) and value.value is None


CONFLICT: Final = Static("a variable with values of several types")
NUMBERS: Final = (bool, int, float, complex)


EXACT: Final = frozenset({
    bool, int, float, complex, str, bytes, type(None), slice, range, type(Ellipsis), types.FunctionType,
    types.BuiltinFunctionType, types.MethodType, types.ModuleType, type,
})  # fmt: skip
CONTAINERS: Final = frozenset({tuple, list, set, frozenset})


class _Text:
    """A string that is computed when the function runs."""


TEXT: Final = Static(_Text())


def is_plain(value: Any) -> bool:
    """Return whether operators on an object run no user code, so that their results are known.

    Operators on containers run the operators of their items.
    """
    kind = type(value)
    if kind in EXACT or isinstance(value, (np.generic, np.dtype)):
        return True
    if kind in CONTAINERS:
        return all(map(is_plain, value))
    if kind is dict or kind is types.MappingProxyType:
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    equality: Any = kind.__eq__
    return isinstance(value, type) and equality is type.__eq__


def is_identity(value: Any) -> bool:
    """Return whether an object is equal only to itself."""
    equality: Any = type(value).__eq__
    return equality is object.__eq__


NO_EXPRESSIONS: Final = (
    TupleValue, RecordValue, FunctionValue, Maybe, ListValue, Ref, SeveralLists, CellOrNumber, IteratorValue, Slice,
    DictItems,
)  # fmt: skip


def as_expr(value: Any) -> Any:
    """Return a value as an expression, or None if it is neither a number nor an array."""
    if isinstance(value, Static):
        constant = int(value.value) if isinstance(value.value, np.integer) else value.value
        kind = kind_of(constant)
        return Const(constant, kind) if kind is not None and not kind.ndim else None
    if isinstance(value, Cell):
        return value.element
    return None if isinstance(value, NO_EXPRESSIONS) else value


def is_hashed(value: Any) -> bool:
    """Return whether a value is a dict or a set with computed keys."""
    return isinstance(value, RecordValue) and value.cls in (HashedDict, HashedSet)


def is_key(key: Any) -> bool:
    """Return whether a known key is an integer or a tuple of integers."""
    return type(key) is int or (type(key) is tuple and bool(key) and all(type(each) is int for each in key))


def as_key(value: Any) -> Any:
    """Return a key of a dict; a tuple of known items becomes a known object."""
    if isinstance(value, TupleValue) and value.cls is tuple and all(
        isinstance(each, Static) and is_plain(each.value) for each in value.items
    ):
        return Static(tuple([each.value for each in value.items]))
    return value


def is_listed(value: Any) -> bool:
    """Return whether a value is a list created by the function, or may be one of several such lists."""
    return isinstance(value, (ListValue, Ref, SeveralLists)) or (
        isinstance(value, TupleValue) and value.cls is list and value.site is not None)


def joined_values(a: Any, b: Any) -> Any:
    """Join the values of a name from two control-flow paths."""
    if a is b:
        return a
    if isinstance(a, Ref) and isinstance(b, Ref) and a.heap is b.heap and a.of.kind == b.of.kind:
        number = joined_values(a.number, b.number)
        of = a.of if b.of.sites <= a.of.sites else ListOf(a.of.kind, a.of.sites | b.of.sites)
        return CONFLICT if number is CONFLICT else a if number is a.number and of is a.of else Ref(a.heap, number, of)
    if isinstance(a, (Cell, CellOrNumber)) or isinstance(b, (Cell, CellOrNumber)):
        return _joined_cells(a, b)
    if is_listed(a) and is_listed(b) and not (isinstance(a, TupleValue) and isinstance(b, TupleValue)
                                              and len(a.items) == len(b.items)):
        return SeveralLists((a, b))
    if isinstance(a, OrNone) or isinstance(b, OrNone) or is_none(a) is not is_none(b):
        return _joined_with_none(a, b)
    if isinstance(a, Maybe) or isinstance(b, Maybe):
        inner = joined_values(getattr(a, "value", a) if isinstance(a, Maybe) else a,
                              getattr(b, "value", b) if isinstance(b, Maybe) else b)
        return inner if inner is CONFLICT else Maybe(inner)
    if isinstance(a, Var) and isinstance(b, Var):
        kind = joined(a.kind, b.kind)
        return Var(a.name, kind) if a.name == b.name and kind is not None else CONFLICT
    if isinstance(a, Static) and isinstance(b, Static):
        same = a.value is b.value or (type(a.value) is type(b.value) and isinstance(a.value, (*NUMBERS, str))
                                      and repr(a.value) == repr(b.value))
        return a if same else CONFLICT
    if isinstance(a, Const) and isinstance(b, Const):
        return a if a == b and type(a.value) is type(b.value) else CONFLICT
    if isinstance(a, TupleValue) and isinstance(b, TupleValue) and a.cls is b.cls and len(a.items) == len(b.items):
        items = [joined_values(x, y) for x, y in zip(a.items, b.items)]
        return CONFLICT if any(item is CONFLICT for item in items) else TupleValue(tuple(items), a.cls)
    if isinstance(a, RecordValue) and isinstance(b, RecordValue) and {a.cls, b.cls} == {dict, HashedDict}:
        return SeveralLists((a, b))
    are_records = isinstance(a, RecordValue) and isinstance(b, RecordValue)
    if are_records and a.cls is b.cls and list(a.fields) == list(b.fields):
        fields = {key: joined_values(value, b.fields[key]) for key, value in a.fields.items()}
        return CONFLICT if any(value is CONFLICT for value in fields.values()) else RecordValue(fields, a.cls)
    if isinstance(a, FunctionValue) and isinstance(b, FunctionValue) and a.node is b.node and a.scope is b.scope:
        return a
    return CONFLICT


def _joined_cells(a: Any, b: Any) -> Any:
    """Join the values of a name that may refer to a 0-d array."""
    if isinstance(a, Maybe) or isinstance(b, Maybe):
        inner = joined_values(a.value if isinstance(a, Maybe) else a, b.value if isinstance(b, Maybe) else b)
        return inner if inner is CONFLICT else Maybe(inner)
    sites: frozenset[Any] = frozenset()
    for each in (a, b):
        if isinstance(each, CellOrNumber):
            sites |= each.sites
        elif isinstance(each, Cell):
            sites |= {each.site}
        elif as_expr(each) is None:
            return CONFLICT
    return CellOrNumber(sites)


def _joined_with_none(a: Any, b: Any) -> Any:
    """Join the values of a name that is None on one of two control-flow paths."""
    values = [each.value if isinstance(each, OrNone) else each for each in (a, b) if not is_none(each)]
    found = values[0] if len(values) == 1 else joined_values(*values)
    return OrNone(found) if isinstance(found, Var) else CONFLICT


def leaves_of(value: Any) -> list[Any]:
    """Return the expressions and known objects in a tree."""
    if isinstance(value, TupleValue):
        return [leaf for item in value.items for leaf in leaves_of(item)]
    if isinstance(value, RecordValue):
        return [leaf for item in value.fields.values() for leaf in leaves_of(item)]
    return list(value.arrays) if isinstance(value, ListResult) else [value]


def kind_name(value: Any) -> str:
    """Describe a value, for messages."""
    if isinstance(value, Static):
        return f"{type(value.value).__name__} {value.value!r}"[:60]
    if isinstance(value, (Cell, IteratorValue)):
        return "a 0-d array" if isinstance(value, Cell) else "an iterator"
    kind: Kind | None = None if isinstance(value, (ListValue, Ref)) else getattr(value, "kind", None)
    if kind is not None:
        return f"{'a number' if is_number(value) else 'an array'} ({kind})"
    names = {
        TupleValue: "a tuple", RecordValue: "a record", FunctionValue: "a function", ListValue: "a list",
        Ref: "a list", SeveralLists: "a list",
    }  # fmt: skip
    return names.get(type(value), "a value")
