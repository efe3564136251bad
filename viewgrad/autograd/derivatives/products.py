"""The derivatives of products of matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .define import row
from .samples import case, draws

__all__: list[str] = []

Array = np.ndarray[Any, Any]

row(
    "matmul(self, other)", np.matmul, {"self": "matmul_left(grad, other, self.ndim)", "other": "matmul_right(grad, self, other.ndim)"},
    forward_derivative="matmul(self_t, other_p) + matmul(self_p, other_t)", kinds="fc", numpy=[np.matmul],
    samples=draws(case((2, 3), (3, 4)), case((3,), (3,)), case((3,), (3, 2)), case((2, 3), (3,)), case((3,), (2, 3, 2)), case((2, 2, 3), (3,)), case((2, 1, 2, 3), (3, 3, 2)), case((2, 2, 3), (3, 2))),
    doc="The matrix product of the last two dimensions.",
)  # fmt: skip
