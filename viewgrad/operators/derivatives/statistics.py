"""The derivatives of order statistics, of sums that ignore missing values, and of covariances.

The median and the quantiles are weighted sums of one or two of the values. If values are equal, the gradient flows to
those that a stable sort puts at the relevant positions. Equal extrema share the gradient equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.escapes import has_tangent
from ...tensor.tensor import FUNCTIONS, Tensor, as_buffered, current_edge
from ...type_aliases import Array
from ..composites import composite
from ..define import row
from ..language.namespace import formula_function
from ..numpy_api.dispatch import write_out
from .helpers import adjoint, flowing, plain
from .reductions import shares_of
from .scatter import in_precision_of

__all__: list[str] = []

# -- missing values ----------------------------------------------------------------------------------------------------


@formula_function
def counts_beside(a: Any, axis: Any) -> Any:
    """Return the number of summed values that are not NaN, but at least 1, with the summed dimensions kept."""
    counts = np.logical_not(np.isnan(a)).sum(axis=axis, keepdims=True)
    return np.maximum(counts, 1).astype(a.dtype)


row(
    "nansum(self, axis=None, keepdims=False)",
    lambda a, axis=None, keepdims=False: np.nansum(a, axis=axis, keepdims=keepdims),
    {"self": "masked_fill(expand_reduced(grad, self.shape, axis, keepdims), isnan(self), 0)"},
    forward_derivative="masked_fill(self_t, isnan(self_p), 0).sum(axis=axis, keepdims=keepdims)",
    numpy=[np.nansum],
    masks_gradient=True,
    dtype_kinds="fc",
    doc="The sum, ignoring NaN.",
)
row(
    "nanmean(self, axis=None, keepdims=False)",
    lambda a, axis=None, keepdims=False: np.nanmean(a, axis=axis, keepdims=keepdims),
    {
        "self": "masked_fill(expand_reduced(grad, self.shape, axis, keepdims) / counts_beside(self, axis), "
        "isnan(self), 0)"
    },
    forward_derivative="(masked_fill(self_t, isnan(self_p), 0) / counts_beside(self_p, axis))"
    ".sum(axis=axis, keepdims=keepdims)",
    numpy=[np.nanmean],
    dtype_kinds="fc",
    masks_gradient=True,
    doc="The mean, ignoring NaN.",
)

# -- order statistics --------------------------------------------------------------------------------------------------


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the dimensions of a reduction."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(dim % ndim for dim in (axis if isinstance(axis, (tuple, list)) else (axis,)))) if ndim else ()


def quantile_weights_forward(
    a: Any, q: Any, axis: Any = None, method: str = "linear", ignore_nan: bool = False
) -> Array:
    axes = reduced_axes(axis, a.ndim)
    kept = tuple(dim for dim in range(a.ndim) if dim not in axes)
    moved = a.transpose(kept + axes)
    flat = moved.reshape(*(a.shape[dim] for dim in kept), math.prod(a.shape[dim] for dim in axes))
    order = np.argsort(flat, axis=-1, kind="stable")
    q = np.asarray(plain(q), dtype=float)
    if not a.size:
        return np.zeros(q.shape + a.shape, a.dtype)
    weights = np.zeros((q.size, *flat.shape), a.dtype)
    counts = np.count_nonzero(flat == flat, axis=-1) if ignore_nan else np.full(flat.shape[:-1], flat.shape[-1])
    for count in np.unique(counts):
        if count:
            # The quantiles of 0, 1, 2, ... are the fractional positions of the quantiles among the sorted values.
            places = np.quantile(np.arange(float(count)), q.ravel(), method=method)  # type: ignore[call-overload]
            chosen = counts == count
            for number, place in enumerate(places):
                lower = int(np.floor(place))
                slices = weights[number][chosen]
                sorted_places = order[chosen]
                for at, weight in ((lower, 1 - (place - lower)), (min(lower + 1, count - 1), place - lower)):
                    index = sorted_places[:, at, None]
                    np.put_along_axis(slices, index, np.take_along_axis(slices, index, -1) + weight, -1)
                weights[number][chosen] = slices
    shaped = weights.reshape(q.size, *moved.shape)
    back = np.argsort(kept + axes)
    return shaped.transpose(0, *(1 + back)).reshape(q.shape + a.shape)


@lru_cache(maxsize=256)
def nanquantile_places(ndim: int, axes: tuple[int, ...], q_ndim: int) -> tuple[int, ...]:
    """Return NumPy's order of the dimensions of quantiles that ignore NaN: first those of the fractions, then the rest.

    If several axes are reduced, the dimensions of the fractions are placed differently than in `np.quantile`.
    """
    places = []
    for dim in range(q_ndim + ndim):
        if dim - q_ndim not in axes:
            lengths = [1 + (each == dim) for each in range(q_ndim + ndim)]
            found = np.nanquantile(np.zeros(lengths[q_ndim:]), np.zeros(lengths[:q_ndim]), axis=axes)
            places.append(found.shape.index(2))
    return tuple(places)


def is_misplaced(ndim: int, axes: tuple[int, ...], q_ndim: int) -> bool:
    """Return whether quantiles that ignore NaN may place the dimensions of the fractions elsewhere."""
    return q_ndim > 1 and 0 < len(axes) < ndim


def in_places_of_numpy(quantiles: Any, ndim: int, axes: tuple[int, ...], q_ndim: int) -> Any:
    """Reorder the dimensions of quantiles that ignore NaN, which start with those of the fractions, as NumPy does."""
    return quantiles.transpose(tuple(map(int, np.argsort(nanquantile_places(ndim, axes, q_ndim)))))


@formula_function
def quantile_gradient(grad: Any, weights: Any, q_ndim: int, axis: Any, ignore_nan: bool = False) -> Any:
    """Return the gradient of the operand of a weighted sum."""
    shape = weights.shape[q_ndim:]
    if not weights.size:  # NumPy's quantiles that ignore NaN lack the dimensions of the fractions in this case
        return weights.sum(axis=tuple(range(q_ndim))) if q_ndim else weights
    axes = reduced_axes(axis, len(shape))
    kept = tuple(1 if dim in axes else extent for dim, extent in enumerate(shape))
    if ignore_nan and is_misplaced(len(shape), axes, q_ndim):
        places = nanquantile_places(len(shape), axes, q_ndim)
        true = weights.shape[:q_ndim] + tuple(extent for dim, extent in enumerate(shape) if dim not in axes)
        grad = grad.reshape(tuple(true[dim] for dim in np.argsort(places))).transpose(places)
    product = grad.reshape(weights.shape[:q_ndim] + kept) * weights
    product = product.sum(axis=tuple(range(q_ndim))) if q_ndim else product
    return product if product.dtype == weights.dtype else product.astype(weights.dtype)


@formula_function
def quantile_tangent(tangent: Any, weights: Any, q_ndim: int, axis: Any, result: Any, ignore_nan: bool = False) -> Any:
    """Return the weighted sum of the tangents."""
    if not weights.size:
        return np.zeros_like(result)
    ndim = weights.ndim - q_ndim
    axes = reduced_axes(axis, ndim)
    found = flowing(tangent * weights, weights).sum(axis=tuple(q_ndim + dim for dim in axes))
    moved = ignore_nan and is_misplaced(ndim, axes, q_ndim)
    return (in_places_of_numpy(found, ndim, axes, q_ndim) if moved else found).reshape(result.shape)


@formula_function
def number_of_dimensions(q: Any) -> int:
    """Return the number of dimensions of a plain argument."""
    return np.ndim(q)


row(
    "_quantile_weights(self, q, axis=None, method='linear', ignore_nan=False)",
    quantile_weights_forward,
    {"self": "not_differentiable"},
    method=False,
    doc="The gradient of a quantile with respect to each element.",
)

for _name, _ignore in (("median", False), ("nanmedian", True)):
    _function = getattr(np, _name)
    _weights = f"_quantile_weights(%s, 0.5, axis, 'linear', {_ignore})"
    row(
        f"{_name}(self, axis=None, keepdims=False)",
        lambda a, axis=None, keepdims=False, function=_function: function(a, axis=axis, keepdims=keepdims),
        {"self": f"quantile_gradient(grad, {_weights % 'self'}, 0, axis)"},
        forward_derivative=f"quantile_tangent(self_t, {_weights % 'self_p'}, 0, axis, result)",
        numpy=[_function],
        dtype_kinds="fc",
        masks_gradient=_ignore,
        doc="The median"
        + ", ignoring NaN" * _ignore
        + "; of equal values those in the middle positions get the gradient.",
    )
for _name, _ignore in (("quantile", False), ("nanquantile", True)):
    _function = getattr(np, _name)
    _weights = f"_quantile_weights(%s, q, axis, method, {_ignore})"
    row(
        f"{_name}(self, q, axis=None, keepdims=False, *, method='linear')",
        lambda a, q, axis=None, keepdims=False, *, method="linear", function=_function: in_precision_of(
            function(a, plain(q), axis=axis, keepdims=keepdims, method=method), a
        ),
        {"self": f"quantile_gradient(grad, {_weights % 'self'}, number_of_dimensions(q), axis, {_ignore})"},
        forward_derivative=f"quantile_tangent(self_t, {_weights % 'self_p'}, "
        f"number_of_dimensions(q), axis, result, {_ignore})",
        numpy=[_function],
        masks_gradient=_ignore,
        doc="The quantiles"
        + ", ignoring NaN" * _ignore
        + "; of equal values those at the positions of the quantile get the gradient.",
    )


@composite(np.percentile)
def percentile(self: Any, q: Any, axis: Any = None, keepdims: bool = False, *, method: str = "linear") -> Any:
    """Return the percentiles of the values."""
    self = as_operand(self)
    return self.quantile(_fraction(self, q), axis, keepdims, method=method)


@composite(np.nanpercentile)
def nanpercentile(self: Any, q: Any, axis: Any = None, keepdims: bool = False, *, method: str = "linear") -> Any:
    """Return the percentiles of the values, ignoring NaN."""
    self = as_operand(self)
    return self.nanquantile(_fraction(self, q), axis, keepdims, method=method)


def _fraction(self: Any, q: Any) -> Any:
    """Convert a percentage to a fraction, in the precision that NumPy uses."""
    if type(q) in (int, float) or _is_followed(q):
        return q / 100
    return np.true_divide(plain(q), self.dtype.type(100) if self.dtype.kind == "f" else 100)


def _is_followed(q: Any) -> bool:
    """Return whether derivatives with respect to fractions are needed."""
    return isinstance(q, Tensor) and (current_edge(q) is not None or has_tangent(q))


# methods that return one of the values
PICKING = frozenset({"lower", "higher", "nearest", "inverted_cdf", "closest_observation"})
STEPS = PICKING | {"midpoint", "averaged_inverted_cdf"}  # methods that are piecewise constant in the fraction


def _following(function: Callable[..., Any], numpy: Any, whole: float, counted: bool) -> Callable[..., Any]:
    """Return a function of values and fractions that is piecewise linear in the fractions, between the values.

    Arguments:
        function: the function of values and plain fractions.
        numpy: NumPy's function.
        whole: the largest fraction: 1, or 100 for percentages.
        counted: whether NaN are ignored.
    """

    def call(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: bool = False, weights: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        a = as_operand(a)
        if a.ndim and isinstance(axis, tuple) and not axis:
            found = _of_single_values(numpy, a, q, keepdims, method)
            return found if out is None else write_out(found, out, f"np.{numpy.__name__}")
        if weights is not None:
            fractions = np.true_divide(plain(q), whole)
            found = _weighted(np.nanquantile if counted else np.quantile, a, fractions, axis, weights, method)
            if not keepdims:
                found = found.squeeze(tuple(np.ndim(q) + dim for dim in reduced_axes(axis, np.ndim(a))))
            return found if out is None else write_out(found, out, f"np.{numpy.__name__}")
        if not _is_followed(q) or method not in {*STEPS, "linear"}:
            return function(a, q, axis, out=out, method=method, keepdims=keepdims, **options)
        axes = reduced_axes(axis, a.ndim)
        if counted and a.size and is_misplaced(a.ndim, axes, q.ndim):
            found = call(a, q.reshape(-1), axis, method=method, **options)
            found = in_places_of_numpy(found.reshape(q.shape + found.shape[1:]), a.ndim, axes, q.ndim)
            found = as_operand(np.expand_dims(found, [dim - a.ndim for dim in axes] if keepdims else ()))
            return found if out is None else write_out(found, out, f"np.{numpy.__name__}")
        plain_q = np.array(plain(q))
        found = function(a, plain_q, axis, method=method, keepdims=keepdims, **options)
        if method == "linear" and a.size:
            lower, upper = (function(a, plain_q, axis, method=m, keepdims=keepdims) for m in ("lower", "higher"))
            numbers = ~np.isnan(plain(a)) if counted else np.ones(a.shape, bool)
            steps = np.count_nonzero(numbers, axis=axis, keepdims=keepdims) - 1
            away = (q - q.detach()).reshape(q.shape + (1,) * (found.ndim - q.ndim))
            found = found + (away * ((upper - lower) * (steps / whole))).astype(found.dtype)
        return found if out is None else write_out(found, out, f"np.{numpy.__name__}")

    return call


def _of_single_values(function: Any, a: Any, q: Any, keepdims: bool, method: str) -> Any:
    """Return the quantiles of single values, which are the values themselves, with NumPy's dimensions."""
    options = {"axis": (), "keepdims": keepdims, "method": method}
    q = q if type(q) in (int, float) else plain(q)
    places = function(np.arange(float(a.size)).reshape(a.shape), q, **options)
    values = np.asarray(function(plain(a), q, **options))
    found = a.reshape(-1)[np.rint(places).astype(int)].astype(values.dtype, copy=False)
    if found.dtype.kind in "biu":
        return found
    return found.masked_fill(np.isnan(values), math.nan)  # between two infinite values, as in NumPy


def _weighted(function: Any, a: Any, q: Any, axis: Any, weights: Any, method: str) -> Any:
    """Return weighted quantiles, which are chosen from the values."""
    a = as_operand(a)
    found = np.asarray(function(plain(a), q, axis, keepdims=True, weights=plain(weights), method=method))
    axes = reduced_axes(axis, a.ndim)
    kept = tuple(dim for dim in range(a.ndim) if dim not in axes)
    shape = tuple(a.shape[dim] for dim in kept)
    lines = a.transpose(kept + axes).reshape((*shape, math.prod(a.shape[dim] for dim in axes)))
    wanted = found.reshape((*np.shape(q), *shape, 1))
    values = plain(lines)
    places = np.argmax((values == wanted) | ((values != values) & (wanted != wanted)), axis=-1)
    return lines[(*np.indices(shape, sparse=True), places)].reshape(found.shape).astype(found.dtype)


def _as_precise(function: Callable[..., Any], counted: bool) -> Callable[..., Any]:
    """Wrap a function so that single-precision values and double-precision fractions are promoted as in NumPy."""

    def call(a: Any, q: Any, *args: Any, **options: Any) -> Any:
        a = as_operand(a)
        if counted and not a.size:
            return function(a, q, *args, **options)
        if type(q) not in (int, float) and a.dtype.kind == "f" and options.get("method", "linear") not in PICKING:
            wanted = np.result_type(a.dtype, np.true_divide(plain(q), a.dtype.type(1)).dtype)
            a = a if a.dtype == wanted else a.astype(wanted)
        return function(a, q, *args, **options)

    return call


def _keeping_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a NumPy function so that the result is a 0-d array if it keeps dimensions."""

    def call(a: Any, *args: Any, **options: Any) -> Any:
        result = function(a, *args, **options)
        return as_buffered(result) if options.get("keepdims") and not result.ndim else result

    return call


for _middle in (np.median, np.nanmedian):
    FUNCTIONS[_middle] = _keeping_arrays(FUNCTIONS[_middle])
for _numpy in (np.quantile, np.nanquantile, np.percentile, np.nanpercentile):
    _whole, _counted = 100.0 if "percent" in _numpy.__name__ else 1.0, "nan" in _numpy.__name__
    _precise = _as_precise(FUNCTIONS[_numpy], _counted)
    FUNCTIONS[_numpy] = _keeping_arrays(_following(_precise, _numpy, _whole, _counted))


def extremum_weights_forward(a: Any, axis: Any = None) -> Array:
    axes = reduced_axes(axis, a.ndim)
    highest = shares_of(a == np.max(a, axis=axes, keepdims=True), a, axes)
    lowest = shares_of(a == np.min(a, axis=axes, keepdims=True), a, axes)
    return np.asarray(highest - lowest)


row(
    "_ptp_weights(self, axis=None)",
    extremum_weights_forward,
    {"self": "not_differentiable"},
    method=False,
    doc="The gradient of `ptp` with respect to each element; ties share it.",
)
row(
    "ptp(self, axis=None, keepdims=False)",
    lambda a, axis=None, keepdims=False: np.ptp(a, axis=axis, keepdims=keepdims),
    {"self": "expand_reduced(grad, self.shape, axis, keepdims) * _ptp_weights(self, axis)"},
    forward_derivative="(self_t * _ptp_weights(self_p, axis)).sum(axis=axis, keepdims=keepdims)",
    numpy=[np.ptp],
    dtype_kinds="fc",
    doc="The range (maximum - minimum) of the values; ties share the gradient.",
)

# -- covariances -------------------------------------------------------------------------------------------------------


def cov_forward(a: Any, *, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    dtype = a.dtype if a.dtype.kind in "fc" else None
    return np.cov(a, rowvar=rowvar, bias=bias, ddof=ddof, dtype=dtype)


def _is_transposed(shape: tuple[int, ...], rowvar: bool, variables: int) -> bool:
    """Return whether the variables are in columns; NumPy versions differ for a single row."""
    return not rowvar and len(shape) == 2 and not (shape[0] == 1 and variables == 1)


def _centred(a: Any, transposed: bool) -> Any:
    """Return the deviations from the means, with a row for each variable."""
    matrix = a.reshape((1, -1)) if a.ndim < 2 else a.mT if transposed else a
    return matrix - matrix.mean(axis=1, keepdims=True)


def _freedom(matrix: Any, bias: bool, ddof: int | None) -> int:
    return max(int(matrix.shape[1]) - (int(not bias) if ddof is None else ddof), 0)


@formula_function
def cov_gradient(grad: Any, a: Any, rowvar: bool, bias: bool, ddof: int | None) -> Any:
    """Return the gradient with respect to the observations."""
    variables = grad.shape[0] if grad.ndim else 1
    transposed = _is_transposed(a.shape, rowvar, variables)
    matrix = _centred(a, transposed)
    grad = grad.reshape((variables, variables))
    result = (grad + adjoint(grad)) @ matrix / _freedom(matrix, bias, ddof)
    return (result.mT if transposed else result).reshape(a.shape)


@formula_function
def cov_tangent(tangent: Any, a: Any, shape: tuple[int, ...], rowvar: bool, bias: bool, ddof: int | None) -> Any:
    """Return the tangent of covariances of the given shape."""
    transposed = _is_transposed(a.shape, rowvar, shape[0] if shape else 1)
    matrix = _centred(a, transposed)
    product = _centred(tangent, transposed) @ adjoint(matrix)
    return ((product + adjoint(product)) / _freedom(matrix, bias, ddof)).reshape(shape)


row(
    "cov(self, *, rowvar=True, bias=False, ddof=None)",
    cov_forward,
    {"self": "cov_gradient(grad, self, rowvar, bias, ddof)"},
    forward_derivative="cov_tangent(self_t, self_p, result.shape, rowvar, bias, ddof)",
    dtype_kinds="fc",
    numpy=[np.cov],
    zero_in_masked_runs=True,
    doc="The covariance matrix of variables in rows (in columns, unless `rowvar`).",
)


@composite(np.corrcoef)
def corrcoef(self: Any, *, rowvar: bool = True) -> Any:
    """Return the correlation matrix of variables in rows, or in columns unless `rowvar`."""
    return correlations(as_operand(self).cov(rowvar=rowvar))


def correlations(covariances: Any) -> Any:
    """Return the correlations of variables with given covariances, clipped to 1 in case of rounding."""
    if not covariances.ndim:
        return covariances / covariances
    scale = np.sqrt(covariances.diagonal().real)
    found = covariances / scale[:, None] / scale[None, :]
    return found / np.maximum(np.abs(found).detach(), 1.0)


@composite(np.average)
def average(self: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """Return the weighted mean.

    Arguments:
        axis: the dimensions to average over; all of them if omitted.
        weights: an array with the shape of the tensor, or of the dimensions in `axis`; equal weights if omitted.
        returned: whether to return the sums of the weights as well.
        keepdims: whether to keep the reduced dimensions with length 1.
    """
    self = as_operand(self)
    if weights is None:
        mean = self.mean(axis=axis, keepdims=keepdims)
        total = np.full(mean.shape, self.size / max(mean.size, 1), mean.dtype)[()]  # also if the mean is NaN
        return (mean, as_operand(total)) if returned else mean
    weights = as_operand(weights)
    dtype = np.result_type(self.dtype, weights.dtype, *(() if self.dtype.kind in "fc" else (float,)))
    weights = weights if weights.dtype == dtype else weights.astype(dtype)  # NumPy sums the weights in this dtype
    axes = reduced_axes(axis, self.ndim)
    if weights.shape != self.shape:
        if axis is None or weights.shape != tuple(self.shape[dim] for dim in axes):
            raise ValueError(
                f"weights of shape {weights.shape} do not match an average of shape {self.shape} over {axis}"
            )
        weights = weights.reshape(tuple(self.shape[dim] if dim in axes else 1 for dim in range(self.ndim)))
    scale = weights.broadcast_to(self.shape).sum(axis=axis, keepdims=keepdims)
    if np.any(plain(scale) == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = (self * weights).sum(axis=axis, keepdims=keepdims) / scale
    return (mean, scale) if returned else mean
