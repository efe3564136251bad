"""Drawings of graphs in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from ..trace.graph import Block, Graph, Node, Value


def to_dot(graph: Graph) -> str:
    """Return the graph in the DOT language of Graphviz, with nodes as boxes and values as arrows.

    Arguments:
        graph: the graph.

    Example:
        >>> import viewgrad as vg
        >>> print(vg.symbolic.to_dot(vg.symbolic.trace(lambda x: vg.exp(x), vg.ones(2))))
        digraph {
          node [shape=box, fontname=monospace]
          n0 [label="x : float64[2]", shape=ellipse]
          n1 [label="exp"]
          n0 -> n1 [label="float64[2]"]
          n2 [label="output 0", shape=ellipse]
          n1 -> n2 [label="float64[2]"]
        }
    """
    return "\n".join(Drawer(graph).lines())


class Drawer:
    """Draws a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[Node | Value, str] = {}

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        yield "digraph {"
        yield "  node [shape=box, fontname=monospace]"
        for number, value in enumerate(self.graph.inputs):
            label = self.graph.names.get(value, f"input {number}")
            yield f'  {self._name(value)} [label="{label} : {value.type}", shape=ellipse]'
        yield from self._block(self.graph.block, "  ")
        first = len(self.names)
        for number, output in enumerate(self.graph.outputs):
            name = f"n{first + number}"
            yield f'  {name} [label="output {number}", shape=ellipse]'
            if output is not None:
                yield self._arrow(output, name, "  ")
        yield "}"

    def _block(self, block: Block, indent: str) -> Iterator[str]:
        for node in block:
            name = self._name(node)
            label = node.kind.replace('"', "'")
            yield f'{indent}{name} [label="{label}"]'
            for value in node.inputs:
                if value is not None:
                    yield self._arrow(value, name, indent)
            for number, inner in enumerate(node.blocks):
                yield f"{indent}subgraph cluster_{name}_{number} {{"
                yield from self._block(inner, indent + "  ")
                yield f"{indent}}}"
                for output in inner.outputs:
                    if output is not None:
                        yield self._arrow(output, name, indent)

    def _arrow(self, value: Value, to: str, indent: str) -> str:
        source = self._name(value if value.node.kind == "param" else value.node)
        return f'{indent}{source} -> {to} [label="{value.type}"]'

    def _name(self, item: Node | Value) -> str:
        return self.names.setdefault(item, f"n{len(self.names)}")


Graph.to_dot = to_dot  # type: ignore[method-assign,assignment]
