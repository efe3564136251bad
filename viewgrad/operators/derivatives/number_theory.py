"""Rows of functions of integers, and of the parts of floating-point numbers: they have no gradient."""

from __future__ import annotations

import numpy as np

from ..define import row

__all__: list[str] = []

row(
    "gcd(self, other)",
    np.gcd,
    {"self": "not_differentiable", "other": "not_differentiable"},
    elementwise=True,
    numpy=[np.gcd],
    doc="The greatest common divisor of integers.",
)
row(
    "lcm(self, other)",
    np.lcm,
    {"self": "not_differentiable", "other": "not_differentiable"},
    elementwise=True,
    numpy=[np.lcm],
    doc="The least common multiple of integers.",
)
if hasattr(np, "bitwise_count"):
    row(
        "bitwise_count(self)",
        np.bitwise_count,
        {"self": "not_differentiable"},
        elementwise=True,
        numpy=[np.bitwise_count],
        doc="The number of 1 bits of an integer.",
    )
