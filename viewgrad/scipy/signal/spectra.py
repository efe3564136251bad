"""Spectra: by segments, for unevenly spaced samples, and along arcs of the complex plane."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..wrap import Accepted, floating, maker, numbers
from .convolutions import MADE as CONVOLUTIONS

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted())
checked: Final = maker(scipy.signal, MADE, is_checked=True)
BOUNDARIES: Final = {"even": "reflect", "constant": "edge", "zeros": "constant"}


def _extended(x: Any, count: int, boundary: Any) -> Any:
    """Return samples extended at both ends of the last dimension."""
    if boundary is None or not count:
        return x
    if boundary == "odd":
        left, right = x[..., count:0:-1], x[..., -2 : -(count + 2) : -1]
        return np.concatenate([2 * x[..., :1] - left, x, 2 * x[..., -1:] - right], -1)
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], BOUNDARIES[boundary])  # type: ignore[call-overload]


def _samples(window: Any) -> Any:
    """Return the samples of a window, as an array unless they have a history."""
    return floating(window) if carries_history(window) else np.asarray(plain_values(window))


class Segments:
    """Segmentation and transformation of samples.

    Arguments:
        x: the samples, along the last dimension.
        fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling: as in SciPy.
    """

    def __init__(
        self, x: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
        return_onesided: bool, scaling: str,
    ) -> None:  # fmt: skip
        count = x.shape[-1]
        given = not (isinstance(window, (str, tuple)))
        if given and nperseg is not None and nperseg != len(window):
            raise ValueError(f"nperseg={nperseg} does not equal len(win)={len(window)}")
        size = len(window) if given else 256 if nperseg is None else int(nperseg)
        self.size = size if given else min(size, count)
        self.window = _samples(window) if given else scipy.signal.get_window(window, self.size)
        self.overlap = self.size // 2 if noverlap is None else int(noverlap)
        if self.overlap >= self.size:
            raise ValueError("noverlap must be less than nperseg.")
        self.nfft = self.size if nfft is None else int(nfft)
        if self.nfft < self.size:
            raise ValueError(f"nfft={self.nfft} must be greater than or equal to nperseg={self.size}!")
        if scaling not in ("density", "psd", "spectrum"):
            raise ValueError(f"Parameter scaling={scaling!r} is not one of 'density', 'psd' and 'spectrum'")
        self.fs, self.detrend = fs, detrend
        self.onesided = return_onesided and x.dtype.kind != "c"
        squares, total = (self.window**2).sum(), self.window.sum()
        self.scale = 1.0 / (fs * squares) if scaling in ("density", "psd") else 1.0 / total**2

    @property
    def frequencies(self) -> Any:
        """The frequencies of the transform."""
        make = np.fft.rfftfreq if self.onesided else np.fft.fftfreq
        return as_tensors(make(self.nfft, 1 / self.fs))

    def transformed(self, x: Any) -> Any:
        """Return the transforms of the segments; the dimension of the segments precedes that of the frequencies."""
        parts = x.unfold(-1, self.size, self.size - self.overlap)
        if self.detrend:
            kind = self.detrend
            parts = kind(parts) if callable(kind) else CONVOLUTIONS["detrend"](parts, -1, kind)
        transform = np.fft.rfft if self.onesided else np.fft.fft
        return transform(parts * self.window, self.nfft)

    def times(self, length: int) -> Any:
        """Return the times of the centres of the segments."""
        return np.arange(self.size / 2, length - self.size / 2 + 1, self.size - self.overlap) / self.fs


def _spectra(x: Any, y: Any, segments: Segments) -> Any:
    """Return the scaled products of the transforms of two series; the frequencies precede the segments."""
    first = segments.transformed(x)
    power = (first.conj() * (first if y is x else segments.transformed(y))) * segments.scale
    if segments.onesided:
        twice = np.full(power.shape[-1], 2.0)
        twice[0] = 1.0
        if segments.nfft % 2 == 0:
            twice[-1] = 1.0
        power = power * twice
    power = power.real * 1.0 if y is x else power
    return np.moveaxis(power, -1, -2)


@made
def csd(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> Any:  # fmt: skip
    """Return the frequencies and the cross-spectrum of two series, by Welch's method."""
    same = y is x
    x = np.moveaxis(floating(x), axis, -1)
    y = x if same else np.moveaxis(floating(y), axis, -1)
    if x.shape[-1] != y.shape[-1]:
        count = max(x.shape[-1], y.shape[-1])
        x, y = (np.concatenate([each, np.zeros((*each.shape[:-1], count - each.shape[-1]))], -1) for each in (x, y))
    segments = Segments(x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    power = _spectra(x, y, segments)
    if average == "median":
        n = power.shape[-1]
        terms = 2.0 * np.arange(1, (n - 1) // 2 + 1)
        bias = 1 + float((1.0 / (terms + 1) - 1.0 / terms).sum())
        parts = (power.real, power.imag) if power.dtype.kind == "c" else (power,)
        medians = [np.median(part, -1) / bias for part in parts]
        found = medians[0] + 1j * medians[1] if len(medians) > 1 else medians[0]
    elif average == "mean":
        found = power.mean(-1)
    else:
        raise ValueError(f"average must be 'median' or 'mean', got {average}")
    return segments.frequencies, np.moveaxis(found, -1, axis)


@made
def welch(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None, nfft: Any = None,
    detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1,
    average: str = "mean",
) -> Any:  # fmt: skip
    """Return the frequencies and the power spectrum of a series, by Welch's method."""
    return MADE["csd"](x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@made
def periodogram(
    x: Any, fs: Any = 1.0, window: Any = "boxcar", nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> Any:  # fmt: skip
    """Return the frequencies and the power spectrum of a whole series."""
    x = floating(x)
    count = x.shape[axis]
    if nfft is not None and nfft < count:
        index = [slice(None)] * x.ndim
        index[axis] = slice(int(nfft))
        x, count, nfft = x[tuple(index)], int(nfft), None
    window = "boxcar" if window is None else window
    if not isinstance(window, (str, tuple)) and len(window) != count:
        raise ValueError("the size of the window must be the same size of the input on the specified axis")
    return MADE["csd"](x, x, fs, window, count, 0, nfft, detrend, return_onesided, scaling, axis, "mean")


@made
def coherence(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, detrend: Any = "constant", axis: int = -1,
) -> Any:  # fmt: skip
    """Return the frequencies and the coherence of two series."""
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    frequencies, first = MADE["welch"](x, *options, axis=axis)
    _, second = MADE["welch"](y, *options, axis=axis)
    _, both = MADE["csd"](x, y, *options, axis=axis)
    return frequencies, np.abs(both) ** 2 / first / second


MODES: Final = ("psd", "complex", "magnitude", "angle", "phase")


@made
def spectrogram(
    x: Any, fs: Any = 1.0, window: Any = ("tukey", 0.25), nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, mode: str = "psd",
) -> Any:  # fmt: skip
    """Return the frequencies, the times and the spectra of segments."""
    if mode not in MODES:
        raise ValueError(f"unknown value for mode {mode}, must be one of {list(MODES)}")
    x = floating(x)
    axis %= x.ndim
    x = np.moveaxis(x, axis, -1)
    size = min(256 if nperseg is None else int(nperseg), x.shape[-1])
    if not isinstance(window, (str, tuple)):
        if nperseg is not None and nperseg != len(window):
            raise ValueError("value specified for nperseg is different from length of window")
        size = len(window)
    overlap = size // 8 if noverlap is None else noverlap
    segments = Segments(x, fs, window, size, overlap, nfft, detrend, return_onesided, scaling)
    times = as_tensors(segments.times(x.shape[-1]))
    if mode == "psd":
        return segments.frequencies, times, np.moveaxis(_spectra(x, x, segments), -2, axis)
    found = np.moveaxis(segments.transformed(x) * np.sqrt(segments.scale), -1, -2)
    if mode == "magnitude":
        found = np.abs(found)
    elif mode in ("angle", "phase"):
        found = np.angle(found)
        found = np.unwrap(found, axis=-2) if mode == "phase" else found
    return segments.frequencies, times, np.moveaxis(found, -2, axis)


def _check_scaling(scaling: str) -> None:
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")


@made
def stft(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = 256, noverlap: Any = None, nfft: Any = None,
    detrend: Any = False, return_onesided: bool = True, boundary: Any = "zeros", padded: bool = True, axis: int = -1,
    scaling: str = "spectrum",
) -> Any:  # fmt: skip
    """Return the frequencies, the times and the short-time Fourier transform."""
    _check_scaling(scaling)
    x = floating(x)
    axis %= x.ndim
    x = np.moveaxis(x, axis, -1)
    segments = Segments(x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    x = _extended(x, segments.size // 2 if boundary is not None else 0, boundary)
    step = segments.size - segments.overlap
    if padded:
        more = (-(x.shape[-1] - segments.size) % step) % segments.size
        x = np.concatenate([x, np.zeros((*x.shape[:-1], more))], -1)
    times = segments.times(x.shape[-1]) - (segments.size / 2 / fs if boundary is not None else 0.0)
    found = segments.transformed(x) * np.sqrt(segments.scale)
    return segments.frequencies, as_tensors(times), np.moveaxis(np.moveaxis(found, -1, -2), -2, axis)


@made
def istft(
    Zxx: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
    scaling: str = "spectrum",
) -> Any:  # fmt: skip
    """Return the times and the inverse short-time Fourier transform."""
    z = np.moveaxis(floating(Zxx), (freq_axis, time_axis), (-2, -1))
    full = 2 * (z.shape[-2] - 1) if input_onesided else z.shape[-2]
    size = full if nperseg is None else int(nperseg)
    length = (full + 1 if input_onesided and size == full + 1 else full) if nfft is None else int(nfft)
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size or length < size:
        raise ValueError("noverlap must be less than nperseg, and nfft greater than or equal to it.")
    _check_scaling(scaling)
    step, count = size - overlap, z.shape[-1]
    given = not isinstance(window, (str, tuple))
    weights = _samples(window) if given else scipy.signal.get_window(window, size)
    z = np.moveaxis(z, -2, -1)
    parts = (np.fft.irfft if input_onesided else np.fft.ifft)(z, length)[..., :size]
    parts = parts * (weights * (weights.sum() if scaling == "spectrum" else np.sqrt(fs * (weights**2).sum())))
    total = size + (count - 1) * step
    x, norm = numbers(np.zeros((*parts.shape[:-2], total), parts.dtype)), numbers(np.zeros(total))
    for place in range(count):
        x[..., place * step : place * step + size] += parts[..., place, :]
        norm[place * step : place * step + size] += weights**2
    half = size // 2 if boundary else 0
    x, norm = x[..., half : total - half], norm[half : total - half]
    x = x / np.where(norm > 1e-10, norm, 1.0)
    return as_tensors(np.arange(x.shape[-1])) / fs, x


# -- uneven sampling, and arcs -----------------------------------------------------------------------------------------


@made
def lombscargle(x: Any, y: Any, freqs: Any, precenter: bool = False, normalize: Any = False, *, weights: Any = None,
                floating_mean: bool = False) -> Any:  # fmt: skip
    """Return the Lomb-Scargle periodogram of unevenly sampled data."""
    kind = ("normalize" if normalize else "power") if isinstance(normalize, bool) else normalize
    if kind == "amplitude":
        raise lost("scipy.signal.lombscargle", "normalize='amplitude' is not supported for tensors with a history")
    if kind not in ("power", "normalize"):
        raise ValueError("Normalize must be: False (or 'power'), True (or 'normalize'), or 'amplitude'.")
    x, y, freqs = floating(x), floating(y), floating(freqs)
    share = numbers(np.full(x.shape, 1.0)) if weights is None else floating(weights)
    if not (x.ndim == 1 and x.shape[0] > 0 and x.shape == y.shape == share.shape):
        raise ValueError("Parameters x, y, weights must be 1-D arrays of equal non-zero length!")
    if freqs.ndim != 1 or not freqs.shape[0]:
        raise ValueError("Parameter freqs must be a 1-D array of non-zero length!")
    plain = plain_values(share)
    if np.any(plain < 0) or plain.sum() <= 0:
        raise ValueError("Parameter weights must have only non-negative entries which sum to a positive value!")
    share = share / share.sum()
    y = y - y.mean() if precenter else y
    if floating_mean:
        y = y - (share * y).sum()
    angles = freqs.reshape(-1)[:, None] * x
    cosine, sine = np.cos(angles), np.sin(angles)
    if floating_mean:
        cosine, sine = (each - (share * each).sum(-1, keepdims=True) for each in (cosine, sine))
    tau = 0.5 * np.arctan2(2.0 * (share * cosine * sine).sum(-1), (share * (cosine * cosine - sine * sine)).sum(-1))
    moved = angles - tau[:, None]
    cosine, sine = np.cos(moved), np.sin(moved)
    if floating_mean:
        cosine, sine = (each - (share * each).sum(-1, keepdims=True) for each in (cosine, sine))
    least = float(np.finfo(float).epsneg)  # the minimum sum of squares, for waves that are 0 at all times
    of_cosine, of_sine = (share * y * cosine).sum(-1), (share * y * sine).sum(-1)
    found = of_cosine**2 / np.maximum((share * cosine * cosine).sum(-1), least)
    found = found + of_sine**2 / np.maximum((share * sine * sine).sum(-1), least)
    squares = (share * y * y).sum()
    found = found / squares if kind == "normalize" else found * (x.shape[0] / 2.0)
    return found[0] if freqs.shape[0] == 1 else found


@made
def czt(x: Any, m: Any = None, w: Any = None, a: Any = 1 + 0j, *, axis: int = -1) -> Any:
    """Return the values of the z-transform along a spiral."""
    x = np.moveaxis(floating(x), axis, -1)
    n = x.shape[-1]
    count = n if m is None else int(m)
    ratio = numbers(np.exp(-2j * math.pi / count) if w is None else w)
    start = numbers(a).astype(complex)
    places = np.arange(n)[:, None] * np.arange(count)[None, :]
    matrix = start ** -np.arange(n).astype(float)[:, None] * ratio.astype(complex) ** places.astype(float)
    return np.moveaxis(x @ matrix, -1, axis)


@checked
def zoom_fft(x: Any, fn: Any, m: Any = None, *, fs: Any = 2, endpoint: bool = False, axis: int = -1) -> Any:
    """Return the Fourier transform on a range of frequencies."""
    if carries_history(fn):
        raise lost("scipy.signal.zoom_fft", "no gradient flows to the frequencies; use czt")
    ends = np.asarray(plain_values(fn), float).reshape(-1)
    low, high = ends if ends.size == 2 else (0.0, ends[0])
    x = floating(x)
    count = x.shape[axis] if m is None else int(m)
    width = (high - low) * (count / (count - 1) if endpoint else 1.0)
    ratio, start = np.exp(-2j * math.pi * width / (count * fs)), np.exp(2j * math.pi * low / fs)
    return MADE["czt"](x, count, ratio, start, axis=axis)


@checked
def vectorstrength(events: Any, period: Any) -> Any:
    """Return the vector strength and the phase of events with respect to a period."""
    events, period = floating(events), floating(period)
    waves = np.exp(2j * math.pi * events.reshape(-1) / period.reshape(-1, 1)).mean(-1)
    waves = waves[0] if period.ndim == 0 else waves
    return np.abs(waves), np.angle(waves)
