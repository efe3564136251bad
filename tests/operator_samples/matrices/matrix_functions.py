"""The samples for the operators of derivatives/matrices/matrix_functions.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.operators.samples import case, draws

from ..trials import trial
from .inverses import regular_matrices


def _exp_by_series(a: Any) -> Any:
    small, term = a / 1024, np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    total = term
    for k in range(1, 30):
        term = term @ small / k
        total = total + term
    return np.linalg.matrix_power(total, 1024)


trial(
    "matrix_power",
    samples=lambda rng: [
        ((regular_matrices(rng, *shape), n), {})
        for shape, n in [((2, 2), 3), ((2, 2, 2), 2), ((3, 3), -2), ((2, 2), 0), ((2, 2), 1), ((0, 2, 2), 3)]
    ],
)
trial(
    "matrix_exp", samples=draws(case((3, 3)), case((2, 2, 2)), case((0, 2, 2)), case((1, 1))), reference=_exp_by_series
)
trial("matrix_rank", samples=draws(case((3, 2)), case((2, 3, 3)), case((2, 3), 0.5)))
