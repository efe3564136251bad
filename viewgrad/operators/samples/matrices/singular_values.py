"""What the operators of derivatives/matrices/singular_values.py are tested on."""

from __future__ import annotations

import numpy as np

from ..drawing import case, draws
from ..trials import trial

__all__: list[str] = []

trial(
    "svd",
    samples=draws(
        case((3, 3)),
        case((4, 2), full_matrices=False),
        case((2, 4), False),
        case((2, 3, 2), False),
        case((0, 3, 2), False),
    ),
    reference=np.linalg.svd,
)
trial("svdvals", samples=draws(case((3, 3)), case((2, 3, 2)), case((2, 4)), case((0, 2, 2))))
