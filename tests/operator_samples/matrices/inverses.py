"""The samples for the operators of derivatives/matrices/inverses.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from viewgrad.operators.samples import Call, case, draws
from viewgrad.type_aliases import Array

from ..trials import trial
from .singular_values import where_finite


def regular_matrices(rng: np.random.Generator, *shape: int) -> Array:
    """Square matrices far from singular."""
    return rng.standard_normal(shape) + 3 * np.eye(shape[-1])


def _systems(rng: np.random.Generator) -> list[Call]:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 2)),
        ((2, 3, 3), (3,)),
        ((3, 3), (2, 3, 1)),
        ((0, 3, 3), (0, 3, 2)),
        ((3, 3), (3, 0)),
    ]
    return [((regular_matrices(rng, *a), rng.standard_normal(b)), {}) for a, b in shapes]


def _triangular_systems(rng: np.random.Generator) -> list[Call]:
    calls: list[Call] = []
    for left in (True, False):
        for upper in (True, False):
            for unitriangular in (True, False):
                a = regular_matrices(rng, 3, 3)
                b = rng.standard_normal((3, 2) if left else (2, 3))
                calls.append(((a, b), {"upper": upper, "left": left, "unitriangular": unitriangular}))
    calls.append(((regular_matrices(rng, 2, 1, 3, 3), rng.standard_normal((4, 3, 1))), {"upper": True}))
    calls.append(((regular_matrices(rng, 3, 3), np.zeros((3, 0))), {"upper": False}))
    return calls


def _solved_plainly(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    k = int(unitriangular)
    triangle = np.triu(a, k) if upper else np.tril(a, -k)
    if unitriangular:
        triangle = triangle + np.eye(a.shape[-1])
    if not np.isfinite(b).all():
        raise ValueError("what comes of infinities depends on the order of the sums")
    inverse = np.linalg.inv(triangle)
    return inverse @ b if left else b @ inverse


trial(
    "inv",
    samples=lambda rng: [
        ((regular_matrices(rng, 3, 3),), {}),
        ((regular_matrices(rng, 2, 2, 2),), {}),
        ((np.zeros((0, 3, 3)),), {}),
        ((np.zeros((2, 0, 0)),), {}),
    ],
)
trial("solve", samples=_systems)
trial(
    "solve_triangular",
    samples=_triangular_systems,
    reference=lambda a, b, *, upper, left=True, unitriangular=False: _solved_plainly(a, b, upper, left, unitriangular),
)
trial(
    "pinv",
    samples=draws(
        case((3, 2)), case((2, 3)), case((2, 3, 3)), case((0, 2, 3)), case((3, 2), 1e-10), case((2, 3, 3), 0.4)
    ),
    reference=partial(where_finite, np.linalg.pinv),
)
