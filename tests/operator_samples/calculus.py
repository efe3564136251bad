"""The samples for the operators of derivatives/calculus.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import Call, case, draws

from .trials import trial


def _knots(rng: np.random.Generator) -> list[Call]:
    xp = np.array([-1.0, 0.0, 0.7, 2.0])
    x, inner = rng.uniform(-2, 3, (3, 4)), rng.uniform(-0.9, 1.9, 5)
    return [
        ((x, xp, rng.standard_normal(4)), {}),
        ((x, xp, rng.standard_normal(4)), {"left": 5.0, "right": 0.0}),
        ((inner, xp, rng.standard_normal(4)), {}),
        ((np.array(0.3), xp, rng.standard_normal(4)), {}),
        ((np.zeros(0), xp, rng.standard_normal(4)), {}),
    ]


trial(
    "diff",
    samples=draws(
        case((4,)), case((3, 4), 2), case((3, 4), 1, 0), case((2, 3), 3), case((2, 3), 0), case((0, 2)), case((1,))
    ),
    reference=lambda a, n=1, axis=-1: np.diff(a, n, axis),
)
trial(
    "trapezoid",
    samples=draws(
        case((5,)),
        case((3, 4), dx=0.5),
        case((3, 4), (4,)),
        case((3, 4), (3,), axis=0),
        case((3, 4), (3, 4)),
        case((2, 1)),
        case((0, 3)),
        case((1,), (1,)),
    ),
)
trial("interp", samples=_knots)
trial(
    "convolve",
    samples=draws(
        *[
            case((n,), (m,), mode)
            for mode in ("full", "same", "valid")
            for n, m in ((5, 3), (5, 2), (2, 5), (3, 3), (4, 1))
        ]
    ),
)
trial(
    "correlate",
    samples=draws(
        *[
            case((n,), (m,), mode)
            for mode in ("full", "same", "valid")
            for n, m in ((5, 3), (5, 2), (2, 5), (3, 6), (4, 1))
        ]
    ),
)
