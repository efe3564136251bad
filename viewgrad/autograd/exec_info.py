"""The set of nodes that a run must execute if only certain gradients are requested."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from ..tensor.node import AccumulateGrad, Edge, Node, node_of
from ..views.scalar_nodes import ScalarOfTwo
from ..views.view_nodes import ElementBackward

ExecInfo = dict[Node, tuple[Any, ...]]  # the nodes that must run, with the edges to follow from each, None for others


def exec_info(roots: Sequence[Any], inputs: Sequence[Any], captured: set[Node]) -> ExecInfo | None:
    """Return the nodes on paths from `roots` to `inputs`; None if these are all nodes reachable from the roots.

    Arguments:
        roots: the edges at which the run starts.
        inputs: the edges to reach.
        captured: the nodes of those inputs whose gradients are returned; they need not run themselves.
    """
    targets = {node_of(edge) for edge in inputs}
    if all(type(edge) is AccumulateGrad for edge in inputs) and not _lead_to_other_leaves(roots, targets):
        return None
    seen = _reachable(roots)
    # A node can be decided once all nodes that its edges lead to have been; they have smaller numbers.
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


def _lead_to_other_leaves(roots: Sequence[Any], targets: set[Node]) -> bool:
    """Return whether `roots` lead to a leaf, or to an input of a transform, that is not a target.

    This check is the extra cost of a gradient with respect to all leaves compared with a backward pass. Nodes of scalar
    programs are therefore handled first, through their own slots, and reads of elements are skipped: a factor of 2.2
    for such a program.
    """
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is AccumulateGrad or (kind is not Edge and kind.is_transform_input and not any(node.edges)):
            if node not in targets:
                return True
            continue
        slots = (node.edge0, node.edge1) if kind is ScalarOfTwo else (node.node,) if kind is Edge else node.edges
        for edge in slots:
            if type(edge) is ElementBackward:
                edge = edge.edge
            elif type(edge) is tuple:
                edge = edge[0]
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return False


def _reachable(roots: Sequence[Any]) -> set[Node]:
    """Return the nodes that `roots` lead to."""
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
    return seen
