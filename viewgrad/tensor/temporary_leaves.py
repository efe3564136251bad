"""Leaves that the library creates to compute derivatives of its own, such as the Jacobians of a search for a root.

A function of a program that is called with such a leaf may store results, in an attribute or in an array. They still
require grad after the leaf has been freed, although no gradient with respect to it can be computed any more.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final

from .node import AccumulateGrad, Edge, Node, node_of

if TYPE_CHECKING:
    from .tensor import Tensor

NODES: Final[set[weakref.ref[Node]]] = set()  # the nodes of all temporary leaves that are referred to


def register_temporary(leaf: Tensor) -> None:
    """Register a leaf that exists only for the computation of a derivative by the library."""
    node = node_of(leaf._edge)
    assert node is not None
    NODES.add(weakref.ref(node, NODES.discard))


def leads_to_inputs(edge: Node | Edge) -> bool:
    """Return whether an edge of the graph leads to any leaf besides temporary ones that no longer exist."""
    if not NODES:
        return True
    seen: set[Node] = {node_of(edge)}
    stack = list(seen)
    while stack:
        node = stack.pop()
        if type(node) is AccumulateGrad and (node.variable is not None or weakref.ref(node) not in NODES):
            return True
        edges = [node_of(edge) for edge in node.edges if edge is not None]
        if not edges and node.is_transform_input:
            return True
        for each in edges:
            if each not in seen:
                seen.add(each)
                stack.append(each)
    return False
