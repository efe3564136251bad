"""What the operators of derivatives/eigen.py are tested on."""

from __future__ import annotations

import numpy as np

from .drawing import Array, Call
from .trials import trial

__all__: list[str] = []


def _with_real_eigenvalues(rng: np.random.Generator) -> list[Call]:
    def drawn(*outer: int) -> Array:
        turn = rng.standard_normal((*outer, 3, 3)) + 2 * np.eye(3)
        return turn @ (np.array([1.0, 2.5, -1.5])[:, None] * np.linalg.inv(turn))  # type: ignore[no-any-return]

    return [((drawn(),), {}), ((drawn(2),), {})]


trial("eig", samples=_with_real_eigenvalues)
trial("eigvals", samples=_with_real_eigenvalues)
