"""The scalar operators of compiled programs: values, derivatives and dtypes.

The rules of operators are derived from their rows; the others are building blocks of reductions, conversions and
indices. An expression is Python source in which `{0}`, `{1}`, ... are the operands; that of a derivative also contains
`{grad}` and `{result}`. The functions called by expressions are in `backends/scalar_runtime.py`, and those for arrays
in `backends/array_runtime.py`.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ..operators.define import OPERATORS
from ..operators.language.namespace import ARRAY_FUNCTIONS, COMPILED_FORMS, is_formula_function
from ..operators.language.rename import Renamed, copied
from ..operators.language.spec import Kernel, Operator
from .backends.scalar_runtime import FUNCTIONS, MATH


@attrs.frozen
class Rule(Kernel):
    """A scalar operator with numbered operands.

    Arguments:
        slopes: the gradients of its operands for one element, by number; missing ones are 0. None means that they are
            derived from the row of an operator.
        declared: the operator in whose row its derivative is declared.
        operands: the names of the operands in that row.
    """

    slopes: Mapping[int, str] | None = None
    declared: str = ""
    operands: Sequence[str] = ()


def _rules_of_rows() -> Iterator[tuple[str, Rule]]:
    """Return the rules of the operators whose rows have kernels."""
    for operator in OPERATORS.values():
        tensors = [argument.name for argument in operator.signature.tensors]
        for name, kernel in operator.kernels.items():
            text = f"{kernel.floats} {kernel.integers}"
            operands = [each for each in tensors if re.search(rf"\b{each}\b", text)]
            fields = attrs.asdict(kernel)
            fields |= {kind: _numbered(fields[kind], operands) for kind in ("floats", "integers")}
            yield name, Rule(**fields, declared=operator.name, operands=operands)


def _numbered(expression: str, operands: Sequence[str]) -> str:
    """Return an expression in which operands are numbers instead of names."""
    numbers = {name: f"{{{number}}}" for number, name in enumerate(operands)}
    return re.sub(r"\b[a-z]+\b", lambda match: numbers.get(match[0], match[0]), expression)


# All rules: those derived from rows, and building blocks.
RULES: Final[dict[str, Rule]] = dict(_rules_of_rows()) | {
    "": Rule(slopes={}),
    "detach": Rule("{0}", integers="{0}", is_exact=True, slopes={}),
    "spread": Rule("{0}", integers="{0}", is_exact=True, slopes={0: "{grad}"}),
    "sum": Rule("{0}", integers="{0}", slopes={0: "{grad}"}),
    "as_integer": Rule(integers="as_integer({0})", slopes={}),
    "wrapped_index": Rule(integers="wrapped_index({0}, {1})", is_exact=True, slopes={}),
    "greatest": Rule("{0}", is_exact=True, slopes={}),
    "least": Rule("{0}", is_exact=True, slopes={}),
    "finite_or_zero": Rule("finite_or_zero({0})", is_exact=True, slopes={}),
    "as_float": Rule("as_float({0})", is_exact=True, slopes={}),
    "tie_hit": Rule("tie_hit({0}, {1})", is_exact=True, slopes={}),
    "rounded": Rule("rounded({0})", is_exact=True, slopes={0: "{grad}"}),
    "as_bool": Rule("{0} != 0"),
    "missing": Rule("{0} < 0", is_exact=True, slopes={}),
    "index_if_hit": Rule("{1} if {0} else inf", is_exact=True, slopes={}),
    "log_of_sum": Rule("log_of_sum({0})", slopes={}),
    "infinite": Rule("1.0 if {0} == inf else 0.0", is_exact=True, slopes={}),
    "fits": Rule("-9223372036854775808.0 <= {0} < 9223372036854775808.0"),
}
# The rules of operators whose operands are broadcast. The in-place form of `neg` is a separate operator.
OPERATOR_RULES: Final = {name: rule for name, rule in RULES.items() if rule.declared == name}
OPERATOR_RULES["neg_"] = RULES["neg_"] = RULES["neg"]
# Functions called by formulas that exist in the generated source too.
KNOWN: Final = frozenset({
    "abs", "tie_hit", *filter(is_formula_function, (*MATH, *[each.__name__ for each in FUNCTIONS])),
})  # fmt: skip


@functools.cache
def derivative(name: str, number: int) -> str | None:
    """Return the gradient of operand `number` of a rule: "" if it is 0, None if it is unknown."""
    rule = RULES.get(name)
    if rule is None:
        return None
    if rule.slopes is not None:
        return rule.slopes.get(number, "")
    operator = OPERATORS.get(rule.declared)
    if operator is None:
        return None
    for formula in operator.formulas:
        if rule.operands[number] in formula.inputs:
            if len(formula.inputs) > 1 or not formula.is_implemented:
                return None
            try:
                return scalar_form(formula.tree, _values(operator, rule.operands))
            except UnknownFormError:
                return None
    return ""


def _values(operator: Operator, operands: Sequence[str]) -> dict[str, ast.expr]:
    """Return the values of the names in a formula: positions, or None for omitted operands."""
    values: dict[str, ast.expr] = {each.name: ast.Constant(None) for each in operator.signature.tensors}
    values |= {name: ast.Name(f"{{{number}}}") for number, name in enumerate(operands)}
    result = ast.Name("{result}")
    return values | {"grad": ast.Name("{grad}"), operator.signature.outputs[0]: result, "result": result}


def scalar_form(tree: ast.expr | ast.Expression, values: Mapping[str, ast.expr]) -> str:
    """Return a formula for one element as an expression of real numbers, or "" if it is 0.

    Arguments:
        tree: the formula.
        values: the expression that replaces each name.

    Raises:
        UnknownFormError: if the formula calls a function that has no scalar form.
    """
    found = _ScalarForm(values).visit(copied(tree.body if isinstance(tree, ast.Expression) else tree))
    return "" if isinstance(found, ast.Constant) and found.value == 0.0 else ast.unparse(found)


class UnknownFormError(Exception):
    """Raised if a formula calls a function that has no scalar form."""


class _ScalarForm(ast.NodeTransformer):
    """Rewrites a formula for real numbers, with names replaced by values."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> Any:
        """Return the value of a name; positions are unchanged."""
        if node.id.startswith("{") or node.id in CONSTANTS:
            return node
        if node.id not in self.values:
            raise UnknownFormError
        return self.values[node.id]

    def visit_Constant(self, node: ast.Constant) -> Any:
        """Return a number, which adopts the dtype of floats."""
        return ast.Constant(float(node.value)) if type(node.value) is int else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Reject attributes of arrays, which are unknown here."""
        raise UnknownFormError

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Return a conditional expression, or the branch taken if that is known."""
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Return a comparison, or its result if it is a comparison with None."""
        left = self.visit(node.left)
        if isinstance(node.ops[0], ast.Is):
            return ast.Constant(isinstance(left, ast.Constant) and left.value is None)
        return ast.Compare(left, node.ops, [self.visit(each) for each in node.comparators])

    def visit_Call(self, node: ast.Call) -> Any:
        """Return a call of a function of the generated source, or an expression of real numbers."""
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise UnknownFormError
        name = node.func.id
        if name in COMPILED_FORMS:
            return self.visit(expanded(name, node.args))
        arguments = [self.visit(argument) for argument in node.args]
        if name in OF_NUMBERS:
            return OF_NUMBERS[name](*arguments)
        if name == "square" and isinstance(arguments[0], ast.Name):
            return ast.BinOp(arguments[0], ast.Mult(), arguments[0])
        name = {"expit": "sigmoid"}.get(name, name)
        if name not in KNOWN:
            raise UnknownFormError
        return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def expanded(name: str, arguments: Sequence[ast.expr], forms: Mapping[str, str] = COMPILED_FORMS) -> ast.expr:
    """Return the form of a function called by formulas, by default the compiled one, with arguments substituted for
    parameters.
    """
    parameters, tree = _parsed_form(name, forms[name])
    return copied(Renamed(dict(zip(parameters, arguments, strict=True))).visit(copied(tree)))


@functools.cache
def _parsed_form(name: str, form: str) -> tuple[tuple[str, ...], ast.expr]:
    """Return the parameters of a function called by formulas, and its parsed expression."""
    code = getattr(ARRAY_FUNCTIONS, name).__code__
    return code.co_varnames[: code.co_argcount], ast.parse(form, mode="eval").body


CONSTANTS: Final = ("inf", "nan")
# Functions called by formulas that are expressions of real numbers.
OF_NUMBERS: Final[dict[str, Callable[..., ast.expr]]] = {
    "conj": lambda value: value,
    "where": ast.IfExp,
    "masked_fill": lambda value, mask, number: ast.IfExp(mask, number, value),
    "logical_not": lambda value: ast.UnaryOp(ast.Not(), value),
}
