"""The derivative of dropout, which draws its mask from the caller's generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....type_aliases import Array
from ...composites import composite
from ...define import row
from ...language.namespace import formula_function


def native_dropout_forward(a: Any, p: float, train: bool = True, *, generator: Any) -> tuple[Array, Array]:
    if not 0 <= p <= 1:
        raise ValueError(f"the probability of dropout must be between 0 and 1, not {p}")
    mask = generator.random(a.shape) >= p if train else np.ones(a.shape, bool)
    mask = np.asarray(mask)
    return dropped(a, mask, p, train), mask


@formula_function
def dropped(a: Any, mask: Any, p: float, train: bool) -> Any:
    """Return the values kept by the mask, scaled to preserve the expected value."""
    return np.where(mask, a * (1 / (1 - p) if train and p < 1 else 1.0), 0)


native_dropout = row(
    "_native_dropout(self, p, train=True, *, generator) -> (output, mask)",
    native_dropout_forward,
    {"self": "dropped(grad, mask, p, train)"},
    nondifferentiable_outputs=("mask",),
    forward_derivative={"output": "dropped(self_t, mask, p, train)"},
    method=False,
    dtype_kinds="fc",
    doc="The values, zeroed with probability `p` and otherwise divided by 1 - p; also the mask of the values kept.",
)


@composite(method=False)
def dropout(self: Any, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Any:
    """Set values to zero with probability `p` and divide the others by 1 - p; return the values unchanged if not
    training.

    Arguments:
        p: the probability.
        training: whether to apply dropout.
        generator: a `numpy.random.Generator`, from which the mask is drawn; there is no default generator.

    Raises:
        TypeError: when training without a generator.
    """
    if not training:
        return self
    if generator is None:
        raise TypeError("dropout has no hidden random state: pass generator=numpy.random.default_rng(seed)")
    return native_dropout(self, p, True, generator=generator)[0]
