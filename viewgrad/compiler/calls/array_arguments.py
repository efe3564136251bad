"""Calls of compiled functions with arrays, for which the function receives tensors over the same memory, as when
traced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import DetachedConversionError
from ...func.containers import Containers
from ...func.tree import flatten, once_each
from ...tensor.creation import over_memory
from ...tensor.escapes import is_within_transform
from ...tensor.tensor import Tensor, current_edge, is_numeric_array


def require_no_history(tensor: Tensor) -> None:
    """Check that a tensor over the memory of an array argument has no history, which an array cannot have.

    Transforms call functions with copies of arrays, which are not read afterwards.

    Raises:
        DetachedConversionError: if it has one, outside of transforms.
    """
    if not is_within_transform() and current_edge(tensor) is not None:
        raise DetachedConversionError(
            f"a compiled function wrote a tensor that requires grad into an argument that is a plain array of shape "
            f"{tensor.shape}, where its history would be lost: pass a tensor instead of the array, or write to a "
            "copy() of it and return that"
        )


def require_no_histories(leaves: Sequence[Any], given: Sequence[Any]) -> None:
    """Check the tensors that replaced arrays among leaves; see `require_no_history`."""
    for leaf, tensor in zip(leaves, given, strict=True):
        if tensor is not leaf:
            require_no_history(tensor)


class WithTensorArguments:
    """A function that receives tensors in place of arrays.

    Arguments:
        function: the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves, structure = flatten((args, keywords))
        if not any(map(is_numeric_array, leaves)):
            return self.function(*args, **keywords)
        given = list(map(once_each(lambda leaf: over_memory(leaf) if is_numeric_array(leaf) else leaf), leaves))
        containers = Containers((args, keywords), structure, given)
        result = self.function(*containers.given[0], **containers.given[1])
        containers.give_back()
        require_no_histories(leaves, given)
        return result

    def __getattr__(self, name: str) -> Any:
        if name in ("function", "__wrapped__"):
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        return over_arrays, (self.function,)


def over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to receive tensors over the memory of arrays; compiled functions do so themselves.

    Arguments:
        function: a function of tensors.
    """
    return WithTensorArguments(function)
