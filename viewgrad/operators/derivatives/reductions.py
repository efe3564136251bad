"""The derivatives of reductions: sums, products, extrema, norms, and the running sums and products."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..define import row
from .formulas import reduced_count

__all__: list[str] = []

Array = np.ndarray[Any, Any]
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
    forward_derivative=LINEAR, kinds="fc", numpy=[np.sum, (np.add, "reduce")],
    doc="The sum of all elements, or of those along `axis`.",
)
row(
    "mean(self, axis=None, keepdims=False)", mean_forward,
    {"self": "expand_reduced(grad / reduced_count(self.shape, axis), self.shape, axis, keepdims)"},
    forward_derivative=LINEAR, kinds="fc", numpy=[np.mean],
    doc="The arithmetic mean of all elements, or of those along `axis`.",
)
row(
    "var(self, axis=None, ddof=0, keepdims=False)",
    lambda self, axis=None, ddof=0, keepdims=False: np.var(self, axis=axis, ddof=ddof, keepdims=keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * var_slope(self, axis, ddof)"},
    forward_derivative="sum((conj(var_slope(self_p, axis, ddof)) * self_t).real, axis, keepdims)",
    kinds="fc", numpy=[np.var],
    doc="The mean of the squared distances from the mean, from whose number `ddof` is subtracted.",
)
row(
    "std(self, axis=None, ddof=0, keepdims=False)",
    lambda self, axis=None, ddof=0, keepdims=False: np.std(self, axis=axis, ddof=ddof, keepdims=keepdims),
    {"self": "expand_reduced(grad / twice_or_one(result), self.shape, axis, keepdims) * var_slope(self, axis, ddof)"},
    forward_derivative=(
        "sum((conj(var_slope(self_p, axis, ddof)) * self_t).real, axis, keepdims) / twice_or_one(result)"
    ),
    kinds="fc", numpy=[np.std],
    doc="The square root of the variance; gradient 0 where it is 0.",
)
row(
    "logsumexp(self, axis=None, keepdims=False, b=None)", logsumexp_forward,
    {
        "self": "logsumexp_gradient(grad, self, b, result, axis, keepdims)",
        "b": "logsumexp_weight_gradient(grad, self, b.shape, result, axis, keepdims)",
    },
    forward_derivative="logsumexp_tangent(self_t, b_t, self_p, b_p, result, axis, keepdims)", kinds="fc",
    doc="log(sum(b * exp(self))), without overflow; `b` is 1 where left out.",
)
row(
    "cumsum(self, axis=None)", lambda self, axis=None: np.cumsum(self, axis),
    {"self": "reversed_cumsum(grad, axis).reshape(self.shape)"},
    forward_derivative=LINEAR, kinds="fc", numpy=[np.cumsum, (np.add, "accumulate")],
    doc="The running sums along `axis`, or of the elements in row order.",
)

# -- products ----------------------------------------------------------------------------------------------------------


def linear_scan_forward(self: Array, coefficients: Array, axis: int = -1) -> Array:
    inputs, factors = np.moveaxis(self, axis, 0), np.moveaxis(coefficients, axis, 0)
    return np.moveaxis(scanned(inputs, factors), 0, axis).copy()


def scanned(inputs: Array, factors: Array) -> Array:
    """`y[i] = inputs[i] + factors[i] * y[i - 1]`, by halving: linear work in a logarithmic number of steps."""
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
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * conj(products_of_others(self, axis))"},
    forward_derivative="sum(products_of_others(self_p, axis) * self_t, axis, keepdims)",
    kinds="fc", numpy=[np.prod, (np.multiply, "reduce")],
    doc="The product of all elements, or of those along `axis`; its gradient is exact also where some are 0.",
)
row(
    "cumprod(self, axis=None)", lambda self, axis=None: np.cumprod(self, axis),
    {"self": "cumprod_gradient(grad, self, result, axis)"},
    forward_derivative="cumprod_tangent(self_p, result, self_t, axis)",
    kinds="fc", numpy=[np.cumprod, (np.multiply, "accumulate")],
    doc="The running products along `axis`, or of the elements in row order; exact gradient also where some are 0.",
)
row(
    "linear_scan(self, coefficients, axis=-1)", linear_scan_forward,
    {
        "self": "reversed_scan(grad, coefficients, axis)",
        "coefficients": "reversed_scan(grad, coefficients, axis) * conj(shifted(result, axis, 0))",
    },
    forward_derivative="linear_scan(self_t + coefficients_t * shifted(result, axis, 0), coefficients_p, axis)",
    kinds="fc",
    doc="The recurrence `y[i] = self[i] + coefficients[i] * y[i - 1]` along `axis`, from `y[0] = self[0]`.",
)

# -- extrema and norms -------------------------------------------------------------------------------------------------

row(
    "max(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: maximum_reduce(self, axis, None, None, keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * tie_shares(self, result, axis, keepdims)"},
    forward_derivative="sum(tie_shares(self_p, result, axis, keepdims) * self_t, axis, keepdims)",
    kinds="fc", numpy=[np.max, np.amax, (np.maximum, "reduce")],
    doc="The greatest of all elements, or of those along `axis`; equal ones share the gradient equally.",
)
row(
    "min(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: minimum_reduce(self, axis, None, None, keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * tie_shares(self, result, axis, keepdims)"},
    forward_derivative="sum(tie_shares(self_p, result, axis, keepdims) * self_t, axis, keepdims)",
    kinds="fc", numpy=[np.min, np.amin, (np.minimum, "reduce")],
    doc="The least of all elements, or of those along `axis`; equal ones share the gradient equally.",
)
row(
    "vector_norm(self, ord=2, axis=None, keepdims=False)",
    lambda self, ord=2, axis=None, keepdims=False: np.linalg.vector_norm(self, ord=ord, axis=axis, keepdims=keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * norm_direction(self, result, ord, axis, keepdims)"},
    forward_derivative="sum((conj(norm_direction(self_p, result, ord, axis, keepdims)) * self_t).real, axis, keepdims)",
    kinds="fc", numpy=[np.linalg.vector_norm],
    doc="The norm of order `ord` of all elements, or of the vectors along `axis`; gradient 0 where the norm is 0.",
)

# -- whether and how many: no gradient ---------------------------------------------------------------------------------

row(
    "all(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: np.all(self, axis=axis, keepdims=keepdims), NOT,
    numpy=[np.all, (np.logical_and, "reduce")], doc="Whether all elements are true.",
)
row(
    "any(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: np.any(self, axis=axis, keepdims=keepdims), NOT,
    numpy=[np.any, (np.logical_or, "reduce")], doc="Whether any element is true.",
)
row(
    "count_nonzero(self, axis=None, keepdims=False)",
    lambda self, axis=None, keepdims=False: np.count_nonzero(self, axis=axis, keepdims=keepdims), NOT,
    numpy=[np.count_nonzero], doc="How many elements are not 0.",
)
