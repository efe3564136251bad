"""Filters of samples (smoothing, resampling, ranks, zero phase), and waveforms."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from .. import ndimage
from ..wrap import Accepted, floating, maker, numbers
from .convolutions import MADE as CONVOLUTIONS
from .convolutions import sections_of

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted())


def _along(x: Any, axis: int) -> Any:
    return np.moveaxis(floating(x), axis, -1)


def _convolved(x: Any, h: Any) -> Any:
    """Return the full convolution of samples along the last dimension with coefficients."""
    size = h.shape[0]
    padded: Any = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(size - 1, size - 1)])
    return padded.unfold(-1, size) @ h[::-1]


# -- smoothing ---------------------------------------------------------------------------------------------------------


@made
def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
    mode: str = "interp", cval: float = 0.0,
) -> Any:  # fmt: skip
    """Apply a Savitzky-Golay filter."""
    if mode not in ("mirror", "constant", "nearest", "wrap", "interp"):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    x = floating(x)
    x = x.real if x.dtype.kind == "c" else x  # as in SciPy, which discards imaginary parts
    scale = numbers(delta) ** -float(deriv)
    coefficients = scipy.signal.savgol_coeffs(window_length, polyorder, deriv) * scale
    if mode != "interp":
        return ndimage.convolve1d(floating(x), coefficients, axis, None, mode, cval)
    x = _along(x, axis)
    if window_length > x.shape[-1]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    half = window_length // 2
    fitted = scipy.signal.savgol_filter(np.eye(window_length), window_length, polyorder, deriv, axis=0) * scale
    middle = (x.unfold(-1, window_length) @ coefficients[::-1])[..., 1 - window_length % 2 :]
    ends = fitted[:half].T, fitted[window_length - half :].T
    parts = [x[..., :window_length] @ ends[0], middle, x[..., -window_length:] @ ends[1]]
    return np.moveaxis(np.concatenate(parts, -1), -1, axis)


@made
def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Any:
    """Apply a Wiener filter."""
    im = floating(im)
    sizes = np.broadcast_to(3 if mysize is None else np.asarray(plain_values(mysize)), (im.ndim,))
    weights = np.ones(tuple(int(size) for size in sizes)) / np.prod(sizes)
    mean = CONVOLUTIONS["correlate"](im, weights, "same")
    variance = CONVOLUTIONS["correlate"](im * im, weights, "same") - mean * mean
    level = variance.mean() if noise is None else numbers(noise)
    return np.where(plain_values(variance) < plain_values(level), mean, mean + (im - mean) * (1 - level / variance))


@made
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Apply a median filter with zero padding."""
    volume = floating(volume)
    if volume.dtype.kind == "c":
        raise ValueError(f"dtype={volume.dtype} is not supported by medfilt")
    sizes = np.broadcast_to(3 if kernel_size is None else np.asarray(plain_values(kernel_size)), (volume.ndim,))
    if np.any(sizes % 2 == 0):
        raise ValueError("Each element of kernel_size should be odd.")
    return ndimage.median_filter(volume, tuple(int(size) for size in sizes), mode="constant")


@made
def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """Apply a median filter to a matrix with zero padding."""
    return MADE["medfilt"](input, kernel_size)


@made
def order_filter(a: Any, domain: Any, rank: int) -> Any:
    """Apply a rank filter with zero padding."""
    footprint = np.asarray(plain_values(domain)) != 0
    if any(size % 2 == 0 for size in footprint.shape):
        raise ValueError("Each dimension of domain argument should have an odd number of elements.")
    return ndimage.rank_filter(floating(a), int(rank), footprint=footprint, mode="constant")


@made
def sosfilt_zi(sos: Any) -> Any:
    """Return the steady state of a cascade for the step response."""
    sos = sections_of(sos)
    states, scale = [], 1.0
    for section in sos:
        b, a = section[:3], section[3:]
        states.append(scale * CONVOLUTIONS["lfilter_zi"](b, a))
        scale = scale * (b.sum() / a.sum())
    return np.stack(states)


def _lengthened(x: Any, count: int, kind: Any) -> Any:
    if not count:
        return x
    left, right = x[..., count:0:-1], x[..., -2 : -(count + 2) : -1]
    first, last = x[..., :1], x[..., -1:]
    if kind == "odd":
        left, right = 2 * first - left, 2 * last - right
    elif kind == "constant":
        left, right = first.broadcast_to(left.shape), last.broadcast_to(right.shape)
    elif kind != "even":
        raise ValueError(f"padtype must be 'even', 'odd', 'constant', or None, but is {kind!r}.")
    return np.concatenate([left, x, right], -1)


@made
def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """Apply a cascade forwards and backwards, with zero phase."""
    sos, x = sections_of(sos), _along(x, axis)
    plain = plain_values(sos)
    size = 2 * len(plain) + 1 - min((plain[:, 2] == 0).sum(), (plain[:, 5] == 0).sum())
    edge = 0 if padtype is None else int(size) * 3 if padlen is None else max(int(padlen), 0)
    if x.shape[-1] <= edge:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    y = _lengthened(x, edge, padtype)
    state = MADE["sosfilt_zi"](sos)
    state = state.reshape((len(plain), *(1,) * (x.ndim - 1), 2))
    for _ in range(2):
        y = CONVOLUTIONS["sosfilt"](sos, y, -1, state * y[..., :1])[0][..., ::-1]
    return np.moveaxis(y[..., edge : y.shape[-1] - edge], -1, axis)


@made
def deconvolve(signal: Any, divisor: Any) -> Any:
    """Return the quotient and remainder of a polynomial division of two series."""
    top, bottom = np.atleast_1d(floating(signal)), np.atleast_1d(floating(divisor))
    n, d = top.shape[0], bottom.shape[0]
    if d > n:
        return numbers(np.zeros(0)), top
    pulse = np.zeros(n - d + 1)
    pulse[0] = 1
    quotient = CONVOLUTIONS["lfilter"](top, bottom, pulse)
    return quotient, top - np.convolve(bottom, quotient)


@made
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """Return the state of a filter from past outputs and inputs."""
    b, a, y = (np.atleast_1d(floating(each)) for each in (b, a, y))
    b, a = b / a[0], a / a[0]
    top, bottom = b.shape[0] - 1, a.shape[0] - 1
    size = max(top, bottom)
    x = numbers(np.zeros(top)) if x is None else floating(x)
    rows = []
    for place in range(size):
        total: Any = b[0] * 0.0
        for k in range(place + 1, size + 1):
            if k <= top and k - place - 1 < x.shape[0]:
                total = total + b[k] * x[k - place - 1]
            if k <= bottom and k - place - 1 < y.shape[0]:
                total = total - a[k] * y[k - place - 1]
        rows.append(total)
    return np.stack(rows) if rows else numbers(np.zeros(0))


# -- resampling --------------------------------------------------------------------------------------------------------


@made
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    """Upsample, filter and downsample."""
    if mode != "constant" or cval:
        raise lost("scipy.signal.upfirdn", "for tensors with a history only mode='constant' with cval=0 is supported")
    h, x, up, down = floating(h), _along(x, axis), int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    if up > 1:
        zeros = np.zeros((*x.shape, up - 1))
        x = np.concatenate([x[..., None], zeros], -1).reshape((*x.shape[:-1], -1))[..., : (x.shape[-1] - 1) * up + 1]
    return np.moveaxis(_convolved(x, h)[..., ::down], -1, axis)


@made
def resample_poly(
    x: Any, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0), padtype: str = "constant",
    cval: Any = None,
) -> Any:  # fmt: skip
    """Resample with a polyphase filter."""
    if padtype != "constant" or cval:
        raise lost(
            "scipy.signal.resample_poly", "for tensors with a history only padtype='constant' with cval=0 is supported"
        )
    x = floating(x)
    if up != int(up) or down != int(down) or up < 1 or down < 1:
        raise ValueError("up and down must be integers >= 1")
    common = math.gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return x * 1.0
    count = -(-x.shape[axis] * up // down)
    if isinstance(window, (list, np.ndarray)) or hasattr(window, "grad_fn"):
        h = floating(window)
        half = (h.shape[0] - 1) // 2
    else:
        half = 10 * max(up, down)
        h = numbers(scipy.signal.firwin(2 * half + 1, 1.0 / max(up, down), window=window))
    before = down - half % down
    skipped, after = (half + before) // down, 0
    while ((x.shape[axis] - 1) * up + h.shape[0] + before + after - 1) // down + 1 < count + skipped:
        after += 1
    h = np.concatenate([np.zeros(before), h * up, np.zeros(after)])
    y = np.moveaxis(MADE["upfirdn"](h, x, up, down, axis), axis, -1)
    return np.moveaxis(y[..., skipped : skipped + count], -1, axis)


@made
def decimate(x: Any, q: int, n: Any = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True) -> Any:
    """Downsample after applying an anti-aliasing filter."""
    x = _along(x, axis)
    if ftype == "iir":
        sos = scipy.signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
        y = (MADE["sosfiltfilt"] if zero_phase else CONVOLUTIONS["sosfilt"])(sos, x)[..., ::q]
    elif ftype == "fir":
        taps = scipy.signal.firwin((20 * q if n is None else n) + 1, 1.0 / q, window="hamming")
        if zero_phase:
            y = MADE["resample_poly"](x, 1, q, -1, taps)
        else:
            y = MADE["upfirdn"](taps, x, 1, q)[..., : -(-x.shape[-1] // q)]
    else:
        raise lost("scipy.signal.decimate", "for tensors with a history ftype must be 'iir' or 'fir'")
    return np.moveaxis(y, -1, axis)


@made
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """Resample by the Fourier method."""
    if window is not None or domain != "time":
        raise lost(
            "scipy.signal.resample",
            "for tensors with a history window is not supported, and samples must be in the time "
            "domain",
        )
    x = _along(x, axis)
    count, kept = x.shape[-1], min(int(num), x.shape[-1])
    found: Any
    if x.dtype.kind == "c":
        whole = np.fft.fft(x)
        high, low = (kept + 1) // 2, (kept - 1) // 2
        middle = whole[..., kept // 2 : kept // 2 + 1]
        if kept % 2 == 0:
            other = whole[..., count - kept // 2 : count - kept // 2 + 1]
            middle = middle if num == count else middle + other if num < count else middle * 0.5
        parts = [whole[..., :high]]
        zeros = np.zeros((*x.shape[:-1], max(int(num) - kept - (kept % 2 == 0 and num > count), 0)))
        parts += [middle] if kept % 2 == 0 else []
        parts += [zeros]
        parts += [middle] if kept % 2 == 0 and num > count else []
        parts += [whole[..., count - low :]] if low else []
        found = np.fft.ifft(np.concatenate(parts, -1))
    else:
        half = np.fft.rfft(x)[..., : kept // 2 + 1]
        if kept % 2 == 0 and num != count:
            scale = np.ones(kept // 2 + 1)
            scale[-1] = 2.0 if num < count else 0.5
            half = half * scale
        found = np.fft.irfft(half, int(num))
    y = np.moveaxis(found * (num / count), -1, axis)
    if t is None:
        return y
    t = floating(t)
    return y, np.arange(int(num)) * (t[1] - t[0]) * count / float(num) + t[0]


# -- waveforms ---------------------------------------------------------------------------------------------------------


@made
def sawtooth(t: Any, width: Any = 1) -> Any:
    """Return a sawtooth or triangle wave."""
    t, width = floating(t), numbers(width) * 1.0
    phase = t - 2 * math.pi * np.floor(plain_values(t) / (2 * math.pi))
    rising = plain_values(phase) < plain_values(width) * 2 * math.pi
    up = phase / (math.pi * np.where(rising, width, 1.0)) - 1
    down = (math.pi * (width + 1) - phase) / (math.pi * np.where(rising, 1.0, 1 - width))
    found = np.where(rising, up, down)
    allowed = (plain_values(width) >= 0) & (plain_values(width) <= 1)
    return found if np.all(allowed) else np.where(allowed, found, np.nan)


@made
def chirp(
    t: Any, f0: Any, t1: Any, f1: Any, method: str = "linear", phi: Any = 0, vertex_zero: bool = True, *,
    complex: bool = False,
) -> Any:  # fmt: skip
    """Return a frequency-swept cosine."""
    t, f0, t1, f1 = (numbers(each) * 1.0 for each in (t, f0, t1, f1))
    if method in ("logarithmic", "log", "lo") and not np.all(plain_values(f0) * plain_values(f1) > 0):
        raise ValueError("For a logarithmic chirp, f0 and f1 must be nonzero and have the same sign.")
    if method in ("hyperbolic", "hyp") and not (np.all(plain_values(f0)) and np.all(plain_values(f1))):
        raise ValueError("For a hyperbolic chirp, f0 and f1 must be nonzero.")
    named = method in ("logarithmic", "log", "lo", "hyperbolic", "hyp")
    # For equal frequencies, these agree with a linear chirp to first order.
    if method in ("linear", "lin", "li") or (named and np.all(plain_values(f0) == plain_values(f1))):
        phase = 2 * math.pi * (f0 * t + 0.5 * (f1 - f0) / t1 * t * t)
    elif method in ("quadratic", "quad", "q"):
        beta = (f1 - f0) / t1**2
        rise = f0 * t + beta * t**3 / 3 if vertex_zero else f1 * t + beta * ((t1 - t) ** 3 - t1**3) / 3
        phase = 2 * math.pi * rise
    elif method in ("logarithmic", "log", "lo"):
        ratio = np.log(f1 / f0)
        phase = 2 * math.pi * f0 * (t1 / ratio) * np.expm1(t / t1 * ratio)
    elif method in ("hyperbolic", "hyp"):
        singular = -f1 * t1 / (f0 - f1)
        phase = 2 * math.pi * (-singular * f0) * np.log(np.abs(1 - t / singular))
    else:
        raise ValueError(f"method must be 'linear', 'quadratic', 'logarithmic', or 'hyperbolic', but is {method!r}")
    angle = phase + numbers(phi) * (math.pi / 180)
    return np.exp(1j * angle) if complex else np.cos(angle)


@made
def sweep_poly(t: Any, poly: Any, phi: Any = 0) -> Any:
    """Return a cosine whose frequency is a polynomial of time, with the highest power first."""
    coefficients = floating(getattr(poly, "coeffs", poly))
    count = coefficients.shape[0]
    raised = np.concatenate([coefficients / np.arange(count, 0, -1.0), np.zeros(1)])
    return np.cos(2 * math.pi * np.polyval(raised, floating(t)) + numbers(phi) * (math.pi / 180))


@made
def gausspulse(
    t: Any, fc: Any = 1000, bw: Any = 0.5, bwr: Any = -6, tpr: Any = -60, retquad: bool = False, retenv: bool = False
) -> Any:
    """Return a Gaussian-modulated cosine."""
    t, fc, bw = (numbers(each) * 1.0 for each in (t, fc, bw))
    decay = -((math.pi * fc * bw) ** 2) / (4.0 * math.log(10.0 ** (bwr / 20.0)))
    envelope = np.exp(-decay * t * t)
    parts = [envelope * np.cos(2 * math.pi * fc * t)]
    parts += [envelope * np.sin(2 * math.pi * fc * t)] if retquad else []
    parts += [envelope] if retenv else []
    return tuple(parts) if len(parts) > 1 else parts[0]


@made
def gauss_spline(x: Any, n: int) -> Any:
    """Return the Gaussian approximation of a B-spline."""
    width = (n + 1) / 12.0
    return np.exp(floating(x) ** 2 / (-2 * width)) / math.sqrt(2 * math.pi * width)
