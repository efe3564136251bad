"""Gradients that a backward pass computes needlessly: not an error, but wasted work."""

from __future__ import annotations

from typing import Final

import numpy as np

from ....autograd.function.node import FunctionNode
from ....tensor.modes import no_grad
from ....tensor.node import node_of
from ....tensor.tensor import Tensor, current_edge
from ..baseline import Baseline
from ..operator_under_test import Refused, quiet
from ..report import Report

NEEDLESS: Final = "not computed where not needed"


def unneeded_gradients(baseline: Baseline, report: Report) -> None:
    """Note which gradients are computed although only one argument requires grad.

    By construction, nodes of declared operators compute only what is needed. A `Function` can check
    `ctx.needs_input_grad`.
    """
    places: set[int] = set()
    for k in baseline.example.wanted if baseline.subject.custom is not None and baseline.outputs else ():
        try:
            with quiet():
                edges = [current_edge(output) for output in baseline.subject.record(baseline.example, (k,)).outputs]
            node = next((node for edge in edges if isinstance(node := node_of(edge), FunctionNode)), None)
            if node is None or len(node.positions) < 2:
                continue
            places |= _unneeded_results(node)
        except (Refused, RuntimeError, ValueError, TypeError):
            continue
        report.add(NEEDLESS, 1)
    if places:
        named = " and ".join(baseline.example.place_named(place) for place in sorted(places))
        report.notices.append(
            f"its backward computes the gradient with respect to {named} even if it is not needed; "
            "ctx.needs_input_grad says which gradients are"
        )


def _unneeded_results(node: FunctionNode) -> set[int]:
    """Return the arguments of a custom function whose gradients its backward computes needlessly."""
    starts = [None if like is None else Tensor(np.ones(*like)) for like in node.output_specs]
    with quiet(), no_grad():
        returned = node.ctx._call_backward(starts)
    gradients = returned if isinstance(returned, tuple | list) else (returned,)
    needed = node.ctx.needs_input_grad
    return {place for place in node.positions if gradients[place] is not None and not needed[place]}
