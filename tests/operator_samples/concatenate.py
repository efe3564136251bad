"""The samples for the operators of derivatives/concatenate.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

trial(
    "concatenate",
    samples=draws(
        case([(2, 3), (1, 3), (0, 3)]), case([(2, 3), (2, 1)], axis=-1), case([(2, 3), (2,)], axis=None), case([(2,)])
    ),
)
trial(
    "stack",
    samples=draws(case([(2, 3), (2, 3)]), case([(2, 3), (2, 3)], axis=-1), case([(), (), ()]), case([(2, 0)], axis=1)),
)
trial(
    "tile",
    samples=draws(
        case((2, 3), 2),
        case((2, 3), reps=(2, 1)),
        case((3,), reps=(2, 2)),
        case((), reps=(2,)),
        case((2, 3), reps=(0, 1)),
        case((2, 3), reps=(2, 1, 2)),
    ),
)
trial(
    "repeat",
    samples=draws(
        case((2, 3), 2),
        case((2, 3), 2, axis=-1),
        case((2, 3), np.array([2, 0, 1]), axis=1),
        case((), 3),
        case((), 3, axis=0),
        case((2, 2), np.array([1, 0, 2, 1])),
        case((2, 3), 0),
    ),
)
trial(
    "roll",
    samples=draws(
        case((3, 4), 5),
        case((3, 4), -1, axis=1),
        case((3, 4), shift=(1, 2), axis=(0, 1)),
        case((3, 4), shift=2, axis=(0, 1)),
        case((0, 2), 1),
    ),
)
trial(
    "pad",
    samples=draws(
        case((3, 4), 1),
        case((3,), pad_width=(2, 0), constant_values=5.0),
        case((3,), 4, mode="symmetric"),
        case((3, 4), pad_width=((0, 1), (2, 0)), mode="edge"),
        case((3, 4), pad_width=((3, 1), (2, 5)), mode="reflect"),
        case((3, 2), pad_width=((0, 0), (3, 3)), mode="wrap"),
    ),
)
