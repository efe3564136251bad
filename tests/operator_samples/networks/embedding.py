"""The samples for the operators of derivatives/networks/embedding.py."""

from __future__ import annotations

import numpy as np

from ..trials import trial

trial(
    "embedding",
    samples=lambda rng: [
        ((rng.integers(0, 5, (2, 3)), rng.standard_normal((5, 2))), {}),
        ((np.array(2), rng.standard_normal((5, 2))), {}),
        ((np.zeros(0, int), rng.standard_normal((5, 2))), {}),
    ],
    reference=lambda indices, weight: np.take(weight, indices, axis=0),
)
trial(
    "one_hot",
    samples=lambda rng: [((rng.integers(0, 4, (2, 3)), 5), {}), ((rng.integers(0, 4, 6),), {})],
    reference=lambda a, num_classes=-1: np.eye(a.max() + 1 if num_classes < 0 else num_classes, dtype=int)[a],
)
