"""The samples for the operators of derivatives/matrices/decompositions.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import case, draws
from viewgrad.type_aliases import Array

from ..trials import trial


def positive_definite(rng: np.random.Generator, *shape: int) -> Array:
    """Symmetric matrices whose eigenvalues are distinct and positive."""
    a = rng.standard_normal(shape)
    return a @ a.mT + np.diag(4.0 + np.arange(shape[-1]))


trial(
    "cholesky",
    samples=lambda rng: [
        ((positive_definite(rng, 3, 3),), {}),
        ((positive_definite(rng, 3, 3),), {"upper": True}),
        ((positive_definite(rng, 2, 2, 2),), {}),
        ((np.zeros((0, 2, 2)),), {}),
    ],
)
trial(
    "qr",
    samples=draws(
        case((3, 3)), case((4, 2)), case((2, 4)), case((2, 3, 2)), case((0, 3, 2)), case((2, 2), mode="complete")
    ),
)
