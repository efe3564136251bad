"""What the operators of derivatives/networks/activations.py are tested on."""

from __future__ import annotations

import numpy as np

from ..drawing import case, draws
from ..trials import trial

__all__: list[str] = []


ALONG = draws(case((3, 4)), case((3, 4), 0), case((2, 3, 2), dim=1), case(()), case((0, 3)), case((3, 0)))


trial(
    "leaky_relu",
    reference=lambda a, negative_slope=0.01: np.maximum(a, 0) + negative_slope * np.minimum(a, 0),
    samples=draws(case((3, 4)), case((3, 4), 0.3), case(())),
)
trial("threshold", samples=draws(case((3, 4), 0.1, 20.0), case((), -9, 1)))
trial("hardtanh", samples=draws(case((3, 4)), case((3, 4), -0.5, max_val=0.7)))
trial("relu6", domain=(-8, 8))
trial("hardsigmoid", domain=(-5, 5))
trial("hardswish", domain=(-5, 5))
trial("gelu", samples=draws(case((3, 4)), case((3, 4), approximate="tanh"), case(())))
trial("elu", samples=draws(case((3, 4)), case((3, 4), 0.7), case(())))
trial("celu", samples=draws(case((3, 4)), case((3, 4), 0.7)))
trial("softmax", samples=ALONG, reference=lambda a, dim=-1: np.exp(a) / np.exp(a).sum(dim, keepdims=True))
trial("log_softmax", samples=ALONG, reference=lambda a, dim=-1: a - np.log(np.exp(a).sum(dim, keepdims=True)))
