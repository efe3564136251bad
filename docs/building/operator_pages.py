"""The reference of operators: a page for each family, generated from the table when the site is built."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

import mathematics
import numpy as np
from operator_examples import example_of

import viewgrad
from viewgrad.operators import listing
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.language.namespace import TENSOR_FUNCTIONS
from viewgrad.operators.language.spec import Operator
from viewgrad.operators.numpy_api.public import meant_by

__all__ = ["address_of", "families", "formula_functions", "page"]

RULES = {
    "auto_element_wise": "derived from the formula above, with the tangent in place of the gradient.",
    "auto_linear": "the operator is linear, so it is applied to the tangent.",
    "none": "none.",
    "zero": "not needed, because the result is piecewise constant.",
}
NOTATION = """In formulas, $x is `self`, $y the result, a bar marks a gradient and a dot a tangent; $z is the complex
conjugate. Each formula is shown in mathematical notation and as it is declared. Functions without a mathematical symbol
are called by name: see [functions in formulas](formula-functions.md). `flowing(a * b, b)` is the product, but 0 if `b`
is 0, even if `a` is infinite.
"""


def families() -> dict[str, list[Operator]]:
    """Return the operators by the file of the table that declares them."""
    found: dict[str, list[Operator]] = {}
    for operator in OPERATORS.values():
        if not operator.user_defined:
            found.setdefault(_family_of(operator), []).append(operator)
    return {family: sorted(found[family], key=lambda operator: operator.name) for family in sorted(found)}


def _family_of(operator: Operator) -> str:
    return operator.row.rpartition(", ")[2].partition(".py")[0]


def address_of(operator: Operator) -> str:
    """Return the link from a page of the reference to the description of an operator."""
    return f"operators/{_family_of(operator)}.md#viewgrad.{operator.name}"


def page(family: str, operators: Iterable[Operator]) -> str:
    """Return the page of one family."""
    title = family.replace("_", " ").capitalize()
    signs = {"$x": ("self", {"self": "x"}), "$y": ("result", {"result": "y"}), "$z": ("conj(z)", {})}
    notation = re.sub(r"\$\w", lambda match: mathematics.expression(*signs[match[0]]), NOTATION)
    return "\n".join([f"# {title}", "", notation, *(_section(operator) for operator in operators)])


def formula_functions() -> str:
    """Return the page of the functions that formulas may call besides operators."""
    used = {name for operator in OPERATORS.values() for formula in operator.formulas for name in formula.functions}
    lines = [
        "# Functions in formulas",
        "",
        "Formulas can call all operators by name, and the functions below. Register your own with",
        "[`formula_function`][viewgrad.autograd.formula_function].",
        "",
        "| function | description |",
        "|---|---|",
    ]
    for name in sorted(used - OPERATORS.keys()):
        function = getattr(TENSOR_FUNCTIONS, name, None)
        doc = inspect.getdoc(function) or "" if function is not None else ""
        lines.append(f"| `{name}` | {_cell(doc.partition(chr(10) + chr(10))[0])} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _section(operator: Operator) -> str:
    name = operator.name
    is_listed = meant_by(getattr(viewgrad, name, None)) is operator.function
    public = "viewgrad" if is_listed else "viewgrad.operators.OPERATORS"
    calls = [f"{name}({operator.signature.parameters()})"]
    if hasattr(viewgrad.Tensor, name):
        calls.append(f"x.{name}(...)")
    if operator.has_inplace and hasattr(viewgrad.Tensor, f"{name}_"):
        calls.append(f"x.{name}_(...)")
    forward = operator.forward
    if isinstance(forward, np.ufunc):
        calls.append(f"numpy.{forward.__name__}(...)")
    lines = [f"## {name} {{ #viewgrad.{name} }}", "", "```text", *calls, "```", "", operator.doc, ""]
    if public != "viewgrad":
        lines += [f"It is available as `{public}[{name!r}]`.", ""]
    lines += _gradients(operator)
    lines += _properties(operator)
    return "\n".join([*lines, *_example(operator), ""])


def _gradients(operator: Operator) -> Iterable[str]:
    if not operator.formulas:
        yield "No gradient flows through it."
        yield ""
    values = _values(operator)
    for formula in operator.formulas:
        names = ", ".join(f"`{name}`" for name in formula.inputs)
        saved = sorted({entry for name in formula.inputs for entry in operator.saved(name)})
        left = f"grad_{formula.inputs[0]}" if len(formula.inputs) == 1 else ""
        yield f"Gradient of {names}, which saves {', '.join(f'`{entry}`' for entry in saved) or 'nothing'}:"
        yield ""
        yield _formula(formula.text, left, values)
        yield ""


def _formula(text: str, left: str, values: dict[str, str]) -> str:
    drawn = mathematics.equation(left, text, values) if left else mathematics.expression(text, values)
    return f'<div class="formula">{drawn}</div>\n\n`#!python {" ".join(text.split())}`'


def _values(operator: Operator) -> dict[str, str]:
    """Return the mathematical names of the arguments and results."""
    values = {argument.name: argument.name for argument in operator.signature.tensors}
    values |= {output: output for output in operator.signature.outputs}
    taken = {argument.name for argument in operator.signature.arguments} | set(operator.signature.outputs)
    if "self" in values and "x" not in taken:
        values["self"] = "x"
    if "result" not in taken - {"result"} and "y" not in taken:
        values["result"] = "y"
    return values


def _properties(operator: Operator) -> Iterable[str]:
    values = _values(operator)
    rule = listing.forward_mode(operator)
    if rule in RULES:
        yield f"- Forward mode: {RULES[rule]}"
    else:
        declared = operator.forward_derivative
        rules = declared if isinstance(declared, dict) else {operator.signature.outputs[0]: str(declared)}
        yield "- Forward mode:"
        for output, text in rules.items():
            yield ""
            yield "    " + _formula(text, f"{output}_t" if "," not in output else "", values).replace("\n", "\n    ")
        yield ""
    plan = list(listing.plan_of_inplace(operator))
    yield f"- In place: `{operator.name}_`; {'; '.join(plan)}." if plan else "- In place: no form of its own."
    yield f"- Dtypes with gradients: {_dtypes(operator)}."


def _dtypes(operator: Operator) -> str:
    if not operator.differentiable:
        return "none"
    real = "floating-point"
    if isinstance(operator.dtype_kinds, str):
        return f"{real} and complex" if "c" in operator.dtype_kinds else real
    parts = [f"`{name}` {real}{' and complex' if 'c' in dtype_kinds else ''}" for name,
    dtype_kinds in operator.dtype_kinds.items()]
    return ", ".join(parts)


# -- examples ----------------------------------------------------------------------------------------------------------


def _example(operator: Operator) -> Iterable[str]:
    """Return a call with small arguments and its result, computed now."""
    listed = meant_by(getattr(viewgrad, operator.name, None)) is operator.function
    where = f"vg.{operator.name}" if listed else f"vg.operators.OPERATORS[{operator.name!r}]"
    text = example_of(operator, where, viewgrad).replace("<BLANKLINE>", "")
    return ["", f"```pycon\n{text}\n```"] if text else []
