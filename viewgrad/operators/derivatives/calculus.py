"""The derivatives of operators on sampled functions: differences, integrals, interpolation and 1-d convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ...tensor.creation import as_operand
from ...tensor.tensor import FUNCTIONS, Tensor
from ..composites import choosing, composite
from ..define import row
from ..language.namespace import formula_function
from .helpers import conjugated, copy_order, of_its_own
from .scatter import scattered, values_of, zeros_beside


def part(a: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """Return the elements from `start` to `stop` along `axis`."""
    return a[(slice(None),) * (axis % a.ndim) + (slice(start, stop),)]


def padded(a: Any, axis: int, before: int, after: int) -> Any:
    """Return `a` padded with zeros along `axis`."""
    shape = list(a.shape)
    pieces = [a]
    if before:
        shape[axis] = before
        pieces.insert(0, zeros_beside(a, tuple(shape)))
    if after:
        shape[axis] = after
        pieces.append(zeros_beside(a, tuple(shape)))
    return np.concatenate(pieces, axis=axis) if len(pieces) > 1 else a


# -- differences -------------------------------------------------------------------------------------------------------


@formula_function
def diff_gradient(grad: Any, shape: tuple[int, ...], n: int, axis: int) -> Any:
    """Return the gradient of the operand of the `n`-th differences."""
    if n == 0:
        return grad
    if shape[axis] <= n:
        return zeros_beside(grad, shape)
    differences = np.diff(padded(grad, axis, n, n), n, axis)
    return -differences if n % 2 else differences


row(
    "diff(self, n=1, axis=-1)",
    lambda a, n=1, axis=-1: of_its_own(np.diff(a, n, axis), a),
    {"self": "diff_gradient(grad, self.shape, n, axis)"},
    forward_derivative="auto_linear",
    dtype_kinds="fc",
    doc="The `n`-th discrete differences along a dimension.",
)


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    a = as_operand(a)
    if n == 0:
        return a  # type: ignore[no-any-return]
    if not a.ndim or n < 0:
        raise ValueError(f"diff requires at least one dimension and a nonnegative order, not ndim={a.ndim} and n={n}")
    shape = list(a.shape)
    shape[normalize_axis_index(axis, a.ndim)] = 1
    ends = [np.broadcast_to(end, shape) if end is not None and not np.ndim(end) else end for end in (prepend, append)]
    pieces = [piece for piece in (ends[0], a, ends[1]) if piece is not None]
    joined: Any = np.concatenate(pieces, axis=axis) if len(pieces) > 1 else a
    result: Tensor = joined.diff(n, axis)
    return result


FUNCTIONS[np.diff] = _diff


@composite(np.ediff1d)
def ediff1d(self: Any) -> Any:
    """Return the differences of neighbours in the flattened tensor."""
    flat = as_operand(self).ravel()
    return flat[1:] - flat[:-1]


@composite(np.unwrap)
@choosing
def unwrap(self: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    """Add multiples of `period` to the values, so that no step along `axis` exceeds half a period."""
    self = as_operand(self)
    array = values_of(self)
    added = np.asarray(np.unwrap(array, discont, axis, period=period) - array)
    added[(slice(None),) * (axis % array.ndim) + (slice(1),)] = 0  # as in NumPy, nothing is added to infinity
    return self + added


def _edge(f: Any, axis: int, h: Any, last: bool, order: int) -> Any:
    """Return the derivative at one end, computed from the adjacent values."""
    places = (-1, -2, -3) if last else (0, 1, 2)
    ends = [part(f, axis, place, place + 1 or None) for place in places[: order + 1]]
    if np.ndim(h):
        first, second = h[-1 if last else 0], h[-2 if last else 1] if order == 2 else None
    else:
        first = second = h
    if order == 1:
        return (ends[0] - ends[1] if last else ends[1] - ends[0]) / first  # the sign of zero is also NumPy's
    both = first + second
    return (-1.0 if last else 1.0) * (
        ends[0] * (-(2 * first + second) / (first * both))
        + ends[1] * (both / (first * second))
        + ends[2] * (-first / (second * both))
    )


@composite(method=False)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the derivatives of a sampled function along each dimension, by central differences as in `numpy.gradient`.

    Arguments:
        f: the samples.
        varargs: the distances or coordinates of the samples: none, one for all dimensions, or one for each dimension.
        axis: the dimensions; all of them if omitted.
        edge_order: 1 or 2, the order of the differences at both ends.

    Returns:
        The derivative, or a tuple with one for each dimension.
    """
    f = as_operand(f)
    f = f.astype(float) if f.dtype.kind in "iu" else f  # differences of integers may wrap around
    axes = tuple(range(f.ndim)) if axis is None else normalize_axis_tuple(axis, f.ndim)
    spacings = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient over {len(axes)} dimensions requires 0, 1 or {len(axes)} spacings, not {len(varargs)}"
        )
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order of gradient must be 1 or 2, not {edge_order}")
    order = copy_order(f._array)
    if axes and order != sorted(order):  # the result must have NumPy's memory layout
        found = gradient(f.transpose(order), *varargs, axis=tuple(order.index(dim) for dim in axes),
                         edge_order=edge_order)  # fmt: skip
        back = [order.index(dim) for dim in range(f.ndim)]
        return tuple(each.transpose(back) for each in found) if len(axes) > 1 else found.transpose(back)
    results = []
    for dim, spacing in zip(axes, spacings):
        if f.shape[dim] < edge_order + 1:
            raise ValueError(f"gradient of edge_order {edge_order} needs {edge_order + 1} samples, not {f.shape[dim]}")
        before, here, after = part(f, dim, None, -2), part(f, dim, 1, -1), part(f, dim, 2, None)
        if np.ndim(spacing):
            places = as_operand(spacing)
            h: Any = (places.astype(float) if places.dtype.kind in "iu" else places).diff()
            left, right = (steps.reshape(aligned_shape(f.shape[dim] - 2, f.ndim, dim)) for steps in (h[:-1], h[1:]))
            inner = (
                before * (-right / (left * (left + right)))
                + here * ((right - left) / (left * right))
                + after * (left / (right * (left + right)))
            )
        else:
            h = spacing
            inner = (after - before) * (0.5 / h)
        ends = [_edge(f, dim, h, last, edge_order) for last in (False, True)]
        found = np.concatenate([ends[0], inner, ends[1]], axis=dim)
        results.append(found.astype(f.dtype, copy=False) if f.dtype.kind in "fc" else found)
    return results[0] if len(results) == 1 else tuple(results)


FUNCTIONS[np.gradient] = gradient

# -- integrals ---------------------------------------------------------------------------------------------------------


@formula_function
def trapezoid_weights(y: Any, x: Any, dx: float, axis: int) -> Any:
    """Return the weight of each sample in the integral, in a shape that broadcasts to that of `y`."""
    n = y.shape[axis]
    if n < 2:
        return np.zeros((1,) * y.ndim, y.dtype)
    if x is None:
        weights = np.full(n, dx, np.result_type(y.dtype, dx) if isinstance(dx, (np.ndarray, np.generic)) else y.dtype)
        weights[0] = weights[-1] = dx * 0.5
        return weights.reshape(aligned_shape(n, y.ndim, axis))
    along = axis if x.ndim > 1 else -1
    steps = np.diff(x, 1, along) * 0.5
    weights = padded(steps, along, 0, 1) + padded(steps, along, 1, 0)
    return weights if x.ndim > 1 else weights.reshape(aligned_shape(n, y.ndim, axis))


def aligned_shape(n: int, ndim: int, axis: int) -> tuple[int, ...]:
    """Return the shape of a vector along `axis`."""
    return tuple(n if dim == axis % ndim else 1 for dim in range(ndim))


@formula_function
def trapezoid_places_gradient(grad: Any, y: Any, x_shape: tuple[int, ...], axis: int) -> Any:
    """Return the gradient of the sample points."""
    if y.shape[axis] < 2:
        return zeros_beside(grad, x_shape)
    means = (part(y, axis, 1, None) + part(y, axis, None, -1)) * 0.5
    steps = np.expand_dims(grad, axis) * conjugated(means)
    places = padded(steps, axis, 1, 0) - padded(steps, axis, 0, 1)
    return np.moveaxis(places, axis, -1) if len(x_shape) == 1 else places


@formula_function
def integral(y: Any, weights: Any, axis: int) -> Any:
    """Return the weighted sum along `axis`."""
    return (y * weights).sum(axis=axis)


@formula_function
def trapezoid_tangent(y_t: Any, x_t: Any, y: Any, x: Any, dx: float, axis: int) -> Any:
    """Return the tangent of an integral."""
    result = integral(y_t, trapezoid_weights(y, x, dx, axis), axis)
    if x_t is not None:
        result = result + integral(y, trapezoid_weights(y, x_t, dx, axis), axis)
    return result


row(
    "trapezoid(self, x=None, dx=1.0, axis=-1)",
    lambda y, x=None, dx=1.0, axis=-1: np.trapezoid(y, x, dx, axis),
    {
        "self": "along(grad, axis) * conj(trapezoid_weights(self, x, dx, axis)) + zeros_like(self)",
        "x": "trapezoid_places_gradient(grad, self, x.shape, axis)",
    },
    forward_derivative="trapezoid_tangent(self_t, x_t, self_p, x_p, dx, axis)",
    numpy=[np.trapezoid],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The integral along a dimension by the trapezoidal rule, from samples at `x`, or with spacing `dx`.",
)

# -- interpolation -----------------------------------------------------------------------------------------------------


def interp_forward(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Any:
    if period is not None:
        raise TypeError(
            "interp of tensors does not support period=; wrap x into one period, and repeat the first point at the end"
        )
    return np.interp(x, xp, fp, left, right)


class Segments:
    """The positions of points relative to the knots of a piecewise linear function.

    Attributes:
        lower, upper: the indices of the knots at both ends of the segment of each point.
        inside: whether the point is within the knots, including the ends.
        before, after: whether the point is before the first or after the last knot.
        part: the relative position of the point in its segment.
        width: the length of the segment.

    Raises:
        ValueError: if the knots are not increasing; NumPy's values have no documented meaning then.
    """

    def __init__(self, x: Any, xp: Any) -> None:
        points, knots = values_of(x), values_of(xp)
        if (knots[1:] < knots[:-1]).any():
            raise ValueError("the gradient of interp requires increasing points xp")
        last = knots.shape[0] - 1
        self.lower = np.clip(np.searchsorted(knots, points, side="right") - 1, 0, max(last - 1, 0))
        self.upper = np.minimum(self.lower + 1, last)
        self.before, self.after = points < knots[0], points > knots[-1]
        self.inside = ~(self.before | self.after)
        empty = knots[self.upper] == knots[self.lower]
        self.width = np.where(empty, 1, xp[self.upper] - xp[self.lower])
        whole = empty | np.isneginf(knots[self.lower])  # the point is at the upper end, or extremely close to it
        with np.errstate(invalid="ignore"):
            self.part = np.where(self.inside & ~whole, (x - xp[self.lower]) / self.width, whole)

    def slope(self, fp: Any) -> Any:
        """Return the slope of the function at each point, and 0 at points outside the knots."""
        return (fp[self.upper] - fp[self.lower]) / self.width * self.inside

    def spread(self, grad: Any, length: int) -> Any:
        """Return the gradient of the knots: that of each point is distributed to the ends of its segment."""
        lower = grad * (1 - self.part) * self.inside
        upper = grad * self.part * self.inside
        places = np.concatenate([self.lower.reshape(-1), self.upper.reshape(-1)])
        return scattered(np.concatenate([lower.reshape(-1), upper.reshape(-1)]), places, 0, length)

    def between(self, fp: Any) -> Any:
        """Return the function inside the segments, and 0 outside."""
        return (fp[self.lower] * (1 - self.part) + fp[self.upper] * self.part) * self.inside


@formula_function
def interp_slope(x: Any, xp: Any, fp: Any) -> Any:
    """Return the slope of the function at each point."""
    return Segments(x, xp).slope(fp)


@formula_function
def interp_knots_gradient(grad: Any, x: Any, xp: Any, fp: Any) -> Any:
    """Return the gradient of the knot positions."""
    segments = Segments(x, xp)
    return segments.spread(-grad * conjugated(segments.slope(fp)), xp.shape[0])


@formula_function
def interp_values_gradient(grad: Any, x: Any, xp: Any, shape: tuple[int, ...], left: Any, right: Any) -> Any:
    """Return the gradient of the values at the knots."""
    segments = Segments(x, xp)
    result = segments.spread(grad, shape[0])
    for given, outside, knot in ((left, segments.before, 0), (right, segments.after, shape[0] - 1)):
        if given is None and outside.any():
            unit = np.zeros(shape, grad.dtype)
            unit[knot] = 1
            result = result + unit * (grad * outside).sum()
    return result


@formula_function
def interp_tangent(x_t: Any, xp_t: Any, fp_t: Any, x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    """Return the tangent of the interpolated values."""
    segments = Segments(x, xp)
    result = segments.between(fp_t) + segments.slope(fp) * (x_t - segments.between(xp_t))
    for given, outside, knot in ((left, segments.before, 0), (right, segments.after, -1)):
        if given is None:
            result = result + fp_t[knot] * outside
    return result


row(
    "interp(self, xp, fp, left=None, right=None, period=None)",
    interp_forward,
    {
        "self": "grad * conj(interp_slope(self, xp, fp))",
        "xp": "interp_knots_gradient(grad, self, xp, fp)",
        "fp": "interp_values_gradient(grad, self, xp, fp.shape, left, right)",
    },
    forward_derivative="interp_tangent(self_t, xp_t, fp_t, self_p, xp_p, fp_p, left, right)",
    numpy=[np.interp],
    dtype_kinds={"fp": "fc"},
    doc="The piecewise linear interpolant of the values `fp` at the increasing points `xp`, constant outside; at a "
    "knot the gradient is that of the segment to the right.",
)

interpolated = FUNCTIONS[np.interp]


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Implement `numpy.interp`, including periodic functions; gradients also flow to `left` and `right`."""
    if period is None:
        if not (isinstance(left, Tensor) or isinstance(right, Tensor)):
            return interpolated(x, xp, fp, left, right)
        found = interpolated(x, xp, fp)
        for given, outside in ((left, values_of(x) < values_of(xp)[0]), (right, values_of(x) > values_of(xp)[-1])):
            found = found if given is None else np.where(outside, given, found)
        return found if np.ndim(x) else found[()]
    if np.ndim(xp) != 1 or np.ndim(fp) != 1:
        raise ValueError("Data points must be 1-D sequences")
    period = abs(as_operand(period))
    if not values_of(period):
        raise ValueError("period must be a non-zero value")
    knots = as_operand(xp) % period
    x = as_operand(x) * 1.0
    x = x.astype(float) if x.dtype == np.longdouble else x
    order = np.argsort(values_of(knots))
    knots, values = knots[order], as_operand(fp)[order]
    knots = np.concatenate([knots[-1:] - period, knots, knots[:1] + period])
    return interpolated(x % period, knots, np.concatenate([values[-1:], values, values[:1]]))


FUNCTIONS[np.interp] = _interp

# -- convolutions ------------------------------------------------------------------------------------------------------


def convolution_start(n: int, m: int, mode: str, correlated: bool) -> tuple[int, int]:
    """Return the start and length of the part selected by `mode` of the full convolution of lengths `n` and `m`."""
    full = n + m - 1
    if mode == "full":
        return 0, full
    short = min(n, m)
    if mode == "valid":
        return short - 1, max(n, m) - short + 1
    length = max(n, m)
    start = (short - 1) // 2
    return (full - length - start if correlated and m > n else start), length


@formula_function
def in_full(grad: Any, n: int, m: int, mode: str, correlated: bool) -> Any:
    """Return the gradient of the full convolution, given that of the selected part."""
    start, length = convolution_start(n, m, mode, correlated)
    return padded(grad, 0, start, n + m - 1 - start - length)


@formula_function
def reversed_conj(a: Any) -> Any:
    """Return a vector conjugated and reversed."""
    return conjugated(a)[::-1]


row(
    "convolve(self, v, mode='full')",
    lambda a, v, mode="full": np.convolve(a, v, mode),
    {
        "self": "correlate(in_full(grad, self.shape[0], v.shape[0], mode, False), v, 'valid')",
        "v": "correlate(in_full(grad, self.shape[0], v.shape[0], mode, False), self, 'valid')",
    },
    forward_derivative="convolve(self_t, v_p, mode) + convolve(self_p, v_t, mode)",
    numpy=[np.convolve],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The convolution of two vectors; `mode` is \"full\", \"same\" or \"valid\".",
)
row(
    "correlate(self, v, mode='valid')",
    lambda a, v, mode="valid": np.correlate(a, v, mode),
    {
        "self": "correlate(in_full(grad, self.shape[0], v.shape[0], mode, True), reversed_conj(v), 'valid')",
        "v": "reversed_conj(correlate(in_full(grad, self.shape[0], v.shape[0], mode, True), self, 'valid'))",
    },
    forward_derivative="correlate(self_t, v_p, mode) + correlate(self_p, v_t, mode)",
    numpy=[np.correlate],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The cross-correlation of two vectors; the second is conjugated.",
)
