"""Functions that formulas share, for arrays and tensors alike.

Each is written with methods, Python's operators and NumPy's functions, which mean the same for both: so a formula can be
differentiated in its turn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...views.conform import conform
from .codegen import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS, formula_function

__all__: list[str] = []


@formula_function
def zeros_like(value: Any) -> Any:
    """Zeros with the shape and dtype of `value`."""
    return np.zeros_like(value)


@formula_function
def nonzero_or_one(value: Any) -> Any:
    """The value, with 1 in the place of every 0, for a denominator under a numerator that is 0 in the same places."""
    return np.where(value == 0, 1, value)


# -- elementwise -----------------------------------------------------------------------------------------------------------


@formula_function
def sign_gradient(grad: Any, value: Any, sign: Any) -> Any:
    """The gradient of z / |z|: what of `grad` is at right angles to z, divided by |z|. It is 0 for real numbers."""
    if value.dtype.kind != "c":
        return np.zeros_like(grad)
    scaled = grad / nonzero_or_one(np.abs(value))
    return (scaled - sign * (np.conjugate(sign) * scaled).real) * (value != 0)


@formula_function
def power_slope(base: Any, exponent: Any) -> Any:
    """The derivative of `base ** exponent` with respect to the base; that of the zeroth power is 0 also at 0."""
    if exponent.size == 1 and exponent.item() != 0:
        return exponent * base ** (exponent - 1.0)
    return exponent * base ** np.where((base == 0) & (exponent == 0), 1, exponent - 1.0)


@formula_function
def power_log(base: Any, exponent: Any) -> Any:
    """The logarithm of the base of a power, with 0 in the place of minus infinity where 0 ** exponent is finite."""
    return np.log(np.where((base == 0) & (exponent.real >= 0), 1, base))


@formula_function
def power_tangent(base: Any, exponent: Any, result: Any, base_tangent: Any, exponent_tangent: Any) -> Any:
    """The tangent of a power; a constant exponent adds nothing, whatever the logarithm of the base may be."""
    log = np.where(exponent_tangent == 0, 0, power_log(np.where(exponent_tangent == 0, 1, base), exponent))
    return base_tangent * power_slope(base, exponent) + exponent_tangent * result * log


@formula_function
def over_square(value: Any, other: Any) -> Any:
    """`value / (value**2 + other**2)`, which neither overflows nor underflows before its time, and is 0 at the origin."""
    length = nonzero_or_one(np.hypot(value, other))
    return value / length / length


@formula_function
def outside(value: Any, low: Any, high: Any) -> Any:
    """Where a value is clipped."""
    if low is None or high is None:
        return False if high is low else value > high if low is None else value < low
    return (value < low) | (value > high)


@formula_function
def not_below(value: Any, low: Any, high: Any) -> Any:
    """Where a clipped value is not the lower bound."""
    return value >= low if high is None else (value >= low) | (low >= high)


@formula_function
def not_above(value: Any, low: Any, high: Any) -> Any:
    """Where a clipped value is not the upper bound."""
    return value <= high if low is None else (value <= high) & (low <= high)


@formula_function
def clip_tangent(value: Any, low: Any, high: Any, tangent: Any, low_tangent: Any, high_tangent: Any) -> Any:
    """The tangent of a clipped value: that of the value or of the bound that it was clipped to."""
    result = np.where(outside(value, low, high), 0, tangent)
    if low is not None:
        result = result + np.where(not_below(value, low, high), 0, low_tangent)
    if high is not None:
        result = result + np.where(not_above(value, low, high), 0, high_tangent)
    return result


# -- reductions ------------------------------------------------------------------------------------------------------------


@formula_function
def expand_reduced(grad: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """The gradient of a sum over `axis`, broadcast back to `shape`."""
    if axis is not None and not keepdims:
        axes = axis if isinstance(axis, tuple) else (axis,)
        axes = {dim % len(shape) for dim in axes} if shape else set()
        grad = grad.reshape([1 if dim in axes else extent for dim, extent in enumerate(shape)])
    if isinstance(grad, (np.ndarray, np.generic)):
        if axis is None:  # one number; built by hand, which takes a tenth of the time of broadcast_to
            return np.ndarray(shape, grad.dtype, grad, 0, (0,) * len(shape))
        return np.broadcast_to(grad, shape)
    return grad.broadcast_to(shape)


@formula_function
def reduced_count(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements of an array of `shape` a reduction over `axis` takes together."""
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[dim] for dim in axis) if isinstance(axis, tuple) else shape[axis]


@formula_function
def finite_below(value: Any) -> Any:
    """The value, with 0 in the place of minus infinity."""
    return np.where(value == -np.inf, 0, value)


@formula_function
def tie_shares(value: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """Of each element, its share in the extremum `result` over `axis`: the elements equal to it share equally."""
    hit = value == expand_reduced(result, value.shape, axis, keepdims)
    return (hit / hit.sum(axis=axis, keepdims=True)).astype(value.dtype)


@formula_function
def norm_direction(value: Any, result: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """The derivative of the norm `result` of `value`, and 0 where the norm is 0."""
    if order == 0:
        return np.zeros_like(value)
    if order == 1:
        return np.sign(value)
    if abs(order) == math.inf:
        return np.sign(value) * tie_shares(np.abs(value), result, axis, keepdims)
    length = nonzero_or_one(expand_reduced(result, value.shape, axis, keepdims))
    if order == 2:
        return value / length
    magnitude = np.abs(value)
    return np.sign(value) * ((magnitude if order > 1 else nonzero_or_one(magnitude)) / length) ** (order - 1)


@formula_function
def reversed_cumsum(grad: Any, axis: Any) -> Any:
    """The running sums from the end."""
    axis = 0 if axis is None else axis
    return np.flip(np.cumsum(np.flip(grad, axis), axis), axis)


@formula_function
def shifted(value: Any, axis: Any, first: float) -> Any:
    """Each element's predecessor along `axis`, and `first` for those that have none."""
    axis = 0 if axis is None else axis % value.ndim
    before = (slice(None),) * axis
    return np.concatenate([np.full_like(value[(*before, slice(1))], first), value[(*before, slice(-1))]], axis)


@formula_function
def products_of_others(value: Any, axis: Any) -> Any:
    """For each element the product of all others that are multiplied with it; no division, so zeros do no harm."""
    axes = tuple(range(value.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    ends = tuple(range(-len(axes), 0))
    moved = np.moveaxis(value, axes, ends) if axes else value
    kept = moved.shape[: value.ndim - len(axes)]
    lanes = moved.reshape((*kept, math.prod(moved.shape[len(kept) :])))
    before = shifted(np.cumprod(lanes, -1), -1, 1)
    after = np.flip(shifted(np.cumprod(np.flip(lanes, -1), -1), -1, 1), -1)
    products = (before * after).reshape(moved.shape)
    return np.moveaxis(products, ends, axes) if axes else products


@formula_function
def reversed_scan(grad: Any, coefficients: Any, axis: int) -> Any:
    """The gradient of a linear recurrence with respect to its inputs: a recurrence that runs from the end."""
    factors = np.roll(np.flip(np.conjugate(coefficients), axis), 1, axis)
    if isinstance(grad, np.ndarray):
        return np.flip(ARRAY_FUNCTIONS["linear_scan"](np.flip(grad, axis), factors, axis), axis)
    return np.flip(TENSOR_FUNCTIONS.linear_scan(np.flip(grad, axis), factors, axis), axis)


@formula_function
def cumprod_gradient(grad: Any, value: Any, result: Any, axis: Any) -> Any:
    """The gradient of running products; no division, so zeros do no harm."""
    lanes = value.reshape(result.shape)
    along = 0 if axis is None else axis
    return (reversed_scan(grad, lanes, along) * np.conjugate(shifted(result, along, 1))).reshape(value.shape)


# -- dtypes ----------------------------------------------------------------------------------------------------------------


@formula_function
def as_dtype(grad: Any, dtype: np.dtype[Any]) -> Any:
    """The gradient in another dtype; its real part where that is real."""
    return conform(grad, (grad.shape, dtype))


# -- products --------------------------------------------------------------------------------------------------------------


@formula_function
def matmul_left(grad: Any, other: Any, ndim: int) -> Any:
    """The gradient of the left factor of a matrix product, before the sum over broadcast dimensions."""
    other = np.conjugate(other)
    if other.ndim == 1:
        return grad[..., None] * other
    if ndim == 1:
        return (grad[..., None, :] @ other.mT)[..., 0, :]
    return grad @ other.mT


@formula_function
def matmul_right(grad: Any, other: Any, ndim: int) -> Any:
    """The gradient of the right factor of a matrix product, before the sum over broadcast dimensions."""
    other = np.conjugate(other)
    if other.ndim == 1:
        return other * grad if ndim == 1 else other[:, None] * grad[..., None, :]
    if ndim == 1:
        return (other.mT @ grad[..., None])[..., 0]
    if ndim == 2 and other.ndim > 2:  # a sum over the stack, which one product of matrices does
        return other.reshape((-1, other.shape[-1])).mT @ grad.reshape((-1, grad.shape[-1]))
    return other.mT @ grad


# -- joining and moving ----------------------------------------------------------------------------------------------------


@formula_function
def split_gradient(grad: Any, shapes: list[tuple[int, ...]], axis: int | None) -> list[Any]:
    """The parts of the gradient of joined tensors that belong to each of them."""
    if axis is None:
        parts = split_gradient(grad, [(math.prod(shape),) for shape in shapes], 0)
        return [part.reshape(shape) for part, shape in zip(parts, shapes)]
    axis %= grad.ndim
    before = (slice(None),) * axis
    parts = []
    start = 0
    for shape in shapes:
        parts.append(grad[(*before, slice(start, start + shape[axis]))])
        start += shape[axis]
    return parts


@formula_function
def roll_back(grad: Any, shift: Any, axis: Any) -> Any:
    """Rolled the other way."""
    return np.roll(grad, tuple(-n for n in shift) if isinstance(shift, tuple) else -shift, axis)
