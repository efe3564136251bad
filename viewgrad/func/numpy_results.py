"""Conversion of the arguments of transforms from arrays and numbers to tensors, and of the results back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from ..tensor.creation import over_memory
from ..tensor.escapes import has_tangent
from ..tensor.modes import TRACE, current_mode
from ..tensor.tensor import Tensor, as_scalar, current_edge, from_new_array, is_numeric_array
from .tree import children_of, map_leaves, once_each

NUMBERS: Final = (float, complex, np.inexact)
PLAIN: Final = frozenset({np.ndarray, np.float64, float, int, bool, type(None)})  # arguments that are not trees
AS_PYTHON: Final = frozenset(map(np.dtype, (float, complex, int, bool)))  # dtypes that correspond to a Python class


def holds_tensors(tree: Any) -> bool:
    """Return whether any leaf of a tree is a tensor."""
    if isinstance(tree, Tensor):
        return True
    if type(tree) in (tuple, list):
        return any(map(holds_tensors, tree))
    if isinstance(tree, (np.ndarray, np.generic, float, complex, int, str)):
        return False
    found = children_of(tree)
    return found is not None and any(map(holds_tensors, found[1]))


def as_inputs(tree: Any) -> Any:
    """Return the arguments with arrays of numbers as tensors and floating-point numbers as scalars.

    Numbers must become scalars, so that `x += 1` binds a new scalar and other names keep the old one.
    """
    return map_leaves(_as_input, tree)


def partial_inputs(
    args: tuple[Any, ...], keywords: dict[str, Any], numbers: Collection[int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments and keyword arguments of a function that is differentiated with respect to some of them.

    Numbers among the other arguments are unchanged, so that they do not determine dtypes: `0.5 * x` for a float32 `x`
    is float32.

    Arguments:
        args, keywords: the arguments.
        numbers: the positions of those that are differentiated.
    """
    count = len(args)
    wanted = {number + count if number < 0 else number for number in numbers}
    convert = once_each(_as_tensor)
    given = [map_leaves(_as_input if number in wanted else convert, arg) for number, arg in enumerate(args)]
    return tuple(given), {key: map_leaves(convert, value) for key, value in keywords.items()}


def arrays_as_tensors(tree: Any) -> Any:
    """Return the arguments of a function with each array of numbers converted to one tensor."""
    return map_leaves(once_each(_as_tensor), tree)


def _as_tensor(leaf: Any) -> Any:
    return _as_input(leaf) if isinstance(leaf, np.ndarray) else leaf


def _as_input(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):  # a 0-d array also counts as a number
        return leaf
    if isinstance(leaf, NUMBERS):
        return as_scalar(from_new_array(np.array(leaf)))
    if is_numeric_array(leaf):
        return over_memory(leaf)
    return leaf


def as_given(results: Any, given: Any) -> Any:
    """Return the results in the types of the caller's arguments.

    Arguments:
        results: a tree of tensors.
        given: the caller's arguments; if they contain a tensor, the results remain tensors.
    """
    return results if holds_tensors(given) else map_leaves(to_numpy, results)


def to_numpy(leaf: Any) -> Any:
    """Return the array or number stored in a tensor, or the tensor itself if a gradient could flow through it."""
    if type(leaf) is not Tensor or current_edge(leaf) is not None or has_tangent(leaf) or current_mode() & TRACE:
        return leaf
    return array_or_number(leaf._array)


def array_or_number(array: np.ndarray[Any, Any]) -> Any:
    """Return an array that the caller may own, or a number if it is 0-d."""
    if not array.ndim:
        return array.item() if array.dtype in AS_PYTHON else array[()]
    flags = array.flags
    return array if flags.owndata and flags.writeable else array.copy(order="K")
