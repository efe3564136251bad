"""The derivatives of pooling: the maximum or mean of windows that move over the last dimensions.

The first of several maxima gets the gradient, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...define import row
from ...language.namespace import formula_function
from ..helpers import call
from .convolution import Window, extents_after, steps_of, tuple_of, with_margin, without_margin

__all__: list[str] = []


def pooling_window(
    kernel_size: Any, stride: Any, padding: Any, dilation: Any, n: int
) -> tuple[tuple[int, ...], Window]:
    """Return the extents of the window and its stride, by default equal to the extents."""
    kernel = tuple_of(kernel_size, n, "kernel_size")
    around = tuple_of(padding, n, "padding")
    if min(kernel) < 1 or any(2 * extent > size or extent < 0 for extent, size in zip(around, kernel)):
        raise ValueError(f"the padding of pooling must be at most half of the kernel_size {kernel}, not {around}")
    strides = kernel if stride is None else tuple_of(stride, n, "stride")
    return kernel, Window(strides, tuple((extent, extent) for extent in around), tuple_of(dilation, n, "dilation"))


def flattened(a: Any, n: int) -> Any:
    """Flatten the last `n` dimensions into one."""
    return a.reshape(a.shape[: a.ndim - n] + (math.prod(a.shape[a.ndim - n :]),))


# -- maximum -----------------------------------------------------------------------------------------------------------


def max_pool(n: int) -> Any:
    """Return the forward of max pooling over `n` dimensions."""

    def forward(a: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> tuple[Any, Any]:
        kernel, window = pooling_window(kernel_size, stride, padding, dilation, n)
        places = extents_after(a.shape[-n:], kernel, window)
        numbers = np.arange(math.prod(a.shape[-n:])).reshape(a.shape[-n:])
        padded, numbers = with_margin(a, window), with_margin(numbers, window, -1)
        values: Any = np.zeros((*a.shape[:-n], *places), a.dtype)
        indices: Any = np.full(values.shape, -1)
        for _, under in steps_of(kernel, places, window):
            value, number = padded[under], numbers[under]
            better = (indices < 0) | (value > values) | ((value != value) & (values == values))
            better &= number >= 0
            np.copyto(values, value, where=better)
            np.copyto(indices, number, where=better)
        if (indices < 0).any():
            raise ValueError("a window of max pooling contains only padding; reduce the padding or the dilation")
        return values, indices

    return forward


@formula_function
def max_pool_gradient(grad: Any, indices: Any, shape: tuple[int, ...], n: int) -> Any:
    """Scatter the gradient to the selected positions."""
    length = math.prod(shape[len(shape) - n :])
    return call("_scatter_along_axis", flattened(grad, n), flattened(indices, n), -1, length).reshape(shape)


@formula_function
def pooled_tangent(tangent: Any, indices: Any, n: int) -> Any:
    """Return the tangent at the selected positions."""
    return np.take_along_axis(flattened(tangent, n), flattened(indices, n), -1).reshape(indices.shape)


for _n in (1, 2):
    row(
        f"max_pool{_n}d(self, kernel_size, stride=None, padding=0, dilation=1) -> (values, indices)",
        max_pool(_n),
        {"self": f"max_pool_gradient(grad, indices, self.shape, {_n})"},
        nondifferentiable_outputs=("indices",),
        forward_derivative={"values": f"pooled_tangent(self_t, indices, {_n})"},
        method=False,
        doc=f"The maximum of each window over the last {('dimension', '2 dimensions')[_n - 1]}, and its flat "
        "index; the gradient flows to the first of equal values.",
    )

# -- mean --------------------------------------------------------------------------------------------------------------


def window_sums_forward(a: Any, kernel: tuple[int, ...], window: Window) -> Any:
    n = len(kernel)
    places = extents_after(a.shape[a.ndim - n :], kernel, window)
    total = np.zeros((*a.shape[: a.ndim - n], *places), a.dtype)
    padded = with_margin(a, window)
    for _, under in steps_of(kernel, places, window):
        total += padded[under]
    return total


def window_spread_forward(a: Any, extents: tuple[int, ...], kernel: tuple[int, ...], window: Window) -> Any:
    n = len(kernel)
    if extents_after(extents, kernel, window) != a.shape[a.ndim - n :]:
        raise ValueError(f"windows {kernel} on {tuple(extents)} do not have the shape {a.shape}")
    full = [extent + before + after for extent, (before, after) in zip(extents, window.padding)]
    total: Any = np.zeros((*a.shape[: a.ndim - n], *full), a.dtype)
    for _, under in steps_of(kernel, a.shape[a.ndim - n :], window):
        total[under] += a
    return without_margin(total, extents, window)


row(
    "_window_sums(self, kernel, window)",
    window_sums_forward,
    {"self": "_window_spread(grad, self.shape[self.ndim - len(kernel):], kernel, window)"},
    forward_derivative="auto_linear",
    method=False,
    dtype_kinds="fc",
    doc="The sums over sliding windows of the last dimensions.",
)
row(
    "_window_spread(self, extents, kernel, window)",
    window_spread_forward,
    {"self": "_window_sums(grad, kernel, window)"},
    forward_derivative="auto_linear",
    method=False,
    dtype_kinds="fc",
    doc="Zeros with the given trailing shape, with each value added everywhere in its window.",
)


def pooling_shares(
    extents: tuple[int, ...], kernel: tuple[int, ...], window: Window, count_include_pad: bool, dtype: Any
) -> Any:
    """Return the weight of each value of a window in its mean."""
    if count_include_pad:
        return 1 / math.prod(kernel)
    return np.reciprocal(window_sums_forward(np.ones(extents, np.empty(0, dtype).real.dtype), kernel, window))


def avg_pool(n: int) -> Any:
    """Return the forward of average pooling over `n` dimensions."""

    def forward(a: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = True) -> Any:
        kernel, window = pooling_window(kernel_size, stride, padding, 1, n)
        shares = pooling_shares(a.shape[-n:], kernel, window, count_include_pad, a.dtype)
        return window_sums_forward(a, kernel, window) * shares

    return forward


@formula_function
def avg_pool_gradient(
    grad: Any, shape: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, count_include_pad: bool, n: int
) -> Any:
    """Return the gradient of average pooling with respect to its input."""
    kernel, window = pooling_window(kernel_size, stride, padding, 1, n)
    extents = shape[len(shape) - n :]
    shares = pooling_shares(extents, kernel, window, count_include_pad, grad.dtype)
    return call("_window_spread", grad * shares, extents, kernel, window)


for _n in (1, 2):
    row(
        f"avg_pool{_n}d(self, kernel_size, stride=None, padding=0, count_include_pad=True)",
        avg_pool(_n),
        {"self": f"avg_pool_gradient(grad, self.shape, kernel_size, stride, padding, count_include_pad, {_n})"},
        forward_derivative="auto_linear",
        method=False,
        dtype_kinds="fc",
        doc=f"The mean of each window over the last {('dimension', '2 dimensions')[_n - 1]}; zeros from padding count, "
        "unless `count_include_pad` is false.",
    )
