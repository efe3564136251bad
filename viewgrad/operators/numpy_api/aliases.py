"""NumPy's functions that correspond to an operator with another name or other arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ...tensor import creation
from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, Tensor
from ..composites import composite
from ..derivatives.helpers import pattern_of, plain


def _extended(numpy: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of `numpy.emath`, which returns complex numbers outside the real domain."""

    def extended(*args: Any) -> Any:
        tensors = [as_operand(arg) for arg in args]
        dtype = np.asarray(numpy(*(plain(tensor) for tensor in tensors))).dtype
        if dtype.kind != "c":
            dtype = np.result_type(*(tensor.dtype for tensor in tensors))
        return function(*(tensor.astype(dtype, copy=False) for tensor in tensors))

    return extended


def _logn(n: Any, x: Any) -> Any:
    return np.log(x) / np.log(n)


def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **others: Any
) -> Any:
    """Return a tensor with the shape of another one, filled with a value; gradients flow to the value."""
    pattern = np.empty_like(pattern_of(a), dtype, order, subok, shape)  # type: ignore[call-overload]
    return creation.full_like(pattern, fill_value)


def with_new_axes(a: Any, axis: int | Sequence[int]) -> Any:
    """Return a view with dimensions of length 1 inserted at given positions of the result."""
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    ndim = a.ndim + len(axes)
    places = [operator.index(place) for place in axes]
    if any(not -ndim <= place < ndim for place in places):
        raise np.exceptions.AxisError(f"axis {axis} is out of bounds for an array of dimension {ndim}")
    places = [place % ndim for place in places]
    if len(set(places)) < len(places):
        raise ValueError(f"repeated axis in expand_dims: {axis}")
    return a[tuple(None if i in places else slice(None) for i in range(ndim)) or ...]


def _atleast_1d(*tensors: Any) -> Any:
    results = tuple(tensor if tensor.ndim else tensor.reshape(1) for tensor in map(as_operand, tensors))
    return results[0] if len(results) == 1 else results


@composite(method=False)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Split a tensor along an axis into equal sections or at given indices, as in `numpy.split`.

    `Tensor.split` and `viewgrad.torch_names.split` are PyTorch's function of that name, which accepts lengths.
    """
    ary = as_operand(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    if isinstance(indices_or_sections, (int, np.integer)) and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            f"split does not result in an equal division: {ary.shape[axis]} elements in {indices_or_sections} sections"
        )
    pieces: list[Tensor] = FUNCTIONS[np.array_split](ary, indices_or_sections, axis)
    return pieces


for _name in ("sqrt", "log", "log2", "log10", "power", "arccos", "arcsin", "arctanh"):
    FUNCTIONS[getattr(np.emath, _name)] = _extended(getattr(np.emath, _name), getattr(np, _name))
FUNCTIONS[np.emath.logn] = _extended(np.emath.logn, _logn)
FUNCTIONS[np.full_like] = _full_like
FUNCTIONS[np.expand_dims] = with_new_axes
FUNCTIONS[np.atleast_1d] = _atleast_1d
FUNCTIONS[np.split] = split
