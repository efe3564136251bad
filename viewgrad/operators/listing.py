"""The table of operators as text, as printed by `python -m viewgrad.operators`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..views import view_ops as views
from .define import OPERATORS
from .language.spec import Operator

HEADINGS = ("operator", "saved", "forward mode", "in place", "view")


def view_operators() -> dict[str, Callable[..., Any]]:
    """Return the operators that take views, by name."""
    return {name: getattr(views, name) for name in sorted(views.__all__)}


def listed() -> str:
    """Return the table of operators, one per line: signature, saved values, forward-mode rule, in-place form, view."""
    rows = [_row(operator) for _, operator in sorted(OPERATORS.items())]
    rows += [_view_row(name, function) for name, function in view_operators().items()]
    return "\n".join(_aligned([HEADINGS, tuple("-" * len(heading) for heading in HEADINGS), *rows]))


def described(name: str) -> str:
    """Return the declaration of an operator and the code generated from it, or the code of a view operator.

    Raises:
        KeyError: if no operator has the name.
    """
    if name in OPERATORS:
        return _described(OPERATORS[name])
    function = view_operators()[name]
    signature = _view_row(name, function)[0]
    return f"# {signature}: {function.__doc__}\n# A view, written by hand.\n\n{inspect.getsource(function)}"


def _row(operator: Operator) -> tuple[str, ...]:
    saved = "; ".join(f"{name}: {', '.join(operator.saved(name)) or 'nothing'}" for name in operator.differentiable)
    return (
        str(operator.signature),
        saved or "not differentiable",
        forward_mode(operator),
        _in_place(operator),
        "no",
    )


def _view_row(name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = [str(p.replace(annotation=p.empty)) for p in inspect.signature(function).parameters.values()]
    return f"{name}({', '.join(parameters)})", "self: geometry", "the same window", "no", "yes"


def forward_mode(operator: Operator) -> str:
    """Return the forward-mode rule: a formula, or the name of a rule."""
    if operator.tangents is not None:
        return str(operator.tangents.rule)
    return "none" if operator.differentiable else "zero"


def _in_place(operator: Operator) -> str:
    if not operator.has_inplace:
        return "no"
    return f"{operator.name}_, declared" if operator.inplace_declaration is not None else f"{operator.name}_"


def _described(operator: Operator) -> str:
    lines = [f"# {operator.signature}: {operator.doc}" if operator.doc else f"# {operator.signature}"]
    lines += [f"# gradient of {', '.join(formula.inputs)}: {formula.text}" for formula in operator.formulas]
    lines += [f"# saved for {name}: {', '.join(operator.saved(name)) or 'nothing'}" for name in operator.differentiable]
    lines.append(f"# forward mode: {forward_mode(operator)}")
    lines += [f"# in place: {line}" for line in plan_of_inplace(operator)]
    return "\n".join(lines) + "\n\n" + operator.source()


def plan_of_inplace(operator: Operator) -> Iterable[str]:
    """Describe the in-place variant, with one sentence per fact; empty if there is none."""
    if not operator.has_inplace:
        return
    declared = operator.inplace_declaration or operator
    before = sorted({read for formula in declared.formulas for read in formula.reads})
    after = sorted({result for formula in declared.formulas for result in formula.results})
    yield f"saved before the write: {', '.join(before) or 'nothing'}; after it: {', '.join(after) or 'nothing'}"
    if declared.tangents is not None and declared.differentiable:
        first = declared.signature.arguments[0].name
        for function in declared.tangents.functions(frozenset({first} & set(declared.differentiable))):
            if function.unchanged:
                yield f"the tangent of {first} stays as it is"
            elif function.in_place is not None:
                yield f"the tangent of {first} is updated in place"
            elif function.reads_result:
                yield f"the tangent of {first} is computed after the write, from the result"
            else:
                yield f"the tangent of {first} is computed before the write"


def _aligned(rows: list[tuple[str, ...]]) -> Iterable[str]:
    """Yield rows as lines, with columns wide enough for most of their entries."""
    widths = [min(max(len(row[i]) for row in rows), 44) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip()
