"""Linear blocks are inlined, and specialized for which gradients are undefined."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...trace.graph import Block, Graph, Node, Value
from ...trace.opaque_ops import VjpStep
from ...trace.types import TensorType
from .dead_code import eliminate_dead_code


def inline_grad_of(block: Block) -> int:
    """Replace linear blocks by their nodes, assuming that all gradients are defined.

    Returns:
        The number of blocks.
    """
    inlined = 0
    for node in block:
        if node.kind == "GradOf":
            inline_block(node)
            inlined += 1
    return inlined


def inline_block(node: Node) -> None:
    """Replace a node by the nodes of its only block, which has no inputs."""
    (inner,) = node.blocks
    for each in inner:
        each.unlink().insert_before(node)
    for value, output in zip(node.outputs, inner.outputs, strict=True):
        assert output is not None
        value.replace_all_uses_with(output)
    node.destroy()


def specialize_autograd_zero(graph: Graph, undefined: Iterable[int] = ()) -> Graph:
    """Specialize a graph for undefined gradients among its inputs.

    If all inputs of a linear block are undefined, so are its outputs; a sum with an undefined summand is the other
    summand. All other blocks are inlined. The graph then does no work for gradients that are known to be zero.

    Arguments:
        graph: the graph, which is modified: undefined inputs remain, but are unused.
        undefined: the numbers of the undefined inputs.

    Returns:
        The graph. Its outputs that are known to be zero are None.
    """
    zeros = {graph.inputs[number] for number in undefined}
    _specialize(graph.block, zeros)
    outputs = [None if value is None or value in zeros else value for value in graph.outputs]
    graph.block.set_outputs(outputs)
    eliminate_dead_code(graph.block)
    return graph


def _specialize(block: Block, zeros: set[Value]) -> None:
    for node in block:
        if node.kind == "AutogradZero":
            zeros.add(node.output)
        elif node.kind == "AutogradAdd":
            _specialize_add(node, zeros)
        elif node.kind == "GradOf":
            if all(value in zeros for value in node.inputs):
                zeros.update(node.outputs)
                continue
            materialize(node, zeros)
            inline_block(node)


def _specialize_add(node: Node, zeros: set[Value]) -> None:
    first, second = node.inputs
    if first in zeros and second in zeros:
        zeros.add(node.output)
    elif first in zeros or second in zeros:
        other = second if first in zeros else first
        assert other is not None
        node.output.replace_all_uses_with(other)
        node.destroy()


def materialize(node: Node, zeros: set[Value]) -> None:
    """Pass zeros for the undefined inputs of nodes of a linear block that also have defined inputs.

    An addition to an undefined sum is the other summand; an addition of an undefined gradient leaves the sum unchanged.
    """
    made: dict[Value, Value] = {}
    (inner,) = node.blocks
    for each in inner:
        if not any(value in zeros for value in each.inputs):
            continue
        if each.kind in ("accumulate", "add_at") and each.inputs[1] in zeros:
            base = each.inputs[0]
            assert base is not None
            each.output.replace_all_uses_with(base)
            each.destroy()
            continue
        if each.kind == "AutogradAdd":
            _specialize_add(each, zeros)
            continue
        if each.kind == "call" and isinstance(each.attributes[0], VjpStep):
            leave_out(each, zeros)
        each.set_inputs([zero(value, node, made) if value in zeros else value for value in each.inputs])
    inner.set_outputs([zero(value, node, made) if value in zeros else value for value in inner.outputs])


def leave_out(node: Node, zeros: set[Value]) -> None:
    """Remove undefined gradients from the inputs of the gradients of an opaque step."""
    step: VjpStep = node.attributes[0]
    inputs = list(node.inputs)
    grads = zip(step.arriving, inputs[step.count :], strict=True)
    defined = [(number, value) for number, value in grads if value not in zeros]
    node.attributes = (attrs.evolve(step, arriving=tuple([number for number, _ in defined])),)
    node.set_inputs([*inputs[: step.count], *[value for _, value in defined]])


def zero(value: Value | None, before: Node, made: dict[Value, Value]) -> Value:
    """Return zeros in place of an undefined gradient."""
    assert value is not None and type(value.type) is TensorType
    if value not in made:
        kind = value.type.with_grad(False)
        node = Node("full", (), (kind.shape, 0, kind.dtype), (kind,), before.location)
        made[value] = node.insert_before(before).output
    return made[value]
