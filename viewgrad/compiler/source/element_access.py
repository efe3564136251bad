"""Elementwise access to arrays and their parts: the lengths of an elementwise expression, and its element at given
indices.

Views are replaced by the underlying arrays, with the indices composed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from . import ir
from .dependence import affine
from .scalar_forms import has_scalar_form
from .value_types import BOOL, DTYPES, INT, Arr, Num

ONE: Final = ir.Const(1, INT)
ZERO: Final = ir.Const(0, INT)


class NotLowered(Exception):
    """Raised if an operation cannot be expressed elementwise here."""


@attrs.frozen(eq=False)
class Part:
    """A part of an array, or of a view, accessed by element.

    Attributes:
        name: the array.
        key: the identity of the part: equal keys mean the same elements at the same indices.
        extents: the lengths; `ONE` for an axis that was added.
        at: a function from indices to the element.
        dtype: the dtype of its elements.
    """

    name: str
    key: Any
    extents: list[Any]
    at: Callable[[Sequence[Any]], Any]
    dtype: str


class ElementAccess:
    """Accesses arrays by element inside a loop, and emits the statements that this requires.

    Arguments:
        block: the program.
        position: the position of the loop in the block.
        kinds: the kinds of the variables; new variables are added.
        fresh: a function that returns an unused name.

    Attributes:
        loop: the loop.
        earlier, later: the statements before and after the loop.
        bound_inside: the variables that the loop binds.
        out: the statements that replace the current one.
        views: the views that are replaced.
        in_place: the arrays that are written to instead of rebound.
    """

    def __init__(
        self, block: ir.Block, position: int, kinds: dict[str, Any], fresh: Callable[[str], str]
    ) -> None:
        self.kinds = kinds
        self.fresh = fresh
        self.loop = block[position]
        self.earlier, self.later = block[:position], block[position + 1 :]
        self.bound_inside = ir.bound_in([self.loop])
        self.out: ir.Block = []
        self.views: dict[str, Part] = {}
        self.in_place: set[str] = set()

    # -- parts of arrays -----------------------------------------------------------------------------------------------

    def part(self, expr: Any) -> Part:
        """Return an array or a part of it for access by element."""
        if isinstance(expr, ir.Var):
            if expr.name in self.views:
                return self.views[expr.name]
            if expr.kind.dtype not in DTYPES:
                raise NotLowered
            if expr.name in self.bound_inside and expr.name not in self.in_place and not any(
                expr.name in ir.assigned(stmt) for stmt in self.earlier
            ):
                raise NotLowered
            lengths: list[Any] = [ir.Dim(expr, axis) for axis in range(expr.kind.ndim)]
            return Part(expr.name, expr.name, lengths, lambda at: ir.Get(expr, tuple(at), Num(expr.kind.dtype)),
                        expr.kind.dtype)
        base = self.part(expr.base)
        makers: list[Callable[[Sequence[Any]], Any]] = []
        extents: list[Any] = []
        keys: list[Any] = []
        axis = 0
        for each in expr.index:
            if each is ir.NEW:
                extents.append(ONE)
                keys.append("new")
                continue
            length = base.extents[axis]
            axis += 1
            kind = getattr(each, "kind", None)
            if isinstance(each, ir.Slice):
                place, extent = self.sliced(each, length)
                number = len(extents)
                extents.append(extent)
                makers.append(_of_axis(place, number))
                keys.append(repr(each))
            elif isinstance(kind, Arr):
                if kind != Arr("l", 1) or any(isinstance(getattr(item, "kind", None), Arr) and item is not each
                                              for item in expr.index):
                    raise NotLowered
                index = self.part(each)
                number = len(extents)
                extents.append(index.extents[0])
                makers.append(_of_axis(lambda one, index=index: index.at([one]), number))  # type: ignore[misc]
                keys.append(("gather", self.fresh("key")))  # an index array may select an element twice
            else:
                fixed = self.number(each)
                makers.append(_always(fixed))
                keys.append(repr(fixed))
        key = base.key if all(each == repr(ir.FULL) for each in keys) else (base.key, tuple(keys))
        return Part(base.name, key, extents, lambda at: base.at([make(at) for make in makers]), base.dtype)

    def sliced(self, each: ir.Slice, length: Any) -> tuple[Callable[[Any], Any], Any]:
        """Return a function from positions in a slice to indices, and the length of the slice."""
        if each == ir.FULL:
            return (lambda at: at), length
        if each.step is not None and not isinstance(each.step, ir.Const):
            raise NotLowered
        step = 1 if each.step is None else each.step.value
        if step == -1 and each.low is None and each.high is None:
            return (lambda at: _sub(_sub(length, ONE), at)), length
        if step < 1:
            raise NotLowered
        low = ZERO if each.low is None else self.bound(each.low, length)
        high = length if each.high is None else self.bound(each.high, length)
        extent = _sub(high, low)
        if step == 1:
            return (lambda at: _add(at, low)), extent
        size = ir.Const(step, INT)
        extent = ir.Op("floor_divide", (_add(extent, ir.Const(step - 1, INT)), size), INT)
        return (lambda at: _add(ir.Op("mul", (at, size), INT), low)), extent

    def bound(self, expr: Any, length: Any) -> Any:
        """Return a bound of a slice, clipped to the range."""
        expr = self.number(expr)
        if isinstance(expr, ir.Const) and expr.value < 0:
            expr = _sub(length, ir.Const(-expr.value, INT))
            self.out.append(ir.Check(ir.Op("less_equal", (ZERO, expr), BOOL)))
            return expr
        if not isinstance(expr, ir.Const):
            self.out.append(ir.Check(ir.Op("less_equal", (ZERO, expr), BOOL)))
        if expr != ZERO:
            self.out.append(ir.Check(ir.Op("less_equal", (expr, length), BOOL)))
        return expr

    # -- elementwise expressions ---------------------------------------------------------------------------------------

    def number(self, expr: Any) -> Any:
        """Return a number with elements of views replaced."""

        def change(node: Any) -> Any:
            if isinstance(node, ir.Get):
                if not isinstance(node.kind, Num):
                    raise NotLowered
                return self.part(node).at([])
            if isinstance(node, ir.Dim) and node.base.name in self.views:
                return self.views[node.base.name].extents[node.axis]
            if isinstance(node, ir.Call):
                raise NotLowered
            return node

        if any(isinstance(node, ir.Op) and isinstance(node.kind, Arr) for node in ir.nodes(expr)):
            raise NotLowered
        return _mapped_outermost(expr, change)

    def leaves(self, expr: Any) -> list[Any]:
        """Return the arrays and parts of arrays in an elementwise expression."""
        if isinstance(expr, (ir.Var, ir.Get)):
            return [expr] if isinstance(expr.kind, Arr) else []
        return [leaf for child in ir.children(expr) for leaf in self.leaves(child)]

    def extents(self, expr: Any) -> list[Any]:
        """Return the lengths of an elementwise expression."""
        if isinstance(expr, (ir.Var, ir.Get)):
            return list(self.part(expr).extents) if isinstance(expr.kind, Arr) else []
        if isinstance(expr, ir.Op):
            found: list[Any] = []
            for arg in expr.args:
                found = self.broadcast(found, self.extents(arg))
            return found
        if isinstance(expr, (ir.Const, ir.Dim, ir.Lazy)):
            return []
        raise NotLowered

    def broadcast(self, a: list[Any], b: list[Any]) -> list[Any]:
        if len(a) < len(b):
            a, b = b, a
        found = list(a)
        for axis in range(1, len(b) + 1):
            if found[-axis] == ONE:
                found[-axis] = b[-axis]
            elif b[-axis] != ONE:
                self.require(found[-axis], b[-axis])
        return found

    def match(self, target: list[Any], given: list[Any]) -> None:
        """Check that a written value has the shape of its target or broadcasts to it."""
        for axis in range(1, len(given) + 1):
            if given[-axis] != ONE:
                self.require(target[-axis], given[-axis])

    def require(self, a: Any, b: Any) -> None:
        if a != b:
            self.out.append(ir.Check(ir.Op("equal", (a, b), BOOL)))

    def with_numbers(self, expr: Any) -> Any:
        """Return the expression with computed numbers moved to variables, so that they are computed once."""
        if ir.is_number(expr):
            return self.once(expr)
        if isinstance(expr, ir.Op):
            return attrs.evolve(expr, args=tuple([self.with_numbers(arg) for arg in expr.args]))
        return expr

    def once(self, expr: Any) -> Any:
        expr = self.number(expr)
        if isinstance(expr, (ir.Const, ir.Var, ir.Dim)):
            return expr
        name = self.fresh("c")
        self.kinds[name] = expr.kind
        self.out.append(ir.Let(name, expr, self.loop.line))
        return ir.Var(name, expr.kind)

    def element(self, expr: Any, at: Sequence[Any]) -> Any:
        """Return the element of an elementwise expression at given indices."""
        if ir.is_number(expr):
            return expr
        if isinstance(expr, (ir.Var, ir.Get)):
            part = self.part(expr)
            rest = list(at)[len(at) - len(part.extents) :]
            return part.at([ZERO if extent == ONE else each for each, extent in zip(rest, part.extents)])
        if isinstance(expr, ir.Op):
            args = tuple([self.element(arg, at) for arg in expr.args])
            if not has_scalar_form(expr.name, "".join(arg.kind.dtype for arg in args)):
                raise NotLowered
            return ir.Op(expr.name, args, Num(expr.kind.dtype))
        raise NotLowered


def _of_axis(place: Callable[[Any], Any], number: int) -> Callable[[Sequence[Any]], Any]:
    """Return a function from an index of the loop nest to an index along one axis."""
    return lambda at: place(at[number])


def _always(expr: Any) -> Callable[[Sequence[Any]], Any]:
    """Return a function from an index of the loop nest to a constant index."""
    return lambda at: expr


def _mapped_outermost(expr: Any, change: Callable[[Any], Any]) -> Any:
    """Return the expression with elements of arrays replaced as a whole."""
    if isinstance(expr, (ir.Get, ir.Dim, ir.Call)):
        return change(expr)
    if isinstance(expr, (ir.Op, ir.Lazy)):
        return attrs.evolve(expr, args=tuple([_mapped_outermost(arg, change) for arg in expr.args]))
    return expr


def _add(a: Any, b: Any) -> Any:
    if b == ZERO:
        return a
    return b if a == ZERO else ir.Op("add", (a, b), INT)


def _sub(a: Any, b: Any) -> Any:
    found = a if b == ZERO else ir.Op("sub", (a, b), INT)
    known = affine(found, lambda name: True)
    if known is not None and set(known) <= {""}:
        return ir.Const(known.get("", 0), INT)
    return found
