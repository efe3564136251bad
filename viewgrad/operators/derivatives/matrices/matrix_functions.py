"""The derivatives of powers and exponentials of square matrices, and composites of other operators.

Sources: R. Mathias, "A chain rule for matrix functions and applications" (1996) for the block triangular matrices; N.
Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....tensor.creation import as_operand
from ....tensor.tensor import FUNCTIONS
from ....tensor.trace_hooks import observed
from ....type_aliases import Array
from ...composites import composite
from ...define import row
from ...language.namespace import formula_function
from ..helpers import call, eye_like, of_its_own, plain, real_dtype


def _block_triangular(a: Any, direction: Any) -> Any:
    """Return [[a, direction], [0, a]]; a function of it contains its derivative in the upper right block."""
    zeros = np.zeros(direction.shape, direction.dtype)
    top = np.concatenate([a, direction], axis=-1)
    return np.concatenate([top, np.concatenate([zeros, a], axis=-1)], axis=-2)


@formula_function
def matrix_power_derivative(a: Any, direction: Any, n: int) -> Any:
    """Return the derivative of the `n`-th power at `a` in the given direction."""
    size = a.shape[-1]
    return np.linalg.matrix_power(_block_triangular(a, direction), n)[..., :size, size:]


@formula_function
def matrix_exp_derivative(a: Any, direction: Any) -> Any:
    """Return the derivative of the exponential at `a` in the given direction."""
    size = a.shape[-1]
    if not size:
        return direction
    # A large direction would reduce the accuracy of `a`, which is in the same matrix.
    scale = np.abs(direction).max(axis=(-2, -1), keepdims=True)
    scale = np.where(scale == 0, 1, scale)
    return call("matrix_exp", _block_triangular(a, direction / scale))[..., :size, size:] * scale


row(
    "matrix_power(self, n)",
    lambda a, n: of_its_own(np.linalg.matrix_power(a, n), a),
    {"self": "matrix_power_derivative(adjoint(self), grad, n)"},
    forward_derivative="matrix_power_derivative(self_p, self_t, n)",
    numpy=[np.linalg.matrix_power],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The matrices raised to an integer power.",
)

PADE: Final = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
PADE_RADIUS: Final = 5.371920351148152


def matrix_exp_forward(a: Any) -> Array:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"matrix_exp requires square matrices, not an array of shape {a.shape}")
    if not a.size:
        return np.array(a)
    norm = np.abs(a).sum(axis=-2).max(axis=-1)
    halvings = np.maximum(np.ceil(np.log2(np.maximum(norm, PADE_RADIUS) / PADE_RADIUS)), 0).astype(int)
    x = a / np.exp2(halvings)[..., None, None].astype(real_dtype(a.dtype))
    identity = eye_like(a)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b = [float(coefficient) for coefficient in PADE]
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * identity)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * identity
    result = np.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        result = np.where((halvings > step)[..., None, None], result @ result, result)
    return result


row(
    "matrix_exp(self)",
    matrix_exp_forward,
    {"self": "matrix_exp_derivative(adjoint(self), grad)"},
    forward_derivative="matrix_exp_derivative(self_p, self_t)",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    doc="The exponentials of square matrices.",
)

row(
    "matrix_rank(self, tol=None, hermitian=False, rtol=None)",
    lambda a, tol=None, hermitian=False, rtol=None: np.linalg.matrix_rank(a, tol, hermitian, rtol=rtol),
    {"self": "not_differentiable"},
    numpy=[np.linalg.matrix_rank],
    doc="The number of singular values above a tolerance.",
)

# -- other NumPy functions ---------------------------------------------------------------------------------------------


@composite(np.linalg.multi_dot, method=False)
def multi_dot(arrays: Any) -> Any:
    """Return the product of several matrices in the cheapest order; the first and the last may be vectors."""
    tensors = [as_operand(array) for array in arrays]
    if len(tensors) < 2:
        raise ValueError("multi_dot requires at least two arrays")
    for i, tensor in enumerate(tensors):
        if tensor.ndim != 2 and (tensor.ndim != 1 or 0 < i < len(tensors) - 1):
            raise np.linalg.LinAlgError(
                f"argument {i} of multi_dot has {tensor.ndim} dimensions; it requires matrices, or vectors at the ends"
            )
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if first:
        tensors[0] = tensors[0][None, :]
    if last:
        tensors[-1] = tensors[-1][:, None]
    product = _chain(tensors, 0, len(tensors) - 1, _cheapest([tensor.shape for tensor in tensors]))
    if first and last:
        return product[0, 0]
    return product[0] if first else product[..., 0] if last else product


def _cheapest(shapes: list[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a chain of matrix products to minimize the number of multiplications."""
    cost = {(i, i): 0 for i in range(len(shapes))}
    divide: dict[tuple[int, int], int] = {}
    for length in range(1, len(shapes)):
        for i in range(len(shapes) - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + shapes[i][0] * shapes[k][1] * shapes[j][1] for k in range(i, j)}
            divide[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[divide[i, j]]
    return divide


def _chain(tensors: list[Any], i: int, j: int, divide: dict[tuple[int, int], int]) -> Any:
    if i == j:
        return tensors[i]
    k = divide[i, j]
    return _chain(tensors, i, k, divide) @ _chain(tensors, k + 1, j, divide)


@composite(np.linalg.cond, method=False)
def cond(self: Any, p: Any = None) -> Any:
    """Return the condition numbers of matrices in the `p`-norm, by default the 2-norm."""
    self = as_operand(self)
    if not self.size:
        raise np.linalg.LinAlgError(f"the condition number of empty matrices, of shape {self.shape}, is not defined")
    if p in (None, 2, -2):
        values = self.svdvals()
        largest, smallest = values[..., 0], values[..., -1]
        found = smallest / largest if p == -2 else largest / smallest
    else:
        norm = np.linalg.norm(self, p, (-2, -1))
        try:
            found = norm * np.linalg.norm(self.inv(), p, (-2, -1))
        except np.linalg.LinAlgError:
            if observed() is not None:  # the mask of singular matrices would be constant in a trace
                raise
            singular = np.isinf(np.linalg.cond(plain(self), p))
            regular: Any = np.where(np.expand_dims(singular, (-2, -1)), np.eye(self.shape[-1], dtype=self.dtype), self)
            found = np.where(singular, math.inf, norm * np.linalg.norm(regular.inv(), p, (-2, -1)))
    endless = np.isnan(found) & ~np.isnan(self).any((-2, -1))
    return np.where(endless, math.inf, found).astype(found.dtype, copy=False)[()]


FUNCTIONS[np.linalg.diagonal] = lambda x, /, *, offset=0: x.diagonal(offset, -2, -1)


def _outer(x1: Any, x2: Any, /) -> Any:
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={np.ndim(x1)} and x2.ndim={np.ndim(x2)}."
        )
    return np.outer(x1, x2)


FUNCTIONS[np.linalg.outer] = _outer
FUNCTIONS[np.linalg.tensordot] = lambda x1, x2, /, *, axes=2: np.tensordot(x1, x2, axes)
FUNCTIONS[np.linalg.matmul] = lambda x1, x2, /: np.matmul(x1, x2)
FUNCTIONS[np.linalg.matrix_transpose] = lambda x, /: x.mT
