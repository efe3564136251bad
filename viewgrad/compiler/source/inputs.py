"""The inputs of a program from source: their values in a call, and checks that the program accepts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...tensor.equality import is_same_array
from ...tensor.node import AccumulateGrad
from ...tensor.tensor import Tensor, current_edge, root_of
from ...type_aliases import Array
from ...views.detached_views import has_ended
from ...views.geometry import overlaps_itself
from ...views.meta import CreationMeta
from ..guards.call_signature import share_memory
from .objects import Input
from .read import Source
from .value_types import Arr
from .values import Path

DTYPE_OF: Final = {char: np.dtype(char) for char in np.typecodes["All"]}
WEAK: Final = {"?": bool, "l": int, "d": float}  # the classes of Python's numbers


def input_value(each: Input, given: Sequence[Any]) -> Any:
    """Return the value of an input.

    Arguments:
        each: the input.
        given: the arguments of the call.
    """
    path = each.path
    return given[path.root] if path.is_argument and not path.steps else path.now(given)


def is_same_value(value: Any, before: Any) -> bool:
    """Return whether an input, a tensor, an array or a number, has the elements that it had before."""
    now = np.asarray(value._array if isinstance(value, Tensor) else value)
    return is_same_array(now, np.asarray(before, now.dtype))


def preserved(values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Return the arrays for a program, with copies of those that may be written to before a gradient reads them.

    Arguments:
        values: the inputs; tensors are saved.
        arrays: the inputs as arrays and numbers.
    """
    return [
        array.copy() if isinstance(array, np.ndarray) and type(value) is not Tensor else array
        for value, array in zip(values, arrays)
    ]


def may_depend_on_another(source: Source, wanted: Sequence[int], values: Sequence[Any]) -> bool:
    """Return whether a captured tensor may have been computed from another captured one.

    When the function is rerun, it reads these tensors itself, so that their gradients cannot be told apart.

    Arguments:
        source: the program.
        wanted: the numbers of the differentiated inputs.
        values: the values of all inputs.
    """
    edges = [current_edge(values[n]) for n in wanted if not source.inputs[n].path.is_argument]
    return len(edges) > 1 and not all(type(edge) is AccumulateGrad for edge in edges)


def input_arrays(source: Source, given: Sequence[Any], may_share: bool = False) -> list[Any] | None:
    """Return the inputs of a program as arrays and numbers, or None if they are not of the expected kinds.

    Arguments:
        source: the program.
        given: the arguments.
        may_share: whether arrays may share memory.
    """
    found: list[Any] = []
    shared: list[Any] = []
    for each in source.inputs:
        path, kind = each.path, each.kind
        try:
            value = given[path.root] if path.is_argument and not path.steps else path.now(given)
        except Exception:
            return None
        array = value._array if type(value) is Tensor else value
        if isinstance(kind, Arr):
            if type(array) is not np.ndarray or array.ndim != kind.ndim or array.dtype != DTYPE_OF[kind.dtype]:
                return None
            shared.append(array)
            flags = array.flags
            if not flags.carray:
                if source.reshapes and not flags.c_contiguous:
                    return None
                array = np.array(array, order="C")
            found.append(array)
            continue
        if isinstance(array, np.ndarray):
            if array.ndim or array.dtype != DTYPE_OF[kind.dtype]:
                return None
            array = array[()]
        elif kind.weak:
            if type(array) not in (bool, int, float):
                return None
            if not path.is_argument and type(array) is not WEAK[kind.dtype]:
                return None
            if type(array) is int and not -(2**62) < array < 2**62:
                return None
        elif not isinstance(array, np.generic) or array.dtype.char != kind.dtype:
            return None
        found.append(array)
    if len(shared) > 1 and not may_share and _may_share(shared) and share_memory(shared):
        return None
    return found


def _may_share(arrays: Sequence[Array]) -> bool:
    """Return whether an array occurs twice or is a view."""
    if len(arrays) == 2 and arrays[0] is not arrays[1]:
        return arrays[0].base is not None or arrays[1].base is not None
    return len(set(map(id, arrays))) < len(arrays) or any(each.base is not None for each in arrays)


def is_writable(value: Any, is_recording: bool) -> bool:
    """Return whether an argument can be written to as a whole, so that a program may do so.

    Arguments:
        value: the argument, an array or a tensor.
        is_recording: whether the mode is grad mode.
    """
    if type(value) is not Tensor:
        return bool(value.flags.writeable)
    view, array = value._view, value._array
    if has_ended(value):  # the elements that are written determine the histories of other views
        return False
    if overlaps_itself(array) or (view is not None and view.creation is not CreationMeta.DEFAULT):
        return False
    return not (is_recording and value.requires_grad and root_of(value).is_leaf)


def input_places(inputs: Sequence[Input], given: Sequence[Any]) -> set[tuple[int, Any]]:
    """Return the locations of inputs that are not arguments: the address of their container, and their key there."""
    found: set[tuple[int, Any]] = set()
    for each in inputs:
        if not each.path.steps:
            continue
        *before, (how, key) = each.path.steps
        if before and isinstance(Path(each.path.root, each.path.is_argument, tuple(before)).now(given), np.ndarray):
            *before, (how, key) = before  # a field of a structured array
        owner = Path(each.path.root, each.path.is_argument, tuple(before)).now(given)
        found.add((id(owner), None if how == "cell" else key))
        own = getattr(owner, "__dict__", None) if how == "attr" else None
        if isinstance(own, dict) and key in own:
            found.add((id(own), key))
    return found
