"""Variables that are None until they are assigned, as in `best = None` before a loop.

A flag states whether such a variable has a value. `x is None` reads the flag. If a test has shown that there is a
value, the variable is read like any other; otherwise its flag is checked first.
"""

from __future__ import annotations

import ast

from ..emitter import Emitter
from ..ir import Block, Const, Let, Op, Var, assigned, blocks_of
from ..value_types import BOOL
from ..values import OrNone, Static, is_none
from .scopes import Scope

UNSET = ".unset"  # the suffix of the names of markers


def shown(test: ast.expr, truth: bool) -> frozenset[str]:
    """Return the names of variables that are not None if a test is true, or false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return shown(test.operand, not truth)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
        return frozenset().union(*[shown(each, truth) for each in test.values])
    name = _tested(test)
    if name is not None and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) is truth:
        return frozenset((name,))
    return frozenset()


def _tested(node: ast.expr) -> str | None:
    """Return the name in `name is None` or `name is not None`, or None for other tests."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)) \
            and isinstance(node.left, ast.Name) and isinstance(node.comparators[0], ast.Constant) \
            and node.comparators[0].value is None:
        return node.left.id
    return None


def is_none_test(scope: Scope, node: ast.Compare) -> tuple[Var, bool] | None:
    """Return the variable that a test compares with None, and whether it is `is not`; None for other tests."""
    name = _tested(node)
    found = scope.env.get(name) if name is not None else None
    return (found.value, isinstance(node.ops[0], ast.IsNot)) if isinstance(found, OrNone) else None


def flag_of(name: str) -> Var:
    """Return the flag of a variable."""
    return Var(f"{name}_known", BOOL)


def unset(out: Emitter, name: str, value: object) -> None:
    """Mark that a variable is None from here on; the marker becomes a statement if the variable has a flag."""
    if isinstance(value, Static) and is_none(value):
        out.emit(Let(name + UNSET, Const(True, BOOL), out.line))


def with_unset_flags(block: Block, flagged: set[str], bases: dict[str, str]) -> Block:
    """Replace markers by statements that reset flags.

    Arguments:
        block: the statements.
        flagged: the variables that have flags.
        bases: the original names of variables.
    """
    found: Block = []
    for stmt in block:
        for inner in blocks_of(stmt):
            inner[:] = with_unset_flags(inner, flagged, bases)
        names = assigned(stmt)
        if len(names) == 1 and names[0].endswith(UNSET):
            base = names[0].removesuffix(UNSET)
            found += [Let(flag_of(name).name, Const(False, BOOL), stmt.line) for name in sorted(flagged)
                      if bases.get(name, name) == base]
        else:
            found.append(stmt)
    return found


def negated(flag: Var) -> Op:
    """Return whether a flag is not set."""
    return Op("equal", (flag, Const(False, BOOL)), BOOL)
