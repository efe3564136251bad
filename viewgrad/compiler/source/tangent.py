"""The tangent of a program: the program extended by the derivative of each variable along a direction.

The result is a program in the same language, so it can be reversed, which yields Hessian-vector products.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from . import ir
from .activity import active_names, call_has_gradient, is_float
from .aliases import base_of, roots_of, written_inputs
from .objects import Input
from .partial_derivatives import joint_kind, partial_derivative
from .read import Source
from .value_types import FLOAT, Arr, Num
from .values import ListResult, NotSupported, RecordValue, TupleValue, leaves_of

ZERO: Final = ir.Const(0.0, FLOAT)
# Calls whose tangent is the same call applied to the tangent of their only array.
LINEAR: Final = frozenset("""
    sum mean cumsum copy flatten astype transpose swapaxes moveaxis squeeze expand_dims reshape ravel diagonal trace
    diff tile repeat roll flip fliplr flipud rot90 tril triu diag
    """.split())
OF_LINEAR: Final = frozenset({"axis", "keepdims", "dtype", "k", "offset", "axis1", "axis2", "n", "shift", "order"})
PRODUCTS: Final = frozenset({"matmul", "dot", "outer", "inner", "vdot", "kron"})
JOINED: Final = frozenset({"concatenate", "stack", "vstack", "hstack", "column_stack", "dstack"})


def tangent_source(source: Source, tangents: Mapping[int, Input]) -> Source:
    """Return the tangent of a program, whose result is a pair of the program's result and its derivative.

    Arguments:
        source: the program.
        tangents: by number of an input, the input with its tangent.

    Raises:
        NotSupported: if the tangent cannot be expressed as a program.
    """
    names = [each.name for each in source.inputs]
    if written_inputs(source.body, names):
        raise NotSupported("it writes to an argument")
    leaves = leaves_of(source.result)
    if not all(isinstance(leaf, ir.Var) and is_float(leaf.kind) for leaf in leaves):
        raise NotSupported("its result contains values other than floats")
    kinds: dict[str, Any] = dict(source.kinds)
    directions = {names[number]: each.name for number, each in tangents.items()}
    kinds.update({each.name: each.kind for each in tangents.values()})
    results = list(dict.fromkeys(leaf.name for leaf in leaves))
    active = active_names(source.body, roots_of(source.body), list(directions), results)
    if any(kinds[name].dtype != "d" for name in {*active, *results}):
        raise NotSupported("tangents of dtypes other than float64 are not supported")
    writer = _Tangent(kinds, active, directions)
    body = writer.whole(source.body, [name for name in names if name in active], results)
    dots = {name: ir.Var(writer.dot(name), kinds[name]) for name in results}
    result = TupleValue((source.result, _with_leaves(source.result, dots)))
    return attrs.evolve(source, inputs=[*source.inputs, *tangents.values()], body=body, result=result, kinds=kinds)


def _with_leaves(tree: Any, leaves: Mapping[str, Any]) -> Any:
    """Return a tree of results with its variables replaced."""
    if isinstance(tree, TupleValue):
        return attrs.evolve(tree, items=tuple([_with_leaves(item, leaves) for item in tree.items]))
    if isinstance(tree, RecordValue):
        return attrs.evolve(tree, fields={key: _with_leaves(item, leaves) for key, item in tree.fields.items()})
    if isinstance(tree, ListResult):
        return attrs.evolve(tree, arrays=tuple([leaves[array.name] for array in tree.arrays]))
    return leaves[tree.name]


class _Tangent:
    """Generates the tangent of statements.

    Arguments:
        kinds: the kinds of the variables; new variables are added.
        active: the variables that have a tangent.
        directions: the tangents of inputs.
    """

    def __init__(self, kinds: dict[str, Any], active: Collection[str], directions: Mapping[str, str]) -> None:
        self.kinds = kinds
        self.active = active
        self.dots: dict[str, str] = dict(directions)
        self.out: ir.Block = []
        self.line = 0

    def dot(self, name: str) -> str:
        """Return the variable for the tangent of another variable."""
        if name not in self.dots:
            self.dots[name] = self.fresh(f"{name}_dot", self.kinds[name])
        return self.dots[name]

    def fresh(self, name: str, kind: Any) -> str:
        """Return a new variable."""
        found, number = name, 2
        while found in self.kinds:
            found, number = f"{name}{number}", number + 1
        self.kinds[found] = Num(kind.dtype) if isinstance(kind, Num) else kind
        return found

    def whole(self, block: ir.Block, inputs: Sequence[str], results: Sequence[str]) -> ir.Block:
        """Return the tangent of a program."""
        start = [self.zeros(name, 0) for name in inputs if name not in self.dots]
        found = self.block(block)
        return [*start, *found, *[self.zeros(name, 0) for name in results if name not in self.active]]

    def zeros(self, name: str, line: int) -> ir.Let:
        """Return a tangent of zeros."""
        return ir.Let(self.dot(name), self.zero_like(ir.Var(name, self.kinds[name])), line)

    def zero_like(self, expr: Any) -> Any:
        return ZERO if isinstance(expr.kind, Num) else ir.Call("zeros_like", (expr,), (("dtype", "d"),), expr.kind)

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, stmts: ir.Block) -> ir.Block:
        """Return the tangent of a block."""
        before, self.out = self.out, []
        for stmt in stmts:
            self.line = stmt.line
            self.statement(stmt)
        found, self.out = self.out, before
        return found

    def statement(self, stmt: Any) -> None:
        """Emit the tangent of a statement, and the statement."""
        if isinstance(stmt, (ir.For, ir.While)):
            self.out.append(attrs.evolve(stmt, body=self.block(stmt.body)))
        elif isinstance(stmt, ir.If):
            then, other = self.block(stmt.then), self.block(stmt.other)
            self.out.append(ir.If(stmt.test, then, other, stmt.line))
        elif isinstance(stmt, ir.Let) and stmt.name in self.active:
            self.on_let(stmt)
        elif isinstance(stmt, ir.LetMany) and any(name in self.active for name in stmt.names):
            self.on_many(stmt)
        elif isinstance(stmt, ir.Set) and stmt.base.name in self.active:
            value, tangent = self.diff(stmt.value)
            if tangent is not None or not stmt.op:
                base = ir.Var(self.dot(stmt.base.name), stmt.base.kind)
                self.out.append(attrs.evolve(stmt, base=base, value=ZERO if tangent is None else tangent))
            self.out.append(attrs.evolve(stmt, value=value))
        else:
            assert isinstance(stmt, (ir.Let, ir.LetMany, ir.Set, ir.Check))
            self.out.append(stmt)

    def on_let(self, stmt: ir.Let) -> None:
        """Emit a binding."""
        value, name = stmt.value, self.dot(stmt.name)
        if isinstance(value, ir.Call) and not value.is_view:
            self.bind(stmt.name, value, self.of_call(value))
            return
        base = base_of(value)
        if base is not None:  # the same view of the tangent
            view: Any = ir.Var(self.dot(base.name), base.kind)
            if isinstance(value, ir.Get):
                view = attrs.evolve(value, base=view)
            elif isinstance(value, ir.Call):
                view = attrs.evolve(value, args=(view, *value.args[1:]))
            self.out += [ir.Let(name, view, stmt.line), stmt]
            return
        found, tangent = self.diff(value)
        self.bind(stmt.name, found, tangent)

    def bind(self, name: str, value: Any, tangent: Any) -> None:
        """Bind a variable, and bind its tangent to a separate array or a number."""
        dot = self.dot(name)
        if isinstance(value.kind, Num):
            self.out += [ir.Let(dot, ZERO if tangent is None else tangent, self.line), ir.Let(name, value, self.line)]
            return
        if isinstance(tangent, ir.Call) or (tangent is not None and isinstance(value, ir.Call)):
            self.out += [ir.Let(dot, tangent, self.line), ir.Let(name, value, self.line)]
            return
        if tangent is not None and _has_shape_of(tangent, value):
            if isinstance(tangent, (ir.Var, ir.Get)) and base_of(tangent) is not None:
                tangent = ir.Call("copy", (tangent,), (), tangent.kind)
            self.out += [ir.Let(dot, tangent, self.line), ir.Let(name, value, self.line)]
            return
        if tangent is not None and not isinstance(tangent, ir.Const):
            tangent = self.temporary(tangent, f"{name}_dot")
        self.out += [ir.Let(name, value, self.line), self.zeros(name, self.line)]
        if tangent is not None:
            index = (ir.FULL,) * value.kind.ndim
            self.out.append(ir.Set(ir.Var(dot, self.kinds[name]), index, tangent, "", self.line))

    def on_many(self, stmt: ir.LetMany) -> None:
        """Emit a call with several results."""
        call = stmt.value
        if not call_has_gradient(call):
            self.out.append(stmt)
            return
        tangent = self.generic(call)
        names = tuple([self.dot(name) for name in stmt.names])
        if tangent is None:
            self.out += [stmt, *[self.zeros(name, stmt.line) for name in stmt.names]]
        else:
            self.out += [ir.LetMany(names, tangent, stmt.line), stmt]

    def temporary(self, value: Any, hint: str) -> ir.Var:
        """Bind an expression to a new variable and return the variable."""
        name = self.fresh(hint, value.kind)
        self.out.append(ir.Let(name, value, self.line))
        return ir.Var(name, self.kinds[name])

    # -- calls ---------------------------------------------------------------------------------------------------------

    def leaf(self, expr: Any) -> Any:
        """Return the tangent of a variable or a part of an array, or None for 0."""
        if isinstance(expr, ir.Var) and expr.name in self.active and is_float(expr.kind):
            return ir.Var(self.dot(expr.name), self.kinds[expr.name] if isinstance(expr.kind, Arr) else Num("d"))
        if isinstance(expr, ir.Get) and expr.base.name in self.active and is_float(expr.kind):
            return attrs.evolve(expr, base=ir.Var(self.dot(expr.base.name), expr.base.kind), safe=False)
        return None

    def of_call(self, call: ir.Call) -> Any:
        """Return the tangent of a call as a call or a sum of calls, or None for 0."""
        name, args = call.name, call.args
        if not call_has_gradient(call) or isinstance(call.kind, tuple):
            return None
        if name in ("full", "full_like"):
            tangent = self.leaf(args[-1])
            return None if tangent is None else attrs.evolve(call, args=(*args[:-1], tangent))
        if any(isinstance(arg, (ir.Op, ir.Lazy)) and is_float(arg.kind) for arg in args):
            raise NotSupported(f"an expression as an argument of {name} is not supported")
        tangents = [tuple([self.leaf(a) for a in arg]) if isinstance(arg, tuple) else self.leaf(arg) for arg in args]
        if name in LINEAR:
            if any(each is not None for each in tangents[1:]) or not {key for key, _ in call.options} <= OF_LINEAR:
                return self.generic(call)
            return None if tangents[0] is None else attrs.evolve(call, args=(tangents[0], *args[1:]))
        if name in JOINED and isinstance(args[0], tuple):
            parts = [(tangent, each) for tangent, each in zip(tangents[0], args[0])]
            if all(tangent is None for tangent, _ in parts):
                return None
            joined = tuple([self.temporary(self.zero_like(each), "zeros") if tangent is None else tangent
                            for tangent, each in parts])
            return attrs.evolve(call, args=(joined, *args[1:]))
        if name in PRODUCTS and len(args) == 2 and not call.options:
            terms = [attrs.evolve(call, args=(tangent, args[1]) if n == 0 else (args[0], tangent))
                     for n, tangent in enumerate(tangents) if tangent is not None]
            if len(terms) < 2:
                return terms[0] if terms else None
            one, other = [self.temporary(each, "t") for each in terms]
            return ir.Op("add", (one, other), call.kind)
        return self.generic(call)

    def generic(self, call: ir.Call) -> Any:
        """Return the tangent of a call computed by the library, or None for 0."""
        flat = [each for arg in call.args for each in (arg if isinstance(arg, tuple) else (arg,))]
        tangents = [self.leaf(each) for each in flat]
        if all(each is None for each in tangents):
            return None
        options = (
            ("function", call.name), ("options", call.options), ("along", tuple([t is not None for t in tangents])),
            ("groups", tuple([len(arg) if isinstance(arg, tuple) else -1 for arg in call.args])),
        )
        given = (*flat, *[each for each in tangents if each is not None])
        return ir.Call("tangent", given, options, call.kind)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def diff(self, expr: Any, lazily: bool = False) -> tuple[Any, Any]:
        """Return an expression, with parts bound to variables, and its tangent, or None for 0.

        Arguments:
            expr: the expression.
            lazily: whether it may remain unevaluated, so that no part may be bound to a variable.
        """
        if isinstance(expr, (ir.Var, ir.Get)):
            return expr, self.leaf(expr)
        if isinstance(expr, ir.Lazy) and expr.name == "if" and is_float(expr.kind):
            one, two = [self.diff(arg, True)[1] for arg in expr.args[1:]]
            if one is None and two is None:
                return expr, None
            parts = [ZERO if each is None else each for each in (one, two)]
            return expr, ir.Lazy("if", (expr.args[0], *parts), joint_kind(parts))
        if not isinstance(expr, ir.Op) or not is_float(expr.kind):
            return expr, None
        pairs = [self.diff(arg, lazily) for arg in expr.args]
        chosen = {n: partial_derivative(expr.name, n) for n, (_, tangent) in enumerate(pairs) if tangent is not None}
        slopes = {n: each for n, each in chosen.items() if each is not None}
        read = {n for each in slopes.values() for n in each.operands}
        args = [self.held(value, lazily) if n in read else value for n, (value, _) in enumerate(pairs)]
        value: Any = attrs.evolve(expr, args=tuple(args))
        if any(each.reads_result for each in slopes.values()):
            value = self.held(value, lazily)
        names = {f"_{n}": arg for n, arg in enumerate(args)} | {"_result": value}
        terms = []
        for n, each in slopes.items():
            tangent = self.held(pairs[n][1], lazily) if each.reads_twice else pairs[n][1]
            terms.append(each.along({**names, "_grad": tangent}))
        return value, _sum(terms)

    def held(self, value: Any, lazily: bool) -> Any:
        """Bind a value that is read several times to a variable."""
        if lazily or not isinstance(value, (ir.Op, ir.Lazy)):
            return value
        return self.temporary(value, "v")


def _sum(terms: Sequence[Any]) -> Any:
    found = None
    for term in terms:
        if isinstance(term, ir.Const) and term.value == 0.0:
            continue
        if found is None:
            found = term
        elif isinstance(term, ir.Op) and term.name == "neg":
            found = ir.Op("sub", (found, term.args[0]), joint_kind((found, term)))
        else:
            found = ir.Op("add", (found, term), joint_kind((found, term)))
    return found


def _has_shape_of(tangent: Any, value: Any) -> bool:
    """Return whether the tangent of an elementwise expression certainly has the shape of the expression."""
    if tangent.kind.ndim != value.kind.ndim:
        return False

    def arrays(expr: Any) -> set[Any]:
        places = [node for node in ir.nodes(expr) if isinstance(node, (ir.Var, ir.Get))]
        return {_key(node) for node in places if isinstance(node.kind, Arr)}

    if isinstance(value, ir.Get) and isinstance(tangent, ir.Get):
        return True
    return arrays(value) <= arrays(tangent)


def _key(node: Any) -> Any:
    return node.name if isinstance(node, ir.Var) else (node.base.name, repr(node.index))
