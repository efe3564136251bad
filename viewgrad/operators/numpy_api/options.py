"""NumPy's functions with all of NumPy's options, where the operators have fewer."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, UFUNCS, Tensor, as_buffered, from_array, is_scalar
from .. import OPERATORS
from ..composites import choosing
from ..derivatives.helpers import plain
from ..derivatives.matrices.products import cross_of_three
from ..operands import operands
from .dispatch import converted, ufunc_call
from .functions import allclose, isclose
from .ufuncs import as_floating, ldexp, written_to_outs

__all__: list[str] = []

concatenate, conj = OPERATORS["concatenate"].function, OPERATORS["conj"].function
cross_of_vectors = OPERATORS["cross"].function


def _angle(z: Any, deg: bool = False) -> Any:
    found = OPERATORS["angle"].function(z)
    return found * (180 / np.pi) if deg else found


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = as_operand(ary).reshape(-1)
    differences = flat[1:] - flat[:-1]  # raises for bools, unlike diff()
    parts = [
        as_operand(part).reshape(-1).astype(differences.dtype)
        for part in (to_begin, differences, to_end)
        if part is not None
    ]
    return concatenate(parts) if len(parts) > 1 else differences


def _isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    return as_buffered(OPERATORS["isin"].function(element, test_elements, invert=invert))


def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = as_operand(x)
    if copy:
        return OPERATORS["nan_to_num"].function(x, nan, posinf, neginf)
    return x.copy_(OPERATORS["nan_to_num"].function(x, nan, posinf, neginf))


clip_everywhere = FUNCTIONS[np.clip]


def _clip(a: Any, *bounds: Any, where: Any = True, out: Any = None, **options: Any) -> Any:
    """Apply `numpy.clip` where a mask is true; elsewhere `out` is unchanged."""
    if len(bounds) > 2:
        *bounds, out = bounds  # type: ignore[assignment]
    if where is True or where is np._NoValue:
        if out is not None:
            options["out"] = out
        return clip_everywhere(a, *bounds, **options)
    found = clip_everywhere(a, *bounds, **options)
    written: Any = as_buffered(np.zeros_like(found)) if out is None else out
    np.copyto(written, found, where=plain(where))
    return written[()] if out is None and is_scalar(found) else written


einsum_of_inputs = FUNCTIONS[np.einsum]


@functools.wraps(einsum_of_inputs)
def _einsum(*inputs: Any, out: Any = None, dtype: Any = None, **options: Any) -> Any:
    """Implement `numpy.einsum`; the dtype of `out` takes part in determining that of the sums."""
    if out is None and dtype is None:
        return einsum_of_inputs(*inputs, **options)
    if dtype is None and hasattr(out, "dtype"):
        dtype = np.result_type(out.dtype, *(each.dtype for each in inputs if hasattr(each, "dtype")))
    return einsum_of_inputs(*inputs, out=out, dtype=dtype, **options)


def _fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Fill the main diagonal in place with a value, or with several values that are repeated."""
    places = np.arange(a.size).reshape(a.shape)
    marked = np.zeros(a.shape, bool)
    np.fill_diagonal(marked, True, wrap)
    chosen = places[marked]
    values = as_operand(val).reshape(-1)
    if values.size != 1:
        values = values.take(np.arange(chosen.size) % values.size)
    a[np.unravel_index(chosen, a.shape)] = values.reshape(()) if values.size == 1 else values


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """Return the cross product; for two vectors in the plane, only its nonzero component."""
    a, b = as_operand(a), as_operand(b)
    first, second = (axis, axis) if axis is not None else (axisa, axisb)
    if first == second == (axisc if axis is None else axis) == -1 and a.shape[-1:] == b.shape[-1:] == (3,):
        return cross_of_vectors(a, b)
    if a.shape[first] == 3 and b.shape[second] == 3:
        return cross_of_three(a, b, axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)
    a, b = a.moveaxis(first, -1), b.moveaxis(second, -1)
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return as_buffered(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])
    a, b = (each if each.shape[-1] != 2 else np.pad(each, [(0, 0)] * (each.ndim - 1) + [(0, 1)]) for each in (a, b))
    return cross_of_three(a, b, axisc=axisc if axis is None else axis)


def _divmod(first: Any, second: Any, *, out: Any = None, **options: Any) -> Any:
    first, second = operands(*converted(np.divmod, (first, second), **options))
    parts = first // second, first % second
    if out is None:
        return parts
    return written_to_outs(parts, out, "np.divmod")


def _conjugate(x: Any) -> Any:
    """Return the conjugates; bools become integers, since the ufunc has no loop for bools."""
    if type(x) is Tensor and x._array.dtype.kind != "b":
        return conj(x)
    x = as_operand(x)
    return conj(x.astype(np.int8) if x.dtype.kind == "b" else x)


def _frexp(x: Any, *, out: Any = None, **options: Any) -> Any:
    """Return the mantissa and the exponent; the gradient flows to the mantissa, since the exponent is an integer."""
    (x,) = converted(np.frexp, (as_floating(x),), **options)
    parts = _mantissa_and_exponent(x)
    if out is None:
        return parts
    return written_to_outs(parts, out, "np.frexp")


@choosing
def _mantissa_and_exponent(x: Tensor) -> tuple[Any, Any]:
    _, exponents = np.frexp(plain(x))
    return ldexp(x, -exponents), as_operand(np.asarray(exponents))


def _of_infinity(name: str, edge: float) -> Any:
    function = getattr(np, name)

    def infinite(x: Any, out: Any = None) -> Any:
        x = as_operand(x)
        found = x == edge if x.dtype.kind in "biuf" else from_array(function(plain(x)))
        return found if out is None else out.copy_(found.astype(out.dtype))

    return infinite


FUNCTIONS.update(
    {
        np.angle: _angle,
        np.clip: _clip,
        np.cross: _cross,
        np.ediff1d: _ediff1d,
        np.einsum: _einsum,
        np.isin: _isin,
        np.nan_to_num: _nan_to_num,
        np.fill_diagonal: _fill_diagonal,
        np.isneginf: _of_infinity("isneginf", -np.inf),
        np.isposinf: _of_infinity("isposinf", np.inf),
        np.isclose: lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: isclose(a, b, rtol, atol, equal_nan),
        np.allclose: lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: allclose(a, b, rtol, atol, equal_nan),
    }
)
UFUNCS[np.divmod, "__call__"] = _divmod
UFUNCS[np.conjugate, "__call__"] = ufunc_call(_conjugate, np.conjugate)
UFUNCS[np.frexp, "__call__"] = _frexp
setattr(Tensor, "fill_diagonal", _fill_diagonal)  # noqa: B010
