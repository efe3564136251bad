"""The samples for the operators of autograd/modes/functionalize.py."""

from __future__ import annotations

import numpy as np

from viewgrad.autograd.modes.functionalize import Part
from viewgrad.views.view_functions import Permuted

from .trials import trial

trial(
    "_overwritten",
    samples=lambda rng: [
        ((rng.standard_normal(shape), rng.standard_normal(values), place), {})
        for shape, values, place in (
            ((3, 4), (4,), Part((3, 4), (slice(1, None),))),
            ((3, 4), (), Part((3, 4))),
            ((2, 3), (3, 2), Part((2, 3), view_fn=Permuted((1, 0)))),
            ((3, 4), (2, 4), Part((3, 4), items=(np.array([2, 0]),))),
            ((3,), (3,), Part((3,), items=(np.array([1, 0, 1]),), last=np.array([2, 1, 2]))),
        )
    ],
)
trial(
    "_accumulated",
    samples=lambda rng: [
        ((rng.standard_normal(shape), rng.standard_normal(values), items), {})
        for shape, values, items in (
            ((3, 4), (2, 4), (np.array([1, 1]),)),
            ((3,), (), (np.array([2, 0, 2]),)),
            ((2, 3), (2,), (np.array([0, 1]), np.array([2, 2]))),
        )
    ],
)
