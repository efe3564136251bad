"""The verifier of the intermediate representation, whose invariants are checked between passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .ir import NEW, Block, Call, Get, Let, LetMany, Set, Var, expressions_of, nodes, statements
from .value_types import Arr


class IRError(AssertionError):
    """Raised if a pass has produced an ill-formed program."""


def verify_program(block: Block, kinds: Mapping[str, Any], inputs: Collection[str]) -> Block:
    """Return the program, after verifying it.

    Each variable has a kind, and its uses agree with it in their dimensions; inputs are not bound; an index has an item
    for each axis; a call of a function of arrays is the whole value of a statement.

    Raises:
        IRError: if an invariant is violated.
    """
    for stmt in statements(block):
        if isinstance(stmt, (Let, LetMany)):
            for name in (stmt.name,) if isinstance(stmt, Let) else stmt.names:
                if name in inputs:
                    raise IRError(f"input {name} is bound")
                if name not in kinds:
                    raise IRError(f"{name} has no kind")
        if isinstance(stmt, Let) and kinds[stmt.name].ndim != stmt.value.kind.ndim:
            raise IRError(f"{stmt.name} is bound to a value of {stmt.value.kind.ndim} dimensions")
        if isinstance(stmt, Set):
            _index(stmt.base, stmt.index)
        for expr in expressions_of(stmt):
            for node in nodes(expr):
                if isinstance(node, Var) and kinds[node.name].ndim != node.kind.ndim:
                    raise IRError(f"{node.name} is used with {node.kind.ndim} dimensions")
                if isinstance(node, Get):
                    _index(node.base, node.index)
                if isinstance(node, Call) and node is not expr:
                    raise IRError(f"a call of {node.name} inside an expression")
    return block


def _index(base: Var, index: tuple[Any, ...]) -> None:
    count = 0
    for item in index:
        if item is not NEW:
            kind = getattr(item, "kind", None)
            count += kind.ndim if isinstance(kind, Arr) and kind.dtype == "?" else 1
    if count != base.kind.ndim:
        raise IRError(f"an index of {count} items for {base.name}")
