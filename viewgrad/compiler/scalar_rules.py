"""What steps compute, as expressions: of the operators, and of their derivatives.

An expression is Python source in which `{0}`, `{1}`, ... are the operands; that of a derivative has `{grad}` and
`{result}` too. The derivatives are read from the declarations of the operators, for real numbers.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any, Final

from ..operators.define import OPERATORS
from ..operators.language.spec import Operator

__all__ = ["BITWISE", "EXACT", "FORWARD", "INTEGERS", "LOGICAL", "MORE", "OF_BOOLS", "STEPLESS", "derivative"]

# Of operators whose operands are broadcast against each other.
FORWARD: Final[dict[str, str]] = {
    "positive": "{0}", "neg": "-{0}", "neg_": "-{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "square": "{0} * {0}", "reciprocal": "1.0 / {0}", "sqrt": "sqrt({0})", "fabs": "abs({0})", "abs": "abs({0})",
    "sign": "sign({0})", "conj": "{0}", "pow": "power({0}, {1})", "lerp": "{0} + {2} * ({1} - {0})", "clone": "{0}",
    "exp": "exp({0})", "expm1": "expm1({0})", "log": "log({0})", "log2": "log2({0})",
    "log10": "log10({0})", "log1p": "log1p({0})", "logaddexp": "logaddexp({0}, {1})",
    "sin": "sin({0})", "cos": "cos({0})", "tan": "tan({0})", "arcsin": "asin({0})", "arccos": "acos({0})",
    "arctan": "atan({0})", "sinh": "sinh({0})", "cosh": "cosh({0})", "tanh": "tanh({0})", "arcsinh": "asinh({0})",
    "arccosh": "acosh({0})", "arctanh": "atanh({0})", "arctan2": "atan2({0}, {1})", "hypot": "hypot({0}, {1})",
    "deg2rad": "{0} * 0.017453292519943295", "rad2deg": "{0} * 57.29577951308232",
    "sigmoid": "sigmoid({0})", "relu": "maximum({0}, 0.0)",
    "exp2": "exp2({0})", "rint": "rint({0})", "copysign": "copysign({0}, {1})",
    "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})",
    "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})", "fmax": "fmax({0}, {1})", "fmin": "fmin({0}, {1})",
    "erf": "erf({0})", "erfc": "erfc({0})", "ndtr": "0.5 * erfc({0} * -0.7071067811865476)", "expit": "sigmoid({0})",
    "log_expit": "minimum({0}, 0.0) - log1p(exp(-abs({0})))", "silu": "{0} * sigmoid({0})",
    "logsigmoid": "minimum({0}, 0.0) - log1p(exp(-abs({0})))", "gammaln": "lgamma({0})",
    "relu6": "minimum(maximum({0}, 0.0), 6.0)", "remainder": "remainder({0}, {1})",
    "floor_divide": "floor_divide({0}, {1})",
    "where": "{1} if {0} else {2}", "masked_fill": "{2} if {1} else {0}",
    "equal": "{0} == {1}", "not_equal": "{0} != {1}", "less": "{0} < {1}", "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}", "greater_equal": "{0} >= {1}", "logical_and": "{0} and {1}", "logical_or": "{0} or {1}",
    "logical_xor": "bool({0}) != bool({1})", "logical_not": "not {0}", "isnan": "{0} != {0}",
    "isfinite": "isfinite({0})",
}
# Of these the result is a bool.
LOGICAL: Final = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "isnan", "isfinite",
})
# Of these the operands must be bools.
OF_BOOLS: Final = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
# Operators whose operands are all bools, as what they are of bools.
BITWISE: Final = {
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not",
    "add": "logical_or", "mul": "logical_and", "maximum": "logical_or", "minimum": "logical_and",
}
# What gives integers, of integers: those of 64 bits, which wrap around.
INTEGERS: Final[dict[str, str]] = {
    **dict.fromkeys(("positive", "clone", "conj", "detach", "spread", "sum"), "{0}"), "as_integer": "as_integer({0})",
    "place": "place({0}, {1})",
    "add": "wrapped({0} + {1})", "sub": "wrapped({0} - {1})", "mul": "wrapped({0} * {1})", "neg": "wrapped(-{0})",
    "neg_": "wrapped(-{0})", "square": "wrapped({0} * {0})", "abs": "wrapped(abs({0}))",
    "floor_divide": "quotient({0}, {1})", "remainder": "modulo({0}, {1})",
    "maximum": "{0} if {0} >= {1} else {1}", "minimum": "{0} if {0} <= {1} else {1}",
    "fmax": "{0} if {0} >= {1} else {1}", "fmin": "{0} if {0} <= {1} else {1}",
    "where": "{1} if {0} else {2}", "masked_fill": "{2} if {1} else {0}",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "~{0}",
}
# Functions of formulas that are functions of the generated source too.
KNOWN: Final = frozenset({
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "hypot", "floor_divide", "copysign",
    "digamma", "flowing", "sigmoid", "power_slope", "power_log", "over_square", "nonzero_or_one", "log1p", "expm1",
    "abs", "exp2", "less_exponent", "square",
})
STEPLESS: Final = frozenset({"floor", "ceil", "trunc", "rint", "sign", "floor_divide"})  # their derivative is 0
# What is no operator by itself.
MORE: Final[dict[str, str]] = {
    "sum": "{0}", "greatest": "{0}", "least": "{0}", "finite_or_zero": "finite_or_zero({0})", "detach": "{0}",
    "spread": "{0}", "as_float": "as_float({0})", "root": "sqrt({0})",
    "tie_hit": "tie_hit({0}, {1})", "share": "{0} / {1}", "tied": "{1}", "tied_by_share": "{1}",
    "clip_low_high": "minimum(maximum({0}, {1}), {2})", "clip_low": "maximum({0}, {1})",
    "clip_high": "minimum({0}, {1})", "rounded": "rounded({0})", "as_bool": "{0} != 0",
    "missing": "{0} < 0", "place_if_hit": "{1} if {0} else inf", "log_of_sum": "log_of_sum({0})",
    "fits": "-9223372036854775808.0 <= {0} < 9223372036854775808.0",
}
# What these give needs no rounding in single precision, if the operands are rounded.
EXACT: Final = frozenset({
    "positive", "neg", "neg_", "abs", "fabs", "conj", "clone", "where", "masked_fill", "maximum", "minimum", "fmax",
    "fmin", "relu", "floor", "ceil", "trunc", "rint", "sign", "copysign", "greatest", "least", "finite_or_zero",
    "detach", "spread", "as_float", "tie_hit", "tied", "tied_by_share", "clip_low_high", "clip_low", "clip_high",
    "rounded", "place", "missing", "place_if_hit",
})
# The derivatives of these, for one element, with respect to each operand; {} where all are 0.
OTHERS: Final[dict[str, dict[int, str]]] = {
    "sum": {0: "{grad}"}, "greatest": {}, "least": {}, "finite_or_zero": {}, "detach": {}, "spread": {0: "{grad}"},
    "as_float": {}, "as_integer": {}, "": {}, "place": {}, "missing": {}, "place_if_hit": {}, "tie_hit": {},
    "log_of_sum": {0: "0.0 if {0} == 0.0 else {grad} / {0}"},  # the log of no probability at all, which stays
    "share": {}, "rounded": {0: "{grad}"},
    "root": {0: "0.0 if {result} == 0.0 else {grad} * 0.5 / nonzero_or_one({result})"},
    "tied": {0: "{grad} * (1.0 / {2}) if tie_hit({0}, {1}) else 0.0"},
    "tied_by_share": {0: "{grad} * {2} if {2} else 0.0"},
    "clip_low_high": {
        0: "0.0 if {0} < {1} or {0} > {2} else {grad}", 1: "0.0 if {0} >= {1} or {1} >= {2} else {grad}",
        2: "0.0 if {0} <= {2} and {1} <= {2} else {grad}",
    },
    "clip_low": {0: "0.0 if {0} < {1} else {grad}", 1: "0.0 if {0} >= {1} else {grad}"},
    "clip_high": {0: "0.0 if {0} > {1} else {grad}", 1: "0.0 if {0} <= {1} else {grad}"},
    "fmax": {0: "{grad} if {0} >= {1} or {1} != {1} else 0.0", 1: "0.0 if {0} >= {1} or {1} != {1} else {grad}"},
    "fmin": {0: "{grad} if {0} <= {1} or {1} != {1} else 0.0", 1: "0.0 if {0} <= {1} or {1} != {1} else {grad}"},
}


@functools.cache
def derivative(name: str, number: int) -> str | None:
    """The gradient of operand `number` of an operator, "" where it is 0, and None where it is not known here."""
    if name in OTHERS:
        return OTHERS[name].get(number, "")
    name = "neg" if name == "neg_" else name
    operator = OPERATORS.get(name)
    if operator is None or name not in FORWARD:
        return None
    if name in STEPLESS:
        return ""
    argument = operator.signature.tensors[number].name
    for formula in operator.formulas:
        if argument in formula.inputs:
            if len(formula.inputs) > 1 or not formula.is_implemented:
                return None
            try:
                return ast.unparse(_Rewritten(operator).visit(_copied(formula.tree)))
            except _Unknown:
                return None
    return ""


class _Unknown(Exception):
    """A formula calls what is not known here."""


class _Rewritten(ast.NodeTransformer):
    """Rewrites a formula for real numbers, with places in the place of names."""

    def __init__(self, operator: Operator) -> None:
        self.places = {argument.name: f"{{{i}}}" for i, argument in enumerate(operator.signature.tensors)}
        self.places |= {"grad": "{grad}", operator.signature.outputs[0]: "{result}", "result": "{result}"}

    def visit_Name(self, node: ast.Name) -> Any:
        """An argument, the gradient or the result."""
        if node.id not in self.places:
            raise _Unknown
        return ast.Name(self.places[node.id], ast.Load())

    def visit_Constant(self, node: ast.Constant) -> Any:
        """A number, which adapts to the dtype of floats."""
        return ast.Constant(float(node.value)) if type(node.value) is int else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Anything of an array but its value is not known here."""
        raise _Unknown

    def visit_Call(self, node: ast.Call) -> Any:
        """A function: one of the generated source, or one that is an expression of real numbers."""
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


# Functions of formulas that are expressions of real numbers.
EXPANDED: Final[dict[str, Callable[..., ast.expr]]] = {
    "conj": lambda value: value,
    "where": ast.IfExp,
    "masked_fill": lambda value, mask, number: ast.IfExp(mask, number, value),
    "logical_not": lambda value: ast.UnaryOp(ast.Not(), value),
    "zeros_like": lambda value: ast.Constant(0.0),
    "root_of_difference": _root_of_difference,
    "of_positive": _of_positive,
}


def _copied(tree: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(tree), mode="eval").body
