"""Values and gradients of operators, programs, transforms and compiled functions, printed as JSON.

`test_optimized.py` runs it under `python -O` and `-OO` and compares the output, so nothing here is an `assert`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from operator_samples import samples_of

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import grad
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import AutogradError, DeclarationError
from viewgrad.operators import OPERATORS


def as_lists(value: Any) -> Any:
    """Return nested lists of numbers as text, with all digits."""
    if isinstance(value, tuple | list):
        return [as_lists(item) for item in value]
    array = value.detach().numpy() if type(value) is vg.Tensor else np.asarray(value)
    return [repr(number) for number in array.ravel().tolist()]


def of_operator(operator: Any) -> Any:
    """Return the outputs, gradients and tangents of an operator at its first sample."""
    sample = samples_of(operator)[0]
    given = {name: value for name, value in sample.bound().items() if name in sample.differentiable()}
    given = {name: value for name, value in given.items() if not isinstance(value, list)}
    leaves = {name: vg.Tensor(value, requires_grad=True) for name, value in given.items()}
    moved = sample.replace(**leaves)
    result = operator.function(*moved.args, **moved.kwargs)
    outputs = result if isinstance(result, tuple) else (result,)
    found = [as_lists(outputs)]
    with_history = [output for output in outputs if output.requires_grad]
    if with_history:
        slopes = grad(with_history, list(leaves.values()), [output.detach() for output in with_history],
                      allow_unused=True)
        found.append([None if slope is None else as_lists(slope) for slope in slopes])
        with forward_ad.dual_level():
            duals = {
                name: forward_ad.make_dual(leaf.detach(), vg.ones_like(leaf.detach())) for name, leaf in leaves.items()
            }
            moved = sample.replace(**duals)
            result = operator.function(*moved.args, **moved.kwargs)
            for output in result if isinstance(result, tuple) else (result,):
                tangent = forward_ad.unpack_dual(output).tangent
                found.append(None if tangent is None else as_lists(tangent))
    return found


def rows(a: Any) -> Any:
    """Write a table row by row, then in place, then over its own views."""
    out = vg.zeros((3, a.size))
    for i in range(3):
        out[i] = vg.sin(a) * (i + 1)
    out *= a
    out[1:] += out[:-1] / 2.0
    out[0, 0] = 3.0 - a[1]
    return out.sum()


def loop(a: Any) -> Any:
    """Run a recurrence in place, with a branch."""
    y = a.copy()
    for i in range(1, len(y)):
        y[i] = 0.5 * y[i - 1] + (y[i] if a[i] > 0 else -y[i])
    return (y * y).sum()


def of_programs(few: bool) -> Any:
    """Return the results of programs by each route to a gradient."""
    point = np.array([0.5, -1.25, 2.0, 0.75])
    found = []
    for program in (rows, loop):
        found += [
            as_lists(func.grad(program)(point)),
            as_lists(func.hessian(program)(point)),
            as_lists(func.jvp(program, (point,), (np.ones(4),))[1]),
        ]
    for program in (rows, loop)[: 1 if few else 2]:
        compiled = vg.compile(program)
        for scale in (1.0, 2.0, -1.0):
            value, slope = compiled.value_and_grad(point * scale)
            found.append([as_lists(value), as_lists(slope)])
    cube = vg.autograd.define_op(
        "cube_of_optimized(x)", forward=lambda x: x**3, derivatives={"x": "grad * 3 * x**2"}, elementwise=True
    )
    found.append(as_lists(func.grad(lambda a: cube(a).sum())(point)))
    return found


def refusals() -> Any:
    """Return the class of the error of each refused program."""
    leaf = vg.Tensor([1.0, 2.0], requires_grad=True)

    def write() -> None:
        leaf[0] = 1.0

    def declare() -> None:
        vg.autograd.define_op("bad_of_optimized(x)", forward=np.sin, derivatives={"x": "grad * y"})

    found = []
    for action in (write, declare, lambda: vg.ones(2).backward(), lambda: leaf.numpy()):
        try:
            action()
        except (AutogradError, DeclarationError) as error:
            found.append(type(error).__name__)
        else:
            found.append("nothing")
    return found


def main() -> None:
    """Print all results."""
    found: dict[str, Any] = {}
    every = int(sys.argv[1])
    for operator in list(OPERATORS.values())[::every]:
        if operator.formulas:
            with np.errstate(all="ignore"):
                found[operator.name] = of_operator(operator)
    found["programs"] = of_programs(every > 1)
    found["refusals"] = refusals()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
