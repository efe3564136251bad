"""Loops over the elements of arrays, for assignments and for functions that return arrays or sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import ir
from .aliases import base_of, roots_of
from .dependence import Affine, affine, combined, has_solution
from .element_access import ONE, ZERO, ElementAccess, NotLowered, Part
from .value_types import FLOAT, INT, Arr


class ElementLoops(ElementAccess):
    """Generates writes to arrays as loops over their elements.

    An array that is rebound in each iteration becomes one array that is written to, if nothing else refers to it.

    Arguments:
        block, position, kinds, fresh: as for `ElementAccess`.
        inputs: the inputs of the program.

    Attributes:
        before: the statements that create arrays before the loop.
        copied: the variables that must be copies, since they were other names for an array.
    """

    def __init__(
        self, block: ir.Block, position: int, kinds: dict[str, Any], inputs: Sequence[str],
        fresh: Callable[[str], str],
    ) -> None:
        super().__init__(block, position, kinds, fresh)
        self.inputs = set(inputs)
        self.roots = roots_of(block)
        self.before: ir.Block = []
        self.copied: set[str] = set()
        self.lets: dict[str, list[Any]] = {}
        for stmt in ir.statements(block):
            for name in ir.assigned(stmt):
                self.lets.setdefault(name, []).append(stmt)

    # -- assignments ---------------------------------------------------------------------------------------------------

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
            element = target.at(at)
            return ir.Set(element.base, element.index, self.element(value, at), op, line)

        self.loops(extents, body)

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

    def overlaps(self, target: Part, value: Any) -> bool:
        """Return whether an expression may read an element that was written at another position."""
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

    # -- memory of arrays ----------------------------------------------------------------------------------------------

    def root(self, name: str) -> str:
        return self.roots.get(name, name)

    def array(self, name: str, extents: Sequence[Any], dtype: str) -> ir.Var:
        """Return the array that contains all values of a variable."""
        kind = Arr(dtype, len(extents))
        if self.kinds.get(name) != kind or name in self.inputs:
            raise NotLowered
        variable = ir.Var(name, kind)
        outside = [stmt for stmt in ir.statements(self.earlier) for each in ir.assigned(stmt) if each == name]
        if name not in self.in_place:
            self.take(name, outside)
            self.in_place.add(name)
            if not outside:
                self.make(name, extents, dtype)
        for axis, extent in enumerate(extents):
            self.require(ir.Dim(variable, axis), extent)
        return variable

    def take(self, name: str, outside: list[Any]) -> None:
        """Require that nothing but a variable refers to its array."""
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
        """Create an array before the loop."""
        for extent in extents:
            for node in ir.nodes(extent):
                if isinstance(node, ir.Get) or (isinstance(node, ir.Var) and node.name in self.bound_inside
                                             and node.name not in self.in_place):
                    raise NotLowered
        call = ir.Call("empty", (tuple(extents),), (("dtype", np.dtype(dtype).name),),
                    Arr(dtype, len(extents)))
        self.before.append(ir.Let(name, call, self.loop.line))

    def workspace(self, name: str, extents: Sequence[Any], dtype: str) -> ir.Var:
        """Return an array for intermediate values."""
        self.kinds[name] = Arr(dtype, len(extents))
        self.make(name, extents, dtype)
        return ir.Var(name, self.kinds[name])

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
            extents = [one.extents[0], other.extents[0]]
            target = self.product_array(name, extents, one, other)
            self.loops(extents, lambda at: ir.Set(target, tuple(at), ir.Op("mul", (
                one.at([at[0]]), other.at([at[1]])), FLOAT), "", line))
        else:
            self.require(one.extents[-1], other.extents[0])
            extents = [*one.extents[:-1], *other.extents[1:]]
            target = self.product_array(name, extents, one, other)

            def body(at: list[Any]) -> Any:
                *outer, k = at
                left = [*outer[: a - 1], k]
                right = [k, *outer[a - 1 :]]
                value = ir.Op("mul", (one.at(left), other.at(right)), FLOAT)
                return ir.Set(target, tuple(outer), value, "add", line)

            self.loops(extents, lambda at: ir.Set(target, tuple(at), ir.Const(0.0, FLOAT), "", line))
            self.loops([*extents, one.extents[-1]], body)
        self.finish_product(name, target, extents, line)

    def product_array(self, name: str, extents: list[Any], *operands: Part) -> ir.Var:
        """Return the array for a product: a buffer, if the memory of the variable is an operand."""
        if any(self.root(each.name) == self.root(name) for each in operands):
            return self.workspace(self.fresh("buffer"), extents, "d")
        return self.array(name, extents, "d")

    def finish_product(self, name: str, target: ir.Var, extents: list[Any], line: int) -> None:
        """Emit the copy of a product from its buffer, if it has one."""
        if target.name != name:
            result = self.array(name, extents, "d")
            self.loops(extents, lambda at: ir.Set(result, tuple(at), ir.Get(target, tuple(at), FLOAT), "", line))

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
    """Return whether two parts of an array may have an element in common."""
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
