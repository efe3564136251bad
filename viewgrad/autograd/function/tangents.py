"""Custom functions in forward mode: the user's `jvp` computes the tangents of the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import FunctionError
from ...tensor.forward_levels import DualLevel, at_level, open_levels
from ...tensor.tangents import TangentRoot, make_dual_root, set_tangent, tangent_of
from ...tensor.tensor import Tensor, from_new_array
from ...views.meta import DualViewMeta
from .node import FunctionCtx, is_in


def tangents_of(args: tuple[Any, ...]) -> list[tuple[DualLevel, list[Tensor | None]]]:
    """Return the tangents of the arguments before forward may write to them, for each level that has any."""
    result = []
    for level in open_levels():
        tangents = [tangent_of(arg, level) if isinstance(arg, Tensor) else None for arg in args]
        if any(tangent is not None for tangent in tangents):
            with at_level(level.outer):
                result.append((level, [None if tangent is None else tangent.clone() for tangent in tangents]))
    return result


def push_forward(
    ctx: FunctionCtx, level: DualLevel, tangents: list[Tensor | None], args: tuple[Any, ...], outputs: list[Any]
) -> None:
    """Set the tangents of the outputs at one level to the results of `jvp`."""
    name = ctx._function.__name__
    if ctx._materialize:
        tangents = [
            from_new_array(np.zeros_like(arg._array)) if tangent is None and isinstance(arg, Tensor) else tangent
            for arg, tangent in zip(args, tangents, strict=True)
        ]
    with at_level(level.outer):
        returned = ctx._function.jvp(ctx, *tangents)
    results = returned if isinstance(returned, tuple) else (returned,)
    if len(results) != len(outputs):
        raise FunctionError(f"{name}: jvp returned {len(results)} tangents, but forward had {len(outputs)} outputs")
    for i, (output, tangent) in enumerate(zip(outputs, results, strict=True)):
        if not isinstance(output, Tensor):
            if tangent is not None:
                raise FunctionError(f"{name}: jvp returned a tangent for output {i}, which is not a tensor")
            continue
        if tangent is not None and not isinstance(tangent, Tensor):
            raise FunctionError(
                f"{name}: jvp returned {type(tangent).__name__} for output {i}, instead of a Tensor or None"
            )
        if tangent is not None and tangent.shape != output.shape:
            raise FunctionError(
                f"{name}: jvp returned a tangent of shape {tangent.shape} for output {i}, whose shape is {output.shape}"
            )
        if output.dtype.kind not in "fc" or is_in(output, ctx._non_differentiable):
            tangent = None
        if output._view is not None and not is_in(output, ctx._dirty):
            _separate_tangent(output)  # the tangent from `jvp` is that of the output, not of the base
            make_dual_root(output, output, tangent, level)
        else:
            set_tangent(output, tangent, level)


def _separate_tangent(output: Tensor) -> None:
    """Set a separate tangent for a view."""
    plain = output._view
    assert plain is not None
    if type(plain) is not DualViewMeta or not plain.is_root:
        output._view = DualViewMeta.of_root(TangentRoot(output._array, plain, whole=False), plain)
