"""The samples for the operators of derivatives/number_theory.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .trials import trial

WHOLE = np.array([[12, 18, -4, 7], [0, 5, 9, 27], [6, 6, 1, 100]])


def _pairs(rng: np.random.Generator) -> list[Any]:
    return [((WHOLE, WHOLE[::-1].copy()), {}), ((WHOLE, np.array(6)), {})]


trial("gcd", samples=_pairs)
trial("lcm", samples=_pairs)
trial("bitwise_count", samples=lambda rng: [((WHOLE,), {})])
