"""The samples for the operators of derivatives/indexing.py."""

from __future__ import annotations

from typing import Final

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

PLACES: Final = np.array([[0, 0], [3, 1], [-1, 2]])
MATRICES: Final = draws(case((3, 4)), case((2, 3, 3), -1), case((3, 3), k=1), case((0, 2)), case((3,)), case((3,), 1))
SCATTERED: Final = draws(
    case((3, 4), 1, PLACES, (3, 2)),
    case((3, 4), 0, np.array([[0, 2, 1, 0]]), (1, 4)),
    case((3,), 0, np.array([0, 2]), ()),
)


trial("_reshaped_copy", samples=draws(case((3, 4), shape=(2, 6)), case((2, 3), shape=(6,)), case((0, 2), shape=(0,))))
trial("_cast", samples=draws(case((3, 4), np.dtype(np.float64)), case((3, 4), np.dtype(np.complex128))))
trial("_cast_exactly", samples=draws(case((3, 4), np.dtype(int)), case((3, 4), np.dtype(bool))))
trial(
    "take",
    samples=draws(
        case((3, 4), np.array([0, 5, 5, -1])),
        case((3, 4), np.array([[2, 2], [0, -1]]), axis=0),
        case((3, 4), np.array(1), axis=1),
        case((3,), np.array([], int)),
        case((2, 3), np.array([4, -2]), axis=1, mode="wrap"),
        case((2, 3), np.array([4, -2]), axis=1, mode="clip"),
    ),
)
trial(
    "take_along_axis",
    samples=draws(
        case((3, 4), PLACES),
        case((3, 4), np.array([[0, 2, 1, 0]]), axis=0),
        case((3, 4), np.array([[1, 1]])),
        case((3,), np.array([2, 0])),
        case((2, 2), np.array([3, 3, 0]), axis=None),
        case((1, 4), PLACES),
    ),
)
trial("tril", samples=MATRICES)
trial("triu", samples=MATRICES)
trial(
    "_scatter_into_zeros",
    samples=lambda rng: [((rng.standard_normal((3, 2)), (np.array([0, 0, 1]), np.array([2, 2, 0])), (2, 3, 2)), {})],
)
trial(
    "index_add",
    samples=draws(
        case((3, 4), 0, np.array([2, 0, 2]), (3, 4)),
        case((3, 4), -1, np.array([1]), (3, 1)),
        case((3,), 0, np.array([0, 0]), ()),
    ),
)
trial("scatter", samples=SCATTERED)
trial("scatter_add", samples=SCATTERED)
trial("sort", samples=draws(case((3, 4)), case((3, 4), axis=0), case((5,)), case((2, 3), axis=None), case((0,))))
trial("argsort", samples=draws(case((3, 4)), case((3, 4), axis=0), case((2, 3), axis=None)))
