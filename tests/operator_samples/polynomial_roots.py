"""The samples for the operator of derivatives/polynomial_roots.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import Call

from .trials import trial


def _coefficients(rng: np.random.Generator) -> list[Call]:
    return [((rng.uniform(0.5, 2.0, n),), {}) for n in (2, 3, 5)]


trial("_differentiable_roots", samples=_coefficients)
