"""Which nodes a run must execute, when it is asked for certain gradients only."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from ..tensor.node import AccumulateGrad, Edge, Node, node_of

__all__ = ["ExecInfo", "exec_info"]

ExecInfo = dict[Node, tuple[Any, ...]]  # the nodes that must run, with the edges to follow from each, None for others


def exec_info(roots: Sequence[Any], inputs: Sequence[Any], captured: set[Node]) -> ExecInfo | None:
    """The nodes that lie on a way from `roots` to `inputs`; None where these are all that the roots lead to.

    Arguments:
        roots: the edges where the run starts.
        inputs: the edges where it is to lead.
        captured: the nodes of those inputs whose gradients are returned; they need not run themselves.
    """
    targets = {node_of(edge) for edge in inputs}
    seen, elsewhere = _reachable(roots, targets)
    if not elsewhere and all(type(edge) is AccumulateGrad for edge in inputs):
        return None
    # A node can be decided when all that its edges lead to have been: they have smaller numbers.
    found: ExecInfo = {}
    for node in sorted(seen, key=attrgetter("sequence_nr")):
        edges = node.edges
        needed = 0
        for edge in edges:
            if edge is not None:
                if type(edge) is Edge:
                    edge = edge.node
                if edge in targets:
                    needed += 1
        if needed:
            targets.add(node)
            if needed < len(edges):
                edges = tuple(edge if edge is not None and node_of(edge) in targets else None for edge in edges)
            found[node] = edges
        elif node in targets and node not in captured:
            found[node] = edges
    return found


def _reachable(roots: Sequence[Any], targets: set[Node]) -> tuple[set[Node], bool]:
    """The nodes that `roots` lead to, and whether a leaf is among them that is no target."""
    elsewhere = False
    seen = {node_of(edge) for edge in roots}
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                if type(edge) is Edge:
                    edge = edge.node
                if edge not in seen:
                    seen.add(edge)
                    if edge.sequence_nr:
                        stack.append(edge)
                    elif edge not in targets:
                        elsewhere = True
    return seen, elsewhere
