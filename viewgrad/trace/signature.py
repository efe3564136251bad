"""The signature of a graph: arguments, captured tensors and results, and how they alias."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from .types import Type


@attrs.frozen(eq=False)
class InputSpec:
    """The source of an input of a graph.

    Arguments:
        kind: "argument", or "closure" for a captured tensor.
        leaf: the number of the argument's leaf, in the order of `func.tree`; -1 for a closure.
        path: the path by which it is accessed, for messages.
        type: its type.
        tensor: the captured tensor; None for an argument.
        memory: arguments with the same number share memory.
        place: (first byte, strides in bytes) relative to the lowest byte of the arguments that share memory.
        history: arguments with the same number are views of one base, or the base itself.
        is_view: whether it is a view, so that writes to it are writes to its base.
    """

    kind: str
    leaf: int
    path: str
    type: Type
    tensor: Any = None
    memory: int = -1
    place: tuple[int, tuple[int, ...]] | None = None
    history: int = -1
    is_view: bool = False


@attrs.frozen(eq=False)
class MutationSpec:
    """A write to an input that callers can observe.

    Arguments:
        input: the number of the input.
        output: the number of the output that is its value afterwards.
        recorded: whether any of the writes is part of its history.
    """

    input: int
    output: int
    recorded: bool


@attrs.frozen(eq=False)
class ResultSpec:
    """The description of a tensor in the result.

    Arguments:
        output: the number of the output with its value.
        type: its type.
        input: the number of the input that it is, or is a view of; None if there is none.
        base: the number of the output with the value of its base, if other results share its memory; None otherwise.
        steps: the view functions from the input or base to it; empty if it is the same tensor.
        scalar: whether it is a scalar instead of an array.
    """

    output: int
    type: Type
    input: int | None = None
    base: int | None = None
    steps: tuple[Any, ...] = ()
    scalar: bool = False


@attrs.frozen(eq=False)
class Signature:
    """The inputs, results and mutations of a graph, for its caller.

    Arguments:
        arguments: the structure of the arguments `(args, kwargs)`, a tree of `func.tree`.
        inputs: the source of each input.
        result: the structure of the result.
        results: the description of each leaf of the result.
        mutations: the inputs that are written to.
        aliased: the source line where memory with a gradient was written to by a tensor with another history, which
            forward mode does not support; None if there is none.
        fixed: by number, the leaves of the arguments that are constants of the program and not read again.
        layouts: by number, the memory layout of outputs that are not in row-major order.
        ended: the numbers of the inputs whose history is ended in place.
    """

    arguments: Any
    inputs: tuple[InputSpec, ...]
    result: Any
    results: tuple[ResultSpec | Any, ...]
    mutations: tuple[MutationSpec, ...] = ()
    fixed: dict[int, Any] = attrs.field(factory=dict)
    aliased: str | None = None
    layouts: dict[int, tuple[int, ...]] = attrs.field(factory=dict)
    ended: tuple[int, ...] = ()


def layout_of(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """Return the memory layout of an array as strides in elements that reshape alike, with minimal gaps."""
    strides = [0] * array.ndim
    reach, before = 1, array.itemsize
    for dim in sorted(range(array.ndim), key=lambda dim: (abs(array.strides[dim]), -dim)):
        extent, step = array.shape[dim], array.strides[dim]
        if extent == 1:
            continue
        stride = reach if abs(step) == before else reach + 1
        strides[dim] = -stride if step < 0 else stride
        reach, before = stride * extent, abs(step) * extent
    return tuple(strides)


def laid_out(array: np.ndarray[Any, Any], layout: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array with the elements of another one in a given layout."""
    size = array.itemsize
    room = 1 + sum((extent - 1) * abs(stride) for extent, stride in zip(array.shape, layout, strict=True))
    start = sum((1 - extent) * stride for extent, stride in zip(array.shape, layout, strict=True) if stride < 0)
    buffer = np.zeros(room, array.dtype)
    found = np.ndarray(array.shape, array.dtype, buffer, start * size, tuple([stride * size for stride in layout]))
    found[...] = array
    return found
