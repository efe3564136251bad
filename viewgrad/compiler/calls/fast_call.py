"""The fast path for calls with a cached signature.

In the common case, the arguments are tensors and arrays, the results are new tensors, and no argument is written to.
All guards of the general path are checked here too. A call that does not match takes the general path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...func.tree import Branch, Leaf
from ...tensor.creation import over_memory
from ...tensor.escapes import has_tangent
from ...tensor.masked_backward import holds_nan
from ...tensor.tensor import Tensor, as_scalar
from ...trace.signature import ResultSpec
from ...type_aliases import Array
from ..guards.call_signature import CallSignature, call_signature, share_memory, share_memory_with
from ..runtime import PLAIN, CompiledProgram
from .arguments import FLOATS, Call
from .guarded_trace import GuardedTrace
from .node import called
from .value_and_grad import ValueAndGradRunner

MISSED: Final = object()  # returned for a call that does not match
ONE: Final = np.ones(1)


@attrs.frozen(eq=False)
class GuardFailure:
    """A run of a program in which a guard failed: the program and the line number."""

    program: CompiledProgram
    line: int


@attrs.define(eq=False)
class PlainCall:
    """The common case: tensors and arrays as positional arguments, and new tensors as results.

    Arguments:
        kinds: the class, shape, dtype, `requires_grad` and strides of each argument, and the class of its array.
        scalars: for each result, whether it is a scalar, and its output number.
        single: whether the result is a single tensor, not a tuple.
    """

    kinds: list[tuple[Any, ...]]
    scalars: list[tuple[bool, int]]
    single: bool


class FastCall:
    """The fast path of calls with one signature.

    Arguments:
        trace, program: the trace and its verified program.
        mode: the mode of the calls.
        signature: the signature of their arguments.
        plain: the call if it is the common case, otherwise None.
    """

    def __init__(
        self, trace: GuardedTrace, program: CompiledProgram, mode: int, signature: CallSignature,
        plain: PlainCall | None,
    ) -> None:
        self.trace = trace
        self.program = program
        self.mode = mode
        self.signature = signature
        self.plain = plain
        self.runner: ValueAndGradRunner | None = None
        if plain is not None and plain.single:
            self.runner = ValueAndGradRunner.of(program, plain.scalars[0][1])
        self.orders: dict[Sequence[int], list[tuple[int | None, Any, Any]]] = {}

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """Return the function's result, a `GuardFailure`, or `MISSED`."""
        if mode != self.mode:
            return MISSED
        plain = self.plain
        if plain is None or keywords:
            return self._any_call(args, keywords)
        if len(args) != len(plain.kinds):
            return MISSED
        arrays = self._arrays(args, plain.kinds)
        trace = self.trace
        if arrays is None or not trace.guard.unchanged():
            return MISSED
        if trace.guard.plain_arrays and share_memory_with(arrays, trace.guard.plain_arrays):
            return MISSED
        program = self.program
        failed, outputs, run = program.run(arrays)
        if failed >= 0:
            return GuardFailure(program, failed)
        tensors = [arg if type(arg) is Tensor else over_memory(arg) for arg in args]
        made = called(program, trace.graph, outputs, run, tensors)
        results = [as_scalar(made[number]) if scalar else made[number] for scalar, number in plain.scalars]
        return results[0] if plain.single else tuple(results)

    def _any_call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        leaves = self.signature.leaves(args, keywords)
        trace, program = self.trace, self.program
        if leaves is None or not trace.guard.unchanged():
            return MISSED
        tensors = trace.inputs(leaves)
        if isinstance(tensors, str) or share_memory(tensors) or trace.shares_memory(tensors):
            return MISSED
        failed, outputs, run = program.run([tensor._array for tensor in tensors])
        if failed >= 0:
            return GuardFailure(program, failed)
        return trace.results(tensors, called(program, trace.graph, outputs, run, tensors), leaves)

    def value_and_grad(
        self, args: tuple[Any, ...], numbers: Sequence[int]
    ) -> tuple[bool, Any, list[Array]] | None:
        """Return the only result and the gradients with respect to some arguments, or None for calls that do not match.

        Nothing has a history in this case, and arguments may share memory, because arguments that the program writes to
        are copied.

        Arguments:
            args: the arguments. Differentiated arguments must be arrays, floats or tensors without history.
            numbers: the numbers of the differentiated arguments.

        Returns:
            Whether the result is a scalar, its value, and the gradients.
        """
        plain = self.plain
        if plain is None or len(args) != len(plain.kinds) or not plain.single:
            return None
        order = self.orders.get(numbers)
        if order is None:
            order = self.orders[numbers] = self._order(plain, numbers)
        arrays = _plain_arrays(args, plain.kinds)
        if arrays is None or not order or not self.trace.guard.unchanged():
            return None
        found = self._at_once(arrays) if self.runner is not None else self._in_turn(arrays, plain)
        if found is None:
            return None
        value, gradients = found
        if holds_nan(gradients):  # zeros may have met infinite factors
            return None
        return plain.scalars[0][0], value, [
            np.zeros(shape, dtype) if position is None or gradients[position] is None else gradients[position]
            for position, shape, dtype in order
        ]

    def _order(self, plain: PlainCall, numbers: Sequence[int]) -> list[tuple[int | None, Any, Any]]:
        """Return, for each of `numbers`, the position of its gradient, its shape and dtype.

        The list is empty if the arguments that require gradients are others.
        """
        if any(grad is not (number in numbers) for number, (_, _, _, grad, _, _) in enumerate(plain.kinds)):
            return []
        positions = {base.initial: position for position, base in enumerate(self.program.wanted)}
        return [(positions.get(number), plain.kinds[number][1], plain.kinds[number][2]) for number in numbers]

    def _at_once(self, arrays: list[Array]) -> tuple[Any, list[Any]] | None:
        """Return the value and the gradients from a single run, if all arrays are plain."""
        flat: list[Array] = []
        array: Any
        for array in arrays:
            if type(array) is np.float64:
                array = np.array([array])
            if type(array) is not np.ndarray or array.flags.num & PLAIN != PLAIN:
                return self._in_turn(arrays, self.plain)
            flat.append(array if array.ndim == 1 else array.reshape(-1))
        assert self.runner is not None
        return self.runner.run(flat)

    def _in_turn(self, arrays: list[Array], plain: Any) -> tuple[Any, list[Any]] | None:
        """Return the value and the gradients from a run of the program followed by a run of its gradient."""
        program = self.program
        failed, outputs, run = program.run(arrays)
        if failed >= 0:
            return None
        position = plain.scalars[0][1]
        value = outputs[position]
        if value.size != 1 or value.dtype.kind != "f":
            return None
        seeds: list[Any] = [None] * len(outputs)
        seeds[position] = ONE
        return value, program.gradients(run, seeds)

    def _arrays(self, args: Sequence[Any], kinds: list[tuple[Any, ...]]) -> list[Array] | None:
        """Return the arrays of the arguments, or None if one does not match or two may share memory."""
        arrays: list[Array] = []
        alone = True
        for arg, (of, shape, dtype, grad, strides, kind) in zip(args, kinds):
            if type(arg) is not of:
                return None
            if of is Tensor:
                array = arg._array
                if array.shape != shape or array.dtype != dtype or arg.requires_grad is not grad:
                    return None
                if type(array) is not kind:
                    return None
                if arg._view is not None:
                    alone = False
            else:
                array = arg
                if array.shape != shape or array.dtype != dtype:
                    return None
            if array.strides != strides:
                return None
            if type(array) is np.ndarray and array.base is not None:
                alone = False
            for other in arrays:
                if other is array or (not alone and np.may_share_memory(other, array)):
                    return None
            arrays.append(array)
        return arrays


def _plain_arrays(args: Sequence[Any], kinds: list[tuple[Any, ...]]) -> list[Array] | None:
    """Return the arrays of arguments without history, or None if one does not match."""
    arrays: list[Array] = []
    for arg, (of, shape, dtype, grad, strides, held) in zip(args, kinds):
        kind = type(arg)
        if kind is not of and not grad:
            return None
        if kind is Tensor:
            array = arg._array
            if arg._view is not None or arg._edge is not None or has_tangent(arg):
                if arg.requires_grad or has_tangent(arg):
                    return None
        elif kind is np.ndarray:
            array = arg
        elif kind in FLOATS and held is not np.ndarray:
            array = np.float64(arg)
        else:
            return None
        if type(array) is not held:
            return None
        if array.shape != shape or (array.dtype is not dtype and array.dtype != dtype) or array.strides != strides:
            return None
        arrays.append(array)
    return arrays


class EagerCall:
    """The signature of calls that run the function itself.

    Arguments:
        mode: the mode of the calls.
        signature: the signature of their arguments.
    """

    def __init__(self, mode: int, signature: CallSignature) -> None:
        self.mode = mode
        self.signature = signature

    def matches(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> bool:
        """Return whether a call has this signature."""
        return mode == self.mode and self.signature.leaves(args, keywords) is not None


def eager_call(call: Call) -> EagerCall | None:
    """Return the signature of calls like the given one, or None if they have no fast path.

    Arguments:
        call: the call.
    """
    signature = call_signature(call.args, call.keywords, call.leaves, call.static)
    return None if signature is None else EagerCall(call.mode, signature)


def fast_call(trace: GuardedTrace, program: CompiledProgram, call: Call) -> FastCall | None:
    """Return the fast path for calls like the given one, or None if there is none.

    Arguments:
        trace, program: the trace and its verified program.
        call: the call.
    """
    signature = call_signature(call.args, call.keywords, call.leaves, call.static)
    if signature is None:
        return None
    return FastCall(trace, program, call.mode, signature, _plain_call(trace, call))


def _plain_call(trace: GuardedTrace, call: Call) -> PlainCall | None:
    signature, args = trace.signature, call.args
    inputs = signature.inputs
    fits = not call.keywords and not trace.closures and not signature.mutations and len(inputs) == len(args)
    if not fits or [spec.leaf for spec in inputs] != list(range(len(args))):
        return None
    if any(type(arg) is not Tensor and type(arg) is not np.ndarray for arg in args):
        return None
    kinds = [
        (Tensor, arg._array.shape, arg._array.dtype, arg.requires_grad, arg._array.strides, type(arg._array))
        if type(arg) is Tensor else (np.ndarray, arg.shape, arg.dtype, False, arg.strides, np.ndarray)
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
    return PlainCall(kinds, scalars, single)
