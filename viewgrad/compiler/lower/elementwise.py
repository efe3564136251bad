"""Lowering of elementwise operators with broadcast operands.

Operands are converted to the dtype in which NumPy computes, so that the operands of an expression have the same dtype.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...trace.graph import Node
from ...trace.types import TensorType
from ..element_types import BOOL, FLOAT, HELD, INTEGER, as_number
from ..scalar_rules import OPERATOR_RULES, Rule
from ..trace_stream import TracedValue
from .context import LoweringContext, Shape, labels_of

# The operands among which an operator selects.
CHOOSING: Final = {"where": 0, "masked_fill": 1}
# operators that accept floats and other dtypes without conversion
ARITHMETIC: Final = frozenset({"add", "sub", "mul", "div"})


def _elementwise(of: LoweringContext, node: Node) -> bool:
    """Lower an elementwise operator; return whether there is a kernel for its operands."""
    out = of.type_of(node.output)
    name = node.kind
    if None in node.inputs or (node.attributes and name not in ("clone",)):
        return False
    if not out.shape and _of_numbers(of, node, out):
        return True
    values = [value for value in node.inputs if value is not None]
    choosing = CHOOSING.get(name)
    dtypes = [of.type_of(value).dtype for position, value in enumerate(values) if position != choosing]
    if not HELD.issuperset(dtypes) or out.dtype not in HELD:
        return False
    rule = OPERATOR_RULES[name]
    if set(dtypes) == {BOOL} and out.dtype == BOOL and rule.bools:
        name, rule = rule.bools, OPERATOR_RULES[rule.bools]
    common = _common(dtypes) if rule.gives_bool else out.dtype
    if rule.takes_bools and common != BOOL:
        return False
    if not rule.gives_bool and not _has_kernel(name, rule, common):
        return False
    fitting = {common, BOOL} if rule.gives_bool else HELD if name in ARITHMETIC and FLOAT in dtypes else {common}
    taken: list[tuple[Any, Shape]] = []
    for position, value in enumerate(values):
        operand, labels = of.broadcast(value, out.shape)
        if position != choosing and type(operand) is not TracedValue:
            operand = as_number(operand, common)
        elif position != choosing and of.type_of(value).dtype not in fitting:
            operand = of.converted(operand, common)  # type: ignore[arg-type]
        taken.append((operand, labels))
    of.assign(node.output, of.emit(name, taken, out.shape, labels_of(out.shape), out.dtype.char))
    return True


def _has_kernel(name: str, rule: Rule, dtype: np.dtype[Any]) -> bool:
    """Return whether an operator has a kernel for elements of a dtype."""
    if dtype == BOOL:
        return name == "clone" or name in CHOOSING
    return bool(rule.integers if dtype == INTEGER else rule.floats)


def _common(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype in which values are compared."""
    return dtypes[0] if len(set(dtypes)) == 1 else np.result_type(*dtypes)


def _of_numbers(of: LoweringContext, node: Node, out: TensorType) -> bool:
    """Lower an operator on scalar floats, which make up most traces; return whether this was possible."""
    rule = OPERATOR_RULES[node.kind]
    if out.dtype is not FLOAT or not rule.floats or rule.takes_bools:
        return False
    taken: list[tuple[Any, Shape]] = []
    for value in node.inputs:
        kind: Any = value.type  # type: ignore[union-attr]
        if kind.dtype is not FLOAT or kind.shape:
            return False
        operand = of.operand(value)  # type: ignore[arg-type]
        taken.append((operand, ()) if type(operand) is TracedValue else (float(operand.value), ()))  # type: ignore[union-attr]
    of.assign(node.output, of.emit(node.kind, taken, (), ()))
    return True


ELEMENTWISE: Final = dict.fromkeys(OPERATOR_RULES, _elementwise)
