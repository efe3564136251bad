"""Discrete Fourier transforms: the `fft` namespace of the array API standard.

The module itself is callable, as a shorthand for `viewgrad.fft.fft`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .operators import OPERATORS
from .operators.composites import COMPOSITES
from .tensor.creation import checked_device
from .tensor.tensor import Tensor

if TYPE_CHECKING:
    from .operators.typed import (
        fft,
        fft2,
        fftn,
        fftshift,
        hfft,
        ifft,
        ifft2,
        ifftn,
        ifftshift,
        ihfft,
        irfft,
        irfft2,
        irfftn,
        rfft,
        rfft2,
        rfftn,
    )

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
globals().update({name: OPERATORS[name].function for name in __all__ if name in OPERATORS})
globals().update({name: COMPOSITES[name] for name in ("hfft", "ihfft")})


def fftfreq(n: int, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the discrete Fourier transform.

    Arguments:
        n: the length of the transform.
        d: the distance between samples.
        dtype: a real floating-point dtype; by default float64.
        device: None or "cpu".

    Example:
        >>> import viewgrad as vg
        >>> vg.fft.fftfreq(4)
        Tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    checked_device(device)
    return Tensor(np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the discrete Fourier transform of real numbers.

    Arguments:
        n: the length of the transform.
        d: the distance between samples.
        dtype: a real floating-point dtype; by default float64.
        device: None or "cpu".

    Example:
        >>> import viewgrad as vg
        >>> vg.fft.rfftfreq(4)
        Tensor([0.  , 0.25, 0.5 ])
    """
    checked_device(device)
    return Tensor(np.fft.rfftfreq(n, d), dtype)


class CallableModule(ModuleType):
    """A module that can be called like its function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return OPERATORS["fft"].function(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule


def __dir__() -> list[str]:
    return sorted(__all__)
