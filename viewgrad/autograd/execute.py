"""Run the backward graph: choose the engine, start it, and return the captured gradients."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InferenceError
from ..tensor.async_safety import isolated
from ..tensor.modes import ANOMALY, FORWARD, GRAD, INFERENCE, MODE, OTHER_ENGINE, PLAIN, TRACE, ModeSwitch, current_mode
from ..tensor.node import Edge, Node, node_of
from ..tensor.tensor import Tensor
from ..views.scalar_nodes import ScalarNode
from .engine import Gradient, GraphTask
from .fast_engine import FastTask
from .modes.anomaly import AnomalyTask
from .modes.profile import ProfiledTask
from .single_node import MISSED, run_alone


def run_backward(
    edges: Sequence[Node | Edge],
    grads: Sequence[Tensor],
    *,
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Node | Edge] | None = None,
    capture: bool = False,
) -> list[Tensor | None]:
    """Run the engine from `edges` with the gradients `grads`.

    Arguments:
        edges: the edges at which to start.
        grads: the gradient for each of them.
        retain_graph: whether saved values are kept for another run.
        create_graph: whether the run is recorded.
        inputs: the edges to which the run is restricted; None for the whole graph.
        capture: whether the gradients of `inputs` are returned, rather than accumulated in the leaves.

    Returns:
        The captured gradients, None if no gradient arrived.
    """
    mode = current_mode()
    if create_graph and mode & INFERENCE:
        raise InferenceError("create_graph=True cannot record inside inference_mode(); leave it first")
    # Inside a dual level gradients have tangents, and a tracer must record how they are computed, so they are tensors
    # there too.
    recorded = create_graph or bool(mode & (FORWARD | TRACE))
    if len(edges) == 1 and (capture or inputs is None) and not recorded and not mode & OTHER_ENGINE:
        node = node_of(edges[0])
        if node is not None and node.whole:
            found = run_alone(edges[0], grads[0]._array, inputs, retain_graph)
            if found is not MISSED:
                return found  # type: ignore[no-any-return]
    engine = _special_engine(mode) if mode & OTHER_ENGINE else FastTask
    task = engine(retain=retain_graph, recorded=recorded)
    if inputs is not None:
        task.restrict(edges, inputs, capture)
    mode = mode | GRAD if create_graph else mode & ~GRAD
    starts = [
        (edge, grad if recorded else grad._array[()] if isinstance(edge, ScalarNode) else grad._array)
        for edge, grad in zip(edges, grads, strict=True)
    ]
    return isolated(_run, task, mode, starts, inputs)


def _special_engine(mode: int) -> type[GraphTask | FastTask]:
    if mode & (ANOMALY | PLAIN):
        return AnomalyTask if mode & ANOMALY else GraphTask
    return ProfiledTask


def _run(
    task: GraphTask | FastTask,
    mode: int,
    starts: list[tuple[Node | Edge, Gradient]],
    inputs: Sequence[Node | Edge] | None,
) -> list[Tensor | None]:
    MODE.set(mode)
    while starts:
        edge, grad = starts.pop(0)
        if inputs is None or task.must_run(node_of(edge)):
            task.deliver(edge, grad)
        del grad
    task.run()
    task.finish()
    if inputs is None:
        return []
    return [task.captured_gradient(edge) if node_of(edge) in task.captured else None for edge in inputs]


class plain_engine(ModeSwitch):
    """A context in which backward passes run on the plain engine, without optimizations.

    The gradients are the same up to rounding. Comparing the costs shows that the default engine is linear in the number
    of reads and writes of views.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.autograd.graph.plain_engine():
        ...     (x[0] * x[1]).backward()
        >>> x.grad
        Tensor([2., 1.])
    """

    def __init__(self) -> None:
        super().__init__(on=PLAIN)
