"""A call of a compiled program as one step of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.api import grad as eager_grad
from ..autograd.function.api import Function
from ..symbolic.graph import Graph
from ..tensor.modes import GRAD, current_mode, enable_grad
from ..tensor.tensor import Tensor, from_array
from .compiled import CompiledProgram, Run
from .replay import replayed

__all__ = ["Finished", "called"]


class Finished:
    """A program that has been run.

    Arguments:
        program: the program.
        graph: what it was recorded as.
        outputs: its results.
        run: what its gradient needs.
    """

    def __init__(self, program: CompiledProgram, graph: Graph, outputs: list[Any], run: Run) -> None:
        self.program = program
        self.graph = graph
        self.outputs = outputs
        self.run: Run | None = run


def called(finished: Finished, tensors: Sequence[Tensor], recorded: bool) -> list[Tensor]:
    """The results of a program as tensors, with one step for their history.

    Arguments:
        finished: the program that has been run.
        tensors: its inputs.
        recorded: whether they have a history.
    """
    if not recorded:
        return [from_array(array) for array in finished.outputs]
    outputs = CompiledCall.apply(finished, *tensors)
    return list(outputs)


class CompiledCall(Function):
    """A compiled program, forward and backward."""

    @staticmethod
    def forward(ctx: Any, finished: Finished, *tensors: Tensor) -> Any:
        """The results, which have been computed already."""
        ctx.save_for_backward(*tensors)
        ctx.finished = finished
        outputs = [from_array(array) for array in finished.outputs]
        silent = [
            output
            for output, wanted in zip(outputs, finished.graph.outputs, strict=True)
            if wanted is None or not wanted.type.requires_grad
        ]
        ctx.mark_non_differentiable(*silent)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the inputs: by the program, or from a replay where they are differentiated in turn."""
        finished: Finished = ctx.finished
        tensors = ctx.saved_tensors
        if current_mode() & GRAD:
            return (None, *_recorded(finished.graph, tensors, grads, ctx.needs_input_grad[1:]))
        assert finished.run is not None
        found = finished.program.gradients(finished.run, [None if g is None else g._array for g in grads])
        gradients: list[Any] = [None] * len(tensors)
        for base, array in zip(finished.program.wanted, found, strict=True):
            if array is not None:
                number = base.initial
                gradients[number] = from_array(array.reshape(tensors[number].shape))
        return (None, *gradients)


def _recorded(graph: Graph, tensors: Sequence[Tensor], grads: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
    """The gradients, recorded, so that they can be differentiated in turn."""
    from_outside = list(tensors)
    with enable_grad():
        outputs = replayed(graph, from_outside)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if g is not None and o.requires_grad]
        wanted = [tensor for tensor, need in zip(from_outside, needed, strict=True) if need]
        if not pairs or not wanted:
            return [None] * len(from_outside)
        found = iter(
            eager_grad(
                [o for o, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True
            )
        )
    return [next(found) if need else None for need in needed]


