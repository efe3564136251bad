"""Drawings of the graph for Graphviz and Mermaid."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...tensor.node import AccumulateGrad, Edge, Node, input_nr_of, node_of
from ...tensor.tensor import Tensor, current_edge
from ...views.copy_slices import CopySlices
from .describe import leaf_text, nodes_from, saved_values, shape_text, window_of, window_text


@attrs.frozen
class Box:
    """A box in the drawing.

    Arguments:
        name: its name in the drawing's source.
        kind: "tensor", "node" or "leaf".
        lines: its text.
        inner: the boxes inside it.
    """

    name: str
    kind: str
    lines: tuple[str, ...]
    inner: Box | None = None


@attrs.frozen
class Arrow:
    """An arrow from the box of a result to the box of an input."""

    start: str
    end: str
    text: str = ""
    dashed: bool = False


def to_dot(tensor: Tensor | Sequence[Tensor]) -> str:
    """Return the graph that leads to a tensor in the DOT language of Graphviz.

    It shows tensors with their versions, views with a dashed arrow to their base, and nodes with their saved values
    (name, dtype, shape, bytes). A `CopySlices` surrounds the node that it wraps. Arrows point in the direction of
    gradients.

    Arguments:
        tensor: one tensor or several.

    Returns:
        A string in the DOT language.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> print(vg.autograd.graph.to_dot(x.exp()))
        digraph {
          node [fontname="sans-serif", fontsize=10]
          edge [fontname="sans-serif", fontsize=9]
          t1 [shape=box, style="rounded,filled", fillcolor="#dbe9ff", label="tensor, float64 (2,)\\nversion 0"]
          n1 [shape=box, label="ExpBackward\\nresult: float64 (2,), 16 bytes"]
          n2 [shape=box, style=filled, fillcolor="#dff5df", label="AccumulateGrad\\nleaf, float64 (2,), version 0"]
          t1 -> n1
          n1 -> n2
        }
    """
    boxes, arrows = boxes_and_arrows(tensor)
    lines = ["digraph {", '  node [fontname="sans-serif", fontsize=10]', '  edge [fontname="sans-serif", fontsize=9]']
    for box in boxes:
        if box.inner is None:
            lines.append(f"  {_dot_box(box)}")
        else:
            lines += [
                f"  subgraph cluster_{box.name} {{",
                '    style=rounded; color="#b06000"',
                f"    {_dot_box(box)}",
                f"    {_dot_box(box.inner)}",
                f'    {box.name} -> {box.inner.name} [style=dotted, arrowhead=none, label="wraps"]',
                "  }",
            ]
    for arrow in arrows:
        attributes = [f"label={_quoted(arrow.text)}"] if arrow.text else []
        attributes += ["style=dashed"] if arrow.dashed else []
        lines.append(f"  {arrow.start} -> {arrow.end}" + (f" [{', '.join(attributes)}]" if attributes else ""))
    return "\n".join([*lines, "}"])


DOT_STYLES = {
    "tensor": 'shape=box, style="rounded,filled", fillcolor="#dbe9ff"',
    "node": "shape=box",
    "leaf": 'shape=box, style=filled, fillcolor="#dff5df"',
}


def _dot_box(box: Box) -> str:
    return f"{box.name} [{DOT_STYLES[box.kind]}, label={_quoted(*box.lines)}]"


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def to_mermaid(tensor: Tensor | Sequence[Tensor]) -> str:
    """Return the graph that leads to a tensor as a Mermaid flow chart, which Markdown viewers can draw.

    Arguments:
        tensor: one tensor or several.

    Returns:
        A flow chart with the same content as `to_dot`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> print(vg.autograd.graph.to_mermaid(x.exp()))
        flowchart TD
          t1(["tensor, float64 (2,)<br/>version 0"])
          n1["ExpBackward<br/>result: float64 (2,), 16 bytes"]
          n2[/"AccumulateGrad<br/>leaf, float64 (2,), version 0"/]
          t1 --> n1
          n1 --> n2
    """
    boxes, arrows = boxes_and_arrows(tensor)
    lines = ["flowchart TD"]
    for box in boxes:
        if box.inner is None:
            lines.append(f"  {_mermaid_box(box)}")
        else:
            lines += [
                f"  subgraph s{box.name}[ ]",
                f"    {_mermaid_box(box)}",
                f"    {_mermaid_box(box.inner)}",
                f"    {box.name} -.-|wraps| {box.inner.name}",
                "  end",
            ]
    for arrow in arrows:
        line = "-.->" if arrow.dashed else "-->"
        lines.append(f"  {arrow.start} {line}{f'|{_mermaid_text(arrow.text)}|' if arrow.text else ''} {arrow.end}")
    return "\n".join(lines)


MERMAID_SHAPES = {"tensor": ("([", "])"), "node": ("[", "]"), "leaf": ("[/", "/]")}


def _mermaid_box(box: Box) -> str:
    opening, closing = MERMAID_SHAPES[box.kind]
    return f"{box.name}{opening}{_mermaid_text('<br/>'.join(box.lines))}{closing}"


def _mermaid_text(text: str) -> str:
    return '"' + text.replace('"', "#quot;") + '"'


def boxes_and_arrows(tensor: Tensor | Sequence[Tensor]) -> tuple[list[Box], list[Arrow]]:
    """Return the tensors to draw, then the nodes from the newest to the oldest."""
    tensors: list[Tensor] = []
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for shown in [tensor] if isinstance(tensor, Tensor) else tensor:
        for one in (shown, shown._base):
            if one is not None and not any(one is other for other in tensors):
                tensors.append(one)
    edges = [current_edge(one) for one in tensors]
    nodes = nodes_from(edges)
    names = {node: f"n{i}" for i, node in enumerate(nodes, 1)}
    tensor_names = {id(one): f"t{i}" for i, one in enumerate(tensors, 1)}
    for one, edge in zip(tensors, edges, strict=True):
        name = tensor_names[id(one)]
        view = one._view
        what = "tensor" if view is None else "view"
        boxes.append(Box(name, "tensor", (f"{what}, {shape_text(one.shape, one.dtype)}", f"version {one._version}")))
        if edge is not None:
            arrows.append(Arrow(name, names[node_of(edge)], _output_text(edge)))
        if view is not None:
            text = window_text("base", view.index, view.view_fn)
            arrows.append(Arrow(name, tensor_names[id(view.base)], text, dashed=True))
    for node in nodes:
        inner = Box(f"{names[node]}w", "node", _lines(node.fn)) if isinstance(node, CopySlices) else None
        kind = "leaf" if type(node) is AccumulateGrad else "node"
        boxes.append(Box(names[node], kind, _lines(node), inner))
        for edge in node.edges:
            if edge is not None:
                arrows.append(Arrow(names[node], names[node_of(edge)], _output_text(edge)))
    return boxes, arrows


def _output_text(edge: Node | Edge) -> str:
    return f"output {input_nr_of(edge)}" if node_of(edge).outputs > 1 else ""


def _lines(node: Node) -> tuple[str, ...]:
    lines = [node.name()]
    if type(node) is AccumulateGrad:
        lines.append(leaf_text(node))
    window = window_of(node, "base" if isinstance(node, CopySlices) else "input")
    if window is not None:
        lines.append(window)
    if not isinstance(node, CopySlices):
        lines += [f"{value.name}: {value.text}" for value in saved_values(node)]
    return tuple(lines)
