"""Frequency responses of filters, and group delays."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import as_tensors, plain_values
from ..wrap import Accepted, floating, maker, numbers
from .convolutions import sections_of
from .systems import MADE as SYSTEMS
from .systems import parts_of, state_space

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted(by_value=False))


def _frequencies(worN: Any, whole: bool, fs: Any, include_nyquist: bool = False) -> Any:
    """Return the given frequencies, or SciPy's default ones, as a tensor."""
    if worN is None or _is_count(worN):
        count = 512 if worN is None else int(plain_values(worN))
        plain = scipy.signal.freqz([1.0], 1, count, whole, fs=1.0, include_nyquist=include_nyquist)
        return numbers(fs) * as_tensors(np.array(plain[0]))
    return np.atleast_1d(floating(worN))


def _is_count(value: Any) -> bool:
    """Return whether an argument is a number of frequencies, an integer, rather than a frequency."""
    plain = np.asarray(plain_values(value))
    return plain.ndim == 0 and plain.dtype.kind in "iu"


def _at(coefficients: Any, inverse: Any) -> Any:
    """Return the value of a polynomial in z^-1, with coefficients along the first dimension."""
    total: Any = inverse * 0.0
    for place in range(coefficients.shape[0] - 1, -1, -1):
        total = total * inverse + coefficients[place]
    return total


@made
def freqz(b: Any, a: Any = 1, worN: Any = 512, whole: bool = False, plot: Any = None, fs: Any = 2 * math.pi,
          include_nyquist: bool = False) -> Any:  # fmt: skip
    """Return the frequencies and the frequency response of a digital filter.

    The coefficients are along the first dimension; further dimensions, for several filters, broadcast with the
    frequencies.
    """
    dtype = np.result_type(numbers(b).dtype, numbers(a).dtype, np.float32)
    b, a = np.atleast_1d(floating(b)), np.atleast_1d(floating(a))
    w = _frequencies(worN, whole, fs, include_nyquist)
    if w.dtype.kind == "f":
        w = w.astype(np.zeros(0, dtype).real.dtype)
    inverse = np.exp(-1j * w * (2 * math.pi / fs))
    h = _at(b, inverse) / _at(a, inverse)
    if plot is not None:
        plot(w, h)
    return w, h


def _of_roots(roots: Any, at: Any) -> Any:
    total: Any = numbers(np.ones(at.shape, at.dtype))
    for place in range(roots.shape[0]):
        total = total * (at - roots[place])
    return total


@made
def freqz_zpk(z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * math.pi) -> Any:
    """Return the frequencies and the frequency response of a digital filter given by zeros and poles."""
    w = _frequencies(worN, whole, fs)
    at = np.exp(1j * w * (2 * math.pi / fs))
    return w, numbers(k) * _of_roots(floating(z), at) / _of_roots(floating(p), at)


def _cascade(name: str) -> None:
    def response(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * math.pi) -> Any:
        w, total = None, 1.0
        for section in sections_of(sos):
            w, h = MADE["freqz"](section[:3], section[3:], worN, whole, None, fs)
            total = total * h
        return w, total

    response.__name__ = name
    response.__doc__ = "Frequencies and the response of a cascade."
    made(response)


for _name in ("sosfreqz", "freqz_sos"):
    if hasattr(scipy.signal, _name):
        _cascade(_name)


def _analog(scipys: Any, parts: Any, worN: Any) -> Any:
    if worN is None or _is_count(worN):
        count = 200 if worN is None else int(plain_values(worN))
        return as_tensors(np.array(scipys(*(np.array(plain_values(numbers(each))) for each in parts), worN=count)[0]))
    return np.atleast_1d(floating(worN))


@made
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> Any:
    """Return the frequencies and the frequency response of an analog filter."""
    w = _analog(scipy.signal.freqs, (b, a), worN)
    b, a, s = np.atleast_1d(floating(b)), np.atleast_1d(floating(a)), 1j * w
    return w, _at(b[::-1], s) / _at(a[::-1], s)


@made
def freqs_zpk(z: Any, p: Any, k: Any, worN: Any = 200) -> Any:
    """Return the frequencies and the frequency response of an analog filter given by zeros and poles."""
    w = _analog(scipy.signal.freqs_zpk, (z, p, k), worN)
    return w, numbers(k) * _of_roots(floating(z), 1j * w) / _of_roots(floating(p), 1j * w)


@made
def freqresp(system: Any, w: Any = None, n: int = 10000) -> Any:
    """Return the frequencies and the frequency response of a system."""
    system = parts_of(system)
    num, den = SYSTEMS["ss2tf"](*state_space(system)) if len(system) != 2 else system
    num = floating(num)
    return MADE["freqs"](num[0] if num.ndim > 1 else num, den, n if w is None else w)


@made
def bode(system: Any, w: Any = None, n: int = 100) -> Any:
    """Return the frequencies, the magnitude in decibels and the phase in degrees."""
    w, y = MADE["freqresp"](system, w, n)
    return w, 20.0 * np.log10(np.abs(y)), np.unwrap(np.angle(y)) * (180.0 / math.pi)


@made
def dfreqresp(system: Any, w: Any = None, n: int = 10000, whole: bool = False) -> Any:
    """Return the frequencies and the frequency response of a discrete-time system."""
    *parts, _ = parts_of(system)
    at = n if w is None else w
    if len(parts) == 3:
        return MADE["freqz_zpk"](*parts, worN=at, whole=whole)
    num, den = SYSTEMS["ss2tf"](*parts) if len(parts) == 4 else parts
    num, den = floating(num), np.atleast_1d(floating(den))
    if num.ndim > 1 and num.shape[0] != 1:
        raise ValueError("dfreqresp requires a SISO (single input, single output) system.")
    num = num.reshape(-1)
    size = max(num.shape[0], den.shape[0])
    num, den = (np.concatenate([np.zeros(size - each.shape[0]), each]) for each in (num, den))
    return MADE["freqz"](num, den, worN=at, whole=whole)


@made
def dbode(system: Any, w: Any = None, n: int = 100) -> Any:
    """Return the frequencies, the magnitude in decibels and the phase in degrees of a discrete-time system."""
    *_, dt = parts_of(system)
    w, y = MADE["dfreqresp"](system, w, n)
    step = 1.0 if dt is True else dt
    return w / step, 20.0 * np.log10(np.abs(y)), np.unwrap(np.angle(y)) * (180.0 / math.pi)


@made
def group_delay(system: Any, w: Any = 512, whole: bool = False, fs: Any = 2 * math.pi) -> Any:
    """Return the frequencies and the group delays of a digital filter."""
    b, a = (np.atleast_1d(floating(each)) for each in system)
    w = _frequencies(w, whole, fs)
    c = np.convolve(b, a[::-1].conj())
    inverse = np.exp(-1j * w * (2 * math.pi / fs))
    found = _at(c * np.arange(c.shape[0]), inverse) / _at(c, inverse)
    return w, found.real - (a.shape[0] - 1)
