"""The samples for the operators of derivatives/reductions.py."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from viewgrad.operators.samples import Call, case, draws
from viewgrad.type_aliases import Array

from .trials import trial

REDUCED: Final = draws(
    case((3, 4)),
    case((3, 4), axis=0),
    case((2, 3, 4), axis=(0, -1), keepdims=True),
    case((2, 3, 4), axis=(-1, 1)),
    case(()),
    case((3, 1), keepdims=True),
)
DEVIATIONS: Final = draws(
    case((3, 4)),
    case((3, 4), axis=0),
    case((2, 3, 4), axis=(0, -1), keepdims=True),
    case((2, 3, 4), axis=(-1, 1), ddof=1),
)
NORMS: Final = draws(
    case((3, 4)),
    case((3, 4), axis=0),
    case((2, 3, 2), ord=1, axis=(0, 2)),
    case((3, 4), ord=3, axis=1, keepdims=True),
    case((3, 4), ord=math.inf, axis=1),
    case((3, 4), ord=-math.inf),
    case((3, 4), ord=0),
    case((3, 4), ord=0.5),
)
RUNNING: Final = draws(
    case((3, 4)), case((3, 4), axis=0), case((2, 3, 2), axis=-2), case((5,)), case((1, 2), axis=0), case((2, 0), axis=1)
)
SCANS: Final = draws(
    case((5,), (5,)),
    case((3, 4), (3, 4)),
    case((3, 4), (3, 4), axis=0),
    case((2, 1), (2, 1)),
    case((0, 2), (0, 2), axis=0),
)


def _logsumexp_plainly(self: Any, axis: Any = None, keepdims: bool = False, b: Any = None) -> Any:
    """Return the logarithm of a sum of exponentials, in which the largest element keeps its digits."""
    largest = np.max(self, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    total = np.sum(np.exp(self - shift) * (1 if b is None else b), axis=axis, keepdims=True)
    result = np.log(total) + shift
    return result if keepdims else np.squeeze(result, axis)


def with_zeros(rng: np.random.Generator) -> list[Call]:
    """Return samples in which none, one or several of the factors are zero."""
    a, b = rng.uniform(0.5, 1.5, (2, 4, 4))
    b[0, 1] = b[1, 1:3] = b[2, 0] = b[2, 3] = b[3, :] = 0
    return [((a,), {}), ((a,), {"axis": 0}), ((b,), {"axis": 1}), ((b,), {"axis": 0}), ((b[1],), {}), ((b[0, :2],), {})]


def scanned_step_by_step(self: Array, coefficients: Array, axis: int = -1) -> Array:
    out = np.moveaxis(self.astype(np.result_type(self, coefficients)), axis, 0)
    for i in range(1, len(out)):
        out[i] += np.moveaxis(coefficients, axis, 0)[i] * out[i - 1]
    return np.moveaxis(out, 0, axis)


trial("sum", samples=REDUCED)
trial("mean", samples=REDUCED)
trial("var", samples=DEVIATIONS)
trial("std", samples=DEVIATIONS)
trial(
    "logsumexp",
    samples=lambda rng: [
        *REDUCED(rng),
        ((rng.standard_normal((3, 4)), 1), {"b": rng.uniform(0.5, 2, (3, 4))}),
        ((rng.standard_normal((3, 4)),), {"b": rng.uniform(0.5, 2, 4)}),
    ],
    reference=_logsumexp_plainly,
)
trial("cumsum", samples=RUNNING)
trial("prod", samples=lambda rng: [*with_zeros(rng), *REDUCED(rng)])
trial("cumprod", samples=lambda rng: [*with_zeros(rng), *RUNNING(rng)])
trial("linear_scan", samples=SCANS, reference=scanned_step_by_step)
trial("max", samples=REDUCED)
trial("min", samples=REDUCED)
trial("vector_norm", samples=NORMS)
trial("all", samples=REDUCED)
trial("any", samples=REDUCED)
trial("count_nonzero", samples=REDUCED)
