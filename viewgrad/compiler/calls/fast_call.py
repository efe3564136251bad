"""Calls of a kind seen before, made with little ceremony: tensors and arrays in, tensors out.

It is the usual case: the results are new tensors, and no argument is written to. What `Compiled` asks of any call is
asked here too. A call that does not fit, or no longer, goes the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...func.tree import Branch, Leaf
from ...tensor.creation import from_numpy
from ...tensor.tangents import has_tangent
from ...tensor.tensor import Tensor, as_scalar
from ...trace.graph import Graph
from ...trace.signature import ResultSpec, Signature
from ..compiled import PLAIN, CompiledProgram
from ..guards.call_signature import CallSignature, likeness
from .arguments import FLOATS
from .node import called
from .value_and_grad import together

if TYPE_CHECKING:
    from ..api import Compiled, Specialization

__all__ = ["MISSED", "EagerCall", "FastCall", "direct", "sharing"]

MISSED: Final = object()  # what a call gives that does not fit
Array = np.ndarray[Any, Any]
ONE: Final = np.ones(1)


class Plain:
    """Calls with tensors and arrays by themselves, and with new tensors for results.

    Arguments:
        kinds: of each argument, its class, shape, dtype, whether it requires grad, and its strides.
        scalars: of each result, whether it is a scalar, and the number of the output.
        single: whether there is one result, by itself.
    """

    __slots__ = ("kinds", "scalars", "single")

    def __init__(self, kinds: list[tuple[Any, ...]], scalars: list[tuple[bool, int]], single: bool) -> None:
        self.kinds = kinds
        self.scalars = scalars
        self.single = single


class FastCall:
    """Calls with arguments of one kind.

    Arguments:
        compiled: the function.
        entry: what is known of it for them.
        graph, program: its graph and its program.
        mode: the mode in which they are made.
        like: what the arguments look like.
        plain: what more is known of them in the usual case.
    """

    def __init__(
        self, compiled: Compiled, entry: Specialization, graph: Graph, program: CompiledProgram, mode: int,
        like: CallSignature, plain: Plain | None,
    ) -> None:
        self.compiled = compiled
        self.entry = entry
        self.graph = graph
        self.program = program
        self.surroundings = entry.surroundings  # as of now: another thread may record anew at any time
        self.mode = mode
        self.like = like
        self.plain = plain
        self.together = together(self.program, plain.scalars[0][1]) if plain is not None and plain.single else None
        self.orders: dict[Sequence[int], list[tuple[int | None, Any, Any]]] = {}

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """What the function gives, or `MISSED`."""
        if mode != self.mode:
            return MISSED
        plain = self.plain
        if plain is None or keywords:
            return self._any_call(args, keywords)
        if len(args) != len(plain.kinds):
            return MISSED
        arrays = self._arrays(args, plain.kinds)
        entry = self.entry
        surroundings = self.surroundings
        if arrays is None or entry.program is not self.program or surroundings is None or not surroundings.unchanged():
            return MISSED
        program = self.program
        failed, outputs, run = program.run(arrays)
        if failed >= 0:
            return self.compiled.missed(entry, failed, args, keywords)
        entry.calls += 1
        tensors = [arg if type(arg) is Tensor else from_numpy(arg) for arg in args]
        made = called(program, self.graph, outputs, run, tensors)
        results = [as_scalar(made[number]) if scalar else made[number] for scalar, number in plain.scalars]
        return results[0] if plain.single else tuple(results)

    def _any_call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        leaves = self.like.leaves(args, keywords)
        entry, program, surroundings = self.entry, self.program, self.surroundings
        if leaves is None or entry.program is not program or surroundings is None or not surroundings.unchanged():
            return MISSED
        tensors = self.compiled.inputs(entry, leaves)
        if isinstance(tensors, str) or sharing(tensors):
            return MISSED
        failed, outputs, run = program.run([tensor._array for tensor in tensors])
        if failed >= 0:
            return self.compiled.missed(entry, failed, args, keywords)
        entry.calls += 1
        return self.compiled.results(self.graph, tensors, called(program, self.graph, outputs, run, tensors))

    def gradients_at(self, args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, list[Array]] | None:
        """The only result, and the gradients with respect to some arguments; None where it does not fit.

        Nothing has a history then, and arguments may share memory: what the program writes to is copied before.

        Arguments:
            args: the arguments. Those that are differentiated are arrays, floats or tensors without history.
            numbers: of the arguments that are differentiated.
        """
        plain, entry = self.plain, self.entry
        if plain is None or len(args) != len(plain.kinds) or not plain.single:
            return None
        program, surroundings = self.program, self.surroundings
        order = self.orders.get(numbers)
        if order is None:
            order = self.orders[numbers] = self._order(plain, numbers)
        arrays = _given(args, plain.kinds)
        if arrays is None or not order or entry.program is not program:
            return None
        if surroundings is None or not surroundings.unchanged():
            return None
        found = self._together(arrays) if self.together is not None else self._in_turn(arrays, plain)
        if found is None:
            return None
        entry.calls += 1
        value, gradients = found
        return value, [
            np.zeros(shape, dtype) if place is None or gradients[place] is None else gradients[place]
            for place, shape, dtype in order
        ]

    def _order(self, plain: Plain, numbers: Sequence[int]) -> list[tuple[int | None, Any, Any]]:
        """For each of these arguments which gradient it is, its shape and dtype; nothing where others are wanted."""
        if any(grad is not (number in numbers) for number, (_, _, _, grad, _) in enumerate(plain.kinds)):
            return []
        places = {base.initial: place for place, base in enumerate(self.program.wanted)}
        return [(places.get(number), plain.kinds[number][1], plain.kinds[number][2]) for number in numbers]

    def _together(self, arrays: list[Array]) -> tuple[Any, list[Any]] | None:
        """The number that the program gives and its gradients, where all arrays are plain."""
        flat = []
        for array in arrays:
            if type(array) is not np.ndarray or array.flags.num & PLAIN != PLAIN:
                return self._in_turn(arrays, self.plain)
            flat.append(array if array.ndim == 1 else array.reshape(-1))
        assert self.together is not None
        return self.together.run(flat)

    def _in_turn(self, arrays: list[Array], plain: Any) -> tuple[Any, list[Any]] | None:
        """The number that any program gives and its gradients, one after the other."""
        program = self.program
        failed, outputs, run = program.run(arrays)
        if failed >= 0:
            return None
        place = plain.scalars[0][1]
        value = outputs[place]
        if value.size != 1 or value.dtype.kind != "f":
            return None
        seeds: list[Any] = [None] * len(outputs)
        seeds[place] = ONE
        return value, program.gradients(run, seeds)

    def _arrays(self, args: Sequence[Any], kinds: list[tuple[Any, ...]]) -> list[Array] | None:
        """The arrays of arguments; None where one is of another kind, or where two may share memory."""
        arrays: list[Array] = []
        alone = True
        for arg, (of, shape, dtype, grad, strides) in zip(args, kinds):
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
            if array.strides != strides:
                return None
            if type(array) is np.ndarray and array.base is not None:
                alone = False
            for other in arrays:
                if other is array or (not alone and np.may_share_memory(other, array)):
                    return None
            arrays.append(array)
        return arrays


def _given(args: Sequence[Any], kinds: list[tuple[Any, ...]]) -> list[Array] | None:
    """The arrays of arguments that have no history; None where one is of another kind."""
    arrays: list[Array] = []
    for arg, (of, shape, dtype, grad, strides) in zip(args, kinds):
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
        elif kind in FLOATS:
            array = np.array(arg)
        else:
            return None
        if array.shape != shape or (array.dtype is not dtype and array.dtype != dtype) or array.strides != strides:
            return None
        arrays.append(array)
    return arrays


class EagerCall:
    """Calls that run the function itself.

    Arguments:
        function: the function.
        entry: the specialization that says so.
        mode: the mode of the calls.
        like: the signature of their arguments.
    """

    def __init__(self, function: Callable[..., Any], entry: Specialization, mode: int, like: CallSignature) -> None:
        self.function = function
        self.entry = entry
        self.mode = mode
        self.like = like

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any], mode: int) -> Any:
        """What the function gives, or `MISSED`."""
        if mode != self.mode or self.like.leaves(args, keywords) is None:
            return MISSED
        return self.function(*args, **keywords)


def direct(
    compiled: Compiled, entry: Specialization, graph: Graph, program: CompiledProgram, mode: int, args: tuple[Any, ...],
    keywords: dict[str, Any], leaves: Sequence[Any],
) -> FastCall | None:
    """How calls like this one can be made with little ceremony; None where they cannot.

    Arguments:
        compiled: the function.
        entry: what is known of it for these arguments.
        graph, program: its graph and its program, which was checked.
        mode: the mode.
        args, keywords, leaves: the arguments, and their leaves as inputs.
    """
    like = likeness(args, keywords, leaves, entry.static)
    if like is None:
        return None
    return FastCall(compiled, entry, graph, program, mode, like, _plain(entry, graph, args, keywords))


def _plain(entry: Specialization, graph: Graph, args: tuple[Any, ...], keywords: dict[str, Any]) -> Plain | None:
    signature: Signature = graph.signature  # type: ignore[assignment]
    inputs = signature.inputs
    fits = not keywords and not entry.closures and not signature.mutations and len(inputs) == len(args)
    if not fits or [spec.leaf for spec in inputs] != list(range(len(args))):
        return None
    if any(type(arg) is not Tensor and type(arg) is not np.ndarray for arg in args):
        return None
    kinds = [
        (Tensor, arg._array.shape, arg._array.dtype, arg.requires_grad, arg._array.strides) if type(arg) is Tensor
        else (np.ndarray, arg.shape, arg.dtype, False, arg.strides)
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
    return Plain(kinds, scalars, single)


def sharing(leaves: Sequence[Any]) -> bool:
    """Whether two of some arrays and tensors may share memory."""
    found = [leaf._array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    arrays = [array for array in found if isinstance(array, np.ndarray) and array.size]
    for i, array in enumerate(arrays):
        for other in arrays[:i]:
            if other is array:
                return True
            is_part = array.base is not None or other.base is not None
            if is_part and np.may_share_memory(array, other):
                return True
    return False
