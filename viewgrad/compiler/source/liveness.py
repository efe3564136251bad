"""Liveness: the variables that statements read before they bind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .ir import Block, For, Get, If, Pop, Set, Var, While, assigned, blocks_of, expressions_of, nodes, statements


def reads_of(stmt: Any) -> Iterator[str]:
    """Yield the variables that a statement reads itself, excluding its blocks."""
    for expr in expressions_of(stmt):
        for node in nodes(expr):
            if isinstance(node, Var):
                yield node.name
    if isinstance(stmt, Set):
        yield stmt.base.name
    if isinstance(stmt, (For, While)):
        if stmt.stop is not None:
            yield stmt.stop
        if isinstance(stmt, For) and stmt.down and stmt.last is not None:
            yield stmt.last
        if isinstance(stmt, While) and stmt.down and stmt.count is not None:
            yield stmt.count
    if isinstance(stmt, Pop) and isinstance(stmt.target, Get):
        yield stmt.target.base.name


def is_read_first(stmts: Block, name: str) -> bool:
    """Return whether a variable's previous value may be read by the given statements."""
    return use_of(stmts, name)[0]


def use_of(stmts: Block, name: str) -> tuple[bool, bool]:
    """Return whether a variable may be read before the statements bind it, and whether they always bind it."""
    for stmt in stmts:
        if name in reads_of(stmt):
            return True, False
        if isinstance(stmt, If):
            then, other = use_of(stmt.then, name), use_of(stmt.other, name)
            if then[0] or other[0]:
                return True, False
            if then[1] and other[1]:
                return False, True
        elif isinstance(stmt, (For, While)):
            if name in assigned(stmt) and not (isinstance(stmt, For) and stmt.name == name) and not stmt.down:
                return False, True
            if use_of(stmt.body, name)[0]:
                return True, False
        elif name in assigned(stmt):
            return False, True
    return False, False


def read_before_bound(stmts: Block, bound: set[str]) -> set[str]:
    """Return the variables whose previous values may be read by the given statements.

    Arguments:
        stmts: the statements.
        bound: the variables that are already bound; those that the statements always bind are added.
    """
    found: set[str] = set()
    for stmt in stmts:
        if not isinstance(stmt, (If, For, While)) and blocks_of(stmt):
            found.update(name for inner in statements([stmt]) for name in reads_of(inner))
            continue
        found |= set(reads_of(stmt)) - bound
        if isinstance(stmt, If):
            then, other = set(bound), set(bound)
            found |= read_before_bound(stmt.then, then) | read_before_bound(stmt.other, other)
            bound |= then & other
        elif isinstance(stmt, (For, While)):
            inside = bound | set(assigned(stmt))
            found |= read_before_bound(stmt.body, inside)
            if not stmt.down:
                bound |= set(assigned(stmt)) - ({stmt.name} if isinstance(stmt, For) else set())
        else:
            bound.update(assigned(stmt))
    return found
