"""Use viewgrad functions in PyTorch, and PyTorch functions in viewgrad."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..adoption import adopted_callable
from ..autograd.function import Function
from ..errors import InteropError
from ..func.tree import flatten, unflatten
from ..tensor.modes import FORWARD, GRAD, current_mode
from ..tensor.tensor import Tensor, from_new_array
from .operation import Operation, on_leaves, samples_of

__all__ = ["from_torch", "torch_function"]

TORCH_LEAVES = (torch.Tensor,)


def torch_function(f: Callable[..., Any], *, adopt: bool = True) -> Callable[..., Any]:
    """Make a viewgrad function, eager or compiled, a differentiable operation of PyTorch.

    The function works directly on the memory of contiguous CPU tensors, in their dtypes. viewgrad computes gradients of
    all orders: `torch.autograd.grad(..., create_graph=True)` and `torch.autograd.gradcheck` work.

    Arguments:
        f: a function that takes viewgrad tensors and returns tensors, or a tree of them. It may write to tensors that
            it creates, but not to its arguments, and must not capture viewgrad tensors that require grad.
        adopt: whether to adopt `f`; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments, with PyTorch tensors instead of viewgrad's, which may be nested. Other
        arguments are passed through.

    Raises:
        InteropError: when called with tensors that are not on the CPU, if `f` writes to an argument, or if its result
            depends on a captured viewgrad tensor that requires grad.

    Example:
        >>> import torch, viewgrad as vg
        >>> from viewgrad.interop import torch_function
        >>> def running_product(x):
        ...     out = vg.ones(len(x) + 1, dtype=x.dtype)
        ...     for i in range(len(x)):
        ...         out[i + 1] = out[i] * x[i]
        ...     return out
        >>> product = torch_function(running_product)
        >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> product(x)[-1].backward()
        >>> x.grad
        tensor([6., 3., 2.])
    """

    if adopt:
        f = adopted_callable(f)

    @functools.wraps(f, updated=())
    def operation(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs), TORCH_LEAVES)
        rebuilt: list[Any] = []
        named = Operation(on_leaves(f, structure), getattr(f, "__name__", repr(f)))
        outputs = _Operation.apply(named, rebuilt, *leaves)
        return rebuilt[0](list(outputs))

    return operation


class _Operation(torch.autograd.Function):  # type: ignore[misc]
    """A viewgrad operation as one node of a PyTorch graph."""

    @staticmethod
    def forward(ctx: Any, operation: Operation, rebuilt: list[Any], *tensors: torch.Tensor) -> Any:
        arrays = [_array_of(tensor) for tensor in tensors]
        needed = [need and _is_inexact(tensor) for need, tensor in zip(ctx.needs_input_grad[2:], tensors)]
        found = operation(arrays, needed)
        rebuilt.append(found.tree)
        ctx.operation, ctx.evaluation = operation, found
        ctx.samples = samples_of(found.outputs) if any(needed) else None
        ctx.save_for_backward(*tensors)
        outputs = tuple([torch.from_numpy(each) if each.ndim else torch.tensor(each[()]) for each in found.arrays()])
        ctx.mark_non_differentiable(*[each for each in outputs if not _is_inexact(each)])
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        tensors = ctx.saved_tensors  # PyTorch checks here that no saved tensor was written to
        if not torch.is_grad_enabled():
            found = ctx.evaluation.gradients([_array_of(each) for each in grads])
            return None, None, *[None if each is None else torch.from_numpy(np.asarray(each)) for each in found]
        pullback = ctx.operation.pullback(len(tensors), ctx.samples)
        cotangents = [g for g, out in zip(grads, ctx.evaluation.outputs) if out.dtype.kind in "fc"]
        pulled = iter(_Operation.apply(pullback, [], *tensors, *cotangents))
        gradients = [next(pulled) if _is_inexact(t) else None for t in tensors]
        return None, None, *[g if need else None for g, need in zip(gradients, ctx.needs_input_grad[2:])]


def _is_inexact(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _array_of(tensor: torch.Tensor) -> Any:
    """Return the memory of a tensor as an array."""
    if tensor.device.type != "cpu":
        raise InteropError(f"viewgrad computes on the CPU, and got a tensor on {tensor.device}; call cpu() on it first")
    try:
        return tensor.detach().resolve_conj().resolve_neg().numpy()
    except TypeError as error:
        raise InteropError(f"NumPy has no dtype like {tensor.dtype}; convert the tensor to float32 first") from error


# -- from PyTorch to viewgrad ------------------------------------------------------------------------------------------


def from_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a PyTorch function a differentiable operator of viewgrad, in both modes and to any order.

    Arguments:
        f: a function that takes PyTorch tensors and returns tensors, or a tree of them, such as a `torch.nn.Module`.
            Captured parameters must not require grad (`module.requires_grad_(False)`): pass parameters that need
            gradients as arguments, for example with `torch.func.functional_call`.

    Returns:
        A function with the same arguments, with viewgrad tensors and arrays instead of PyTorch's.

    Raises:
        InteropError: when called, if the result depends on a captured tensor that requires grad.

    Example:
        >>> import torch, viewgrad as vg
        >>> from viewgrad.interop import from_torch
        >>> softplus = from_torch(torch.nn.functional.softplus)
        >>> vg.func.grad(softplus)(0.0)
        Tensor(0.5)
    """

    @functools.wraps(f, updated=())
    def operator(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        rebuilt: list[Any] = []
        tensors = [x if isinstance(x, Tensor) else Tensor(x) for x in leaves]
        outputs = _Operator.apply(on_leaves(f, structure), rebuilt, True, *tensors)
        return unflatten(rebuilt[0], list(outputs))

    return operator


class _Operator(Function):
    """A PyTorch function as one node of a viewgrad graph."""

    @staticmethod
    def forward(ctx: Any, f: Callable[..., Any], rebuilt: list[Any], is_users: bool, *tensors: Tensor) -> Any:
        needed = [need and x.dtype.kind in "fc" for need, x in zip(ctx.needs_input_grad[3:], tensors)]
        # Nothing is recorded in inference mode, not even with grad mode enabled.
        with torch.inference_mode(False), torch.enable_grad():
            inputs = [torch.from_numpy(np.array(tensor._array)) for tensor in tensors]
            for x, need in zip(inputs, needed):
                x.requires_grad_(need)
            ctx.random = torch.random.get_rng_state()
            leaves, structure = flatten(f(*inputs), TORCH_LEAVES)
        if any(x._version for x in inputs):
            raise InteropError(
                "the PyTorch function wrote to an argument in place, which viewgrad would not see; use a clone"
            )
        if is_users:
            _refuse_captured(leaves, inputs)
        rebuilt.append(structure)
        ctx.f, ctx.inputs, ctx.results = f, _Held(inputs), _Held(leaves)
        ctx.save_for_backward(*tensors)
        return tuple([from_new_array(np.array(_array_of(leaf))) for leaf in leaves])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        tensors = ctx.saved_tensors
        if not current_mode() & (GRAD | FORWARD):
            cotangents = [torch.from_numpy(np.array(each._array)) for each in grads]
            return None, None, None, *_torch_vjp(ctx.results.tensors, ctx.inputs.tensors, cotangents)
        count, again = len(tensors), _repeated(ctx)
        needed = [need and x.dtype.kind in "fc" for need, x in zip(ctx.needs_input_grad[3:], tensors)]
        places = [n for n, need in enumerate(needed) if need]

        def pullback(*given: Any) -> Any:
            inputs, cotangents = _leaves_at(given[:count], places), given[count:]
            found = _torch_gradients(again(inputs), [inputs[n] for n in places], cotangents, create_graph=True)
            return [torch.zeros_like(inputs[n]) if g is None else g for n, g in zip(places, found)]

        floats = [g for g, out in zip(grads, ctx.results.tensors) if _is_inexact(out)]
        found = iter(_Operator.apply(pullback, [], False, *tensors, *floats))
        return None, None, None, *[next(found) if need else None for need in needed]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        tensors, given = ctx.saved_tensors, tangents[3:]
        places = [n for n, x in enumerate(tensors) if given[n] is not None and x.dtype.kind in "fc"]
        count, again = len(tensors), _repeated(ctx)

        def pushed(*both: Any) -> Any:
            inputs = _leaves_at(both[:count], places)
            outputs = again(inputs)
            # The directional derivative is the transpose of the transpose, which PyTorch supports for all functions.
            seeds = [torch.zeros_like(out, requires_grad=True) for out in outputs]
            pulled = _torch_gradients(outputs, [inputs[n] for n in places], seeds, create_graph=True)
            pairs = [(g, v) for g, v in zip(pulled, both[count:]) if g is not None and g.requires_grad]
            if not pairs:
                return [torch.zeros_like(out) for out in outputs]
            found = torch.autograd.grad(
                [g for g, _ in pairs], seeds, [v for _, v in pairs], create_graph=True, allow_unused=True
            )
            return [torch.zeros_like(out) if each is None else each for out, each in zip(outputs, found)]

        found = iter(_Operator.apply(pushed, [], False, *tensors, *[given[n] for n in places]))
        return tuple([
            next(found) if _is_inexact(out) else from_new_array(np.zeros_like(_array_of(out)))
            for out in ctx.results.tensors
        ])  # fmt: skip


def _repeated(ctx: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that repeats a call with the same random numbers and returns its inexact outputs."""
    f, random, expected = ctx.f, ctx.random, [each for each in ctx.results.tensors if _is_inexact(each)]

    def again(inputs: Sequence[Any]) -> list[Any]:
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(random)
            outputs = [each for each in flatten(f(*inputs), TORCH_LEAVES)[0] if _is_inexact(each)]
        if not all(torch.allclose(one, other, rtol=1e-4, equal_nan=True) for one, other in zip(outputs, expected)):
            raise InteropError(
                "the PyTorch function computed other values when it ran again for higher derivatives, or for forward "
                "mode: it reads state that has changed; pass such values as arguments"
            )
        return outputs

    return again


class _Held:
    """PyTorch tensors saved for the backward pass."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self.tensors = list(tensors)


def _leaves_at(tensors: Sequence[torch.Tensor], places: Sequence[int]) -> list[Any]:
    """Return the tensors, with those at given positions replaced by inputs that PyTorch differentiates with respect to.
    """
    return [
        (x if x.requires_grad else x.detach().requires_grad_()) if n in places else x for n, x in enumerate(tensors)
    ]


def _torch_vjp(outputs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    wanted = [x for x in inputs if x.requires_grad]
    found = iter(_torch_gradients(outputs, wanted, grads, create_graph=False))
    gradients: list[Any] = []
    for x in inputs:
        each = next(found) if x.requires_grad else None
        zeros = from_new_array(np.zeros(tuple(x.shape), _array_of(x).dtype)) if x.requires_grad else None
        gradients.append(zeros if each is None else from_new_array(np.array(_array_of(each))))
    return gradients


def _torch_gradients(outputs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any], create_graph: bool) -> Any:
    pairs = [(out, g) for out, g in zip(outputs, grads) if out.requires_grad]
    if not pairs or not inputs:
        return [None] * len(inputs)
    return torch.autograd.grad(
        [out for out, _ in pairs], inputs, [g for _, g in pairs],
        retain_graph=True, create_graph=create_graph, allow_unused=True,
    )  # fmt: skip


def _refuse_captured(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Refuse a result that depends on parameters for which viewgrad computes no gradient."""
    own = {id(x) for x in inputs}
    stack = [out.grad_fn for out in outputs if out.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in own:
            raise InteropError(
                f"the PyTorch function captures a tensor of shape {tuple(leaf.shape)} that requires grad, to which no "
                "gradient would come back from viewgrad; call requires_grad_(False) on it, or pass it as an argument"
            )
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                stack.append(before)
