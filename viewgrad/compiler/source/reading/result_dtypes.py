"""Results whose dtype depends on the branches taken, as in `total = 0` before a loop that adds elements.

The program computes them in the greater dtype, and a flag states whether the value has a lesser one. If it has, the
function runs eagerly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..emitter import Emitter
from ..ir import Block, Check, Const, Get, Lazy, Let, Op, Var, assigned, blocks_of, nodes, statements
from ..value_types import BOOL, is_uncertain
from .optional import negated

ARITHMETIC: Final = frozenset({"add", "sub", "mul"})  # operators that promote their operands to the largest dtype


def check_dtypes(out: Emitter, results: Iterable[Var]) -> None:
    """Check at the end of a program that its results have the dtypes of their kinds.

    Arguments:
        out: the emitter, whose statements are those of the program.
        results: the results whose dtypes are uncertain.

    Raises:
        NotSupported: if the dtype of a result cannot be followed.
    """
    names = {result.name for result in results}
    waiting = list(names)
    lets = [stmt for stmt in statements(out.buffer) if isinstance(stmt, Let)]
    while waiting:
        name = waiting.pop()
        for stmt in lets:
            if stmt.name == name:
                found = {node.name for node in nodes(stmt.value) if isinstance(node, Var) and is_uncertain(node.kind)}
                waiting += found - names
                names |= found
    if not names:
        return
    out.kinds |= {_flag(name).name: BOOL for name in names}
    start: Block = [Let(_flag(name).name, Const(False, BOOL), 0) for name in sorted(names)]
    out.buffer[:] = start + _flagged(out, out.buffer, names)
    for result in results:
        out.emit(Check(negated(_flag(result.name)), out.line))


def _flag(name: str) -> Var:
    return Var(f"{name}_least", BOOL)


def _flagged(out: Emitter, block: Block, names: set[str]) -> Block:
    """Return the statements with a statement before each assignment of a variable that assigns its flag."""
    found: Block = []
    for stmt in block:
        for inner in blocks_of(stmt):
            inner[:] = _flagged(out, inner, names)
        for name in assigned(stmt):
            if name in names:
                if not isinstance(stmt, Let):
                    raise out.refused("a result with a different dtype in each branch is not supported")
                found.append(Let(_flag(name).name, _has_lesser(out, stmt.value, out.kinds[name].dtype), stmt.line))
        found.append(stmt)
    return found


def _has_lesser(out: Emitter, expr: Any, dtype: str) -> Any:
    """Return an expression of whether the value of a number has a lesser dtype than the given one."""
    if expr.kind.dtype != dtype:
        return Const(True, BOOL)
    if not is_uncertain(expr.kind):
        return Const(False, BOOL)
    if isinstance(expr, Var):
        return _flag(expr.name)
    if isinstance(expr, Lazy) and expr.name == "if":
        test, *sides = expr.args
        return Lazy("if", (test, *[_has_lesser(out, side, dtype) for side in sides]), BOOL)
    if isinstance(expr, Get):  # an item of a list that holds integers as floating-point numbers, and is read as one
        return Const(False, BOOL)
    if isinstance(expr, Op) and expr.name == "as_float":  # of a value that keeps its dtype in the function
        return _has_lesser(out, expr.args[0], dtype)
    if isinstance(expr, Op):  # of arithmetic, if all operands have lesser dtypes; otherwise conservatively, if any has
        flags = [_has_lesser(out, each, each.kind.dtype) for each in expr.args if is_uncertain(each.kind)]
        while len(flags) > 1:
            flags[:2] = [Lazy("and" if expr.name in ARITHMETIC else "or", (flags[0], flags[1]), BOOL)]
        return flags[0]
    raise out.refused("a result with a different dtype in each branch is not supported")
