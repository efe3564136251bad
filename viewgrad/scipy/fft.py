"""`scipy.fft` for tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.fft  # type: ignore[import-untyped]

from ..numpy import fft as transforms
from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.conversion import plain_values
from ..tensor.creation import as_operand
from .wrap import maker

if TYPE_CHECKING:
    from .typed.fft import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}
made = maker(scipy.fft, MADE)
OPPOSITE: Final = {None: "forward", "backward": "forward", "forward": "backward"}


def _whole_numbers(value: Any) -> list[int]:
    """Return an integer, or several of them, as a list."""
    return [operator.index(each) for each in np.atleast_1d(plain_values(value))]


def _dimensions(shape: tuple[int, ...], s: Any, axes: Any) -> tuple[Any, list[int]]:
    """Return the lengths and dimensions of a multidimensional transform; no lengths if none are given."""
    ndim = len(shape)
    dims = None if axes is None else _whole_numbers(axes)
    if dims is not None:
        dims = [dim + ndim if dim < 0 else dim for dim in dims]
        if any(not 0 <= dim < ndim for dim in dims):
            raise ValueError("axes exceeds dimensionality of input")
        if len(set(dims)) != len(dims):
            raise ValueError("all axes must be unique")
    if s is None:
        return None, list(range(ndim)) if dims is None else dims
    lengths = _whole_numbers(s)
    if dims and len(dims) != len(lengths):
        raise ValueError("when given, axes and shape arguments have to be of the same length")
    if dims is None:
        if len(lengths) > ndim:
            raise ValueError("shape requires more axes than are present")
        dims = list(range(ndim - len(lengths), ndim))
    lengths = [shape[dim] if length == -1 else length for length, dim in zip(lengths, dims)]
    if any(length < 1 for length in lengths):
        raise ValueError(f"invalid number of data points ({lengths}) specified")
    return lengths, dims


def _define(name: str, transform: Callable[..., Any]) -> None:
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`scipy.fft.{name}` for tensors."
    made(transform)


def _transform(name: str) -> None:
    """Define a transform along one dimension."""
    function = getattr(transforms, name)

    def transform(
        x: Any, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False, workers: Any = None, *,
        plan: Any = None,
    ) -> Any:  # fmt: skip
        return function(x, n, axis, norm)

    _define(name, transform)


def _transform_along_several(name: str, default: Any) -> None:
    """Define a transform along several dimensions; transforms of Hermitian input are computed by conjugation.

    Arguments:
        name: its name.
        default: the default of `axes`: None for all dimensions.
    """
    is_hermitian, several = "hfft" in name, name[:-1] + "n"
    function = getattr(transforms, {"hfftn": "irfftn", "ihfftn": "rfftn"}.get(several, several))

    def transform(
        x: Any, s: Any = None, axes: Any = default, norm: Any = None, overwrite_x: bool = False, workers: Any = None, *,
        plan: Any = None,
    ) -> Any:  # fmt: skip
        x = as_operand(x)
        lengths, dims = _dimensions(x.shape, s, axes)
        if not dims and "r" not in name and not is_hermitian:
            return x.clone()
        if not is_hermitian:
            return function(x, lengths, dims, norm)
        norm = OPPOSITE.get(norm, norm)
        if name.startswith("i"):
            return function(x, lengths, dims, norm).conj()
        return function(x.conj(), lengths, dims, norm)

    _define(name, transform)


def _cosines(name: str) -> None:
    """Define a discrete cosine or sine transform by its matrix, which is SciPy's transform of the unit vectors."""
    function = getattr(scipy.fft, name)

    def transform(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        x = as_operand(x)
        count = x.shape[axis]
        length = count if n is None else int(n)
        matrix = function(np.eye(count, dtype=x.dtype), type, length, 1, norm, orthogonalize=orthogonalize)
        return np.moveaxis(np.tensordot(x, matrix, ((axis,), (0,))), -1, axis)

    _define(name, transform)


def _cosines_along_several(name: str) -> None:
    """Define a cosine or sine transform along several dimensions, one after the other."""
    along = MADE[name[:-1]]

    def transform(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, *, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        x = as_operand(x)
        lengths, dims = _dimensions(x.shape, s, axes)
        for dim, length in zip(dims, [None] * len(dims) if lengths is None else lengths):
            x = along(x, type, length, dim, norm, orthogonalize=orthogonalize)
        return x

    _define(name, transform)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _transform(_name)
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _transform_along_several(_name + "n", None)
    _transform_along_several(_name + "2", (-2, -1))
for _name in ("dct", "idct", "dst", "idst"):
    _cosines(_name)
    _cosines_along_several(_name + "n")
MADE |= {name: getattr(transforms, name) for name in ("fftfreq", "rfftfreq", "fftshift", "ifftshift")}
FROM_SCIPY = frozenset(
    "get_workers next_fast_len prev_fast_len register_backend set_backend set_global_backend set_workers "
    "skip_backend".split()
)

globals().update(filled(scipy.fft, MADE, FROM_SCIPY, {}))
__all__ = public_names(scipy.fft)
