"""`backward` and `grad`: the two ways to run the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np

from ..errors import AutogradError, DifferentiabilityError, GradientMismatchError, UnusedInputError
from ..tensor.creation import asarray, from_number, zeros, zeros_like
from ..tensor.escapes import is_within_transform
from ..tensor.node import Edge, Node, OptionalEdge
from ..tensor.tensor import Tensor, as_buffered, current_edge, held_grad
from ..tensor.trace_hooks import observed
from .execute import run_backward
from .gradient_edge import GradientEdge
from .transform_inputs import as_gradient

Tensors = Tensor | Sequence[Tensor]
Ends = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def backward(
    tensors: Ends,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradients of `tensors` in the `grad` of the leaves they depend on.

    Arguments:
        tensors: one tensor or several, or gradient edges.
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
    targets: list[Any] = _as_list(inputs, "inputs")
    if any(isinstance(each, GradientEdge) for each in targets):
        raise TypeError("backward() accumulates gradients in tensors; use grad() for a GradientEdge")
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
    outputs: Ends,
    inputs: Ends,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: Literal[False] | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Ends,
    inputs: Ends,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    *,
    materialize_grads: Literal[True],
    is_grads_batched: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Ends,
    inputs: Ends,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Ends,
    inputs: Ends,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`.

    No tensor's `grad` changes.

    Arguments:
        outputs: one tensor or several, or gradient edges; see `autograd.graph.get_gradient_edge`.
        inputs: the tensors to differentiate with respect to: leaves, intermediate values or views; or gradient edges.
        grad_outputs: the gradient of each output; optional for real outputs of one element.
        retain_graph: whether to keep the graph for another backward pass. Defaults to `create_graph`, or to True inside
            a function that `viewgrad.func` differentiates.
        create_graph: whether the gradients can be differentiated again.
        allow_unused: whether to return None, instead of raising an error, for an input that the outputs do not depend
            on.
        materialize_grads: whether to return zeros for such an input.
        is_grads_batched: whether each of `grad_outputs` has an additional first axis. The graph is run once for each
            entry of it, and the gradients have this axis too. `viewgrad.func.jacrev` computes whole Jacobians faster.

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
        >>> vg.autograd.grad(x**3, x, vg.eye(2), is_grads_batched=True)
        (Tensor([[ 3.,  0.],
                [ 0., 12.]]),)
    """
    if is_grads_batched:
        return _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
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
                results[i] = zeros_like(tensor) if isinstance(tensor, Tensor) else zeros(*tensor.form())
            elif not allow_unused:
                raise UnusedInputError(
                    f"input {i}, {_described(tensor)}, was not used in computing the outputs (or was "
                    "overwritten since: then differentiate with respect to the value that was used); pass "
                    "allow_unused=True to get None for it"
                )
    return tuple(results)


def _batched_grad(
    outputs: Ends, inputs: Ends, grad_outputs: Any, retain_graph: bool | None, create_graph: bool,
    allow_unused: bool | None, materialize_grads: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return the gradients for each entry of the first axis of `grad_outputs`; see `grad`."""
    roots, targets = _as_list(outputs, "outputs"), _as_list(inputs, "inputs")
    given = list(grad_outputs) if isinstance(grad_outputs, list | tuple) else [grad_outputs]
    grads = [asarray(each) if each is not None else None for each in given]
    shapes = [None if each is None else each.shape for each in grads]
    wanted = [_form(root)[0] for root in roots]
    counts = {shape[0] for shape in shapes if shape}
    fits = len(shapes) == len(wanted) and all(shape and shape[1:] == of for shape, of in zip(shapes, wanted))
    if len(counts) != 1 or not fits:
        raise GradientMismatchError(
            f"with is_grads_batched=True, each of grad_outputs needs the shape of its output after a first axis of one "
            f"length, but the outputs have the shapes {wanted}, and grad_outputs {shapes}"
        )
    (count,) = counts
    retain = _retains(retain_graph, create_graph)
    rows = [
        grad(
            roots, targets, [None if each is None else each[row] for each in grads], retain or row < count - 1,
            create_graph, allow_unused, materialize_grads,
        )
        for row in range(count)
    ]  # fmt: skip
    if not rows:
        forms = [_form(target) for target in targets]
        return tuple([zeros((0, *shape), dtype) for shape, dtype in forms])
    columns: Any = zip(*rows, strict=True)
    stacked: list[Any] = [None if column[0] is None else np.stack(column) for column in columns]
    return tuple(stacked)


def pull_back(
    outputs: Sequence[Any], cotangents: Sequence[Any], inputs: Sequence[Tensor | None], *,
    retain_graph: bool | None = None, create_graph: bool = False,
) -> list[Any]:  # fmt: skip
    """Return a vector-Jacobian product; outputs without a history contribute nothing.

    Arguments:
        outputs: the outputs; those that are not tensors, or have no history, are ignored.
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


def _as_list(tensors: Ends, what: str) -> list[Tensor | GradientEdge]:
    if type(tensors) is Tensor:
        return [tensors]
    single = isinstance(tensors, Tensor | GradientEdge | np.ndarray) or not isinstance(tensors, Iterable)
    given: list[Any] = [tensors] if single else list(tensors)  # type: ignore[arg-type]
    for tensor in given:
        if not isinstance(tensor, Tensor | GradientEdge):
            raise TypeError(f"{what} must be a Tensor or a sequence of them, not {type(tensor).__name__}")
    return given


def _form(of: Tensor | GradientEdge) -> tuple[tuple[int, ...], Any]:
    """Return the shape and dtype of a tensor or an edge."""
    return of.form() if isinstance(of, GradientEdge) else (of.shape, of.dtype)


def _described(of: Tensor | GradientEdge) -> str:
    return f"a tensor of shape {of.shape}" if isinstance(of, Tensor) else f"an output of {of.node.name()}"


def _start(roots: list[Tensor | GradientEdge], grads: Any, what: str) -> tuple[list[Node | Edge], list[Tensor]]:
    """Return the edges at which a run from `roots` starts, and their initial gradients."""
    given = [None] * len(roots) if grads is None else [grads] if not isinstance(grads, list | tuple) else list(grads)
    if len(given) != len(roots):
        raise GradientMismatchError(f"{what} got {len(roots)} tensors but {len(given)} gradients")
    edges = []
    starts = []
    root: Any
    edge: OptionalEdge
    for root, start in zip(roots, given, strict=True):
        if type(root) is GradientEdge:
            edge, like = root.edge, np.broadcast_to(np.empty((), root.form()[1]), root.form()[0])
        else:
            edge, like = current_edge(root), root._array
        if edge is None:
            raise DifferentiabilityError(
                f"{what} got a tensor of shape {like.shape} and dtype {like.dtype} that does not require grad and has "
                "no grad_fn, so there is nothing to differentiate"
            )
        if start is None:
            if like.size != 1:
                raise DifferentiabilityError(
                    f"{what} without a gradient needs an output of one element, not of shape {like.shape}; "
                    "pass the gradient, or sum() the output"
                )
            if like.dtype.kind == "c":
                raise DifferentiabilityError(
                    f"{what} without a gradient needs a real output, not one of dtype {like.dtype}; pass the gradient, "
                    "or differentiate its real and its imaginary part"
                )
            start = from_number(np.full(like.shape, 1, like.dtype) if like.ndim else np.array(1, like.dtype))
        else:
            start = as_gradient(start, like, "the gradient supplied")
        edges.append(edge)
        starts.append(start)
    return edges, starts


def _required_edge(tensor: Tensor | GradientEdge) -> Node | Edge:
    if type(tensor) is GradientEdge:
        return tensor.edge
    edge = current_edge(tensor)  # type: ignore[arg-type]
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
