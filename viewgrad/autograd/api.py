"""`backward` and `grad`: the two ways to run the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np

from ..errors import AutogradError, DifferentiabilityError, GradientMismatchError, UnusedInputError
from ..tensor.creation import from_number, zeros_like
from ..tensor.escapes import is_within_transform
from ..tensor.node import Edge, Node
from ..tensor.tensor import Tensor, as_buffered, current_edge, held_grad
from ..tensor.trace_hooks import observed
from .execute import run_backward
from .transform_inputs import as_gradient

Tensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradients of `tensors` in the `grad` of the leaves they depend on.

    Arguments:
        tensors: one tensor or several.
        grad_tensors: the gradient of each tensor, with its shape; optional for real tensors of one element.
        retain_graph: whether to keep the graph for another backward pass. Defaults to `create_graph`, or to True inside
            a function that `viewgrad.func` differentiates.
        create_graph: whether the gradients can be differentiated again.
        inputs: the tensors in whose `grad` to accumulate, instead of all leaves.

    Raises:
        DifferentiabilityError: if a tensor has no history, or has several elements and no gradient is given.
        GradientMismatchError: if a gradient does not have the shape and dtype of its tensor.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.autograd.backward([(x * x).sum()])
        >>> x.grad
        Tensor([2., 4.])
    """
    observer = observed()
    if observer is not None:
        observer.refuse("backward(), which changes the grad of tensors (use autograd.grad),")
    roots = _as_list(tensors, "what backward() starts from")
    edges, grads = _start(roots, grad_tensors, "backward")
    retain = _retains(retain_graph, create_graph)
    if inputs is None:
        run_backward(edges, grads, retain_graph=retain, create_graph=create_graph)
        return
    targets = _as_list(inputs, "inputs")
    if not targets:
        raise AutogradError("inputs must not be empty; omit it to accumulate in all leaves")
    target_edges = [_required_edge(tensor) for tensor in targets]
    captured = run_backward(edges, grads, retain_graph=retain, create_graph=create_graph, inputs=target_edges)
    for tensor, grad in zip(targets, captured, strict=True):
        if grad is not None:
            held = held_grad(tensor)
            tensor._grad = grad if held is None else as_buffered(held + grad)


@overload
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: Literal[False] | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    *,
    materialize_grads: Literal[True],
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`.

    No tensor's `grad` changes.

    Arguments:
        outputs: one tensor or several.
        inputs: the tensors to differentiate with respect to: leaves, intermediate values or views.
        grad_outputs: the gradient of each output; optional for real outputs of one element.
        retain_graph: whether to keep the graph for another backward pass. Defaults to `create_graph`, or to True inside
            a function that `viewgrad.func` differentiates.
        create_graph: whether the gradients can be differentiated again.
        allow_unused: whether to return None, instead of raising an error, for an input that the outputs do not depend
            on.
        materialize_grads: whether to return zeros for such an input.

    Returns:
        A tuple with the gradient for each input.

    Raises:
        UnusedInputError: if the outputs do not depend on an input, unless `allow_unused` or `materialize_grads` is set.
        AutogradError: if there is no tensor among the inputs.
        DifferentiabilityError, GradientMismatchError: as for `backward`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.autograd.grad((x**3).sum(), x)
        (Tensor([ 3., 12.]),)
    """
    roots = _as_list(outputs, "outputs")
    targets = _as_list(inputs, "inputs")
    if not targets:
        raise AutogradError("inputs must not be empty; name the tensors to differentiate with respect to")
    if materialize_grads and allow_unused is False:
        raise ValueError("materialize_grads=True returns zeros for unused inputs, which allow_unused=False forbids")
    edges, grads = _start(roots, grad_outputs, "grad")
    target_edges = [_required_edge(tensor) for tensor in targets]
    retain = _retains(retain_graph, create_graph)
    results: list[Tensor | None] = run_backward(
        edges, grads, retain_graph=retain, create_graph=create_graph, inputs=target_edges, capture=True
    )
    for i, (tensor, result) in enumerate(zip(targets, results, strict=True)):
        if result is None:
            if materialize_grads:
                results[i] = zeros_like(tensor)
            elif not allow_unused:
                raise UnusedInputError(
                    f"input {i}, a tensor of shape {tensor.shape}, was not used in computing the outputs (or was "
                    "overwritten since: then differentiate with respect to the value that was used); pass "
                    "allow_unused=True to get None for it"
                )
    return tuple(results)


def pull_back(
    outputs: Sequence[Any], cotangents: Sequence[Any], inputs: Sequence[Tensor | None], *,
    retain_graph: bool | None = None, create_graph: bool = False,
) -> list[Any]:  # fmt: skip
    """Return a vector-Jacobian product; outputs without a history contribute nothing.

    Arguments:
        outputs: the outputs; those that are no tensors, or have no history, are ignored.
        cotangents: the gradient of each output; None if it is undefined.
        inputs: tensors that require grad, or None for inputs whose gradient is not needed.
        retain_graph, create_graph: as for `grad`.

    Returns:
        The gradient of each input, or None if it is not needed or no gradient reaches the input.
    """
    pairs = [
        (output, cotangent) for output, cotangent in zip(outputs, cotangents, strict=True)
        if cotangent is not None and isinstance(output, Tensor) and output.requires_grad
    ]
    wanted = [each for each in inputs if each is not None]
    if not pairs or not wanted:
        return [None] * len(inputs)
    found = iter(grad([o for o, _ in pairs], wanted, [c for _, c in pairs], retain_graph, create_graph, True))
    return [None if each is None else next(found) for each in inputs]


def _retains(retain_graph: bool | None, create_graph: bool) -> bool:
    """Return whether a run retains saved values; by default it does under `create_graph` and inside a transform."""
    return create_graph or is_within_transform() if retain_graph is None else retain_graph


def _as_list(tensors: Tensors, what: str) -> list[Tensor]:
    if type(tensors) is Tensor:
        return [tensors]
    single = isinstance(tensors, Tensor | np.ndarray) or not isinstance(tensors, Iterable)
    given: list[Any] = [tensors] if single else list(tensors)
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what} must be a Tensor or a sequence of them, not {type(tensor).__name__}")
    return given


def _start(roots: list[Tensor], grads: Any, what: str) -> tuple[list[Node | Edge], list[Tensor]]:
    """Return the edges at which a run from `roots` starts, and their initial gradients."""
    given = [None] * len(roots) if grads is None else [grads] if not isinstance(grads, list | tuple) else list(grads)
    if len(given) != len(roots):
        raise GradientMismatchError(f"{what} got {len(roots)} tensors but {len(given)} gradients")
    edges = []
    starts = []
    for root, start in zip(roots, given, strict=True):
        edge = current_edge(root)
        if edge is None:
            raise DifferentiabilityError(
                f"{what} got a tensor of shape {root.shape} and dtype {root.dtype} that does not require grad and has "
                "no grad_fn, so there is nothing to differentiate"
            )
        if start is None:
            if root._array.size != 1:
                raise DifferentiabilityError(
                    f"{what} without a gradient needs an output of one element, not of shape {root.shape}; "
                    "pass the gradient, or sum() the output"
                )
            if root._array.dtype.kind == "c":
                raise DifferentiabilityError(
                    f"{what} without a gradient needs a real output, not one of dtype {root.dtype}; pass the gradient, "
                    "or differentiate its real and its imaginary part"
                )
            array = root._array
            start = from_number(np.full(array.shape, 1, array.dtype) if array.ndim else np.array(1, array.dtype))
        else:
            start = as_gradient(start, root, "the gradient supplied")
        edges.append(edge)
        starts.append(start)
    return edges, starts


def _required_edge(tensor: Tensor) -> Node | Edge:
    edge = current_edge(tensor)
    if edge is None:
        raise DifferentiabilityError(f"one of the inputs, a tensor of shape {tensor.shape}, does not require grad")
    return edge


def _tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradients of this tensor in the leaves that it was computed from; see `autograd.backward`."""
    backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs)


Tensor.backward = _tensor_backward  # type: ignore[method-assign, assignment]
