"""Loops over generator functions: the body of the loop replaces `yield`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..jumps import STOP, eliminate_jumps, stop_of
from ..syntax_trees import stores_of

MOST: Final = 4  # the maximum number of `yield` statements in a generator
LOOPS: Final = (ast.For, ast.While)


def is_generator(node: Any) -> bool:
    """Return whether the syntax tree of a function is that of a generator or a coroutine."""
    kinds = (ast.Yield, ast.YieldFrom, ast.Await)
    return isinstance(node, ast.FunctionDef) and any(isinstance(each, kinds) for each in _own_nodes(node.body))


def free_names(node: ast.FunctionDef) -> set[str]:
    """Return the names that a function reads but does not bind."""
    bound = {*stores_of(node), *_parameters(node)}
    return {each.id for each in _own_nodes(node.body) if isinstance(each, ast.Name)} - bound


def loop_over_generator(node: ast.FunctionDef, loop: ast.For, prefix: str) -> list[ast.stmt]:
    """Return the statements of a loop over a call of a generator function.

    Arguments:
        node: the function.
        loop: the loop, without jumps.
        prefix: the prefix of the names of the variables of the function.

    Raises:
        NotImplementedError: for a generator that is not supported.
    """
    assert isinstance(loop.iter, ast.Call)
    given = _arguments(node, loop.iter)
    own = list(_own_nodes(node.body))
    yields = [each for each in own if isinstance(each, ast.Yield)]
    taken = {id(each.value) for each in own if isinstance(each, ast.Expr) and isinstance(each.value, ast.Yield)}
    others = (ast.Return, ast.YieldFrom, ast.Await, ast.Try, ast.With, ast.Lambda, ast.FunctionDef, ast.ListComp,
              ast.GeneratorExp, ast.Nonlocal, ast.Global, ast.NamedExpr)
    if any(isinstance(each, others) for each in own) or len(yields) > MOST or len(taken) < len(yields):
        raise NotImplementedError("this form of generator")
    body = [each for each in eliminate_jumps(copy.deepcopy(node.body), "_ended") if not _is_of_return(each)]
    names = {name: prefix + name for name in (*stores_of(body), *given)}
    body = [_Renamed(names).visit(each) for each in body]
    stop = stop_of(loop)
    if stop is not None:
        last = body[-1]
        is_simple = isinstance(last, LOOPS) and stop_of(last) is None and not any(
            isinstance(inner, LOOPS) and any(isinstance(each, ast.Yield) for each in ast.walk(inner))
            for stmt in last.body for inner in ast.walk(stmt)
        )
        yielding = [each for each in body if any(isinstance(inner, ast.Yield) for inner in ast.walk(each))]
        at_end = isinstance(last, LOOPS) and isinstance(last.body[-1], ast.Expr) and isinstance(
            last.body[-1].value, ast.Yield)
        if not is_simple or yielding != [last] or not at_end or len(yields) > 1:
            raise NotImplementedError("`break` or `return` in a loop over a generator")
        setattr(last, STOP, stop)
    start: list[ast.stmt] = [
        ast.copy_location(ast.Assign([ast.Name(prefix + name, ast.Store())], value), loop)
        for name, value in given.items()
    ]
    found = [*start, *_with_body(body, loop)]
    for stmt in found:
        ast.fix_missing_locations(stmt)
    return found


def _with_body(stmts: Sequence[ast.stmt], loop: ast.For) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Yield):
            value = stmt.value.value or ast.Constant(None)
            found.append(ast.copy_location(ast.Assign([copy.deepcopy(loop.target)], value), loop))
            found += copy.deepcopy(loop.body)
            continue
        for name in ("body", "orelse"):
            inner = getattr(stmt, name, None)
            if isinstance(inner, list):
                setattr(stmt, name, _with_body(inner, loop))
        found.append(stmt)
    return found


def _parameters(node: ast.FunctionDef) -> list[str]:
    return [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def _arguments(node: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a call by parameter name."""
    names = _parameters(node)
    spec = node.args
    if spec.vararg or spec.kwarg or spec.kwonlyargs or len(call.args) > len(names) or any(
        isinstance(each, ast.Starred) for each in call.args
    ) or any(each.arg not in names for each in call.keywords):
        raise NotImplementedError("a generator with these arguments")
    found = dict(zip(names, call.args)) | {each.arg: each.value for each in call.keywords if each.arg is not None}
    defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults))
    for name in names:
        if name not in found:
            if not isinstance(defaults.get(name), ast.Constant):
                raise NotImplementedError("a generator with these arguments")
            found[name] = defaults[name]
    return {name: found[name] for name in names}


def _is_of_return(stmt: ast.stmt) -> bool:
    """Return whether a statement only prepares a `return`."""
    return isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name) and stmt.targets[0].id in (
        "_returned", "_ended")


class _Renamed(ast.NodeTransformer):
    """Renames variables, together with the flags of loops."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit(self, node: Any) -> Any:
        """Rename the names in a node."""
        if isinstance(node, ast.Name):
            node.id = self.names.get(node.id, node.id)
        flag = stop_of(node) if isinstance(node, LOOPS) else None
        if flag is not None:
            setattr(node, STOP, self.names.get(flag, flag))
        return self.generic_visit(node)


def _own_nodes(body: Sequence[ast.stmt]) -> Any:
    """Yield the nodes of statements, excluding those inside nested functions."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
