"""Use viewgrad functions in PyTorch, and PyTorch functions in viewgrad."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import torch

from ..adoption import adopted_callable
from ..autograd.function import Function
from ..errors import InteropError
from ..func.tree import flatten, unflatten
from ..tensor.modes import FORWARD, GRAD, current_mode
from ..tensor.tensor import Tensor, from_new_array
from .operation import Evaluation, OnLeaves, Operation

__all__ = ["from_torch", "torch_function"]

TORCH_LEAVES = (torch.Tensor,)


def torch_function(f: Callable[..., Any], *, adopt: bool = True) -> Callable[..., Any]:
    """Make a viewgrad function, eager or compiled, a differentiable operation of PyTorch.

    The function works directly on the memory of contiguous CPU tensors, in their dtypes. viewgrad computes derivatives
    of all orders, in both modes: `torch.autograd.grad(..., create_graph=True)`, `torch.autograd.gradcheck` and the
    transforms of `torch.func`, such as `vmap` and `hessian`, work. `torch.compile` breaks its graph at a call.

    Arguments:
        f: a function that takes viewgrad tensors and returns tensors, or a tree of them. It may write to tensors that
            it creates, but not to its arguments, and must not capture viewgrad tensors that require grad.
        adopt: whether to adopt `f`; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments, with PyTorch tensors instead of viewgrad's, which may be nested. Other
        arguments are passed through.

    Raises:
        InteropError: when called with tensors that are not on the CPU or not strided, or while PyTorch records a
            program (`torch.jit.trace`, `torch.func.linearize`); if `f` writes to an argument, or if its result depends
            on a captured viewgrad tensor that requires grad.

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
        run = _Run(torch.is_grad_enabled())
        outputs = _Operation.apply(Operation.of(f, structure), run, *map(_without_autocast, leaves))
        return unflatten(run.structure, list(outputs))

    # Otherwise torch.compile would translate the operation's NumPy calls to PyTorch.
    return torch.compiler.disable(operation)  # type: ignore[no-any-return]


@attrs.define(eq=False)
class _Run:
    """Values of a call that `forward` passes to `setup_context` and to the caller.

    Attributes:
        is_recorded: whether PyTorch was recording when the operation was called.
        evaluation, outputs: the evaluation and results of `forward`. PyTorch passes these same results to
            `setup_context`, unless it transforms the call.
        structure: the structure of the result.
    """

    is_recorded: bool
    evaluation: Evaluation | None = None
    outputs: tuple[torch.Tensor, ...] = ()
    structure: Any = None


class _Operation(torch.autograd.Function):  # type: ignore[misc]
    """A viewgrad operation as one node of a PyTorch graph.

    `backward` and `jvp` disable `torch.compile` themselves, as compiled functions may call them outside the operation.
    """

    @staticmethod
    def forward(operation: Operation, run: _Run, *tensors: torch.Tensor) -> Any:
        _refuse_tracing(operation.name)
        arrays = [_array_of(tensor) for tensor in tensors]
        needed = [run.is_recorded and tensor.requires_grad and _is_inexact(tensor) for tensor in tensors]
        run.evaluation = found = operation(arrays, needed)
        run.structure = found.structure
        run.outputs = tuple([
            torch.from_numpy(each) if each.ndim else torch.tensor(each[()]) for each in found.arrays()
        ])  # fmt: skip
        return run.outputs

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        operation, run, *tensors = inputs
        ctx.operation, ctx.count = operation, len(tensors)
        # Transforms call this once for each level, with tensors other than those of the evaluation.
        ctx.evaluation = run.evaluation if output is run.outputs else None
        floats = [each for each in output if _is_inexact(each)]
        ctx.mark_non_differentiable(*[each for each in output if not _is_inexact(each)])
        ctx.are_floats = [_is_inexact(each) for each in output]
        kept = [*tensors, *_samples_of(floats)]
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)

    @staticmethod
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        kept = ctx.saved_tensors  # PyTorch checks here that no saved tensor was written to
        tensors, samples = kept[: ctx.count], kept[ctx.count :]
        if ctx.evaluation is not None and not torch.is_grad_enabled() and all(map(_is_plain, grads)):
            found = ctx.evaluation.gradients([_array_of(each) for each in grads])
            return None, None, *[None if each is None else torch.from_numpy(np.asarray(each)) for each in found]
        cotangents = [g for g, is_float in zip(grads, ctx.are_floats) if is_float]
        wanted = [need and _is_inexact(x) for need, x in zip(ctx.needs_input_grad[2:], tensors)]
        pulled = iter(_applied(ctx.operation.pullback(wanted), [*tensors, *cotangents, *samples]))
        return None, None, *[next(pulled) if each else None for each in wanted]

    @staticmethod
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def jvp(ctx: Any, *given: Any) -> Any:
        kept = ctx.saved_tensors
        tensors, samples = kept[: ctx.count], kept[ctx.count :]
        wanted = [tangent is not None and _is_inexact(x) for tangent, x in zip(given[2:], tensors)]
        tangents = [tangent for tangent, each in zip(given[2:], wanted) if each]
        pushed = iter(_applied(ctx.operation.pushforward(wanted), [*tensors, *tangents, *samples]))
        return tuple([next(pushed) if is_float else None for is_float in ctx.are_floats])

    @staticmethod
    def vmap(info: Any, in_dims: Any, operation: Operation, run: _Run, *tensors: torch.Tensor) -> Any:
        mapped = _Run(run.is_recorded)
        outputs = _Operation.apply(operation.mapped(in_dims[2:]), mapped, *tensors)
        run.structure = mapped.structure
        return outputs, (0,) * len(outputs)


def _applied(operation: Operation, tensors: Sequence[torch.Tensor]) -> Any:
    return _Operation.apply(operation, _Run(torch.is_grad_enabled()), *tensors)


def _samples_of(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return samples as `samples_of` does, but with PyTorch operations, so that `vmap` maps them."""
    return [out.detach().reshape(-1)[:: max(1, out.numel() // 64)][:64].clone() for out in outputs]


def _refuse_tracing(name: str) -> None:
    """Refuse a call whose result would become a constant of a program that PyTorch records."""
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")  # imported if a program is recorded with it
    if torch.jit.is_tracing() or (proxies is not None and proxies.get_proxy_mode() is not None):
        raise InteropError(
            f"{name} was called while PyTorch records a program (torch.jit.trace, make_fx, torch.func.linearize), "
            "which would keep its result as a constant; use torch.func.jvp instead of linearize, or torch.compile"
        )


def _without_autocast(leaf: Any) -> Any:
    """Return a tensor in single precision if autocasting reduced its precision."""
    if torch.is_autocast_enabled("cpu") and leaf.dtype in (torch.bfloat16, torch.float16):
        return leaf.to(torch.float32)
    return leaf


def _is_inexact(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has memory, unlike tensors that represent a batch under `vmap`."""
    try:
        tensor.data_ptr()
    except RuntimeError:
        return False
    return True


def _array_of(tensor: torch.Tensor) -> Any:
    """Return the memory of a tensor as an array."""
    if tensor.device.type != "cpu":
        raise InteropError(f"viewgrad computes on the CPU, and got a tensor on {tensor.device}; call cpu() on it first")
    if tensor.layout != torch.strided:
        raise InteropError(f"viewgrad supports strided tensors only, not {tensor.layout}; call to_dense() on it first")
    try:
        return tensor.detach().resolve_conj().resolve_neg().numpy()
    except TypeError as error:
        raise InteropError(f"NumPy has no dtype like {tensor.dtype}; convert the tensor to float32 first") from error
    except RuntimeError as error:
        raise InteropError(
            "the tensor has no values that NumPy can read; under is_grads_batched=True or vectorize=True, use "
            "torch.func.vmap, jacrev or jacfwd instead"
        ) from error


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
        outputs = _Operator.apply(OnLeaves(f, structure), rebuilt, True, *tensors)
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
                "the PyTorch function computed different values when it ran again for higher derivatives, or for "
                "forward mode: it reads state that has changed; pass such values as arguments"
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
