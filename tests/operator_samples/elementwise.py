"""The samples for the operators of derivatives/elementwise.py."""

from __future__ import annotations

from typing import Final

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

BITS: Final = np.arange(12).reshape(3, 4) % 5

MASK: Final = np.array([[True, False, False, True], [False, False, True, True], [True, True, False, False]])


trial("lerp", reference=lambda self, end, weight: (1 - weight) * self + weight * end)
trial("sigmoid", reference=lambda a: 0.5 * (1 + np.tanh(a / 2)))
trial("relu", reference=lambda a: np.where(a > 0, a, 0))
trial(
    "softplus",
    samples=draws(case((3, 4)), case((3, 4), beta=2.5)),
    reference=lambda a, beta=1.0: np.log(1 + np.exp(beta * a)) / beta,
)
trial("round", samples=draws(case((3, 4)), case((3, 4), 1)))
trial("where", samples=draws(case(MASK, (3, 4), (3, 4))), reference=np.where)
trial(
    "masked_fill",
    samples=draws(case((3, 4), MASK, (3, 4)), case((3, 4), MASK, ())),
    reference=lambda self, mask, value: np.choose(mask, [self, value]),
)
trial(
    "_where_flowing", samples=draws(case((3, 4), (3, 4)), case((2, 3), np.array([[0.0, 1.0, -2.0], [0.0, 0.0, 3.0]])))
)
trial(
    "clip",
    samples=draws(
        case((3, 4), np.full((3, 4), -0.5), np.full((3, 4), 0.6)),
        case((3, 4), (3, 4), (3, 4)),
        case((3, 4), np.array(-0.5), np.array(0.6)),
        case((3, 4), min=np.array(0.1)),
        case((3, 4), max=np.array(0.1)),
    ),
)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
    trial(name, samples=draws(case(BITS, BITS[::-1])))
trial("invert", samples=draws(case(BITS)))
