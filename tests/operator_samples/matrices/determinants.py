"""The samples for the operators of derivatives/matrices/determinants.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.type_aliases import Array

from ..trials import trial
from .inverses import regular_matrices


def by_minors(a: Any) -> Any:
    """Return the cofactors, computed independently as determinants of the minors."""
    result = np.empty_like(a)
    n = a.shape[-1]
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(a, i, -2), j, -1)
            result[..., i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return np.where(np.isfinite(a).all(axis=(-2, -1), keepdims=True), result, np.nan)


def singular(*shape: int, rank: int) -> Any:
    """Return a stack of matrices of a rank."""
    rng = np.random.default_rng(rank)
    return rng.standard_normal((*shape[:-1], rank)) @ rng.standard_normal((*shape[:-2], rank, shape[-1]))


def of_each_rank(rng: np.random.Generator) -> list[Array]:
    """Small matrices of all ranks, stacks of them, and empty stacks."""
    return [
        *(singular(3, 3, rank=rank) for rank in range(4)), singular(4, 4, rank=2), singular(2, 2, 2, rank=1),
        np.diag([1.0, 1.0, 0.0]), np.array([[3.0]]), np.zeros((0, 2, 2)), rng.standard_normal((2, 3, 3)),
    ]  # fmt: skip


def larger() -> list[Array]:
    """Return matrices whose cofactors are accurate only relative to the largest: those of `by_minors` are better."""
    return [singular(5, 5, rank=3), singular(6, 6, rank=5)]


trial("_cofactor_matrix", samples=lambda rng: [((a,), {}) for a in of_each_rank(rng)], reference=by_minors)
trial(
    "_cofactor_change",
    samples=lambda rng: [((a, rng.standard_normal(a.shape)), {}) for a in (*of_each_rank(rng), *larger())],
)
trial(
    "det",
    samples=lambda rng: [
        ((rng.standard_normal((3, 3)),), {}),
        ((np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.5]]),), {}),
        *(((a,), {}) for a in (*of_each_rank(rng), *larger())),
    ],
)
trial(
    "slogdet",
    samples=lambda rng: [
        ((regular_matrices(rng, 3, 3),), {}),
        ((regular_matrices(rng, 2, 2, 2),), {}),
        ((np.zeros((0, 2, 2)),), {}),
    ],
)
