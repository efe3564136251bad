"""Evenly spaced numbers between tensors: `numpy.linspace`, `logspace` and `geomspace`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.shapes import along_first, with_ndim
from ...tensor.tensor import FUNCTIONS
from ..operands import operands


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Return `num` evenly spaced numbers between tensors; gradients flow to both."""
    num = operator.index(num)
    first, last = operands(start, stop)
    kind = np.result_type(first.dtype, last.dtype, 1.0)
    first, last = first.astype(kind), last.astype(kind)
    width = last - first
    steps = num - 1 if endpoint else num
    numbers = as_operand(np.arange(num, dtype=kind).reshape((-1,) + (1,) * width.ndim))
    points = numbers * (width / max(steps, 1)) + first  # rounded as in NumPy
    if endpoint and num > 1:
        points[-1] = last  # exactly
    if axis:
        points = points.moveaxis(0, axis)
    if dtype is not None:
        points = (points.floor() if np.dtype(dtype).kind in "iu" else points).astype(dtype)
    if not retstep:
        return points
    return points, width / steps if steps else width * np.nan


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Return numbers evenly spaced on a logarithmic scale; gradients flow to the exponents and the base."""
    if np.ndim(base):
        ndim = max(map(np.ndim, (start, stop, base)))
        start, stop, base = (with_ndim(as_operand(each), ndim) for each in (start, stop, base))
        base = np.expand_dims(base, axis)
    first, second = operands(base, linspace(start, stop, num, endpoint, axis=axis))
    powers = first**second
    return powers if dtype is None else powers.astype(dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return numbers in a geometric progression; gradients flow to both ends."""
    first, last = as_operand(start) * 1.0, as_operand(stop) * 1.0
    shares = along_first(np.linspace(0.0, 1.0, operator.index(num), endpoint), (first - last).ndim + 1)
    points = first * (last / first) ** shares
    if endpoint and num > 1:
        points[-1] = last
    points = points.moveaxis(0, axis) if axis else points
    return points if dtype is None else points.astype(dtype)


FUNCTIONS.update({np.linspace: linspace, np.logspace: logspace, np.geomspace: geomspace})
