"""Lists of unknown length: arrays with room for items, and a counter.

A list becomes one when the function appends to it, or assigns an item. Its items are numbers, rows, or tuples of them.
A row is copied into the list, so that an array that is appended must not be written to afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ..emitting import Emitter
from ..ir import Call, Check, Const, Dim, For, Get, Lazy, Let, Op, Set, Slice, Var, get, is_number
from ..kinds import BOOL, INT, Arr, Num, joined
from ..values import Lst, Reread, Row, Static, Tup, as_expr, kind_name
from .arrays import dtype_option, pure

ONE = Const(1, INT)
ZERO = Const(0, INT)


def item_kind(out: Emitter, value: Any) -> Any:
    """Return the kind of an item."""
    if isinstance(value, Tup) and value.cls is tuple:
        return tuple([item_kind(out, each) for each in value.items])
    expr = as_expr(value)
    if expr is None or expr.kind.ndim > 1:
        raise out.refused(f"{kind_name(value)} in a list of unknown length")
    return attrs.evolve(expr.kind, boxed=False) if is_number(expr) else Row(expr.kind.dtype)


def joined_item_kinds(out: Emitter, one: Any, other: Any) -> Any:
    """Return the common kind of two kinds of items; None is the kind of no items."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple([joined_item_kinds(out, a, b) for a, b in zip(one, other)])
    found = joined(one, other) if isinstance(one, Num) and isinstance(other, Num) else None
    if found is None:
        raise out.refused("a list with items of several kinds")
    return found


def new_list(out: Emitter, site: Any, kind: Any, room: Any) -> Lst:
    """Make an empty list.

    Arguments:
        out: where statements go.
        site: where in the source it is made.
        kind: of its items.
        room: how many numbers it may hold.
    """
    count = _number(out, "count")
    stores, widths = [], []
    for part in _parts(kind):
        widths.append(_number(out, "width") if isinstance(part, Row) else None)
        empty = Call("empty", ((room,),), dtype_option(part.dtype), Arr(part.dtype, 1))
        stores.append(out.temporary(empty, "items"))
    return Lst(site, count, kind, tuple(stores), tuple(widths), room)


def _number(out: Emitter, name: str) -> Var:
    found = Var(out.fresh(name), INT)
    out.kinds[found.name] = INT
    out.emit(Let(found.name, ZERO, out.line))
    return found


def _parts(kind: Any) -> Iterator[Any]:
    """Yield the kinds of numbers and rows in the kind of an item."""
    if isinstance(kind, tuple):
        for each in kind:
            yield from _parts(each)
    else:
        yield kind


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Tup):
        for each in value.items:
            yield from _leaves(each)
    else:
        yield as_expr(value)


def _checked(out: Emitter, lst: Lst, value: Any) -> None:
    """Make sure that a list has room for items of the kind of a value.

    Raises:
        Reread: if it is known to have items of another kind.
    """
    kind = joined_item_kinds(out, lst.kind, item_kind(out, value))
    if kind != lst.kind:
        raise Reread(lst.site, kind)


def appended(out: Emitter, lst: Lst, value: Any) -> None:
    """Read `append`."""
    _checked(out, lst, value)
    count = lst.count
    for store, width, expr in zip(lst.stores, lst.widths, _leaves(value)):
        expr = out.lifted(expr)
        if width is None:
            out.emit(Check(Op("less", (count, lst.room), BOOL), out.line, of_room=True))
            out.emit(Set(store, (count,), expr, "", out.line, safe=True))
            continue
        row = expr if isinstance(expr, Var) else out.temporary(expr)
        first = Op("equal", (count, ZERO), BOOL)
        out.emit(Let(width.name, Lazy("if", (first, Dim(row, 0), width), INT), out.line))
        out.emit(Check(Op("equal", (width, Dim(row, 0)), BOOL), out.line))
        low = out.temporary(Op("mul", (count, width), INT), "low")
        high = out.temporary(Op("add", (low, width), INT), "high")
        out.emit(Check(Op("less_equal", (high, lst.room), BOOL), out.line, of_room=True))
        out.rows.append(Set(store, (Slice(low, high),), row, "", out.line))
        out.emit(out.rows[-1])
    out.emit(Let(count.name, Op("add", (count, ONE), INT), out.line))


def repeated(out: Emitter, lst: Lst, value: Any, times: Any) -> None:
    """Append an item some times."""
    held = Tup(tuple([_held(out, each) for each in value.items])) if isinstance(value, Tup) else _held(out, value)
    name = out.fresh("k")
    out.kinds[name] = INT
    before, out.buffer = out.buffer, []
    appended(out, lst, held)
    body, out.buffer = out.buffer, before
    out.emit(For(name, ZERO, times, 1, body, line=out.line))


def _held(out: Emitter, value: Any) -> Any:
    expr = as_expr(value)
    return value if expr is None or isinstance(expr, (Const, Var)) else out.temporary(expr)


def _place(out: Emitter, lst: Lst, index: Any) -> Any:
    """Return the position of an item, which may be counted from the end."""
    expr = as_expr(index)
    if expr is None or not is_number(expr) or expr.kind.dtype != "l":
        raise out.refused(f"{kind_name(index)} as an index of a list")
    if isinstance(expr, Const):
        place: Any = expr if expr.value >= 0 else Op("sub", (lst.count, Const(-expr.value, INT)), INT)
    else:
        number = expr if isinstance(expr, Var) else out.temporary(expr, "place")
        wrapped = Op("add", (number, lst.count), INT)
        place = Lazy("if", (Op("less", (number, ZERO), BOOL), wrapped, number), INT)
    found = out.temporary(place, "place")
    inside = Lazy("and", (Op("less_equal", (ZERO, found), BOOL), Op("less", (found, lst.count), BOOL)), BOOL)
    out.emit(Check(inside, out.line, of_index=True))
    return found


def item_of_list(out: Emitter, lst: Lst, index: Any) -> Any:
    """Return an item."""
    return item_at(out, lst, _place(out, lst, index))


def item_at(out: Emitter, lst: Lst, place: Any) -> Any:
    """Return the item at a position that is in range."""
    parts: list[Any] = []
    for part, store, width in zip(_parts(lst.kind), lst.stores, lst.widths):
        if width is None:
            parts.append(Get(store, (place,), part, safe=True))
        else:
            low = out.temporary(Op("mul", (place, width), INT), "low")
            row = get(store, (Slice(low, Op("add", (low, width), INT)),))
            parts.append(out.temporary(Call("copy", (row,), (), row.kind), "row"))
    return _tree(lst.kind, iter(parts))


def _tree(kind: Any, parts: Iterator[Any]) -> Any:
    return Tup(tuple([_tree(each, parts) for each in kind])) if isinstance(kind, tuple) else next(parts)


def set_item(out: Emitter, lst: Lst, index: Any, value: Any) -> None:
    """Assign an item."""
    _checked(out, lst, value)
    place = _place(out, lst, index)
    for store, width, expr in zip(lst.stores, lst.widths, _leaves(value)):
        if width is not None:
            raise out.refused("a row of a list is assigned")
        out.emit(Set(store, (place,), out.lifted(expr), "", out.line, safe=True))


def popped(out: Emitter, lst: Lst) -> Any:
    """Read `pop` of the last item."""
    out.emit(Check(Op("less", (ZERO, lst.count), BOOL), out.line, of_index=True))
    out.emit(Let(lst.count.name, Op("sub", (lst.count, ONE), INT), out.line))
    found = item_at(out, lst, lst.count)
    return Tup(tuple([_held(out, each) for each in found.items])) if isinstance(found, Tup) else _held(out, found)


def array_of_list(out: Emitter, lst: Lst) -> Any:
    """Return a new array of the items."""
    arrays = []
    for part, store, width in zip(_parts(lst.kind), lst.stores, lst.widths):
        if isinstance(part, Row) or part.dtype != "d" or isinstance(lst.kind, tuple):
            out.emit(Check(Op("less", (ZERO, lst.count), BOOL), out.line))  # else it has another dtype, or dimensions
        if width is None:
            view: Any = get(store, (Slice(None, lst.count),))
        else:
            if isinstance(lst.kind, tuple):
                raise out.refused("an array of tuples of arrays")
            size = Op("mul", (lst.count, width), INT)
            flat = out.temporary(get(store, (Slice(None, size),)), "rows")
            call = Call("reshape", (flat, (lst.count, width)), (), Arr(part.dtype, 2), is_view=True)
            view = out.temporary(call, "rows")
        arrays.append(out.temporary(Call("copy", (view,), (), view.kind), "listed"))
    if isinstance(lst.kind, tuple):
        return pure(out, "stack", [Tup(tuple(arrays))], {"axis": Static(-1)})
    return arrays[0]
