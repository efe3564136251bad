"""The first run of a compiled program, beside the function itself: what they give is compared, and their time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..autograd.api import grad as eager_grad
from ..errors import CompiledDifferenceError
from ..func.tree import flatten
from ..symbolic.signature import ResultSpec, Signature
from ..tensor.tensor import Tensor
from .compiled import CompiledProgram, Run

if TYPE_CHECKING:
    from .api import Compiled, Entry

__all__ = ["checked"]

Array = np.ndarray[Any, Any]
ROUNDS: Final = 3  # how often a program is run to find out how long it takes
LITTLE: Final = 1e-4  # seconds that do not matter
SLOWER: Final = 1.1  # nor does a tenth


def checked(
    compiled: Compiled, entry: Entry, tensors: list[Tensor], outputs: list[Array], run: Run, args: Any, keywords: Any
) -> Any:
    """What the function gives, after it was compared with what the program has given.

    Where the program takes longer, the function runs eagerly from then on. So it does where it gives other results each
    time.

    Arguments:
        compiled, entry: the function, and what is known of it, with a graph and a program.
        tensors: the inputs of the program.
        outputs, run: what it has given for them, and what its gradient needs.
        args, keywords: the arguments.

    Raises:
        CompiledDifferenceError: where they differ.
    """
    program = entry.program
    assert entry.graph is not None and program is not None
    signature: Signature = entry.graph.signature  # type: ignore[assignment]
    start = time.perf_counter()
    result = compiled.function(*args, **keywords)
    eager = time.perf_counter() - start
    entry.checked = True
    found, _ = flatten(result)
    pairs = []
    for spec, leaf in zip(signature.results, found):
        if isinstance(leaf, Tensor) and type(spec) is ResultSpec:
            pairs.append((spec.output, leaf))
    if not signature.mutations and not all(np.all(_is_close(leaf._array, outputs[number])) for number, leaf in pairs):
        if _varies(result, compiled.function(*args, **keywords)):
            entry.refusal = "it gives other results each time it is called, as where it draws random numbers"
            entry.graph = entry.program = None
            return result
    for number, leaf in pairs:
        _compare(leaf._array, outputs[number], "the result", compiled, entry)
    arrays = [tensor._array for tensor in tensors]
    seeds: list[Any] | None = None
    if program.wanted and not signature.mutations:
        chosen = list({n: (n, leaf) for n, leaf in pairs if leaf.requires_grad}.values())
        leaves = [tensors[base.initial] for base in program.wanted]
        if chosen and all(_has_no_hooks(tensor) for tensor in leaves):
            seeds = [None] * len(outputs)
            for number, leaf in chosen:
                seeds[number] = np.ones(leaf.shape)
            took = []
            for _ in range(2):  # the first may have code of operators generated
                start = time.perf_counter()
                expected = eager_grad(
                    [leaf for _, leaf in chosen], leaves, [Tensor(np.ones(leaf.shape)) for _, leaf in chosen],
                    retain_graph=True, allow_unused=True,
                )
                took.append(time.perf_counter() - start)
            eager += min(took)
            for tensor, gradient, mine in zip(leaves, expected, program.gradients(run, seeds, arrays)):
                if gradient is not None or mine is not None:
                    wanted = np.zeros(tensor.shape) if gradient is None else gradient._array
                    given = np.zeros(tensor.shape) if mine is None else mine.reshape(tensor.shape)
                    _compare(wanted, given, "the gradient", compiled, entry)
    if not signature.mutations and _time_of(program, arrays, seeds) > max(SLOWER * eager, eager + LITTLE):
        entry.refusal = f"the program takes longer than the function itself, by the {program.executor.name} executor"
        entry.graph = entry.program = None
    return result


def _time_of(program: CompiledProgram, arrays: Sequence[Array], seeds: list[Any] | None) -> float:
    """How long a program takes, in seconds, with its gradient where there are `seeds`."""
    best = np.inf
    for _ in range(ROUNDS):
        start = time.perf_counter()
        _, _, run = program.run(arrays)
        if seeds is not None:
            program.gradients(run, seeds, arrays)
        best = min(best, time.perf_counter() - start)
    return best


def _compare(expected: Any, found: Any, what: str, compiled: Compiled, entry: Entry) -> None:
    close = _is_close(expected, found)
    if not np.all(close):
        entry.refusal = f"{what} of the compiled program differed from that of the function"
        entry.graph = entry.program = None
        raise CompiledDifferenceError(
            f"{what} of the compiled {compiled.__name__} differs from the function's own: at "  # type: ignore[attr-defined]
            f"{np.argwhere(~np.atleast_1d(close))[0].tolist()} of shape {np.shape(expected)} it is "
            f"{np.ravel(found)[np.argmin(close)]!r}, not {np.ravel(expected)[np.argmin(close)]!r}. This is a defect of "
            "the library; please report it with the function and its arguments. compile(..., check=False) leaves the "
            "comparison out, and a further call runs the function itself"
        )


def _is_close(expected: Any, found: Any) -> Any:
    scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0) if expected.size else 0.0
    return np.isclose(found, expected, rtol=1e-6, atol=1e-8 * scale + 1e-300, equal_nan=True)


def _varies(first: Any, second: Any) -> bool:
    """Whether two results of the same call differ."""
    return any(
        isinstance(one, Tensor) and isinstance(other, Tensor) and not np.all(_is_close(one._array, other._array))
        for one, other in zip(flatten(first)[0], flatten(second)[0])
    )


def _has_no_hooks(tensor: Tensor) -> bool:
    edge = tensor._edge
    return getattr(edge, "hooks", None) is None
