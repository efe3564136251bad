"""Functions that formulas share, for arrays and tensors alike.

Each is written with methods, Python's operators and NumPy's functions, which mean the same for both: so a formula can
be differentiated in its turn.

It is long because it is a collection, which is looked up and not read.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...tensor.observers import array_of
from ...tensor.tensor import Tensor
from ...views.specs import match_spec, sum_to
from ..codegen.compile import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS, formula_function

__all__ = ["conjugated", "places_along_axis", "plain", "reduced_count", "shares_of"]

minimum_reduce: Final[Any] = np.minimum.reduce
SMALL: Final = 4096  # up to so many elements np.broadcast_to, at 1.8 us, costs more than a copy


@formula_function
def zeros_like(value: Any) -> Any:
    """Zeros with the shape and dtype of `value`."""
    return np.zeros_like(value)


@formula_function
def nonzero_or_one(value: Any) -> Any:
    """The value, with 1 in the place of every 0, for a denominator under a numerator that is 0 in the same places."""
    return np.where(value == 0, 1, value)


@formula_function
def flowing(product: Any, grad: Any) -> Any:
    """A product with `grad`; but 0 where `grad` is 0 and the other factor is infinite or no number.

    See Note [Where nothing flows] in docs/notes/declarations.md.
    """
    recorded = isinstance(product, Tensor)
    array = product._array if recorded else product
    if not array.size or not np.isnan(minimum_reduce(array, None)):  # which is no number as soon as one of them is
        return product
    nowhere = np.isnan(array) & ((grad._array if isinstance(grad, Tensor) else grad) == 0)
    if not nowhere.any():
        return product
    if recorded:
        plain(grad)
    return product.masked_fill(nowhere, 0) if recorded else np.where(nowhere, array.dtype.type(0), array)


@formula_function
def still_elements(tangent: Any) -> Any:
    """Where a tangent is 0; None where it is so nowhere."""
    still = tangent._array == 0
    return still if still.any() else None


@formula_function
def keep_still(tangent: Any, still: Any) -> None:
    """In place: 0 where a tangent was 0 before and is not a number now."""
    if still is not None:
        still &= np.isnan(tangent._array)
        if still.any():
            tangent.masked_fill_(still, 0)


def conjugated(value: Any) -> Any:
    """The conjugate of an array or a tensor; a real one itself, which `numpy.conjugate` would copy."""
    return value.conj() if value.dtype.kind == "c" else value


# -- elementwise -------------------------------------------------------------------------------------------------------


@formula_function
def sign_gradient(grad: Any, value: Any, sign: Any) -> Any:
    """The gradient of z / |z|: what of `grad` is at right angles to z, divided by |z|. It is 0 for real numbers."""
    if value.dtype.kind != "c":
        return np.zeros_like(grad)
    scaled = grad / nonzero_or_one(np.abs(value))
    return (scaled - sign * (np.conjugate(sign) * scaled).real) * (value != 0)


@formula_function
def power_slope(base: Any, exponent: Any) -> Any:
    """The derivative of `base ** exponent` with respect to the base; that of the zeroth power is 0 everywhere."""
    if exponent.dtype.kind == "b":
        exponent = exponent.astype(base.dtype)
    if exponent.size == 1 and (exponent != 0).all():
        return exponent * base ** (exponent - 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        power = base ** (exponent - 1.0)
    return exponent * np.where((exponent == 0) & np.logical_not(np.isfinite(power)), 0, power)


@formula_function
def power_log(base: Any, exponent: Any) -> Any:
    """The logarithm of the base of a power, with 0 in the place of minus infinity where 0 ** exponent is finite."""
    if exponent.dtype.kind == "c" != base.dtype.kind:
        base = base.astype(exponent.dtype)
    return np.log(np.where((base == 0) & (exponent.real >= 0), 1, base))


@formula_function
def power_tangent(base: Any, exponent: Any, result: Any, base_tangent: Any, exponent_tangent: Any) -> Any:
    """The tangent of a power; a constant exponent adds nothing, whatever the logarithm of the base may be."""
    log = np.where(exponent_tangent == 0, 0, power_log(np.where(exponent_tangent == 0, 1, base), exponent))
    of_base = flowing(base_tangent * power_slope(base, exponent), base_tangent)
    return of_base + flowing(exponent_tangent * result * log, exponent_tangent)


@formula_function
def over_square(value: Any, other: Any) -> Any:
    """`value / (value**2 + other**2)` without squares, which could overflow; 0 at the origin."""
    length = nonzero_or_one(np.hypot(value, other))
    return value / length / length


@formula_function
def first_chosen(better: Any, first: Any, second: Any) -> Any:
    """Where the first of two values is chosen when NaN is left out: where it is better, or alone."""
    return better | np.isnan(second)


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


# -- reductions --------------------------------------------------------------------------------------------------------


@formula_function
def expand_reduced(grad: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """The gradient of a sum over `axis`, broadcast back to `shape`."""
    if axis is not None and not keepdims and shape:
        reduced = {dim % len(shape) for dim in (axis if isinstance(axis, tuple) else (axis,))}
        grad = grad.reshape([1 if dim in reduced else extent for dim, extent in enumerate(shape)])
    if isinstance(grad, Tensor):
        return grad.broadcast_to(shape)
    if math.prod(shape) > SMALL:
        return np.broadcast_to(grad, shape)
    expanded = np.empty(shape, grad.dtype)
    expanded[...] = grad
    return expanded


formula_function(sum_to)


@formula_function
def reduced_count(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements of an array of `shape` a reduction over `axis` takes together."""
    if axis is None or not shape:
        return math.prod(shape)
    return math.prod(shape[dim] for dim in axis) if isinstance(axis, tuple) else shape[axis]


@formula_function
def twice_or_one(deviation: Any) -> Any:
    """Twice the standard deviation, and 1 where it is 0."""
    return nonzero_or_one(2 * deviation)


@formula_function
def var_slope(value: Any, axis: Any, ddof: float) -> Any:
    """The derivative of the variance."""
    return 2 * (value - value.mean(axis=axis, keepdims=True)) / (reduced_count(value.shape, axis) - ddof)


@formula_function
def exp_shares(value: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """The shares of the elements in the sum of exponentials of which `result` is the logarithm; 0 where that is 0."""
    result = expand_reduced(result, value.shape, axis, keepdims)
    return np.exp(value - np.where(result == -math.inf, 0, result))


@formula_function
def logsumexp_gradient(grad: Any, value: Any, b: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """The gradient of the exponents."""
    if b is None:
        shares = exp_shares(value, result, axis, keepdims)
        return expand_reduced(grad, value.shape, axis, keepdims) * conjugated(shares)
    shape = np.broadcast_shapes(value.shape, b.shape)
    shares = exp_shares(broadcast(value, shape), result, axis, keepdims) * b
    return expand_reduced(grad, shape, axis, keepdims) * conjugated(shares)


@formula_function
def logsumexp_weight_gradient(
    grad: Any, value: Any, b_shape: tuple[int, ...], result: Any, axis: Any, keepdims: bool
) -> Any:
    """The gradient of the factors of the exponentials."""
    shape = np.broadcast_shapes(value.shape, b_shape)
    shares = exp_shares(broadcast(value, shape), result, axis, keepdims)
    return expand_reduced(grad, shape, axis, keepdims) * conjugated(shares)


@formula_function
def logsumexp_tangent(value_t: Any, b_t: Any, value: Any, b: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """The tangent of the logarithm of a sum of exponentials."""
    if b is None:
        return (exp_shares(value, result, axis, keepdims) * value_t).sum(axis=axis, keepdims=keepdims)
    shape = np.broadcast_shapes(value.shape, b.shape)
    shares = exp_shares(broadcast(value, shape), result, axis, keepdims)
    return (shares * (b * value_t + b_t)).sum(axis=axis, keepdims=keepdims)


def broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    """An array or a tensor in a shape that it can be broadcast to."""
    return value if value.shape == shape else np.broadcast_to(value, shape)


@formula_function
def tie_shares(value: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """The share of each element in the extremum `result` over `axis`: the elements equal to it share equally.

    Where the extremum is not a number, those elements share that are not numbers.
    """
    return shares_of(value == expand_reduced(result, value.shape, axis, keepdims), value, axis)


def shares_of(hit: Any, value: Any, axis: Any) -> Any:
    """The share of each element that is chosen, where no element is chosen of each that is not a number."""
    counts = hit.sum(axis=axis, keepdims=True)
    if not (counts._array if isinstance(counts, Tensor) else counts).all():
        plain(counts)
        hit = hit | ((counts == 0) & np.isnan(value))
        counts = np.maximum(hit.sum(axis=axis, keepdims=True), 1)
    return (hit / counts).astype(value.dtype)


@formula_function
def norm_direction(value: Any, result: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """The derivative of the norm `result` of `value`, and 0 where the norm is 0."""
    if order == 0:
        return np.zeros_like(value)
    if order == 1:
        return np.sign(value)
    if abs(order) == math.inf:
        # Of the same magnitudes, since those of complex numbers are rounded in one layout otherwise than in another.
        magnitude = np.abs(value)
        extremum = (magnitude.max if order > 0 else magnitude.min)(axis=axis, keepdims=True)
        return np.sign(value) * shares_of(magnitude == extremum, magnitude, axis)
    length = expand_reduced(result, value.shape, axis, keepdims)
    length, norm = nonzero_or_one(length), length
    if order == 2:
        return value / length
    magnitude = np.abs(value)
    slope = np.sign(value) * ((magnitude if order > 1 else nonzero_or_one(magnitude)) / length) ** (order - 1)
    if order < 0:  # then a norm is 0 as soon as one of the elements is, whatever the others are
        slope = np.where(norm == 0, 0, slope)
    return slope


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
    axes = tuple(range(value.ndim)) if axis is None or not value.ndim else axis if isinstance(axis, tuple) else (axis,)
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
    return np.flip(call("linear_scan", np.flip(grad, axis), factors, axis), axis)


@formula_function
def cumprod_gradient(grad: Any, value: Any, result: Any, axis: Any) -> Any:
    """The gradient of running products; no division, so zeros do no harm."""
    along = 0 if axis is None else axis
    lanes = value.reshape(result.shape)
    return (reversed_scan(grad, lanes, along) * np.conjugate(shifted(result, along, 1))).reshape(value.shape)


@formula_function
def cumprod_tangent(value: Any, result: Any, tangent: Any, axis: Any) -> Any:
    """The tangent of running products."""
    along = 0 if axis is None else axis
    inputs = shifted(result, along, 1) * tangent.reshape(result.shape)
    return call("linear_scan", inputs, value.reshape(result.shape), along)


# -- dtypes ------------------------------------------------------------------------------------------------------------


@formula_function
def as_dtype(grad: Any, dtype: np.dtype[Any]) -> Any:
    """The gradient in another dtype; its real part where that is real."""
    return match_spec(grad, (grad.shape, dtype))


# -- joining and moving ------------------------------------------------------------------------------------------------


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
    return np.roll(grad, -shift if isinstance(shift, (int, np.integer)) else tuple(-int(n) for n in shift), axis)


@formula_function
def unstack_gradient(grad: Any, axis: int) -> list[Any]:
    """The parts of the gradient of stacked tensors that belong to each of them."""
    axis %= grad.ndim
    return [grad[(*(slice(None),) * axis, i, ...)] for i in range(grad.shape[axis])]


@formula_function
def tile_gradient(grad: Any, shape: tuple[int, ...], reps: Any) -> Any:
    """The sum over the tiles."""
    reps = tuple(np.atleast_1d(reps).tolist())
    ndim = max(len(reps), len(shape))
    reps = (1,) * (ndim - len(reps)) + reps
    extents = (1,) * (ndim - len(shape)) + shape
    tiled = [length for pair in zip(reps, extents) for length in pair]
    return grad.reshape(tuple(tiled)).sum(axis=tuple(range(0, 2 * ndim, 2))).reshape(shape)


@formula_function
def repeat_gradient(grad: Any, repeats: Any, shape: tuple[int, ...], axis: int | None) -> Any:
    """The sum over the repetitions."""
    lanes = (math.prod(shape),) if axis is None or not shape else shape
    along = 0 if axis is None or not shape else axis % len(shape)
    counts = plain(repeats)
    if counts.size == 1:
        count = int(counts.item())
        grad = grad.reshape((*lanes[: along + 1], count, *lanes[along + 1 :])).sum(axis=along + 1)
    else:
        places = (slice(None),) * along + (np.repeat(np.arange(lanes[along]), counts),)
        grad = call("scatter_into_zeros", grad, places, lanes)
    return grad.reshape(shape)


@formula_function
def pad_gradient(grad: Any, shape: tuple[int, ...], pad_width: Any, mode: str) -> Any:
    """The gradient of what is inside the margin, and of the elements that the margin repeats."""
    if mode == "constant":
        widths = np.broadcast_to(np.asarray(pad_width, int), (len(shape), 2)) if shape else ()
        return grad[tuple(slice(int(before), int(before) + extent) for (before, _), extent in zip(widths, shape))]
    places = np.pad(np.arange(math.prod(shape)).reshape(shape), pad_width, mode)  # type: ignore[call-overload]
    return call("scatter_into_zeros", grad, (places,), (math.prod(shape),)).reshape(shape)


# -- selection ---------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """The array of an index or mask, whether it is wrapped in a tensor or not."""
    return array_of(value, "the formula of a gradient") if isinstance(value, Tensor) else np.asarray(value)


def call(name: str, value: Any, *args: Any) -> Any:
    """The operator `name`: on a tensor itself, on an array what it computes."""
    if isinstance(value, Tensor):
        return getattr(TENSOR_FUNCTIONS, name)(value, *args)
    return getattr(ARRAY_FUNCTIONS, name)(value, *args)


@formula_function
def take_gradient(grad: Any, indices: Any, shape: tuple[int, ...], axis: int | None, mode: str) -> Any:
    """The gradient added to the places that were taken."""
    lanes = (math.prod(shape),) if axis is None else shape
    along = 0 if axis is None else axis % len(shape)
    places = plain(indices).astype(np.intp)  # NumPy takes bools for 0 and 1 here
    if mode == "wrap":
        places = places % lanes[along]
    elif mode == "clip":
        places = np.clip(places, 0, lanes[along] - 1)
    return call("scatter_into_zeros", grad, (slice(None),) * along + (places,), lanes).reshape(shape)


@formula_function
def take_along_axis_gradient(grad: Any, indices: Any, shape: tuple[int, ...], axis: int | None) -> Any:
    """The gradient added to the places that were taken."""
    lanes = (math.prod(shape),) if axis is None else shape
    places = places_along_axis(plain(indices), 0 if axis is None else axis, lanes)
    return call("scatter_into_zeros", grad, places, lanes).reshape(shape)


def places_along_axis(indices: Any, axis: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index by which `numpy.take_along_axis` takes, and `numpy.put_along_axis` puts."""
    if indices.dtype.kind not in "iu" or indices.ndim != len(shape):
        raise IndexError(
            f"along an axis of shape {shape} one indexes with integers in {len(shape)} dimensions, "
            f"not with {indices.dtype} in {indices.ndim}"
        )
    places: list[Any] = list(np.ogrid[tuple(slice(extent) for extent in shape)])
    places[axis % len(shape)] = indices
    return tuple(places)


@formula_function
def scatter_winners(indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Which of the values that are put along an axis stay: the last of several for one place."""
    indices = plain(indices)
    places = places_along_axis(indices, axis, shape)
    numbers = np.empty(shape, int)[places]
    numbers = np.arange(numbers.size).reshape(numbers.shape)
    last = np.empty(shape, int)
    last[places] = numbers
    return last[places] == numbers


@formula_function
def sort_gradient(grad: Any, value: Any, axis: int | None) -> Any:
    """The gradient of each element from the place that sorting gave it."""
    shape = value.shape
    if axis is None:
        value, axis = value.reshape(-1), -1
    places = np.argsort(np.argsort(plain(value), axis, stable=True), axis)
    return np.take_along_axis(grad, places, axis).reshape(shape)
