"""Writing formulas anew: with other names, for arrays or for tensors."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from .checker import BUILTINS

__all__ = ["Renamed", "formula_text"]


def formula_text(tree: ast.expr, recorded: bool, local: set[str]) -> str:
    """A formula as source, for arrays or, `recorded`, for tensors; the names in `local` are the formula's own."""
    return ast.unparse((_ForTensors if recorded else _ForArrays)(local).visit(copy.deepcopy(tree)))


class Renamed(ast.NodeTransformer):
    """Puts expressions in the place of names, but not of those that are called."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


class _ForTensors(ast.NodeTransformer):
    def __init__(self, local: set[str]) -> None:
        self.local = local

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in BUILTINS and node.func.id not in self.local:
            node.func = ast.Attribute(ast.Name("ops", ast.Load()), node.func.id, ast.Load())
        return node


class _ForArrays(ast.NodeTransformer):
    def __init__(self, local: set[str]) -> None:
        self.local = local

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "conj" and "conj" not in self.local:
            # ndarray.conj returns a real array itself, where numpy.conj would copy it. The method of a number is slow.
            (value,) = node.args
            name = value if isinstance(value, ast.Name) else ast.Name("_unconjugated")
            value = value if isinstance(value, ast.Name) else ast.NamedExpr(name, value)
            is_real = ast.Compare(ast.Call(ast.Name("type"), [value], []), [ast.Is()], [ast.Name("float64")])
            return ast.IfExp(is_real, name, ast.Call(ast.Attribute(name, "conj", ast.Load()), [], []))
        return node
