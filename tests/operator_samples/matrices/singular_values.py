"""The samples for the operators of derivatives/matrices/singular_values.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from viewgrad.operators.samples import case, draws

from ..trials import trial


def where_finite(function: Callable[..., Any], a: Any, *args: Any, **options: Any) -> Any:
    """Return NumPy's result for finite matrices; for others it depends on where LAPACK stops."""
    if not np.isfinite(a).all():
        raise ValueError("a matrix with infinities or NaN has no singular values")
    return function(a, *args, **options)


trial(
    "svd",
    samples=draws(
        case((3, 3)),
        case((4, 2), full_matrices=False),
        case((2, 4), False),
        case((2, 3, 2), False),
        case((0, 3, 2), False),
    ),
    reference=partial(where_finite, np.linalg.svd),
)
trial("svdvals", samples=draws(case((3, 3)), case((2, 3, 2)), case((2, 4)), case((0, 2, 2))))
