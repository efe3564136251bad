"""The derivatives of convolutions in neural networks, in any number of dimensions.

The convolution of `x` with `w`, multiplied by `y` and summed, is a trilinear form. Its gradients with respect to each
argument are the three central operators of this file, and their gradients are the same three operators again, so
convolutions are differentiable to any order. See V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep
learning" (2016) for the geometry.

Tensors have the layout (batch, channels, *extents), or (channels, *extents) for a single example; weights have the
layout (channels out, channels in per group, *extents).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function


class Window(NamedTuple):
    """A moving window, with a stride, padding and dilation for each dimension."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]


def tuple_of(value: Any, n: int, what: str) -> tuple[int, ...]:
    """Return one number for each of `n` dimensions."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    if len(values) != n:
        raise ValueError(f"{what} must be one number or {n} numbers, not {value}")
    return tuple(int(each) for each in values)


def window_of(kernel: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Window:
    """Return the window of a kernel with the given extents; padding may be a number, "valid" or "same"."""
    n = len(kernel)
    strides, dilations = tuple_of(stride, n, "stride"), tuple_of(dilation, n, "dilation")
    if padding == "same":
        if any(step != 1 for step in strides):
            raise ValueError("padding='same' requires a stride of 1")
        spans = [(extent - 1) * step for extent, step in zip(kernel, dilations)]
        return Window(strides, tuple((span // 2, span - span // 2) for span in spans), dilations)
    around = tuple_of(0 if padding == "valid" else padding, n, "padding")
    if min(strides, default=1) < 1 or min(dilations, default=1) < 1 or min(around, default=0) < 0:
        raise ValueError(
            "stride and dilation must be positive and padding nonnegative, not "
            f"stride={strides}, padding={around}, dilation={dilations}"
        )
    return Window(strides, tuple((extent, extent) for extent in around), dilations)


def extents_after(extents: Sequence[int], kernel: Sequence[int], window: Window) -> tuple[int, ...]:
    """Return the number of window positions along each dimension."""
    fits = []
    for n, k, step, (before, after), gap in zip(extents, kernel, *window, strict=True):
        span = (k - 1) * gap + 1
        if n + before + after < span:
            raise ValueError(f"a window of length {span} does not fit into a padded length of {n + before + after}")
        fits.append((n + before + after - span) // step + 1)
    return tuple(fits)


def with_margin(x: Array, window: Window, fill: float = 0) -> Array:
    """Pad the last dimensions of `x`; return `x` itself if there is no padding."""
    if not any(extent for pair in window.padding for extent in pair):
        return x
    lead = x.ndim - len(window.padding)
    return np.pad(x, [(0, 0)] * lead + list(window.padding), constant_values=fill)


def steps_of(
    kernel: Sequence[int], places: Sequence[int], window: Window
) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """Yield the index of each element of the window, and the index of the input elements under it at all positions."""
    for offset in np.ndindex(*kernel):
        slices = tuple(
            slice(o * gap, o * gap + (count - 1) * step + 1 if count else 0, step)
            for o, gap, count, step in zip(offset, window.dilation, places, window.stride)
        )
        yield offset, (..., *slices)


def patches(x: Array, kernel: Sequence[int], window: Window) -> Array:
    """Return the elements under the window at each position, of shape (..., *kernel, *positions)."""
    lead = x.ndim - len(kernel)
    places = extents_after(x.shape[lead:], kernel, window)
    x = with_margin(x, window)
    strides = x.strides[lead:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:lead], *kernel, *places),
        (
            *x.strides[:lead],
            *(stride * gap for stride, gap in zip(strides, window.dilation)),
            *(stride * step for stride, step in zip(strides, window.stride)),
        ),
        writeable=False,
    )


def sum_of_patches(values: Array, extents: Sequence[int], window: Window) -> Any:
    """Return the adjoint of `patches`: the sum of the values of all patches at each position."""
    n = len(extents)
    lead, kernel, places = values.shape[: -2 * n], values.shape[-2 * n : -n], values.shape[-n:]
    full = [extent + before + after for extent, (before, after) in zip(extents, window.padding)]
    total: Any = np.zeros((*lead, *full), values.dtype)
    for offset, under in steps_of(kernel, places, window):
        total[under] += values[(slice(None),) * len(lead) + offset]
    return without_margin(total, extents, window)


def without_margin(total: Any, extents: Sequence[int], window: Window) -> Any:
    """Remove the padding."""
    inner = tuple(slice(before, before + extent) for extent, (before, _) in zip(extents, window.padding))
    return total[(..., *inner)]


# -- the three forms ---------------------------------------------------------------------------------------------------


def _columns(x: Array, kernel: Sequence[int], window: Window, groups: int) -> tuple[Array, tuple[int, ...]]:
    """Return the patches as (batch, groups, channels per group * kernel, positions), and the number of positions."""
    taken = patches(x, kernel, window)
    batch, channels, places = x.shape[0], x.shape[1], taken.shape[2 + len(kernel) :]
    return taken.reshape(batch, groups, channels // groups * math.prod(kernel), math.prod(places)), places


def _rows(y: Array, groups: int) -> Array:
    """Reshape (batch, channels, *positions) to (batch, groups, channels per group, positions)."""
    return y.reshape(y.shape[0], groups, y.shape[1] // groups, math.prod(y.shape[2:]))


def _grouped(w: Array, groups: int) -> Array:
    """Reshape weights to (groups, channels out per group, channels in per group * kernel)."""
    return w.reshape(groups, w.shape[0] // groups, math.prod(w.shape[1:]))


def convolution_forward(x: Any, w: Any, window: Window, groups: int) -> Array:
    if x.ndim == w.ndim - 1:
        return np.asarray(convolution_forward(x[None], w, window, groups)[0])
    if x.ndim != w.ndim or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError(f"an input of shape {x.shape} does not match weights of shape {w.shape} with groups={groups}")
    columns, places = _columns(x, w.shape[2:], window, groups)
    return np.asarray(_grouped(w, groups) @ columns).reshape(x.shape[0], w.shape[0], *places)


def convolution_input_forward(y: Any, w: Any, extents: Any, window: Window, groups: int) -> Array:
    if y.ndim == w.ndim - 1:
        return np.asarray(convolution_input_forward(y[None], w, extents, window, groups)[0])
    if y.ndim != w.ndim or y.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise ValueError(
            f"an input of shape {y.shape} does not match weights of shape {w.shape} with groups={groups}"
        )
    _require_fit(extents, w.shape[2:], y.shape[2:], window)
    columns = _grouped(w, groups).mT @ _rows(y, groups)
    values = columns.reshape(y.shape[0], groups * w.shape[1], *w.shape[2:], *y.shape[2:])
    return np.asarray(sum_of_patches(values, extents, window))


def _require_fit(extents: Sequence[int], kernel: Sequence[int], places: Sequence[int], window: Window) -> None:
    """Raise if the requested extents of a transposed convolution do not match the number of window positions."""
    for n, k, count, step, (before, after), gap in zip(extents, kernel, places, *window, strict=True):
        if n < 0 or count < 1 or (n + before + after - (k - 1) * gap - 1) // step + 1 != count:
            raise ValueError(f"a transposed convolution cannot map {tuple(places)} to {tuple(extents)} with {window}")


def convolution_weight_forward(x: Any, y: Any, kernel: Any, window: Window, groups: int) -> Array:
    if x.ndim == len(kernel) + 1:
        x, y = x[None], y[None]
    columns, _ = _columns(x, kernel, window, groups)
    rows = _rows(y, groups)
    total = np.zeros((groups, rows.shape[2], columns.shape[2]), np.result_type(x, y))
    for row_of_one, columns_of_one in zip(rows, columns):
        total += row_of_one @ columns_of_one.mT
    return total.reshape(y.shape[1], x.shape[1] // groups, *kernel)


row(
    "_convolution(self, weight, window, groups)",
    convolution_forward,
    {
        "self": "_convolution_input(grad, conj(weight), extents_of(self.shape, weight.shape), window, groups)",
        "weight": "_convolution_weight(conj(self), grad, weight.shape[2:], window, groups)",
    },
    forward_derivative=(
        "_convolution(self_t, weight_p, window, groups) + _convolution(self_p, weight_t, window, groups)"
    ),
    method=False,
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The convolution that a window describes, in groups of channels.",
)
row(
    "_convolution_input(self, weight, extents, window, groups)",
    convolution_input_forward,
    {
        "self": "_convolution(grad, conj(weight), window, groups)",
        "weight": "_convolution_weight(grad, conj(self), weight.shape[2:], window, groups)",
    },
    forward_derivative="_convolution_input(self_t, weight_p, extents, window, groups) "
    "+ _convolution_input(self_p, weight_t, extents, window, groups)",
    method=False,
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The gradient of the input of a convolution: the transposed convolution.",
)
row(
    "_convolution_weight(self, other, kernel, window, groups)",
    convolution_weight_forward,
    {
        "self": "_convolution_input(conj(other), grad, extents_of(self.shape, grad.shape), window, groups)",
        "other": "_convolution(conj(self), grad, window, groups)",
    },
    forward_derivative="_convolution_weight(self_t, other_p, kernel, window, groups) "
    "+ _convolution_weight(self_p, other_t, kernel, window, groups)",
    method=False,
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The gradient of the weights of a convolution.",
)


@formula_function
def extents_of(shape: tuple[int, ...], weight_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents of the input of a convolution with weights of the given shape."""
    return shape[len(shape) - len(weight_shape) + 2 :]


@formula_function
def over_channels(grad: Any, extents: int) -> Any:
    """Return the gradient of the bias of each channel."""
    axis = grad.ndim - extents - 1
    return grad.sum(axis=tuple(dim for dim in range(grad.ndim) if dim != axis))


def with_bias(product: Array, bias: Array | None, extents: int) -> Array:
    """Add a bias to each channel."""
    channels = product.shape[-extents - 1 :][:1]
    if bias is not None and bias.shape != channels:
        raise ValueError(f"a bias of shape {bias.shape} does not match {channels[0]} channels")
    return product if bias is None else product + bias.reshape((-1,) + (1,) * extents)


@formula_function
def bias_tangent(tangent: Any, extents: int) -> Any:
    """Return the tangent of the bias of each channel, in a shape that broadcasts."""
    return 0 if tangent is None else tangent.reshape((-1,) + (1,) * extents)


# -- public functions --------------------------------------------------------------------------------------------------


def convolved(n: int) -> Any:
    """Return the forward of a convolution in `n` dimensions."""

    def forward(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Array:
        if weight.ndim != n + 2:
            raise ValueError(f"conv{n}d requires weights of {n + 2} dimensions, not of shape {weight.shape}")
        window = window_of(weight.shape[2:], stride, padding, dilation)
        return with_bias(convolution_forward(x, weight, window, groups), bias, n)

    return forward


def transposed_window(
    extents: Sequence[int], kernel: Sequence[int], stride: Any, padding: Any, output_padding: Any, dilation: Any
) -> tuple[tuple[int, ...], Window]:
    """Return the extents after a transposed convolution, and the window of the corresponding convolution."""
    window = window_of(kernel, stride, padding, dilation)
    extra = tuple_of(output_padding, len(kernel), "output_padding")
    if any(more >= step for more, step in zip(extra, window.stride)):
        raise ValueError(f"output_padding {extra} must be less than the stride {window.stride}")
    after = tuple(
        (count - 1) * step - before - behind + gap * (k - 1) + 1 + more
        for count, k, step, (before, behind), gap, more in zip(extents, kernel, *window, extra, strict=True)
    )
    return after, window


def transposed(n: int) -> Any:
    """Return the forward of a transposed convolution in `n` dimensions."""

    def forward(
        x: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Array:
        if weight.ndim != n + 2:
            raise ValueError(f"conv_transpose{n}d requires weights of {n + 2} dimensions, not of shape {weight.shape}")
        after, window = transposed_window(x.shape[-n:], weight.shape[2:], stride, padding, output_padding, dilation)
        return with_bias(convolution_input_forward(x, weight, after, window, groups), bias, n)

    return forward


@formula_function
def conv_window(weight_shape: tuple[int, ...], stride: Any, padding: Any, dilation: Any) -> Window:
    """Return the window of a convolution with weights of the given shape."""
    return window_of(weight_shape[2:], stride, padding, dilation)


WINDOW = "conv_window(weight%s.shape, stride, padding, dilation)"

for _n in (1, 2, 3):
    _w, _w_p = WINDOW % "", WINDOW % "_p"
    row(
        f"conv{_n}d(self, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
        convolved(_n),
        {
            "self": f"_convolution_input(grad, conj(weight), extents_of(self.shape, weight.shape), {_w}, groups)",
            "weight": f"_convolution_weight(conj(self), grad, weight.shape[2:], {_w}, groups)",
            "bias": f"over_channels(grad, {_n})",
        },
        forward_derivative=f"_convolution(self_t, weight_p, {_w_p}, groups) "
        f"+ _convolution(self_p, weight_t, {_w_p}, groups) + bias_tangent(bias_t, {_n})",
        method=False,
        dtype_kinds="fc",
        doc=f"The convolution, without flipping the weights, in {_n} dimension{'s' * (_n > 1)}.",
    )
for _n in (1, 2):
    _w, _w_p = WINDOW % "", WINDOW % "_p"
    _extents = "extents_of(result.shape, weight_p.shape)"
    row(
        f"conv_transpose{_n}d(self, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)",
        transposed(_n),
        {
            "self": f"_convolution(grad, conj(weight), {_w}, groups)",
            "weight": f"_convolution_weight(grad, conj(self), weight.shape[2:], {_w}, groups)",
            "bias": f"over_channels(grad, {_n})",
        },
        forward_derivative=f"_convolution_input(self_t, weight_p, {_extents}, {_w_p}, groups) "
        f"+ _convolution_input(self_p, weight_t, {_extents}, {_w_p}, groups) + bias_tangent(bias_t, {_n})",
        method=False,
        dtype_kinds="fc",
        doc=f"The transposed convolution in {_n} dimension{'s' * (_n > 1)}.",
    )
