"""Adapters of ufuncs and ufunc methods that are not operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, UFUNCS, Tensor, as_buffered, as_scalar, is_scalar
from .. import OPERATORS
from ..composites import composite
from ..derivatives.helpers import copy_order, plain
from ..operands import operands
from .dispatch import converted, register, require_tensor, write_out

concatenate, row_argsort, row_sort = (OPERATORS[name].function for name in ("concatenate", "argsort", "sort"))


@composite(np.float_power, method=False)
def float_power(self: Any, other: Any) -> Any:
    """Return the power computed in double precision."""
    base, exponent = as_operand(self, True), as_operand(other, True)
    dtype = np.result_type(base.dtype, exponent.dtype, np.float64)
    return base.astype(dtype, copy=False) ** exponent.astype(dtype, copy=False)


def as_floating(value: Any) -> Any:
    """Return a floating-point or complex tensor, converting integers as NumPy's floating-point functions do."""
    tensor = as_operand(value)
    return tensor if tensor.dtype.kind in "fc" else tensor.astype(np.result_type(tensor.dtype, np.float16))


@composite(np.ldexp, method=False)
def ldexp(self: Any, other: Any) -> Any:
    """Return `x1 * 2**x2`."""
    base, exponent = as_operand(self, True), as_operand(other, True)
    if exponent.dtype.kind in "fc":  # NumPy rejects such exponents
        return base * np.exp2(exponent)
    base = as_floating(base)
    # Computed with factors that do not overflow: 0.5 * 2**1024 is finite.
    limit = 3 * (np.finfo(base.dtype).maxexp - 1)
    whole = np.clip(plain(exponent), -limit, limit)
    for part in (whole // 3, (whole + 1) // 3, (whole + 2) // 3):
        base = base * as_operand(np.asarray(np.exp2(part, dtype=float))).astype(base.dtype)
    return base


def written_to_outs(results: tuple[Any, Any], out: Any, name: str) -> tuple[Any, Any]:
    """Write two results to the targets of `out=`; a None or missing target means a new result."""
    if not isinstance(out, tuple):
        raise TypeError(f"{name}: 'out' must be a tuple of arrays")
    targets = (*out, None)[:2]
    shape = np.broadcast_shapes(results[0].shape, *(target.shape for target in targets if target is not None))
    if shape != results[0].shape:  # as in NumPy, new results have the shape of the other target
        results = results[0].broadcast_to(shape).clone(), results[1].broadcast_to(shape).clone()
    first, second = (
        result if target is None else write_out(result, target, name) for result, target in zip(results, targets)
    )
    return first, second


def modf(x: Any, *, out: Any = None, **options: Any) -> tuple[Any, Any]:
    """Return the fractional and the integer part; the gradient flows to the fractional part."""
    (x,) = converted(np.modf, (as_floating(x),), **options)
    whole = np.trunc(x)
    fraction = np.where(np.isinf(x), np.copysign(0.0, x.detach()), x - whole).astype(x.dtype, copy=False)
    if out is not None:
        return written_to_outs((fraction, whole), out, "np.modf")
    return (fraction if fraction.ndim else as_scalar(fraction)), whole


UFUNCS[np.modf, "__call__"] = modf


def matvec(x1: Any, x2: Any) -> Any:
    """Return the products of matrices and vectors."""
    matrices, vectors = operands(x1, x2)
    return (matrices @ vectors[..., None])[..., 0]


def vecmat(x1: Any, x2: Any) -> Any:
    """Return the products of conjugated vectors and matrices."""
    vectors, matrices = operands(x1, x2)
    return (vectors.conj()[..., None, :] @ matrices)[..., 0, :]


for _name, _function in (("matvec", matvec), ("vecmat", vecmat)):
    if hasattr(np, _name):  # NumPy 2.2
        register(getattr(np, _name), _function)


@composite(np.partition, method=False)
def partition(a: Any, kth: Any, axis: int | None = -1) -> Any:
    """Return a copy partitioned around the `kth` smallest value."""
    places = OPERATORS["_partition_places"].function
    return _rearranged(a, axis, lambda each, along: places(each, kth, along))


def sort(a: Any, axis: int | None = -1, descending: Any = False) -> Any:
    """Return the elements sorted along an axis; NaN is last in either order, as in NumPy 2.5."""
    return _rearranged(a, axis, lambda each, along: argsort(each, along, True)) if descending else row_sort(a, axis)


def _rearranged(a: Any, axis: int | None, places: Callable[[Any, int], Any]) -> Any:
    """Return the elements in another order along an axis, in the memory layout of a copy.

    Arguments:
        a: the array; flattened if `axis` is None.
        axis: the axis.
        places: a function of an array and an axis that returns the new order, as indices along the axis.
    """
    a = as_operand(a)
    if axis is None:
        a, axis = a.reshape(-1), -1
    order = copy_order(a._array)
    if order != sorted(order):
        found = _rearranged(a.transpose(order), order.index(axis % a.ndim), places)
        return found.transpose([order.index(dim) for dim in range(a.ndim)])
    return np.take_along_axis(a, places(a, axis), axis)


def argsort(a: Any, axis: int | None = -1, descending: Any = False) -> Any:
    """Return the indices that sort the elements along an axis; the sort is stable in either order."""
    if axis is None:
        a, axis = as_operand(a).reshape(-1), -1
    if descending:
        a = as_operand(a)
        a = -a if a.dtype.kind in "fc" else ~a  # avoids integer overflow
    return row_argsort(a, axis)


register(np.sort, sort)
register(np.argsort, argsort)


def i0_vector(x: Any) -> Any:
    """Return the modified Bessel function of order 0."""
    x = as_operand(x)
    known = x.astype(float) if x.dtype == np.longdouble or x.dtype.kind in "biu" else x
    return as_buffered(OPERATORS["i0"].function(known).astype(np.result_type(x.dtype, known.dtype), copy=False))


if "i0" in OPERATORS:  # with SciPy
    FUNCTIONS[np.i0] = i0_vector


# -- methods of ufuncs -------------------------------------------------------------------------------------------------


def _folded(ufunc: np.ufunc) -> dict[str, Callable[..., Any]]:
    """Define the methods of a binary ufunc that apply it to one slice after another."""

    def reduce(
        array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = np._NoValue, where: Any = True,
    ) -> Any:  # fmt: skip
        array = _computed_in(ufunc, array, dtype, out)
        axes = _reduced(axis, array.ndim)
        if len(axes) > 1:  # NumPy rejects several axes if their order matters
            ufunc.reduce(np.ones((1,) * array.ndim, array.dtype), axes)
        parts = list(_slices(array, axes))
        mask = None if where is True else np.broadcast_to(np.asarray(plain(where), bool), array.shape)
        chosen = [None] * len(parts) if mask is None else _slices(mask, axes)
        start = ufunc.identity if initial is np._NoValue else initial
        if start is None and (not parts or mask is not None):
            what = "zero-size array to " if mask is None else ""
            raise ValueError(f"{what}reduction operation {ufunc.__name__} which has no identity")
        if start is None:
            value = parts.pop(0)
        else:
            shape = tuple(n for dim, n in enumerate(array.shape) if dim not in axes)
            value = as_operand(start).astype(array.dtype).broadcast_to(shape)
        for part, is_chosen in zip(parts, chosen):
            value = _step(ufunc, value, part, is_chosen)
        value = value.astype(_result_dtype(ufunc, array.dtype), copy=False)
        if keepdims:
            value = as_buffered(value).reshape(tuple(1 if dim in axes else n for dim, n in enumerate(array.shape)))
        if not value.ndim and not is_scalar(value):
            value = as_scalar(value.clone())
        return value if out is None else write_out(value, _single(out), f"np.{ufunc.__name__}.reduce", "unsafe")

    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        array = _computed_in(ufunc, array, dtype, out)
        axis = 0 if axis is None and array.ndim == 1 else axis
        parts = list(array.unbind(axis))
        for place in range(1, len(parts)):
            parts[place] = ufunc(parts[place - 1], parts[place])
        value: Any = _stacked(parts, axis, array) if parts else array.clone()
        value = value.astype(_result_dtype(ufunc, array.dtype), copy=False)
        return value if out is None else write_out(value, _single(out), f"np.{ufunc.__name__}.accumulate", "unsafe")

    return {"reduce": reduce, "accumulate": accumulate}


def _slices(array: Any, axes: tuple[int, ...]) -> Any:
    """Return an array or a tensor with the given dimensions combined into one, which comes first."""
    kept = tuple(dim for dim in range(array.ndim) if dim not in axes)
    count = math.prod(array.shape[dim] for dim in axes)
    return array.transpose(axes + kept).reshape((count, *(array.shape[dim] for dim in kept)))


def _computed_in(ufunc: np.ufunc, array: Any, dtype: Any, out: Any = None) -> Tensor:
    """Return the array in the dtype of the reduction; integers are converted to that of the results, as for `hypot`.

    The dtype of `out` takes part, as in NumPy, so that small integers reduced to floats do not wrap around.
    """
    operand: Tensor = as_operand(array)
    if dtype is None and out is not None and _single(out).dtype.kind != "b":
        dtype = np.result_type(operand.dtype, _single(out).dtype)
    operand = operand if dtype is None else operand.astype(dtype, copy=False)
    one, _, result = ufunc.resolve_dtypes((operand.dtype, operand.dtype, None))
    return operand.astype(one, copy=False) if one == result else operand


def _result_dtype(ufunc: np.ufunc, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return ufunc.resolve_dtypes((dtype, dtype, None))[-1]


def _reduced(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the reduced dimensions; NumPy accepts 0 and -1 for a 0-d array."""
    if axis is None or (not ndim and axis in (0, -1)):
        return tuple(range(ndim))
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def _step(ufunc: np.ufunc, value: Any, part: Any, chosen: Any) -> Any:
    """Return the result of one step of a reduction, only where the mask is true if there is one."""
    if chosen is None:
        return ufunc(value, part)
    return np.where(chosen, ufunc(value, np.where(chosen, part, value)), value)


def _single(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _stacked(parts: Any, axis: int, array: Any) -> Any:
    """Return slices stacked along an axis, in the memory layout of an array."""
    order = copy_order(array._array)
    value: Any = np.stack(parts, axis)
    return value.transpose(order).contiguous().transpose([order.index(dim) for dim in range(array.ndim)])


def _reduceat(ufunc: np.ufunc) -> Callable[..., Any]:
    def reduceat(array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        array = _computed_in(ufunc, array, dtype, out)
        if dtype is None and ufunc in (np.add, np.multiply):  # these accumulate small integers in larger ones
            array = array.astype(ufunc.reduce(np.zeros(1, array.dtype)).dtype, copy=False)
        axis = 0 if axis is None and array.ndim == 1 else axis
        rows = array.moveaxis(axis, 0)
        places = np.asarray(plain(indices))
        if not places.ndim:
            raise ValueError("object of too small depth for desired array")
        # As in NumPy, only lists may contain floats, which are truncated.
        starts = places.astype(np.intp, casting="unsafe" if isinstance(indices, list) else "same_kind").tolist()
        for start in starts:
            if not 0 <= start < rows.shape[0]:
                raise IndexError(f"index {start} out-of-bounds in {ufunc.__name__}.reduceat [0, {rows.shape[0]})")
        ends = [*starts[1:], rows.shape[0]]
        parts = [
            ufunc.reduce(rows[start:end], axis=0) if start + 1 < end else rows[start]
            for start, end in zip(starts, ends)
        ]
        value: Any = np.stack(parts, axis) if parts else rows[:0].moveaxis(0, axis)
        value = value.astype(_result_dtype(ufunc, array.dtype), copy=False)
        return value if out is None else write_out(value, _single(out), f"np.{ufunc.__name__}.reduceat", "unsafe")

    return reduceat


def _at(ufunc: np.ufunc) -> Callable[..., Any]:
    def at(self: Any, indices: Any, values: Any = None) -> None:
        """Apply the ufunc in place, one index after another, so that repeated indices are written repeatedly."""
        require_tensor(self, f"np.{ufunc.__name__}.at")
        plain_indices = plain(indices) if isinstance(indices, Tensor) else indices
        places = np.asarray(np.arange(self.size).reshape(self.shape)[plain_indices])
        given = None if values is None else as_operand(values).broadcast_to(places.shape)
        if given is not None and np.may_share_memory(given._array, self._array):
            given = given.clone()  # NumPy also reads values before it writes
        for position, place in np.ndenumerate(places):
            index = tuple(int(part) for part in np.unravel_index(int(place), self.shape))
            self[index] = ufunc(self[index]) if given is None else ufunc(self[index], given[position])

    return at


BINARY: Final = tuple(
    value for value in vars(np).values() if isinstance(value, np.ufunc) and value.nin == 2 and value.signature is None
)
for _ufunc in dict.fromkeys((*BINARY, *(v for v in vars(np).values() if isinstance(v, np.ufunc) and v.nin == 1))):
    if (_ufunc, "__call__") not in UFUNCS or _ufunc.nout != 1:
        continue
    UFUNCS.setdefault((_ufunc, "at"), _at(_ufunc))
    if _ufunc.nin == 2:
        for _kind, _method in _folded(_ufunc).items():
            UFUNCS.setdefault((_ufunc, _kind), _method)
        UFUNCS.setdefault((_ufunc, "reduceat"), _reduceat(_ufunc))
