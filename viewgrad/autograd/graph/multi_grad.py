"""Hooks that receive the gradients of several tensors together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from ...errors import HookError
from ...tensor.node import RemovableHandle, add_hook, hooks_of, input_nr_of, node_of
from ...tensor.tensor import Tensor, current_edge
from ..hook_runner import HookedRun, RunHook


class MultiGradHook(RunHook):
    """The state shared by the hooks of several tensors.

    The hook is called once per run: when the last gradient has arrived, or at the end of the run if some never arrive.
    """

    __slots__ = ("count", "fn", "mode")

    def __init__(self, fn: Callable[[Any], None], count: int, mode: str) -> None:
        self.fn = fn
        self.count = count
        self.mode = mode

    def receive(self, run: HookedRun, number: int, grad: Tensor) -> None:
        """Record the gradient of tensor `number`."""
        grads = run.watched.setdefault(self, [None] * self.count)
        if grads is None:
            return
        if self.mode == "any":
            run.watched[self] = None
            self.fn(grad)
            return
        grads[number] = grad
        if all(g is not None for g in grads):
            run.watched[self] = None
            self.fn(tuple(grads))

    def finished(self, grads: list[Tensor | None]) -> None:
        """Call the function with the gradients that have arrived."""
        self.fn(tuple(grads))


class MemberHook(RunHook):
    """The hook of one of several tensors."""

    __slots__ = ("number", "shared")

    def __init__(self, shared: MultiGradHook, number: int) -> None:
        self.shared = shared
        self.number = number

    def arrived(self, run: HookedRun, grad: Tensor) -> None:
        """Pass the gradient to the shared state."""
        self.shared.receive(run, self.number, grad)


class HandleGroup:
    """The handle returned by registering a hook on several tensors."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hook; removing it twice has no effect."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> HandleGroup:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> HandleGroup:
    """Call `fn` once in each backward pass with the gradients of several tensors.

    Arguments:
        tensors: tensors that require grad, leaves or not.
        fn: in mode "all", a function of a tuple with the gradient of each tensor, or None for tensors that the pass
            does not reach. It is called when the last gradient has arrived, or at the end of a pass that does not reach
            all tensors. In mode "any", a function of the first gradient that arrives.
        mode: "all" or "any".

    Returns:
        A handle whose `remove()` removes the hook.

    Raises:
        HookError: if a tensor does not require grad, or the mode is unknown.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd.graph import register_multi_grad_hook
        >>> x = vg.Tensor([1.0], requires_grad=True)
        >>> y = vg.Tensor([2.0], requires_grad=True)
        >>> handle = register_multi_grad_hook([x, y], print)
        >>> (x * y).sum().backward()
        (Tensor([2.]), Tensor([1.]))
    """
    if mode not in ("all", "any"):
        raise HookError(f"mode of register_multi_grad_hook() must be 'all' or 'any', not {mode!r}")
    edges = []
    for i, tensor in enumerate(tensors):
        edge = current_edge(tensor)
        if edge is None:
            raise HookError(f"tensor {i} of register_multi_grad_hook() does not require grad, so it has no gradient")
        edges.append(edge)
    shared = MultiGradHook(fn, len(edges), mode)
    return HandleGroup(
        [
            add_hook(hooks_of(node_of(edge)).tensor.setdefault(input_nr_of(edge), {}), MemberHook(shared, i))
            for i, edge in enumerate(edges)
        ]
    )
