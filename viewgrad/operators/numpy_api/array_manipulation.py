"""Adapters of NumPy's functions that assemble and split arrays, and apply functions to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ...adoption import adopted_arguments
from ...tensor.creation import as_assigned, as_operand, holds_tensor
from ...tensor.shapes import with_ndim
from ...tensor.storage import scalar_write
from ...tensor.tensor import FUNCTIONS, Tensor, from_array, is_scalar
from .. import OPERATORS
from ..composites import composite
from ..derivatives.helpers import plain
from ..derivatives.indexing import unraveled
from ..operands import operands
from .dispatch import PYTHONS, register, write_out

concatenate = OPERATORS["concatenate"].function
where = OPERATORS["where"].function


# -- concatenation -----------------------------------------------------------------------------------------------------


def _concatenated(tensors: Any, axis: int | None = 0) -> Any:
    """Implement `numpy.concatenate`, in which Python's numbers have no dtype of their own if `axis` is None."""
    if axis is None and any(type(each) in PYTHONS for each in tensors):
        dtype = np.result_type(*[each if type(each) in PYTHONS else as_operand(each).dtype for each in tensors])
        tensors = [from_array(np.array(each, dtype)) if type(each) in PYTHONS else each for each in tensors]
    return concatenate(tensors, axis)


_concatenated.means = concatenate  # type: ignore[attr-defined]
register(np.concatenate, _concatenated)


@composite(np.block, method=False)
def block(arrays: Any) -> Any:
    """Assemble tensors in nested lists into a block matrix; the innermost lists are concatenated along the last axis.
    """
    depth = _depth(arrays)
    ndim = max(depth, *(part.ndim for part in _parts(arrays)))
    return _assembled(arrays, ndim, depth).clone()


def _depth(nested: Any) -> int:
    if not isinstance(nested, list):
        return 0
    if not nested:
        raise ValueError("block got an empty list")
    depth, *others = map(_depth, nested)
    if any(other != depth for other in others):
        raise ValueError("the lists that block received differ in depth")
    return 1 + depth


def _parts(nested: Any) -> list[Any]:
    return [part for item in nested for part in _parts(item)] if isinstance(nested, list) else [as_operand(nested)]


def _assembled(nested: Any, ndim: int, depth: int) -> Any:
    if not isinstance(nested, list):
        return with_ndim(as_operand(nested), ndim)
    return concatenate([_assembled(item, ndim, depth - 1) for item in nested], -depth)


@composite(np.insert, method=False)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Return a copy with values inserted before the given indices along an axis, or in the flattened tensor."""
    arr, values = as_operand(arr), as_operand(values)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = normalize_axis_index(axis, arr.ndim)
    extent = arr.shape[axis]
    values = values.astype(arr.dtype)
    places = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(plain(obj))
    if places.dtype.kind not in "biu" and (places.size or not isinstance(obj, (list, tuple))):
        raise IndexError(f"indices of insert must be integers, bools or a slice, not {places.dtype}")
    if places.dtype == bool:
        places = np.flatnonzero(places)
    # `order` contains, for each position of the result, a position in `arr` followed by `values`.
    if places.size == 1:
        place = int(places.item())
        if not -extent <= place <= extent:
            raise IndexError(f"index {place} is out of bounds for axis {axis} with size {extent}")
        values = with_ndim(values, arr.ndim)
        if not places.ndim:
            values = values.moveaxis(0, axis)  # as in NumPy, the first dimension of the values is the new one
        count = values.shape[axis]
        order = np.insert(np.arange(extent), place, np.arange(extent, extent + count))
    else:
        count = places.size
        order = np.insert(np.arange(extent), places.astype(np.intp), np.arange(extent, extent + count))
    shape = tuple(count if dim == axis else n for dim, n in enumerate(arr.shape))
    while values.ndim > arr.ndim and values.shape[0] == 1:
        values = values[0]
    result = concatenate([arr, values.broadcast_to(shape)], axis).take(order, axis)
    return result.copy("F") if arr._array.flags.fnc else result


@composite(np.delete, method=False)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Return a copy without the given slices along an axis, or without elements of the flattened tensor."""
    arr = as_operand(arr)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = normalize_axis_index(axis, arr.ndim)
    if arr._array.flags.fnc:
        return delete(arr.transpose(), obj, arr.ndim - 1 - axis).transpose()
    places = obj if isinstance(obj, (slice, list)) and not holds_tensor(obj) else plain(obj)
    return arr.take(np.delete(np.arange(arr.shape[axis]), places), axis)


@composite(np.resize, method=False)
def resized(a: Any, new_shape: Any) -> Any:
    """Return a copy in another shape, with the elements repeated as needed."""
    a = as_operand(a).reshape(-1)
    shape = tuple(new_shape) if np.iterable(new_shape) else (new_shape,)
    if any(length < 0 for length in shape):
        raise ValueError(f"lengths of resize must be nonnegative, not {shape}")
    size = int(np.prod(shape))
    return a.take(np.arange(size) % max(a.size, 1)).reshape(shape) if a.size else from_array(np.zeros(shape, a.dtype))


@composite(np.diagflat, method=False)
def diagflat(v: Any, k: int = 0) -> Any:
    """Return a matrix with the elements of a tensor on a diagonal."""
    return np.diag(as_operand(v).reshape(-1), k)


@composite(np.trim_zeros, method=False)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Return a window without leading ("f" in `trim`) and trailing ("b") zeros, along all dimensions or `axis`."""
    filt = as_operand(filt)
    if not set(trim.lower()) <= {"f", "b"}:
        raise ValueError(f"trim of trim_zeros must consist of 'f' (front) and 'b' (back), not {trim!r}")
    chosen = range(filt.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, filt.ndim)
    places = np.argwhere(plain(filt))
    window = [slice(None)] * filt.ndim
    for dim in chosen:
        along = places[:, dim] if len(places) else np.array([0])
        start = int(along.min()) if "f" in trim.lower() or not len(places) else None
        stop = int(along.max()) + bool(len(places)) if "b" in trim.lower() or not len(places) else None
        window[dim] = slice(start, stop)
    return filt[(*window, ...)]


@composite(np.vander, method=False)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the Vandermonde matrix of a vector."""
    x = as_operand(x)
    x = x.astype(np.result_type(x.dtype, int), copy=False)
    count = x.size if N is None else int(N)
    powers = concatenate([np.ones_like(x)[:, None], x[:, None].broadcast_to((x.size, max(count - 1, 0)))], 1).cumprod(1)
    powers = powers[:, :count]
    # in NumPy's memory layout, so that ravel() returns a view
    return (powers if increasing else powers[:, ::-1]).contiguous()


# -- selection ---------------------------------------------------------------------------------------------------------


@composite(np.choose, method=False)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Return, for each element, the value from the choice selected by the integers `a`."""
    indices = plain(a)
    indices = indices.astype(np.intp) if indices.dtype.kind == "b" else indices
    tensors = list(operands(*choices))
    shape = np.broadcast_shapes(indices.shape, *(tensor.shape for tensor in tensors))
    count = len(tensors)
    if mode == "wrap":
        indices = indices % count
    elif mode == "clip":
        indices = np.clip(indices, 0, count - 1)
    elif mode != "raise":
        raise ValueError(f"mode must be 'raise', 'wrap' or 'clip', not {mode!r}")
    elif 0 not in shape and ((indices < 0) | (indices >= count)).any():
        raise ValueError("invalid entry in choice array")
    stacked = np.stack([tensor.broadcast_to(shape) for tensor in tensors])
    chosen = np.take_along_axis(stacked, np.broadcast_to(indices, shape)[None], 0)[0]
    return chosen if out is None else write_out(chosen, out, "np.choose", "unsafe")


setattr(Tensor, "choose", choose)  # noqa: B010


@composite(np.piecewise, method=False)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Return, for each element, the value of the function (or number) of the last true condition, or 0."""
    x = as_operand(x)
    first = condlist if np.isscalar(condlist) or not len(condlist) else condlist[0]
    alone = np.isscalar(first) or (isinstance(first, (Tensor, np.ndarray)) and not first.ndim)
    if np.isscalar(condlist) or (alone and x.ndim):
        condlist = [condlist]
    conditions = [np.broadcast_to(np.asarray(plain(condition), bool), x.shape) for condition in condlist]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~np.any(conditions, axis=0))
    elif len(funclist) != len(conditions):
        raise ValueError(f"piecewise got {len(conditions)} conditions for {len(funclist)} functions")
    result = as_operand(np.zeros_like(x._array))
    for condition, function in zip(conditions, adopted_arguments(list(funclist))):
        if not callable(function):
            result[condition] = function
        elif condition.any():
            result[condition] = function(x[condition], *args, **kwargs)
    return result


# -- functions applied -------------------------------------------------------------------------------------------------


@composite(np.apply_along_axis, method=False)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function of vectors to each vector along an axis."""
    arr, func1d = as_operand(arr), adopted_arguments(func1d)
    rows = arr.moveaxis(axis, -1)
    outer = rows.shape[:-1]
    results = [as_operand(func1d(rows[place], *args, **kwargs)) for place in np.ndindex(outer)]
    if not results:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    stacked = np.stack(results).reshape(outer + results[0].shape)
    place = axis % arr.ndim
    inner = tuple(range(len(outer), stacked.ndim))
    return np.moveaxis(stacked, inner, tuple(range(place, place + len(inner)))) if inner else stacked


@composite(np.apply_over_axes, method=False)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """Apply a function of a tensor and an axis repeatedly over several axes."""
    value, func = as_operand(a), adopted_arguments(func)
    ndim = value.ndim
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        result = as_operand(func(value, axis))
        value = result if result.ndim == ndim else result.unsqueeze(axis % ndim)
    return value


# -- writing -----------------------------------------------------------------------------------------------------------


def _without_history(value: Any) -> Any:
    """Return the array of a value for a plain array; raise for a tensor with a history."""
    if isinstance(value, list | tuple) and holds_tensor(value):
        value = as_operand(value)
    return np.asarray(value)


@composite(np.put)
def put(self: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at indices into the flattened tensor, in place."""
    if not isinstance(self, Tensor):
        np.put(self, np.asarray(plain(ind)), _without_history(v), mode)  # type: ignore[arg-type]
        return
    if is_scalar(self):
        raise scalar_write("put()")
    places = np.asarray(plain(ind)).reshape(-1)
    values = as_assigned(v, self.dtype).reshape(-1)
    if values.size and places.size:
        self = self if self.ndim else self.reshape(1)
        self[unraveled(places, self.shape, mode)] = values.take(np.arange(places.size) % values.size)


@composite(np.place, method=False)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values, in order, where a mask is true, in place."""
    if not isinstance(arr, Tensor):
        np.place(arr, np.asarray(plain(mask)), _without_history(vals))
        return
    if is_scalar(arr):
        raise scalar_write("np.place")
    if np.size(mask) != arr.size:
        raise ValueError(f"np.place requires a mask of the tensor's size, {arr.size}, not of size {np.size(mask)}")
    places, values = np.flatnonzero(plain(mask)), as_assigned(vals, arr.dtype)
    if places.size and not values.size:
        raise ValueError("np.place requires at least one value to insert")
    put(arr, places, values)


# -- systems of equations ----------------------------------------------------------------------------------------------


@composite(np.linalg.tensorsolve, method=False)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solve `tensordot(a, x, x.ndim) == b` for the tensor `x`."""
    a, b = as_operand(a), as_operand(b)
    if axes is not None:
        dims = [dim for dim in range(a.ndim) if dim not in axes] + list(axes)
        a = a.transpose(dims)
    shape = a.shape[b.ndim :]
    size = math.prod(shape)
    return np.linalg.solve(a.reshape(math.prod(a.shape[: b.ndim]), size), b.reshape(-1)).reshape(shape)


@composite(np.linalg.tensorinv, method=False)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Return the inverse of the linear map `b -> tensordot(a, b, ind)`."""
    a = as_operand(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    size = int(np.prod(a.shape[ind:]))
    return np.linalg.inv(a.reshape(size, math.prod(a.shape[:ind]))).reshape(a.shape[ind:] + a.shape[:ind])


# -- dimensions --------------------------------------------------------------------------------------------------------


def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    axis = normalize_axis_index(axis, a.ndim)
    start = normalize_axis_index(start, a.ndim + 1) if start >= 0 else normalize_axis_index(start, a.ndim)
    return a.moveaxis(axis, start - (axis < start))


def _cumulative(name: str) -> Callable[..., Any]:
    start = {"cumsum": 0, "cumprod": 1}[name]

    def cumulative(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        x = as_operand(x)
        axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        if axis is None:
            if x.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        x = x if dtype is None else x.astype(dtype)
        if include_initial:
            x = x if x.ndim else x.reshape((1,))
            shape = tuple(1 if dim == axis % x.ndim else extent for dim, extent in enumerate(x.shape))
            x = concatenate([from_array(np.full(shape, start, x.dtype)), x], axis)
        result = getattr(x, name)(axis, dtype)
        return result if out is None else out.copy_(result)

    return cumulative


def _isreal(x: Any) -> Any:
    return from_array(np.isreal(plain(x)))


def _open_mesh(*args: Any) -> Any:
    if any(np.ndim(arg) != 1 for arg in args):
        raise ValueError("ix_ opens a mesh of 1-dimensional sequences of indices")
    vectors = [as_operand(np.flatnonzero(plain(arg)) if plain(arg).dtype == bool else arg) for arg in args]
    count = len(vectors)
    return tuple(v.reshape(tuple(-1 if dim == place else 1 for dim in range(count))) for place, v in enumerate(vectors))


def _real_if_close(a: Any, tol: float = 100) -> Any:
    return a.real if a.is_complex() and not np.iscomplexobj(np.real_if_close(plain(a), tol)) else a


FUNCTIONS.update(
    {
        np.rollaxis: _rollaxis,
        np.isreal: _isreal,
        np.iscomplex: lambda x: from_array(np.iscomplex(plain(x))),
        np.array_equiv: lambda a1, a2: np.array_equiv(plain(a1), plain(a2)),
        np.real_if_close: _real_if_close,
        np.fix: lambda x, out=None: np.trunc(as_operand(x)) if out is None else out.copy_(np.trunc(as_operand(x))),
        np.ix_: _open_mesh,
        np.unravel_index: lambda indices, shape, order="C": np.unravel_index(plain(indices), shape, order),
        np.ravel_multi_index: lambda multi_index, dims, mode="raise", order="C": np.ravel_multi_index(
            tuple(plain(index) for index in multi_index), dims, mode, order),
        np.lexsort: lambda keys, axis=-1: np.lexsort(
            plain(keys) if isinstance(keys, Tensor) else [plain(key) for key in keys], axis
        ),
        np.sort_complex: lambda a: np.sort(as_operand(a)).astype(np.sort_complex(np.empty(0, a.dtype)).dtype),
    }
)  # fmt: skip
for _name, _numpy in (("cumsum", "cumulative_sum"), ("cumprod", "cumulative_prod")):
    if hasattr(np, _numpy):  # NumPy 2.1
        FUNCTIONS[getattr(np, _numpy)] = _cumulative(_name)


def _sliding_window_view(
    x: Tensor, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    sizes = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis) if np.iterable(axis) else (axis,)
    if len(sizes) != len(axes):
        raise ValueError(f"sliding_window_view got {len(sizes)} lengths of windows for {len(axes)} axes")
    ndim = x.ndim
    for size, dim in zip(sizes, axes):
        x = x.unfold(dim % ndim, int(size))
    return x


FUNCTIONS[np.lib.stride_tricks.sliding_window_view] = _sliding_window_view
