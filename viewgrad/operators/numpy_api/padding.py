"""`numpy.pad` on tensors, in all its modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.creation import as_operand, holds_tensor
from ...tensor.shapes import along_first
from ...tensor.tensor import FUNCTIONS, Tensor, as_buffered
from .. import OPERATORS

__all__: list[str] = []

concatenate = OPERATORS["concatenate"].function

# -- margins -----------------------------------------------------------------------------------------------------------

STATISTICS: Final[dict[str, Callable[..., Any]]] = {
    "maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median,
}  # fmt: skip


def _pairs(given: Any, ndim: int) -> list[Any]:
    """Return two values for each dimension, from one value, a pair, or a pair for each dimension, as in `numpy.pad`."""
    if isinstance(given, dict):
        return [given.get(dim, given.get(dim - ndim, (0, 0))) for dim in range(ndim)]
    if isinstance(given, (list, tuple)):
        given = [list(pair) if isinstance(pair, tuple) else pair for pair in given]
        if holds_tensor(given):
            given = np.stack([np.stack(pair) if isinstance(pair, list) else as_operand(pair) for pair in given])
    given = given if isinstance(given, Tensor) else np.asarray(given)
    if given.ndim == 1 and given.shape[0] == 1:
        given = given[0]
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0][:, None]
    return list(np.broadcast_to(given, (ndim, 2)))


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Implement `numpy.pad`; gradients also flow to the constants and to the ends of ramps."""
    array = as_operand(array)
    if type(pad_width) is int and mode == "constant" and not options and array.ndim and array.dtype.kind in "fc":
        return OPERATORS["pad"].function(array, pad_width)
    widths = [(int(before), int(after)) for before, after in _pairs(pad_width, array.ndim)]
    if not array.ndim:
        return as_buffered(array.clone())
    if callable(mode):
        return _by_function(array, widths, mode, options)
    if array.dtype.kind not in "fc":
        return as_operand(np.asarray(np.pad(array._array, widths, mode, **options)))
    mode = "constant" if mode == "empty" else mode  # values are unspecified
    odd, followed = options.get("reflect_type") == "odd", holds_tensor(list(options.values()))
    if not (mode in MARGINS or odd or followed):
        options.pop("reflect_type", None)
        return OPERATORS["pad"].function(array, widths or 0, mode, **options)
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError("index can't contain negative values")
    margin: Callable[..., Any] = MARGINS.get(mode, _constant if mode == "constant" else _odd)
    setting = next(iter(options.values()), None) if mode != "reflect" and mode != "symmetric" else mode
    settings = _pairs(0 if setting is None else setting, array.ndim) if margin in (_constant, _ramp) else None
    for dim, width in enumerate(widths):
        if margin is not _constant and not array.shape[dim]:
            if any(width):
                raise ValueError(f"can't extend empty axis {dim} using modes other than 'constant' or 'empty'")
            continue
        given = settings[dim] if settings is not None else setting
        parts = [margin(array, dim, width, given, mode, last) for last in (False, True)]
        array = concatenate([parts[0], array, parts[1]], dim)
    return as_buffered(array)


def _by_function(array: Any, widths: list[tuple[int, int]], function: Callable[..., Any], options: Any) -> Any:
    """Pad by a function that writes the margins of each line along each dimension in place."""
    padded = OPERATORS["pad"].function(array, widths).clone()
    for dim, width in enumerate(widths):
        for place in np.ndindex(*padded.shape[:dim], *padded.shape[dim + 1 :]):
            function(padded[(*place[:dim], slice(None), *place[dim:])], width, dim, options)
    return as_buffered(padded)


def _slices(array: Any, dim: int, start: int | None, stop: int | None) -> Any:
    return array[(slice(None),) * dim + (slice(start, stop),)]


def _repeated(array: Any, dim: int, count: int) -> Any:
    return array.broadcast_to(tuple(count if i == dim else n for i, n in enumerate(array.shape)))


def _constant(array: Any, dim: int, widths: tuple[int, int], given: Any, mode: str, last: bool) -> Any:
    value = as_operand(given[int(last)]).astype(array.dtype)
    return value.broadcast_to(tuple(widths[last] if i == dim else n for i, n in enumerate(array.shape)))


def _ramp(array: Any, dim: int, widths: tuple[int, int], given: Any, mode: str, last: bool) -> Any:
    edge = _slices(array, dim, -1, None) if last else _slices(array, dim, 0, 1)
    end = as_operand(given[int(last)]).astype(array.dtype)
    shares = (np.arange(widths[last]) / max(widths[last], 1)).astype(array.dtype)
    shares = along_first(shares[::-1] if last else shares, array.ndim - dim)
    return end + (edge - end) * shares


def _statistic(array: Any, dim: int, widths: tuple[int, int], given: Any, mode: str, last: bool) -> Any:
    extent = array.shape[dim]
    if given is None:
        length = extent
    else:
        length = min(int(_pairs(given, array.ndim)[dim][int(last)]), extent)
        if length < 1 and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
    part = _slices(array, dim, extent - length, None) if last else _slices(array, dim, 0, length)
    return _repeated(STATISTICS[mode](part, axis=dim, keepdims=True).astype(array.dtype), dim, widths[last])


def _odd(array: Any, dim: int, widths: tuple[int, int], given: Any, mode: str, last: bool) -> Any:
    """Reflect at an edge, and invert the values about the value at the edge."""
    width, extent, own = widths[last], array.shape[dim], int(mode == "symmetric")
    if width > extent - 1 + own:  # reflected repeatedly: NumPy determines the sum for each element
        rows = np.pad(np.eye(extent), (widths, (0, 0)), mode, reflect_type="odd")  # type: ignore[call-overload]
        rows = rows[len(rows) - width :] if last else rows[:width]
        elements = [_slices(array, dim, i, i + 1) for i in range(extent)]
        sums = (sum(share * elements[i] for i, share in enumerate(row) if share) for row in rows.tolist())
        return concatenate(list(sums), dim)
    first = 1 - own
    if last:
        edge, part = _slices(array, dim, -1, None), _slices(array, dim, extent - first - width, extent - first)
    else:
        edge, part = _slices(array, dim, 0, 1), _slices(array, dim, first, first + width)
    return 2 * edge - np.flip(part, dim)


MARGINS: Final[dict[str, Callable[..., Any]]] = {"linear_ramp": _ramp} | dict.fromkeys(STATISTICS, _statistic)
FUNCTIONS[np.pad] = _pad
