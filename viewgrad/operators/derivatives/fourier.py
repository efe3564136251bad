"""The derivatives of the discrete Fourier transforms of `numpy.fft`.

A transform is linear, and its adjoint is the inverse transform up to scale, with the opposite `norm`. If `n` or `s`
truncates or zero-pads a dimension, the gradient is zero-padded or truncated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.shapes import along_first
from ...tensor.tensor import FUNCTIONS
from ..composites import composite
from ..define import row
from ..language.namespace import formula_function
from ..numpy_api.dispatch import write_out
from .helpers import of_its_own, real_dtype
from .scatter import zeros_beside

TURNED: Final[dict[Any, Any]] = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


@formula_function
def resized(a: Any, axis: int, length: int) -> Any:
    """Return `a` truncated or zero-padded to `length` elements along `axis`."""
    n = a.shape[axis]
    if n == length:
        return a
    axis %= a.ndim
    if n > length:
        return a[(slice(None),) * axis + (slice(length),)]
    shape = (*a.shape[:axis], length - n, *a.shape[axis + 1 :])
    return np.concatenate([a, zeros_beside(a, shape)], axis=axis)


def in_dtype(a: Any, dtype: Any) -> Any:
    """Return the real part of the gradient of a real value, in the precision of the value."""
    if a.dtype.kind == "c" != np.dtype(dtype).kind:
        a = a.real
    return a if real_dtype(a.dtype) == real_dtype(dtype) else a.astype(dtype)


@formula_function
def fft_gradient(grad: Any, shape: Sequence[int], dtype: Any, axis: int, norm: Any) -> Any:
    """Return the gradient of `fft` with respect to its input."""
    return in_dtype(resized(np.fft.ifft(grad, axis=axis, norm=TURNED.get(norm, norm)), axis, shape[axis]), dtype)


@formula_function
def ifft_gradient(grad: Any, shape: Sequence[int], dtype: Any, axis: int, norm: Any) -> Any:
    """Return the gradient of `ifft` with respect to its input."""
    return in_dtype(resized(np.fft.fft(grad, axis=axis, norm=TURNED.get(norm, norm)), axis, shape[axis]), dtype)


@formula_function
def rfft_gradient(grad: Any, shape: Sequence[int], dtype: Any, n: int | None, axis: int, norm: Any) -> Any:
    """Return the gradient of `rfft` with respect to its input; the omitted half of the spectrum contributes nothing."""
    length = shape[axis] if n is None else n
    return in_dtype(resized(np.fft.ifft(grad, length, axis, TURNED.get(norm, norm)).real, axis, shape[axis]), dtype)


@formula_function
def irfft_gradient(grad: Any, shape: Sequence[int], dtype: Any, axis: int, norm: Any) -> Any:
    """Return the gradient of `irfft`; all frequencies except the lowest and highest count twice."""
    length = grad.shape[axis]
    twice = np.full(length // 2 + 1, 2, real_dtype(grad.dtype))
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1
    twice = along_first(twice, grad.ndim - axis % grad.ndim)
    spectrum = np.fft.rfft(grad, axis=axis, norm=TURNED.get(norm, norm)) * twice
    return in_dtype(resized(spectrum, axis, shape[axis]), dtype)


def transformed_axes(ndim: int, s: Sequence[int] | None, axes: Sequence[int] | None) -> list[int]:
    """Return the dimensions of a multidimensional transform."""
    if axes is None:
        if s is not None and len(s) > ndim:
            raise ValueError(f"a transform of {ndim} dimensions got {len(s)} lengths")
        return list(range(ndim)) if s is None else list(range(ndim - len(s), ndim))
    return [axis % ndim for axis in axes]


def _require_distinct(ndim: int, axes: Any) -> None:
    if axes is not None and len({axis % ndim for axis in axes}) < len(axes):
        raise ValueError(f"a transform of a tensor requires distinct axes, not axes={tuple(axes)}")


@formula_function
def fftn_gradient(grad: Any, shape: Sequence[int], dtype: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    """Return the gradient of `fftn`, or of its inverse, with respect to the input."""
    over = transformed_axes(len(shape), s, axes)
    if over:
        grad = (np.fft.fftn if inverse else np.fft.ifftn)(grad, axes=over, norm=TURNED.get(norm, norm))
    for axis in over:
        grad = resized(grad, axis, shape[axis])
    return in_dtype(grad, dtype)


@formula_function
def rfftn_gradient(grad: Any, shape: Sequence[int], dtype: Any, s: Any, axes: Any, norm: Any) -> Any:
    """Return the gradient of `rfftn` with respect to its input."""
    *first, last = transformed_axes(len(shape), s, axes)
    if first:
        grad = np.fft.ifftn(grad, axes=first, norm=TURNED.get(norm, norm))
    for axis in first:
        grad = resized(grad, axis, shape[axis])
    return rfft_gradient(grad, shape, dtype, None if s is None or s[-1] in (-1, None) else s[-1], last, norm)


@formula_function
def irfftn_gradient(grad: Any, shape: Sequence[int], dtype: Any, s: Any, axes: Any, norm: Any) -> Any:
    """Return the gradient of `irfftn` with respect to its input."""
    *first, last = transformed_axes(len(shape), s, axes)
    grad = irfft_gradient(grad, shape, np.result_type(dtype, np.complex64), last, norm)
    if first:
        grad = np.fft.fftn(grad, axes=first, norm=TURNED.get(norm, norm))
    for axis in first:
        grad = resized(grad, axis, shape[axis])
    return in_dtype(grad, dtype)


def transform(name: str, gradient: str, dtype_kinds: str, doc: str) -> None:
    """Declare a one-dimensional transform."""
    function: Callable[..., Any] = getattr(np.fft, name)
    n = "n, " if name == "rfft" else ""
    row(
        f"{name}(self, n=None, axis=-1, norm=None)",
        lambda a, n=None, axis=-1, norm=None: function(a, n, axis, norm),
        {"self": f"{gradient}(grad, self.shape, self.dtype, {n}axis, norm)"},
        forward_derivative="auto_linear",
        numpy=[function],
        dtype_kinds=dtype_kinds,
        method=False,
        doc=doc,
    )  # fmt: skip


def transforms(name: str, gradient: str, dtype_kinds: str, doc: str, *, extra: str = "") -> None:
    """Declare a multidimensional transform and its two-dimensional variant."""
    for ending, axes in (("n", "None"), ("2", "(-2, -1)")):
        function: Callable[..., Any] = getattr(np.fft, name + ending)

        def forward(
            a: Any,
            s: Any = None,
            axes: Any = None if ending == "n" else (-2, -1),
            norm: Any = None,
            function: Any = function,
        ) -> Any:
            _require_distinct(a.ndim, axes)
            axes = transformed_axes(a.ndim, s, axes) if axes is None else axes
            return of_its_own(function(a, s, axes, norm), a)

        row(
            f"{name}{ending}(self, s=None, axes={axes}, norm=None)",
            forward,
            {"self": f"{gradient}(grad, self.shape, self.dtype, s, axes, norm{extra})"},
            forward_derivative="auto_linear",
            numpy=[function],
            dtype_kinds=dtype_kinds,
            method=False,
            returns_0d_arrays=True,
            doc=doc if ending == "n" else doc.replace("several dimensions", "two dimensions (by default the last)"),
        )


transform("fft", "fft_gradient", "fc", "The discrete Fourier transform along one dimension.")
transform("ifft", "ifft_gradient", "fc", "The inverse discrete Fourier transform along one dimension.")
transform(
    "rfft", "rfft_gradient", "f", "The non-negative frequencies of the discrete Fourier transform of real numbers."
)
transform("irfft", "irfft_gradient", "fc", "The inverse of `rfft`: real numbers from half of their discrete Fourier "
                                           "transform.")
transforms("fft", "fftn_gradient", "fc", "The discrete Fourier transform along several dimensions.", extra=", False")
transforms(
    "ifft", "fftn_gradient", "fc", "The inverse discrete Fourier transform along several dimensions.", extra=", True"
)
transforms(
    "rfft", "rfftn_gradient", "f", "The discrete Fourier transform of real numbers along several dimensions, without "
                                   "the negative frequencies of the last dimension."
)
transforms(
    "irfft", "irfftn_gradient", "fc", "The inverse of the discrete Fourier transform of real numbers along several "
                                      "dimensions."
)

for _name, _other in (("fftshift", "ifftshift"), ("ifftshift", "fftshift")):
    _function: Callable[..., Any] = getattr(np.fft, _name)
    row(
        f"{_name}(self, axes=None)",
        _function,
        {"self": f"{_other}(grad, axes)"},
        forward_derivative="auto_linear",
        numpy=[_function],
        dtype_kinds="fc",
        method=False,
        doc="The dimensions rolled so that the zero frequency is at the center."
        if _name == "fftshift"
        else "The inverse of `fftshift`.",
    )


def _one_after_another(numpy: Any) -> Any:
    """Return a multidimensional transform, applied to the last dimension first; dimensions may be repeated."""
    distinct, name = FUNCTIONS[numpy], numpy.__name__
    each: Any = np.fft.ifft if name.startswith("i") else np.fft.fft

    def transformed(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
        a = as_operand(a)
        axes = (-2, -1) if axes is None and name.endswith("2") else axes
        if axes is None and s is not None:
            warnings.warn(
                "`axes` should not be `None` if `s` is not `None`, which NumPy 2.0 deprecated: pass the dimensions",
                DeprecationWarning, stacklevel=2,
            )  # fmt: skip
        if axes is None or not a.ndim or len({axis % a.ndim for axis in axes}) == len(axes):
            return distinct(a, s, axes, norm, out)
        given = [None] * len(axes) if s is None else s
        lengths = [a.shape[axis] if length in (None, -1) else length for length, axis in zip(given, axes, strict=True)]
        *others, last = zip(lengths, axes)
        if name.startswith("irfft"):
            for length, axis in others:
                a = each(a, length, axis, norm)
            a = np.fft.irfft(a, 2 * (last[0] - 1) if s is None else last[0], last[1], norm)
        else:
            a = (np.fft.rfft if name.startswith("rfft") else each)(a, *last, norm)
            for length, axis in reversed(others):
                a = each(a, length, axis, norm)
        return a if out is None else write_out(a, out, f"np.fft.{name}")

    return transformed


for _name in ("fft", "ifft", "rfft", "irfft"):
    for _ending in ("n", "2"):
        FUNCTIONS[getattr(np.fft, _name + _ending)] = _one_after_another(getattr(np.fft, _name + _ending))


@composite(np.fft.hfft, method=False)
def hfft(self: Any, n: int | None = None, axis: int = -1, norm: Any = None) -> Any:
    """Return the real transform of a Hermitian-symmetric sequence, given half of it."""
    self = as_operand(self)
    length = 2 * (self.shape[axis] - 1) if n is None else n
    return np.fft.irfft(np.conj(self), length, axis, TURNED.get(norm, norm))


@composite(np.fft.ihfft, method=False)
def ihfft(self: Any, n: int | None = None, axis: int = -1, norm: Any = None) -> Any:
    """Return the inverse of `hfft`: half of a Hermitian-symmetric sequence."""
    return np.conj(np.fft.rfft(as_operand(self), n, axis, TURNED.get(norm, norm)))
