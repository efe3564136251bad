"""Comparison of the results of programs with those of functions, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..tensor.node import node_of
from ..tensor.tensor import Tensor, current_edge

ROUNDING: Final = 1e-13  # relative to the terms of a sum, which may cancel
SINGLE_ROUNDING: Final = 1e-5  # the same in single precision


def closeness(expected: Any, found: Any, scale: float = 0.0, is_single: bool = False) -> Any:
    """Return the mask of numbers that agree up to rounding; integers and bools must be equal.

    Arguments:
        expected, found: arrays of the same shape.
        scale: the size of numbers whose rounding errors are expected, such as the terms of a sum that cancel.
        is_single: whether they were computed in single precision.
    """
    if expected.dtype.kind in "biu":
        return found == expected
    size = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
    if is_single or expected.dtype in (np.float32, np.complex64):
        return np.isclose(found, expected, rtol=1e-3, atol=1e-4 * size + SINGLE_ROUNDING * scale, equal_nan=True)
    return np.isclose(found, expected, rtol=1e-6, atol=1e-8 * size + ROUNDING * scale + 1e-300, equal_nan=True)


def is_close(expected: Any, found: Any, scale: float, is_single: bool = False) -> bool:
    """Return whether arrays or numbers have the same shape and agree up to rounding; see `closeness`."""
    expected, found = np.asarray(expected), np.asarray(found)
    return expected.shape == found.shape and bool(np.all(closeness(expected, found, scale, is_single)))


def scale_of(arrays: Sequence[Any]) -> float:
    """Return the largest finite magnitude in some arrays of floats, or 1 if there is none."""
    found = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in map(np.asarray, arrays) if a.dtype.kind in "fc"]
    return float(max(found, default=1.0)) or 1.0


def seed_of(output: Any) -> np.ndarray[Any, Any]:
    """Return an output gradient for a comparison, with distinct elements, since equal ones may cancel in a sum."""
    numbers = np.arange(output.size)
    imaginary = 0.3j * np.cos(numbers) if output.dtype.kind == "c" else 0.0
    return np.asarray(1.0 + 0.5 * np.sin(numbers) + imaginary, output.dtype).reshape(output.shape)


def comparable(tensors: Sequence[Tensor]) -> list[int]:
    """Return the numbers of the inputs for which `grad` computes the partial derivative and calls no hooks.

    Others have hooks, which must not be called twice, or others were computed from them: then `grad` adds what flows
    through these.

    Arguments:
        tensors: the inputs of a function, each with a history.
    """
    nodes = [node_of(current_edge(tensor)) for tensor in tensors]
    reached = {node for node in nodes if node is None or node.hooks is not None or nodes.count(node) > 1}
    seen = {node for node in nodes if node is not None}
    inputs, stack = frozenset(seen), list(seen)
    while stack:
        found = {node for node in map(node_of, stack.pop().edges) if node is not None}
        reached |= found & inputs
        stack += found - seen
        seen |= found
    return [number for number, node in enumerate(nodes) if node not in reached]
