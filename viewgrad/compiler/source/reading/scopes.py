"""The scope of a function being read: its variables, and queries of its syntax tree."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..ir import Block, Check, Const, Op, Var, nodes
from ..value_types import BOOL, Num
from ..values import CONFLICT, Cell, Maybe, OrNone, Path, RecordValue, Ref, Static, TupleValue, joined_values


@attrs.define(eq=False)
class Scope:
    """The variables of a function being read.

    Attributes:
        function: the function; None for lambdas and nested functions.
        outer: the enclosing scope.
        stores: the number of assignments to each of its variables.
        prefix: the prefix of their names in the program.
        env: their values.
        nonlocals: the variables of enclosing functions that it assigns.
        present: the variables that may be None elsewhere, but not here.
    """

    outer: Scope | None
    stores: dict[str, int]
    prefix: str
    variables: dict[str, Any]  # the globals of the module
    path: Path | None  # the path to the function with these globals and cells
    cells: dict[str, int]
    file: str
    env: dict[str, Any] = attrs.Factory(dict)
    body: Sequence[Any] = ()
    nonlocals: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()


@attrs.frozen(eq=False)
class Bound:
    """A method of a record."""

    function: types.FunctionType
    owner: RecordValue


@attrs.frozen(eq=False)
class Deferred:
    """A comprehension of unknown length among the arguments of a call."""

    node: ast.ListComp | ast.GeneratorExp
    scope: Scope


@attrs.frozen(eq=False)
class Partial:
    """A function with some arguments bound."""

    function: Any
    args: list[Any]
    keywords: dict[str, Any]


@attrs.frozen(eq=False)
class DictGet:
    """The method `get` of a dict."""

    owner: RecordValue


@attrs.frozen(eq=False)
class ConstantFunction:
    """A function with a known result."""

    value: Any


def unused_name(scope: Scope, hint: str) -> str:
    """Return a name that is not a variable of a function."""
    number = 1
    while f"{hint}{number}_" in scope.stores or f"{hint}{number}_" in scope.env:
        number += 1
    name = f"{hint}{number}_"
    scope.stores[name] = 2
    return name


def unboxed(value: Var) -> Var:
    """Return a number that cannot be written to."""
    kind = value.kind
    assert isinstance(kind, Num)
    return Var(value.name, attrs.evolve(kind, boxed=False))


def variables_in(value: Any) -> Iterator[Var]:
    if isinstance(value, TupleValue):
        for item in value.items:
            yield from variables_in(item)
    elif isinstance(value, RecordValue):
        for item in value.fields.values():
            yield from variables_in(item)
    elif isinstance(value, Ref):
        yield from variables_in(value.number)
    elif isinstance(value, Cell):
        yield value.store
    elif isinstance(value, Var):
        yield value


def joined_scopes(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name in dict.fromkeys((*a, *b)):
        if name in a and name in b:
            found[name] = joined_values(a[name], b[name])
        else:
            value = a.get(name, b.get(name))
            found[name] = at_times(value)
    return found


def at_times(value: Any) -> Any:
    """Return the value of a name that may be unbound."""
    if isinstance(value, OrNone):
        return CONFLICT
    return value if isinstance(value, Maybe) or value is CONFLICT else Maybe(value)


def means_the_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if a is CONFLICT or b is CONFLICT:  # also an object: the result of joining it with any other value
        return False
    if isinstance(a, Var) and isinstance(b, Var):
        return a == b
    if isinstance(a, TupleValue) and isinstance(b, TupleValue):
        return len(a.items) == len(b.items) and all(map(means_the_same, a.items, b.items))
    if isinstance(a, RecordValue) and isinstance(b, RecordValue):
        return list(a.fields) == list(b.fields) and all(map(means_the_same, a.fields.values(), b.fields.values()))
    if isinstance(a, Ref) and isinstance(b, Ref):
        return a.heap is b.heap and a.of == b.of and means_the_same(a.number, b.number)
    if isinstance(a, Maybe) and isinstance(b, Maybe):
        return type(a) is type(b) and means_the_same(a.value, b.value)
    return joined_values(a, b) is a if isinstance(a, Static) else a == b


def always_raises(block: Block) -> bool:
    """Return whether a block always gives up."""
    return bool(block) and isinstance(block[-1], Check) and block[-1].test == Const(False, BOOL)


def has_calls(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def is_used_outside(scope: Scope, loop: ast.For, name: str) -> bool:
    """Return whether a loop variable is read outside its loops."""
    inside = set()
    body = scope.body
    for stmt in body:
        for each in ast.walk(stmt):
            if isinstance(each, ast.For) and isinstance(each.target, ast.Name) and each.target.id == name:
                inside |= {id(node) for part in each.body for node in ast.walk(part)}
    stores = {id(node) for part in loop.body for node in ast.walk(part)
              if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)}
    return bool(stores) or any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load) and id(each) not in inside
        for stmt in body for each in ast.walk(stmt)
    )


def is_updated(node: ast.AST, name: str) -> bool:
    """Return whether a variable is assigned in place."""
    return any(isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id == name
               for each in ast.walk(node))


def grows(name: str, value: Any) -> bool:
    """Return whether an integer is multiplied into itself."""
    grows = any(isinstance(each, Op) and each.name in ("mul", "pow", "left_shift") for each in nodes(value))
    return grows and any(isinstance(each, Var) and each.name == name for each in nodes(value))


def keyword_of(stmt: ast.stmt) -> str:
    return {"With": "with", "Try": "try", "Global": "global", "Nonlocal": "nonlocal", "ClassDef": "class",
            "Import": "import", "ImportFrom": "import", "Match": "match"}.get(type(stmt).__name__, type(stmt).__name__)


def identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "f"
