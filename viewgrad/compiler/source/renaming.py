"""Renaming: variables that are rebound at the top level of a program get new names.

A binding outside all loops and branches replaces the previous value for the rest of the program. With a name of its own
it is known to be the only binding, as after `a = a.copy()`, so analyses of its indices apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .ir import Block, Check, For, If, Let, LetMany, Set, Var, While, assigned, get, mapped, statements


def rename_versions(block: Block, kinds: dict[str, Any], fresh: Callable[[str], str]) -> tuple[Block, dict[str, str]]:
    """Return the program, and the final names of renamed variables.

    Arguments:
        block: the program as read.
        kinds: the kinds of the variables; new variables are added.
        fresh: a function that returns an unused name.
    """
    names: dict[str, str] = {}
    bound: set[str] = set()
    found: Block = []
    for stmt in block:
        if isinstance(stmt, (Let, LetMany)):
            value = _expr(stmt.value, names)
            for name in assigned(stmt):
                if name in bound:
                    names[name] = fresh(name)
                    kinds[names[name]] = kinds[name]
                bound.add(name)
            new = [names.get(name, name) for name in assigned(stmt)]
            found.append(Let(new[0], value, stmt.line) if isinstance(stmt, Let) else LetMany(
                tuple(new), value, stmt.line))
        else:
            found.append(renamed(stmt, names) if names else stmt)
            bound.update(name for each in statements([stmt]) for name in assigned(each))
    return found, names


def _expr(expr: Any, names: Mapping[str, str]) -> Any:
    if not names:
        return expr
    return mapped(expr, lambda node: attrs.evolve(node, name=names[node.name])
                  if isinstance(node, Var) and node.name in names else node)


def renamed(stmt: Any, names: Mapping[str, str]) -> Any:
    """Return a statement with renamed variables."""
    def own(name: Any) -> Any:
        return names.get(name, name)

    def block(stmts: Block) -> Block:
        return [renamed(each, names) for each in stmts]

    if isinstance(stmt, Let):
        return Let(own(stmt.name), _expr(stmt.value, names), stmt.line)
    if isinstance(stmt, LetMany):
        return LetMany(tuple(map(own, stmt.names)), _expr(stmt.value, names), stmt.line)
    if isinstance(stmt, Set):
        place = _expr(get(stmt.base, stmt.index), names)
        return attrs.evolve(stmt, base=place.base, index=place.index, value=_expr(stmt.value, names))
    if isinstance(stmt, Check):
        return attrs.evolve(stmt, test=_expr(stmt.test, names))
    if isinstance(stmt, For):
        return attrs.evolve(stmt, name=own(stmt.name), low=_expr(stmt.low, names), high=_expr(stmt.high, names),
                            body=block(stmt.body), last=own(stmt.last), stop=own(stmt.stop))
    if isinstance(stmt, While):
        return attrs.evolve(stmt, test=_expr(stmt.test, names), body=block(stmt.body), count=own(stmt.count),
                            stop=own(stmt.stop))
    assert isinstance(stmt, If)
    return If(_expr(stmt.test, names), block(stmt.then), block(stmt.other), stmt.line)
