"""Drawn programs in PyTorch, an oracle for the programs that PyTorch supports."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .. import program_ops
from ..functions import ViewOp
from ..indices import index_value
from ..program import Program
from .unsupported import LimitedMachine, Unsupported

VIEWS = {
    "T": lambda t: t.permute(*range(t.ndim)[::-1]),
    "mT": lambda t: t.mT,
    "real": lambda t: t.real,
    "imag": lambda t: t.imag,
    "transpose": lambda t, *axes: t.permute(axes[0] if axes and isinstance(axes[0], tuple) else axes),
    "permute": lambda t, *axes: t.permute(axes),
    "index": lambda t, *index: t[index],
    "view_as_real": torch.view_as_real,
    "view_as_complex": torch.view_as_complex,
    "expand_dims": lambda t, dim: t.unsqueeze(dim),
}
OTHER_NAMES = {"conj": "conj_physical"}


def gradients(program: Program) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any] | None]]:
    """Return the values of all tensors, and the gradients of the loss with respect to the leaves.

    Raises:
        Unsupported: for functions that PyTorch does not have.
        RuntimeError, TypeError, ValueError: for operations that PyTorch refuses.
    """
    machine = Torch()
    program.run(machine)
    loss = machine.tensors[program.loss]
    leaves = {leaf.name: machine.tensors[leaf.name] for leaf in program.differentiable_leaves}
    found: Any = [None] * len(leaves)
    if loss.requires_grad:
        found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    values = {name: tensor.detach().resolve_conj().numpy() for name, tensor in machine.tensors.items()}
    first = {name: None if g is None else g.resolve_conj().numpy() for name, g in zip(leaves, found, strict=True)}
    return values, first


class Torch(LimitedMachine):
    """Run steps in PyTorch."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.bases: dict[str, str] = {}

    def leaf(self, leaf: program_ops.Leaf) -> None:
        array = leaf.array()
        if any(step < 0 for step in array.strides) or leaf.single:
            raise Unsupported("negative strides, or other rounding")
        self.tensors[leaf.name] = torch.from_numpy(array).requires_grad_(leaf.requires_grad)

    def value(self, operand: Any) -> Any:
        if isinstance(operand, str):
            return self.tensors[operand]
        return torch.from_numpy(operand.array().copy()) if isinstance(operand, program_ops.Table) else operand

    def index(self, index: Any) -> Any:
        if any(isinstance(item, slice) and (item.step or 1) < 0 for item in index):
            raise Unsupported("negative steps")
        given = index_value(index, lambda name: self.tensors[name].numpy())
        return tuple(torch.from_numpy(item.copy()) if isinstance(item, np.ndarray) else item for item in given)

    def written_index(self, target: str, index: Any) -> Any:
        """Return an index for a write; PyTorch's gradients are wrong for repeated indices."""
        shape = tuple(self.tensors[target].shape)
        places = np.arange(np.prod(shape)).reshape(shape)[index_value(index, lambda name: self.tensors[name].numpy())]
        if np.unique(places).size < places.size:
            raise Unsupported("writing to a place twice")
        return self.index(index)

    def taken(self, name: str, op: ViewOp) -> Any:
        tensor = self.tensors[name]
        if op.name == "as_strided":
            base = self.tensors[self.bases.get(name, name)]
            size, stride, offset = op.args
            return base.as_strided(size, stride, base.storage_offset() + offset)
        method = op.name.removeprefix("np.")
        args = self.index(op.args) if method == "index" else op.args
        if method in VIEWS:
            return VIEWS[method](tensor, *args)
        return getattr(tensor, method)(*args)

    def view(self, step: program_ops.View) -> None:
        self.tensors[step.out] = out = self.taken(step.tensor, step.op)
        aliases = out._is_view() or out is self.tensors[step.tensor]
        if step.op.copies and aliases:
            self.tensors[step.out] = out.clone()
        elif not step.op.copies and not aliases:
            raise Unsupported("a copy where NumPy takes a view")
        if not step.op.copies:
            self.bases[step.out] = self.bases.get(step.tensor, step.tensor)

    def unpack(self, step: program_ops.Unpack) -> None:
        for out, tensor in zip(step.outs, self.taken(step.tensor, step.op), strict=True):
            self.tensors[out] = tensor
            self.bases[out] = self.bases.get(step.tensor, step.tensor)

    def called(self, function: Any, operands: Any, keywords: dict[str, Any] | None = None) -> Any:
        keywords = dict(keywords or {})
        if "axis" in keywords:
            keywords["dim"] = keywords.pop("axis")
        values = [self.value(operand) for operand in operands]
        method = getattr(torch, OTHER_NAMES.get(function.name, function.name), None)
        if method is None:
            raise Unsupported(function.name)
        if function.listed:
            return method(values, **keywords)
        if function.elementwise:
            values = [value if isinstance(value, torch.Tensor) else torch.tensor(value) for value in values]
        return method(*values, **keywords)

    def compute(self, step: program_ops.Compute) -> None:
        self.tensors[step.out] = self.called(step.function, step.operands)

    def call(self, step: program_ops.Call) -> None:
        self.tensors[step.out] = self.called(step.function, step.operands, dict(step.keywords))

    def gather(self, step: program_ops.Gather) -> None:
        self.tensors[step.out] = self.tensors[step.tensor][self.index(step.index)].clone()

    def write(self, step: program_ops.Write) -> None:
        method = getattr(self.tensors[step.target], f"{OTHER_NAMES.get(step.function.name, step.function.name)}_", None)
        if method is None:
            raise Unsupported(step.function.name)
        method(*map(self.value, step.operands))

    def overwrite(self, step: program_ops.Overwrite) -> None:
        value = self.value(step.value)
        target = self.tensors[step.target]
        target.copy_(value) if isinstance(value, torch.Tensor) else target.fill_(value)

    def assign(self, step: program_ops.Assign) -> None:
        self.tensors[step.target][self.written_index(step.target, step.index)] = self.value(step.value)

    def augment(self, step: program_ops.Augment) -> None:
        target, index = self.tensors[step.target], self.written_index(step.target, step.index)
        window = target[index]
        target[index] = getattr(window, f"__i{step.function.name.replace('div', 'truediv')}__")(self.value(step.value))

    def ufunc_out(self, step: program_ops.UfuncOut) -> None:
        result = self.called(step.function, step.operands)
        target = self.tensors[step.target]
        if step.where is None:
            target.copy_(result)
        else:
            mask = torch.tensor(step.where).broadcast_to(target.shape)
            target[mask] = result.broadcast_to(target.shape)[mask].to(target.dtype)

    def detach(self, step: program_ops.Detach) -> None:
        self.tensors[step.out] = self.tensors[step.tensor].detach()

    def detach_in_place(self, step: program_ops.DetachInPlace) -> None:
        self.tensors[step.tensor].detach_()

    def no_grad(self, step: program_ops.NoGrad) -> None:
        with torch.no_grad():
            for inner in step.steps:
                inner.run(self)
