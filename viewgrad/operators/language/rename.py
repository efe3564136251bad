"""Rewriting formulas: with other names, for arrays or for tensors."""

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
        recorded: whether it is for tensors; for arrays otherwise.
        local: the names that are the formula's own, or arguments.
        own: the operator that it belongs to, which keeps calling itself if another one takes its name.
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
    """Puts expressions in place of names, but not of those that are called."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        return visit_arguments(self, node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


class _ForTensors(ast.NodeTransformer):
    """Replaces the name of each call by a look-up in the namespace that holds it."""

    place = "ops"
    own_name = "{}_function"  # the meaning of the operator's own name

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
        # ndarray.conj returns a real array itself, where numpy.conj would copy it. The method of a number is slow.
        value: ast.expr = self.visit(node.args[0])
        name = value if isinstance(value, ast.Name) else ast.Name("_unconjugated")
        value = value if isinstance(value, ast.Name) else ast.NamedExpr(name, value)
        is_real = ast.Compare(ast.Call(ast.Name("type"), [value], []), [ast.Is()], [ast.Name("float64")])
        return ast.IfExp(is_real, name, ast.Call(ast.Attribute(name, "conj", ast.Load()), [], []))
