"""Explanations of a tensor's history in words."""

from __future__ import annotations

import attrs

from ...tensor.node import AccumulateGrad, Edge, Node, OptionalEdge, input_nr_of, node_of
from ...tensor.tensor import Tensor, current_edge
from ...views.advanced_nodes import IndexAccumulateBackward, IndexPutBackward
from ...views.copy_slices import CopyBackwards, CopySlices
from ...views.view_nodes import AS_STRIDED, ViewBackward
from ..function.node import FunctionNode
from .describe import saved_values, shape_text, window_of, window_text


@attrs.frozen
class Write:
    """A write in a history.

    Arguments:
        edge: the edge to the history that includes the write.
        step: the node of the operator that wrote.
        window: the window that was written to, as an expression.
        before: the edge to the history before the write; None if it is irrelevant or there was none.
    """

    edge: OptionalEdge
    step: Node
    window: str
    before: OptionalEdge


def explain(tensor: Tensor) -> str:
    """Explain the history of a tensor in words: its writes, in order, and the views used for them.

    Arguments:
        tensor: any tensor; for a view, the history is that of its base.

    Returns:
        A string of several lines.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> y = x + 2
        >>> v = y[:2]
        >>> v *= 5
        >>> y[2] = x[0]
        >>> print(vg.autograd.graph.explain(v))
        This is a view of float64 (2,), base[:2], of a base of float64 (3,).
        The base was created by AddBackward. Then it was written to, in this order:
          1. MulBackward wrote to base[:2]; it saved other (float64 (), 8 bytes).
          2. CopyBackwards wrote to base[2]; values came from ElementBackward.
        The history of this view was rebuilt after write 2: AsStridedBackward takes it from the base.
    """
    view = tensor._view
    base = tensor if view is None else view.base
    edge = current_edge(tensor)
    writes, origin = _writes(base, "tensor" if view is None else "base")
    if view is None:
        lines = [f"This is a tensor of {shape_text(tensor.shape, tensor.dtype)}."]
        subject = "It"
    else:
        window = window_text("base", view.index, view.view_fn)
        lines = [
            f"This is a view of {shape_text(tensor.shape, tensor.dtype)}, {window}, of a base of "
            f"{shape_text(base.shape, base.dtype)}."
        ]
        subject = "The base"
    if origin is None:
        lines.append(f"{subject} had no history at first." if writes else f"{subject} has no history.")
    else:
        lines.append(f"{subject} {_origin_text(origin)}.")
    if writes:
        lines[-1] += " Then it was written to, in this order:"
    for number, write in enumerate(writes, 1):
        lines.append(f"  {number}. {_write_text(write)}")
    count = base._version
    if count > len(writes):
        where = "outside of what is recorded" if writes else "none of them recorded"
        lines.append(
            f"Its memory was written to {count} time{'s' * (count != 1)} in all"
            + (f", {count - len(writes)} of them {where}." if writes else f", {where}.")
        )
    preserved = None if base._storage is None else base._storage.preserved
    if preserved:
        nbytes = sum(window.nbytes for window, _ in preserved)
        lines.append(
            f"Before writes, {len(preserved)} saved window{'s' * (len(preserved) != 1)} of {nbytes} bytes in all "
            f"{'was' if len(preserved) == 1 else 'were'} copied."
        )
    if view is not None:
        lines.append(_view_text(edge, writes, origin))
    return "\n".join(lines)


def _writes(base: Tensor, name: str) -> tuple[list[Write], OptionalEdge]:
    """Return the writes in the history of `base`, the oldest first, and the edge to its history before them."""
    writes: list[Write] = []
    edge = base._edge
    while edge is not None:
        node = node_of(edge)
        if isinstance(node, CopySlices):
            window = window_of(node, name)
            assert window is not None
            writes.append(Write(edge, node.fn, window, node.edges[0]))
        elif node.inplace or isinstance(node, CopyBackwards | IndexPutBackward | IndexAccumulateBackward):
            writes.append(Write(edge, node, window_of(node, name) or f"all of the {name}", node.edges[0]))
        elif isinstance(node, FunctionNode) and input_nr_of(edge) in node.ctx._wrote:
            writes.append(Write(edge, node, f"all of the {name}", node.edges[node.ctx._wrote[input_nr_of(edge)]]))
        else:
            break
        edge = writes[-1].before
    writes.reverse()
    return writes, edge


def _origin_text(edge: Node | Edge) -> str:
    node = node_of(edge)
    if type(node) is AccumulateGrad:
        return "is a leaf that requires grad"
    output = f" as output {input_nr_of(edge)}" if node.outputs > 1 else ""
    saved = saved_values(node)
    return f"was created by {node.name()}{output}" + (
        f", which saved {', '.join(f'{value.name} ({value.text})' for value in saved)}" if saved else ""
    )


def _write_text(write: Write) -> str:
    step = write.step
    parts = [f"{step.name()} wrote to {write.window}"]
    sources = [node_of(edge).name() for edge in step.edges[1:] if edge is not None]
    if sources and not isinstance(step, FunctionNode):
        parts.append(f"values came from {' and '.join(sources)}")
    saved = saved_values(step)
    if saved:
        parts.append(f"it saved {', '.join(f'{value.name} ({value.text})' for value in saved)}")
    return "; ".join(parts) + "."


def _view_text(edge: OptionalEdge, writes: list[Write], origin: OptionalEdge) -> str:
    if edge is None:
        return "No gradient flows through this view."
    node = node_of(edge)
    source: OptionalEdge = edge
    while isinstance(step := node_of(source), ViewBackward) and not _is_one_of(source, writes, origin):
        source = step.edges[0]
    after = next((number for number, write in enumerate(writes, 1) if write.edge is source), 0)
    when = f"after write {after}" if after else "before all writes" if writes else "from the current base history"
    if isinstance(node, AS_STRIDED):
        return f"The history of this view was rebuilt {when}: {node.name()} takes it from the base."
    return f"The history of this view was created {when}, by {node.name()}."


def _is_one_of(edge: OptionalEdge, writes: list[Write], origin: OptionalEdge) -> bool:
    return edge is origin or any(write.edge is edge for write in writes)
