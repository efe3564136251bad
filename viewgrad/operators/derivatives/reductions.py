"""The derivatives of reductions: sums, products, extrema and norms, and of cumulative sums and products."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...tensor.masked_backward import MASKED_RUNS, is_masked_run
from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import observed
from ...type_aliases import Array
from ...views.unbroadcast import sum_to
from ..define import row
from ..language.namespace import compiled_as, formula_function
from ..language.spec import Decomposition
from .helpers import SMALL, call, conjugated, flowing, nonzero_or_one, plain

__all__: list[str] = []

LINEAR: Final = "auto_linear"
NOT: Final = {"self": "not_differentiable"}
add_reduce: Final[Any] = np.add.reduce
multiply_reduce: Final[Any] = np.multiply.reduce
maximum_reduce: Final[Any] = np.maximum.reduce
minimum_reduce: Final[Any] = np.minimum.reduce

# -- sums --------------------------------------------------------------------------------------------------------------


def mean_forward(self: Array, axis: Any = None, keepdims: bool = False) -> Any:
    if self.dtype.kind not in "fc" or self.dtype.itemsize == 2:
        return np.mean(self, axis=axis, keepdims=keepdims)
    return add_reduce(self, axis, None, None, keepdims) / reduced_count(self.shape, axis)


def logsumexp_forward(self: Array, axis: Any = None, keepdims: bool = False, b: Array | None = None) -> Any:
    counted = self if b is None else np.where(b == 0, -math.inf, self)
    greatest = np.max(counted.real, axis=axis, keepdims=True, initial=-math.inf)
    greatest = np.where(np.isfinite(greatest), greatest, 0)
    with np.errstate(divide="ignore"):
        terms = np.exp(counted - greatest) if b is None else np.exp(counted - greatest) * b
        result = np.log(np.sum(terms, axis=axis, keepdims=True)) + greatest
    return result if keepdims else result.squeeze(axis)


row(
    "sum(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: add_reduce(self, axis, None, None, keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims)"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.sum, (np.add, "reduce")],
    doc="The sum of all elements, or of those along `axis`.",
)
row(
    "mean(self, axis=None, keepdims=False)", mean_forward,
    {"self": "expand_reduced(grad / reduced_count(self.shape, axis), self.shape, axis, keepdims)"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.mean],
    doc="The arithmetic mean of all elements, or of those along `axis`.",
    decomposition=Decomposition("sum(self, axis, True) / reduced_count(self.shape, axis)", uses_chain_rule=True),
)
row(
    "var(self, axis=None, ddof=0, keepdims=False)",
    lambda self, axis=None, ddof=0, keepdims=False: np.var(self, axis=axis, ddof=ddof, keepdims=keepdims),
    {"self": "times_reduced(var_slope(self, axis, ddof), grad, axis, keepdims)"},
    forward_derivative="sum((conj(var_slope(self_p, axis, ddof)) * self_t).real, axis, keepdims)",
    dtype_kinds="fc", numpy=[np.var],
    doc="The variance, with `ddof` subtracted from the number of elements.",
    decomposition="sum(square(self - mean(self, axis, True)), axis, True) / (reduced_count(self.shape, axis) - ddof)",
)
row(
    "std(self, axis=None, ddof=0, keepdims=False)",
    lambda self, axis=None, ddof=0, keepdims=False: np.std(self, axis=axis, ddof=ddof, keepdims=keepdims),
    {"self": "times_reduced(std_slope(self, result, axis, ddof), grad, axis, keepdims)"},
    forward_derivative="sum((conj(std_slope(self_p, result, axis, ddof)) * self_t).real, axis, keepdims)",
    dtype_kinds="fc", numpy=[np.std],
    doc="The standard deviation; gradient 0 if it is 0, or if all values are equal.",
    decomposition="sqrt(var(self, axis, ddof, True))",
)
row(
    "logsumexp(self, axis=None, keepdims=False, b=None)", logsumexp_forward,
    {
        "self": "logsumexp_gradient(grad, self, b, result, axis, keepdims)",
        "b": "logsumexp_weight_gradient(grad, self, b.shape, result, axis, keepdims)",
    },
    forward_derivative="logsumexp_tangent(self_t, b_t, self_p, b_p, result, axis, keepdims)", dtype_kinds="fc",
    doc="log(sum(b * exp(self))), without overflow; `b` is 1 if omitted.",
    decomposition="log_of_sum(sum(exp(self - finite_or_zero(max(self, axis, True))), axis, True)) "
    "+ finite_or_zero(max(self, axis, True))",
)
row(
    "cumsum(self, axis=None)", lambda self, axis=None: np.cumsum(self, axis),
    {"self": "reversed_cumsum(grad, axis).reshape(self.shape)"},
    forward_derivative=LINEAR, dtype_kinds="fc", numpy=[np.cumsum, (np.add, "accumulate")],
    doc="The cumulative sums along `axis`, or of the flattened tensor.",
)

# -- products ----------------------------------------------------------------------------------------------------------


def linear_scan_forward(self: Array, coefficients: Array, axis: int = -1) -> Array:
    if coefficients.shape != self.shape:
        raise ValueError(
            f"a scan of shape {self.shape} requires coefficients of the same shape, not {coefficients.shape}"
        )
    inputs, factors = np.moveaxis(self, axis, 0), np.moveaxis(coefficients, axis, 0)
    return np.moveaxis(scanned(inputs, factors), 0, axis).copy()


def scanned(inputs: Array, factors: Array) -> Array:
    """Solve `y[i] = inputs[i] + factors[i] * y[i - 1]` by recursive halving: linear work in a logarithmic number of
    steps.
    """
    if len(inputs) < 2:
        return inputs
    odd = scanned(inputs[1::2] + factors[1::2] * inputs[:-1:2], factors[1::2] * factors[:-1:2])
    out = np.empty(inputs.shape, odd.dtype)
    out[0] = inputs[0]
    out[1::2] = odd
    out[2::2] = inputs[2::2] + factors[2::2] * odd[: (len(inputs) - 1) // 2]
    return out


row(
    "prod(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: multiply_reduce(self, axis, None, None, keepdims),
    {"self": "times_reduced(conj(products_of_others(self, axis)), grad, axis, keepdims)"},
    forward_derivative="sum(products_of_others(self_p, axis) * self_t, axis, keepdims)",
    dtype_kinds="fc", numpy=[np.prod, (np.multiply, "reduce")],
    doc="The product of all elements, or of those along `axis`; its gradient is exact even if some elements are 0.",
)
row(
    "cumprod(self, axis=None)", lambda self, axis=None: np.cumprod(self, axis),
    {"self": "cumprod_gradient(grad, self, result, axis)"},
    forward_derivative="cumprod_tangent(self_p, result, self_t, axis)",
    dtype_kinds="fc", numpy=[np.cumprod, (np.multiply, "accumulate")],
    zero_in_masked_runs=True,
    doc="The cumulative products along `axis`, or of the flattened tensor; the gradient is exact even if some "
    "elements are 0.",
)
row(
    "linear_scan(self, coefficients, axis=-1)", linear_scan_forward,
    {
        "self": "reversed_scan(grad, coefficients, axis)",
        "coefficients": "reversed_scan(grad, coefficients, axis) * conj(shifted(result, axis, 0))",
    },
    forward_derivative="linear_scan(self_t + coefficients_t * shifted(result, axis, 0), coefficients_p, axis)",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The recurrence `y[i] = self[i] + coefficients[i] * y[i - 1]` along `axis`, from `y[0] = self[0]`.",
)

# -- extrema and norms -------------------------------------------------------------------------------------------------

row(
    "max(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: maximum_reduce(self, axis, None, None, keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * tie_shares(self, result, axis, keepdims)"},
    forward_derivative="sum(tie_shares(self_p, result, axis, keepdims) * self_t, axis, keepdims)",
    dtype_kinds="fc", numpy=[np.max, np.amax, (np.maximum, "reduce")],
    doc="The maximum of all elements, or of those along `axis`; ties share the gradient equally.",
    decomposition="max(self, axis, True)",
)
row(
    "min(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: minimum_reduce(self, axis, None, None, keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * tie_shares(self, result, axis, keepdims)"},
    forward_derivative="sum(tie_shares(self_p, result, axis, keepdims) * self_t, axis, keepdims)",
    dtype_kinds="fc", numpy=[np.min, np.amin, (np.minimum, "reduce")],
    doc="The minimum of all elements, or of those along `axis`; ties share the gradient equally.",
    decomposition="min(self, axis, True)",
)
row(
    "vector_norm(self, ord=2, axis=None, keepdims=False)",
    lambda self, ord=2, axis=None, keepdims=False: np.linalg.vector_norm(self, ord=ord, axis=axis, keepdims=keepdims),
    {"self": "times_reduced(norm_direction(self, result, ord, axis, keepdims), grad, axis, keepdims)"},
    forward_derivative="sum((conj(norm_direction(self_p, result, ord, axis, keepdims)) * self_t).real, axis, keepdims)",
    dtype_kinds="fc", numpy=[np.linalg.vector_norm],
    doc="The norm of order `ord` of all elements, or of the vectors along `axis`; gradient 0 where the norm is 0.",
    decomposition="sqrt(sum(square(self), axis, True)) if ord == 2 else sum(abs(self), axis, True) if ord == 1 "
    "else max(abs(self), axis, True) if ord == inf else min(abs(self), axis, True) if ord == -inf else None",
)

# -- tests and counts, which have no gradient --------------------------------------------------------------------------

row(
    "all(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: np.all(self, axis=axis, keepdims=keepdims), NOT,
    numpy=[np.all, (np.logical_and, "reduce")], doc="Test whether all elements are true.",
)
row(
    "any(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: np.any(self, axis=axis, keepdims=keepdims), NOT,
    numpy=[np.any, (np.logical_or, "reduce")], doc="Test whether any element is true.",
)
row(
    "count_nonzero(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: np.count_nonzero(self, axis=axis, keepdims=keepdims), NOT,
    numpy=[np.count_nonzero], doc="The number of elements that are not 0.",
)

# -- functions of formulas ---------------------------------------------------------------------------------------------


@formula_function
def expand_reduced(grad: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """Return the gradient of a sum over `axis`, broadcast back to `shape`."""
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


@formula_function
@compiled_as("grad * slope")
def times_reduced(slope: Any, grad: Any, axis: Any, keepdims: bool) -> Any:
    """Return the gradient of a reduction over `axis`, broadcast back, times a slope; see tensor/masked_backward.py."""
    grad = expand_reduced(grad, slope.shape, axis, keepdims)
    if MASKED_RUNS.any and is_masked_run() and observed() is None:
        with np.errstate(invalid="ignore"):
            return flowing(grad * slope, grad)
    return grad * slope


formula_function(sum_to)


@formula_function
def reduced_count(shape: tuple[int, ...], axis: Any) -> int:
    """Return the number of elements that a reduction over `axis` of an array with the given shape combines."""
    if axis is None or not shape:
        return math.prod(shape)
    return math.prod(shape[dim] for dim in axis) if isinstance(axis, tuple) else shape[axis]


@formula_function
@compiled_as("(value - mean(value, axis, True)) * (2 / (reduced_count(value.shape, axis) - ddof))")
def var_slope(value: Any, axis: Any, ddof: float) -> Any:
    """Return the derivative of the variance."""
    return 2 * (value - value.mean(axis=axis, keepdims=True)) / (reduced_count(value.shape, axis) - ddof)


@formula_function
@compiled_as(
    "(value - mean(value, axis, True)) * (0 if max(value, axis, True) == min(value, axis, True) "
    "else 1 / ((reduced_count(value.shape, axis) - ddof) * nonzero_or_one(result)))"
)
def std_slope(value: Any, result: Any, axis: Any, ddof: float) -> Any:
    """Return the derivative of the standard deviation; 0 if all values are equal, regardless of rounding of the mean.
    """
    mean = value.mean(axis=axis, keepdims=True)
    degrees = reduced_count(value.shape, axis) - ddof
    deviation = result.reshape(mean.shape)
    factor = 1 / (degrees * nonzero_or_one(deviation))
    if isinstance(value, Tensor) or not (deviation > rounding_of(mean, value, degrees)).all():
        same = (value == value[tuple(slice(length) for length in mean.shape)]).all(axis=axis, keepdims=True)
        factor = np.where(same, 0, factor)
    return (value - mean) * (factor if axis is not None else factor.reshape(())[()])  # multiplied by a number in place


def rounding_of(mean: Any, value: Array, degrees: float) -> Any:
    """Return a bound on the rounding error of the deviations of equal values."""
    count = value.size // max(mean.size, 1)
    return np.finfo(value.dtype).eps * count * (count / degrees) ** 0.5 * abs(mean) if degrees > 0 else math.inf


@formula_function
@compiled_as(
    "exp(value - (0 if result == -inf else result)) if value != inf "
    "else 1 if sum(infinite(value), axis, True) == 1 else nan"
)
def exp_shares(value: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """Return the share of each element in the sum of exponentials whose logarithm is `result`.

    The shares are 0 if the sum is 0. A single infinite exponent has the share 1; several infinite exponents have none.
    """
    result = expand_reduced(result, value.shape, axis, keepdims)
    shares = np.exp(value - np.where(result == -math.inf, 0, result))
    infinite = value.real == math.inf
    if not (infinite._array if isinstance(infinite, Tensor) else infinite).any():
        return shares
    plain(infinite)
    alone = infinite.sum(axis=axis, keepdims=True) == 1
    return np.where(infinite, np.where(alone, 1.0, math.nan), shares)


@formula_function
@compiled_as("flowing(grad * exp_shares(value, result, axis, keepdims), grad) if b is None else None")
def logsumexp_gradient(grad: Any, value: Any, b: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """Return the gradient with respect to the exponents."""
    if b is None:
        shares = exp_shares(value, result, axis, keepdims)
    else:
        shares = exp_shares(broadcast(value, np.broadcast_shapes(value.shape, b.shape)), result, axis, keepdims) * b
    grad = expand_reduced(grad, shares.shape, axis, keepdims)
    return flowing(grad * conjugated(shares), grad)


@formula_function
def logsumexp_weight_gradient(
    grad: Any, value: Any, b_shape: tuple[int, ...], result: Any, axis: Any, keepdims: bool
) -> Any:
    """Return the gradient with respect to the factors of the exponentials."""
    shape = np.broadcast_shapes(value.shape, b_shape)
    shares = exp_shares(broadcast(value, shape), result, axis, keepdims)
    grad = expand_reduced(grad, shape, axis, keepdims)
    return flowing(grad * conjugated(shares), grad)


@formula_function
def logsumexp_tangent(value_t: Any, b_t: Any, value: Any, b: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """Return the tangent of the logarithm of a sum of exponentials."""
    if b is None:
        product = exp_shares(value, result, axis, keepdims) * value_t
        return flowing(product, value_t).sum(axis=axis, keepdims=keepdims)
    shape = np.broadcast_shapes(value.shape, b.shape)
    shares = exp_shares(broadcast(value, shape), result, axis, keepdims)
    tangent = b * value_t + b_t
    return flowing(shares * tangent, tangent).sum(axis=axis, keepdims=keepdims)


def broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    """Return an array or a tensor in a shape that it can be broadcast to."""
    return value if value.shape == shape else np.broadcast_to(value, shape)


@formula_function
@compiled_as("tie_hit(value, result) / sum(tie_hit(value, result), axis, True)")
def tie_shares(value: Any, result: Any, axis: Any, keepdims: bool) -> Any:
    """Return the share of each element in the extremum `result` over `axis`; equal extrema share equally.

    If the extremum is NaN, the NaN elements share the gradient.
    """
    return shares_of(value == expand_reduced(result, value.shape, axis, keepdims), value, axis)


def shares_of(hit: Any, value: Any, axis: Any) -> Any:
    """Return the share of each selected element or, if no element is selected, of each NaN."""
    counts = hit.sum(axis=axis, keepdims=True)
    if not (counts._array if isinstance(counts, Tensor) else counts).all():
        plain(counts)
        hit = hit | ((counts == 0) & np.isnan(value))
        counts = np.maximum(hit.sum(axis=axis, keepdims=True), 1)
    return (hit / counts).astype(value.dtype)


@formula_function
@compiled_as(
    "value / nonzero_or_one(result) if order == 2 else sign(value) if order == 1 "
    "else sign(value) * tie_shares(abs(value), result, axis, keepdims)"
)
def norm_direction(value: Any, result: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """Return the derivative of the norm `result` of `value`, which is 0 where the norm is 0."""
    if order == 0:
        return np.zeros_like(value)
    if order == 1:
        return np.sign(value)
    if abs(order) == math.inf:
        # Computed from the same magnitudes, since their rounding for complex numbers depends on the memory layout.
        magnitude = np.abs(value)
        if not magnitude.size:
            return np.zeros_like(value)
        extremum = (magnitude.max if order > 0 else magnitude.min)(axis=axis, keepdims=True)
        return np.sign(value) * shares_of(magnitude == extremum, magnitude, axis)
    length = expand_reduced(result, value.shape, axis, keepdims)
    length, norm = nonzero_or_one(length), length
    if order == 2:
        return value / length
    magnitude = np.abs(value)
    slope = np.sign(value) * ((magnitude if order > 1 else nonzero_or_one(magnitude)) / length) ** (order - 1)
    if order < 0:  # in this case a norm is 0 if any element is 0
        slope = np.where(norm == 0, 0, slope)
    return slope


@formula_function
def reversed_cumsum(grad: Any, axis: Any) -> Any:
    """Return the reverse cumulative sums."""
    axis = 0 if axis is None else axis
    return np.flip(np.cumsum(np.flip(grad, axis), axis), axis)


@formula_function
def shifted(value: Any, axis: Any, first: float) -> Any:
    """Return each element's predecessor along `axis`, with `first` for the first elements."""
    axis = 0 if axis is None else axis % value.ndim
    before = (slice(None),) * axis
    return np.concatenate([np.full_like(value[(*before, slice(1))], first), value[(*before, slice(-1))]], axis)


@formula_function
def products_of_others(value: Any, axis: Any) -> Any:
    """Return, for each element, the product of all others in its reduction, without a division that would fail at 0."""
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
    """Return the gradient of a linear recurrence with respect to its inputs, which is a recurrence in reverse order."""
    factors = np.roll(np.flip(np.conjugate(coefficients), axis), 1, axis)
    return np.flip(call("linear_scan", np.flip(grad, axis), factors, axis), axis)


@formula_function
def cumprod_gradient(grad: Any, value: Any, result: Any, axis: Any) -> Any:
    """Return the gradient of cumulative products, without division, so that zeros are handled correctly."""
    along = 0 if axis is None else axis
    lanes = value.reshape(result.shape)
    found = reversed_scan(grad, lanes, along) * np.conjugate(shifted(result, along, 1))
    if MASKED_RUNS.any and is_masked_run() and observed() is None:
        found = flowing(found, grad, along)
    return found.reshape(value.shape)


@formula_function
def cumprod_tangent(value: Any, result: Any, tangent: Any, axis: Any) -> Any:
    """Return the tangent of cumulative products."""
    along = 0 if axis is None else axis
    inputs = shifted(result, along, 1) * tangent.reshape(result.shape)
    return call("linear_scan", inputs, value.reshape(result.shape), along)
