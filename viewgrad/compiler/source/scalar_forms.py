"""Elementwise operators for single elements: their values, their gradients, and the operands that these read."""

from __future__ import annotations

import ast
import functools
import re
from typing import Any, Final

from ...operators.define import OPERATORS
from ..scalar_rules import RULES, derivative

# Operators that return their first operand, and give up or return 0 if it is invalid.
CHECKED: Final = frozenset({"nonzero", "finite", "flowing"})
OF_CLIP: Final = {"clip": "clip_low_high", "clip_low": "clip_low", "clip_high": "clip_high"}
ROW_OF_CLIP: Final = {"clip": ("self", "min", "max"), "clip_low": ("self", "min"), "clip_high": ("self", "max")}


class Reading:
    """The operands and results that the gradient of an operand reads.

    Attributes:
        operands: the numbers of the operands.
        result: whether the gradient reads the result.
        is_zero: whether the gradient is always 0.
    """

    __slots__ = ("is_zero", "operands", "result")

    def __init__(self, operands: frozenset[int], result: bool, is_zero: bool = False) -> None:
        self.operands = operands
        self.result = result
        self.is_zero = is_zero


@functools.lru_cache(maxsize=1024)
def scalar_gradient(name: str, number: int, is_complex: bool = False) -> str | None:
    """Return the gradient of an operand in terms of `{0}`, `{result}`, `{grad}`: "" for 0, None if unknown.

    Arguments:
        name: the name of the operator.
        number: the number of the operand.
        is_complex: whether an operand or the result is complex.
    """
    if name in CHECKED or name in ("as_float", "as_single", "real"):
        return "{grad}" if number == 0 else ""
    if name == "imag":
        return "{grad} * 1j"
    if is_complex:
        return _complex_gradient(name, number)
    if name in ("as_integer", "round"):
        return ""
    return derivative(OF_CLIP.get(name, name), number)


def scalar_forward(name: str, dtypes: str) -> str | None:
    """Return the value of an operator for real numbers in terms of `{0}`, ..., or None if unknown.

    Arguments:
        name: the name of the operator.
        dtypes: the characters of the dtypes of its operands.
    """
    if name == "nonzero":
        return "nonzero({0})"
    if name == "finite":
        return "finite({0}, {1})" if len(dtypes) == 2 else "finite2({0}, {1}, {2})"
    if name == "flowing":
        return "flowing({0}, {1})"
    if name == "as_float":
        return "float({0})"
    if name == "as_integer":
        return "int({0})"
    if name == "as_single":
        return "rounded({0})"
    if name == "plus":
        return "plus({0}, {1})"
    if name in ("real", "imag"):
        return f"({{0}}).{name}"
    if "D" in dtypes:
        is_known = name in COMPLEX_FORMS and (name != "pow" or dtypes[1] in "?l")
        return COMPLEX_FORMS[name] if is_known else RULES[name].floats if name in ("equal", "not_equal") else None
    if name in COMPARISONS:
        return RULES[name].floats
    if set(dtypes) <= {"l", "?"} and name in INTEGER_FORMS:
        return INTEGER_FORMS[name]
    if set(dtypes) <= {"?"} and name in ("bitwise_and", "bitwise_or", "bitwise_xor", "invert"):
        return {"bitwise_and": "({0}) & ({1})", "bitwise_or": "({0}) | ({1})", "bitwise_xor": "({0}) ^ ({1})",
                "invert": "not ({0})"}[name]
    if set(dtypes) <= {"l", "?"} and name not in FLOATS_OF_INTEGERS:
        return None
    name = OF_CLIP.get(name, name)
    return RULES[name].floats or None if name in RULES else None


def _complex_gradient(name: str, number: int) -> str | None:
    """Return the gradient of an operand of a complex operator, from the formula of its row."""
    if name == "where":
        return "" if number == 0 else "({grad} if {0} else 0.0)" if number == 1 else "(0.0 if {0} else {grad})"
    if name not in COMPLEX_FORMS:
        return None
    formula, names = array_formula(name, number)
    if formula is None:
        return ""
    texts = {each: f"{{{place}}}" for place, each in enumerate(names)}
    texts |= {"grad": "{grad}", OPERATORS[name].signature.outputs[0]: "{result}"}

    def written(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return texts[node.id]
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.BinOp):
            return f"({written(node.left)} {INFIX[type(node.op)]} {written(node.right)})"
        if isinstance(node, ast.UnaryOp):
            return f"(-{written(node.operand)})"
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return f"{OF_COMPLEX[node.func.id]}({', '.join(map(written, node.args))})"

    try:
        return written(formula.tree if isinstance(formula.tree, ast.expr) else formula.tree.body)
    except KeyError:
        return None


INFIX: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
OF_COMPLEX: Final = {
    "conj": "conj", "flowing": "flowing", "square": "csquare", "exp": "cexp", "sin": "csin", "cos": "ccos",
    "sign": "csign", "power_slope": "cpower_slope",
}  # fmt: skip
# The values of operators for complex numbers.
COMPLEX_FORMS: Final = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}", "positive": "{0}",
    "square": "csquare({0})", "abs": "abs({0})", "conj": "conj({0})", "exp": "cexp({0})", "log": "clog({0})",
    "sqrt": "csqrt({0})", "sin": "csin({0})", "cos": "ccos({0})", "pow": "({0}) ** ({1})",
    "where": "({1} if {0} else {2})",
}  # fmt: skip
COMPARISONS: Final = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
# Operators on integers whose forms are declared in their rows; integers in kernels wrap around anyway.
OF_INTEGERS: Final = (
    "add", "sub", "mul", "neg", "positive", "abs", "square", "floor_divide", "remainder", "bitwise_and", "bitwise_or",
    "bitwise_xor", "invert",
)  # fmt: skip
INTEGER_FORMS: Final = {
    name: re.sub(r"^wrapped\((.*)\)$", r"\1", RULES[name].integers) for name in OF_INTEGERS
} | {"maximum": "max({0}, {1})", "minimum": "min({0}, {1})", "pow": "int_power({0}, {1})"}
FLOATS_OF_INTEGERS: Final = frozenset({
    "div", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "where", "isnan", "isfinite", "sign",
})


def has_scalar_form(name: str, dtypes: str) -> bool:
    """Return whether kernels can compute an operator."""
    return scalar_forward(name, dtypes) is not None


@functools.lru_cache(maxsize=1024)
def reading(name: str, number: int, is_complex: bool = False) -> Reading:
    """Return the operands and results that the gradient of an operand reads.

    Arguments:
        name: the name of the operator.
        number: the number of the operand.
        is_complex: whether an operand or the result is complex.

    Raises:
        KeyError: if there is no formula.
    """
    text = scalar_gradient(name, number, is_complex)
    if text is not None:
        operands = frozenset(int(each) for each in re.findall(r"\{(\d+)\}", text))
        return Reading(operands, "{result}" in text, not text)
    formula, names = array_formula(name, number)
    if formula is None:
        return Reading(frozenset(), False, True)
    if not formula.is_implemented:
        raise KeyError(name)
    operands = frozenset(names.index(each) for each in formula.reads if each in names)
    operands |= {names.index(each) for _, each, _ in formula.metadata if each in names}
    return Reading(operands, bool(formula.results))


def array_formula(name: str, number: int) -> tuple[Any, tuple[str, ...]]:
    """Return the array formula for the gradient of an operand, and the names of the operands; None for 0."""
    if name in ROW_OF_CLIP:
        row, names = OPERATORS["clip"], ROW_OF_CLIP[name]
    else:
        row = OPERATORS[name]
        names = tuple(argument.name for argument in row.signature.tensors)
    for formula in row.formulas:
        if names[number] in formula.inputs:
            if len(formula.inputs) > 1:
                raise KeyError(name)
            return formula, names
    return None, names


class ArrayText(ast.NodeTransformer):
    """Generates a formula for arrays.

    Arguments:
        texts: the replacement of each name.
        arrays: the replacements in arguments of functions, which must be arrays.
        is_complex: whether numbers may be complex.
    """

    def __init__(self, texts: dict[str, str], arrays: dict[str, str], is_complex: bool = False) -> None:
        self.texts = texts
        self.arrays = arrays
        self.is_complex = is_complex

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Translate an operand, the result, the gradient, or another name of the row."""
        return ast.parse(self.texts[node.id], mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Translate a call of a function used by formulas."""
        function = node.func
        if isinstance(function, ast.Name) and function.id == "conj" and not self.is_complex:
            return self.visit(node.args[0])  # type: ignore[no-any-return]
        if isinstance(function, ast.Name):
            function = ast.Attribute(ast.Name("formulas", ast.Load()), function.id, ast.Load())
        else:
            function = self.visit(function)
        return ast.Call(function, [self.argument(arg) for arg in node.args],
                        [ast.keyword(each.arg, self.argument(each.value)) for each in node.keywords])

    def argument(self, node: ast.expr) -> ast.expr:
        """Translate an argument of a function used by formulas."""
        if isinstance(node, ast.Name) and node.id in self.arrays:
            return ast.parse(self.arrays[node.id], mode="eval").body
        found: ast.expr = self.visit(node)
        return found
