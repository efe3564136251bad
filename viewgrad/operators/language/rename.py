"""Transformation of formulas: renaming, and adaptation to arrays or tensors."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, cast

from .parsing import visit_arguments
from .validate import BUILTINS


def formula_text(tree: ast.expr, recorded: bool, local: set[str], own: str = "") -> str:
    """Return a formula as source.

    Arguments:
        tree: the formula.
        recorded: whether the source is for tensors rather than arrays.
        local: the names that are arguments or local to the formula.
        own: the operator that the formula belongs to, which still calls itself if its name is redefined.
    """
    return ast.unparse((_ForTensors if recorded else _ForArrays)(local, own).visit(copied(tree)))


def copied(tree: ast.expr) -> ast.expr:
    """Return a copy of an expression that shares no nodes with it."""
    return cast(ast.expr, _copied(tree))


def _copied(value: Any) -> Any:
    if isinstance(value, ast.AST):  # `copy.deepcopy` takes ten times as long
        new = type(value).__new__(type(value))
        for name, part in vars(value).items():
            setattr(new, name, _copied(part))
        return new
    return [_copied(part) for part in value] if isinstance(value, list) else value


class Renamed(ast.NodeTransformer):
    """Replaces names by expressions, except names that are called."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        return visit_arguments(self, node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


class _ForTensors(ast.NodeTransformer):
    """Replaces the name of each call by a lookup in the namespace that contains it."""

    place = "ops"
    own_name = "{}_function"  # the function behind the operator's own name

    def __init__(self, local: set[str], own: str) -> None:
        self.local = local
        self.own = own

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in BUILTINS and node.func.id not in self.local:
            name = node.func.id
            if name == self.own:
                node.func = ast.Name(self.own_name.format(name), ast.Load())
            else:
                node.func = ast.Attribute(ast.Name(self.place, ast.Load()), name, ast.Load())
        return node


class _ForArrays(_ForTensors):
    place = "arrays"
    own_name = "{}_forward"

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name) or node.func.id != "conj" or "conj" in self.local:
            return super().visit_Call(node)
        # ndarray.conj returns a real array unchanged, whereas numpy.conj would copy it; the method of a number is slow
        value: ast.expr = self.visit(node.args[0])
        name = value if isinstance(value, ast.Name) else ast.Name("_unconjugated")
        value = value if isinstance(value, ast.Name) else ast.NamedExpr(name, value)
        is_real = ast.Compare(ast.Call(ast.Name("type"), [value], []), [ast.Is()], [ast.Name("float64")])
        return ast.IfExp(is_real, name, ast.Call(ast.Attribute(name, "conj", ast.Load()), [], []))
