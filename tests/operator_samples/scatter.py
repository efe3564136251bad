"""The samples for the operators of derivatives/scatter.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

trial(
    "_scatter_along_axis",
    samples=lambda rng: [
        ((rng.standard_normal((3, 4)), rng.integers(0, 5, (3, 4)), 1, 5), {}),
        ((rng.standard_normal((3, 4)), rng.integers(0, 2, (3, 4)), 0, 2), {}),
        ((rng.standard_normal((0, 4)), rng.integers(0, 2, (0, 4)), 0, 2), {}),
        ((rng.standard_normal(()), np.zeros((), int), -1, 1), {}),
    ],
)
trial(
    "diag_embed",
    samples=draws(
        case((3,)), case((2, 3), 1), case((2, 3), -2, dim1=0, dim2=2), case((2, 0)), case((3, 1), dim1=1, dim2=0)
    ),
)
