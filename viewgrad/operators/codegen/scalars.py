"""What generated functions do with scalars: Python's operators on NumPy's numbers, ten times as fast as a ufunc.

See Note [Scalars are values] in docs/notes/scalars.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..language.declaration import Operator
from .node_writer import backward_name, edge_slots, needs_input_specs

__all__ = ["EXPRESSIONS", "scalar_path"]

# What a ufunc gives for numbers of type float64, in terms of `n0` and `n1`.
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


def scalar_path(operator: Operator) -> list[str]:
    """The lines with which a generated function begins that handle scalars of type float64; none for most operators.

    Numbers of Python's own, and arrays without dimensions, are taken for scalars. One node is made, which keeps the
    numbers themselves.
    """
    forward: Any = operator.forward
    expression = EXPRESSIONS.get(operator.forward) if isinstance(operator.forward, np.ufunc) else None
    arguments = operator.signature.tensors
    formulas = operator.formulas
    if (
        expression is None
        or not operator.elementwise
        or operator.user_defined
        or len(arguments) != forward.nin
        or len(operator.signature.arguments) != len(arguments)
        or any(argument.optional for argument in arguments)
        or any(formula.kept != () for formula in formulas)
    ):
        return []
    names = [argument.name for argument in arguments]
    if len(names) == 1:
        (name,) = names
        tests = [f"    if type({name}) is Tensor and type({name}._array) is float64 and current_mode() <= GRAD:"]
        tests += [f"        n0 = {name}._array", f"        s0 = {name}._edge"]
    else:
        first, second = names
        tests = [
            f"    if type({first}) is Tensor:",
            f"        n0 = {first}._array",
            "        if type(n0) is not float64:",
            "            n0 = None if n0.ndim else n0[()]",
            f"    elif type({second}) is Tensor and (type({second}._array) is float64 or not {second}._array.ndim):",
            f"        n0 = float64({first}) if type({first}) in NUMBERS else None",
            "    else:",
            "        n0 = None",
            "    if type(n0) is float64:",
            f"        if type({second}) is Tensor:",
            f"            n1 = {second}._array",
            "            if type(n1) is not float64:",
            "                n1 = None if n1.ndim else n1[()]",
            "        else:",
            f"            n1 = float64({second}) if type({second}) in NUMBERS else None",
            "        if type(n1) is float64 and current_mode() <= GRAD:",
        ]
    indent = "        " if len(names) == 1 else "            "
    body = [
        f"r0 = {expression}",
        "out0 = new(Tensor)",
        "out0._array = r0",
        "out0._view = None",
        "out0._storage = None",
        "out0._saved = None",
    ]
    differentiable = {name for formula in formulas for name in formula.inputs}
    if not differentiable:
        body += ["out0._edge = None", "return out0"]
        return [*tests, *(indent + line for line in body)]
    edges = []
    for i, name in enumerate(names):
        if name not in differentiable:
            edges.append("None")
            continue
        edges.append(f"s{i}")
        if len(names) > 1:
            edge = f"{name}._edge if {name}._view is None else {name}._view.edge_of({name})"
            body.append(f"s{i} = ({edge}) if type({name}) is Tensor else None")
    some = " or ".join(f"{edge} is not None" for edge in edges if edge != "None")
    body += [
        f"if ({some}) and current_mode():",
        f"    node = new({backward_name(operator.name)})",
        *(f"    node.{slot} = {edge}" for slot, edge in zip(edge_slots(operator), edges, strict=True)),
        "    node.hooks = None",
        "    node.sequence_nr = next_sequence_nr()",
    ]
    for name in dict.fromkeys(read for formula in formulas for read in (*formula.reads, *formula.results)):
        body.append(f"    node.saved_{name} = {f'n{names.index(name)}' if name in names else 'r0'}")
    if needs_input_specs(operator):
        body.append("    node.input_specs = None")
    body += ["    out0._edge = node", "else:", "    out0._edge = None", "return out0"]
    return [*tests, *(indent + line for line in body)]
