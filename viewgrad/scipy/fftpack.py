"""`scipy.fftpack` for tensors: the functions that it shares with `scipy.fft`, which is preferred."""

from __future__ import annotations

from .fft import MADE

NAMES = (
    "fft",
    "ifft",
    "fft2",
    "ifft2",
    "fftn",
    "ifftn",
    "dct",
    "idct",
    "dst",
    "idst",
    "fftfreq",
    "fftshift",
    "ifftshift",
)
globals().update({name: MADE[name] for name in NAMES})
__all__ = list(NAMES)
