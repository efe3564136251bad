"""Partial derivatives of elementwise operators, as expressions of the program that can themselves be differentiated."""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Mapping
from typing import Any

from ...operators.define import OPERATORS
from ...operators.language.namespace import DIFFERENTIABLE_FORMS
from ..scalar_rules import CONSTANTS, expanded
from .ir import Const, Lazy, Op
from .library import BINARY_OPERATORS, COMPARISONS, ROWS
from .scalar_forms import scalar_gradient
from .value_types import BOOL, BY_PYTHON, FLOAT, Arr, Num
from .values import NotSupported


class PartialDerivative:
    """The derivative of an operator with respect to one operand.

    Attributes:
        tree: an expression of `_0`, `_1`, ... (the operands), `_result`, and `_grad` (the tangent of the operand).
        operands: the numbers of the operands that it reads.
        reads_result: whether it reads the value of the operator.
        reads_twice: whether it reads the tangent more than once.
    """

    __slots__ = ("operands", "reads_result", "reads_twice", "tree")

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(re.sub(r"\{(\w+)\}", r"_\1", text), mode="eval").body
        self.operands = frozenset(int(each) for each in re.findall(r"\{(\d+)\}", text))
        self.reads_result = "{result}" in text
        self.reads_twice = text.count("{grad}") > 1

    def along(self, names: Mapping[str, Any]) -> Any:
        """Return the derivative as an expression.

        Arguments:
            names: the expressions for the names in the tree.
        """
        return _Expression(names).of(self.tree)


@functools.cache
def partial_derivative(name: str, number: int) -> PartialDerivative | None:
    """Return the derivative of an operator with respect to one operand, or None if it is 0.

    Raises:
        NotSupported: if the derivative cannot be expressed by operators.
    """
    text = scalar_gradient(name, number)
    if text is None:
        raise NotSupported(f"the derivative of {name} is not elementwise")
    return PartialDerivative(text) if text and text != "0.0" else None


def joint_kind(args: Any, dtype: str = "d") -> Any:
    """Return the kind of an elementwise operator for given operands."""
    ndim = max(arg.kind.ndim for arg in args)
    return Arr(dtype, ndim) if ndim else Num(dtype)


class _Expression:
    """Converts a syntax tree to an expression of the program."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return Const(getattr(math, node.id), FLOAT) if node.id in CONSTANTS else self.names[node.id]
        if isinstance(node, ast.Constant):
            return Const(float(node.value), FLOAT)  # type: ignore[arg-type]
        if isinstance(node, ast.UnaryOp):
            operand = self.of(node.operand)
            if isinstance(node.op, ast.Not):
                return self.op("logical_not", (operand,), "?")
            if isinstance(operand, Const):
                return Const(-operand.value, FLOAT)
            return self.op("neg", (operand,))
        if isinstance(node, ast.BinOp):
            left, right = self.of(node.left), self.of(node.right)
            if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
                return self.either("logical_and" if isinstance(node.op, ast.BitAnd) else "logical_or", left, right)
            return self.binary(BINARY_OPERATORS[type(node.op)], left, right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self.compared(COMPARISONS[type(node.ops[0])], self.of(node.left), self.of(node.comparators[0]))
        if isinstance(node, ast.BoolOp):
            name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
            return functools.reduce(lambda a, b: self.either(name, a, b), [self.of(each) for each in node.values])
        if isinstance(node, ast.IfExp):
            return self.chosen(self.of(node.test), self.of(node.body), self.of(node.orelse))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            args = tuple([self.of(each) for each in node.args])
            if node.func.id == "flowing":
                return Op("flowing", args, args[0].kind)
            if node.func.id in DIFFERENTIABLE_FORMS:
                return self.of(expanded(node.func.id, node.args, DIFFERENTIABLE_FORMS))
            if node.func.id in ROWS and node.func.id in OPERATORS:
                return self.op(node.func.id, args)
        raise NotSupported(f"the derivative {ast.unparse(node)} is not elementwise")

    def compared(self, name: str, left: Any, right: Any) -> Any:
        if isinstance(left, Const) and isinstance(right, Const):
            return Const(BY_PYTHON[name](left.value, right.value), BOOL)
        return self.op(name, (left, right), "?")

    def op(self, name: str, args: Any, dtype: str = "d") -> Any:
        if name == "logical_not" and isinstance(args[0].kind, Num):
            return Lazy("not", args, BOOL)
        return Op(name, args, joint_kind(args, dtype))

    def binary(self, name: str, left: Any, right: Any) -> Any:
        if isinstance(left, Const) and isinstance(right, Const) and name in ("sub", "add", "mul"):
            a, b = float(left.value), float(right.value)
            return Const(a - b if name == "sub" else a + b if name == "add" else a * b, FLOAT)
        if name == "pow" and isinstance(right, Const) and right.value in (0.0, 1.0):
            return left if right.value else Const(1.0, FLOAT)
        return self.op(name, (left, right))

    def either(self, name: str, left: Any, right: Any) -> Any:
        if isinstance(left, Const):
            return left if left.value == (name == "logical_or") else right
        if isinstance(left.kind, Num) and isinstance(right.kind, Num):
            return Lazy(name.removeprefix("logical_"), (left, right), BOOL)
        return self.op(name, (left, right), "?")

    def chosen(self, test: Any, then: Any, other: Any) -> Any:
        if isinstance(test, Const):
            return then if test.value else other
        if all(isinstance(each.kind, Num) for each in (test, then, other)):
            return Lazy("if", (test, then, other), FLOAT)
        return self.op("where", (test, then, other))
