"""Drawn programs in MyGrad, which has views and in-place writes of its own."""

from __future__ import annotations

from typing import Any

import mygrad
import numpy as np

from ...type_aliases import Array
from .. import program_ops
from ..functions import ViewOp, view_of_array
from ..indices import index_value
from ..program import Program
from .unsupported import LimitedMachine, Unsupported

OTHER_NAMES = {"neg": "negative", "mul": "multiply", "sub": "subtract", "div": "divide", "pow": "power"}
VIEWS = ("index", "T", "transpose", "np.transpose", "reshape", "ravel", "swapaxes", "moveaxis", "squeeze")


def gradients(program: Program) -> tuple[dict[str, Array], dict[str, Array | None]]:
    """Return the values of all tensors, and the gradients of the loss with respect to the leaves.

    Raises:
        Unsupported: for features that MyGrad does not have, such as complex numbers.
    """
    if any(leaf.single or leaf.kind == "c" for leaf in program.leaves):
        raise Unsupported("complex numbers, or other rounding")
    machine = InMyGrad()
    program.run(machine)
    machine.tensors[program.loss].backward()
    values = {name: np.asarray(tensor.data) for name, tensor in machine.tensors.items()}
    found = {leaf.name: machine.tensors[leaf.name].grad for leaf in program.differentiable_leaves}
    return values, {name: None if g is None else np.asarray(g) for name, g in found.items()}


class InMyGrad(LimitedMachine):
    """Run steps in MyGrad."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}

    def leaf(self, leaf: program_ops.Leaf) -> None:
        self.tensors[leaf.name] = mygrad.tensor(leaf.array(), constant=None if leaf.requires_grad else True)

    def value(self, operand: Any) -> Any:
        if isinstance(operand, str):
            return self.tensors[operand]
        return operand.array() if isinstance(operand, program_ops.Table) else operand

    def index(self, index: Any) -> Any:
        return index_value(index, lambda name: np.asarray(self.tensors[name].data))

    def view(self, step: program_ops.View) -> None:
        self.tensors[step.out] = self.taken(self.tensors[step.tensor], step.op)

    def taken(self, tensor: Any, op: ViewOp) -> Any:
        name = op.name.removeprefix("np.")
        if op.name not in VIEWS:
            raise Unsupported(op.name)
        if name == "index":
            return tensor[op.args]
        if name == "T":
            return tensor.T
        result = getattr(mygrad, name)(tensor, *((op.args,) if name == "transpose" and op.name == name else op.args))
        if result.shape != np.shape(view_of_array(op, np.asarray(tensor.data))):
            raise Unsupported(op.name)
        return mygrad.tensor(result, copy=True) if op.copies else result

    def called(self, function: Any, operands: Any, keywords: dict[str, Any]) -> Any:
        values = [self.value(operand) for operand in operands]
        if function.name == "clone":
            return values[0] + 0.0
        method = getattr(mygrad, OTHER_NAMES.get(function.name, function.ufunc or function.name), None)
        if method is None or not function.module:
            raise Unsupported(function.name)
        return method(values, **keywords) if function.listed else method(*values, **keywords)

    def compute(self, step: program_ops.Compute) -> None:
        self.tensors[step.out] = self.called(step.function, step.operands, {})

    def call(self, step: program_ops.Call) -> None:
        self.tensors[step.out] = self.called(step.function, step.operands, dict(step.keywords))

    def gather(self, step: program_ops.Gather) -> None:
        self.tensors[step.out] = self.tensors[step.tensor][self.index(step.index)]

    def write(self, step: program_ops.Write) -> None:
        target = self.tensors[step.target]
        target[...] = self.called(step.function, (step.target, *step.operands), {})

    def overwrite(self, step: program_ops.Overwrite) -> None:
        self.tensors[step.target][...] = self.value(step.value)

    def assign(self, step: program_ops.Assign) -> None:
        self.tensors[step.target][self.index(step.index)] = self.value(step.value)

    def augment(self, step: program_ops.Augment) -> None:
        target, index = self.tensors[step.target], self.index(step.index)
        method = getattr(mygrad, OTHER_NAMES.get(step.function.name, step.function.name))
        target[index] = method(target[index], self.value(step.value))

    def ufunc_out(self, step: program_ops.UfuncOut) -> None:
        if step.where is not None:
            raise Unsupported("where")
        self.tensors[step.target][...] = self.called(step.function, step.operands, {})
