"""Operations on arrays inside of loops, as loops over elements, so that a kernel can run them.

Views are replaced by the arrays that they are views of, with the indices composed. An array that is rebound in each
iteration becomes one array that is written to, if nothing else refers to it. A loop in which an operation has no such
form is left unchanged, and runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from . import ir
from .aliases import base_of, roots_of
from .dependence import Affine, affine, combined, has_solution
from .formulas import has_scalar_form
from .kinds import BOOL, DTYPES, FLOAT, INT, Arr, Num
from .outer_products import with_outer_products

ONE: Final = ir.Const(1, INT)
ZERO: Final = ir.Const(0, INT)


class NotLowered(Exception):
    """An operation has no form over elements here."""


@attrs.frozen(eq=False)
class Part:
    """A part of an array, or of a view, by element.

    Attributes:
        name: the array.
        key: identifies the part: equal keys mean the same elements at the same indices.
        extents: its lengths; `ONE` for an axis that was added.
        at: a function from indices to the element.
        dtype: the dtype of its elements.
    """

    name: str
    key: Any
    extents: list[Any]
    at: Callable[[Sequence[Any]], Any]
    dtype: str


def scalarized(block: ir.Block, kinds: dict[str, Any], inputs: Sequence[str], fresh: Callable[[str], str]) -> ir.Block:
    """Return the program with its loops lowered, as far as they can be.

    Arguments:
        block: the program.
        kinds: the kinds of the variables; those of new variables are added.
        inputs: the inputs.
        fresh: gives a name that is not used yet.
    """
    found: ir.Block = []
    for number, stmt in enumerate(block):
        if isinstance(stmt, (ir.For, ir.While)) and _has_arrays(stmt):
            (lowerable,) = with_outer_products([stmt])
            current = [*found, lowerable, *block[number + 1 :]]
            before = dict(kinds)
            try:
                lowering = _Lowering(current, len(found), kinds, inputs, fresh)
                new = lowering.statement(lowerable)
            except NotLowered:
                kinds.clear()
                kinds.update(before)
                found.append(stmt)
                continue
            found = lowering.with_copies(found)
            found += [*lowering.before, *new]
        else:
            found.append(stmt)
    return found


def _has_arrays(loop: Any) -> bool:
    for stmt in ir.statements([loop]):
        if isinstance(stmt, ir.Set) and any(isinstance(each, ir.Slice) or isinstance(getattr(each, "kind", None), Arr)
                                         for each in stmt.index):
            return True
        if any(isinstance(getattr(node, "kind", None), Arr) and not isinstance(node, ir.Var)
               for expr in ir.expressions_of(stmt) for node in ir.nodes(expr)):
            return True
        if any(isinstance(node, ir.Call) for expr in ir.expressions_of(stmt) for node in ir.nodes(expr)):
            return True
        if isinstance(stmt, ir.Let) and isinstance(stmt.value.kind, Arr):
            return True
    return False


class _Lowering:
    """Lowers a loop.

    Arguments:
        block: the program.
        place: the position of the loop in it.
        kinds, inputs, fresh: as for `scalarized`.
    """

    def __init__(
        self, block: ir.Block, place: int, kinds: dict[str, Any], inputs: Sequence[str], fresh: Callable[[str], str]
    ) -> None:
        self.kinds = kinds
        self.fresh = fresh
        self.inputs = set(inputs)
        self.loop = block[place]
        self.earlier, self.later = block[:place], block[place + 1 :]
        self.roots = roots_of(block)
        self.before: ir.Block = []
        self.out: ir.Block = []
        self.views: dict[str, Part] = {}
        self.ready: set[str] = set()  # arrays that are written to instead of rebound
        self.copied: set[str] = set()
        self.bound_inside = {name for stmt in ir.statements([self.loop]) for name in ir.assigned(stmt)}
        self.lets: dict[str, list[Any]] = {}
        for stmt in ir.statements(block):
            for name in ir.assigned(stmt):
                self.lets.setdefault(name, []).append(stmt)
        self.counters = {stmt.name for stmt in ir.statements([self.loop]) if isinstance(stmt, ir.For)}

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, stmts: ir.Block) -> ir.Block:
        found: ir.Block = []
        checked: list[Any] = []  # the conditions that have been checked, and that nothing has changed since
        for stmt in stmts:
            for new in self.statement(stmt):
                if isinstance(new, ir.Check):
                    if new.test in checked:
                        continue
                    checked.append(new.test)
                else:
                    names = {name for each in ir.statements([new]) for name in ir.assigned(each)}
                    checked = [test for test in checked if names.isdisjoint(_names_in(test))]
                found.append(new)
        return found

    def statement(self, stmt: Any) -> ir.Block:
        """Return the statements in the place of one."""
        before, self.out = self.out, []
        try:
            if isinstance(stmt, ir.For):
                low, high = self.number(stmt.low), self.number(stmt.high)
                self.out.append(attrs.evolve(stmt, low=low, high=high, body=self.block(stmt.body)))
            elif isinstance(stmt, ir.While):
                test = self.number(stmt.test)
                self.out.append(attrs.evolve(stmt, test=test, body=self.block(stmt.body)))
            elif isinstance(stmt, ir.If):
                test = self.number(stmt.test)
                self.out.append(ir.If(test, self.block(stmt.then), self.block(stmt.other), stmt.line))
            elif isinstance(stmt, ir.Check):
                self.out.append(attrs.evolve(stmt, test=self.number(stmt.test)))
            elif isinstance(stmt, ir.Set):
                self.write(stmt)
            elif isinstance(stmt, ir.Let):
                self.let(stmt)
            else:
                raise NotLowered
            return self.out
        finally:
            self.out = before

    def let(self, stmt: ir.Let) -> None:
        value = stmt.value
        if isinstance(value.kind, Num):
            if isinstance(value, ir.Call):
                self.reduce(stmt, value)
            else:
                self.out.append(ir.Let(stmt.name, self.number(value), stmt.line))
            return
        if base_of(value) is not None:
            self.view(stmt)
            return
        if value.kind.dtype not in DTYPES:
            raise NotLowered
        if isinstance(value, ir.Call):
            self.array_call(stmt, value)
        else:
            self.assign(stmt.name, value, stmt.line)

    def write(self, stmt: ir.Set) -> None:
        if stmt.base.kind.dtype not in DTYPES:
            raise NotLowered
        target = self.part(ir.Get(stmt.base, stmt.index, FLOAT))
        if not target.extents:
            value = self.number(stmt.value)
            place = target.at([])
            self.out.append(ir.Set(place.base, place.index, value, stmt.op, stmt.line))
            return
        self.fill(target, stmt.value, stmt.op, stmt.line)

    def fill(self, target: Part, value: Any, op: str, line: int) -> None:
        """Write an expression to the elements of a part of an array."""
        value = self.with_numbers(value)
        extents = list(target.extents)
        if isinstance(value.kind, Arr):
            self.match(extents, self.extents(value))
            if self.overlaps(target, value):
                buffer = self.workspace(self.fresh("buffer"), extents, target.dtype)
                self.loops(extents, lambda at: ir.Set(buffer, tuple(at), self.element(value, at), "", line))
                value = buffer
        def body(at: list[Any]) -> Any:
            place = target.at(at)
            return ir.Set(place.base, place.index, self.element(value, at), op, line)

        self.loops(extents, body)

    def overlaps(self, target: Part, value: Any) -> bool:
        """Return whether an expression may read an element that is written at another position."""
        root = self.root(target.name)
        for node in self.leaves(value):
            part = self.part(node)
            is_same = part.key == target.key and len(part.extents) == len(target.extents)
            if self.root(part.name) == root and not is_same and (part.name != target.name or _meet(part, target)):
                return True
        return False

    def loops(self, extents: Sequence[Any], body: Callable[[list[Any]], Any]) -> None:
        """Emit loops over all elements."""
        names = []
        for _ in extents:
            name = self.fresh("e")
            self.kinds[name] = INT
            names.append(name)
        inner: ir.Block = [body([ir.Var(name, INT) for name in names])]
        for name, extent in reversed(list(zip(names, extents))):
            inner = [ir.For(name, ZERO, extent, 1, inner)]
        self.out += inner

    def assign(self, name: str, value: Any, line: int) -> None:
        """Emit the assignment of a new array, in the memory of the previous one."""
        value = self.with_numbers(value)
        extents = self.extents(value)
        target = self.array(name, extents, value.kind.dtype)
        part = self.part(target)
        if self.overlaps(part, value):
            buffer = self.workspace(self.fresh("buffer"), extents, value.kind.dtype)
            self.loops(extents, lambda at: ir.Set(buffer, tuple(at), self.element(value, at), "", line))
            value = buffer
        self.loops(extents, lambda at: ir.Set(target, tuple(at), self.element(value, at), "", line))

    # -- arrays --------------------------------------------------------------------------------------------------------

    def root(self, name: str) -> str:
        return self.roots.get(name, name)

    def array(self, name: str, extents: Sequence[Any], dtype: str) -> ir.Var:
        """Return the array that holds all values of a variable."""
        kind = Arr(dtype, len(extents))
        if self.kinds.get(name) != kind or name in self.inputs:
            raise NotLowered
        variable = ir.Var(name, kind)
        outside = [stmt for stmt in ir.statements(self.earlier) for each in ir.assigned(stmt) if each == name]
        if name not in self.ready:
            self.take(name, outside)
            self.ready.add(name)
            if not outside:
                self.make(name, extents, dtype)
        for axis, extent in enumerate(extents):
            self.require(ir.Dim(variable, axis), extent)
        return variable

    def take(self, name: str, outside: list[Any]) -> None:
        """Make sure that nothing but a variable refers to its array."""
        for stmt in outside:
            if stmt not in self.earlier:
                raise NotLowered
        root = self.root(name)
        others = {each for each, own in self.roots.items() if own == root and each != name}
        top = set(map(id, self.later))
        for stmt in self.lets[name]:
            base = base_of(getattr(stmt, "value", None))
            if base is not None:
                if stmt not in outside or not isinstance(stmt.value, ir.Var) or self.is_written(root):
                    raise NotLowered
                self.copied.add(name)
        for other in others:
            for stmt in self.lets.get(other, ()):
                base = base_of(getattr(stmt, "value", None))
                if base is None or base.name != name:
                    if base is not None:
                        raise NotLowered
                    continue
                if id(stmt) not in top and stmt not in list(ir.statements([self.loop])):
                    raise NotLowered

    def is_written(self, root: str) -> bool:
        """Return whether an array is written to anywhere."""
        return any(isinstance(stmt, ir.Set) and self.root(stmt.base.name) == root
                   for stmt in ir.statements([*self.earlier, self.loop, *self.later]))

    def make(self, name: str, extents: Sequence[Any], dtype: str) -> None:
        """Make an array before the loop."""
        for extent in extents:
            for node in ir.nodes(extent):
                if isinstance(node, ir.Get) or (isinstance(node, ir.Var) and node.name in self.bound_inside
                                             and node.name not in self.ready):
                    raise NotLowered
        call = ir.Call("empty", (tuple(extents),), (("dtype", np.dtype(dtype).name),),
                    Arr(dtype, len(extents)))
        self.before.append(ir.Let(name, call, self.loop.line))

    def workspace(self, name: str, extents: Sequence[Any], dtype: str) -> ir.Var:
        """Return an array for intermediate values."""
        self.kinds[name] = Arr(dtype, len(extents))
        self.make(name, extents, dtype)
        return ir.Var(name, self.kinds[name])

    def with_copies(self, stmts: ir.Block) -> ir.Block:
        """Return the statements before the loop, with copies where a variable was another name of an array."""
        return [
            ir.Let(stmt.name, ir.Call("copy", (stmt.value,), (), stmt.value.kind), stmt.line)
            if isinstance(stmt, ir.Let) and stmt.name in self.copied and isinstance(stmt.value, ir.Var) else stmt
            for stmt in stmts
        ]

    def view(self, stmt: ir.Let) -> None:
        """Replace a view by an index into its base."""
        if len(self.lets[stmt.name]) != 1 or any(
            isinstance(node, ir.Var) and node.name == stmt.name
            for later in ir.statements(self.later) for expr in ir.expressions_of(later) for node in ir.nodes(expr)
        ):
            raise NotLowered
        for node in ir.nodes(stmt.value):
            is_number = isinstance(node, ir.Var) and isinstance(node.kind, Num)
            if is_number and node.name in self.bound_inside - self.counters:
                raise NotLowered
            if isinstance(node, ir.Get) and node is not stmt.value:
                raise NotLowered
            if isinstance(node, ir.Var) and isinstance(node.kind, Arr) and node.name in self.bound_inside:
                inside = [each for each in ir.statements([self.loop]) if node.name in ir.assigned(each)]
                if node.name not in self.views and (node.name not in self.ready or len(inside) > 1):
                    raise NotLowered
        value = stmt.value
        if isinstance(value, ir.Call):
            if value.name != "transpose" or len(value.args) > 1 or value.options:
                raise NotLowered
            inner = self.part(value.args[0])
            self.views[stmt.name] = Part(
                inner.name, ("T", inner.key), inner.extents[::-1], lambda at: inner.at(list(at)[::-1]), inner.dtype)
            return
        self.views[stmt.name] = self.part(value)

    def part(self, expr: Any) -> Part:
        """Return an array or a part of it, by element."""
        if isinstance(expr, ir.Var):
            if expr.name in self.views:
                return self.views[expr.name]
            if expr.kind.dtype not in DTYPES:
                raise NotLowered
            if expr.name in self.bound_inside and expr.name not in self.ready and not any(
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
                keys.append(("gather", self.fresh("key")))  # an index array may name an element twice
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
        """Return a bound of a slice, which is in range."""
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

    # -- expressions ---------------------------------------------------------------------------------------------------

    def number(self, expr: Any) -> Any:
        """Return a number, with elements of views replaced."""

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
        """Check that a written value has the shape of its target, or is broadcast to it."""
        for axis in range(1, len(given) + 1):
            if given[-axis] != ONE:
                self.require(target[-axis], given[-axis])

    def require(self, a: Any, b: Any) -> None:
        if a != b:
            self.out.append(ir.Check(ir.Op("equal", (a, b), BOOL)))

    def with_numbers(self, expr: Any) -> Any:
        """Return the expression with numbers that are computed in variables, as they are computed once."""
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
        """Return the element of an elementwise expression at some indices."""
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

    # -- functions of arrays -------------------------------------------------------------------------------------------

    def reduce(self, stmt: ir.Let, call: ir.Call) -> None:
        """Emit the loop of a sum, a mean, or a product of vectors."""
        options = dict(call.options)
        if options.pop("axis", None) is not None and call.args[0].kind.ndim > 1:
            raise NotLowered
        if options.get("keepdims") or stmt.value.kind.dtype != "d":
            raise NotLowered
        if call.name in ("sum", "mean") and len(call.args) == 1:
            part = self.part(call.args[0])
            total, extents, element = stmt.name, part.extents, part.at
        elif call.name in ("dot", "matmul", "inner") and len(call.args) == 2:
            one, other = map(self.part, call.args)
            if len(one.extents) != 1 or len(other.extents) != 1:
                raise NotLowered
            self.require(one.extents[0], other.extents[0])
            total, extents = stmt.name, one.extents

            def element(at: Sequence[Any]) -> Any:
                return ir.Op("mul", (one.at(at), other.at(at)), FLOAT)
        else:
            raise NotLowered
        sum_of = self.fresh("total")
        self.kinds[sum_of] = FLOAT
        variable = ir.Var(sum_of, FLOAT)
        self.out.append(ir.Let(sum_of, ir.Const(0.0, FLOAT), stmt.line))
        self.loops(extents, lambda at: ir.Let(sum_of, ir.Op("add", (variable, element(at)), FLOAT), stmt.line))
        value: Any = variable
        if call.name == "mean":
            size: Any = extents[0]
            for extent in extents[1:]:
                size = ir.Op("mul", (size, extent), INT)
            value = ir.Op("div", (variable, size), FLOAT)
        self.out.append(ir.Let(total, value, stmt.line))

    def array_call(self, stmt: ir.Let, call: ir.Call) -> None:
        """Emit the call of a function that returns an array."""
        name, line = stmt.name, stmt.line
        dtype = call.kind.dtype
        if call.name in ("zeros", "ones", "full", "empty"):
            extents = [self.number(each) for each in call.args[0]]
            fill: Any = self.once(call.args[1]) if call.name == "full" else ir.Const(
                {"zeros": 0.0, "ones": 1.0, "empty": 0.0}[call.name], FLOAT)
            if dtype != "d":
                raise NotLowered
            target = self.array(name, extents, dtype)
            self.loops(extents, lambda at: ir.Set(target, tuple(at), fill, "", line))
        elif call.name in ("zeros_like", "ones_like", "copy", "empty_like") and dtype == "d":
            part = self.part(call.args[0])
            if call.name == "copy":
                self.assign(name, call.args[0], line)
                return
            number = ir.Const(1.0 if call.name == "ones_like" else 0.0, FLOAT)
            target = self.array(name, part.extents, dtype)
            self.loops(part.extents, lambda at: ir.Set(target, tuple(at), number, "", line))
        elif call.name in ("matmul", "dot", "outer") and dtype == "d" and len(call.args) == 2:
            self.product(name, call, line)
        elif call.name == "sum" and dtype == "d":
            self.sum_along(name, call, line)
        else:
            raise NotLowered

    def product(self, name: str, call: ir.Call, line: int) -> None:
        one, other = map(self.part, call.args)
        a, b = len(one.extents), len(other.extents)
        if a > 2 or b > 2 or ONE in (*one.extents, *other.extents):
            raise NotLowered
        if call.name == "outer":
            if (a, b) != (1, 1):
                raise NotLowered
            target = self.product_array(name, [one.extents[0], other.extents[0]], one, other)
            self.loops(target[1], lambda at: ir.Set(target[0], tuple(at), ir.Op("mul", (
                one.at([at[0]]), other.at([at[1]])), FLOAT), "", line))
        else:
            self.require(one.extents[-1], other.extents[0])
            extents = [*one.extents[:-1], *other.extents[1:]]
            result, _ = self.product_array(name, extents, one, other)
            rows = len(extents) if b == 1 else len(extents) - 1

            def body(at: list[Any]) -> Any:
                *outer, k = at
                left = [*outer[: a - 1], k]
                right = [k, *outer[a - 1 :]]
                value = ir.Op("mul", (one.at(left), other.at(right)), FLOAT)
                return ir.Set(result, tuple(outer), value, "add", line)

            assert rows >= 0
            self.loops(extents, lambda at: ir.Set(result, tuple(at), ir.Const(0.0, FLOAT), "", line))
            self.loops([*extents, one.extents[-1]], body)
        self.finish_product(name, line)

    def product_array(self, name: str, extents: list[Any], *operands: Part) -> tuple[ir.Var, list[Any]]:
        """Return the array that holds a product: its own, if the variable is an operand."""
        self.pending: tuple[ir.Var, list[Any]] | None = None
        if any(self.root(each.name) == self.root(name) for each in operands):
            buffer = self.workspace(self.fresh("buffer"), extents, "d")
            self.pending = (buffer, extents)
            return buffer, extents
        return self.array(name, extents, "d"), extents

    def finish_product(self, name: str, line: int) -> None:
        if self.pending is not None:
            buffer, extents = self.pending
            target = self.array(name, extents, "d")
            self.loops(extents, lambda at: ir.Set(target, tuple(at), ir.Get(buffer, tuple(at), FLOAT), "", line))

    def sum_along(self, name: str, call: ir.Call, line: int) -> None:
        """Emit the loops of a sum along an axis."""
        options = dict(call.options)
        axis = options.get("axis")
        part = self.part(call.args[0])
        if not isinstance(axis, int) or options.get("keepdims") or self.root(part.name) == self.root(name):
            raise NotLowered
        axis %= len(part.extents)
        extents = [*part.extents[:axis], *part.extents[axis + 1 :]]
        target = self.array(name, extents, "d")
        self.loops(extents, lambda at: ir.Set(target, tuple(at), ir.Const(0.0, FLOAT), "", line))

        def body(at: list[Any]) -> Any:
            *outer, k = at
            return ir.Set(target, tuple(outer), part.at([*outer[:axis], k, *outer[axis:]]), "add", line)

        self.loops([*extents, part.extents[axis]], body)


def _meet(one: Part, other: Part) -> bool:
    """Return whether two parts of one array may have an element in common."""
    bounds: list[Affine] = []
    places = []
    for part, tag in ((one, "'"), (other, '"')):
        names = [f"{number}{tag}" for number in range(len(part.extents))]
        for name, extent in zip(names, part.extents):
            bounds.append({name: 1})
            length = affine(extent, lambda _: True)
            if length is not None:
                bounds.append(combined(combined(length, {name: 1}, -1), {"": 1}, -1))
        places.append(part.at([ir.Var(name, INT) for name in names]).index)
    equalities = []
    for a, b in zip(*places):
        first, second = affine(a, lambda _: True), affine(b, lambda _: True)
        if first is not None and second is not None:
            equalities.append(combined(first, second, -1))
    return has_solution(equalities, bounds)


def _names_in(expr: Any) -> set[str]:
    return {node.base.name if isinstance(node, (ir.Dim, ir.Get)) else node.name for node in ir.nodes(expr)
            if isinstance(node, (ir.Dim, ir.Get, ir.Var))}


def _of_axis(place: Callable[[Any], Any], number: int) -> Callable[[Sequence[Any]], Any]:
    """Return a function from an index of the loop nest to an index along one axis."""
    return lambda at: place(at[number])


def _always(expr: Any) -> Callable[[Sequence[Any]], Any]:
    """Return a function from an index of the loop nest to a constant index."""
    return lambda at: expr


def _mapped_outermost(expr: Any, change: Callable[[Any], Any]) -> Any:
    """Return the expression with elements of arrays replaced as wholes."""
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


