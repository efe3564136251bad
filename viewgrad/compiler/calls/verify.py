"""Verification of the first run of a program against a run of the function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ...autograd.api import grad as eager_grad
from ...errors import CompiledMismatchError
from ...func.tree import flatten
from ...tensor.masked_backward import holds_nan
from ...tensor.tensor import Tensor
from ...trace.graph import Graph
from ...trace.signature import ResultSpec
from ...type_aliases import Array
from ..comparison import closeness, comparable, scale_of, seed_of
from ..runtime import CompiledProgram, Run
from .guarded_trace import GuardedTrace


@attrs.frozen(eq=False)
class Verdict:
    """The outcome of a comparison.

    Arguments:
        result: the function's result.
        fallback_reason: why the program is not used, or None if it agrees.
        error: the error to raise, if any.
    """

    result: Any
    fallback_reason: str | None = None
    error: CompiledMismatchError | None = None


def verify(
    function: Callable[..., Any], trace: GuardedTrace, program: CompiledProgram, tensors: list[Tensor],
    outputs: list[Array], run: Run, args: Any, keywords: Any,
) -> Verdict:
    """Run a function and compare its results and gradients with those of its program.

    Arguments:
        function: the function.
        trace, program: the trace and the program of the function.
        tensors: the inputs of the program.
        outputs, run: its outputs, and the saved values of its gradient.
        args, keywords: the arguments.
    """
    signature = trace.signature
    result = function(*args, **keywords)
    found, _ = flatten(result)
    pairs = [
        (spec.output, leaf) for spec, leaf in zip(signature.results, found)
        if isinstance(leaf, Tensor) and type(spec) is ResultSpec
    ]
    arrays = [tensor._array for tensor in tensors]
    size_in, size_out = scale_of(arrays), scale_of([leaf._array for _, leaf in pairs])
    scale = max(size_in, size_out)
    if not signature.mutations and not all(
        np.all(closeness(leaf._array, outputs[number], scale)) for number, leaf in pairs
    ):
        if _varies(result, function(*args, **keywords)):
            return Verdict(
                result, "it returns different results for the same arguments, perhaps because it draws random numbers"
            )
    compare = functools.partial(_compared, result, trace.graph, getattr(function, "__name__", repr(function)))
    for number, leaf in pairs:
        verdict = compare(leaf._array, outputs[number], scale, "the result")
        if verdict is not None:
            return verdict
    differentiable = {number: leaf for number, leaf in pairs if leaf.requires_grad}
    leaves = [tensors[base.initial] for base in program.wanted]
    compared = comparable(leaves)
    if compared and differentiable and not signature.mutations:
        seeds: list[Any] = [None] * len(outputs)
        for number, leaf in differentiable.items():
            seeds[number] = seed_of(leaf)
        expected = _gradients(list(differentiable.values()), [leaves[number] for number in compared])
        scale = max(1.0, size_out / size_in)
        ours = program.gradients(run, seeds, arrays)
        for number, gradient in zip(compared, expected):
            wanted, given = _gradient_pair(leaves[number], gradient, ours[number])
            verdict = compare(wanted, given, scale, "the gradient")
            if verdict is not None:
                return verdict
    return Verdict(result)


def _gradient_pair(tensor: Tensor, gradient: Tensor | None, mine: Array | None) -> tuple[Array, Array]:
    """Return the gradient of the function and that of the program as arrays; None means zero."""
    wanted = np.zeros(tensor.shape, tensor.dtype) if gradient is None else gradient._array
    given = np.zeros(tensor.shape) if mine is None else mine.reshape(tensor.shape)
    if holds_nan([given]):  # in this case calls are differentiated by the library's operators
        given = np.where(np.isnan(given), wanted, given)
    return wanted, given


def _gradients(outputs: list[Tensor], leaves: list[Tensor]) -> list[Any]:
    seeds = [Tensor(seed_of(leaf)) for leaf in outputs]
    return list(eager_grad(outputs, leaves, seeds, retain_graph=True, allow_unused=True))


def _compared(
    result: Any, graph: Graph, name: str, expected: Any, found: Any, scale: float, what: str
) -> Verdict | None:
    """Return the verdict if arrays differ: an error in double precision; in single precision it may be rounding."""
    close = closeness(expected, found, scale)
    if np.all(close):
        return None
    is_single = _rounds_to_single(graph)
    if is_single and np.all(closeness(expected, found, scale, is_single)):
        return None
    reason = f"{what} of the compiled program differed from that of the function"
    if is_single:
        return Verdict(result, reason)
    error = CompiledMismatchError(
        f"{what} of the compiled {name} differs from the function's own: at "
        f"{np.argwhere(~np.atleast_1d(close))[0].tolist()} of shape {np.shape(expected)} it is "
        f"{np.ravel(found)[np.argmin(close)]!r}, not {np.ravel(expected)[np.argmin(close)]!r}. This is a bug in "
        "viewgrad; please report it with the function and its arguments. compile(..., check=False) skips the "
        "comparison; further calls run the function itself"
    )
    return Verdict(result, reason, error)


def _rounds_to_single(graph: Graph) -> bool:
    """Return whether a graph computes anything in single precision."""
    values = [*graph.inputs, *(value for node in graph.block for value in node.outputs)]
    return any(getattr(value.type, "dtype", None) == np.float32 for value in values)


def _varies(first: Any, second: Any) -> bool:
    """Return whether two results of the same call differ."""
    return any(
        isinstance(one, Tensor) and isinstance(other, Tensor) and not np.all(closeness(one._array, other._array))
        for one, other in zip(flatten(first)[0], flatten(second)[0])
    )


def agree(found: Any, expected: Any) -> bool:
    """Return whether a result that was computed with tensors in place of floats is that of the floats themselves.

    What is computed from floats alone may be a tensor. Results of NaN alone say nothing.
    """
    (ours, structure), (theirs, wanted) = flatten(found), flatten(expected)
    return structure == wanted and all(map(_agree, ours, theirs))


def _agree(found: Any, expected: Any) -> bool:
    one, other = [leaf._array if isinstance(leaf, Tensor) else np.asarray(leaf) for leaf in (found, expected)]
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    says_nothing = other.size and other.dtype.kind in "fc" and np.isnan(other).all()
    return not says_nothing and bool(np.all(closeness(other, one)))
