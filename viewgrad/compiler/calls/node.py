"""The node of a call of a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...autograd.api import pull_back
from ...autograd.transform_inputs import Transform
from ...tensor.masked_backward import holds_nan
from ...tensor.modes import enable_grad
from ...tensor.node import MANY, Node, OptionalEdge, numbered
from ...tensor.saved import freed_error
from ...tensor.storage import save
from ...tensor.tensor import Tensor, current_edge, edge_to, from_array, tensor_like
from ...trace.graph import Graph
from ...trace.on_tensors import run_on_tensors
from ...trace.signature import ResultSpec
from ..runtime import CompiledProgram, Run


class CompiledBackward(Node):
    """The node of a call of a compiled program.

    Attributes:
        edges: one for each input.
        outputs: the number of outputs.
        program: the program.
        graph: its trace.
        run: the values of the call that the gradient needs; None once released.
        saved: the saved inputs.
    """

    __slots__ = ("edges", "graph", "outputs", "program", "run", "saved")

    kind: ClassVar[int] = MANY
    whole: ClassVar[bool] = True

    outputs: int  # type: ignore[misc]
    program: CompiledProgram
    graph: Graph
    run: Run | None
    saved: Any

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`, computed by the program."""
        saved = self.saved
        if self.run is None:
            raise freed_error("compiled call")
        seeds = (grad,) if self.outputs == 1 else grad
        arrays = [each.array for each in saved]
        found = self._by_program(self.run, seeds, arrays)
        numbers = [base.initial for base in self.program.wanted]
        if holds_nan(found):  # zeros may have met infinite factors
            with np.errstate(all="ignore"):  # the program itself ignores floating-point errors too
                found = self._by_replay(seeds, arrays, numbers)
        gradients: list[Any] = [None] * len(edges)
        for number, array in zip(numbers, found, strict=True):
            if array is not None and edges[number] is not None:
                gradients[number] = array
        return tuple(gradients)

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients by replaying the trace, so that they can be differentiated again."""
        if self.run is None:
            raise freed_error("compiled call")
        transform = Transform()  # an input may have been computed from another one
        tensors = [
            tensor_like(saved, None) if edge is None else transform.primal(tensor_like(saved, edge))
            for saved, edge in zip(self.saved, self.edges, strict=True)
        ]
        grads = (grad,) if self.outputs == 1 else grad
        with enable_grad():
            outputs, cotangents = self._replayed(tensors, grads)
            wanted = [None if edge is None else tensor for tensor, edge in zip(tensors, edges, strict=True)]
            with transform.separated():
                return tuple(pull_back(outputs, cotangents, wanted, create_graph=True))

    def _by_replay(self, seeds: Sequence[Any], arrays: list[Any], numbers: list[int]) -> list[Any]:
        """Return the gradients by replaying the trace, in which outputs without a gradient contribute nothing.

        The program would use zeros for them, which yield NaN if a factor is infinite. The same applies to zeros set by
        a mask; the replay skips both.
        """
        tensors = [from_array(array).requires_grad_(number in numbers) for number, array in enumerate(arrays)]
        with enable_grad():
            grads = [None if seed is None else from_array(seed) for seed in seeds]
            outputs, cotangents = self._replayed(tensors, grads)
            found = pull_back(outputs, cotangents, [tensors[number] for number in numbers])
        return [None if each is None else each._array for each in found]

    def _by_program(self, run: Run, seeds: Sequence[Any], arrays: list[Any]) -> Sequence[Any]:
        """Return the gradients of the inputs that the program differentiates."""
        return self.program.gradients(run, seeds, arrays)

    def _replayed(self, tensors: list[Tensor], grads: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the outputs and gradients of a replay of the trace."""
        return replayed(self.graph, tensors), grads

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the inputs, and the buffers of the program."""
        return [] if self.run is None else [("inputs", self.saved), *self.run.buffers.items()]

    def release(self) -> None:
        """Free the values saved for the gradient."""
        self.run = self.saved = None


def replayed(graph: Graph, inputs: Sequence[Tensor]) -> tuple[Any, ...]:
    """Run a trace with the library's operators, without guards and warnings, which the program has already handled."""
    with np.errstate(all="ignore"):
        return run_on_tensors(graph, inputs, checks_guards=False, ends_histories=True)


def called(
    program: CompiledProgram, graph: Graph, arrays: Sequence[Any], run: Run, tensors: Sequence[Tensor],
    node: CompiledBackward | None = None,
) -> list[Tensor]:
    """Return the results of a program as tensors, with a single node as their history.

    Arguments:
        program, graph: the program and its trace.
        arrays: its results.
        run: the saved values of its gradient.
        tensors: its inputs.
        node: the node, if its class differs from the default.
    """
    outputs = [from_array(array) for array in arrays]
    if not program.wanted:
        return outputs
    node = numbered(CompiledBackward) if node is None else node
    node.edges = tuple([current_edge(tensor) for tensor in tensors])
    node.outputs = len(outputs)
    node.program = program
    node.graph = graph
    node.run = run
    node.saved = [save(tensor) for tensor in tensors]
    for number in program.differentiable:
        outputs[number]._edge = edge_to(node, number)
    return outputs


def differentiable_outputs(graph: Graph) -> list[int]:
    """Return the numbers of the outputs that have a history."""
    signature: Any = graph.signature
    found = {number for number, value in enumerate(graph.outputs) if value is not None and value.type.requires_grad}
    for spec in signature.results:
        if type(spec) is ResultSpec and spec.type.requires_grad:
            found.add(spec.output if spec.base is None else spec.base)
    found.update([mutation.output for mutation in signature.mutations if mutation.recorded])
    return sorted(found)
