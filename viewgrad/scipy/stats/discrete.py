"""Distributions of whole numbers."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from .. import special
from .distribution import Distribution, positive, unit

__all__ = ["DISCRETE"]

DISCRETE: Final = (
    Distribution(
        "poisson",
        ("mu",),
        lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu,
        positive,
        discrete=True,
        cdf=lambda k, mu: special.gammaincc(k + 1, mu),
        moments=(lambda mu: mu, lambda mu: mu),
    ),
    Distribution(
        "bernoulli",
        ("p",),
        lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
        unit,
        discrete=True,
        moments=(lambda p: p, lambda p: p * (1 - p)),
    ),
    Distribution(
        "binom",
        ("n", "p"),
        lambda k, n, p: (
            special.gammaln(n + 1)
            - special.gammaln(k + 1)
            - special.gammaln(n - k + 1)
            + special.xlogy(k, p)
            + special.xlog1py(n - k, -p)
        ),
        lambda n, p: (0.0, n),
        discrete=True,
        moments=(lambda n, p: n * p, lambda n, p: n * p * (1 - p)),
    ),
    Distribution(
        "geom",
        ("p",),
        lambda k, p: special.xlog1py(k - 1, -p) + np.log(p),
        lambda p: (1.0, math.inf),
        discrete=True,
        moments=(lambda p: 1 / p, lambda p: (1 - p) / p**2),
    ),
)
