"""Verification of a program: its results and gradients are compared with those of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.api import grad as eager_grad
from ...tensor.tensor import Tensor
from ..comparison import comparable, is_close, scale_of, seed_of
from .build import Program
from .ir import Var
from .values import leaves_of


def difference(
    program: Program, leaves: Sequence[Any] | None, outputs: Sequence[Any], pullback: Callable[..., Any] | None,
    values: Sequence[Any], arrays: Sequence[Any],
) -> str:
    """Return how a run of a program differs from a run of the function, or "" if they agree.

    Arguments:
        program: the program.
        leaves: the leaves of the function's result, or None if it has a different structure.
        outputs: the results of the program, followed by the arguments that it has written to.
        pullback: the function that computes its gradients, or None.
        values: the inputs, after the run of the function.
        arrays: the inputs that the program ran with.
    """
    trees = leaves_of(program.source.result)
    if leaves is None or len(leaves) != len(trees):
        return "the result of the program has a different structure"
    by_name = dict(zip(program.results, outputs))
    named = [(tree.name, leaf) for leaf, tree in zip(leaves, trees) if isinstance(tree, Var)]
    scale = scale_of(arrays)
    is_single = computes_in_single(program)
    for name, leaf in named:
        if not is_close(_array_of(leaf), by_name[name], scale, is_single):
            return "the program returned a different value from the function"
    for number, written in zip(program.mutated, outputs[len(program.results) :]):
        if not is_close(_array_of(values[number]), written, scale, is_single):
            return "the program wrote different values to an argument"
    if pullback is None or not program.wanted or program.mutated:
        return ""
    return _gradient_difference(program, named, values, outputs, pullback, scale)


def _gradient_difference(
    program: Program, leaves: Sequence[tuple[str, Any]], values: Sequence[Any], outputs: Sequence[Any],
    pullback: Callable[..., Any], scale: float,
) -> str:
    differentiable = {name: leaf for name, leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad}
    seeds = {name: seed_of(leaf) for name, leaf in differentiable.items()}
    with np.errstate(all="ignore"):
        gradients = pullback(*[seeds.get(name) for name in program.results], *[None] * len(program.mutated))
    if not differentiable:
        if any(np.any(np.nan_to_num(np.asarray(each))) for each in gradients):
            return "the program returned a gradient, but the function has none"
        return ""
    compared = comparable([values[n] for n in program.wanted])
    if not compared:
        return ""
    expected = eager_grad(
        list(differentiable.values()), [values[program.wanted[n]] for n in compared],
        [Tensor(seeds[name]) for name in differentiable], retain_graph=True, allow_unused=True,
    )
    is_single = computes_in_single(program)
    noise = max(1.0, scale_of(outputs) / max(scale, 1e-300))
    for one, other in zip(expected, [gradients[n] for n in compared]):
        if not is_close(np.zeros(np.shape(other)) if one is None else one._array, other, noise, is_single):
            return "the program returned a different gradient from the function"
    return ""


def computes_in_single(program: Program) -> bool:
    """Return whether some variables of a program have single precision, so that both results are rounded to it."""
    return any(getattr(kind, "dtype", "") in ("f", "F") for kind in program.source.kinds.values())


def _array_of(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else np.asarray(value)
