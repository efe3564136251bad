"""Indices and slices: parts of arrays, items of tuples and dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..emitter import Emitter
from ..ir import FULL, NEW, Const, Dim, Get, Lazy, Op, Slice, Var, get, is_number
from ..objects import Fields
from ..value_types import BOOL, INT, Arr
from ..values import (
    Cell,
    ListValue,
    RecordValue,
    Ref,
    Reread,
    Static,
    TupleValue,
    as_expr,
    is_listed,
    is_plain,
    kind_name,
)
from .arrays import assembled
from .lists import array_of_list, item_kind, item_of_list, joined_item_kinds


def sliced(out: Emitter, parts: Sequence[Any]) -> Slice:
    """Read a slice of an index."""
    found: list[Any] = []
    for part in parts:
        if part is None or (isinstance(part, Static) and part.value is None):
            found.append(None)
            continue
        expr = as_expr(part)
        if expr is None or not is_number(expr) or expr.kind.dtype != "l":
            raise out.refused("a slice of something other than integers is not supported")
        found.append(expr)
    return Slice(*found)


def indexed(out: Emitter, base: Any, items: Sequence[Any]) -> Any:
    """Return a part of an array.

    Arguments:
        base: an expression that is an array.
        items: the items of the index: slices, expressions, known objects.
    """
    made = [_index_item(out, each) for each in _filled(out, base, items)]
    if isinstance(base, Get) and base.is_view:
        composed = _composed(base, made)
        if composed is not None:
            return get(base.base, _counted(base.base, composed))
    if not isinstance(base, Var):
        base = out.temporary(base, "part")
    return get(base, _counted(base, made))


def _filled(out: Emitter, base: Any, items: Sequence[Any]) -> list[Any]:
    """Return the items of an index, with full slices for omitted axes."""
    taken = 0
    for each in items:
        if isinstance(each, Static) and (each.value is None or each.value is Ellipsis):
            continue
        expr = None if isinstance(each, Slice) else as_expr(each)
        is_mask = expr is not None and expr.kind.ndim and expr.kind.dtype == "?"
        taken += expr.kind.ndim if expr is not None and is_mask else 1
    if taken > base.kind.ndim:
        raise out.refused(f"an index of {taken} items for an array of {base.kind.ndim} dimensions is not supported")
    dots = [n for n, each in enumerate(items) if isinstance(each, Static) and each.value is Ellipsis]
    if len(dots) > 1:
        raise out.refused("two ellipses in an index are not supported")
    fill = [FULL] * (base.kind.ndim - taken)
    return [*items[: dots[0]], *fill, *items[dots[0] + 1 :]] if dots else [*items, *fill]


def _index_item(out: Emitter, each: Any) -> Any:
    """Read an item of an index."""
    if isinstance(each, Static) and each.value is None:
        return NEW
    if isinstance(each, Slice):
        return each
    if isinstance(each, Static) and isinstance(each.value, slice):
        return sliced(out, [None if part is None else Static(part) for part in (
            each.value.start, each.value.stop, each.value.step)])
    if isinstance(each, (ListValue, Ref)):
        return array_of_list(out, each)
    expr = as_expr(each)
    if expr is None and isinstance(each, TupleValue) and each.cls is list and all(
        isinstance(as_expr(item), (Const, Var, Op)) for item in each.items
    ):
        expr = assembled(out, each, None)
    if expr is None:
        raise out.refused(f"{kind_name(each)} as an index is not supported")
    if isinstance(expr, Const) and type(expr.value) is not int:
        raise out.refused(f"{expr.value!r} as an index is not supported")
    if expr.kind.dtype not in ("l" if is_number(expr) else "?l"):
        raise out.refused(f"{kind_name(expr)} as an index is not supported")
    return out.lifted(expr) if is_number(expr) or isinstance(expr, Var) else out.temporary(expr, "index")


def _counted(base: Var, items: Sequence[Any]) -> tuple[Any, ...]:
    """Return the index with known negative numbers converted to count from the start."""
    found = []
    axis = 0
    for each in items:
        if isinstance(each, Const) and each.value < 0:
            each = Op("add", (Dim(base, axis), each), INT)
        elif isinstance(each, Op) and _counts_from_end(each):
            inside = Op("less_equal", (Const(0, INT), each), BOOL)
            each = Lazy("if", (inside, each, Op("add", (Dim(base, axis), each), INT)), INT)
        found.append(each)
        if each is not NEW:
            kind = getattr(each, "kind", None)
            axis += kind.ndim if isinstance(kind, Arr) and kind.dtype == "?" else 1
    return tuple(found)


def _counts_from_end(expr: Any) -> bool:
    """Return whether an index is written as a negative number: `-k`, `-1 - k`."""
    if isinstance(expr, Op) and expr.name in ("add", "sub") and is_number(expr):
        return _counts_from_end(expr.args[0])
    is_negative = isinstance(expr, Const) and type(expr.value) is int and expr.value < 0
    return is_negative or (isinstance(expr, Op) and expr.name == "neg" and is_number(expr))


def _composed(view: Get, items: Sequence[Any]) -> list[Any] | None:
    """Return the index, in the base array, of a part of a view, or None if it is not simple."""
    if any(each is NEW for each in (*items, *view.index)):
        return None
    rest = list(items)
    found = []
    for each in view.index:
        if each == FULL:
            found.append(rest.pop(0))
        elif isinstance(each, Slice):
            nxt = rest.pop(0)
            if nxt != FULL:
                return None
            found.append(each)
        else:
            found.append(each)
    return None if rest or any(isinstance(getattr(each, "kind", None), Arr) for each in found) else found


def item(out: Emitter, base: Any, items: Sequence[Any], node: Any) -> Any:
    """Return the value of a subscript."""
    if isinstance(base, Static):
        if len(items) == 1 and isinstance(items[0], Static):
            if not is_plain(items[0].value) or not (is_plain(base.value) or type(base.value) in (tuple, list, dict)):
                raise out.refused(f"an item of {kind_name(base)} is not supported", node)
            try:
                return Static(base.value[items[0].value])
            except Exception as error:
                raise out.refused(f"{type(error).__name__}: {error}", node) from None
        raise out.refused(f"an item of {kind_name(base)} is not supported", node)
    if isinstance(base, RecordValue):
        is_known = len(items) == 1 and isinstance(items[0], Static) and items[0].value in base.fields
        if is_known and base.cls in (dict, Fields):
            return base.fields[items[0].value]
        raise out.refused("a key that is not constant is not supported", node)
    if isinstance(base, (ListValue, Ref)):
        if len(items) != 1 or isinstance(items[0], Slice):
            raise out.refused("a slice of a list of unknown length is not supported", node)
        return item_of_list(out, base, items[0])
    if isinstance(base, TupleValue):
        return _item_of_tuple(out, base, items, node)
    if isinstance(base, Cell):
        if not all(isinstance(each, Static) and each.value is Ellipsis for each in items) or len(items) > 1:
            raise out.refused("an index of a 0-d array is not supported", node)
        return base if items else out.temporary(base.element)
    expr = as_expr(base)
    if expr is None or is_number(expr):
        raise out.refused(f"an item of {kind_name(base)} is not supported", node)
    return indexed(out, expr, items)


def _item_of_tuple(out: Emitter, base: TupleValue, items: Sequence[Any], node: Any) -> Any:
    """Return an item or a slice of a tuple or list of known length."""
    if len(items) == 1 and isinstance(items[0], Static) and type(items[0].value) is int:
        try:
            return base.items[items[0].value]
        except IndexError:
            raise out.refused("a constant index that is out of range is not supported", node) from None
    if len(items) == 1 and isinstance(items[0], Slice):
        parts = [items[0].low, items[0].high, items[0].step]
        if all(part is None or isinstance(part, Const) for part in parts):
            return TupleValue(base.items[slice(*[None if part is None else part.value for part in parts])], base.cls)
    if len(items) == 1 and base.site is not None and base.items and all(map(is_listed, base.items)):
        raise Reread(base.site, item_kind(out, base.items[0]))
    if base.site is not None and not base.items:
        raise out.empty(node)
    numbers = [as_expr(each) for each in base.items]
    if len(items) == 1 and all(each is not None and is_number(each) for each in numbers) and numbers:
        return indexed(out, assembled(out, TupleValue(base.items), None), items)
    if len(items) == 1 and base.site is not None and all(each is not None and not is_number(each) for each in numbers):
        kind = None
        for each in base.items:
            kind = joined_item_kinds(out, kind, item_kind(out, each))
        raise Reread(base.site, kind)
    raise out.refused("an item of a list by an index that is not constant is not supported", node)
