"""The samples for the operators of derivatives/networks/losses.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.operators.samples import case, draws

from ..trials import trial

POINTWISE = [
    case((3, 4), (3, 4)),
    case((3, 4), (3, 4), reduction="sum"),
    case((3, 4), (3, 4), reduction="none"),
    case((), ()),
    case((3, 4), (4,)),
    case((0, 3), (0, 3), reduction="sum"),
]


def _labels(rng: np.random.Generator) -> list[Any]:
    x, labels = rng.standard_normal((4, 3)), np.array([0, 2, -100, 1])
    weight = rng.uniform(0.5, 2, 3)
    return [
        ((x, np.array([0, 2, 2, 1])), {}),
        ((x, labels, weight), {}),
        ((x, labels), {"reduction": "sum"}),
        ((x, labels, weight), {"reduction": "none"}),
        ((rng.standard_normal(3), np.array(1)), {}),
        ((rng.standard_normal((2, 3, 2, 2)), rng.integers(0, 3, (2, 2, 2)), weight), {"ignore_index": 1}),
    ]


for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"):
    trial(name, samples=draws(*POINTWISE))
trial("binary_cross_entropy", samples=draws(*POINTWISE, domain=(0.1, 0.9)))
trial(
    "kl_div",
    samples=draws(
        case((3, 4), (3, 4)),
        case((3, 4), (3, 4), reduction="batchmean"),
        case((3, 4), (3, 4), "sum", True),
        case((3, 4), (3, 4), "none", log_target=False),
        domain=(0.1, 0.9),
    ),
)
trial("nll_loss", samples=_labels)
