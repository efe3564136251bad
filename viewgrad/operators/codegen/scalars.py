"""The fast path for scalars: Python's operators on NumPy scalars are ten times as fast as ufuncs.

See Note [Scalars are values] in docs/notes/scalars.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...views.scalar_nodes import DIFFERENCE, NEGATIVE, OVER_SELF, PRODUCT, QUOTIENT, SUM, TIMES_RESULT
from ..language.spec import Operator
from .node_writer import backward_name, edge_slots, needs_input_specs

# The expression equivalent to a ufunc for float64 numbers `n0` and `n1`.
EXPRESSIONS: Final[dict[Any, str]] = {
    np.add: "n0 + n1",
    np.subtract: "n0 - n1",
    np.multiply: "n0 * n1",
    np.true_divide: "n0 / n1",
    np.floor_divide: "n0 // n1",
    np.remainder: "n0 % n1",
    np.power: "n0 ** n1",
    np.less: "n0 < n1",
    np.less_equal: "n0 <= n1",
    np.greater: "n0 > n1",
    np.greater_equal: "n0 >= n1",
    np.equal: "n0 == n1",
    np.not_equal: "n0 != n1",
    np.minimum: "n0 if n0 <= n1 or n0 != n0 else n1",
    np.maximum: "n0 if n0 >= n1 or n0 != n0 else n1",
    np.negative: "-n0",
    np.square: "n0 * n0",
}


# The formulas of operators. Those with `flowing` are 0 wherever the gradient is 0: Note [Infinite slopes].
FORMS: Final[dict[tuple[str, ...], int]] = {
    ("grad", "grad"): SUM,
    ("grad", "-grad"): DIFFERENCE,
    ("grad * conj(other)", "grad * conj(self)"): PRODUCT,
    ("flowing(grad / conj(other), grad)", "flowing(-grad * conj(result / other), grad)"): QUOTIENT,
    ("-grad",): NEGATIVE,
    ("flowing(grad * conj(result), grad)",): TIMES_RESULT,
    ("flowing(grad / conj(self), grad)",): OVER_SELF,
}


def form_of(operator: Operator) -> int | None:
    """Return the form of the formulas of an elementwise operator, if the engine supports it."""
    formulas = operator.formulas
    names = tuple(argument.name for argument in operator.signature.tensors)
    if names != ("self", "other")[: len(names)] or tuple(formula.inputs for formula in formulas) != tuple(
        (name,) for name in names
    ):
        return None
    return FORMS.get(tuple(formula.text.strip() for formula in formulas))


def scalar_path(operator: Operator) -> list[str]:
    """Return the lines of a generated function that handle float64 scalars; empty for most operators.

    Python numbers and 0-d arrays are treated as scalars. A single node is created, which stores the numbers themselves.
    """
    forward: Any = operator.forward
    arguments = operator.signature.tensors
    formulas = operator.formulas
    if (
        not isinstance(forward, np.ufunc)
        or forward.nout > 1
        or len(arguments) > 2
        or not operator.elementwise
        or operator.user_defined
        or len(arguments) != forward.nin
        or len(operator.signature.arguments) != len(arguments)
        or any(argument.optional for argument in arguments)
        or any(formula.kept != () for formula in formulas)
    ):
        return []
    expression = EXPRESSIONS.get(forward, f"{operator.name}_forward({', '.join(('n0', 'n1')[: len(arguments)])})")
    names = [argument.name for argument in arguments]
    form = form_of(operator)
    differentiable = {name for formula in formulas for name in formula.inputs}
    tests, indent = _one_number(names[0]) if len(names) == 1 else _two_numbers(names, form is None, differentiable)
    body = [
        f"r0 = {expression}",
        "out0 = new(Tensor)",
        "out0._array = r0",
        "out0._view = None",
        "out0._storage = None",
        "out0._saved = None",
    ]
    if not differentiable:
        body += ["out0._edge = None", "return out0"]
        return [*tests, *(indent + line for line in body)]
    edges = [f"s{i}" if name in differentiable else "None" for i, name in enumerate(names)]
    some = " or ".join(f"{edge} is not None" for edge in edges if edge != "None")
    body += [f"if ({some}) and mode_bits:", *(f"    {line}" for line in _node(operator, form, names, edges))]
    body += ["    out0._edge = node", "else:", "    out0._edge = None", "return out0"]
    return [*tests, *(indent + line for line in body)]


def _one_number(name: str) -> tuple[list[str], str]:
    """Return the test for a scalar, which assigns `n0`, and the indentation of the code that follows."""
    return [
        f"    if type({name}) is Tensor and type({name}._array) is float64 and (mode_bits := current_mode()) <= GRAD:",
        f"        n0 = {name}._array",
        f"        s0 = {name}._edge",
    ], "        "


def _two_numbers(names: list[str], converted: bool, differentiable: set[str]) -> tuple[list[str], str]:
    """Return the test for a scalar and another number, which assigns `n0` and `n1`, and the indentation of the code
    that follows.

    The test comes first in every call, so it is as short as possible for arrays: two type checks. Python numbers are
    converted only if necessary, since creating a float64 costs more than adding it. A scalar is never a view, so its
    edge is current; a 0-d array may be a view. Operands that are not numbers are handled by the code that follows; no
    mode is `UNSUITABLE`.

    Arguments:
        names: the names of the two arguments.
        converted: whether Python numbers must be converted.
        differentiable: the names of the differentiable arguments, whose edges are `s0` and `s1`.
    """
    lines: list[str] = []
    for i, name in enumerate(names):
        lines += [f"    if type({name}) is Tensor:", f"        n{i} = {name}._array"]
        lines += [f"        s{i} = {name}._edge"] if name in differentiable else []
        lines += ["    else:", f"        n{i} = {name}"]
        lines += [f"        s{i} = None"] if name in differentiable else []
    lines += ["    if type(n0) is float64 or type(n1) is float64:", "        mode_bits = current_mode()"]
    for i, name in enumerate(names):
        lines.append(f"        {'elif' if i else 'if'} type(n{i}) is not float64:")
        number = f"None if type(n{i}) is ndarray and n{i}.ndim else number_beside_scalar(n{i})"
        branch = [f"n{i} = {number}", f"if n{i} is None:", "    mode_bits = UNSUITABLE"]
        if name in differentiable:
            branch += [f"elif type({name}) is Tensor:", f"    s{i} = current_edge({name})"]
        if not converted:
            start = [f"if type(n{i}) is int:", f"    n{i} = float(n{i})", f"elif type(n{i}) is not float:"]
            branch = [*start, *(f"    {line}" for line in branch)]
        lines += [f"            {line}" for line in branch]
    return [*lines, "        if mode_bits <= GRAD:"], "            "


def _node(operator: Operator, form: int | None, names: list[str], edges: list[str]) -> list[str]:
    """Generate the lines that create the node, which stores the numbers themselves."""
    node_class = backward_name(operator.name) if form is None else ("ScalarOfOne", "ScalarOfTwo")[len(names) - 1]
    lines = [
        f"node = {node_class}()",
        *(f"node.{slot} = {edge}" for slot, edge in zip(edge_slots(operator), edges, strict=True)),
        "node.hooks = None",
        "node.sequence_nr = next_sequence_nr()",
    ]
    for name in dict.fromkeys(read for formula in operator.formulas for read in (*formula.reads, *formula.results)):
        lines.append(f"node.saved_{name} = {f'n{names.index(name)}' if name in names else 'r0'}")
    if form is not None:
        lines.append(f"node.rule = {operator.name}_scalar_rule")
    elif needs_input_specs(operator):
        lines.append("node.input_specs = None")
    return lines
