"""Functions that describe, format, save and load arrays; no gradient flows through them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, exported, plain_values
from ..tensor.tensor import Tensor
from .array_types import is_scalar
from .testing import on_values


def isscalar(element: Any) -> bool:
    """Return whether a value is a number, or a scalar tensor."""
    return is_scalar(element) or np.isscalar(element)


def iterable(y: Any) -> bool:
    """Return whether a value can be iterated over."""
    return bool(y.ndim) if isinstance(y, Tensor) else np.iterable(y)


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, or of nested lists."""
    return a.shape if isinstance(a, Tensor) else np.shape(plain_values(a))


def ndim(a: Any) -> int:
    """Return the number of dimensions."""
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, or the length along an axis; of a sparse array, as its attribute `size`."""
    if axis is None and not isinstance(a, Tensor) and type(getattr(a, "size", None)) is int:
        return a.size  # type: ignore[no-any-return]
    return np.size(np.empty(shape(a), bool), axis)


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating-point dtype, or of the dtype of a tensor."""
    return np.finfo(dtype.dtype if isinstance(dtype, Tensor) else dtype)


# Functions that describe or format values.
DESCRIBING: Final = tuple(
    "array2string array_repr array_str base_repr binary_repr einsum_path format_float_positional "
    "format_float_scientific isfortran result_type can_cast common_type min_scalar_type may_share_memory "
    "shares_memory array_equiv iscomplexobj isrealobj".split()
)

# Functions that write arrays to files, which keep no history.
WRITING: Final = ("save", "savetxt", "savez", "savez_compressed")

# Functions that create arrays from files, text and memory, or from lengths alone.
READING: Final = tuple(
    "bartlett blackman frombuffer fromfile fromstring genfromtxt hamming hanning loadtxt tri".split()
)


def _reading(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    @functools.wraps(function, updated=())
    def read(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(f"numpy.{name}", "it reads numbers and memory without their history; pass detach()")
        now = getattr(np, name)  # patched while a run is traced
        if name == "frombuffer":
            args, kwargs = tuple(map(exported, args)), {key: exported(value) for key, value in kwargs.items()}
        return as_tensors(now(*map(plain_values, map(as_argument, args)), **plain_values(kwargs)))

    return read


def _writing(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    written = on_values(function)

    @functools.wraps(function, updated=())
    def write(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(
                f"numpy.{name}",
                "a file would lose the history; save detach() of the tensor, or use viewgrad.save, which also stores "
                "requires_grad of leaves",
            )
        return written(*args, **kwargs)

    return write


class Archive(np.lib.npyio.NpzFile):
    """The arrays in a file written by `savez`, as tensors."""

    def __getitem__(self, key: str) -> Any:
        return as_tensors(super().__getitem__(key))


def load(*args: Any, **kwargs: Any) -> Any:
    """Load the contents of a file written by `save`, `savez` or pickle; arrays become tensors."""
    found = _reading("load")(*args, **kwargs)
    if type(found) is np.lib.npyio.NpzFile:
        found.__class__ = Archive
    return found


IO_FUNCTIONS: Final[dict[str, Any]] = {
    **{each.__name__: each for each in (isscalar, iterable, finfo, shape, ndim, size)},
    **{name: on_values(getattr(np, name)) for name in DESCRIBING},
    **{name: _writing(name) for name in WRITING},
    **{name: _reading(name) for name in READING},
    "load": load,
}
