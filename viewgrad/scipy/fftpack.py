"""`scipy.fftpack` for tensors, whose inverse cosine and sine transforms are not normalized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fftpack  # type: ignore[import-untyped]

from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import carries_history, plain_values
from .fft import MADE as TRANSFORMS
from .wrap import maker, numbers

INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}  # the type of the inverse transform, which is not normalized in this module
FROM_SCIPY = frozenset({"fftfreq", "next_fast_len", "rfftfreq"})
# Operators on periodic sequences, which multiply each Fourier coefficient by a factor.
MULTIPLIERS = (
    "cc_diff", "cs_diff", "diff", "hilbert", "ihilbert", "itilbert", "sc_diff", "shift", "ss_diff", "tilbert",
)  # fmt: skip

MADE: dict[str, Any] = {name: TRANSFORMS[name] for name in ("fftshift", "ifftshift")}
made = maker(scipy.fftpack, MADE)


def _transform(name: str) -> None:
    """Define a Fourier transform along one dimension, two or several."""
    transform = TRANSFORMS[name]

    def along(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
        """Return a Fourier transform."""
        return transform(x, n, axis)

    def over_two(x: Any, shape: Any = None, axes: Any = (-2, -1), overwrite_x: bool = False) -> Any:
        """Return a Fourier transform along two dimensions."""
        return transform(x, shape, axes)

    def over(x: Any, shape: Any = None, axes: Any = None, overwrite_x: bool = False) -> Any:
        """Return a Fourier transform along several dimensions."""
        return transform(x, _whole_shape(x, shape, axes), axes)

    function = over_two if name.endswith("2") else over if name.endswith("n") else along
    function.__name__ = function.__qualname__ = name
    made(function)


def _whole_shape(x: Any, shape: Any, axes: Any) -> Any:
    """Return the lengths of a transform; if no dimensions are given, there must be a length for every dimension."""
    if shape is not None and axes is None and np.size(shape) != np.ndim(x):
        raise ValueError("when given, axes and shape arguments have to be of the same length")
    return shape


for _name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn"):
    _transform(_name)


@made
def rfft(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """Return the Fourier transform of real values as real numbers: y0, Re y1, Im y1, Re y2, ..."""
    values = np.moveaxis(numbers(x), axis, -1)
    size = values.shape[-1] if n is None else int(n)
    found = np.fft.rfft(values, size)
    parts = np.stack([found.real, found.imag], -1).reshape((*found.shape[:-1], 2 * found.shape[-1]))
    return np.moveaxis(np.concatenate([parts[..., :1], parts[..., 2 : size + 1]], -1), -1, axis)


@made
def irfft(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """Return the inverse of `rfft`."""
    if numbers(x).dtype.kind == "c":
        raise TypeError("x must be a real sequence")
    parts = np.moveaxis(numbers(x), axis, -1) * 1.0
    size = parts.shape[-1] if n is None else int(n)
    if size > parts.shape[-1]:
        parts = np.concatenate([parts, np.zeros((*parts.shape[:-1], size - parts.shape[-1]))], -1)
    parts = parts[..., :size]
    nothing = parts[..., :1] * 0.0
    pairs = np.concatenate([parts[..., :1], nothing, parts[..., 1:], *([nothing] if size % 2 == 0 else [])], -1)
    pairs = pairs.reshape((*pairs.shape[:-1], -1, 2))
    return np.moveaxis(np.fft.irfft(pairs[..., 0] + 1j * pairs[..., 1], size), -1, axis)


def _cosines(name: str) -> None:
    """Define a cosine or sine transform, along one dimension or several."""
    is_inverse, over_several = name.startswith("i"), name.endswith("n")
    transform = TRANSFORMS[name.removeprefix("i")]

    def along(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False
    ) -> Any:
        """Return a cosine or sine transform."""
        return transform(x, INVERSES[type] if is_inverse else type, n, axis, norm)

    def over(
        x: Any, type: int = 2, shape: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False
    ) -> Any:
        """Return a cosine or sine transform along several dimensions."""
        shape = _whole_shape(x, shape, axes)
        return transform(x, INVERSES[type] if is_inverse else type, shape, axes, norm)

    function = over if over_several else along
    function.__name__ = function.__qualname__ = name
    made(function)


for _name in ("dct", "dst", "idct", "idst", "dctn", "dstn", "idctn", "idstn"):
    _cosines(_name)


def _multiplier(name: str) -> Callable[..., Any]:
    function = getattr(scipy.fftpack, name)

    def multiplied(x: Any, *args: Any, **options: Any) -> Any:
        """Return a periodic sequence with its Fourier coefficients multiplied by given factors."""
        if carries_history((args, options)):
            raise lost(f"scipy.fftpack.{name}", "gradients flow to the sequence alone")
        values = numbers(x)
        if values.ndim != 1 or values.dtype.kind == "c":
            raise lost(f"scipy.fftpack.{name}", "for tensors with a history it requires real vectors")
        args, options = plain_values(args), plain_values(options)
        unit = np.zeros(values.shape[0])
        unit[0] = 1.0
        kernel = np.fft.fft(function(unit, *args, **options))
        return np.fft.ifft(np.fft.fft(values) * kernel).real

    multiplied.__name__ = multiplied.__qualname__ = name
    return made(multiplied)


for _name in MULTIPLIERS:
    _multiplier(_name)

globals().update(filled(scipy.fftpack, MADE, FROM_SCIPY, {}))
__all__ = public_names(scipy.fftpack)
