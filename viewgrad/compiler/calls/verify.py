"""The first run of a compiled program, compared with a run of the function itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...autograd.api import grad as eager_grad
from ...errors import CompiledMismatchError
from ...func.tree import flatten
from ...tensor.tensor import Tensor
from ...trace.graph import Graph
from ...trace.signature import ResultSpec, Signature
from ..compiled import CompiledProgram, Run

if TYPE_CHECKING:
    from ..api import Compiled, Specialization

__all__ = ["checked"]

Array = np.ndarray[Any, Any]
ROUNDING: Final = 1e-13  # of the numbers that are added up, of which a sum that cancels may be left
SINGLE_NOISE: Final = 1e8  # times as much of it is left in single precision


def checked(
    compiled: Compiled, entry: Specialization, graph: Graph, program: CompiledProgram, tensors: list[Tensor],
    outputs: list[Array], run: Run, args: Any, keywords: Any,
) -> Any:
    """Return what the function returns, after comparing it with the results of the program.

    If the function returns different results for the same arguments, it stays eager.

    Arguments:
        compiled, entry: the function, and what is known of it.
        graph, program: its graph and its program, whatever other threads do meanwhile.
        tensors: the inputs of the program.
        outputs, run: what it has given for them, and what its gradient needs.
        args, keywords: the arguments.

    Raises:
        CompiledMismatchError: where they differ.
    """
    signature: Signature = graph.signature  # type: ignore[assignment]
    result = compiled.function(*args, **keywords)
    entry.checked = True
    found, _ = flatten(result)
    pairs = []
    for spec, leaf in zip(signature.results, found):
        if isinstance(leaf, Tensor) and type(spec) is ResultSpec:
            pairs.append((spec.output, leaf))
    arrays = [tensor._array for tensor in tensors]
    size_in, size_out = _size(arrays), _size([leaf._array for _, leaf in pairs])
    noise = ROUNDING * max(size_in, size_out)
    if not signature.mutations and not all(
        np.all(_is_close(leaf._array, outputs[number], noise)) for number, leaf in pairs
    ):
        if _varies(result, compiled.function(*args, **keywords)):
            entry.refusal = "it gives other results each time it is called, as where it draws random numbers"
            entry.graph = entry.program = None
            return result
    for number, leaf in pairs:
        if not _agrees(leaf._array, outputs[number], noise, "the result", compiled, entry):
            return result
    if program.wanted and not signature.mutations:
        chosen = list({n: (n, leaf) for n, leaf in pairs if leaf.requires_grad}.values())
        leaves = [tensors[base.initial] for base in program.wanted]
        if chosen and all(_has_no_hooks(tensor) for tensor in leaves):
            seeds: list[Any] = [None] * len(outputs)
            for number, leaf in chosen:
                seeds[number] = _seed(leaf)
            wanted_of = [leaf for _, leaf in chosen]
            expected = _gradients(wanted_of, leaves)
            noise = ROUNDING * max(1.0, size_out / size_in if size_in else 0.0)
            for tensor, gradient, mine in zip(leaves, expected, program.gradients(run, seeds, arrays)):
                if gradient is not None or mine is not None:
                    wanted = np.zeros(tensor.shape, tensor.dtype) if gradient is None else gradient._array
                    given = np.zeros(tensor.shape) if mine is None else mine.reshape(tensor.shape)
                    if not _agrees(wanted, given, noise, "the gradient", compiled, entry):
                        return result
    return result


def _gradients(outputs: list[Tensor], leaves: list[Tensor]) -> list[Any]:
    seeds = [Tensor(_seed(leaf)) for leaf in outputs]
    return list(eager_grad(outputs, leaves, seeds, retain_graph=True, allow_unused=True))


def _seed(output: Tensor) -> Array:
    """What comes in for an output: not all alike, since a sum may cancel where its terms do not, as of softmax."""
    seed: Array = np.asarray(1.0 + 0.5 * np.sin(np.arange(output.size)), output.dtype).reshape(output.shape)
    return seed


def _size(arrays: Sequence[Array]) -> float:
    """The size of the greatest finite number."""
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in map(np.asarray, arrays)), default=0.0)


def _agrees(expected: Any, found: Any, noise: float, what: str, compiled: Compiled, entry: Specialization) -> bool:
    """Whether results agree; where they do not, the function runs eagerly, and in double precision that is an error."""
    close = _is_close(expected, found, noise)
    if not np.all(close):
        is_single = entry.graph is not None and _rounds_to_single(entry.graph)
        if is_single and np.all(_is_close(expected, found, noise, is_single)):
            return True
        entry.refusal = f"{what} of the compiled program differed from that of the function"
        entry.graph = entry.program = None
        if is_single:  # rounding may be all that differs
            return False
        raise CompiledMismatchError(
            f"{what} of the compiled {compiled.__name__} differs from the function's own: at "  # type: ignore[attr-defined]
            f"{np.argwhere(~np.atleast_1d(close))[0].tolist()} of shape {np.shape(expected)} it is "
            f"{np.ravel(found)[np.argmin(close)]!r}, not {np.ravel(expected)[np.argmin(close)]!r}. This is a defect of "
            "the library; please report it with the function and its arguments. compile(..., check=False) leaves the "
            "comparison out, and a further call runs the function itself"
        )
    return True


def _is_close(expected: Any, found: Any, noise: float = 0.0, is_single: bool = False) -> Any:
    """Whether numbers are close, apart from the noise of rounding, which is all that is left of sums that cancel.

    Integers and bools must be equal.
    """
    if expected.dtype.kind in "biu":
        return found == expected
    scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0) if expected.size else 0.0
    if is_single or expected.dtype == np.float32:
        return np.isclose(found, expected, rtol=1e-3, atol=1e-5 * scale + noise * SINGLE_NOISE, equal_nan=True)
    return np.isclose(found, expected, rtol=1e-6, atol=1e-8 * scale + noise + 1e-300, equal_nan=True)


def _rounds_to_single(graph: Graph) -> bool:
    """Whether a program computes in single precision somewhere."""
    values = [*graph.inputs, *(value for node in graph.block for value in node.outputs)]
    return any(getattr(value.type, "dtype", None) == np.float32 for value in values)


def _varies(first: Any, second: Any) -> bool:
    """Whether two results of the same call differ."""
    return any(
        isinstance(one, Tensor) and isinstance(other, Tensor) and not np.all(_is_close(one._array, other._array))
        for one, other in zip(flatten(first)[0], flatten(second)[0])
    )


def _has_no_hooks(tensor: Tensor) -> bool:
    edge = tensor._edge
    return getattr(edge, "hooks", None) is None
