"""Calls of a kind seen before, made with little ceremony: tensors and arrays in, tensors out.

It is the usual case: the arguments are tensors and arrays by themselves, and the results are new tensors. What
`Compiled` asks of any call is asked here too. A call that does not fit, or no longer, goes the usual way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..func.tree import Branch, Leaf
from ..symbolic.signature import ResultSpec, Signature
from ..tensor.creation import from_numpy
from ..tensor.tangents import has_tangent
from ..tensor.tensor import Tensor, as_scalar
from .call import called
from .compiled import CompiledProgram

__all__ = ["MISSED", "Direct", "direct"]

MISSED: Final = object()  # what a call gives that does not fit
Array = np.ndarray[Any, Any]
ONE: Final = np.ones(1)


class Direct:
    """Calls with arguments of one kind.

    Arguments:
        entry: what is known of the function for them.
        mode: the mode in which they are made.
        kinds: of each argument, its class, shape, dtype and whether it requires grad.
        scalars: of each result, whether it is a scalar, and the number of the output.
        single: whether there is one result, by itself.
    """

    def __init__(
        self, entry: Any, mode: int, kinds: list[tuple[Any, ...]], scalars: list[tuple[bool, int]], single: bool
    ) -> None:
        self.entry = entry
        self.program: CompiledProgram = entry.program
        self.mode = mode
        self.kinds = kinds
        self.scalars = scalars
        self.single = single

    def call(self, args: tuple[Any, ...], mode: int) -> Any:
        """What the function gives, or `MISSED`."""
        if mode != self.mode or len(args) != len(self.kinds):
            return MISSED
        arrays = self._arrays(args)
        entry = self.entry
        if arrays is None or entry.program is not self.program or not entry.surroundings.unchanged():
            return MISSED
        program = self.program
        failed, outputs, run = program.run(arrays)
        if failed >= 0:
            return MISSED
        entry.calls += 1
        tensors = [arg if type(arg) is Tensor else from_numpy(arg) for arg in args]
        made = called(program, entry.graph, outputs, run, tensors)
        results = [as_scalar(made[number]) if scalar else made[number] for scalar, number in self.scalars]
        return results[0] if self.single else tuple(results)

    def gradients_at(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Array, list[Array]] | None:
        """The only result, and the gradients with respect to some arguments; None where it does not fit.

        Nothing has a history then, and arguments may share memory: what the program writes to is copied before.

        Arguments:
            args: the arguments. Those that are differentiated are arrays, floats or tensors without history.
            numbers: of the arguments that are differentiated.
        """
        if len(args) != len(self.kinds) or not self.single:
            return None
        arrays: list[Array] = []
        for number, (arg, (of, shape, dtype, grad)) in enumerate(zip(args, self.kinds)):
            kind = type(arg)
            if grad is not (number in numbers) or (kind is not of and not grad):
                return None
            if kind is Tensor:
                array = arg._array
                if arg.requires_grad or has_tangent(arg):
                    return None
            elif kind is np.ndarray:
                array = arg
            elif kind is float:
                array = np.array(arg)
            else:
                return None
            if array.shape != shape or array.dtype != dtype:
                return None
            arrays.append(array)
        entry = self.entry
        program = self.program
        if entry.program is not program or not entry.surroundings.unchanged():
            return None
        failed, outputs, run = program.run(arrays)
        if failed >= 0:
            return None
        place = self.scalars[0][1]
        value = outputs[place]
        if value.size != 1 or value.dtype.kind != "f":
            return None
        entry.calls += 1
        seeds: list[Any] = [None] * len(outputs)
        seeds[place] = ONE
        gradients: list[Any] = [None] * len(args)
        for base, gradient in zip(program.wanted, program.gradients(run, seeds)):
            gradients[base.initial] = gradient
        found = [(gradients[number], self.kinds[number][1]) for number in numbers]
        return value, [np.zeros(shape) if each is None else each for each, shape in found]

    def _arrays(self, args: Sequence[Any]) -> list[Array] | None:
        """The arrays of arguments; None where one is of another kind, or where two may share memory."""
        arrays: list[Array] = []
        alone = True
        for arg, (of, shape, dtype, grad) in zip(args, self.kinds):
            if type(arg) is not of:
                return None
            if of is Tensor:
                array = arg._array
                if array.shape != shape or array.dtype != dtype or arg.requires_grad is not grad:
                    return None
                if arg._view is not None:
                    alone = False
            else:
                array = arg
                if array.shape != shape or array.dtype != dtype:
                    return None
            if type(array) is np.ndarray and array.base is not None:
                alone = False
            for other in arrays:
                if other is array or (not alone and np.may_share_memory(other, array)):
                    return None
            arrays.append(array)
        return arrays


def direct(entry: Any, mode: int, args: tuple[Any, ...], keywords: Any) -> Direct | None:
    """How calls like this one can be made with little ceremony; None where they cannot.

    Arguments:
        entry: what is known of the function for these arguments, with a program that was checked.
        mode: the mode.
        args, keywords: the arguments.
    """
    signature: Signature = entry.graph.signature
    inputs = signature.inputs
    fits = not keywords and not entry.closures and not signature.mutations and len(inputs) == len(args)
    if not fits or [spec.leaf for spec in inputs] != list(range(len(args))):
        return None
    if any(type(arg) is not Tensor and type(arg) is not np.ndarray for arg in args):
        return None
    kinds = [
        (Tensor, arg._array.shape, arg._array.dtype, arg.requires_grad) if type(arg) is Tensor
        else (np.ndarray, arg.shape, arg.dtype, False)
        for arg in args
    ]  # fmt: skip
    scalars: list[tuple[bool, int]] = []
    for spec in signature.results:
        if type(spec) is not ResultSpec or spec.input is not None or spec.base is not None or spec.steps:
            return None
        scalars.append((spec.scalar, spec.output))
    form = signature.result
    single = type(form) is Leaf
    row = type(form) is Branch and form.kind is tuple and all(type(child) is Leaf for child in form.children)
    if not (single or row) or len({number for _, number in scalars}) < len(scalars):
        return None
    return Direct(entry, mode, kinds, scalars, single)
