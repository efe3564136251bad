"""Use viewgrad functions in PyTensor, and therefore in PyMC models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, grad_undefined
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.exceptions import ShapeError

from ..adoption import adopted_callable
from ..errors import InteropError
from .operation import Operation

__all__ = ["ViewgradOp", "pytensor_op"]


def pytensor_op(f: Callable[..., Any], outputs: Any = None, *, adopt: bool = True) -> ViewgradOp:
    """Make a viewgrad function, eager or compiled, a differentiable operation of PyTensor.

    In PyMC, NUTS can then sample a likelihood that is a NumPy loop: `pm.Potential("likelihood", op(parameters))`.

    Arguments:
        f: a function that takes viewgrad tensors, all positional, and returns a tensor or a tuple of tensors. It must
            not write to its arguments, or capture viewgrad tensors that require grad.
        outputs: the type of the result, or a tuple of types, such as `(pt.dvector, pt.dscalar)`; by default one float64
            number, `pt.dscalar`.
        adopt: whether to adopt `f`; see `viewgrad.adopt`.

    Returns:
        An `Op`, to be called with PyTensor variables, numbers or arrays. viewgrad computes gradients of all orders,
        each as another operation.

    Raises:
        InteropError: when the compiled graph runs, if the result of `f` does not have the type `outputs`.

    Example:
        >>> import pytensor, pytensor.tensor as pt, viewgrad as vg
        >>> from viewgrad.interop import pytensor_op
        >>> def running_product(x):
        ...     out = vg.ones(len(x) + 1)
        ...     for i in range(len(x)):
        ...         out[i + 1] = out[i] * x[i]
        ...     return out[-1]
        >>> product = pytensor_op(running_product)
        >>> x = pt.dvector("x")
        >>> pytensor.grad(product(x), x).eval({x: [1.0, 2.0, 3.0]})
        array([6., 3., 2.])
    """
    types = [pt.dscalar] if outputs is None else list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    return ViewgradOp(Operation(adopted_callable(f) if adopt else f, getattr(f, "__name__", repr(f))), types)


class ViewgradOp(Op):  # type: ignore[misc]
    """A PyTensor operation whose values and gradients are computed by viewgrad; see `pytensor_op`.

    Arguments:
        operation: the operation to compute.
        types: the types of the results.
        like: for gradients, the positions of the inputs whose shapes the results have.
    """

    __props__ = ()

    def __init__(self, operation: Operation, types: Sequence[Any], like: Sequence[int] | None = None) -> None:
        self.operation, self.types, self.like = operation, list(types), like

    def __eq__(self, other: object) -> bool:  # operations are the same if they compute the same function
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return f"ViewgradOp{{{self.operation.name}}}"

    def make_node(self, *inputs: Any) -> Apply:
        """Return the application of the operation to variables."""
        variables = [pt.as_tensor_variable(each) for each in inputs]
        return Apply(self, variables, [each() for each in self.types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[Any]) -> None:
        """Compute the results."""
        arrays = [np.asarray(each) for each in inputs]
        found = self.operation(arrays, [False] * len(arrays)).arrays()
        if len(found) != len(self.types):
            raise InteropError(
                f"{self.operation.name} returned {len(found)} tensors, but outputs= names {len(self.types)} types"
            )
        for storage, array, out in zip(output_storage, found, node.outputs):
            if array.ndim != out.type.ndim or not np.can_cast(array.dtype, out.type.dtype, "same_kind"):
                raise InteropError(
                    f"{self.operation.name} returned {array.dtype} of {array.ndim} dimensions where {out.type} was "
                    "expected; specify the type, as in outputs=pt.dvector"
                )
            storage[0] = np.asarray(array, out.type.dtype)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return which inputs influence which differentiable outputs."""
        return [
            [_is_inexact(x.type.dtype) and _is_inexact(out.type.dtype) for out in node.outputs] for x in node.inputs
        ]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        """Return the gradients of the inputs as results of another operation."""
        cotangents = [
            pt.zeros_like(out) if isinstance(g.type, DisconnectedType) else g
            for out, g in zip(outputs, output_grads)
            if _is_inexact(out.type.dtype)
        ]
        places = [n for n, x in enumerate(inputs) if _is_inexact(x.type.dtype)]
        if not places:
            return [grad_undefined(self, n, x) for n, x in enumerate(inputs)]
        wanted = [_is_inexact(x.type.dtype) for x in inputs]
        pullback = ViewgradOp(self.operation.pullback(wanted), [inputs[n].type for n in places], places)
        found = iter(pullback.make_node(*inputs, *cotangents).outputs)
        return [next(found) if _is_inexact(x.type.dtype) else DisconnectedType()() for x in inputs]

    L_op = pullback  # its name before PyTensor 3

    def infer_shape(self, fgraph: Any, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shapes of the results: those of scalars, or of the inputs that they are gradients of."""
        if self.like is not None:
            return [shapes[n] for n in self.like]
        if all(out.type.ndim == 0 for out in node.outputs):
            return [()] * len(node.outputs)
        raise ShapeError(f"the shapes of the results of {self.operation.name} are known only after it has run")

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        """Disable constant folding, so that the operation runs when the graph is called, not when it is compiled."""
        return False


def _is_inexact(dtype: str) -> bool:
    return np.dtype(dtype).kind in "fc"

