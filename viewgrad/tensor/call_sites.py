"""The source location at which a tensor is converted to a plain value, and how the value is used there.

CPython stores the columns of the instruction that a frame executes, so the expression is found in the syntax tree of
the file. Without the source, or without columns (`-X no_debug_ranges`), the instructions themselves are inspected.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import threading
import types
import warnings
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import Any, Final

import attrs

_parsing: Final = threading.RLock()

# The kinds of instructions that request a value.
CALL: Final = "call"
STORE: Final = "store"  # an assignment to an element: `plain[i] = x`
FORMAT: Final = "format"  # string formatting with `%`
ITERATION: Final = "iteration"  # a step of an iterator that converts, such as `map(float, xs)`
OTHER: Final = "other"

ITERATING: Final = ("FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "SET_UPDATE", "CALL_FUNCTION_EX")
CONSUMING: Final = (
    *("COMPARE_OP", "CONTAINS_OP", "UNARY_NOT", "TO_BOOL", "RAISE_VARARGS"),
    *("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"),
)
IDLE: Final = ("CACHE", "PRECALL", "RESUME", "EXTENDED_ARG", "COPY", "SWAP", "NOP", "NOT_TAKEN")
OPERANDS: Final = (
    *("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"),
    *("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"),
)
MISSING: Final = object()


@attrs.frozen(eq=False)
class Site:
    """The expression that requests a plain value, and its context.

    Attributes:
        kind: the kind of the instruction, one of the constants above.
        is_consumed: whether the value is used only in a comparison, a condition, an assertion, an error or a string.
        is_discarded: whether the statement is an expression whose value is not used: `losses.append(float(loss))`.
        is_stored: whether a module's own code assigns the value itself to a name: `last = float(loss)`.
        is_flat: whether the assignment is to `plain.flat[i]`.
        callee: the function of a call; None if it cannot be determined.
        around: the functions called with the value as an argument, innermost first.
        formats: the left operands of `%` around it.
        names: the names that the code uses if there is no source; otherwise None.
        written: the variable to whose element or attribute the value is assigned.
    """

    kind: str
    is_consumed: bool = False
    is_discarded: bool = False
    is_stored: bool = False
    is_flat: bool = False
    callee: ast.expr | None = None
    around: tuple[ast.expr, ...] = ()
    formats: tuple[ast.expr, ...] = ()
    names: frozenset[str] | None = None
    written: ast.expr | None = None


def instruction_of(frame: FrameType) -> str:
    """Return the name of the bytecode instruction that a frame is executing, such as "BINARY_OP"."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


def site_of(frame: FrameType) -> Site:
    """Return the site that a frame is executing."""
    return _site(frame.f_code, frame.f_lasti)


def resolved(expression: ast.expr | None, frame: FrameType) -> Any:
    """Return the object that a name, or an attribute of a module or class, refers to in a frame; None if unknown.

    No code of the program is run: attributes of other objects are not looked up.
    """
    if isinstance(expression, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            found = names.get(expression.id, MISSING)
            if found is not MISSING:
                return found
    if isinstance(expression, ast.Attribute):
        owner = resolved(expression.value, frame)
        if isinstance(owner, types.ModuleType | type):
            return vars(owner).get(expression.attr)
    return None


# -- by the source -----------------------------------------------------------------------------------------------------


@functools.lru_cache(2048)
def _site(code: CodeType, at: int) -> Site:
    name = dis.opname[code.co_code[at]]
    kind = (
        STORE
        if name.startswith(("STORE_SUBSCR", "STORE_SLICE"))
        else CALL
        if name.startswith(("CALL", "PRECALL")) and name != "CALL_FUNCTION_EX"
        else ITERATION
        if name in ITERATING
        else FORMAT
        if name == "BINARY_OP" and code.co_code[at + 1] in (6, 19)  # `%` and `%=`
        else OTHER
    )
    position = next(islice(code.co_positions(), at // 2, None), (None, None, None, None))
    path = _path_to(code.co_filename, position, kind)
    if path is None:
        names = frozenset(code.co_names) | frozenset(code.co_varnames) | frozenset(code.co_freevars)
        return Site(kind, is_consumed=_is_consumed_next(code, at), names=names)
    return _described(kind, path, is_module=code.co_name == "<module>")


def _path_to(file: str, position: tuple[int | None, ...], kind: str) -> list[ast.AST] | None:
    """Return the nodes from a statement down to the expression at a position, or None without a source."""
    first, last, start, end = position
    if None in position or end is None or start is None:
        return None
    lines = linecache.getlines(file)
    tree = _parsed("".join(lines)) if lines else None
    if tree is None or last is None or first is None or last > len(lines):
        return None
    # Columns count bytes, both in the tree and in the code.
    path: list[ast.AST] = []
    best: list[ast.AST] | None = None
    for path in _paths(tree, last):
        node = path[-1]
        if getattr(node, "end_lineno", None) != last or node.end_col_offset != end:  # type: ignore[attr-defined]
            continue
        if kind == CALL and isinstance(node, ast.Call):
            return path
        if kind != CALL and (node.lineno, node.col_offset) == (first, start):  # type: ignore[attr-defined]
            best = path
    return best


def _paths(tree: ast.AST, line: int) -> Iterator[list[ast.AST]]:
    """Yield all nodes that contain the end of a line's expressions, each with its ancestors up to the statement."""
    stack: list[list[ast.AST]] = [[tree]]
    while stack:
        path = stack.pop()
        node = path[-1]
        last = getattr(node, "end_lineno", None)
        if last is not None and not node.lineno <= line <= last:  # type: ignore[attr-defined]
            continue
        if last is not None:
            yield path
        for child in ast.iter_child_nodes(node):
            stack.append([child] if isinstance(child, ast.stmt) else [*path, child])


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a file, without the warnings that Python gave when it compiled the file.

    Calls are serialized by a lock, since parsing in several threads may fail in CPython 3.11.
    """
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


@functools.lru_cache(64)
def _parsed(source: str) -> ast.AST | None:
    try:
        return parse(source)
    except (SyntaxError, ValueError):
        return None


def _described(kind: str, path: list[ast.AST], is_module: bool) -> Site:
    """Return the site at the end of a path, with its context."""
    node = path[-1]
    callee = node.func if isinstance(node, ast.Call) else None
    around: list[ast.expr] = []
    formats: list[ast.expr] = []
    is_consumed = is_plain = False
    child = node
    for parent in reversed(path[:-1]):
        if isinstance(parent, ast.Lambda):  # the caller uses the value of a return statement
            return Site(kind, is_consumed, False, False, False, callee, tuple(around), tuple(formats))
        if _consumes(parent, child):
            is_consumed = True
        if isinstance(parent, ast.Call) and child is not parent.func:
            around.append(parent.func)
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod) and child is parent.right:
            formats.append(parent.left)
        child = parent
    statement = path[0]
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        between = path[1:-1]
        containers = ast.List | ast.Tuple | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.Starred
        is_plain = statement.value in path and all(isinstance(each, containers) for each in between)
    return Site(
        kind,
        is_consumed,
        isinstance(statement, ast.Expr),
        is_module and is_plain,
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "flat",
        callee,
        tuple(around),
        tuple(formats),
        written=_variable_of(node) if kind == STORE else None,
    )


def _variable_of(target: ast.AST) -> ast.expr | None:
    """Return the variable at the start of an expression such as `table["x"][i]`."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target if isinstance(target, ast.Name) else None


def _consumes(parent: ast.AST, child: ast.AST) -> bool:
    """Return whether an expression or statement uses a part of it only for a decision or a string."""
    if isinstance(parent, ast.Compare | ast.Assert | ast.Raise | ast.JoinedStr | ast.FormattedValue):
        return True
    if isinstance(parent, ast.If | ast.While | ast.IfExp):
        return child is parent.test
    if isinstance(parent, ast.comprehension):
        return child in parent.ifs
    if isinstance(parent, ast.Match):
        return child is parent.subject
    if isinstance(parent, ast.match_case):
        return child is parent.guard
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)


# -- without the source ------------------------------------------------------------------------------------------------


def _is_consumed_next(code: CodeType, at: int) -> bool:
    """Return whether the instructions after a call compare its value, branch on it or format it."""
    following = [each for each in dis.get_instructions(code) if each.offset > at and each.opname not in IDLE]
    for each in following[:3]:
        if each.opname in CONSUMING or "JUMP_IF" in each.opname or each.opname.startswith("POP_JUMP"):
            return True
        if each.opname not in OPERANDS:
            return False
    return False
