"""Elimination of jumps: `break`, `continue` and early `return` are rewritten as branches and flags.

The code after a branch that jumps moves into its other side, so most programs need no flag except the one that ends
their loop. The result is Python without jumps, in which `return` is an assignment to `VALUE`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Final

VALUE: Final = "result"
STOP: Final = "stop"  # the attribute of a loop with its flag
FLAGS: Final = ("_stop", "_skip", "_returned")
Stmts = list[ast.stmt]


def eliminate_jumps(body: Stmts, value: str = f"_{VALUE}") -> Stmts:
    """Return the statements of a function without jumps.

    Loops that may end early have an attribute `stop`, the name of the flag that ends them.

    Arguments:
        body: the statements; they are not changed.
        value: the variable for the function's return value.
    """
    writer = _Writer(value)
    found, jumps, always = writer.block(body, None)
    if not always:
        nothing = _assign(value, ast.Constant(None), body[-1])
        found = [nothing, *found] if "return" in jumps else [*found, nothing]
    return _without_unread_flags([_assign("_returned", ast.Constant(False), body[0]), *found])


def is_flag(name: str) -> bool:
    """Return whether a variable is a flag created by this module."""
    return name.startswith(FLAGS)


def stop_of(loop: ast.stmt) -> str | None:
    """Return the flag that ends a loop early."""
    return getattr(loop, STOP, None)


class _Writer:
    def __init__(self, value: str) -> None:
        self.value = value
        self.numbers = itertools.count(1)

    def block(self, stmts: Stmts, loop: int | None) -> tuple[Stmts, frozenset[str], bool]:
        """Return the statements of a block, the jumps that it may make, and whether it always jumps.

        Arguments:
            stmts: the block.
            loop: the number of the innermost enclosing loop.
        """
        found: Stmts = []
        jumps: frozenset[str] = frozenset()
        for number, stmt in enumerate(stmts):
            rest = stmts[number + 1 :]
            jump = self.jump(stmt, loop)
            if jump is not None:
                return found + jump[0], jumps | jump[1], True
            if isinstance(stmt, ast.Match):
                found.append(_assign(f"_subject{next(self.numbers)}", stmt.subject, stmt))
                stmt = self.branches(stmt, found[-1])
            if isinstance(stmt, ast.If):
                made = self.branch(stmt, rest, loop)
                if made is not None:
                    new, more, always = made
                    return [*found, new], jumps | more, always
                then, in_then, _ = self.block(stmt.body, loop)
                other, in_other, _ = self.block(stmt.orelse, loop)
                found.append(_if(stmt, stmt.test, then, other))
                inside = in_then | in_other
                if inside:  # may jump from inside
                    tail, more, always = self.block(rest, loop)
                    if tail:
                        found.append(_if(stmt, _none_of(inside, loop), tail, []))
                    return found, jumps | inside | more, always
                continue
            if isinstance(stmt, (ast.For, ast.While)):
                new_loop, leaves, flag = self.loop(stmt, loop)
                found += new_loop
                if _is_endless(stmt):
                    tail, more, _ = self.block([_return_set(stmt)], loop)
                    return found + tail, jumps | more, True
                if stmt.orelse:
                    rest = [*([_if(stmt, _is_not(flag), stmt.orelse, [])] if flag else stmt.orelse), *rest]
                if leaves:  # it may have returned
                    rest = [_if(stmt, ast.Name("_returned", ast.Load()), [_return_set(stmt)], rest)]
                if leaves or stmt.orelse:
                    tail, more, always = self.block(rest, loop)
                    return found + tail, jumps | more, always
                continue
            found.append(stmt)
        return found, jumps, False

    def jump(self, stmt: ast.stmt, loop: int | None) -> tuple[Stmts, frozenset[str]] | None:
        """Return the statements that replace a jump, and the kind of jump; None for other statements."""
        found: Stmts = []
        if isinstance(stmt, ast.Return):
            if stmt.value is not _SET:
                found.append(_assign(self.value, stmt.value or ast.Constant(None), stmt))
                found.append(_assign("_returned", ast.Constant(True), stmt))
            if loop is not None:
                found.append(_assign(f"_stop{loop}", ast.Constant(True), stmt))
            return found, frozenset(("return",))
        if isinstance(stmt, ast.Break):
            return [_assign(f"_stop{loop}", ast.Constant(True), stmt)], frozenset(("break",))
        if isinstance(stmt, ast.Continue):
            return [_assign(f"_skip{loop}", ast.Constant(True), stmt)], frozenset(("continue",))
        return ([stmt], frozenset()) if isinstance(stmt, ast.Raise) else None

    def branches(self, stmt: ast.Match, subject: ast.stmt) -> ast.stmt:
        """Return a `match` of numbers and strings as branches.

        Raises:
            NotImplementedError: for other patterns.
        """
        assert isinstance(subject, ast.Assign) and isinstance(subject.targets[0], ast.Name)
        name = subject.targets[0].id
        other: Stmts = []
        for case in reversed(stmt.cases):
            tests: list[ast.expr] = []
            patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            for pattern in patterns:
                if isinstance(pattern, ast.MatchValue):
                    tests.append(ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [pattern.value]))
                elif not isinstance(pattern, ast.MatchAs) or pattern.name or pattern.pattern:
                    raise NotImplementedError("`match` of something other than numbers and strings")
                else:
                    tests.append(ast.Constant(True))
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
            if case.guard is not None:
                test = ast.BoolOp(ast.And(), [test, case.guard])
            other = [_if(stmt, test, case.body, other)]
        return other[0]

    def branch(self, stmt: ast.If, rest: Stmts, loop: int | None) -> tuple[ast.stmt, frozenset[str], bool] | None:
        """Return a branch that jumps on one side, with the following statements moved into the other side; None for
        others.
        """
        then, in_then, then_always = self.block(stmt.body, loop)
        other, in_other, other_always = self.block(stmt.orelse, loop)
        if then_always and other_always:
            return _if(stmt, stmt.test, then, other), in_then | in_other, True
        if then_always and not in_other:
            other, in_other, always = self.block([*stmt.orelse, *rest], loop)
            return _if(stmt, stmt.test, then, other), in_then | in_other, always
        if other_always and not in_then:
            then, in_then, always = self.block([*stmt.body, *rest], loop)
            return _if(stmt, stmt.test, then, other), in_then | in_other, always
        return None

    def loop(self, stmt: ast.For | ast.While, outer: int | None) -> tuple[Stmts, bool, str | None]:
        """Return a loop and the statements before it, whether it may return, and the flag that ends it early."""
        number = next(self.numbers)
        body, jumps, _ = self.block(stmt.body, number)
        stops = bool(jumps & {"break", "return"})
        if "continue" in jumps:
            body = [_assign(f"_skip{number}", ast.Constant(False), stmt), *body]
        new = ast.For(stmt.target, stmt.iter, body, []) if isinstance(stmt, ast.For) else ast.While(stmt.test, body, [])
        ast.copy_location(new, stmt)
        setattr(new, STOP, f"_stop{number}" if stops else None)
        found: Stmts = []
        if stops:
            found.append(_assign(f"_stop{number}", ast.Constant(False), stmt))
        found.append(new)
        return found, "return" in jumps, f"_stop{number}" if stops else None


_SET: Final = ast.Constant("set")  # the return value was already assigned


def _return_set(at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Return(_SET), at)


def _is_endless(loop: ast.For | ast.While) -> bool:
    """Return whether a loop ends only by `return`."""
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Constant) or not loop.test.value:
        return False
    waiting: list[ast.AST] = list(loop.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Break):
            return False
        if not isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            waiting += ast.iter_child_nodes(node)
        elif not isinstance(node, ast.FunctionDef):
            waiting += node.orelse
    return True


def _is_not(flag: str) -> ast.expr:
    return ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))


def _none_of(jumps: frozenset[str], loop: int | None) -> ast.expr:
    of_return = "_returned" if loop is None else f"_stop{loop}"
    names = {"break": f"_stop{loop}", "continue": f"_skip{loop}", "return": of_return}
    flags = dict.fromkeys(names[jump] for jump in sorted(jumps))
    tests = [_is_not(name) for name in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _assign(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at))


def _if(at: ast.stmt, test: ast.expr, then: Stmts, other: Stmts) -> ast.stmt:
    new = ast.copy_location(ast.If(test, then or [ast.copy_location(ast.Pass(), at)], other), at)
    return ast.fix_missing_locations(new)


def _without_unread_flags(stmts: Stmts) -> Stmts:
    """Yield the statements without assignments to unused flags."""
    read = {node.id for stmt in stmts for node in ast.walk(stmt) if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)}
    read |= {name for stmt in stmts for node in ast.walk(stmt)
             if isinstance(node, (ast.For, ast.While)) and (name := stop_of(node)) is not None}

    def kept(block: Stmts) -> Iterator[ast.stmt]:
        for stmt in block:
            if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
                name = stmt.targets[0].id
                if is_flag(name) and name not in read:
                    continue
            if isinstance(stmt, ast.If):
                new: ast.stmt = _if(stmt, stmt.test, list(kept(stmt.body)), list(kept(stmt.orelse)))
            elif isinstance(stmt, (ast.For, ast.While)):
                body = list(kept(stmt.body)) or [ast.copy_location(ast.Pass(), stmt)]
                loop: ast.stmt = ast.While(stmt.test, body, []) if isinstance(stmt, ast.While) else ast.For(
                    stmt.target, stmt.iter, body, [])
                new = ast.copy_location(loop, stmt)
                setattr(new, STOP, stop_of(stmt))
            else:
                new = stmt
            yield new

    return list(kept(stmts))
