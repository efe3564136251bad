"""The plain engine, which specifies the backward pass.

A node runs once its whole gradient has arrived, and sends a gradient along each of its edges. Gradients that arrive at
the same place are summed. `GraphTask.run`, `propagate`, `gradients` and `deliver` are the whole algorithm; the rest of
this file handles the start and end of a run.

Nodes run in decreasing order of their creation. Every edge leads to an older node, so no gradient can arrive late.

This engine reuses nothing and never writes to memory that is visible elsewhere, so it is easy to trust. The default
engine, `fast_engine.py`, computes the same gradients at linear cost. Inside `autograd.graph.plain_engine()` every
backward pass uses this engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from ..tensor.creation import from_number
from ..tensor.node import (
    GATHER,
    ONE,
    OVERWRITE,
    SCATTER,
    AccumulateGrad,
    Edge,
    Node,
    OptionalEdge,
    finished_hooks,
    input_nr_of,
    node_of,
)
from ..tensor.tensor import Tensor, from_array
from .exec_info import ExecInfo, exec_info
from .hook_runner import HookedRun, RunHook

# An array or NumPy scalar; a tensor if the run is recorded; None if nothing has arrived. The type depends on the run,
# so it cannot be declared.
Gradient: TypeAlias = Any
# a node that reads a window; its class defines `layout` and `add_to`
ViewNode: TypeAlias = Any


class GraphTask(HookedRun):
    """One run of the engine.

    Attributes:
        retain: whether saved values are kept for another run.
        exec_info: the nodes that must run, each with the edges to follow; None for all of them.
        captures: the gradients to be returned, by node and input number; filled in as they arrive.
        captured: the nodes for which there is an entry in `captures`.
        buffers: the gradients that arrived at nodes that have not run yet: for each output a gradient or None.
        ready: a heap of those nodes, leaves excepted; the newest comes first.
    """

    __slots__ = ("buffers", "captured", "captures", "exec_info", "ready", "retain")

    def __init__(self, *, retain: bool, recorded: bool) -> None:
        self.retain = retain
        self.recorded = recorded
        self.exec_info: ExecInfo | None = None
        self.captures: dict[tuple[Node, int], Gradient] = {}
        self.captured: set[Node] = set()
        self.buffers: dict[Any, Any] = {}  # the fast engine stores a bare gradient for most nodes
        self.ready: list[tuple[int, Node]] = []
        self.seen: dict[Node, tuple[Tensor | None, ...]] = {}
        self.watched: dict[RunHook, list[Tensor | None] | None] = {}

    # -- the run -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every node that is ready, and every node that becomes ready."""
        while self.ready:
            node = heappop(self.ready)[1]
            grads = self.before(node, self.buffers.pop(node))
            if grads is not None:
                edges = node.edges if self.exec_info is None else self.exec_info[node]
                for edge, grad in zip(edges, self.propagate(node, grads, edges), strict=True):
                    if edge is not None and grad is not None:
                        self.deliver(edge, grad)

    def propagate(self, node: Node, grads: list[Gradient], edges: tuple[OptionalEdge, ...]) -> tuple[Gradient, ...]:
        """Return the gradients of a node's inputs after the node's post-hooks."""
        made = self.gradients(node, grads[0] if node.outputs == 1 else grads, edges)
        return self.run_posthooks(node, node.hooks, made) if node.hooks is not None and node.hooks.after else made

    def gradients(self, node: Any, grad: Gradient, edges: tuple[OptionalEdge, ...]) -> tuple[Gradient, ...]:
        """Return the gradients of a node's inputs; see Note [Kinds of nodes] in docs/notes/engine.md."""
        if node.kind in (SCATTER, GATHER):  # a view: add the gradient to its window of zeros shaped like the base
            zeros = self.zeros(node)
            self.add_to_window(node, zeros, grad)
            if not self.retain:
                node.release()
            return (zeros,)
        if node.kind == OVERWRITE:  # a write to a part: rewrites the gradient in place
            grad = grad.clone() if self.recorded else np.array(grad, order=node.layout[2])
        if self.recorded:
            made = node.apply_recorded(grad, edges)
            if not self.retain:
                node.release()
        else:
            made = node.apply(grad, edges) if self.retain else node.consume(grad, edges)
        return (made,) if node.kind == ONE else made

    def deliver(self, edge: Node | Edge, grad: Gradient) -> None:
        """Add `grad` to the gradient that arrived along `edge`."""
        node, number = node_of(edge), input_nr_of(edge)
        if node not in self.buffers:
            self.buffers[node] = [None] * node.outputs
            if node.sequence_nr:  # leaves wait for the end of the run
                heappush(self.ready, (-node.sequence_nr, node))
        held = self.buffers[node][number]
        self.buffers[node][number] = grad if held is None else held + grad

    def zeros(self, node: ViewNode) -> Gradient:
        """Return zeros with the layout of the tensor that the view `node` was taken from."""
        zeros = np.zeros(*node.layout)
        return from_number(zeros) if self.recorded else zeros

    def add_to_window(self, node: ViewNode, accumulator: Gradient, grad: Gradient) -> None:
        """Add the gradient of the view `node` to its window of `accumulator`."""
        if self.recorded:
            node.add_to_recorded(accumulator, grad)
        else:
            node.add_to(accumulator, grad)

    # -- start and end of a run ----------------------------------------------------------------------------------------

    def restrict(self, roots: Sequence[OptionalEdge], inputs: Sequence[Node | Edge], capture: bool) -> None:
        """Run only the nodes on paths from `roots` to `inputs`, given as edges.

        Arguments:
            roots: the start of the run.
            inputs: the edges to reach.
            capture: whether the gradients of the inputs are returned; leaves among them accumulate otherwise.
        """
        for edge in inputs:
            if capture or type(edge) is not AccumulateGrad:
                self.captured.add(node_of(edge))
                self.captures[node_of(edge), input_nr_of(edge)] = None
        self.exec_info = exec_info(roots, inputs, self.captured)

    def must_run(self, node: Node) -> bool:
        """Return whether this run uses the gradient that arrives at `node`."""
        return self.exec_info is None or node in self.exec_info or node in self.captured

    def before(self, node: Node, grads: list[Gradient]) -> list[Gradient] | None:
        """Run the pre-hooks of `node` and capture requested gradients; return None if the node need not run."""
        hooks = finished_hooks(node)
        if hooks is not None:
            self.run_tensor_hooks(hooks, grads)
        if node in self.captured:
            for number, grad in enumerate(grads):
                if (node, number) in self.captures:
                    self.captures[node, number] = grad
            if type(node) is AccumulateGrad or (self.exec_info is not None and node not in self.exec_info):
                return None
        return grads if hooks is None else self.run_prehooks(node, hooks, grads)

    def captured_gradient(self, edge: Node | Edge) -> Tensor | None:
        """Return the gradient captured for `edge`, as a tensor whose memory is not shared."""
        grad = self.captures[node_of(edge), input_nr_of(edge)]
        if grad is None:
            return None
        return grad.clone() if self.recorded else from_array(np.array(grad))

    def finish(self) -> None:
        """Accumulate the gradients of the leaves that were reached.

        All other hooks have run before the first leaf accumulates, so an error in one of them leaves every leaf
        unchanged.
        """
        reached = {}
        for leaf, grads in self.buffers.items():
            left = self.before(leaf, grads)
            if left is not None:
                reached[leaf] = left[0]
        for leaf, grad in reached.items():
            if leaf.variable is not None:
                self.accumulate(leaf.variable, grad)
        self.finish_hooks(list(reached))
