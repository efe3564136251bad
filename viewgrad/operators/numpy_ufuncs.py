"""What those ufuncs, and those methods of ufuncs, mean on tensors that are no operators of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..tensor.creation import as_operand
from ..tensor.tensor import FUNCTIONS, UFUNCS, Tensor, from_array
from . import OPERATORS
from .composites import composite
from .derivatives.formulas import memory_order, plain
from .numpy_dispatch import register

__all__ = ["float_power", "i0_vector", "ldexp", "matvec", "modf", "partition", "vecmat"]

concatenate = OPERATORS["concatenate"].function


@composite(np.float_power, method=False)
def float_power(self: Any, other: Any) -> Any:
    """The power, computed in double precision."""
    base, exponent = as_operand(self), as_operand(other)
    dtype = np.result_type(base.dtype, exponent.dtype, np.float64)
    return base.astype(dtype) ** exponent.astype(dtype)


@composite(np.ldexp, method=False)
def ldexp(self: Any, other: Any) -> Any:
    """The first times two to the power of the second, an integer."""
    base = as_operand(self)
    return base * from_array(np.asarray(np.exp2(np.asarray(plain(as_operand(other)), dtype=float)))).astype(
        np.result_type(base.dtype, np.float16)
    )


def modf(x: Any, *, out: Any = None) -> tuple[Any, Any]:
    """The fractional and the integer part; the gradient goes to the fractional one."""
    x = as_operand(x)
    whole = np.trunc(x)
    fraction = x - whole
    if out is not None:
        return out[0].copy_(fraction), out[1].copy_(whole)
    return fraction, whole


UFUNCS[np.modf, "__call__"] = modf


def matvec(x1: Any, x2: Any) -> Any:
    """The products of matrices and vectors."""
    return (as_operand(x1) @ as_operand(x2)[..., None])[..., 0]


def vecmat(x1: Any, x2: Any) -> Any:
    """The products of conjugated vectors and matrices."""
    return (as_operand(x1).conj()[..., None, :] @ as_operand(x2))[..., 0, :]


for _name, _function in (("matvec", matvec), ("vecmat", vecmat)):
    if hasattr(np, _name):  # NumPy 2.2
        register(getattr(np, _name), _function)


@composite(np.partition, method=False)
def partition(a: Any, kth: Any, axis: int | None = -1) -> Any:
    """A copy with the `kth` value in order at its own place, and lesser ones before it."""
    a = as_operand(a)
    if axis is None:
        a, axis = a.reshape(-1), -1
    order = memory_order(a._array)
    if order != sorted(order):  # so that the result is laid out as NumPy's
        found = partition(a.transpose(order), kth, order.index(axis % a.ndim))
        return found.transpose([order.index(dim) for dim in range(a.ndim)])
    return np.take_along_axis(a, np.argpartition(plain(a), kth, axis), axis)


def i0_vector(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return OPERATORS["i0"].function(x)


if "i0" in OPERATORS:  # with SciPy
    FUNCTIONS[np.i0] = i0_vector


# -- methods of ufuncs -------------------------------------------------------------------------------------------------


def _folded(ufunc: np.ufunc) -> dict[str, Callable[..., Any]]:
    """Methods of a ufunc of two arguments, by calling it on one slice after the other."""

    def slices(array: Any, axis: int) -> tuple[Any, ...]:
        parts: tuple[Any, ...] = as_operand(array).unbind(axis)
        return parts

    def reduce(
        array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        array = as_operand(array) if dtype is None else as_operand(array).astype(dtype)
        if where is not True:
            raise TypeError(f"np.{ufunc.__name__}.reduce of tensors takes no where=; choose the elements first")
        ndim = array.ndim
        axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        value = array
        for dim in sorted((dim % ndim for dim in axes), reverse=True):
            parts = list(slices(value, dim))
            if initial is not None and value is array:
                parts.insert(0, as_operand(initial))
            if not parts:
                raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
            value = parts[0]
            for part in parts[1:]:
                value = ufunc(value, part)
            if keepdims:
                value = value.unsqueeze(dim)
        return value if out is None else out.copy_(value)

    def accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        parts = list(slices(array if dtype is None else as_operand(array).astype(dtype), axis))
        for place in range(1, len(parts)):
            parts[place] = ufunc(parts[place - 1], parts[place])
        value = np.stack(parts, axis) if parts else as_operand(array).clone()
        return value if out is None else out.copy_(value)

    return {"reduce": reduce, "accumulate": accumulate}


def _reduceat(ufunc: np.ufunc) -> Callable[..., Any]:
    def reduceat(array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        rows = as_operand(array if dtype is None else as_operand(array).astype(dtype)).moveaxis(axis, 0)
        starts = np.asarray(plain(indices)).tolist()
        ends = [*starts[1:], rows.shape[0]]
        parts = [
            ufunc.reduce(rows[start:end], axis=0) if start < end else rows[start] for start, end in zip(starts, ends)
        ]
        value = np.stack(parts, 0).moveaxis(0, axis)  # type: ignore[attr-defined]
        return value if out is None else out.copy_(value)

    return reduceat


def _at(ufunc: np.ufunc) -> Callable[..., Any]:
    def at(self: Any, indices: Any, values: Any = None) -> None:
        """In place, one place after the other, so that a place that is named twice is written to twice."""
        plain_indices = plain(indices) if isinstance(indices, Tensor) else indices
        places = np.asarray(np.arange(self.size).reshape(self.shape)[plain_indices])
        given = None if values is None else as_operand(values).broadcast_to(places.shape)
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
