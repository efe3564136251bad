"""Hooks on tensors: functions that receive, and may replace, the gradient of a value.

A hook belongs to the *value* that the tensor had when the hook was registered; after an in-place write it still
receives the gradient of the old value. `retain_grad` belongs to the tensor and follows its writes. See Note [Order of
hooks] in docs/notes/engine.md.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..errors import DifferentiabilityError, HookError
from ..tensor.node import AccumulateGrad, Edge, Node, RemovableHandle, add_hook, hooks_of, input_nr_of, node_of
from ..tensor.tensor import Tensor, current_edge, method


@method
def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook(grad)` whenever the gradient of this tensor's current value has been computed.

    Hooks run in the order of their registration; each receives the result of the previous one.

    Arguments:
        hook: a function that receives the gradient and returns a replacement of the same shape and dtype, or None.

    Returns:
        A handle whose `remove()` removes the hook.

    Raises:
        DifferentiabilityError: for a tensor that does not require grad.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 3
        >>> handle = y.register_hook(lambda grad: grad * 10)
        >>> y.sum().backward()
        >>> x.grad
        Tensor([30., 30.])
    """
    edge = _edge_of(self, hook, "register_hook")
    return add_hook(hooks_of(node_of(edge)).tensor.setdefault(input_nr_of(edge), {}), hook)


@method
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` whenever a backward pass has added to this leaf's `grad`.

    Arguments:
        hook: a function that receives the leaf; it may use, modify or reset the leaf's `grad`.

    Returns:
        A handle whose `remove()` removes the hook.

    Raises:
        HookError: for a tensor that is not a leaf.
        DifferentiabilityError: for a tensor that does not require grad.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * x).sum().backward()
        Tensor([2., 4.])
    """
    edge = _edge_of(self, hook, "register_post_accumulate_grad_hook")
    if type(edge) is not AccumulateGrad:
        raise HookError(
            f"register_post_accumulate_grad_hook() requires a leaf, not a tensor created by {node_of(edge)!r}, which "
            "does not accumulate gradients; use register_hook()"
        )
    return add_hook(hooks_of(edge).accumulated, hook)


@method
def retain_grad(self: Tensor) -> None:
    """Accumulate gradients in this tensor's `grad`, although it is not a leaf.

    The gradient is that of the tensor's value at the time of the pass; the tensor or its base may be written to before
    then.

    Raises:
        DifferentiabilityError: for a tensor that does not require grad.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad
        Tensor([ 6., 12.])
    """
    edge = current_edge(self)
    if edge is None:
        raise DifferentiabilityError("retain_grad() requires a tensor that requires grad; others have no gradient")
    if type(edge) is AccumulateGrad:
        return
    reference = weakref.ref(self)
    hooks_of(node_of(edge)).retained[input_nr_of(edge)] = reference
    view = self._view
    if view is not None and view.base._edge is not None and type(view.base._edge) is not AccumulateGrad:
        hooks_of(node_of(view.base._edge)).following[id(self)] = reference


def _retains_grad(self: Tensor) -> bool:
    """True if `retain_grad` was called on this tensor, so that backward passes fill its `grad`."""
    edge = current_edge(self)
    if edge is None or type(edge) is AccumulateGrad:
        return False
    hooks = node_of(edge).hooks
    retained = None if hooks is None else hooks.retained.get(input_nr_of(edge))
    return retained is not None and retained() is self


def _edge_of(tensor: Tensor, hook: Callable[..., Any], name: str) -> Node | Edge:
    edge = current_edge(tensor)
    if edge is None:
        raise DifferentiabilityError(f"{name}() requires a tensor that requires grad; others have no gradient")
    if not callable(hook):
        raise HookError(f"{name}() expects a function, not {type(hook).__name__}")
    return edge


setattr(Tensor, "retains_grad", property(_retains_grad))  # noqa: B010
