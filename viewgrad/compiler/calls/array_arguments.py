"""Calls of compiled functions with arrays: the function receives tensors over the same memory, as in a traced run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...func.containers import Containers
from ...func.tree import flatten
from ...tensor.creation import from_numpy


class WithTensorArguments:
    """A function that gets tensors in place of arrays.

    Arguments:
        function: the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves, structure = flatten((args, keywords))
        if not any(map(_is_of_numbers, leaves)):
            return self.function(*args, **keywords)
        given = [from_numpy(leaf) if _is_of_numbers(leaf) else leaf for leaf in leaves]
        containers = Containers((args, keywords), structure, given)
        result = self.function(*containers.given[0], **containers.given[1])
        containers.give_back()
        return result

    def __getattr__(self, name: str) -> Any:
        if name in ("function", "__wrapped__"):
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        return over_arrays, (self.function,)


def _is_of_numbers(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and leaf.dtype.kind in "biufc" and leaf.dtype.isnative


def over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with arrays replaced by tensors over their memory; compiled functions do so themselves.

    Arguments:
        function: a function of tensors.
    """
    return WithTensorArguments(function)
