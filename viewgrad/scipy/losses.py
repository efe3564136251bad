"""Losses of residuals for `scipy.optimize.least_squares`, minimized instead of the sum of squares.

Source: B. Triggs et al., "Bundle Adjustment: A Modern Synthesis" (2000), for the slopes of a loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..func.transforms import grad
from ..operators.numpy_api.conversion import as_tensors, carries_history
from ..tensor.creation import as_operand

# Each is a function of the squared residual, in units of the squared scale.
BY_NAME: Final[dict[str, Callable[[Any], Any]]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.maximum(z, 1)) - 1),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


def _loss(options: dict[str, Any]) -> tuple[Callable[[Any], Any], Any]:
    """Return the function of the squared residuals, and the scale."""
    loss = options.get("loss", "linear")
    scale = as_operand(options.get("f_scale", 1.0))
    return (lambda z: as_operand(loss(z)[0])) if callable(loss) else BY_NAME[loss], scale


def has_history(options: dict[str, Any]) -> bool:
    """Return whether the loss or its scale depends on tensors with a history."""
    loss = options.get("loss")
    return carries_history((options.get("f_scale"), loss(as_tensors(np.ones(1))) if callable(loss) else None))


def squares(residuals: Any, options: dict[str, Any]) -> Any:
    """Return the loss of each squared residual.

    Arguments:
        residuals: a tensor.
        options: the options of `least_squares`; only the loss and its scale are used.
    """
    function, scale = _loss(options)
    return scale**2 * function((residuals / scale) ** 2)


def scaled_slopes(slopes: Any, residuals: Any, options: dict[str, Any]) -> Any:
    """Return the derivatives of the residuals, scaled so that their products approximate the Hessian of the loss.

    Arguments:
        slopes: the derivatives, with a row for each residual.
        residuals, options: as for `squares`.
    """
    if options.get("loss", "linear") == "linear":
        return slopes
    function, scale = _loss(options)
    ratios = (residuals / scale) ** 2
    first = grad(lambda z: function(z).sum())
    second = grad(lambda z: first(z).sum())
    factors = np.maximum(first(ratios) + 2 * ratios * second(ratios), np.finfo(float).eps)
    return slopes * np.sqrt(factors)[:, None]
