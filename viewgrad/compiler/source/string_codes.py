"""Encoding of variables whose values are known strings, such as the state of a state machine, as numbers.

`mode = "run"` becomes `mode = 1` if the function only assigns strings to `mode` and compares it with strings. The
strings of a function are numbered in the order in which they occur.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from .syntax_trees import nonlocals_of

Stmts = list[ast.stmt]


def encode_strings(body: Stmts, parameters: Collection[str]) -> Stmts:
    """Return the statements of a function with strings in variables replaced by numbers; the original is not changed.

    Arguments:
        body: the statements.
        parameters: the parameters of the function.
    """
    nodes = [node for stmt in body for node in ast.walk(stmt)]
    names = set(_assigned_strings(nodes)) - set(parameters) - nonlocals_of(body, nested=False)
    if not names:
        return body
    body = copy.deepcopy(body)
    nodes = [node for stmt in body for node in ast.walk(stmt)]
    names -= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names -= {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    while True:
        uses = _Uses(names)
        uses.visit_all(nodes)
        wrong = {node.id for node in nodes if isinstance(node, ast.Name) and node.id in names
                 and id(node) not in uses.encoded}
        if not wrong:
            break
        names -= wrong
    codes: dict[str, int] = {}
    for text in {id(each): each for each in uses.strings}.values():
        text.value = codes.setdefault(text.value, len(codes))  # type: ignore[arg-type]
    return body


def _assigned_strings(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the variables that may have several values, including a string."""
    counts: Counter[str] = Counter()
    holding = set()
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target, value in _pairs(node):
                if isinstance(target, ast.Name):
                    choices = [*_choices(value)]
                    counts[target.id] += len(choices)
                    if any(isinstance(each, ast.Constant) and type(each.value) is str for each in choices):
                        holding.add(target.id)
    return (name for name in holding if counts[name] > 1)


def _pairs(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[ast.expr, Any]]:
    """Yield the targets of an assignment with their values."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        value = node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts)
        else:
            yield target, value


def _choices(value: Any) -> Iterator[Any]:
    """Yield the possible values of an expression."""
    if isinstance(value, ast.IfExp):
        yield from _choices(value.body)
        yield from _choices(value.orelse)
    else:
        yield value


class _Uses:
    """Collects the uses of variables whose values are strings.

    Arguments:
        names: the variables.

    Attributes:
        encoded: the ids of the occurrences of variables in assignments of strings and comparisons with strings.
        strings: the strings in these assignments and comparisons.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.encoded: set[int] = set()
        self.strings: list[ast.Constant] = []

    def visit_all(self, nodes: list[ast.AST]) -> None:
        """Visit nodes."""
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target, value in _pairs(node):
                    if self.is_variable(target):
                        self.note([*_choices(value)], [target])
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                self.compare(node)
            elif isinstance(node, ast.Match) and self.is_variable(node.subject):
                self.match(node)

    def compare(self, node: ast.Compare) -> None:
        (op,), (right,) = node.ops, node.comparators
        if not self.is_variable(node.left) and not self.is_variable(right):
            return
        if isinstance(op, (ast.Eq, ast.NotEq)):
            self.note([node.left, right])
        elif isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            self.note([node.left, *right.elts])
            node.comparators = [ast.copy_location(ast.Tuple(right.elts, ast.Load()), right)]

    def match(self, node: ast.Match) -> None:
        patterns = [each for case in node.cases for each in ast.walk(case.pattern)]
        values = [each.value for each in patterns if isinstance(each, ast.MatchValue)]
        if all(isinstance(each, (ast.MatchValue, ast.MatchOr, ast.expr, ast.expr_context)) or (
            isinstance(each, ast.MatchAs) and each.name is None and each.pattern is None) for each in patterns):
            self.note(values, [node.subject])

    def note(self, values: list[Any], variables: list[ast.expr] | None = None) -> None:
        """Record a use if all values are strings or variables whose values are strings."""
        strings = [each for each in values if isinstance(each, ast.Constant) and type(each.value) is str]
        held = [each for each in values if self.is_variable(each)]
        if len(strings) + len(held) == len(values):
            self.strings += strings
            self.encoded.update(id(each) for each in [*held, *(variables or [])])

    def is_variable(self, node: Any) -> bool:
        return isinstance(node, ast.Name) and node.id in self.names
