"""Scalar operators: one row for each, with its value, its derivative and its dtypes.

An expression is Python source in which `{0}`, `{1}`, ... are the operands; that of a derivative has `{grad}` and
`{result}` too. Unless a row says otherwise, the derivative is the one that the operator declares, for real numbers. The
functions of expressions are in `backends/scalar_runtime.py`, and those of arrays in `backends/array_runtime.py`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..operators.define import OPERATORS
from ..operators.language.spec import Operator


@attrs.frozen
class Rule:
    """A scalar operator.

    Arguments:
        floats: the expression for floats; "" if it is not defined for them.
        integers: the expression for integers of 64 bits, which wrap around; "" if it is not defined for them.
        bools: the operator that computes it for bools; "" if none does.
        gives_bool: whether its value is a bool.
        takes_bools: whether its operands must be bools.
        is_exact: whether its value needs no rounding in single precision if the operands are rounded.
        slopes: the gradients of its operands for one element, by number; missing ones are 0. None to derive them from
            the declaration.
        declared: the operator whose row declares its derivative, if it has another name.
        operands: the names of the operands in that row, if some are missing.
    """

    floats: str = ""
    integers: str = ""
    bools: str = ""
    gives_bool: bool = False
    takes_bools: bool = False
    is_exact: bool = False
    slopes: Mapping[int, str] | None = None
    declared: str = ""
    operands: Sequence[str] | None = None


# Operators whose operands are broadcast.
OPERATOR_RULES: Final[dict[str, Rule]] = {
    "positive": Rule("{0}", integers="{0}", is_exact=True),
    "neg": Rule("-{0}", integers="wrapped(-{0})", is_exact=True),
    "neg_": Rule("-{0}", integers="wrapped(-{0})", is_exact=True, declared="neg"),
    "add": Rule("{0} + {1}", integers="wrapped({0} + {1})", bools="logical_or"),
    "sub": Rule("{0} - {1}", integers="wrapped({0} - {1})"),
    "mul": Rule("{0} * {1}", integers="wrapped({0} * {1})", bools="logical_and"),
    "div": Rule("{0} / {1}"),
    "square": Rule("{0} * {0}", integers="wrapped({0} * {0})"),
    "reciprocal": Rule("1.0 / {0}"),
    "sqrt": Rule("sqrt({0})"),
    "fabs": Rule("abs({0})", is_exact=True),
    "abs": Rule("abs({0})", integers="wrapped(abs({0}))", is_exact=True),
    "sign": Rule("sign({0})", is_exact=True, slopes={}),
    "conj": Rule("{0}", integers="{0}", is_exact=True),
    "pow": Rule("power({0}, {1})"),
    "lerp": Rule("{0} + {2} * ({1} - {0})"),
    "clone": Rule("{0}", integers="{0}", is_exact=True),
    "exp": Rule("exp({0})"),
    "expm1": Rule("expm1({0})"),
    "log": Rule("log({0})"),
    "log2": Rule("log2({0})"),
    "log10": Rule("log10({0})"),
    "log1p": Rule("log1p({0})"),
    "logaddexp": Rule("logaddexp({0}, {1})"),
    "sin": Rule("sin({0})"),
    "cos": Rule("cos({0})"),
    "tan": Rule("tan({0})"),
    "arcsin": Rule("asin({0})"),
    "arccos": Rule("acos({0})"),
    "arctan": Rule("atan({0})"),
    "sinh": Rule("sinh({0})"),
    "cosh": Rule("cosh({0})"),
    "tanh": Rule("tanh({0})"),
    "arcsinh": Rule("asinh({0})"),
    "arccosh": Rule("acosh({0})"),
    "arctanh": Rule("atanh({0})"),
    "arctan2": Rule("atan2({0}, {1})"),
    "hypot": Rule("hypot({0}, {1})"),
    "deg2rad": Rule("{0} * 0.017453292519943295"),
    "rad2deg": Rule("{0} * 57.29577951308232"),
    "sigmoid": Rule("sigmoid({0})"),
    "relu": Rule("maximum({0}, 0.0)", is_exact=True),
    "exp2": Rule("exp2({0})"),
    "rint": Rule("rint({0})", is_exact=True, slopes={}),
    "copysign": Rule("copysign({0}, {1})", is_exact=True),
    "floor": Rule("floor({0})", is_exact=True, slopes={}),
    "ceil": Rule("ceil({0})", is_exact=True, slopes={}),
    "trunc": Rule("trunc({0})", is_exact=True, slopes={}),
    "maximum": Rule("maximum({0}, {1})", integers="{0} if {0} >= {1} else {1}", bools="logical_or", is_exact=True),
    "minimum": Rule("minimum({0}, {1})", integers="{0} if {0} <= {1} else {1}", bools="logical_and", is_exact=True),
    "fmax": Rule("fmax({0}, {1})", integers="{0} if {0} >= {1} else {1}", is_exact=True),
    "fmin": Rule("fmin({0}, {1})", integers="{0} if {0} <= {1} else {1}", is_exact=True),
    "erf": Rule("erf({0})"),
    "erfc": Rule("erfc({0})"),
    "ndtr": Rule("0.5 * erfc({0} * -0.7071067811865476)"),
    "expit": Rule("sigmoid({0})"),
    "log_expit": Rule("minimum({0}, 0.0) - log1p(exp(-abs({0})))"),
    "silu": Rule("{0} * sigmoid({0})"),
    "logsigmoid": Rule("minimum({0}, 0.0) - log1p(exp(-abs({0})))"),
    "gammaln": Rule("lgamma({0})"),
    "relu6": Rule("minimum(maximum({0}, 0.0), 6.0)"),
    "remainder": Rule("remainder({0}, {1})", integers="modulo({0}, {1})"),
    "floor_divide": Rule("floor_divide({0}, {1})", integers="quotient({0}, {1})", slopes={}),
    "where": Rule("{1} if {0} else {2}", integers="{1} if {0} else {2}", is_exact=True),
    "masked_fill": Rule("{2} if {1} else {0}", integers="{2} if {1} else {0}", is_exact=True),
    "equal": Rule("{0} == {1}", gives_bool=True),
    "not_equal": Rule("{0} != {1}", gives_bool=True),
    "less": Rule("{0} < {1}", gives_bool=True),
    "less_equal": Rule("{0} <= {1}", gives_bool=True),
    "greater": Rule("{0} > {1}", gives_bool=True),
    "greater_equal": Rule("{0} >= {1}", gives_bool=True),
    "logical_and": Rule("{0} and {1}", gives_bool=True, takes_bools=True),
    "logical_or": Rule("{0} or {1}", gives_bool=True, takes_bools=True),
    "logical_xor": Rule("bool({0}) != bool({1})", gives_bool=True, takes_bools=True),
    "logical_not": Rule("not {0}", gives_bool=True, takes_bools=True),
    "isnan": Rule("{0} != {0}", gives_bool=True),
    "isfinite": Rule("isfinite({0})", gives_bool=True),
    "bitwise_and": Rule(integers="{0} & {1}", bools="logical_and"),
    "bitwise_or": Rule(integers="{0} | {1}", bools="logical_or"),
    "bitwise_xor": Rule(integers="{0} ^ {1}", bools="logical_xor"),
    "invert": Rule(integers="~{0}", bools="logical_not"),
}
# All rules: those of operators, and of the building blocks of reductions and other operators.
RULES: Final[dict[str, Rule]] = OPERATOR_RULES | {
    "": Rule(slopes={}),
    "detach": Rule("{0}", integers="{0}", is_exact=True, slopes={}),
    "spread": Rule("{0}", integers="{0}", is_exact=True, slopes={0: "{grad}"}),
    "sum": Rule("{0}", integers="{0}", slopes={0: "{grad}"}),
    "as_integer": Rule(integers="as_integer({0})", slopes={}),
    "place": Rule(integers="place({0}, {1})", is_exact=True, slopes={}),
    "greatest": Rule("{0}", is_exact=True, slopes={}),
    "least": Rule("{0}", is_exact=True, slopes={}),
    "finite_or_zero": Rule("finite_or_zero({0})", is_exact=True, slopes={}),
    "as_float": Rule("as_float({0})", is_exact=True, slopes={}),
    "root": Rule("sqrt({0})", slopes={0: "0.0 if {result} == 0.0 else {grad} * 0.5 / nonzero_or_one({result})"}),
    "tie_hit": Rule("tie_hit({0}, {1})", is_exact=True, slopes={}),
    "share": Rule("{0} / {1}", slopes={}),
    "tied": Rule("{1}", is_exact=True, slopes={0: "{grad} * (1.0 / {2}) if tie_hit({0}, {1}) else 0.0"}),
    "tied_by_share": Rule("{1}", is_exact=True, slopes={0: "{grad} * {2} if {2} else 0.0"}),
    "clip_low_high": Rule(
        "minimum(maximum({0}, {1}), {2})", is_exact=True,
        declared="clip", operands=("self", "min", "max"),
    ),
    "clip_low": Rule("maximum({0}, {1})", is_exact=True, declared="clip", operands=("self", "min")),
    "clip_high": Rule("minimum({0}, {1})", is_exact=True, declared="clip", operands=("self", "max")),
    "rounded": Rule("rounded({0})", is_exact=True, slopes={0: "{grad}"}),
    "as_bool": Rule("{0} != 0"),
    "missing": Rule("{0} < 0", is_exact=True, slopes={}),
    "place_if_hit": Rule("{1} if {0} else inf", is_exact=True, slopes={}),
    "log_of_sum": Rule("log_of_sum({0})", slopes={}),
    "infinite": Rule("1.0 if {0} == inf else 0.0", is_exact=True, slopes={}),
    "logsumexp": Rule(
        "{1}", is_exact=True, slopes={0: "flowing({grad} * exp_share({0}, {1}, {2}), {grad})"},
    ),
    "fits": Rule("-9223372036854775808.0 <= {0} < 9223372036854775808.0"),
}
# Functions of formulas that are functions of the generated source too.
KNOWN: Final = frozenset({
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "hypot", "floor_divide", "copysign",
    "digamma", "flowing", "sigmoid", "power_slope", "power_log", "over_square", "nonzero_or_one", "log1p", "expm1",
    "abs", "exp2", "less_exponent", "square", "exp_share",
})


@functools.cache
def derivative(name: str, number: int) -> str | None:
    """Return the gradient of operand `number` of a rule: "" if it is 0, None if it is not known."""
    rule = RULES.get(name)
    if rule is None:
        return None
    if rule.slopes is not None:
        return rule.slopes.get(number, "")
    operator = OPERATORS.get(rule.declared or name)
    if operator is None:
        return None
    operands = rule.operands or [argument.name for argument in operator.signature.tensors]
    for formula in operator.formulas:
        if operands[number] in formula.inputs:
            if len(formula.inputs) > 1 or not formula.is_implemented:
                return None
            try:
                copied = ast.parse(ast.unparse(formula.tree), mode="eval").body
                return ast.unparse(_Rewritten(operator, operands).visit(copied))
            except _Unknown:
                return None
    return ""


class _Unknown(Exception):
    """A formula calls a function that has no scalar form."""


class _Rewritten(ast.NodeTransformer):
    """Rewrites a formula for real numbers, with places instead of names, and None for operands that are missing."""

    def __init__(self, operator: Operator, operands: Sequence[str]) -> None:
        self.places = {name: f"{{{number}}}" for number, name in enumerate(operands)}
        self.places |= {"grad": "{grad}", operator.signature.outputs[0]: "{result}", "result": "{result}"}
        self.missing = {argument.name for argument in operator.signature.tensors} - self.places.keys()

    def visit_Name(self, node: ast.Name) -> Any:
        """Return an argument, the gradient or the result."""
        if node.id in self.missing:
            return ast.Constant(None)
        if node.id not in self.places:
            raise _Unknown
        return ast.Name(self.places[node.id], ast.Load())

    def visit_Constant(self, node: ast.Constant) -> Any:
        """Return a number, which adapts to the dtype of floats."""
        return ast.Constant(float(node.value)) if type(node.value) is int else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Refuse attributes of arrays, which are unknown here."""
        raise _Unknown

    def visit_Call(self, node: ast.Call) -> Any:
        """Return a function: one of the generated source, or one that is an expression of real numbers."""
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise _Unknown
        name = node.func.id
        arguments = [self.visit(argument) for argument in node.args]
        if name in EXPANDED:
            return EXPANDED[name](*arguments)
        if name == "square" and isinstance(arguments[0], ast.Name):
            return ast.BinOp(arguments[0], ast.Mult(), arguments[0])
        name = {"expit": "sigmoid"}.get(name, name)
        if name not in KNOWN:
            raise _Unknown
        return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _root_of_difference(value: ast.expr) -> ast.expr:
    one = ast.Constant(1.0)
    product = ast.BinOp(ast.BinOp(one, ast.Sub(), value), ast.Mult(), ast.BinOp(one, ast.Add(), value))
    return ast.Call(ast.Name("sqrt", ast.Load()), [product], [])


def _of_positive(grad: ast.expr, value: ast.expr) -> ast.expr:
    return ast.IfExp(ast.Compare(value, [ast.Eq()], [ast.Constant(0.0)]), ast.Constant(0.0), grad)


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [operator], [right])


def _either(*values: ast.expr) -> ast.expr:
    return values[0] if len(values) == 1 else ast.BoolOp(ast.Or(), list(values))


def _is_missing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _outside(value: ast.expr, low: ast.expr, high: ast.expr) -> ast.expr:
    below, above = _compared(value, ast.Lt(), low), _compared(value, ast.Gt(), high)
    return _either(*([] if _is_missing(low) else [below]), *([] if _is_missing(high) else [above]))


def _not_below(value: ast.expr, low: ast.expr, high: ast.expr) -> ast.expr:
    found = _compared(value, ast.GtE(), low)
    return found if _is_missing(high) else _either(found, _compared(low, ast.Gt(), high))


def _not_above(value: ast.expr, low: ast.expr, high: ast.expr) -> ast.expr:
    found = _compared(value, ast.LtE(), high)
    return found if _is_missing(low) else ast.BoolOp(ast.And(), [found, _compared(low, ast.LtE(), high)])


# Functions of formulas that are expressions of real numbers.
EXPANDED: Final[dict[str, Callable[..., ast.expr]]] = {
    "conj": lambda value: value,
    "where": ast.IfExp,
    "masked_fill": lambda value, mask, number: ast.IfExp(mask, number, value),
    "logical_not": lambda value: ast.UnaryOp(ast.Not(), value),
    "zeros_like": lambda value: ast.Constant(0.0),
    "root_of_difference": _root_of_difference,
    "of_positive": _of_positive,
    "first_chosen": lambda is_first, first, second: _either(is_first, _compared(second, ast.NotEq(), second)),
    "outside": _outside,
    "not_below": _not_below,
    "not_above": _not_above,
}
