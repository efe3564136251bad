"""Arrays as items of lists, with their elements stored consecutively in a flat array, and their positions and shapes
separately.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..emitter import Emitter
from ..ir import Block, Call, Check, Const, Dim, For, Get, Lazy, Op, Set, Slice, Var, get
from ..value_types import BOOL, INT, Arr
from ..values import ListValue, Rows

ONE = Const(1, INT)
ZERO = Const(0, INT)


def append_array(out: Emitter, lst: ListValue, store: Var, rows: Rows, expr: Any) -> None:
    """Store the elements of an array after those of the last item of a list."""
    array = expr if isinstance(expr, Var) else out.temporary(expr)
    last = Op("sub", (lst.count, ONE), INT)
    end = Op("add", (Get(rows.starts, (last,), INT, safe=True), product([
        Get(size, (last,), INT, safe=True) for size in rows.sizes])), INT)
    low = out.temporary(Lazy("if", (Op("less", (ZERO, lst.count), BOOL), end, ZERO), INT), "low")
    lengths = [Dim(array, axis) for axis in range(array.kind.ndim)]
    high = out.temporary(Op("add", (low, product(lengths)), INT), "high")
    out.emit(Check(Op("less_equal", (high, lst.capacity), BOOL), out.line, of_capacity=True))
    for target, value in zip((rows.starts, *rows.sizes), (low, *lengths)):
        out.emit(Set(target, (lst.count,), value, "", out.line, safe=True))
    store_array(out, lst, store, low, high, array)


def store_array(out: Emitter, lst: ListValue, store: Var, low: Any, high: Any, array: Var) -> None:
    """Copy the elements of an array to a part of the flat array of a list."""
    copies = out.moves if lst.has_views else out.rows
    if not lst.has_views:
        out.copying[lst.site] = None
    if array.kind.ndim > 1:
        held = out.temporary(Call("copy", (array,), (), array.kind), "row")
        copies.append(out.buffer[-1])
        size = Op("sub", (high, low), INT)
        flat = Call("reshape", (held, (size,)), (), Arr(array.kind.dtype, 1), is_view=True)
        out.emit(Set(store, (Slice(low, high),), out.temporary(flat, "row"), "", out.line))
    else:
        out.emit(Set(store, (Slice(low, high),), array, "", out.line))
        copies.append(out.buffer[-1])


def array_at(out: Emitter, lst: ListValue, store: Var, rows: Rows, place: Any) -> Var:
    """Return an array in a list, as a copy or a view."""
    low, lengths = place_of_array(out, rows, place)
    row = get(store, (Slice(low, Op("add", (low, product(lengths)), INT)),))
    if lst.has_views:
        found = out.temporary(row, "row")
    else:
        found = out.temporary(Call("copy", (row,), (), row.kind), "row")
        out.rows.append(out.buffer[-1])
        out.copying[lst.site] = None
    if len(lengths) == 1:
        return found
    kind = Arr(store.kind.dtype, len(lengths))
    return out.temporary(Call("reshape", (found, tuple(lengths)), (), kind, is_view=True), "row")


def place_of_array(out: Emitter, rows: Rows, place: Any) -> tuple[Var, list[Var]]:
    """Return the start of the elements of an array in a list, and the shape of the array."""
    return loaded(out, rows.starts, place, "low"), [loaded(out, size, place, "length") for size in rows.sizes]


def stacked(out: Emitter, lst: ListValue, store: Var, rows: Rows) -> Var:
    """Return the arrays of a list, which must have equal shapes, as a view with an additional dimension."""
    lengths = [loaded(out, size, ZERO, "length") for size in rows.sizes]
    k = Var(out.fresh("k"), INT)
    out.kinds[k.name] = INT
    same: Block = [Check(Op("equal", (Get(size, (k,), INT, safe=True), length), BOOL), out.line)
                   for size, length in zip(rows.sizes, lengths)]
    out.emit(For(k.name, ONE, lst.count, 1, same, line=out.line))
    flat = out.temporary(get(store, (Slice(None, product([lst.count, *lengths])),)), "rows")
    kind = Arr(store.kind.dtype, len(lengths) + 1)
    return out.temporary(Call("reshape", (flat, (lst.count, *lengths)), (), kind, is_view=True), "rows")


def product(lengths: Sequence[Any]) -> Any:
    return functools.reduce(lambda one, other: Op("mul", (one, other), INT), lengths)


def loaded(out: Emitter, array: Var, number: Any, name: str) -> Var:
    """Load an element of an integer array into a variable."""
    return out.temporary(Get(array, (number,), INT, safe=True), name)
