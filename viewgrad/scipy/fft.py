"""`scipy.fft` for tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.fft  # type: ignore[import-untyped]

from ..numpy import fft as transforms
from ..numpy.namespace import filled, public_names
from ..operators.numpy_api.conversion import as_tensors
from ..tensor.creation import as_operand, holds_tensor

if TYPE_CHECKING:
    from .typed.fft import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


def _transform(name: str) -> Callable[..., Any]:
    function = getattr(transforms, name)

    def transform(
        x: Any, *args: Any, overwrite_x: bool = False, workers: Any = None, plan: Any = None, **kw: Any
    ) -> Any:
        return function(x, *args, **kw)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`scipy.fft.{name}` for tensors."
    return transform


MADE: dict[str, Any] = {
    name: _transform(name)
    for name in public_names(np.fft)
    if hasattr(scipy.fft, name) and not name.endswith("freq") and "shift" not in name
}
MADE |= {name: getattr(transforms, name) for name in ("fftfreq", "rfftfreq", "fftshift", "ifftshift")}


def _cosines(name: str) -> Callable[..., Any]:
    """Return a discrete cosine or sine transform, by its matrix: SciPy's transform of the unit vectors."""
    function = getattr(scipy.fft, name)

    def transform(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
        if not holds_tensor(x):
            return as_tensors(function(x, type, n, axis, norm, **options))
        x = as_operand(x)
        count = x.shape[axis]
        length = count if n is None else int(n)
        matrix = function(np.eye(count, dtype=x.dtype), type, length, 1, norm)
        return np.moveaxis(np.tensordot(x, matrix, ((axis,), (0,))), -1, axis)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`scipy.fft.{name}` for tensors."
    return transform


MADE |= {name: _cosines(name) for name in ("dct", "idct", "dst", "idst")}


def _over_dimensions(name: str) -> Callable[..., Any]:
    """Return a cosine or sine transform along several dimensions, one after the other."""
    along, function = MADE[name[:-1]], getattr(scipy.fft, name)

    def transform(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, **options: Any) -> Any:
        if not holds_tensor(x):
            return as_tensors(function(x, type, s, axes, norm, **options))
        x = as_operand(x)
        sizes = (None,) * x.ndim if s is None else tuple(np.atleast_1d(s))
        dims = range(x.ndim - len(sizes), x.ndim) if axes is None else tuple(np.atleast_1d(axes))
        for dim, size in zip(dims, sizes):
            x = along(x, type, size, int(dim), norm)
        return x

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`scipy.fft.{name}` for tensors."
    return transform


MADE |= {name: _over_dimensions(name) for name in ("dctn", "idctn", "dstn", "idstn")}
FROM_SCIPY = frozenset(
    {
        "get_workers",
        "next_fast_len",
        "prev_fast_len",
        "register_backend",
        "set_backend",
        "set_global_backend",
        "set_workers",
        "skip_backend",
    }
)

globals().update(filled(scipy.fft, MADE, FROM_SCIPY, {}))
__all__ = public_names(scipy.fft)
