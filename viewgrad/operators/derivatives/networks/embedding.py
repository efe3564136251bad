"""The derivative of an embedding lookup."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....type_aliases import Array
from ...define import row
from ...language.namespace import formula_function
from ..helpers import call, plain

__all__: list[str] = []


@formula_function
def embedding_gradient(grad: Any, indices: Any, shape: tuple[int, ...]) -> Any:
    """Return the gradient of an embedding table."""
    return call("_scatter_into_zeros", grad, (plain(indices),), shape)


row(
    "embedding(self, weight)",
    lambda indices, weight: weight[indices],
    {"self": "not_differentiable", "weight": "embedding_gradient(grad, self, weight.shape)"},
    forward_derivative="embedding(self_p, weight_t)",
    method=False,
    dtype_kinds="fc",
    doc="The rows of the table `weight` at the given indices.",
)


def one_hot_forward(a: Any, num_classes: int = -1) -> Array:
    if a.dtype.kind not in "iu":
        raise TypeError(f"one_hot requires integers, not {a.dtype}")
    n = (int(a.max()) + 1 if a.size else 0) if num_classes == -1 else num_classes
    if a.size and not 0 <= a.min() <= a.max() < n:
        raise ValueError(f"one_hot with {n} classes needs integers from 0 to {n - 1}, not from {a.min()} to {a.max()}")
    return np.asarray(a[..., None] == np.arange(n)).astype(np.int64)


row(
    "one_hot(self, num_classes=-1)",
    one_hot_forward,
    {"self": "not_differentiable"},
    doc="The one-hot encoding of integers.",
)
