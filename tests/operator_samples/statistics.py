"""The samples for the operators of derivatives/statistics.py."""

from __future__ import annotations

import numpy as np

from viewgrad.operators.samples import case, draws

from .trials import trial

REDUCED = draws(
    case((3, 4)), case((3, 4), axis=0), case((2, 3, 4), axis=(0, -1), keepdims=True), case((2, 3, 5), axis=(-1, 1)),
    case(()), case((3, 1), keepdims=True), case((0, 3), axis=1),
)  # fmt: skip


trial("nansum", samples=REDUCED)
trial("nanmean", samples=REDUCED)
trial(
    "_quantile_weights",
    samples=draws(case((3, 4), 0.3), case((3, 4), np.array([0.2, 0.9]), 0), case((3, 4), 0.5, 1, "linear", True)),
)
trial("_ptp_weights", samples=draws(case((3, 4)), case((3, 4), 0)))
trial("ptp", samples=REDUCED)
trial(
    "cov",
    samples=draws(
        case((3, 4)),
        case((4, 2), rowvar=False),
        case((5,)),
        case((3, 4), bias=True),
        case((3, 4), ddof=2),
        case((1, 4)),
        case((4, 1), rowvar=False),
    ),
)
trial("median", samples=REDUCED)
trial("nanmedian", samples=REDUCED)
for name in ("quantile", "nanquantile"):
    trial(
        name,
        samples=draws(
            case((3, 4), 0.3),
            case((3, 4), 0.5, axis=0),
            case((2, 3, 4), 0.1, axis=(0, 2), keepdims=True),
            case((5,), np.array([0.2, 0.7])),
            case((2, 5), np.array([[0.2, 0.7, 1.0]]), -1),
            case((2, 3, 4), np.array([0.0, 0.5]), axis=1, keepdims=True),
            case((7,), 0.4, method="lower"),
            case((7,), 0.4, method="midpoint"),
            case((7,), 0.4, method="median_unbiased"),
            case((0, 3), 0.5, 1),
            case((), 0.5),
        ),
    )
