"""The alias model of a program: plain NumPy arrays that share memory as its tensors do, with the properties of each.

Programs are drawn along this model, and the values, strides, versions and views of tensors are compared with it.
"""

from __future__ import annotations

import warnings
from typing import Any

import attrs
import numpy as np

from ..type_aliases import Array
from . import program_ops as s
from .functions import view_of_array
from .indices import index_value


@attrs.define(eq=False)
class Memory:
    """A buffer.

    Attributes:
        version: the number of writes to it.
    """

    version: int = 0


@attrs.define(eq=False)
class History:
    """The gradient flow through a base and its views.

    Attributes:
        requires_grad: whether gradients flow.
        leaf: whether the history is that of a leaf that requires grad.
    """

    requires_grad: bool
    leaf: bool = False


@attrs.define(eq=False)
class Facts:
    """Properties of a tensor in the model, besides its array.

    Attributes:
        base: the name of the tensor that it is a view of, or None.
        memory: its buffer.
        history: its history, shared with its base.
        overlaps: whether elements share memory.
        strided: whether it consists of whole elements of its base.
        scalar: whether it is a 0-d value, which cannot be written to.
        unrecorded: whether it was taken under `no_grad`.
        old: whether its base was detached in place afterwards, so that their histories differ.
        unsure: whether part of it may have been written to since then, so that it is unknown whether it requires grad.
    """

    base: str | None
    memory: Memory
    history: History
    overlaps: bool = False
    strided: bool = True
    scalar: bool = False
    unrecorded: bool = False
    old: bool = False
    unsure: bool = False

    @property
    def writable(self) -> bool:
        """Return whether it can be written to in grad mode."""
        return self.memory_is_writable and not (self.history.leaf or self.unrecorded)

    @property
    def memory_is_writable(self) -> bool:
        """Return whether it can be written to in any mode."""
        return not self.overlaps and not self.scalar


class AliasModel:
    """Runs steps on plain arrays.

    Attributes:
        arrays, facts: the array of each tensor, and its other properties, by name.
        recording: whether the steps are in grad mode.
        to_itself: bases whose elements may have been assigned to themselves. This is not a write if both windows are
            taken in the same way, so the history of a view is unknown here.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.facts: dict[str, Facts] = {}
        self.recording = True
        self.to_itself: set[str] = set()

    def leaf(self, leaf: s.Leaf) -> None:
        """Start with a leaf."""
        self.arrays[leaf.name] = leaf.array()
        self.facts[leaf.name] = Facts(None, Memory(), History(leaf.requires_grad, leaf.requires_grad))

    def base_of(self, name: str) -> str:
        """Return the name of a tensor's base, which may be the tensor itself."""
        return self.facts[name].base or name

    def value(self, operand: s.Operand) -> Any:
        """Return the array or number of an operand."""
        if isinstance(operand, str):
            return self.arrays[operand]
        return operand.array() if isinstance(operand, s.Table) else operand

    def requires_grad(self, operands: tuple[Any, ...]) -> bool:
        """Return whether any of the operands requires grad."""
        return any(isinstance(operand, str) and self.facts[operand].history.requires_grad for operand in operands)

    def index(self, index: Any) -> Any:
        """Return an index with its arrays filled in."""
        return index_value(index, self.arrays.__getitem__)

    # -- the steps -----------------------------------------------------------------------------------------------------

    def view(self, step: s.View) -> None:
        if step.op.copies or self.facts[step.tensor].scalar:
            self._fresh(step.out, np.array(view_of_array(step.op, self.arrays[step.tensor])), (step.tensor,))
        else:
            self._view(step.out, self.taken(step), step)

    def taken(self, step: s.View) -> Array:
        """Return the array that a view step produces."""
        if step.op.name == "as_strided":
            return strided(self.arrays[self.base_of(step.tensor)], *step.op.args)
        return view_of_array(step.op, self.arrays[step.tensor])  # type: ignore[no-any-return]

    def unpack(self, step: s.Unpack) -> None:
        for out, array in zip(step.outs, view_of_array(step.op, self.arrays[step.tensor]), strict=True):
            self._view(out, array, step)

    def _view(self, out: str, array: Array, step: Any) -> None:
        facts = self.facts[step.tensor]
        name = step.op.name
        if name in ("expand", "broadcast_to", "np.broadcast_to"):  # their parts may be written to
            array.flags.writeable = True
        strided = facts.strided and name not in ("real", "imag", "view_as_real", "view_as_complex")
        self.arrays[out] = array
        base = self.base_of(step.tensor)
        overlaps = _overlaps(array) or self.facts[base].overlaps  # for a detached tensor that has become a base
        self.facts[out] = attrs.evolve(facts, base=base, overlaps=overlaps, strided=strided, scalar=False)

    def compute(self, step: s.Compute) -> None:
        operands = step.operands
        self._fresh(step.out, step.function.numpy(*map(self.value, operands)), step.function.flowing(operands))

    def several(self, step: s.Several) -> None:
        for out, function in step.parts():
            self._fresh(out, function.numpy(*map(self.value, step.operands)), function.flowing(step.operands))

    def call(self, step: s.Call) -> None:
        self._fresh(step.out, step.numpy([self.value(operand) for operand in step.operands]), step.operands)
        if step.function.name == "clone":
            self.facts[step.out].scalar = False

    def gather(self, step: s.Gather) -> None:
        self._fresh(step.out, np.array(self.arrays[step.tensor][self.index(step.index)]), (step.tensor,))

    def _fresh(self, out: str, array: Any, operands: tuple[Any, ...]) -> None:
        array = np.asarray(array)
        requires = self.recording and array.dtype.kind in "fc" and self.requires_grad(operands)
        self.arrays[out] = array
        self.facts[out] = Facts(None, Memory(), History(requires), scalar=not array.ndim)

    def detach(self, step: s.Detach) -> None:
        facts = self.facts[step.tensor]
        self.arrays[step.out] = self.arrays[step.tensor]
        self.facts[step.out] = Facts(None, facts.memory, History(False), facts.overlaps, scalar=facts.scalar)

    def detach_in_place(self, step: s.DetachInPlace) -> None:
        facts = self.facts[step.tensor]
        for name in self._views(step.tensor):
            self.facts[name].old = True
        facts.history = History(False)

    def _views(self, base: str) -> list[str]:
        return [name for name, facts in self.facts.items() if facts.base == base]

    def unrecorded_view(self, step: s.UnrecordedView) -> None:
        self.view(step.view)
        facts = self.facts[step.view.out]
        facts.history = History(False)
        facts.unrecorded = facts.base is not None

    def write(self, step: s.Write) -> None:
        array = self.arrays[step.target]
        self._written(step.target, step.function.flowing(step.operands, 1))
        array[...] = step.function.numpy(array, *map(self.value, step.operands))

    def overwrite(self, step: s.Overwrite) -> None:
        self._written(step.target, (step.value,))
        self.store(self.arrays[step.target], ..., self.value(step.value))

    def assign(self, step: s.Assign) -> None:
        self._written(step.target, (step.value,))
        array, index = self.arrays[step.target], self.index(step.index)
        if isinstance(step.value, str) and np.may_share_memory(np.asarray(array[index]), self.arrays[step.value]):
            self.to_itself.add(self.base_of(step.target))
        self.store(array, index, self.value(step.value))

    def augment(self, step: s.Augment) -> None:
        array = self.arrays[step.target]
        index = self.index(step.index)
        self._written(step.target, step.function.flowing((step.value,), 1))
        array[index] = step.function.numpy(array[index], self.value(step.value))

    def ufunc_out(self, step: s.UfuncOut) -> None:
        self._written(step.target, step.function.flowing(step.operands))
        array = self.arrays[step.target]
        result = np.broadcast_to(step.function.numpy(*map(self.value, step.operands)), array.shape)
        mask = True if step.where is None else np.broadcast_to(np.array(step.where), array.shape)
        np.copyto(array, result.copy(), where=mask)

    def no_grad(self, step: s.NoGrad) -> None:
        self.recording = False
        for inner in step.steps:
            inner.run(self)
        for name in step.outs:  # names defined inside are not used outside
            del self.arrays[name], self.facts[name]
        self.recording = True

    def _written(self, target: str, operands: tuple[Any, ...]) -> None:
        base = self.base_of(target)
        self.facts[target].memory.version += 1
        if self.recording and self.arrays[target].dtype.kind in "fc" and self.requires_grad(operands):
            self.facts[base].history.requires_grad = True
        if self.recording:
            for name in self._views(base):
                view = self.facts[name]
                if view.old and np.may_share_memory(self.arrays[name], self.arrays[target]):
                    view.history, view.unsure = History(False), True

    @staticmethod
    def store(array: Array, index: Any, value: Any) -> None:
        """Assign `array[index] = value`, without the warning about discarded imaginary parts.

        The value is copied, since NumPy may read elements of it that it has written if both have one dimension.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            array[index] = np.array(value)


def strided(base: Array, size: Any, stride: Any, offset: int) -> Array:
    """Return the window of a contiguous array with these lengths, strides and offset, in elements."""
    flat = base.reshape(-1)
    return np.lib.stride_tricks.as_strided(flat[offset:], size, [step * flat.itemsize for step in stride])


def _overlaps(array: Array) -> bool:
    if not array.size:
        return False
    places = sum(
        np.arange(length).reshape(-1, *(1,) * (array.ndim - 1 - i)) * step
        for i, (length, step) in enumerate(zip(array.shape, array.strides, strict=True))
    )
    return np.unique(places).size < array.size
