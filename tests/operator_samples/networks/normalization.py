"""The samples for the operators of derivatives/networks/normalization.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.operators.derivatives.networks.normalization import batch_axes, last_axes
from viewgrad.operators.samples import case, draws

from ..trials import trial


def _layer_norm_plainly(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = last_axes(normalized_shape, x.ndim)
    result = (x - x.mean(axes, keepdims=True)) / (x.var(axes, keepdims=True) + eps) ** 0.5
    return result * (1 if weight is None else weight) + (0 if bias is None else bias)


def _batch_norm_plainly(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> tuple[Any, Any, Any]:
    axes = batch_axes(x.ndim)
    mean, var = x.mean(axes), x.var(axes)
    result = np.moveaxis((np.moveaxis(x, 1, -1) - mean) / (var + eps) ** 0.5, -1, 1)
    shape = (-1,) + (1,) * (x.ndim - 2)
    result = result * (1 if weight is None else weight.reshape(shape)) + (0 if bias is None else bias.reshape(shape))
    return result, mean, var


trial(
    "layer_norm",
    samples=draws(
        case((3, 4), 4),
        case((2, 3, 4), [3, 4], (3, 4), (3, 4)),
        case((3, 4), 4, (4,), eps=0.1),
        case((3, 4), [4], None, (4,)),
        case((0, 4), 4, (4,), (4,)),
    ),
    reference=_layer_norm_plainly,
)
trial(
    "_batch_norm_training",
    samples=draws(
        case((4, 3)), case((3, 2, 4), (2,), (2,)), case((2, 2, 2, 2), (2,), eps=0.1), case((4, 3), None, (3,))
    ),
    reference=_batch_norm_plainly,
)
