"""The dtypes of the standard, its constants, and functions that inspect dtypes."""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np

from ..tensor.tensor import Tensor

DTYPES: Final[dict[str, Any]] = {
    "bool": np.bool_,
    **{f"int{bits}": getattr(np, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(np, f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": getattr(np, f"float{bits}") for bits in (16, 32, 64)},
    **{f"complex{bits}": getattr(np, f"complex{bits}") for bits in (64, 128)},
}
CONSTANTS: Final[dict[str, Any]] = {"e": np.e, "inf": np.inf, "nan": np.nan, "pi": np.pi, "newaxis": None}

SIGNED: Final = ("int8", "int16", "int32", "int64")
UNSIGNED: Final = ("uint8", "uint16", "uint32", "uint64")
REAL: Final = ("float32", "float64")
COMPLEX: Final = ("complex64", "complex128")

# The kinds of dtypes in the standard, each with the names of its members.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("bool",),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}


@attrs.frozen
class FloatInfo:
    """The limits of a floating-point dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    tiny: float
    resolution: float
    dtype: np.dtype[Any]


@attrs.frozen
class IntegerInfo:
    """The limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype(of: Any) -> np.dtype[Any]:
    return of.dtype if isinstance(of, (Tensor, np.ndarray, np.generic)) else np.dtype(of)


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating-point dtype, or of the dtype of a tensor.

    Arguments:
        type: a real or complex floating-point dtype, or a tensor. For a complex dtype, the limits are those of its
            parts.

    Raises:
        ValueError: for other dtypes.

    Example:
        >>> import viewgrad as vg
        >>> vg.finfo(vg.float64).eps
        2.220446049250313e-16
    """
    info = np.finfo(_dtype(type))
    return FloatInfo(
        bits=int(info.bits),
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        tiny=float(info.tiny),
        resolution=float(info.resolution),
        dtype=info.dtype,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype, or of the dtype of a tensor.

    Arguments:
        type: an integer dtype, or a tensor.

    Raises:
        ValueError: for other dtypes.

    Example:
        >>> import viewgrad as vg
        >>> vg.iinfo(vg.int8).max
        127
    """
    dtype = _dtype(type)
    info = np.iinfo(dtype)
    return IntegerInfo(bits=int(info.bits), max=int(info.max), min=int(info.min), dtype=dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of the given kind.

    Arguments:
        dtype: the dtype.
        kind: another dtype; one of "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
            floating" and "numeric"; or a tuple of these.

    Raises:
        ValueError: if the kind is unknown.

    Example:
        >>> import viewgrad as vg
        >>> vg.isdtype(vg.float32, ("real floating", "complex floating"))
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind in KINDS:
        return np.dtype(dtype).name in KINDS[kind]
    if isinstance(kind, str) and kind not in DTYPES:
        raise ValueError(f"unknown kind of dtypes {kind!r}; the kinds are {', '.join(KINDS)}")
    return bool(np.dtype(dtype) == np.dtype(kind))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether the promotion rules allow converting a dtype to another.

    Arguments:
        from_: a dtype or a tensor.
        to: a dtype.

    Example:
        >>> import viewgrad as vg
        >>> vg.can_cast(vg.float64, vg.float32)
        False
    """
    return np.can_cast(_dtype(from_), np.dtype(to))


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that results from combining tensors, numbers and dtypes.

    Arguments:
        arrays_and_dtypes: tensors, arrays, Python numbers and dtypes.

    Example:
        >>> import viewgrad as vg
        >>> vg.result_type(vg.float32, 1.0)
        dtype('float32')
    """
    return np.result_type(*(each.dtype if isinstance(each, Tensor) else each for each in arrays_and_dtypes))
