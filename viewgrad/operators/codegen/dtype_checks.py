"""The checks of a generated function for unsupported dtypes."""

from __future__ import annotations

import numpy as np

from ..language.spec import UNDECIDED, Operator


def refuses_itself(operator: Operator) -> bool:
    """Return whether NumPy itself raises for complex numbers, so that no check is needed."""
    forward = operator.forward
    return isinstance(forward, np.ufunc) and not any(set("FDG") & set(loop) for loop in forward.types)


def kind_check(operator: Operator, *, always: bool = False) -> list[str]:
    """Return a check that no argument without a complex derivative is complex.

    Arguments:
        operator: the operator whose function is generated.
        always: whether to check the dtypes even if NumPy itself would raise for complex numbers.
    """
    if not operator.formulas or (refuses_itself(operator) and not always):
        return []
    tests = []
    for i, argument in enumerate(operator.signature.tensors):
        undecided = operator.dtype_kinds == UNDECIDED and argument.name in operator.differentiable
        if not undecided and operator.accepts_complex(argument.name):
            continue
        if argument.kind == "tensors":
            tests.append("any([array.dtype.kind == 'c' for array in a0])")
        else:
            some = f"a{i} is not None and " if argument.optional else ""
            tests.append(f"{some}a{i}.dtype.kind == 'c'")
    if not tests:
        return []
    lines = [f"    if {' or '.join(tests)}:"]
    if operator.dtype_kinds == UNDECIDED:
        arguments = ", ".join(argument.name for argument in operator.signature.arguments)
        lines += [
            f"        if {operator.name}_operator.dtype_kinds is UNDECIDED:",
            f"            confirm_kinds({operator.name}_operator, {arguments})",
        ]
    return [*lines, f"        refuse_kinds({operator.name}_operator, {_arrays(operator)})"]


def guarded_forward(operator: Operator, call: str) -> list[str]:
    """Return the call of the forward, which raises the library's own error for complex numbers that NumPy rejects."""
    if not operator.formulas or not refuses_itself(operator):
        return [f"    {call}"]
    return [
        "    try:",
        f"        {call}",
        "    except TypeError:",
        f"        refuse_kinds({operator.name}_operator, {_arrays(operator)})",
        "        raise",
    ]


def _arrays(operator: Operator) -> str:
    return ", ".join(f"a{i}" for i in range(len(operator.signature.tensors)))
