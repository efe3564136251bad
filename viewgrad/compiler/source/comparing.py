"""Comparison of the results of a program with those of the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def scale_of(arrays: Sequence[Any]) -> float:
    """Return the greatest finite size among some arrays."""
    found = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in map(np.asarray, arrays) if a.dtype.kind in "fc"]
    return float(max(found, default=1.0)) or 1.0


def is_close(expected: Any, found: Any, scale: float) -> bool:
    """Return whether numbers agree up to rounding."""
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.shape != found.shape:
        return False
    if expected.dtype.kind in "biu":
        return bool(np.all(expected == found))
    finite = np.abs(expected[np.isfinite(expected)])
    size = finite.max(initial=0.0)
    if expected.dtype == np.float32:
        return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-4 * size + 1e-6 * scale, equal_nan=True))
    return bool(np.allclose(found, expected, rtol=1e-6, atol=1e-8 * size + 1e-13 * scale + 1e-300, equal_nan=True))
