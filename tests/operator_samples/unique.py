"""The samples for the operators of derivatives/unique.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

DISTINCT = draws(case((2, 3)), case(np.zeros(0)), case(np.array(2.0)), case((4,)))


trial(
    "unique",
    samples=lambda rng: [*DISTINCT(rng), ((np.array([[1.0, 2.0], [0.0, 1.0], [1.5, 2.0]]), 0), {})],
    reference=lambda a, axis=None: np.unique(a, axis=axis),
)
trial("unique_all", samples=DISTINCT)
