"""Lists of unknown length, represented by arrays with room for items and a counter.

A list gets this representation if the function appends to it or assigns an item. Its items are numbers, arrays, tuples
of these, or other lists. The elements of an array are copied into the list and out of it, so neither the appended array
nor the one that is read may be written to afterwards.

A list that is an item of a list, or that a name refers to only in some iterations, is stored on a heap, together with
all others whose items have the same dtypes. There it has a number, which is stored in names and other lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..emitter import Emitter
from ..ir import Block, Call, Check, Const, Dim, For, Get, If, Lazy, Let, Op, Set, Slice, Var, get, is_number
from ..value_types import BOOL, INT, Arr, Num, is_uncertain, joined
from ..values import Cell, Heap, ListOf, ListValue, Ref, Reread, Row, Rows, Static, TupleValue, as_expr, kind_name
from .arrays import dtype_option, pure
from .ragged_arrays import append_array, array_at, loaded, place_of_array, product, stacked, store_array

ONE = Const(1, INT)
ZERO = Const(0, INT)


# -- kinds of items ----------------------------------------------------------------------------------------------------


def item_kind(out: Emitter, value: Any) -> Any:
    """Return the kind of an item.

    Raises:
        Reread: if it is a list that is not yet on a heap.
    """
    if isinstance(value, Ref):
        return value.of
    if isinstance(value, Cell):
        raise out.refused("a 0-d array in a list is not supported")
    if isinstance(value, ListValue) or (isinstance(value, TupleValue) and value.cls is list and value.site is not None):
        raise Reread(("heap", value.site), True)
    if isinstance(value, TupleValue) and value.cls is tuple:
        return tuple([item_kind(out, each) for each in value.items])
    expr = as_expr(value)
    if expr is None:
        raise out.refused(f"{kind_name(value)} in a list of unknown length is not supported")
    return attrs.evolve(expr.kind, boxed=False) if is_number(expr) else Row(expr.kind.dtype, expr.kind.ndim)


def joined_item_kinds(out: Emitter, one: Any, other: Any) -> Any:
    """Return the common kind of two kinds of items; None is the kind of an empty list's items."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple([joined_item_kinds(out, a, b) for a, b in zip(one, other)])
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        kind = joined_item_kinds(out, one.kind, other.kind)
        sites = one.sites | other.sites
        wrong = [each.sites for each in (one, other) if each.kind != kind]
        if wrong:
            raise reread(frozenset().union(*wrong), kind)
        return ListOf(kind, sites)
    found = joined(one, other) if isinstance(one, Num) and isinstance(other, Num) else None
    if found is None:
        raise out.refused("a list with items of several types is not supported")
    return found


def reread(sites: frozenset[Any], kind: Any) -> Reread:
    """Return the error stating that lists have items of another kind."""
    first, *others = sorted(sites, key=str)
    return Reread(first, kind, others)


def has_uncertain_dtype(kind: Any) -> bool:
    """Return whether the items of a list are integers in some places and floating-point numbers in others."""
    if isinstance(kind, ListOf):
        return has_uncertain_dtype(kind.kind)
    if isinstance(kind, tuple):
        return any(map(has_uncertain_dtype, kind))
    return is_uncertain(kind)


def _parts(kind: Any) -> Iterator[Any]:
    """Yield the kinds of numbers, rows and lists in the kind of an item."""
    if isinstance(kind, tuple):
        for each in kind:
            yield from _parts(each)
    else:
        yield kind


def _dtype(part: Any) -> str:
    """Return the dtype of the array that stores a part of each item; lists are stored by number."""
    if part is None:
        return "d"
    dtype: str = "l" if isinstance(part, ListOf) else part.dtype
    return dtype


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, TupleValue):
        for each in value.items:
            yield from _leaves(each)
    else:
        yield value.number if isinstance(value, Ref) else as_expr(value)


def _tree(out: Emitter, kind: Any, parts: Iterator[Any]) -> Any:
    if isinstance(kind, tuple):
        return TupleValue(tuple([_tree(out, each, parts) for each in kind]))
    found = next(parts)
    if not isinstance(kind, ListOf):
        return found
    return Ref(heap_of(out, kind.kind), out.temporary(found, "number"), kind)


def _checked(lst: ListValue | Ref, kind: Any) -> None:
    """Check that a list is known to have items of a given kind.

    Raises:
        Reread: if it is known to have items of another kind.
    """
    if isinstance(lst, Ref):
        if kind != lst.of.kind:
            raise reread(lst.of.sites, kind)
    elif kind != lst.kind:
        raise Reread(lst.site, kind)


# -- lists -------------------------------------------------------------------------------------------------------------


def new_list(out: Emitter, site: Any, kind: Any, capacity: Any, has_views: bool = False) -> ListValue:
    """Create an empty list.

    Arguments:
        out: the emitter that receives statements.
        site: the source location where it is created.
        kind: the kind of its items.
        capacity: the number of numbers for which there is room.
        has_views: whether arrays in it are read as views.
    """
    def array(dtype: str, name: str) -> Var:
        return out.temporary(Call("empty", ((capacity,),), dtype_option(dtype), Arr(dtype, 1)), name)

    count = _number(out, "count")
    stores, rows = [], []
    for part in _parts(kind):
        stores.append(array(_dtype(part), "items"))
        sizes = [array("l", "size") for _ in range(part.ndim)] if isinstance(part, Row) else []
        rows.append(Rows(array("l", "starts"), tuple(sizes)) if sizes else None)
    return ListValue(site, count, kind, tuple(stores), tuple(rows), capacity, has_views)


def _number(out: Emitter, name: str) -> Var:
    found = Var(out.fresh(name), INT)
    out.kinds[found.name] = INT
    out.emit(Let(found.name, ZERO, out.line))
    return found


# -- lists on a heap ---------------------------------------------------------------------------------------------------


def heap_of(out: Emitter, kind: Any) -> Heap:
    """Return the heap for lists of items of a given kind."""
    parts = list(_parts(kind))
    if any(isinstance(part, Row) for part in parts):
        raise out.refused("a list of arrays in a list is not supported")
    dtypes = "".join(map(_dtype, parts))
    if dtypes not in out.heaps:
        capacity = out.capacity()
        before, out.buffer = out.buffer, out.start

        def array(dtype: str, name: str) -> Var:
            return out.temporary(Call("empty", ((capacity,),), dtype_option(dtype), Arr(dtype, 1)), name)

        out.heaps[dtypes] = Heap(
            tuple([array(dtype, "heap") for dtype in dtypes]), array("l", "firsts"), array("l", "counts"),
            array("l", "sizes"), _number(out, "used"), _number(out, "lists"), capacity,
        )
        out.buffer = before
    return out.heaps[dtypes]


def new_ref(out: Emitter, site: Any, kind: Any) -> Ref:
    """Create an empty list on a heap."""
    heap = heap_of(out, kind)
    out.emit(Check(Op("less", (heap.lists, heap.capacity), BOOL), out.line, of_capacity=True))
    number = out.temporary(heap.lists, "number")
    for array, value in ((heap.firsts, heap.used), (heap.counts, ZERO), (heap.sizes, ZERO)):
        out.emit(Set(array, (number,), value, "", out.line, safe=True))
    out.emit(Let(heap.lists.name, Op("add", (heap.lists, ONE), INT), out.line))
    return Ref(heap, number, ListOf(kind, frozenset((site,))))


def _grown(out: Emitter, ref: Ref, count: Var) -> None:
    """Make room for another item of a list on a heap: in place if it is the last list there, otherwise by moving it."""
    heap, number = ref.heap, ref.number
    before, out.buffer = out.buffer, []
    first, size = loaded(out, heap.firsts, number, "first"), loaded(out, heap.sizes, number, "size")
    branch, out.buffer = out.buffer, []
    out.emit(Check(Op("less", (heap.used, heap.capacity), BOOL), out.line, of_capacity=True))
    out.emit(Set(heap.sizes, (number,), Op("add", (size, ONE), INT), "", out.line, safe=True))
    out.emit(Let(heap.used.name, Op("add", (heap.used, ONE), INT), out.line))
    then, out.buffer = out.buffer, []
    more = out.temporary(Op("add", (Op("mul", (count, Const(2, INT)), INT), Const(4, INT)), INT), "size")
    end = out.temporary(Op("add", (heap.used, more), INT), "last")
    out.emit(Check(Op("less_equal", (end, heap.capacity), BOOL), out.line, of_capacity=True))
    k = Var(out.fresh("k"), INT)
    out.kinds[k.name] = INT
    moves: Block = [
        Set(store, (Op("add", (heap.used, k), INT),),
            Get(store, (Op("add", (first, k), INT),), Num(store.kind.dtype), safe=True), "", out.line, safe=True)
        for store in heap.stores
    ]
    out.emit(For(k.name, ZERO, count, 1, moves, line=out.line))
    out.emit(Set(heap.firsts, (number,), heap.used, "", out.line, safe=True))
    out.emit(Set(heap.sizes, (number,), more, "", out.line, safe=True))
    out.emit(Let(heap.used.name, end, out.line))
    other, out.buffer = out.buffer, branch
    is_last = Op("equal", (Op("add", (first, size), INT), heap.used), BOOL)
    out.emit(If(is_last, then, other, out.line))
    inside, out.buffer = out.buffer, before
    is_full = Op("equal", (count, Get(heap.sizes, (number,), INT, safe=True)), BOOL)
    out.emit(If(is_full, inside, [], out.line))


# -- both --------------------------------------------------------------------------------------------------------------


def count_of(out: Emitter, lst: ListValue | Ref) -> Var:
    """Return the length of a list."""
    return lst.count if isinstance(lst, ListValue) else loaded(out, lst.heap.counts, lst.number, "count")


def kind_of_items(lst: ListValue | Ref) -> Any:
    """Return the kind of the items of a list."""
    return lst.kind if isinstance(lst, ListValue) else lst.of.kind


def _stores(lst: ListValue | Ref) -> Sequence[tuple[Any, Var, Any]]:
    """Return, for each part of an item, its kind, the array that stores it, and the positions of arrays in it or None.
    """
    if isinstance(lst, ListValue):
        return list(zip(_parts(lst.kind), lst.stores, lst.rows))
    return [(part, store, None) for part, store in zip(_parts(lst.of.kind), lst.heap.stores)]


def _cell(out: Emitter, lst: ListValue | Ref, place: Any) -> Any:
    """Return the position of an item in the arrays that store the list."""
    if isinstance(lst, ListValue):
        return place
    return out.temporary(Op("add", (Get(lst.heap.firsts, (lst.number,), INT, safe=True), place), INT), "cell")


def _with_count(out: Emitter, lst: ListValue | Ref, count: Any) -> None:
    """Change the length of a list."""
    if isinstance(lst, ListValue):
        out.emit(Let(lst.count.name, count, out.line))
    else:
        out.emit(Set(lst.heap.counts, (lst.number,), count, "", out.line, safe=True))


def appended(out: Emitter, lst: ListValue | Ref, value: Any) -> None:
    """Read `append`."""
    _checked(lst, joined_item_kinds(out, kind_of_items(lst), item_kind(out, value)))
    count = count_of(out, lst)
    if isinstance(lst, Ref):
        value = _in_variables(out, value)
        _grown(out, lst, count)
    cell = _cell(out, lst, count)
    if isinstance(lst, ListValue):
        out.emit(Check(Op("less", (count, lst.capacity), BOOL), out.line, of_capacity=True))
    for (_, store, rows), expr in zip(_stores(lst), _leaves(value)):
        expr = out.lifted(expr)
        if rows is None:
            out.emit(Set(store, (cell,), expr, "", out.line, safe=True))
        else:
            assert isinstance(lst, ListValue)
            append_array(out, lst, store, rows, expr)
    _with_count(out, lst, Op("add", (count, ONE), INT))


def repeated(out: Emitter, lst: ListValue | Ref, values: Sequence[Any], times: Any) -> None:
    """Append items repeatedly."""
    held = [_in_variables(out, value) for value in values]
    name = out.fresh("k")
    out.kinds[name] = INT
    before, out.buffer = out.buffer, []
    for value in held:
        appended(out, lst, value)
    body, out.buffer = out.buffer, before
    out.emit(For(name, ZERO, times, 1, body, line=out.line))


def _temporary(out: Emitter, value: Any) -> Any:
    expr = as_expr(value)
    return value if expr is None or isinstance(expr, (Const, Var)) else out.temporary(expr)


def _in_variables(out: Emitter, value: Any) -> Any:
    """Return an item bound to variables while it is stored."""
    if isinstance(value, TupleValue):
        return TupleValue(tuple([_in_variables(out, each) for each in value.items]), value.cls)
    return _temporary(out, value)


def _position(out: Emitter, lst: ListValue | Ref, index: Any) -> Any:
    """Return the position of an item, which may be counted from the end."""
    expr = as_expr(index)
    if expr is None or not is_number(expr) or expr.kind.dtype != "l":
        raise out.refused(f"{kind_name(index)} as an index of a list is not supported")
    count = count_of(out, lst)
    if isinstance(expr, Const):
        place: Any = expr if expr.value >= 0 else Op("sub", (count, Const(-expr.value, INT)), INT)
    else:
        number = expr if isinstance(expr, Var) else out.temporary(expr, "place")
        wrapped = Op("add", (number, count), INT)
        place = Lazy("if", (Op("less", (number, ZERO), BOOL), wrapped, number), INT)
    found = out.temporary(place, "place")
    inside = Lazy("and", (Op("less_equal", (ZERO, found), BOOL), Op("less", (found, count), BOOL)), BOOL)
    out.emit(Check(inside, out.line, of_index=True))
    return found


def item_of_list(out: Emitter, lst: ListValue | Ref, index: Any) -> Any:
    """Return an item."""
    return item_at(out, lst, _position(out, lst, index))


def item_at(out: Emitter, lst: ListValue | Ref, place: Any) -> Any:
    """Return the item at a position that is in range."""
    kind = kind_of_items(lst)
    if kind is None:
        raise out.empty()
    parts: list[Any] = []
    cell = _cell(out, lst, place)
    for part, store, rows in _stores(lst):
        if rows is None:
            parts.append(Get(store, (cell,), INT if isinstance(part, ListOf) else part, safe=True))
        else:
            assert isinstance(lst, ListValue)
            parts.append(array_at(out, lst, store, rows, place))
    return _tree(out, kind, iter(parts))


def set_item(out: Emitter, lst: ListValue | Ref, index: Any, value: Any) -> None:
    """Assign an item."""
    _refuse_moves(out, lst)
    _checked(lst, joined_item_kinds(out, kind_of_items(lst), item_kind(out, value)))
    place = _position(out, lst, index)
    cell = _cell(out, lst, place)
    for (_, store, rows), expr in zip(_stores(lst), _leaves(value)):
        expr = out.lifted(expr)
        if rows is None:
            out.emit(Set(store, (cell,), expr, "", out.line, safe=True))
            continue
        array = expr if isinstance(expr, Var) else out.temporary(expr)
        low, lengths = place_of_array(out, rows, place)
        for axis, length in enumerate(lengths):  # the arrays behind it are not moved
            out.emit(Check(Op("equal", (length, Dim(array, axis)), BOOL), out.line))
        assert isinstance(lst, ListValue)
        store_array(out, lst, store, low, out.temporary(Op("add", (low, product(lengths)), INT), "high"), array)


def _refuse_moves(out: Emitter, lst: ListValue | Ref) -> None:
    """Refuse to replace or remove arrays that are written to, since names may still refer to them."""
    if isinstance(lst, ListValue) and lst.has_views:
        raise out.refused("writing to an array in a list from which arrays are removed or replaced is not supported")


def popped(out: Emitter, lst: ListValue | Ref) -> Any:
    """Read `pop` of the last item."""
    _refuse_moves(out, lst)
    count = count_of(out, lst)
    out.emit(Check(Op("less", (ZERO, count), BOOL), out.line, of_index=True))
    _with_count(out, lst, Op("sub", (count, ONE), INT))
    return _in_variables(out, item_at(out, lst, count if isinstance(lst, ListValue) else Op("sub", (count, ONE), INT)))


def cleared(out: Emitter, lst: ListValue | Ref) -> None:
    """Read `clear`."""
    _refuse_moves(out, lst)
    _with_count(out, lst, ZERO)


# -- arrays of lists ---------------------------------------------------------------------------------------------------


def vector_of(out: Emitter, lst: ListValue | Ref) -> Any:
    """Return a view of the items of a list of numbers, or None for other lists."""
    stores = _stores(lst)
    if len(stores) != 1 or not isinstance(stores[0][0], Num) or isinstance(kind_of_items(lst), tuple):
        return None
    if isinstance(lst, ListValue):
        return get(stores[0][1], (Slice(None, lst.count),))
    first = loaded(out, lst.heap.firsts, lst.number, "first")
    last = out.temporary(Op("add", (first, count_of(out, lst)), INT), "last")
    return get(stores[0][1], (Slice(first, last),))


def arrays_of_list(out: Emitter, lst: ListValue | Ref) -> tuple[Var, ...]:
    """Return new arrays of the items of a list, one for each part of an item."""
    kind = kind_of_items(lst)
    if kind is None:
        raise out.empty()
    if not isinstance(kind, tuple):
        if not isinstance(kind, Num):
            return (array_of_list(out, lst),)
        views = [vector_of(out, lst)]
    elif not all(isinstance(part, Num) for part in kind):
        raise out.refused("returning a list of tuples of values other than numbers is not supported")
    elif isinstance(lst, ListValue):
        views = [get(store, (Slice(None, lst.count),)) for store in lst.stores]
    else:
        first = loaded(out, lst.heap.firsts, lst.number, "first")
        last = out.temporary(Op("add", (first, count_of(out, lst)), INT), "last")
        views = [get(store, (Slice(first, last),)) for store in lst.heap.stores]
    return tuple([out.temporary(Call("copy", (view,), (), view.kind), "listed") for view in views])


def array_of_list(out: Emitter, lst: ListValue | Ref) -> Any:
    """Return a new array of the items."""
    kind = kind_of_items(lst)
    if isinstance(kind, ListOf):
        return _array_of_lists(out, lst)
    if isinstance(lst, Ref):
        view = vector_of(out, lst)
        if view is None:
            raise out.refused("an array of a list of tuples in a list is not supported")
        if view.kind.dtype != "d":  # an empty array would have a different dtype
            out.emit(Check(Op("less", (ZERO, count_of(out, lst)), BOOL), out.line))
        return out.temporary(Call("copy", (view,), (), view.kind), "listed")
    arrays = []
    for part, store, rows in _stores(lst):
        if isinstance(part, Row) or part.dtype != "d" or isinstance(lst.kind, tuple):
            # An empty array has a different dtype or shape.
            out.emit(Check(Op("less", (ZERO, lst.count), BOOL), out.line))
        if rows is None:
            view = get(store, (Slice(None, lst.count),))
        else:
            if isinstance(lst.kind, tuple):
                raise out.refused("an array of tuples of arrays is not supported")
            view = stacked(out, lst, store, rows)
        arrays.append(out.temporary(Call("copy", (view,), (), view.kind), "listed"))
    if isinstance(lst.kind, tuple):
        return pure(out, "stack", [TupleValue(tuple(arrays))], {"axis": Static(-1)})
    return arrays[0]


def _array_of_lists(out: Emitter, lst: ListValue | Ref) -> Any:
    """Return a new matrix whose rows are lists of numbers of equal length."""
    kind = kind_of_items(lst).kind
    if not isinstance(kind, Num):
        raise out.refused("an array of lists of something other than numbers is not supported")
    rows = count_of(out, lst)
    out.emit(Check(Op("less", (ZERO, rows), BOOL), out.line))
    columns = count_of(out, item_at(out, lst, ZERO))
    out.emit(Check(Op("less", (ZERO, columns), BOOL), out.line))
    empty = Call("empty", ((rows, columns),), dtype_option(kind.dtype), Arr(kind.dtype, 2))
    found = out.temporary(empty, "listed")
    i, j = [Var(out.fresh("k"), INT) for _ in range(2)]
    out.kinds[i.name] = out.kinds[j.name] = INT
    before, out.buffer = out.buffer, []
    row = item_at(out, lst, i)
    out.emit(Check(Op("equal", (count_of(out, row), columns), BOOL), out.line))
    outer, out.buffer = out.buffer, []
    value = item_at(out, row, j)
    out.emit(Set(found, (i, j), value, "", out.line))
    inner, out.buffer = out.buffer, before
    out.emit(For(i.name, ZERO, rows, 1, [*outer, For(j.name, ZERO, columns, 1, inner, line=out.line)], line=out.line))
    return found
