"""Plans that compute reductions by scalar operators, derived from the declarations of the operators.

A row declares its result as a formula of sums, extrema and elementwise functions, and its gradient as for any operator.
A plan contains both, for an operator with given options: a list of steps without common subexpressions, and the
gradient of one element as an expression.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Mapping
from operator import add, mul, sub, truediv
from typing import Any, Final

import attrs

from ..operators.define import OPERATORS
from ..operators.language.namespace import COMPILED_FORMS
from ..operators.language.rename import Renamed, copied
from ..operators.language.spec import Operator
from .scalar_rules import RULES, UnknownFormError, expanded, scalar_form

OPERAND: Final = 0  # the number of the reduced value
REDUCTIONS: Final = {"sum": "sum", "max": "greatest", "min": "least"}
ARITHMETIC: Final[dict[type[ast.operator], str]] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
OF_NUMBERS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv,
}  # fmt: skip


@attrs.frozen
class PlanStep:
    """A step of a plan.

    Arguments:
        operator: a scalar operator, or "sum", "greatest" or "least" of the reduced elements.
        operands: the numbers of values, or floats.
        is_reduced: whether the value has only the dimensions that are not reduced.
    """

    operator: str
    operands: tuple[int | float, ...]
    is_reduced: bool

    @property
    def is_reduction(self) -> bool:
        """Return whether the operation combines the elements along the reduced axes."""
        return self.operator in REDUCTIONS.values()


@attrs.frozen
class Slope:
    """The gradient of one element.

    Arguments:
        expression: an expression with `{grad}` and the positions of operands.
        operands: the numbers of values, or floats; the first two are the operand and the result.
    """

    expression: str
    operands: tuple[int | float, ...]


@attrs.frozen
class Plan:
    """The steps that compute an operator.

    Arguments:
        steps: the steps; the value of step i has the number i + 1.
        needed: the number of steps needed for the result; the others are for the gradient.
        result: the number of the result.
        slope: the gradient, or None if it is that of the steps.
        slope_of_kept: the gradient that reads elementwise values of the steps instead of recomputing them.
    """

    steps: tuple[PlanStep, ...]
    needed: int
    result: int
    slope: Slope | None = None
    slope_of_kept: Slope | None = None


@functools.lru_cache(maxsize=1024)
def plan_of(name: str, options: tuple[tuple[str, Any], ...], count: int) -> Plan | None:
    """Return the plan of an operator, or None if its row declares none for these options.

    Arguments:
        name: the name of the operator.
        options: its options, except the axis.
        count: the number of elements that are reduced to one.
    """
    operator = OPERATORS[name]
    assert operator.decomposition is not None
    planner = _Planner(dict(options), count)
    try:
        result = planner.value(_decomposition(name))
        if type(result) is not int:
            return None
        needed = len(planner.steps)
        if operator.decomposition.uses_chain_rule:
            return Plan(tuple(planner.steps), needed, result)
        planner.result = result
        slopes = [planner.slope(_gradient(operator), reads_steps) for reads_steps in (False, True)]
    except UnknownFormError:
        return None
    return Plan(tuple(planner.steps), needed, result, *slopes)


def _decomposition(name: str) -> ast.expr:
    decomposition = OPERATORS[name].decomposition
    assert decomposition is not None
    return ast.parse(decomposition.formula, mode="eval").body


def _gradient(operator: Operator) -> ast.expr:
    """Return the formula of the gradient without omitted tensors."""
    (formula,) = [formula for formula in operator.formulas if formula.inputs == ("self",)]
    missing = {each.name: ast.Constant(None) for each in operator.signature.tensors if each.name != "self"}
    return Renamed(missing).visit(copied(formula.tree))  # type: ignore[no-any-return]


class _Planner:
    """Translates the formulas of an operator into steps.

    Arguments:
        options: the options of the operator.
        count: the number of elements that are reduced to one.
    """

    def __init__(self, options: Mapping[str, Any], count: int) -> None:
        self.numbers = {"inf": math.inf} | {
            name: float(value) for name, value in options.items() if isinstance(value, int | float)
        }
        self.count = float(count)
        self.steps: list[PlanStep] = []
        self.result = OPERAND
        self._numbers: dict[PlanStep, int] = {}

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, known: bool = False) -> int | float:
        """Return the number of the value of a formula, or a float.

        Arguments:
            node: the formula.
            known: whether to use existing steps only.

        Raises:
            UnknownFormError: if the formula cannot be computed in steps.
        """
        number = self.constant(node)
        if number is not None:
            return number
        if isinstance(node, ast.Name) and node.id in ("self", "result"):
            return OPERAND if node.id == "self" else self.result
        if isinstance(node, ast.BinOp):
            operands = self.value(node.left, known), self.value(node.right, known)
            if isinstance(node.op, ast.Div) and type(operands[1]) is float and operands[1] <= 0:
                raise UnknownFormError  # NumPy warns, and the sign of an infinite quotient is significant
            return self._step(ARITHMETIC[type(node.op)], operands, known)
        if isinstance(node, ast.IfExp):
            return self.value(self.taken_branch(node), known)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise UnknownFormError
        name = node.func.id
        whole = self.expanded(node)
        if whole is not None:
            return self.value(whole, known)
        if name in REDUCTIONS:
            return self._step(REDUCTIONS[name], (self.value(node.args[0], known),), known)
        return self._step(name, tuple([self.value(arg, known) for arg in node.args]), known)

    def constant(self, node: ast.expr) -> float | None:
        """Return the value of a constant formula, or None if it depends on elements."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return float(node.value)
        if isinstance(node, ast.Name):
            return self.numbers.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            operand = self.constant(node.operand)
            return None if operand is None else -operand
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            left, right = self.constant(node.left), self.constant(node.right)
            return None if left is None or right is None else OF_NUMBERS[type(node.op)](left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reduced_count":
            return self.count
        return None

    def taken_branch(self, node: ast.IfExp) -> ast.expr:
        """Return the branch taken for the given options."""
        taken = self.answer(node.test)
        if taken is None:
            raise UnknownFormError
        return node.body if taken else node.orelse

    def answer(self, test: ast.expr) -> bool | None:
        """Return the result of a comparison of options, or None if it depends on elements."""
        if not isinstance(test, ast.Compare):
            return None
        if isinstance(test.ops[0], ast.Is):
            return isinstance(test.left, ast.Constant) and test.left.value is None
        left, right = self.constant(test.left), self.constant(test.comparators[0])
        return None if left is None or right is None else left == right

    def expanded(self, node: ast.Call) -> ast.expr | None:
        """Return the formula of a called function with its arguments substituted, or None if there is none."""
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name == "expand_reduced":
            return node.args[0]
        if name in COMPILED_FORMS:
            return expanded(name, node.args)
        operator = OPERATORS.get(name)
        if operator is None or operator.decomposition is None or name in REDUCTIONS:
            return None
        names = [argument.name for argument in operator.signature.arguments]
        return copied(Renamed(dict(zip(names, node.args))).visit(_decomposition(name)))

    def _step(self, operator: str, operands: tuple[int | float, ...], known: bool) -> int:
        if operator not in RULES:
            raise UnknownFormError
        is_reduced = operator in REDUCTIONS.values() or all(map(self.is_reduced, operands))
        step = PlanStep(operator, operands, is_reduced)
        number = self._numbers.get(step)
        if number is None:
            if known:
                raise UnknownFormError
            self.steps.append(step)
            number = self._numbers[step] = len(self.steps)
        return number

    def is_reduced(self, value: int | float) -> bool:
        """Return whether a value has only the dimensions that are not reduced, or none."""
        return type(value) is float or (value != OPERAND and self.steps[int(value) - 1].is_reduced)

    # -- gradients -----------------------------------------------------------------------------------------------------

    def slope(self, formula: ast.expr, reads_steps: bool) -> Slope:
        """Return the gradient for one element.

        Arguments:
            formula: the gradient.
            reads_steps: whether to read the elementwise values of steps.
        """
        writer = _SlopeWriter(self, reads_steps)
        expression = scalar_form(writer.visit(copied(formula)), {})
        return Slope(expression, tuple(writer.operands))


class _SlopeWriter(ast.NodeTransformer):
    """Replaces the operand, the result, reduced values and numbers in a gradient by positions."""

    def __init__(self, planner: _Planner, reads_steps: bool) -> None:
        self.planner = planner
        self.reads_steps = reads_steps
        self.operands: list[int | float] = [OPERAND, planner.result]

    def visit(self, node: ast.AST) -> Any:
        """Return the expression of a part of the formula."""
        if not isinstance(node, ast.expr):
            return node
        if isinstance(node, ast.Name) and node.id in ("grad", "inf", "nan"):
            return ast.Name("{grad}") if node.id == "grad" else node
        if isinstance(node, ast.Constant):
            return node
        number = self.planner.constant(node)
        if number is not None:
            return self._placed(number)
        if isinstance(node, ast.IfExp):
            answer = self.planner.answer(node.test)
            return self.generic_visit(node) if answer is None else self.visit(node.body if answer else node.orelse)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            whole = self.planner.expanded(node)
            if whole is not None:
                return self.visit(whole)
            if node.func.id in REDUCTIONS:
                return self._placed(self.planner.value(node))
        if isinstance(node, ast.Name):
            return self._placed(self.planner.value(node))
        try:
            number = self.planner.value(node, known=True)
        except UnknownFormError:
            pass
        else:
            if self.reads_steps or self.planner.is_reduced(number):
                return self._placed(number)
        if isinstance(node, ast.Call):
            node.args = [self.visit(argument) for argument in node.args]
            return node
        return self.generic_visit(node)

    def _placed(self, value: int | float) -> ast.expr:
        positions = [n for n, each in enumerate(self.operands) if each == value and type(each) is type(value)]
        if not positions:
            self.operands.append(value)
        return ast.Name(f"{{{positions[0] if positions else len(self.operands) - 1}}}")
