"""Filter design from analog prototypes, by frequency transformations."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from .. import special
from ..wrap import Accepted, floating, maker, numbers
from .systems import MADE as SYSTEMS
from .systems import normalized
from .windows import get_window

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted(by_value=False))
checked: Final = maker(scipy.signal, MADE, is_checked=True)


# -- frequency transformations -----------------------------------------------------------------------------------------


def _ends(z: Any, p: Any) -> int:
    if p.shape[0] < z.shape[0]:
        raise ValueError("Improper transfer function. Must have at least as many poles as zeros.")
    return int(p.shape[0] - z.shape[0])


def _product(values: Any) -> Any:
    return np.prod(values) if values.shape[0] else 1.0


def _real(value: Any) -> Any:
    return value.real if hasattr(value, "dtype") and value.dtype.kind == "c" else value


@made
def bilinear_zpk(z: Any, p: Any, k: Any, fs: Any) -> Any:
    """Convert the zeros, poles and gain of an analog filter to a digital one."""
    z, p, k = floating(z), floating(p), numbers(k)
    twice = 2.0 * numbers(fs)
    there = (twice + z) / (twice - z)
    zeros = np.concatenate([there, -np.ones(_ends(z, p))])
    return zeros, (twice + p) / (twice - p), k * _real(_product(twice - z) / _product(twice - p))


@made
def lp2lp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """Transform a low-pass filter to another cutoff frequency."""
    z, p, wo = floating(z), floating(p), numbers(wo)
    return wo * z, wo * p, numbers(k) * wo ** _ends(z, p)


@made
def lp2hp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """Transform a low-pass filter to a high-pass filter."""
    z, p, wo = floating(z), floating(p), numbers(wo)
    zeros = np.concatenate([wo / z, np.zeros(_ends(z, p))])
    return zeros, wo / p, numbers(k) * _real(_product(-z) / _product(-p))


def _pair(values: Any, wo: Any) -> Any:
    """Return the pair of band frequencies that corresponds to a frequency of a low-pass filter."""
    values = values.astype(complex)
    root = np.sqrt(values * values - wo * wo)
    return np.concatenate([values + root, values - root])


@made
def lp2bp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform a low-pass filter to a band-pass filter."""
    z, p, wo, bw = floating(z), floating(p), numbers(wo), numbers(bw)
    zeros = np.concatenate([_pair(z * bw / 2, wo), np.zeros(_ends(z, p))])
    return zeros, _pair(p * bw / 2, wo), numbers(k) * bw ** _ends(z, p)


@made
def lp2bs_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform a low-pass filter to a band-stop filter."""
    z, p, wo, bw = floating(z), floating(p), numbers(wo), numbers(bw)
    ones = np.ones(_ends(z, p))
    zeros = np.concatenate([_pair(bw / 2 / z, wo), 1j * wo * ones, -1j * wo * ones])
    return zeros, _pair(bw / 2 / p, wo), numbers(k) * _real(_product(-z) / _product(-p))


@made
def bilinear(b: Any, a: Any, fs: Any = 1.0) -> Any:
    """Convert the numerator and denominator of an analog filter to a digital one."""
    b, a = (np.atleast_1d(floating(each)) for each in (b, a))
    if b.ndim != 1 or a.ndim != 1:
        raise ValueError(f"b and a must have one dimension, not {b.ndim} and {a.ndim}")
    starts = [int(np.argmax(plain_values(each.detach()) != 0)) for each in (b, a)]  # leading zeros have no effect
    order = max(each.shape[0] - start for each, start in zip((b, a), starts)) - 1
    b, a = (each[-(order + 1) :] for each in (b, a))
    twice = 2.0 * numbers(fs)

    def moved(coefficients: Any) -> Any:
        total: Any = 0.0
        for power in range(coefficients.shape[0]):
            part = np.ones(1)
            for _ in range(power):
                part = np.convolve(part, [1.0, -1.0])
            for _ in range(order - power):
                part = np.convolve(part, [1.0, 1.0])
            total = total + coefficients[coefficients.shape[0] - 1 - power] * twice**power * part
        return total

    return normalized(moved(b), moved(a))


# -- analog prototypes -------------------------------------------------------------------------------------------------


def _ripple(value: Any, what: str, name: str) -> Any:
    if value is None:
        raise ValueError(f"{what} ({name}) must be provided to design this filter.")
    if np.any(plain_values(value) < 0):
        raise ValueError(f"{what} ({name}) must be positive")
    return value


def _excess(decibels: Any) -> Any:
    """Return the power that corresponds to a ripple, minus one."""
    return np.expm1(math.log(10) / 10.0 * decibels)


@made
def cheb1ap(N: int, rp: Any) -> Any:
    """Return the zeros, poles and gain of an analog Chebyshev prototype with ripple in the passband."""
    zeros, poles, _ = scipy.signal.cheb1ap(N, float(plain_values(rp)))
    rp = floating(rp)
    if not N:
        return zeros, poles, 10.0 ** (-rp / 20.0)
    excess = _excess(rp)
    width = np.arcsinh(excess**-0.5) / N
    angles = math.pi * np.arange(-N + 1, N, 2) / (2 * N)
    found = -np.sinh(width) * np.cos(angles) - 1j * np.cosh(width) * np.sin(angles)
    gain = _product(-found).real
    return zeros, found, gain if N % 2 else gain / np.sqrt(1.0 + excess)


@made
def cheb2ap(N: int, rs: Any) -> Any:
    """Return the zeros, poles and gain of an analog Chebyshev prototype with ripple in the stopband."""
    zeros, poles, gain = scipy.signal.cheb2ap(N, float(plain_values(rs)))
    if not N:
        return zeros, poles, gain
    width = np.arcsinh(_excess(floating(rs)) ** 0.5) / N
    angles = math.pi * np.arange(-N + 1, N, 2) / (2 * N)
    found = -1.0 / (np.sinh(width) * np.cos(angles) + 1j * np.cosh(width) * np.sin(angles))
    return zeros, found, (_product(-found) / _product(-zeros)).real


@made
def ellipap(N: int, rp: Any, rs: Any) -> Any:
    """Return the zeros, poles and gain of an analog elliptic prototype.

    Source: S. J. Orfanidis, "Lecture Notes on Elliptic Filter Design" (2006).
    """
    zeros, poles, _ = scipy.signal.ellipap(N, float(plain_values(rp)), float(plain_values(rs)))
    rp, rs = floating(rp), floating(rs)
    if not N:
        return zeros, poles, 10.0 ** (-rp / 20.0)
    excess = _excess(rp)
    if N == 1:
        place = -(excess**-0.5)
        return zeros, place.astype(complex).reshape(poles.shape), -place
    ratio = excess / _excess(rs)
    whole = special.ellipk(ratio)
    # The parameter of the degree equation, from the nome.
    nome = np.exp(-math.pi * special.ellipkm1(ratio) / (whole * N))
    powers = np.arange(8)
    m = 16.0 * nome * ((nome ** (powers * (powers + 1))).sum() / (1.0 + 2.0 * (nome ** ((powers + 1) ** 2)).sum())) ** 4
    quarter = special.ellipk(m)
    places = np.arange(1 - N % 2, N, 2)
    s, c, d, _ = special.ellipj(places * quarter / N, m * np.ones(len(places)))
    heights = 1.0 / (np.sqrt(m) * s[N % 2 :])  # the first element is 0 if N is odd
    zeros = np.concatenate([1j * heights, -1j * heights])
    shift = quarter * special.ellipkinc(np.arctan(excess**-0.5), 1.0 - ratio) / (N * whole)
    sv, cv, dv, _ = special.ellipj(shift, 1.0 - m)
    half = -(c * d * sv * cv + 1j * s * dv) / (1.0 - (d * sv) ** 2)
    found = np.concatenate([half, half[N % 2 :].conj()])
    gain = (_product(-found) / _product(-zeros)).real
    return zeros, found, gain if N % 2 else gain / np.sqrt(1.0 + excess)


# -- designs -----------------------------------------------------------------------------------------------------------


@checked
def iirfilter(
    N: int, Wn: Any, rp: Any = None, rs: Any = None, btype: str = "band", analog: bool = False,
    ftype: str = "butter", output: str = "ba", fs: Any = None,
) -> Any:  # fmt: skip
    """Design a filter of a given order; gradients flow to its frequencies and ripples."""
    kind = {"band": "bandpass", "pass": "bandpass", "bp": "bandpass", "bands": "bandstop", "stop": "bandstop",
            "bs": "bandstop", "low": "lowpass", "l": "lowpass", "lp": "lowpass", "high": "highpass", "h": "highpass",
            "hp": "highpass"}.get(btype.lower(), btype.lower())  # fmt: skip
    frequencies = np.atleast_1d(floating(Wn)) * (1.0 if fs is None else 2.0 / fs)
    if output not in ("ba", "zpk", "sos"):
        raise ValueError(f"{output!r} is not a valid output form.")
    if kind in ("lowpass", "highpass") and frequencies.shape[0] != 1:
        raise ValueError("Must specify a single critical frequency Wn for lowpass or highpass filter")
    ftype = ftype.lower()
    if ftype.partition("_")[0] == "bessel":
        zpk = scipy.signal.besselap(N, ftype.partition("_")[2] or "phase")
    elif ftype in ("butter", "butterworth"):
        zpk = scipy.signal.buttap(N)
    elif ftype in ("cheby1", "chebyshev1", "chebyshevi"):
        zpk = MADE["cheb1ap"](N, _ripple(rp, "Passband ripple", "rp"))
    elif ftype in ("cheby2", "chebyshev2", "chebyshevii"):
        zpk = MADE["cheb2ap"](N, _ripple(rs, "Stopband attenuation", "rs"))
    elif ftype in ("ellip", "elliptic", "cauer"):
        zpk = MADE["ellipap"](N, _ripple(rp, "Passband ripple", "rp"), _ripple(rs, "Stopband attenuation", "rs"))
    else:
        raise ValueError(f"'{ftype}' is not a valid basic IIR filter.")
    zpk = zpk[0], np.atleast_1d(zpk[1]), zpk[2]
    warped = frequencies if analog else 4.0 * np.tan(math.pi * frequencies / 2.0)
    if kind in ("lowpass", "highpass"):
        zpk = MADE["lp2lp_zpk" if kind == "lowpass" else "lp2hp_zpk"](*zpk, wo=warped[0])
    else:
        width, centre = warped[1] - warped[0], np.sqrt(warped[0] * warped[1])
        zpk = MADE["lp2bp_zpk" if kind == "bandpass" else "lp2bs_zpk"](*zpk, wo=centre, bw=width)
    zpk = zpk if analog else MADE["bilinear_zpk"](*zpk, fs=2.0)
    if output == "sos":
        return SYSTEMS["zpk2sos"](*zpk, analog=analog)
    return zpk if output == "zpk" else SYSTEMS["zpk2tf"](*zpk)


@made
def butter(N: int, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None) -> Any:
    """Design a Butterworth filter."""
    return MADE["iirfilter"](N, Wn, None, None, btype, analog, "butter", output, fs)


@made
def cheby1(
    N: int, rp: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> Any:
    """Design a Chebyshev filter with ripple in the passband."""
    return MADE["iirfilter"](N, Wn, rp, None, btype, analog, "cheby1", output, fs)


@made
def cheby2(
    N: int, rs: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> Any:
    """Design a Chebyshev filter with ripple in the stopband."""
    return MADE["iirfilter"](N, Wn, None, rs, btype, analog, "cheby2", output, fs)


@made
def ellip(
    N: int, rp: Any, rs: Any, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> Any:
    """Design an elliptic filter."""
    return MADE["iirfilter"](N, Wn, rp, rs, btype, analog, "ellip", output, fs)


@made
def bessel(
    N: int, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", norm: str = "phase", fs: Any = None
) -> Any:
    """Design a Bessel filter."""
    return MADE["iirfilter"](N, Wn, None, None, btype, analog, f"bessel_{norm}", output, fs)


def _resonator(name: str, notch: bool) -> None:
    def resonator(w0: Any, Q: Any, fs: Any = 2.0) -> Any:
        centre = 2 * math.pi * numbers(w0) / fs
        width = np.tan(centre / numbers(Q) / 2.0)
        gain = 1.0 / (1.0 + width)
        middle = -2.0 * np.cos(centre)
        one, zero = gain * 0.0 + 1.0, gain * 0.0
        b = gain * np.stack([one, middle, one]) if notch else (1.0 - gain) * np.stack([one, zero, -one])
        return b, np.stack([one, gain * middle, 2.0 * gain - 1.0])

    resonator.__name__ = name
    resonator.__doc__ = f"`scipy.signal.{name}`, differentiable in its frequency and its quality."
    checked(resonator)


_resonator("iirnotch", True)
_resonator("iirpeak", False)


# -- finite impulse response filters -----------------------------------------------------------------------------------


@made
def firwin(
    numtaps: int, cutoff: Any, *, width: Any = None, window: Any = "hamming", pass_zero: Any = True, scale: bool = True,
    fs: Any = None,
) -> Any:  # fmt: skip
    """Design a finite impulse response filter by the window method.

    Source: A. V. Oppenheim, R. W. Schafer, "Discrete-Time Signal Processing", chapter 7.
    """
    if carries_history((width, fs)):
        raise lost("scipy.signal.firwin", "gradients flow only to cutoff and window")
    edges: Any = np.atleast_1d(floating(cutoff)) / (0.5 * (2.0 if fs is None else float(fs)))
    inner = plain_values(edges.detach())
    if np.any(inner <= 0) or np.any(inner >= 1) or np.any(np.diff(inner) <= 0):
        raise ValueError("cutoff frequencies must increase, between 0 and fs/2")
    count = inner.size
    sizes = {"lowpass": count == 1, "highpass": count == 1, "bandpass": count > 1, "bandstop": count > 1}
    if not sizes.get(pass_zero, isinstance(pass_zero, (bool, np.bool_))):
        raise ValueError(f"pass_zero={pass_zero!r} is not supported for {count} cutoff frequencies")
    if isinstance(pass_zero, str):
        pass_zero = pass_zero in ("lowpass", "bandstop")
    passes_end = bool(len(inner) % 2) != bool(pass_zero)
    if passes_end and numtaps % 2 == 0:
        raise ValueError("a filter with an even number of coefficients has no response at the Nyquist frequency")
    if width is not None:
        shape = scipy.signal.kaiser_beta(scipy.signal.kaiser_atten(numtaps, float(width) / (0.5 * (fs or 2.0))))
        window = ("kaiser", shape)
    ends = [np.zeros(1)] * bool(pass_zero) + [edges] + [np.ones(1)] * passes_end
    bands = np.concatenate(ends).reshape(-1, 2)
    place = np.arange(numtaps) - 0.5 * (numtaps - 1)
    taps: Any = 0.0
    for left, right in zip(bands[:, 0], bands[:, 1], strict=True):
        taps = taps + right * np.sinc(right * place) - left * np.sinc(left * place)
    taps = taps * get_window(window, numtaps, fftbins=False)
    if not scale:
        return taps
    left, right = bands[0]
    middle = 0.0 if pass_zero else 1.0 if passes_end and len(bands) == 1 else 0.5 * (left + right)
    return taps / (taps * np.cos(math.pi * place * middle)).sum()


@made
def firwin2(
    numtaps: int, freq: Any, gain: Any, *, nfreqs: Any = None, window: Any = "hamming", antisymmetric: bool = False,
    fs: Any = None,
) -> Any:  # fmt: skip
    """Design a finite impulse response filter whose gain is piecewise linear in the frequency."""
    freq, gain = floating(freq), floating(gain)
    half = 0.5 * (2.0 if fs is None else float(fs))
    # This raises for unsupported arguments.
    shape = "boxcar" if window is None or carries_history(window) else window
    plain = plain_values((freq.detach(), gain.detach()))
    scipy.signal.firwin2(numtaps, *plain, nfreqs=nfreqs, window=shape, antisymmetric=antisymmetric, fs=fs)
    count = 1 + 2 ** math.ceil(math.log2(numtaps)) if nfreqs is None else nfreqs
    jumps = np.append(np.diff(plain_values(freq.detach())) == 0, False)
    freq = freq + np.finfo(float).eps * half * (np.roll(jumps, 1).astype(float) - jumps)
    x = np.linspace(0.0, half, count)
    shift = np.exp(-(numtaps - 1) / 2.0 * 1j * math.pi * x / half) * (1j if antisymmetric else 1.0)
    taps = np.fft.irfft(np.interp(x, freq, gain) * shift)[:numtaps]
    taps = taps if window is None else taps * get_window(window, numtaps, fftbins=False)
    if antisymmetric and numtaps % 2:
        taps = taps * (np.arange(numtaps) != numtaps // 2)
    return taps


@made
def minimum_phase(h: Any, method: str = "homomorphic", n_fft: Any = None, *, half: bool = True) -> Any:
    """Convert a linear-phase filter to a minimum-phase filter.

    Source: A. V. Oppenheim, R. W. Schafer, "Discrete-Time Signal Processing", on homomorphic filters.
    """
    h = floating(h)
    scipy.signal.minimum_phase(plain_values(h.detach()), method, n_fft, half=half)  # raises for unsupported arguments
    if method != "homomorphic":
        raise lost("scipy.signal.minimum_phase", 'use method="homomorphic"')
    count = h.shape[0]
    size = 2 ** math.ceil(math.log2(2 * (count - 1) / 0.01)) if n_fft is None else int(n_fft)
    magnitude = np.abs(np.fft.fft(h, size))
    magnitude = magnitude + 1e-7 * magnitude[magnitude > 0].min()
    weights = np.zeros(size)
    weights[0] = 1.0
    weights[1 : size // 2] = 2.0
    if size % 2:
        weights[size // 2] = 1.0
    spectrum = np.fft.ifft(np.log(magnitude) * (0.5 if half else 1.0)).real * weights
    found = np.fft.ifft(np.exp(np.fft.fft(spectrum))).real
    return found[: count // 2 + count % 2 if half else count]
