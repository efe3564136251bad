"""Elimination of `try` statements, which are rewritten as branches and flags.

An error in a program ends it, and the function runs eagerly with its handlers. The handlers of errors raised by
operations are therefore omitted. A `raise` inside a `try` that catches it becomes a branch to the handler, if there is
no loop in between.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

Stmts = list[ast.stmt]


def eliminate_try_statements(body: Stmts, error_of: Callable[[ast.Name], Any]) -> Stmts:
    """Return the statements of a function without `try`; the original is not changed.

    Arguments:
        body: the statements.
        error_of: a function that returns the exception class that a name refers to, or None for other names.

    Raises:
        NotImplementedError: for a `try` that is not supported.
    """
    if not any(isinstance(node, (ast.Try, ast.TryStar)) for stmt in body for node in ast.walk(stmt)):
        return body
    return _Writer(error_of).block(copy.deepcopy(body))


class _Writer:
    def __init__(self, error_of: Callable[[ast.Name], Any]) -> None:
        self.error_of = error_of
        self.numbers = itertools.count(1)

    def block(self, stmts: Stmts) -> Stmts:
        found: Stmts = []
        for stmt in stmts:
            if isinstance(stmt, ast.TryStar):
                raise NotImplementedError("`except*`")
            if isinstance(stmt, ast.Try):
                found += self.attempt(stmt)
                continue
            for name in ("body", "orelse"):
                inner = getattr(stmt, name, None)
                if isinstance(inner, list) and not isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
                    setattr(stmt, name, self.block(inner))
            if isinstance(stmt, ast.Match):
                for case in stmt.cases:
                    case.body = self.block(case.body)
            found.append(stmt)
        return found

    def attempt(self, stmt: ast.Try) -> Stmts:
        """Return the statements that replace a `try`."""
        body = self.block(stmt.body)
        if stmt.finalbody and _leaves([*stmt.body, *stmt.orelse, *[each for h in stmt.handlers for each in h.body]]):
            raise NotImplementedError("`finally` after `break`, `continue` or `return`")
        rest = [*self.block(stmt.orelse)]
        caught = [self.caught_by(stmt.handlers, each) for each in _raises(body)]
        is_caught = any(handler is not None for handler in caught)
        made = self.branches(stmt, body, rest) if is_caught else [*body, *rest]
        return [*made, *self.block(stmt.finalbody)]

    def branches(self, stmt: ast.Try, body: Stmts, rest: Stmts) -> Stmts:
        """Return the body with flags in place of errors, and the handlers as branches.

        Statements that follow one that may have raised run only if it has not.
        """
        flag = f"_raised{next(self.numbers)}"
        used: set[int] = set()

        def test() -> ast.expr:
            found: ast.expr = _at(ast.Compare(ast.Name(flag, ast.Load()), [ast.Eq()], [ast.Constant(-1)]), stmt)
            return found

        def flagged(stmts: Stmts) -> tuple[Stmts, bool]:
            """Return the statements, and whether one of them may raise an exception that is caught."""
            found: Stmts = []
            for number, each in enumerate(stmts):
                if isinstance(each, ast.Raise):
                    handler = self.caught_by(stmt.handlers, each)
                    if handler is not None:
                        used.add(handler)
                        return [*found, _at(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(handler)),
                                            each)], True
                if isinstance(each, ast.If):
                    then, in_then = flagged(each.body)
                    other, in_other = flagged(each.orelse)
                    if in_then or in_other:
                        new = _at(ast.If(each.test, then, other), each)
                        tail, _ = flagged(stmts[number + 1 :])
                        return [*found, new, *([_at(ast.If(test(), tail, []), each)] if tail else [])], True
                found.append(each)
            return found, False

        start = _at(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(-1)), stmt)
        found, _ = flagged(body)
        other = rest
        for number in sorted(used, reverse=True):
            handler = stmt.handlers[number]
            if handler.name is not None and any(
                isinstance(node, ast.Name) and node.id == handler.name for each in handler.body
                for node in ast.walk(each)
            ):
                raise NotImplementedError("an `except` clause that uses the exception")
            if any(isinstance(node, ast.Raise) and node.exc is None for each in handler.body
                   for node in ast.walk(each)):
                raise NotImplementedError("an `except` clause that raises the exception again")
            compared = ast.Compare(ast.Name(flag, ast.Load()), [ast.Eq()], [ast.Constant(number)])
            other = [_at(ast.If(_at(compared, stmt), self.block(handler.body), other), handler.body[0])]
        return [start, *found, *other]

    def caught_by(self, handlers: Sequence[ast.ExceptHandler], stmt: ast.Raise) -> int | None:
        """Return the number of the handler that catches an error, or None if it is unknown."""
        error = self.error_named(stmt.exc)
        if error is None or stmt.cause is not None:
            return None
        for number, handler in enumerate(handlers):
            if handler.type is None:
                return number
            for kind in handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]:
                caught = self.error_named(kind)
                if caught is None:
                    return None
                if issubclass(error, caught):
                    return number
        return None

    def error_named(self, node: ast.expr | None) -> Any:
        """Return the class of errors that an expression refers to or instantiates, or None for others."""
        if isinstance(node, ast.Call):
            inside = [each for part in (*node.args, *node.keywords) for each in ast.walk(part)]
            if any(isinstance(each, (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute)) for each in inside):
                return None  # it may raise another error
            node = node.func
        return self.error_of(node) if isinstance(node, ast.Name) else None


def _at(node: Any, stmt: ast.AST) -> Any:
    """Return a new node at the source location of another."""
    return ast.fix_missing_locations(ast.copy_location(node, stmt))


def _raises(stmts: Sequence[ast.stmt]) -> list[ast.Raise]:
    """Return the errors raised in a block or its branches, excluding loops."""
    found: list[ast.Raise] = []
    for stmt in stmts:
        if isinstance(stmt, ast.Raise):
            found.append(stmt)
        elif isinstance(stmt, ast.If):
            found += _raises([*stmt.body, *stmt.orelse])
    return found


def _leaves(stmts: Sequence[ast.stmt]) -> bool:
    """Return whether any of the given statements may jump."""
    return any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for stmt in stmts for node in ast.walk(stmt))
