"""Adjoint rules: the reverse of each statement, which adds to the adjoints of the values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import attrs

from . import ir
from .activity import call_has_gradient, flows, has_complex, is_float, read_by
from .formulas import scalar_gradient
from .kinds import FLOAT, Arr, Num, adjoint_kind, is_complex


def _reads_twice(name: str, number: int, is_complex: bool) -> bool:
    """Return whether a formula mentions the gradient more than once."""
    text = scalar_gradient(name, number, is_complex)
    return text is None or text.count("{grad}") > 1

ZERO = ir.Const(0.0, FLOAT)
# Operators that pass the gradient to their first operand unchanged.
PASSING: Final = frozenset({"add", "positive", "finite", "nonzero", "flowing", "as_single"})


def _same_as(expr: Any) -> Any:
    """Return the expression without operators that return their operand."""
    while isinstance(expr, ir.Op) and expr.name in ("finite", "nonzero", "positive"):
        expr = expr.args[0]
    return expr


def _without_term(expr: Any, name: str) -> Any:
    """Return the other terms of a sum with a variable; None if it is no sum, or they contain the variable."""
    def found(node: Any) -> Any:
        if isinstance(node, ir.Var) and node.name == name:
            return ir.Const(0.0, node.kind)
        if isinstance(node, ir.Op) and node.name in ("add", "sub") and node.kind.dtype == expr.kind.dtype:
            for number, arg in enumerate(node.args if node.name == "add" else node.args[:1]):
                rest = found(arg)
                if rest is not None:
                    return attrs.evolve(node, args=(*node.args[:number], rest, *node.args[number + 1 :]))
        return None

    rest = found(expr)
    if rest is None or isinstance(rest, ir.Const) or any(isinstance(node, ir.Var) and node.name == name
                                                      for node in ir.nodes(rest)):
        return None
    return rest


def _sum_of(value: Any) -> ir.Call:
    return ir.Call("sum_all", (value,), (), Num(value.kind.dtype))


class Reverser:
    """Writes the reverse of single statements.

    Arguments:
        active: the variables that have an adjoint.
        roots: of variables that share memory.
        fresh: gives a name that is not used yet.
        kinds: of each variable, to which those that are made are added.
    """

    def __init__(
        self, active: Collection[str], roots: dict[str, str], fresh: Callable[[str], str], kinds: dict[str, Any]
    ) -> None:
        self.active = active
        self.roots = roots
        self.fresh = fresh
        self.kinds = kinds
        self.out: ir.Block = []
        self.first: ir.Block = []
        self.line = 0

    def reverse(self, stmt: Any) -> tuple[ir.Block, ir.Block]:
        """Return the statements that propagate the adjoint of a statement's result to the values it reads.

        Returns:
            Statements that run where all variables have the values from after the statement, and those that run where
            they have the values from before it.
        """
        self.out, self.first = [], []
        self.line = stmt.line
        if isinstance(stmt, ir.Let):
            if stmt.name in self.active:
                self._let(stmt)
        elif isinstance(stmt, ir.LetMany):
            if any(name in self.active for name in stmt.names):
                self._call(stmt.value, tuple([
                    ir.Var(ir.bar(name), adjoint_kind(kind)) if name in self.active else None
                    for name, kind in zip(stmt.names, stmt.value.kind)
                ]))
        elif isinstance(stmt, ir.Set) and stmt.base.name in self.active:
            self._set(stmt)
        return self.first, self.out

    # -- statements ----------------------------------------------------------------------------------------------------

    def _let(self, stmt: ir.Let) -> None:
        value = stmt.value
        if isinstance(value.kind, Arr):
            if isinstance(value, ir.Var) or (isinstance(value, (ir.Get, ir.Call)) and getattr(value, "is_view", False)):
                return  # its adjoint is the same view
            self.spread(value, ir.Var(ir.bar(stmt.name), adjoint_kind(value.kind)))
            return
        if not any(True for _ in self._leaves(value)):
            self.bind(ir.bar(stmt.name), ZERO)
            return
        adjoint = ir.Var(ir.bar(stmt.name), adjoint_kind(self.kinds[stmt.name]))
        rest = _without_term(value, stmt.name)
        if rest is not None:  # its adjoint goes on to the variable as it was before
            self.spread(rest, adjoint)
            return
        grad = self.temporary(adjoint, "b")
        self.bind(ir.bar(stmt.name), ZERO)
        result = None
        if self._reads_result(value) and _same_as(value).name not in ("div", "sqrt", "reciprocal"):
            result = self._after(ir.Var(stmt.name, value.kind))
        self.spread(value, grad, result)

    def _reads_result(self, value: Any) -> bool:
        """Return whether the gradient of an expression reads its value."""
        node = _same_as(value)
        return isinstance(node, ir.Op) and any(
            is_float(arg.kind) and self._leaves(arg) and read_by(node, number).result
            for number, arg in enumerate(node.args)
        )

    def _after(self, value: Any) -> ir.Var:
        """Bind a value to a new variable ahead of the statements, and return it."""
        name = self.fresh("r")
        self.kinds[name] = value.kind
        self.first.append(ir.Let(name, value, self.line))
        return ir.Var(name, value.kind)

    def _set(self, stmt: ir.Set) -> None:
        base = ir.Var(ir.bar(stmt.base.name), adjoint_kind(stmt.base.kind))
        place = ir.Get(base, stmt.index, ir.place_kind(base, stmt.index), safe=True)
        value = stmt.value
        feeds = any(True for _ in self._leaves(value))
        is_fancy = any(isinstance(getattr(each, "kind", None), Arr) for each in stmt.index)
        if not feeds:
            if not stmt.op:
                self.out.append(ir.Set(place.base, stmt.index, ZERO, "", stmt.line, safe=True))
            return
        if isinstance(place.kind, Num):
            grad: Any = self.temporary(place, "b")
        elif is_fancy:
            parts = tuple([each for each in stmt.index if not isinstance(each, ir.Slice) and each is not ir.NEW])
            last = ir.Call("last_written", (place.base, *parts), (("index", stmt.index),), place.kind)
            grad = self.temporary(last, "b")
        elif self._is_local(value, stmt.base.name) and stmt.op:
            grad = place
        else:
            grad = self.temporary(ir.Call("copy", (place,), (), place.kind), "b")
        if not stmt.op:
            self.out.append(ir.Set(place.base, stmt.index, ZERO, "", stmt.line, safe=True))
        if stmt.op == "sub":
            grad = ir.Op("neg", (grad,), grad.kind)
        result = None
        if not stmt.op and isinstance(place.kind, Num) and stmt.base.kind.dtype == value.kind.dtype \
                and self._reads_result(value):
            result = self._after(ir.Get(stmt.base, stmt.index, ir.place_kind(stmt.base, stmt.index), safe=True))
        self.spread(value, grad, result)

    def _is_local(self, value: Any, name: str) -> bool:
        """Return whether an expression reads no memory of an array."""
        root = self.roots.get(name, name)
        return all(
            self.roots.get(each.name, each.name) != root for each in ir.nodes(value)
            if isinstance(each, ir.Var) and isinstance(each.kind, Arr)
        )

    def _call(self, call: ir.Call, grads: tuple[Any, ...]) -> None:
        names: list[str | None] = []
        targets: list[tuple[Any, str]] = []
        for arg in call.args:
            for each in arg if isinstance(arg, tuple) else (arg,):
                name = None
                if isinstance(each, (ir.Var, ir.Get)) and is_float(each.kind) and self._is_active(each):
                    name = self.fresh("g")
                    self.kinds[name] = adjoint_kind(each.kind)
                    targets.append((each, name))
                names.append(name)
        if targets:
            self.out.append(ir.PullCall(tuple(names), call, grads, self.line))
            for leaf, name in targets:
                self.add(leaf, ir.Var(name, adjoint_kind(leaf.kind)))

    # -- expressions ---------------------------------------------------------------------------------------------------

    def spread(self, expr: Any, grad: Any, result: Any = None) -> None:
        """Add the gradient of an expression to the adjoints of its operands.

        Arguments:
            expr: the expression.
            grad: its gradient.
            result: its value, if available.
        """
        if isinstance(expr, ir.Call):
            if expr.name == "copy":
                self.spread(expr.args[0], grad)
            elif expr.name in ("full", "full_like"):
                self.add(expr.args[-1], grad)
            elif expr.name == "sum" and not expr.options and isinstance(expr.args[0], (ir.Var, ir.Get)):
                self.add(expr.args[0], grad)
            elif call_has_gradient(expr):
                self._call(expr, (grad,))
            return
        values: dict[int, Any] = {}
        self._prepare(expr, values, result)
        self._down(expr, grad, values)

    def _is_active(self, leaf: Any) -> bool:
        return (leaf.base.name if isinstance(leaf, ir.Get) else leaf.name) in self.active

    def _leaves(self, expr: Any) -> list[Any]:
        return [leaf for leaf in flows(expr) if self._is_active(leaf)]

    def _prepare(self, expr: Any, values: dict[int, Any], result: Any) -> None:
        """Put the values that formulas read in variables: of operators inside an expression, innermost first."""
        needed: set[int] = set()

        def look(node: Any) -> None:
            if isinstance(node, ir.Op):
                for number, arg in enumerate(node.args):
                    if not is_float(arg.kind) or not self._leaves(arg):
                        continue
                    found = read_by(node, number)
                    if found.is_zero:
                        continue
                    needed.update(id(node.args[each]) for each in found.operands)
                    if found.result:
                        needed.add(id(node))
                    look(arg)
            elif isinstance(node, ir.Lazy) and node.name == "if":
                look(node.args[1])
                look(node.args[2])

        def made(node: Any, lazily: bool = False) -> Any:
            if isinstance(node, (ir.Op, ir.Lazy)):
                inside = lazily or isinstance(node, ir.Lazy)
                args = tuple([made(arg, inside) for arg in node.args])
                if any(a is not b for a, b in zip(args, node.args)):
                    new: Any = attrs.evolve(node, args=args)
                else:
                    new = node
                if id(node) in needed and not lazily:
                    new = self.temporary(new, "r")
                values[id(node)] = new
                return new
            values[id(node)] = node
            return node

        look(expr)
        core = _same_as(expr)
        if result is not None:
            needed.discard(id(core))
        made(expr)
        if result is not None:
            values[id(core)] = result

    def _down(self, expr: Any, grad: Any, values: dict[int, Any]) -> None:
        if not self._leaves(expr):
            return
        grad = self._real(grad, expr)
        if isinstance(expr, (ir.Var, ir.Get)):
            self.add(expr, grad)
        elif isinstance(expr, ir.Lazy):
            before, self.out = self.out, []
            self._down(expr.args[1], grad, values)
            then, self.out = self.out, []
            self._down(expr.args[2], grad, values)
            other, self.out = self.out, before
            self.out.append(ir.If(values[id(expr.args[0])], then, other, self.line))
        elif isinstance(expr, ir.Op):
            chosen = [
                number for number, arg in enumerate(expr.args)
                if is_float(arg.kind) and self._leaves(arg) and not read_by(expr, number).is_zero
            ]
            if len(chosen) > 1 and not isinstance(grad, (ir.Var, ir.Const)):
                grad = self.temporary(grad, "b")
            twice = any(_reads_twice(expr.name, number, has_complex(expr)) for number in chosen)
            if twice and not isinstance(grad, (ir.Var, ir.Const)):
                grad = self.temporary(grad, "b")
            for number in chosen:
                arg = expr.args[number]
                pulled = self._pulled(expr, number, grad, values)
                if ir.is_number(arg) and isinstance(pulled.kind, Arr):
                    pulled = self.temporary(_sum_of(pulled), "b")
                self._down(arg, pulled, values)

    def _pulled(self, expr: ir.Op, number: int, grad: Any, values: dict[int, Any]) -> Any:
        """Return the gradient of an operand."""
        if expr.name in PASSING or (expr.name == "sub" and number == 0):
            return grad
        if expr.name in ("sub", "neg"):
            return ir.Op("neg", (grad,), grad.kind)
        read = read_by(expr, number)
        args = tuple([values[id(arg)] if n in read.operands else None for n, arg in enumerate(expr.args)])
        ndim = max(expr.kind.ndim, grad.kind.ndim)
        dtype = "D" if has_complex(expr) or is_complex(grad.kind) else "d"
        kind = Arr(dtype, ndim) if ndim else Num(dtype)
        result = values[id(expr)] if read.result else None
        return self._real(ir.Pull(expr.name, number, args, result, grad, kind), expr.args[number])

    def _real(self, grad: Any, expr: Any) -> Any:
        """Return a gradient, without its imaginary part for a real value."""
        if not is_complex(grad.kind) or is_complex(expr.kind):
            return grad
        kind = adjoint_kind(grad.kind)
        return ir.Op("real", (grad,), Num("d") if isinstance(kind, Num) else Arr("d", kind.ndim))

    # -- adjoints ------------------------------------------------------------------------------------------------------

    def add(self, leaf: Any, value: Any) -> None:
        """Add to the adjoint of a variable, or of a part of an array."""
        if isinstance(leaf, ir.Const) or not self._is_active(leaf):
            return
        value = self._real(value, leaf)
        if isinstance(leaf, ir.Var):
            adjoint = ir.Var(ir.bar(leaf.name), adjoint_kind(leaf.kind))
            if ir.is_number(leaf):
                if isinstance(value.kind, Arr):
                    value = self.temporary(_sum_of(value), "b")
                self.bind(adjoint.name, ir.Op("add", (adjoint, value), adjoint.kind))
            else:
                self.out.append(ir.Add(adjoint, value, self.line))
            return
        base = ir.Var(ir.bar(leaf.base.name), adjoint_kind(leaf.base.kind))
        if isinstance(leaf.kind, Num):
            if isinstance(value.kind, Arr):
                value = self.temporary(_sum_of(value), "b")
            if isinstance(value, ir.Op) and value.name == "neg":
                self.out.append(ir.Set(base, leaf.index, value.args[0], "sub", self.line, safe=True))
            else:
                self.out.append(ir.Set(base, leaf.index, value, "add", self.line, safe=True))
        else:
            self.out.append(ir.Add(ir.Get(base, leaf.index, adjoint_kind(leaf.kind), safe=True), value, self.line))

    def bind(self, name: str, value: Any) -> None:
        """Bind a variable."""
        self.out.append(ir.Let(name, value, self.line))

    def temporary(self, value: Any, hint: str) -> ir.Var:
        """Return a variable with the value of an expression."""
        name = self.fresh(hint)
        self.kinds[name] = value.kind
        self.out.append(ir.Let(name, value, self.line))
        return ir.Var(name, value.kind)
