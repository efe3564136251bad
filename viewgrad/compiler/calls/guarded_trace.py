"""A trace of a function, together with the guard under which it is valid."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import attrs

from ...func.tree import unflatten
from ...tensor.modes import no_grad
from ...tensor.tensor import Tensor, as_scalar
from ...trace.graph import Graph
from ...trace.signature import ResultSpec, Signature
from ...views.detached_views import has_ended
from ..guards.call_signature import layout_key, numbered_tensor, share_memory, share_memory_with
from ..guards.closure_guard import ClosureGuard
from ..runtime import ERRORED
from .array_arguments import require_no_history


@attrs.define(eq=False)
class GuardedTrace:
    """A trace and the guard on the captured state that it depends on.

    Arguments:
        graph: the trace.
        guard: the captured state.
        closures: the numbers, in the guard, of the captured tensors that are inputs.
        layouts: the memory layouts of these tensors.
    """

    graph: Graph
    guard: ClosureGuard
    closures: Sequence[int] = ()
    layouts: Sequence[Any] = ()
    _pickled: bytes | None = None

    @property
    def signature(self) -> Signature:
        """The signature of the graph."""
        return self.graph.signature  # type: ignore[return-value]

    def inputs(self, leaves: Sequence[Any]) -> list[Tensor] | str:
        """Return the inputs of the graph from the leaves of the arguments, or the reason why the graph is not valid for
        them.
        """
        tensors: list[Tensor] = []
        closures = iter(self.guard.tensors_at(self.closures))
        layouts = iter(self.layouts)
        for spec in self.signature.inputs:
            if spec.kind == "argument":
                tensors.append(numbered_tensor(leaves[spec.leaf]))
                continue
            tensor, layout = next(closures), next(layouts)
            kind: Any = spec.type
            if (
                type(tensor) is not Tensor or tensor.shape != kind.shape or tensor.dtype != kind.dtype
                or tensor.requires_grad != kind.requires_grad or layout_key(tensor._array) != layout
            ):
                return f"the captured tensor {spec.path} has a different shape, dtype or layout"
            tensors.append(tensor)
        if any(has_ended(tensors[mutation.input]) for mutation in self.signature.mutations):
            return "it writes to memory of a tensor that was detached in place, which other views share"
        return tensors

    def shares_memory(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether captured tensors share memory with other inputs, or captured arrays with any input.

        The function may write to a captured array, and restore it, unnoticed by the trace.
        """
        if self.closures and share_memory(tensors):
            return True
        arrays = self.guard.plain_arrays
        return bool(arrays) and share_memory_with(tensors, arrays)

    def results(self, tensors: Sequence[Tensor], outputs: Sequence[Tensor], leaves: Sequence[Any]) -> Any:
        """Return the function's results, and write to the arguments as the function does.

        Arguments:
            tensors: the inputs of the graph.
            outputs: its outputs.
            leaves: the leaves of the arguments, from which the first inputs were created.
        """
        signature = self.signature
        for mutation in signature.mutations:
            if mutation.recorded and mutation.input < len(leaves) and not isinstance(leaves[mutation.input], Tensor):
                require_no_history(outputs[mutation.output])
        for mutation in signature.mutations:
            target, value = tensors[mutation.input], outputs[mutation.output]
            if mutation.recorded:
                target.copy_(value)
            else:
                with no_grad():
                    target.copy_(value.detach())
        made: list[Any] = []
        for spec in signature.results:
            if type(spec) is not ResultSpec:
                made.append(spec)
                continue
            if spec.input is not None:
                tensor = tensors[spec.input]
            else:
                tensor = outputs[spec.output if spec.base is None else spec.base]
            for step in spec.steps:
                tensor = step(tensor)
            made.append(as_scalar(tensor) if spec.scalar else tensor)
        return unflatten(signature.result, made)

    def describe_failure(self, line: int) -> str:
        """Return the reason for a guard failure at a line of the program."""
        if line == ERRORED:
            return "the program raised an exception, which the function may handle"
        locations = self.graph.locations
        where = "{}:{}".format(*locations[line]) if line < len(locations) else "an unknown line"
        return f"a value that control flow depends on has changed at {where}"

    def pickled_graph(self) -> bytes | None:
        """Return a pickle of the graph, created once, or None if it cannot be pickled."""
        if self._pickled is None:
            try:
                self._pickled = pickle.dumps(self.graph)
            except Exception:  # any error raised by the object
                return None
        return self._pickled
