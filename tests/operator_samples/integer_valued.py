"""The samples for the operators of derivatives/integer_valued.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

EXTREMA = draws(case((3, 4)), case((3, 4), 0), case((2, 3, 2), axis=1, keepdims=True), case(()))

trial("argmax", samples=EXTREMA)
trial("argmin", samples=EXTREMA)

trial("argpartition", samples=draws(case((5,), 2), case((3, 4), 1, 0)))
trial("_partition_places", samples=draws(case((5,), 2), case((3, 4), 1, 0)))
trial(
    "searchsorted",
    samples=lambda rng: [
        ((np.arange(4.0), rng.uniform(-1, 5, (2, 3))), {}),
        ((np.arange(4.0), np.array(2.0), "right"), {}),
    ],
)
trial(
    "digitize",
    samples=lambda rng: [
        ((rng.uniform(-1, 5, (2, 3)), np.arange(4.0)), {}),
        ((np.arange(3.0), np.arange(4.0), True), {}),
    ],
)
trial(
    "isin",
    samples=lambda rng: [
        ((rng.integers(0, 4, (3, 4)), np.array([1, 3])), {}),
        ((np.arange(3.0), np.ones(1)), {"invert": True}),
    ],
)


def _counted_plainly(a: Any, weights: Any = None, minlength: int = 0) -> Any:
    """NumPy's function, which returns integers for empty arrays, whatever the weights are."""
    counts = np.bincount(a, weights, minlength)
    return counts if weights is None else counts.astype(weights.dtype)


trial(
    "bincount",
    samples=lambda rng: [
        ((rng.integers(0, 4, 6), rng.standard_normal(6)), {}),
        ((rng.integers(0, 4, 6), rng.standard_normal(6), 7), {}),
    ],
    reference=_counted_plainly,
)

WHOLE = np.array([[12, 18, -4, 7], [0, 5, 9, 27], [6, 6, 1, 100]])


def _pairs(rng: np.random.Generator) -> list[Any]:
    return [((WHOLE, WHOLE[::-1].copy()), {}), ((WHOLE, np.array(6)), {})]


trial("gcd", samples=_pairs)
trial("lcm", samples=_pairs)
trial("bitwise_count", samples=lambda rng: [((WHOLE,), {})])
