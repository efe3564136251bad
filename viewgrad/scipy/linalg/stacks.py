"""Stacks of matrices: functions of single matrices, called for each matrix of a stack."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ..wrap import numbers


def stacked(*cores: int | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that extends a function of single matrices to stacks, which broadcast as in SciPy.

    Arguments:
        cores: the number of core dimensions of each of the first arguments; None for one or two.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        names = list(signature.parameters)[: len(cores)]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            arrays = {name: numbers(value) for name in names if (value := bound.arguments.get(name)) is not None}
            inner = {
                name: (min(max(arrays[name].ndim, 1), 2) if core is None else core)
                for name, core in zip(names, cores)
                if name in arrays
            }
            leading = [array.shape[: max(array.ndim - inner[name], 0)] for name, array in arrays.items()]
            if not any(leading):
                return function(*args, **kwargs)
            shape = np.broadcast_shapes(*leading)
            if 0 in shape:
                raise ValueError(f"`{function.__name__}` does not support zero-size batches.")
            wide = {
                name: array.broadcast_to(shape + array.shape[max(array.ndim - inner[name], 0) :])
                for name, array in arrays.items()
            }
            found = []
            for index in np.ndindex(shape):
                bound.arguments.update({name: array[index] for name, array in wide.items()})
                found.append(function(*bound.args, **bound.kwargs))
            if isinstance(found[0], tuple):
                return tuple(_joined(parts, shape) for parts in zip(*found))
            return _joined(found, shape)

        return call

    return decorate


def _joined(parts: Any, shape: tuple[int, ...]) -> Any:
    joined: Any = np.stack([as_operand(part) for part in parts])
    return joined.reshape(shape + joined.shape[1:])
