"""The samples for the operators of derivatives/matrices/eigen.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import Call
from viewgrad.type_aliases import Array

from ..trials import trial
from .decompositions import positive_definite


def _hermitian_matrices(rng: np.random.Generator) -> list[Call]:
    return [
        ((positive_definite(rng, 3, 3),), {}),
        ((positive_definite(rng, 3, 3),), {"UPLO": "U"}),
        ((positive_definite(rng, 2, 2, 2),), {}),
        ((np.zeros((0, 2, 2)),), {}),
    ]


def _with_real_eigenvalues(rng: np.random.Generator) -> list[Call]:
    def drawn(*outer: int) -> Array:
        turn = rng.standard_normal((*outer, 3, 3)) + 2 * np.eye(3)
        return turn @ (np.array([1.0, 2.5, -1.5])[:, None] * np.linalg.inv(turn))  # type: ignore[no-any-return]

    return [((drawn(),), {}), ((drawn(2),), {})]


trial("eig", samples=_with_real_eigenvalues)
trial("eigvals", samples=_with_real_eigenvalues)
trial("eigh", samples=_hermitian_matrices)
trial("eigvalsh", samples=_hermitian_matrices)
