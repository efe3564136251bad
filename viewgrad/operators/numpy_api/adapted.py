"""NumPy's functions: operators for tensors with a history, NumPy's own functions otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...errors import UnsupportedFunctionError, UnsupportedTypeError
from ...tensor.creation import COMMON, as_operand, holds_tensor, with_arrays
from ...tensor.tensor import FUNCTIONS, Tensor, has_own_rules
from ...tensor.trace_hooks import composed
from .conversion import NESTED, as_argument, as_tensors, carries_history, on_values

# Functions that accept sequences of arrays, with the positions and names of those arguments; these arrays must not be
# combined.
LISTS: Final[dict[Any, tuple[int | str, ...]]] = {
    **{
        getattr(np, name): (0,)
        for name in (
            "column_stack", "concat", "concatenate", "dstack", "hstack", "lexsort", "stack", "vstack",
            "ravel_multi_index",
        )
        if hasattr(np, name)
    },
    np.choose: (1,),
    np.histogram2d: (2, "bins"),
    np.histogramdd: (0, 1, "bins"),
    np.linalg.multi_dot: (0,),
    np.piecewise: (1, 2),
    np.select: (0, 1),
}  # fmt: skip
# Views of the first argument, which may be an array even if a size or an axis is a tensor.
VIEWING: Final = frozenset(
    getattr(np, name)
    for name in (
        "array_split", "broadcast_to", "diagonal", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis",
        "split", "squeeze", "swapaxes", "transpose", "unstack",
    )
    if hasattr(np, name)
) | {np.lib.stride_tricks.sliding_window_view}  # fmt: skip
# Functions that write to their first argument. NumPy's own functions would receive a read-only array of its values.
WRITING: Final = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
# Functions that handle nested lists themselves.
LOOKING: Final = frozenset({np.block, np.einsum})


def adapted(function: Callable[..., Any], name: str, way_out: str = "") -> Callable[..., Any]:
    """Return the counterpart of a NumPy function in this namespace.

    Tensors in nested lists are combined, and arrays in the result become tensors. If no operator computes the function,
    NumPy's own function runs on tensors without history, and tensors with a history raise an error.

    Arguments:
        function: the NumPy function.
        name: its name in messages.
        way_out: the alternative for tensors with a history.
    """
    lists, looks, views = LISTS.get(function, ()), function in LOOKING, function in VIEWING

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if _have_own_rules(args):
            return function(*args, **kwargs)
        args = with_arrays(args)
        if not any(map(holds_tensor, args)) and not (kwargs and any(map(holds_tensor, kwargs.values()))):
            return as_tensors(function(*args, **kwargs), args)
        handler = FUNCTIONS.get(function)
        if views and args and type(args[0]) is np.ndarray and args[0].dtype.hasobject:
            return function(*args, **kwargs)  # NumPy's view; its elements, among them tensors, are the same objects
        if handler is not None:
            given: Any = args
            if lists:
                given = [_each(arg) if place in lists else as_argument(arg) for place, arg in enumerate(args)]
            elif views and args:
                given = as_operand(as_argument(args[0])), *map(as_argument, args[1:])
            elif not looks:
                given = map(as_argument, args)
            options = {key: _each(value) if key in lists else as_argument(value) for key, value in kwargs.items()}
            try:
                return handler(*given, **options)
            except TypeError as error:
                target = args[0] if function in WRITING and args else options.get("out")
                if isinstance(target, Tensor) and not isinstance(error, UnsupportedTypeError):
                    raise
                if carries_history(args) or carries_history(kwargs):
                    raise
        return composed(name, run, args, kwargs)

    def run(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(name, way_out)
        return on_values(function, args, kwargs)

    return call


def _have_own_rules(args: Any) -> bool:
    """Return whether one of the arguments, or of the items of lists, is of a class that overrides NumPy's functions."""
    return not COMMON.issuperset(map(type, args)) and any(
        _have_own_rules(each) if type(each) in NESTED else has_own_rules(type(each)) for each in args
    )


def lost(name: str, way_out: str = "") -> UnsupportedFunctionError:
    """Return the error for a function that would lose the history of its arguments."""
    return UnsupportedFunctionError(
        f"{name} has no derivative here, and the history of a tensor would be lost: "
        + (
            way_out
            or "compose it from functions that have one, define it with viewgrad.autograd.define_op, or pass "
            "detach() of the tensor if no gradient is needed"
        )
    )


def _each(value: Any) -> Any:
    """Return the converted items of a list of arrays."""
    return type(value)(map(as_argument, value)) if type(value) in NESTED else value
