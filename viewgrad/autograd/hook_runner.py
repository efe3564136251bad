"""The hooks of one run of the engine, which receive gradients and may replace them.

See Note [Order of hooks] in docs/notes/engine.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..errors import GradientMismatchError, HookError
from ..tensor.node import AccumulateGrad, Node, NodeHooks
from ..tensor.tensor import Tensor, as_buffered, from_array, held_grad

accumulating: Final = threading.RLock()  # a leaf may be reached by the runs of several threads at once


class HookedRun:
    """The hooks of a run.

    Attributes:
        recorded: whether the run itself is recorded, with tensors for gradients instead of arrays.
        seen: the gradients of nodes whose hooks run after the node.
        watched: for each hook that waits for several gradients, those that have arrived; None if it no longer waits.
    """

    __slots__ = ("recorded", "seen", "watched")

    recorded: bool
    seen: dict[Node, tuple[Tensor | None, ...]]
    watched: dict[RunHook, list[Tensor | None] | None]

    def run_tensor_hooks(self, hooks: NodeHooks, grads: list[Any]) -> None:
        """Call the hooks of a node's outputs, which may replace gradients in `grads`, then set retained gradients."""
        for number in {**hooks.tensor, **hooks.retained}:
            if grads[number] is not None:
                grads[number] = self._through_tensor_hooks(hooks, number, grads[number])

    def _through_tensor_hooks(self, hooks: NodeHooks, number: int, grad: Any) -> Any:
        for hook in tuple(hooks.tensor.get(number, {}).values()):
            shown = self._show(grad)
            if isinstance(hook, RunHook):
                hook.arrived(self, shown)
                continue
            replaced: Any = hook(shown)
            if isinstance(replaced, tuple | list):
                raise HookError(f"{hook_name(hook)} returned {type(replaced).__name__}, not a Tensor or None")
            (grad,) = self._replaced(hook, None if replaced is None else (replaced,), (shown,), (grad,), None)
        retained = hooks.retained.get(number)
        tensor = None if retained is None else retained()
        if tensor is not None:
            self.accumulate(tensor, grad)
        return grad

    def run_prehooks(self, node: Node, hooks: NodeHooks, grads: list[Any]) -> list[Any] | None:
        """Return the gradients of `node` after its pre-hooks, or None if all of them are None."""
        for prehook in tuple(hooks.before.values()):
            shown = tuple(self._show(g) for g in grads)
            grads = self._replaced(prehook, prehook(shown), shown, grads, node)
        if all(g is None for g in grads):
            return None
        if hooks.after:
            self.seen[node] = tuple(grads)
        return grads

    def run_posthooks(self, node: Node, hooks: NodeHooks, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the computed gradients of `node` after its post-hooks; the list belongs to the run."""
        outputs = tuple(self._show(g) for g in self.seen.pop(node))
        for hook in tuple(hooks.after.values()):
            shown = tuple(self._show(g) for g in grads)
            grads = tuple(self._replaced(hook, hook(shown, outputs), shown, grads, node))
        return grads

    def finish_hooks(self, leaves: Sequence[AccumulateGrad]) -> None:
        """Run the hooks after accumulation in `leaves`, and the hooks that wait for the end of the run."""
        for node in leaves:
            if node.hooks is not None:
                tensor = node.variable
                for hook in tuple(node.hooks.accumulated.values()):
                    if (returned := hook(tensor)) is not None:
                        raise HookError(
                            f"{hook_name(hook)} returned {type(returned).__name__}, but the gradient has already been "
                            "accumulated; set grad of the leaf, or register the hook with register_hook()"
                        )
                if node.hooks.after:
                    self.run_posthooks(node, node.hooks, ())
        for run_hook, grads in tuple(self.watched.items()):
            if grads is not None:
                run_hook.finished(grads)

    def accumulate(self, tensor: Tensor, grad: Any) -> None:
        """Add `grad` to the `grad` of `tensor`, whose memory is not shared afterwards."""
        with accumulating:
            held = held_grad(tensor)
            if self.recorded:
                tensor._grad = grad.clone() if held is None else as_buffered(held + grad)
            elif held is None:
                tensor._grad = from_array(np.array(grad, dtype=tensor._array.dtype))
            else:
                tensor._grad = from_array(np.asarray(held._array + grad))

    def _show(self, grad: Any) -> Tensor | None:
        """Return a gradient as a tensor for a hook, which may write to it; its memory is not shared with other
        gradients.
        """
        if grad is None:
            return None
        return grad.clone() if self.recorded else from_array(np.array(grad))

    def _replaced(
        self, hook: Callable[..., Any], returned: Any, shown: tuple[Any, ...], grads: Sequence[Any], node: Node | None
    ) -> list[Any]:
        """Return the gradients after a hook, which may return new ones or modify its arguments."""
        if returned is None:
            returned = shown
        elif not isinstance(returned, tuple | list):
            returned = (returned,)
        if len(returned) != len(grads):
            where = "" if node is None else f" of {node.name()}"
            raise HookError(f"{hook_name(hook)}{where} returned {len(returned)} gradients instead of {len(grads)}")
        results = []
        for new, old, grad in zip(returned, shown, grads, strict=True):
            if new is old and (old is None or not old._version):
                results.append(grad)
            elif new is None:
                results.append(None)
            elif not isinstance(new, Tensor):
                raise HookError(f"{hook_name(hook)} returned {type(new).__name__} instead of a Tensor or None")
            elif old is None:
                raise HookError(f"{hook_name(hook)} returned a gradient in place of an undefined one (None)")
            elif new.shape != old.shape or new.dtype != old.dtype:
                raise GradientMismatchError(
                    f"{hook_name(hook)} returned a gradient of shape {new.shape} and dtype {new.dtype} in place of "
                    f"one of shape {old.shape} and dtype {old.dtype}"
                )
            else:  # a copy, since the hook may keep a reference and write to it later
                results.append(new.clone() if self.recorded else np.array(new._array))
        return results


class RunHook:
    """A tensor hook that also receives the run and is notified of its end; see `HookedRun.watched`."""

    __slots__ = ()

    def arrived(self, run: HookedRun, grad: Any) -> None:
        """Receive a gradient; the hook cannot replace it."""
        raise NotImplementedError

    def finished(self, grads: list[Tensor | None]) -> None:
        """Handle the end of a run, given the hook's entry in `run.watched`, which must not be None."""
        raise NotImplementedError


def hook_name(hook: Callable[..., Any]) -> str:
    """Return the name of a hook for a message."""
    return f"the hook {getattr(hook, '__qualname__', None) or type(hook).__name__}"
