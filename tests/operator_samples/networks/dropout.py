"""The samples for the operators of derivatives/networks/dropout.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..trials import trial


class SameNumbers:
    """A generator for tests, which draws the same numbers at every call."""

    def random(self, shape: tuple[int, ...]) -> Any:
        """Return numbers between 0 and 1."""
        return np.random.default_rng(0).random(shape)

    def __repr__(self) -> str:
        return "SameNumbers()"


trial(
    "_native_dropout",
    samples=lambda rng: [
        ((rng.standard_normal(shape), p), {"generator": SameNumbers(), **options})
        for shape, p, options in [
            ((3, 4), 0.5, {}),
            ((3, 4), 0.3, {"train": False}),
            ((3,), 1.0, {}),
            ((0, 2), 0.5, {}),
        ]
    ],
)
