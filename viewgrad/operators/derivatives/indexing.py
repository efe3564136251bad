"""The derivatives of operators that copy, cast, select, write and reorder elements."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ...tensor.creation import as_operand
from ...tensor.tensor import as_scalar, is_scalar
from ...type_aliases import Array
from ..composites import composite
from ..define import row
from ..language.namespace import formula_function
from ..language.spec import Kernel
from .helpers import call, plain

NOT: Final = "not_differentiable"
LINEAR: Final = "auto_linear"

# -- copies and casts --------------------------------------------------------------------------------------------------


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    """Return a copy in another shape that owns its memory, unlike copies made by NumPy's `reshape`."""
    out = np.empty(shape, array.dtype)
    out.reshape(array.shape)[...] = array
    return out


clone = row(
    "clone(self)", lambda self: self.copy(order="K"), {"self": "grad"}, forward_derivative=LINEAR,
    dtype_kinds="fc", numpy=[np.copy], returns_0d_arrays=True, doc="A copy with the same history.",
    kernel=Kernel("self", integers="self", is_exact=True),
).function
contiguous_copy = row(
    "_contiguous_copy(self)", lambda self: self.copy(order="C"), {"self": "grad"}, forward_derivative=LINEAR,
    dtype_kinds="fc", returns_0d_arrays=True, doc="A copy in row-major order.",
).function
row(
    "_reshaped_copy(self, shape)", lambda self, shape: reshaped(self, shape), {"self": "grad.reshape(self.shape)"},
    forward_derivative=LINEAR, dtype_kinds="fc",
    returns_0d_arrays=True, doc="A copy of the elements, in row-major order, in another shape.",
)
cast = row(
    "_cast(self, dtype)", lambda self, dtype: self.astype(dtype), {"self": "as_dtype(grad, self.dtype)"},
    forward_derivative=LINEAR, method=False, dtype_kinds="fc", returns_0d_arrays=True,
    doc="The values in another floating-point or complex dtype.",
).function
cast_exactly = row(
    "_cast_exactly(self, dtype)", lambda self, dtype: self.astype(dtype), {"self": NOT}, method=False,
    returns_0d_arrays=True,
    doc="The values as integers or bools.",
).function


@composite()
def copy(self: Any) -> Any:
    """Return a copy with the same history, like `clone()`; a scalar is returned unchanged."""
    return self if is_scalar(self) else clone(self)


@composite()
def astype(self: Any, dtype: Any, copy: bool = True) -> Any:
    """Return the values in another dtype; differentiable for floating-point and complex dtypes.

    Arguments:
        dtype: the desired dtype.
        copy: False returns the tensor itself if it already has the dtype.

    For the dtype `object`, the result is a NumPy array of the elements, each a tensor with its history; for strings,
    dates and structured dtypes, it is a NumPy array of plain values.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "O":
        return self.__array__(object)
    if not copy and self.dtype == dtype:
        return self
    result = cast(self, dtype) if dtype.kind in "fc" else cast_exactly(self, dtype)
    return as_scalar(result) if is_scalar(self) else result


@composite()
def contiguous(self: Any) -> Any:
    """Return the tensor itself if it is in row-major order, otherwise a copy in that order."""
    return self if self._array.flags.c_contiguous else contiguous_copy(self)


# -- picking -----------------------------------------------------------------------------------------------------------

row(
    "take(self, indices, axis=None, mode='raise')",
    lambda self, indices, axis=None, mode="raise": _take(self, indices, axis, mode),
    {"self": "take_gradient(grad, indices, self.shape, axis, mode)", "indices": NOT},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.take], masks_gradient=True,
    doc="The elements, or the slices along `axis`, at `indices`.",
)
row(
    "take_along_axis(self, indices, axis=-1)", lambda self, indices, axis=-1: np.take_along_axis(self, indices, axis),
    {"self": "take_along_axis_gradient(grad, indices, self.shape, axis)", "indices": NOT},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.take_along_axis], masks_gradient=True,
    doc="The elements at `indices` along `axis`, with separate indices for each lane.",
)
row(
    "tril(self, k=0)", lambda self, k=0: np.tril(self, k), {"self": "sum_to(tril(grad, k), self.shape)"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.tril], masks_gradient=True,
    doc="The lower triangles of matrices; elements above the diagonal `k` are zero. A vector is repeated as every row.",
)
row(
    "triu(self, k=0)", lambda self, k=0: np.triu(self, k), {"self": "sum_to(triu(grad, k), self.shape)"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.triu], masks_gradient=True,
    doc="The upper triangles of matrices; elements below the diagonal `k` are zero. A vector is repeated as every row.",
)

# -- putting -----------------------------------------------------------------------------------------------------------


def places_of_slices(index: Any, axis: int, ndim: int) -> Any:
    """Return the index of slices along an axis."""
    index = plain(index)
    if index.dtype.kind not in "iu":
        raise IndexError(f"slices must be indexed by integers, not by {index.dtype}")
    return (slice(None),) * (axis % ndim) + (index,)


def index_add_forward(self: Array, axis: int, index: Array, source: Array) -> Array:
    out = self.copy()
    np.add.at(out, places_of_slices(index, axis, self.ndim), source.astype(self.dtype, casting="same_kind"))
    return out


def scatter_forward(self: Array, axis: int, index: Array, source: Any) -> Array:
    out = self.copy()
    values = np.asarray(source)  # the formula stores a plain 0
    out[places_along_axis(index, axis, self.shape)] = values.astype(self.dtype, casting="same_kind")
    return out


def scatter_add_forward(self: Array, axis: int, index: Array, source: Array) -> Array:
    out = self.copy()
    np.add.at(out, places_along_axis(index, axis, self.shape), source.astype(self.dtype, casting="same_kind"))
    return out


def scatter_into_zeros_forward(self: Array, index: Any, shape: tuple[int, ...]) -> Array:
    out = np.zeros(shape, self.dtype)
    if self.size:
        np.add.at(out, index, self)
        return out
    # NumPy accepts even invalid indices for empty arrays; up to version 2.1 with a warning.
    with contextlib.suppress(IndexError), warnings.catch_warnings(action="ignore"):
        if out[index].shape != self.shape:
            raise ValueError(f"values of shape {self.shape} cannot be written to elements of shape {out[index].shape}")
    return out


@formula_function
def values_at(grad: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """Return the elements of a gradient at given indices; an empty gradient may lack these."""
    return grad.reshape(-1)[:0].reshape(shape) if 0 in shape else grad[index]


row(
    "_scatter_into_zeros(self, index, shape)", scatter_into_zeros_forward,
    {"self": "sum_to(values_at(grad, index, self.shape), self.shape)"},
    forward_derivative=LINEAR, method=False, dtype_kinds="fc",
    doc="Zeros of `shape`, with the values added at `zeros[index]`.",
)
row(
    "index_add(self, axis, index, source)", index_add_forward,
    {"self": "grad", "index": NOT, "source": "take(grad, index, axis)"}, forward_derivative=LINEAR, dtype_kinds="fc",
    doc="The tensor with the slices of `source` added at `index` along `axis`.",
)
row(
    "scatter(self, axis, index, source)", scatter_forward,
    {
        "self": "scatter(grad, axis, index, 0)", "index": NOT,
        "source": "take_along_axis(grad, index, axis) * scatter_winners(index, axis, self.shape)",
    },
    forward_derivative=LINEAR, dtype_kinds="fc",
    doc="The tensor with `source` written at `index` along `axis`; for repeated indices the last value is used.",
)
row(
    "scatter_add(self, axis, index, source)", scatter_add_forward,
    {"self": "grad", "index": NOT, "source": "take_along_axis(grad, index, axis)"},
    forward_derivative=LINEAR, dtype_kinds="fc",
    doc="The tensor with `source` added at `index` along `axis`.",
)


@composite()
def index_add_(self: Any, axis: int, index: Any, source: Any) -> Any:
    """Add the slices of `source` at `index` along `axis`, in place, at a cost proportional to the size of `source`."""
    return self.index_accumulate_(places_of_slices(index, axis, self.ndim), source)


@composite()
def scatter_(self: Any, axis: int, index: Any, source: Any) -> Any:
    """Write `source` at `index` along `axis`, in place; the cost is proportional to the size of `source`."""
    self[places_along_axis(plain(index), axis, self.shape)] = source
    return self


@composite()
def scatter_add_(self: Any, axis: int, index: Any, source: Any) -> Any:
    """Add `source` at `index` along `axis`, in place; the cost is proportional to the size of `source`."""
    return self.index_accumulate_(places_along_axis(plain(index), axis, self.shape), source)


@composite(np.put_along_axis, method=False)
def put_along_axis(self: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    """Write `values` at `indices` along `axis`, in place; without an axis, into the flattened tensor."""
    if axis is None:
        (places,) = places_along_axis(plain(as_operand(indices)), 0, (self.size,))
        self[unraveled(places, self.shape)] = values
        return
    scatter_(self, axis, as_operand(indices), values)


# -- sorting -----------------------------------------------------------------------------------------------------------

row(
    "sort(self, axis=-1)", lambda self, axis=-1: np.sort(self, axis, stable=True),
    {"self": "sort_gradient(grad, self, axis)"},
    forward_derivative="take_along_axis(self_t, argsort(self_p, axis), axis)", dtype_kinds="fc", numpy=[np.sort],
    doc="The elements sorted along `axis`, or all of them, in ascending order; the sort is stable.",
)
row(
    "argsort(self, axis=-1)", lambda self, axis=-1: np.argsort(self, axis, stable=True), {"self": NOT},
    numpy=[np.argsort],
    doc="The indices that sort the elements along `axis`; the sort is stable.",
)

# -- functions of formulas ---------------------------------------------------------------------------------------------


def _take(array: Any, indices: Any, axis: int | None, mode: Any) -> Any:
    # NumPy 2.4 may not return from a wrapped take from an empty array, whose result is empty in every mode.
    return np.take(array, indices, axis, mode="clip" if mode == "wrap" and not np.size(array) else mode)


@formula_function
def take_gradient(grad: Any, indices: Any, shape: tuple[int, ...], axis: int | None, mode: str) -> Any:
    """Scatter the gradient to the elements that were taken."""
    lanes = (math.prod(shape),) if axis is None or not shape else shape
    along = 0 if axis is None or not shape else axis % len(shape)
    places = plain(indices).astype(np.intp)  # NumPy treats bools as 0 and 1 here
    if mode != "raise" and not lanes[along]:
        return grad.reshape(shape)  # both are empty
    if mode == "wrap":
        places = places % lanes[along]
    elif mode == "clip":
        places = np.clip(places, 0, lanes[along] - 1)
    return call("_scatter_into_zeros", grad, (slice(None),) * along + (places,), lanes).reshape(shape)


@formula_function
def take_along_axis_gradient(grad: Any, indices: Any, shape: tuple[int, ...], axis: int | None) -> Any:
    """Scatter the gradient to the elements that were taken."""
    lanes = (math.prod(shape),) if axis is None else shape
    places = places_along_axis(plain(indices), 0 if axis is None else axis, lanes)
    return call("_scatter_into_zeros", grad, places, lanes).reshape(shape)


def places_along_axis(indices: Any, axis: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the index with which `numpy.take_along_axis` reads and `numpy.put_along_axis` writes."""
    if indices.dtype.kind not in "iu" or indices.ndim != len(shape):
        raise IndexError(
            f"indices along an axis of a tensor of shape {shape} must be {len(shape)}-dimensional integers, "
            f"not {indices.ndim}-dimensional {indices.dtype}"
        )
    places: list[Any] = list(np.ogrid[tuple(slice(extent) for extent in shape)])
    places[normalize_axis_index(axis, len(shape))] = indices
    return tuple(places)


def unraveled(places: Any, shape: tuple[int, ...], mode: str = "raise") -> tuple[Any, ...]:
    """Return the index of elements given by their places in the flattened array, as `numpy.put` counts them."""
    size = math.prod(shape)
    if mode != "raise":
        places = np.ravel_multi_index((places,), (size,), mode)  # type: ignore[call-overload]
    elif not (inside := (-size <= places) & (places < size)).all():
        raise IndexError(f"index {places[~inside][0]} is out of bounds for axis 0 with size {size}")
    return np.unravel_index(np.where(places < 0, places + size, places), shape)


@formula_function
def scatter_winners(indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Return the mask of the values put along an axis that remain: the last one for each element."""
    indices = plain(indices)
    places = places_along_axis(indices, axis, shape)
    numbers = np.empty(shape, int)[places]
    numbers = np.arange(numbers.size).reshape(numbers.shape)
    last = np.empty(shape, int)
    last[places] = numbers
    return last[places] == numbers


@formula_function
def sort_gradient(grad: Any, value: Any, axis: int | None) -> Any:
    """Return the gradient of each element, taken from its position in the sorted result."""
    shape = value.shape
    if axis is None:
        value, axis = value.reshape(-1), -1
    places = np.argsort(np.argsort(plain(value), axis, stable=True), axis)
    return np.take_along_axis(grad, places, axis).reshape(shape)
