"""Gradient edges: places in the graph at which `grad` starts or ends, without the tensor."""

from __future__ import annotations

import attrs
import numpy as np

from ..errors import DifferentiabilityError
from ..tensor.node import Edge, Node, input_nr_of, node_of
from ..tensor.tensor import Tensor, current_edge, edge_to


@attrs.frozen(eq=False)
class GradientEdge:
    """The place in the graph of a value, which `autograd.grad` accepts instead of a tensor.

    It does not keep the value alive, and after an in-place write to the tensor it still stands for the old value.
    `get_gradient_edge` returns one with a shape and a dtype.

    Arguments:
        node: the node that created the value; for a leaf, its `AccumulateGrad`.
        output_nr: the number of the value among the outputs of the node.
        shape, dtype: those of the value. They are needed if the edge is an output of `grad`, or if the gradient is
            materialized.

    Raises:
        ValueError: if the node has no such output.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * x
        >>> edge = vg.autograd.graph.GradientEdge(y.grad_fn, y.output_nr)
        >>> vg.autograd.grad((y * 3.0).sum(), edge)
        (Tensor([3., 3.]),)
    """

    node: Node
    output_nr: int = 0
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[np.generic] | None = None

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.output_nr < self.node.outputs:
            raise ValueError(f"{self.node.name()} has {self.node.outputs} outputs, and none of number {self.output_nr}")

    @property
    def edge(self) -> Node | Edge:
        """The edge that leads to the value."""
        return edge_to(self.node, self.output_nr)

    def form(self) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
        """Return the shape and dtype of the value.

        Raises:
            DifferentiabilityError: if they are unknown.
        """
        if self.shape is None or self.dtype is None:
            raise DifferentiabilityError(
                f"the shape and dtype of an output of {self.node.name()} are unknown; pass the tensor or the result of "
                "get_gradient_edge(tensor), or GradientEdge(node, output_nr, shape, dtype)"
            )
        return self.shape, self.dtype


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the place of a tensor's current value in the graph.

    Arguments:
        tensor: a tensor that requires grad.

    Raises:
        DifferentiabilityError: if it does not require grad.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd.graph import get_gradient_edge
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 1.0
        >>> before = get_gradient_edge(y)
        >>> y *= 3.0
        >>> vg.autograd.grad(y.sum(), [before, y])
        (Tensor([3., 3.]), Tensor([1., 1.]))
        >>> vg.autograd.grad(before, x, vg.Tensor([1.0, 10.0]))
        (Tensor([ 1., 10.]),)
    """
    edge = current_edge(tensor)
    if edge is None:
        raise DifferentiabilityError(
            f"a tensor of shape {tensor.shape} that does not require grad has no place in the graph"
        )
    return GradientEdge(node_of(edge), input_nr_of(edge), tensor.shape, tensor.dtype)
