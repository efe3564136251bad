"""Rows of functions of integers, and of the parts of floating-point numbers: they have no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..define import row

__all__: list[str] = []

WHOLE = np.array([[12, 18, -4, 7], [0, 5, 9, 27], [6, 6, 1, 100]])


def _pairs(rng: np.random.Generator) -> list[Any]:
    return [((WHOLE, WHOLE[::-1].copy()), {}), ((WHOLE, np.array(6)), {})]


row(
    "gcd(self, other)",
    np.gcd,
    {"self": "not_differentiable", "other": "not_differentiable"},
    elementwise=True,
    numpy=[np.gcd],
    samples=_pairs,
    doc="The greatest common divisor of integers.",
)
row(
    "lcm(self, other)",
    np.lcm,
    {"self": "not_differentiable", "other": "not_differentiable"},
    elementwise=True,
    numpy=[np.lcm],
    samples=_pairs,
    doc="The least common multiple of integers.",
)
if hasattr(np, "bitwise_count"):
    row(
        "bitwise_count(self)",
        np.bitwise_count,
        {"self": "not_differentiable"},
        elementwise=True,
        numpy=[np.bitwise_count],
        samples=lambda rng: [((WHOLE,), {})],
        doc="How many bits of an integer are set.",
    )
