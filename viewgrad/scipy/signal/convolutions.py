"""Convolutions, correlations and recursive filters."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.define import OPERATORS
from ...operators.numpy_api.conversion import plain_values
from ...tensor.tensor import from_array
from ..wrap import Accepted, floating, maker, scipys_result

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted())
all_pole = OPERATORS["_all_pole"].function


# -- convolutions ------------------------------------------------------------------------------------------------------


def _sliding(x: Any, sizes: tuple[int, ...]) -> Any:
    """Return the windows of given sizes over all dimensions, as the last dimensions."""
    for dim, size in enumerate(sizes):
        x = x.unfold(dim, size)
    return x


def _correlated(x: Any, weights: Any) -> Any:
    """Return the sums of products of weights with each window that lies inside."""
    ndim = weights.ndim
    return np.tensordot(_sliding(x, weights.shape), weights, (tuple(range(ndim, 2 * ndim)), tuple(range(ndim))))


def _reversed(x: Any) -> Any:
    return x[(slice(None, None, -1),) * x.ndim]


def _convolved(a: Any, b: Any, mode: str) -> Any:
    if a.ndim != b.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if not a.ndim:
        return a * b
    if a.ndim == 1:
        full = np.convolve(a, b) if a.size and b.size else from_array(np.zeros(0))
    else:
        larger, smaller = (a, b) if a.size >= b.size else (b, a)
        margin = [(n - 1, n - 1) for n in smaller.shape]
        full = _correlated(np.pad(larger, margin), _reversed(smaller))
    if mode == "full":
        return full
    if mode == "same":
        extents = a.shape
    elif mode == "valid":
        first_larger = all(n >= m for n, m in zip(a.shape, b.shape))
        if not first_larger and not all(m >= n for n, m in zip(a.shape, b.shape)):
            raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
        extents = tuple(abs(n - m) + 1 for n, m in zip(a.shape, b.shape))
    else:
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    starts = [(whole - extent) // 2 for whole, extent in zip(full.shape, extents)]
    return full[tuple(slice(start, start + extent) for start, extent in zip(starts, extents))].clone()  # type: ignore[union-attr]


@made
def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", *, axes: Any = None, dot_axes: Any = None
) -> Any:
    """Return the convolution of two tensors of the same number of dimensions.

    Arguments:
        in1, in2: the tensors.
        mode: "full", "same" (the middle, shaped like the first) or "valid" (where one lies inside the other).
        method: has no effect.
        axes: two lists of the dimensions to convolve over, one for each tensor. All combinations of the other
            dimensions come first in the result, as in `autograd.scipy.signal.convolve`.
        dot_axes: two lists of dimensions that are multiplied element by element and summed.
    """
    a, b = floating(in1), floating(in2)
    if axes is None and dot_axes is None:
        return _convolved(a, b, mode)
    over = axes if axes is not None else ([], [])
    result = _convolved_over(a, b, over, dot_axes or ([], []), mode)
    count = len(over[0])
    return result.moveaxis(tuple(range(count)), tuple(range(-count, 0))) if count else result


def _convolved_over(a: Any, b: Any, axes: Any, dots: Any, mode: str) -> Any:
    """Return a convolution over some dimensions, a sum of products over others, for all combinations of the rest."""
    of_a, of_b = ([dim % t.ndim for dim in dims] for dims, t in zip(axes, (a, b)))
    dot_a, dot_b = ([dim % t.ndim for dim in dims] for dims, t in zip(dots, (a, b)))
    free_a = [dim for dim in range(a.ndim) if dim not in (*of_a, *dot_a)]
    free_b = [dim for dim in range(b.ndim) if dim not in (*of_b, *dot_b)]
    count = len(of_a)
    a, b = a.transpose([*of_a, *free_a, *dot_a]), b.transpose([*of_b, *free_b, *dot_b])
    lengths, widths = a.shape[:count], b.shape[:count]
    if mode == "valid" and any(n < m for n, m in zip(lengths, widths)):
        swapped = _convolved_over(
            b,
            a,
            (list(range(count)),) * 2,
            ([b.ndim - 1 - i for i in range(len(dot_b))][::-1], [a.ndim - 1 - i for i in range(len(dot_a))][::-1]),
            mode,
        )
        order = [*range(count), *range(count + len(free_b), count + len(free_b) + len(free_a)),
                 *range(count, count + len(free_b))]  # fmt: skip
        return swapped.transpose(order)
    if mode != "valid":
        a = np.pad(a, [(m - 1, m - 1) for m in widths] + [(0, 0)] * (a.ndim - count))
    windows = a
    for dim, size in enumerate(widths):
        windows = windows.unfold(dim, size)
    kernel = b[(slice(None, None, -1),) * count]
    sums_a = [*range(a.ndim, a.ndim + count), *range(a.ndim - len(dot_a), a.ndim)]
    sums_b = [*range(count), *range(b.ndim - len(dot_b), b.ndim)]
    full = np.tensordot(windows, kernel, (sums_a, sums_b))
    if mode == "same":
        index = tuple(slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in zip(lengths, widths))
        return full[index].clone()  # type: ignore[attr-defined]
    return full


@made
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Return the correlation of two tensors."""
    a, b = floating(in1), floating(in2)
    if mode == "valid" and all(m >= n for n, m in zip(a.shape, b.shape)) and a.shape != b.shape:
        return _reversed(_convolved(b, _reversed(a.conj()), mode)).conj()
    return _convolved(a, _reversed(b.conj()), mode)


@made
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Return the convolution of two tensors over some dimensions, broadcast over the others."""
    a, b = floating(in1), floating(in2)
    if axes is None:
        return _convolved(a, b, mode)
    wanted = scipys_result(scipy.signal.fftconvolve, (a, b), {"mode": mode, "axes": axes})
    over = sorted({int(axis) % a.ndim for axis in np.atleast_1d(plain_values(axes))})
    lengths = [a.shape[dim] + b.shape[dim] - 1 for dim in over]
    full: Any = np.fft.ifftn(np.fft.fftn(a, lengths, over) * np.fft.fftn(b, lengths, over), lengths, over)
    full = full if wanted.dtype.kind == "c" else full.real
    starts = [(whole - extent) // 2 for whole, extent in zip(full.shape, wanted.shape)]
    return full[tuple(slice(start, start + extent) for start, extent in zip(starts, wanted.shape))].clone()


@made
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Return the convolution of two tensors."""
    return MADE["fftconvolve"](in1, in2, mode, axes)


MODES = {"fill": "constant", "symm": "symmetric", "wrap": "wrap"}


def _check_planes(a: Any, b: Any, mode: str, boundary: str) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("inputs must both be 2-D arrays")
    if mode not in ("full", "same", "valid") or boundary not in MODES:
        raise ValueError("acceptable modes are 'valid', 'same', 'full', acceptable boundaries 'fill', 'wrap', 'symm'")


def _lies_inside(a: Any, b: Any, mode: str) -> bool:
    """Return whether the first of two inputs is the one that is shifted over the other."""
    if mode != "valid":
        return False
    if all(n >= m for n, m in zip(a.shape, b.shape)):
        return False
    if any(n > m for n, m in zip(a.shape, b.shape)):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    return True


@made
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """Return the convolution of two matrices, extended beyond the boundary of the first."""
    a, b = floating(in1), floating(in2)
    _check_planes(a, b, mode, boundary)
    if _lies_inside(a, b, mode):
        a, b = b, a
    if boundary == "fill" and fillvalue == 0:
        return _convolved(a, b, mode)
    margin = [(m - 1, m - 1) for m in b.shape]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    whole = _correlated(np.pad(a, margin, MODES[boundary], **options), _reversed(b))  # type: ignore[call-overload]
    if mode == "full":
        return whole
    extents = a.shape if mode == "same" else tuple(n - m + 1 for n, m in zip(a.shape, b.shape))
    starts = [(n - m) // 2 for n, m in zip(whole.shape, extents)]
    return whole[tuple(slice(start, start + extent) for start, extent in zip(starts, extents))].clone()


@made
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """Return the correlation of two matrices."""
    a, b = floating(in1), floating(in2)
    _check_planes(a, b, mode, boundary)
    if _lies_inside(a, b, mode):
        return _reversed(MADE["correlate2d"](b, a, mode, boundary, fillvalue)).clone()
    weights = _reversed(b.conj())
    if mode != "same":
        return MADE["convolve2d"](a, weights, mode, boundary, fillvalue)
    whole = MADE["convolve2d"](a, weights, "full", boundary, fillvalue)
    return whole[tuple(slice(m // 2, m // 2 + n) for n, m in zip(a.shape, weights.shape))].clone()


# -- recursive filters -------------------------------------------------------------------------------------------------


@made
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Apply a linear filter: `sum(a[k] * y[n - k]) = sum(b[k] * x[n - k])`.

    Arguments:
        b, a: the coefficients of the numerator and of the denominator.
        x: the samples.
        axis: the dimension of the samples.
        zi: the initial state; if given, the final state is returned as well.
    """
    b, a, x = (np.atleast_1d(floating(value)) for value in (b, a, x))
    if not plain_values(a)[0]:
        raise ValueError("a filter whose coefficient a[0] is 0 is not supported")
    b, a = b / a[0], a / a[0]
    order = max(a.size, b.size) - 1
    b, a = (np.concatenate([each, np.zeros(order + 1 - each.size)]) for each in (b, a))
    x = np.moveaxis(x, axis, -1)
    count = x.shape[-1]
    driven = _taps(b, x)
    if zi is not None:
        given = floating(zi)
        if given.ndim != x.ndim or given.shape[axis] != order:
            raise ValueError(f"Unexpected shape for zi: {given.shape}; its length along the axis must be {order}")
        state = np.moveaxis(given, axis, -1)
        state = state.broadcast_to((*x.shape[:-1], order))
        start = state[..., :count]
        if count > order:
            start = np.concatenate([start, np.zeros((*x.shape[:-1], count - order))], -1)
        driven = driven + start
    y = all_pole(driven, a) if a.size > 1 else driven
    result = np.moveaxis(y, -1, axis)
    if a.size > 1:
        result = result.contiguous()  # in row-major order, as from SciPy
    if zi is None:
        return result
    final = []
    for m in range(order):
        total: Any = state[..., m + count] if m + count < order else x[..., 0] * 0.0
        for k in range(m + 1, order + 1):
            if 0 <= count - k + m < count:
                total = total + b[k] * x[..., count - k + m] - a[k] * y[..., count - k + m]
        final.append(total)
    ending = np.stack(final, -1) if final else from_array(np.zeros((*x.shape[:-1], 0)))
    return result, np.moveaxis(ending, -1, axis)  # type: ignore[type-var]


def _taps(b: Any, x: Any) -> Any:
    """Return samples convolved with coefficients, truncated to their original number."""
    padded = np.concatenate([np.zeros((*x.shape[:-1], b.size - 1)), x], -1)
    return padded.unfold(-1, b.size) @ b[::-1]  # type: ignore[attr-defined]


@made
def lfilter_zi(b: Any, a: Any) -> Any:
    """Return the steady state of a filter for the step response."""
    b, a = (np.atleast_1d(floating(value)) for value in (b, a))
    if not plain_values(a)[0]:
        scipy.signal.lfilter_zi(plain_values(b), plain_values(a))  # raises from SciPy 1.18 on
    while a.shape[0] > 1 and not plain_values(a)[0]:
        a = a[1:]
    b, a = b / a[0], a / a[0]
    size = max(a.size, b.size)
    b, a = (np.concatenate([each, np.zeros(size - each.size)]) for each in (b, a))
    below = np.eye(size - 2, size - 1)
    companion = np.concatenate([-a[1:][None, :], below]).mT
    return np.linalg.solve(np.eye(size - 1) - companion, b[1:] - a[1:] * b[0])


def sections_of(sos: Any) -> Any:
    """Return the sections of a cascade as the rows of a tensor."""
    sos = floating(sos)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    return sos


@made
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Apply a cascade of second-order filters."""
    sos, y = sections_of(sos), floating(x)
    if zi is None:
        for section in sos:
            y = MADE["lfilter"](section[:3], section[3:], y, axis)
        return y
    states, zi = [], floating(zi)
    wanted = list(y.shape)
    wanted[axis] = 2
    if zi.shape != (sos.shape[0], *wanted):
        raise ValueError(f"Invalid zi shape {zi.shape}; it must be {(sos.shape[0], *wanted)}.")
    for section, state in zip(sos, zi):
        y, ending = MADE["lfilter"](section[:3], section[3:], y, axis, state)
        states.append(ending)
    return y, np.stack(states)


@made
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """Apply a filter forwards and backwards, with zero phase."""
    if method != "pad" or padtype not in ("odd", "even", "constant", None):
        raise TypeError("filtfilt of tensors supports method='pad' with padtype 'odd', 'even', 'constant' or None")
    b, a, x = (np.atleast_1d(floating(value)) for value in (b, a, x))
    x = np.moveaxis(x, axis, -1)
    edge = 0 if padtype is None else 3 * max(a.size, b.size) if padlen is None else max(int(padlen), 0)
    if x.shape[-1] <= edge:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    extended = x
    if edge:
        first, last = x[..., :1], x[..., -1:]
        left, right = x[..., edge:0:-1], x[..., -2 : -(edge + 2) : -1]
        if padtype == "odd":
            left, right = 2 * first - left, 2 * last - right
        elif padtype == "constant":
            left, right = first.broadcast_to(left.shape), last.broadcast_to(right.shape)
        extended = np.concatenate([left, x, right], -1)
    state = MADE["lfilter_zi"](b, a)
    y, _ = MADE["lfilter"](b, a, extended, -1, state * extended[..., :1])
    y, _ = MADE["lfilter"](b, a, y[..., ::-1], -1, state * y[..., -1:])
    y = y[..., ::-1]
    return np.moveaxis(y[..., edge : y.shape[-1] - edge], -1, axis)


@made
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """Remove the mean or piecewise linear trends from samples."""
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    data = np.moveaxis(floating(data), axis, -1)
    if type in ("constant", "c"):
        return np.moveaxis(data - data.mean(-1, keepdims=True), -1, axis)
    ends = np.unique(np.concatenate([[0], np.atleast_1d(plain_values(bp)), [data.shape[-1]]])).astype(int)
    if np.any(ends > data.shape[-1]):
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    parts = []
    for start, end in itertools.pairwise(ends.tolist()):
        base = np.stack([np.arange(1, end - start + 1) / (end - start), np.ones(end - start)], 1)
        part = data[..., start:end]
        parts.append(part - (part @ np.linalg.pinv(base).T) @ base.T)
    return np.moveaxis(np.concatenate(parts, -1) if len(parts) > 1 else parts[0], -1, axis)


@made
def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    """Return the analytic signal."""
    x = floating(x)
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    count = x.shape[axis] if N is None else int(N)
    gains = np.zeros(count)
    gains[0] = 1
    gains[1 : (count + 1) // 2] = 2
    if count % 2 == 0:
        gains[count // 2] = 1
    shape = [1] * x.ndim
    shape[axis] = count
    return np.fft.ifft(np.fft.fft(x, count, axis) * gains.reshape(shape), axis=axis)
