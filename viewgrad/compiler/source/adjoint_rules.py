"""Adjoint rules: the reverse of each statement, which adds to the adjoints of the values it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import attrs

from . import ir
from .activity import call_has_gradient, flows, has_complex, is_float, read_by
from .scalar_forms import scalar_gradient
from .value_types import FLOAT, Arr, Num, adjoint_kind, is_complex


def _reads_twice(name: str, number: int, is_complex: bool) -> bool:
    """Return whether a formula refers to the gradient more than once."""
    text = scalar_gradient(name, number, is_complex)
    return text is None or text.count("{grad}") > 1

ZERO = ir.Const(0.0, FLOAT)
ONE = ir.Const(1.0, FLOAT)
# Operators that pass the gradient to their first operand unchanged.
PASSING: Final = frozenset({"add", "positive", "finite", "nonzero", "flowing", "as_single"})


def _same_as(expr: Any) -> Any:
    """Return the expression without operators that return their operand unchanged."""
    while isinstance(expr, ir.Op) and expr.name in ("finite", "nonzero", "positive"):
        expr = expr.args[0]
    return expr


def _without_term(expr: Any, name: str) -> Any:
    """Return the other terms of a sum with a variable, or None if it is not a sum or they depend on the variable."""
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


def _negated(value: Any) -> Any:
    return ir.Const(-value.value, value.kind) if isinstance(value, ir.Const) else ir.Op("neg", (value,), value.kind)


def _without_first_sum(block: ir.Block, name: str) -> ir.Block:
    """Replace a binding of a variable to 0, and the first addition to it, by a binding to the first term."""
    zero = next((stmt for stmt in block if isinstance(stmt, ir.Let) and stmt.name == name and stmt.value is ZERO), None)
    later = block[block.index(zero) + 1 :] if zero is not None else []
    for number, stmt in enumerate(later):
        if name not in ir.variables_in([stmt]) and name not in ir.assigned(stmt):
            continue
        value = stmt.value if isinstance(stmt, ir.Let) and stmt.name == name else None
        if isinstance(value, ir.Op) and value.name == "add" and value.args[0] == ir.Var(name, value.kind) and not any(
            isinstance(node, ir.Var) and node.name == name for node in ir.nodes(value.args[1])
        ):
            later[number] = ir.Let(name, value.args[1], stmt.line)
            return [*[each for each in block[: len(block) - len(later)] if each is not zero], *later]
        break
    return block


def _scaled(value: Any, factor: ir.Const) -> Any:
    """Return a value multiplied by a constant."""
    if abs(factor.value) == 1.0:
        return value if factor.value == 1.0 else _negated(value)
    return ir.Op("mul", (value, factor), FLOAT)


def _sum_of(value: Any) -> ir.Call:
    return ir.Call("sum_all", (value,), (), Num(value.kind.dtype))


class Reverser:
    """Generates the reverse of single statements.

    Arguments:
        active: the variables that have an adjoint.
        roots: the representatives of variables that share memory.
        fresh: a function that returns an unused name.
        kinds: the kinds of the variables; new variables are added.
        preaccumulates: whether the partial derivatives of an expression are computed before they are multiplied by its
            adjoint. They do not depend on it, so loop-carried adjoints wait for only one product and one sum.
    """

    def __init__(
        self, active: Collection[str], roots: dict[str, str], fresh: Callable[[str], str], kinds: dict[str, Any],
        preaccumulates: bool = False,
    ) -> None:
        self.active = active
        self.roots = roots
        self.fresh = fresh
        self.kinds = kinds
        self.out: ir.Block = []
        self.first: ir.Block = []
        self.line = 0
        self.preaccumulates = preaccumulates
        self.partials: dict[Any, list[Any]] | None = None  # the partial derivatives being collected
        self.unbounded: set[str] = set()  # the variables of partial derivatives that may be infinite

    def reverse(self, stmt: Any) -> tuple[ir.Block, ir.Block]:
        """Return the statements that propagate the adjoint of a statement's result to the values it reads.

        Returns:
            The statements to run while all variables have their values from after the statement, and the statements to
            run while they have their values from before it.
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
        if not self._leaves(value):
            self.bind(ir.bar(stmt.name), ZERO)
            return
        adjoint = ir.Var(ir.bar(stmt.name), adjoint_kind(self.kinds[stmt.name]))
        rest = _without_term(value, stmt.name)
        if rest is not None:  # its adjoint becomes that of the variable's previous value
            self.spread(rest, adjoint)
            return
        grad = self.temporary(adjoint, "b")
        self.bind(ir.bar(stmt.name), ZERO)
        result = None
        if self._reads_result(value) and _same_as(value).name not in ("div", "sqrt", "reciprocal"):
            result = self._bind(ir.Var(stmt.name, value.kind))
        self.spread(value, grad, result)
        self.out = _without_first_sum(self.out, ir.bar(stmt.name))

    def _reads_result(self, value: Any) -> bool:
        """Return whether the gradient of an expression reads its value."""
        node = _same_as(value)
        return isinstance(node, ir.Op) and any(
            is_float(arg.kind) and self._leaves(arg) and read_by(node, number).result
            for number, arg in enumerate(node.args)
        )

    def _bind(self, value: Any) -> ir.Var:
        """Bind a value to a new variable before the statements, and return the variable."""
        name = self.fresh("r")
        self.kinds[name] = value.kind
        self.first.append(ir.Let(name, value, self.line))
        return ir.Var(name, value.kind)

    def _set(self, stmt: ir.Set) -> None:
        base = ir.Var(ir.bar(stmt.base.name), adjoint_kind(stmt.base.kind))
        place = ir.Get(base, stmt.index, ir.place_kind(base, stmt.index), safe=True)
        value = stmt.value
        is_fancy = any(isinstance(getattr(each, "kind", None), Arr) for each in stmt.index)
        if not self._leaves(value):
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
            result = self._bind(ir.Get(stmt.base, stmt.index, ir.place_kind(stmt.base, stmt.index), safe=True))
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
            elif expr.name == "sum" and isinstance(expr.args[0], ir.Op):  # each array in it has the shape of the terms
                self.spread(expr.args[0], grad if isinstance(grad, ir.Var) else self.temporary(grad, "b"))
            elif call_has_gradient(expr):
                self._call(expr, (grad,))
            return
        values: dict[int, Any] = {}
        self._prepare(expr, values, result)
        if self.preaccumulates and ir.is_number(grad) and self._is_real_expression(expr):
            self._spread_partials(expr, self._real(grad, expr), values)
        else:
            self._down(expr, grad, values)

    def _is_real_expression(self, expr: Any) -> bool:
        """Return whether an expression consists of operators on real numbers, without branches."""
        if not isinstance(expr, ir.Op) or not ir.is_number(expr):
            return False
        if any(not isinstance(leaf, (ir.Var, ir.Get)) or not ir.is_number(leaf) or is_complex(leaf.kind)
               for leaf in self._leaves(expr)):
            return False
        inside = [node for node in ir.nodes(expr) if isinstance(node, (ir.Op, ir.Lazy)) and self._leaves(node)]
        is_plain = all(isinstance(node, ir.Op) and ir.is_number(node) and not is_complex(node.kind) for node in inside)
        return is_plain and len(inside) > 1

    def _spread_partials(self, expr: Any, grad: Any, values: dict[int, Any]) -> None:
        """Add the products of a gradient and the partial derivatives of an expression."""
        self.partials = {}
        self._down(expr, ONE, values)
        partials, self.partials = self.partials, None
        if not isinstance(grad, (ir.Var, ir.Const)):
            grad = self.temporary(grad, "b")
        for leaf, terms in partials.items():
            while len(terms) > 1:
                terms = [ir.Op("add", tuple(terms[at : at + 2]), FLOAT) if at + 1 < len(terms) else terms[at]
                         for at in range(0, len(terms), 2)]
            self.add(leaf, self._product(grad, terms[0]))

    def _product(self, grad: Any, partial: Any) -> Any:
        """Return the product of a gradient and a partial derivative, which is 0 if the gradient is 0."""
        if isinstance(partial, ir.Const):
            return _scaled(grad, partial)
        product = ir.Op("mul", (grad, partial), FLOAT)
        return ir.Op("flowing", (product, grad), FLOAT) if self._is_unbounded(partial) else product

    def _is_unbounded(self, partial: Any) -> bool:
        """Return whether 0 times a partial derivative is 0 by the operator's formula, even if the derivative is
        infinite.
        """
        return any(
            node.name in self.unbounded if isinstance(node, ir.Var) else node.name == "div" if isinstance(node, ir.Op)
            else isinstance(node, ir.Pull) and "flowing" in (scalar_gradient(node.name, node.number) or "")
            for node in ir.nodes(partial)
        )

    def _is_active(self, leaf: Any) -> bool:
        return (leaf.base.name if isinstance(leaf, ir.Get) else leaf.name) in self.active

    def _leaves(self, expr: Any) -> list[Any]:
        return [leaf for leaf in flows(expr) if self._is_active(leaf)]

    def _prepare(self, expr: Any, values: dict[int, Any], result: Any) -> None:
        """Store the values that formulas read in variables, for operators inside an expression, innermost first."""
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
            twice = len(chosen) > 1 or any(_reads_twice(expr.name, each, has_complex(expr)) for each in chosen)
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
            return _negated(grad)
        if self.partials is not None and expr.name == "mul":
            other = values[id(expr.args[1 - number])]
            return _scaled(other, grad) if isinstance(grad, ir.Const) else ir.Op("mul", (grad, other), FLOAT)
        if isinstance(grad, ir.Const) and expr.name == "div":
            divisor = values[id(expr.args[1])]
            if number == 0:
                return ir.Op("div", (grad, divisor), FLOAT)
            return _scaled(ir.Op("div", (values[id(expr)], divisor), FLOAT), _negated(grad))
        read = read_by(expr, number)
        args = tuple([values[id(arg)] if n in read.operands else None for n, arg in enumerate(expr.args)])
        ndim = max(expr.kind.ndim, grad.kind.ndim)
        dtype = "D" if has_complex(expr) or is_complex(grad.kind) else "d"
        kind = Arr(dtype, ndim) if ndim else Num(dtype)
        result = values[id(expr)] if read.result else None
        return self._real(ir.Pull(expr.name, number, args, result, grad, kind), expr.args[number])

    def _real(self, grad: Any, expr: Any) -> Any:
        """Return a gradient, without its imaginary part if the value is real."""
        if not is_complex(grad.kind) or is_complex(expr.kind):
            return grad
        kind = adjoint_kind(grad.kind)
        return ir.Op("real", (grad,), Num("d") if isinstance(kind, Num) else Arr("d", kind.ndim))

    # -- adjoints ------------------------------------------------------------------------------------------------------

    def add(self, leaf: Any, value: Any) -> None:
        """Add to the adjoint of a variable or of a part of an array."""
        if isinstance(leaf, ir.Const) or not self._is_active(leaf):
            return
        value = self._real(value, leaf)
        if self.partials is not None:
            self.partials.setdefault(leaf, []).append(value)
            return
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
        """Bind an expression to a new variable and return the variable."""
        name = self.fresh(hint)
        self.kinds[name] = value.kind
        self.out.append(ir.Let(name, value, self.line))
        if self.partials is not None and self._is_unbounded(value):
            self.unbounded.add(name)
        return ir.Var(name, value.kind)
