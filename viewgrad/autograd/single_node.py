"""Backward passes over a single node whose gradients all go to leaves, run without the engine.

A call of a compiled program is one node, and the engine would take as long as a small program itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..tensor.node import AccumulateGrad, Edge, Node, node_of
from ..tensor.tensor import from_array
from ..type_aliases import Array
from .fast_engine import accumulate_alone

MISSED: Final = object()  # returned if the pass needs the engine


def run_alone(edge: Node | Edge, grad: Array, inputs: Sequence[Node | Edge] | None, retain: bool) -> Any:
    """Return the gradients of a pass from one node to leaves, or `MISSED` if the engine is needed.

    Arguments:
        edge: the edge at which to start.
        grad: the gradient there, an array.
        inputs: the edges of the leaves whose gradients are returned; None if all leaves accumulate theirs.
        retain: whether saved values are kept for another run.
    """
    node: Node = node_of(edge)
    if node.hooks is not None:
        return MISSED
    edges = node.edges
    leaves: set[AccumulateGrad] = set()
    for each in edges:
        if each is not None:
            if type(each) is not AccumulateGrad or each.hooks is not None or each in leaves:
                return MISSED
            leaves.add(each)
    if inputs is not None and any(type(each) is not AccumulateGrad or each.hooks is not None for each in inputs):
        return MISSED
    given: Array | list[Array | None] = grad
    if node.outputs > 1:
        given = [None] * node.outputs
        given[edge.input_nr if type(edge) is Edge else 0] = grad
    if inputs is None:
        found = node.apply(given, edges) if retain else node.consume(given, edges)
        for each, gradient in zip(edges, found, strict=True):
            if type(each) is AccumulateGrad and gradient is not None:
                accumulate_alone(each, gradient)
        return []
    wanted = set(inputs)
    chosen = tuple([each if each in wanted else None for each in edges])
    found = node.apply(given, chosen) if retain else node.consume(given, chosen)
    by_leaf = dict(zip(edges, found, strict=True))
    results = []
    for each in inputs:
        gradient = by_leaf.get(each)
        if gradient is not None:
            gradient = from_array(gradient if gradient.base is None else np.array(gradient))
        results.append(gradient)
    return results
