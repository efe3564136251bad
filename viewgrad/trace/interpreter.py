"""The interpreter, which runs a graph node by node and specifies the semantics of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from ..errors import GraphError
from .evaluate import run_node
from .graph import Block, Graph, Node, Value
from .opaque_ops import VjpStep
from .types import TensorType


def run(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Run a graph.

    Arguments:
        graph: the graph.
        inputs: an array for each input; None for an undefined gradient. They are not written to.

    Returns:
        The outputs: arrays, which may share memory with inputs and with each other; None for undefined gradients.

    Raises:
        GuardError: if a value that control flow depends on differs from its value during tracing.
        GraphError: if inputs have unexpected shapes or dtypes.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> g = vg.symbolic.trace(lambda x: x * x, vg.ones(2))
        >>> vg.symbolic.run(g, [np.array([2.0, 3.0])])
        (array([4., 9.]),)
    """
    if len(inputs) != len(graph.inputs):
        raise GraphError(f"the graph takes {len(graph.inputs)} inputs, but was given {len(inputs)}")
    values: dict[Value, Any] = {}
    for number, (value, given) in enumerate(zip(graph.inputs, inputs, strict=True)):
        values[value] = checked(given, value.type, f"input {number}")
    return run_block(graph.block, values, graph)


def checked(given: Any, kind: Any, what: str) -> Any:
    """Return an input as an array of the expected type."""
    if type(kind) is not TensorType or given is None:
        return given
    array = np.asarray(given)
    if array.shape != kind.shape or array.dtype != kind.dtype:
        raise GraphError(f"{what} is {array.dtype.name}{list(array.shape)}, but the graph expects {kind}")
    return array


def run_block(
    block: Block, values: dict[Value, Any], graph: Graph, undefined: AbstractSet[Any] = frozenset()
) -> tuple[Any, ...]:
    """Run the nodes of a block; `values` contains the values so far, to which those of the block are added.

    Arguments:
        undefined: gradients that are zeros in `values`, and do not contribute to the gradients of a step.
    """
    for node in block:
        absent = undefined if node.kind == "call" and isinstance(node.attributes[0], VjpStep) else ()
        inputs = [None if value is None or value in absent else values[value] for value in node.inputs]
        outputs = run_grad_of(node, inputs, values, graph) if node.blocks else run_node(node, inputs, graph.where)
        values.update(zip(node.outputs, outputs, strict=True))
    return tuple([None if value is None else values[value] for value in block.outputs])


def run_grad_of(node: Node, inputs: list[Any], values: dict[Value, Any], graph: Graph) -> tuple[Any, ...]:
    """Run a linear block. If all incoming gradients are undefined, so are the results; otherwise undefined ones are
    zeros.
    """
    if all(value is None for value in inputs):
        return (None,) * len(node.outputs)
    inner = dict(values)
    undefined: set[Any] = set()
    for value, given in zip(node.inputs, inputs, strict=True):
        if given is None and value is not None and type(value.type) is TensorType:
            inner[value] = np.zeros(value.type.shape, value.type.dtype)
            undefined.add(value)
    return run_block(node.blocks[0], inner, graph, undefined)
