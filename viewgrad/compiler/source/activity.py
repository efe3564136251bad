"""Activity analysis: a variable has an adjoint if it depends on a differentiated input and a result depends on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .aliases import base_of
from .ir import Block, Call, Get, Lazy, Let, LetMany, Op, Set, Var, statements
from .scalar_forms import Reading, reading


def is_float(kind: Any) -> bool:
    """Return whether values of a kind can have a derivative."""
    return kind.dtype in "dfDF"


def has_complex(expr: Op) -> bool:
    """Return whether an operand or the result of an operator is complex."""
    return expr.kind.dtype == "D" or any(arg.kind.dtype == "D" for arg in expr.args)


def read_by(expr: Op, number: int) -> Reading:
    """Return the operands that the gradient of an operand reads."""
    return reading(expr.name, number, has_complex(expr))


def flows(expr: Any) -> Iterator[Any]:
    """Yield the variables, and parts of arrays, to which the derivative of an expression flows."""
    if isinstance(expr, (Var, Get)) and is_float(expr.kind):
        yield expr
    elif isinstance(expr, Op) and is_float(expr.kind):
        for number, arg in enumerate(expr.args):
            if is_float(arg.kind) and not read_by(expr, number).is_zero:
                yield from flows(arg)
    elif isinstance(expr, Lazy) and expr.name == "if" and is_float(expr.kind):
        yield from flows(expr.args[1])
        yield from flows(expr.args[2])
    elif isinstance(expr, Call) and call_has_gradient(expr):
        for arg in expr.args:
            for each in arg if isinstance(arg, tuple) else (arg,):
                yield from flows(each)


def call_has_gradient(call: Call) -> bool:
    """Return whether the results of a call depend differentiably on its arguments."""
    if call.name in ("zeros", "ones", "empty", "zeros_like", "ones_like", "empty_like", "eye", "identity"):
        return False
    kinds = call.kind if isinstance(call.kind, tuple) else (call.kind,)
    return any(is_float(kind) for kind in kinds)


def name_of(leaf: Any) -> str:
    """Return the variable of a leaf."""
    name: str = leaf.base.name if isinstance(leaf, Get) else leaf.name
    return name


def active_names(block: Block, roots: dict[str, str], wanted: Collection[str], results: Collection[str]) -> set[str]:
    """Return the variables that have an adjoint.

    Arguments:
        block: the program.
        roots: the representatives of variables that share memory.
        wanted: the inputs whose gradients are requested.
        results: the variables that contain results.
    """
    edges: list[tuple[str, str]] = []  # from variables read to variables written
    names: set[str] = set()

    def root(name: str) -> str:
        return roots.get(name, name)

    for stmt in statements(block):
        if isinstance(stmt, Let):
            if is_float(stmt.value.kind):
                names.add(stmt.name)
                edges += [(root(name_of(leaf)), root(stmt.name)) for leaf in flows(stmt.value)]
                base = base_of(stmt.value)
                if base is not None:
                    edges.append((root(base.name), root(stmt.name)))
        elif isinstance(stmt, LetMany):
            for name, kind in zip(stmt.names, stmt.value.kind):
                if is_float(kind):
                    names.add(name)
                    edges += [(root(name_of(leaf)), root(name)) for leaf in flows(stmt.value)]
        elif isinstance(stmt, Set) and is_float(stmt.base.kind):
            names.add(stmt.base.name)  # it may be an input without a gradient
            edges += [(root(name_of(leaf)), root(stmt.base.name)) for leaf in flows(stmt.value)]
    varied = _reached({root(name) for name in wanted}, edges)
    useful = _reached({root(name) for name in results}, [(b, a) for a, b in edges])
    both = varied & useful
    names |= set(wanted) | set(roots)
    return {name for name in names if root(name) in both}


def _reached(start: set[str], edges: list[tuple[str, str]]) -> set[str]:
    found = set(start)
    following: dict[str, list[str]] = {}
    for a, b in edges:
        following.setdefault(a, []).append(b)
    waiting = list(start)
    while waiting:
        for name in following.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found
