"""The samples for the operators of derivatives/networks/activations.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.operators.samples import case, draws

from ..trials import trial


def _softmax_plainly(a: Any, axis: int = -1) -> Any:
    """Return exponentials less the largest over their sum; a logarithm of the sum is lost beside large elements."""
    if not a.size:
        return a
    powers = np.exp(a - (a.max(axis, keepdims=True) if a.ndim else a))
    return powers / (powers.sum(axis, keepdims=True) if a.ndim else powers)


def _log_softmax_plainly(a: Any, axis: int = -1) -> Any:
    """Return the logarithms of a softmax by subtraction, which gives NaN if an element is infinite."""
    if not a.size:
        return a
    total = np.logaddexp.reduce(a, axis, keepdims=True) if a.ndim else a
    return np.where(np.isinf(total), np.nan, a - total)


ALONG = draws(case((3, 4)), case((3, 4), 0), case((2, 3, 2), axis=1), case(()), case((0, 3)), case((3, 0)))


trial(
    "leaky_relu",
    reference=lambda a, negative_slope=0.01: np.maximum(a, 0) + negative_slope * np.minimum(a, 0),
    samples=draws(case((3, 4)), case((3, 4), 0.3), case(())),
)
trial("threshold", samples=draws(case((3, 4), 0.1, 20.0), case((), -9, 1)))
trial("hardtanh", samples=draws(case((3, 4)), case((3, 4), -0.5, max_val=0.7)))
trial("gelu", samples=draws(case((3, 4)), case((3, 4), approximate="tanh"), case(())))
trial("elu", samples=draws(case((3, 4)), case((3, 4), 0.7), case(())))
trial("celu", samples=draws(case((3, 4)), case((3, 4), 0.7)))
trial("softmax", samples=ALONG, reference=_softmax_plainly)
trial("log_softmax", samples=ALONG, reference=_log_softmax_plainly)
