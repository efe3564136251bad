"""Iteration by a counter: over ranges, arrays, `zip`, `enumerate` and `reversed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..emitter import Emitter
from ..ir import Check, Const, Dim, Get, Lazy, Op, Var, is_number
from ..value_types import BOOL, INT
from ..values import (
    DictItems,
    HashedSet,
    ListValue,
    RecordValue,
    Ref,
    Static,
    TupleValue,
    as_expr,
    is_hashed,
    kind_name,
)
from .arrays import assembled
from .attributes import as_variable
from .indexing import indexed
from .lists import count_of, item_at
from .operators import arithmetic


@attrs.frozen(eq=False)
class Iteration:
    """A sequence that is iterated over by a counter.

    Attributes:
        low, high, step: the bounds and step of the counter, as for `range`.
        item: a function from the counter to the item.
        is_range: whether the item is the counter itself.
        count: the number of items.
        lists: the length variables of the lists being iterated over, which must not grow meanwhile.
        checks: conditions that must be true after each iteration.
    """

    low: Any
    high: Any
    step: int
    item: Callable[[Any], Any]
    count: Any
    is_range: bool = False
    lists: frozenset[str] = frozenset()
    checks: tuple[Any, ...] = ()


def range_of(out: Emitter, args: Sequence[Any]) -> Iteration:
    """Return the iterable of `range`."""
    exprs = [as_expr(arg) for arg in args]
    if any(expr is None or not is_number(expr) or expr.kind.dtype != "l" for expr in exprs) or not exprs:
        raise out.refused("a range of something other than integers is not supported")
    low, high = (Const(0, INT), exprs[0]) if len(exprs) == 1 else exprs[:2]
    step = exprs[2] if len(exprs) > 2 else Const(1, INT)
    if not isinstance(step, Const):
        return _range_by_step(out, low, high, step)
    if step.value == 0:
        raise out.refused("a range without a step is not supported")
    size = abs(step.value)
    span = Op("sub", (high, low) if step.value > 0 else (low, high), INT)
    if isinstance(low, Const) and low.value == 0 and step.value > 0:
        span = high
    up = Op("add", (span, Const(size - 1, INT)), INT)
    count = span if size == 1 else Op("floor_divide", (up, Const(size, INT)), INT)
    return Iteration(low, high, step.value, lambda k: k, count, is_range=True)


def _range_by_step(out: Emitter, low: Any, high: Any, step: Any) -> Iteration:
    """Return the iterable of a range with a computed step, which must be positive."""
    given = (low, high, step)
    low, high, step = [each if isinstance(each, (Const, Var)) else out.temporary(each, "n") for each in given]
    out.emit(Check(Op("less", (Const(0, INT), step), BOOL), out.line))
    span = Op("add", (Op("sub", (high, low), INT), Op("sub", (step, Const(1, INT)), INT)), INT)
    count = out.temporary(Op("floor_divide", (span, step), INT), "n")

    def item_of(k: Any) -> Any:
        return Op("add", (low, Op("mul", (k, step), INT)), INT)

    return Iteration(Const(0, INT), count, 1, item_of, count)


def sequence_of(out: Emitter, value: Any) -> Any:
    """Return the iterable of an array or a known sequence."""
    if isinstance(value, TupleValue):
        return value
    if isinstance(value, RecordValue) and value.cls is dict:
        return TupleValue(tuple([Static(key) for key in value.fields]))
    if isinstance(value, Static) and isinstance(value.value, (tuple, list, str, range)):
        if len(value.value) > 64:
            raise out.refused("a loop over more than 64 constant values is not supported")
        return TupleValue(tuple([Static(each) for each in value.value]))
    if is_hashed(value) and value.cls is HashedSet:
        raise out.refused("iterating over a set, whose order is unknown, is not supported")
    if is_hashed(value):
        return _over_dict(out, value.fields["keys"], None)
    if isinstance(value, DictItems):
        return _over_dict(out, value.keys, value.values)
    if isinstance(value, ListValue):
        return Iteration(Const(0, INT), value.count, 1, lambda k: item_at(out, value, k), value.count,
                         lists=frozenset((value.count.name,)))
    if isinstance(value, Ref):
        held = attrs.evolve(value, number=value.number if isinstance(value.number, Const) else out.temporary(
            value.number, "number"))
        count = count_of(out, held)
        same = Op("equal", (Get(held.heap.counts, (held.number,), INT, safe=True), count), BOOL)
        return Iteration(Const(0, INT), count, 1, lambda k: item_at(out, held, k), count, checks=(same,))
    expr = as_expr(value)
    if expr is None or is_number(expr):
        raise out.refused(f"a loop over {kind_name(value)} is not supported")
    base = as_variable(out, expr)
    length = Dim(base, 0)
    return Iteration(Const(0, INT), length, 1, lambda k: indexed(out, base, [k]), length)


def _over_dict(out: Emitter, keys: Any, values: Any) -> Iteration:
    """Return the iterable of the keys or items of a dict, whose number must not change meanwhile."""
    if isinstance(keys, TupleValue) or isinstance(values, TupleValue):
        raise out.empty()
    if isinstance(keys, Ref) and not isinstance(keys.number, Const):
        keys = attrs.evolve(keys, number=out.temporary(keys.number, "number"))
    if isinstance(values, Ref) and not isinstance(values.number, Const):
        values = attrs.evolve(values, number=out.temporary(values.number, "number"))
    now: Any = keys.count if isinstance(keys, ListValue) else Get(keys.heap.counts, (keys.number,), INT, safe=True)
    count = out.temporary(now, "n")

    def item_of(k: Any) -> Any:
        key = item_at(out, keys, k)
        return key if values is None else TupleValue((key, item_at(out, values, k)))

    return Iteration(Const(0, INT), count, 1, item_of, count, checks=(Op("equal", (now, count), BOOL),))


def _counted_item(part: Iteration) -> Callable[[Any], Any]:
    """Return item number k, counted from 0."""
    if part.step == 1 and part.low == Const(0, INT):
        return part.item

    def found(k: Any) -> Any:
        moved = k if part.step == 1 else Op("mul", (k, Const(part.step, INT)), INT)
        return part.item(moved if part.low == Const(0, INT) else Op("add", (part.low, moved), INT))

    return found


def zipped(out: Emitter, parts: Sequence[Any], is_strict: bool = False) -> Any:
    """Return the iterable of `zip`."""
    if all(isinstance(part, TupleValue) for part in parts):
        if is_strict and len({len(part.items) for part in parts}) > 1:
            raise out.refused("zip of several lengths is not supported")
        return TupleValue(tuple([TupleValue(items) for items in zip(*[part.items for part in parts])]))
    parts = [sequence_of(out, assembled(out, TupleValue(part.items), None)) if isinstance(part, TupleValue) else part
             for part in parts]
    count = parts[0].count
    for part in parts[1:]:
        if part.count != count:
            one, other = [each if isinstance(each, (Const, Var)) else out.temporary(each, "n")
                          for each in (count, part.count)]
            if is_strict:
                out.emit(Check(Op("equal", (one, other), BOOL), out.line))
            count = out.temporary(Lazy("if", (Op("less", (one, other), BOOL), one, other), INT), "n")
    items = [_counted_item(part) for part in parts]
    lists = frozenset().union(*[part.lists for part in parts])
    checks = tuple([check for part in parts for check in part.checks])

    def item_of(k: Any) -> Any:
        return TupleValue(tuple([each(k) for each in items]))

    return Iteration(Const(0, INT), count, 1, item_of, count, lists=lists, checks=checks)


def enumerated(out: Emitter, part: Any, start: Any) -> Any:
    """Return the iterable of `enumerate`."""
    if isinstance(part, TupleValue):
        numbers = [arithmetic(out, "add", start, Static(n)) for n in range(len(part.items))]
        return TupleValue(tuple(map(TupleValue, zip(numbers, part.items))))
    each = _counted_item(part)

    def item_of(k: Any) -> Any:
        number = k if isinstance(start, Static) and start.value == 0 else arithmetic(out, "add", k, start)
        return TupleValue((number, each(k)))

    return Iteration(Const(0, INT), part.count, 1, item_of, part.count, lists=part.lists, checks=part.checks)


def reversed_sequence(out: Emitter, part: Any) -> Any:
    """Return the iterable of `reversed`."""
    if isinstance(part, TupleValue):
        return TupleValue(part.items[::-1], part.cls)
    if part.is_range and part.step == 1:
        one = Const(1, INT)
        low, high = Op("sub", (part.high, one), INT), Op("sub", (part.low, one), INT)
        return Iteration(low, high, -1, part.item, part.count, is_range=True)
    if part.step == 1 and part.low == Const(0, INT):
        one = Const(1, INT)
        return Iteration(Op("sub", (part.high, one), INT), Const(-1, INT), -1, part.item, part.count, lists=part.lists,
                         checks=part.checks)
    raise out.refused("reversed() of this object is not supported")
