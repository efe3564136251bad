"""Products with the exponential of a matrix, by Taylor polynomials.

Source: A. H. Al-Mohy, N. J. Higham, "Computing the action of the matrix exponential, with an application to exponential
integrators", SIAM Journal on Scientific Computing 33 (2011); here with steps of length at most one and a fixed degree,
so that derivatives up to the third order converge as the values do.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.sparse.linalg  # type: ignore[import-untyped]

from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..wrap import floating, numbers
from .arrays import SparseArray, as_sparse, is_sparse, to_scipy
from .operators import as_operator, is_operator

DEGREE: Final = 24  # 1 / 21! is below rounding errors, which leaves three degrees for derivatives


def expm_multiply(
    A: Any, B: Any, start: Any = None, stop: Any = None, num: int | None = None, endpoint: bool | None = None,
    traceA: Any = None,
) -> Any:  # fmt: skip
    """Return the product of a matrix exponential with a vector or matrix, as `scipy.sparse.linalg.expm_multiply`.

    Gradients flow to the stored values of `A`, to `B`, to `start` and `stop`, and to tensors captured by an operator.

    Arguments:
        A: a square matrix, sparse or dense, or a linear operator.
        B: the vector or matrix, of shape (n,) or (n, k).
        start, stop, num, endpoint: the times `np.linspace(start, stop, num, endpoint)` by which `A` is multiplied; by
            default only 1.
        traceA: the trace of an operator; for matrices it is computed.

    Returns:
        A tensor of the shape of `B`, with the times along an additional first dimension if they are given.
    """
    given = tuple(plain_values((start, stop, num, endpoint)))
    plain = scipy.sparse.linalg.expm_multiply(to_scipy(A), plain_values(numbers(B)), *given, plain_values(traceA))
    matrix = as_operator(A) if is_operator(A) else as_sparse(A) if is_sparse(A) else floating(A)
    has_history = matrix.carries_history() if is_operator(A) else carries_history(
        matrix.data if isinstance(matrix, SparseArray) else matrix
    )
    if not has_history and not carries_history((B, start, stop)):
        return as_tensors(plain)
    state = floating(B)
    state = state.astype(np.result_type(matrix.dtype or float, state.dtype, np.float64))
    if start is None and stop is None and num is None and endpoint is None:
        found = _advanced(matrix, state, 1.0)
    else:
        first, last = (default if each is None else numbers(each) for each, default in ((start, 0.0), (stop, 1.0)))
        count = 50 if num is None else int(num)
        step = (last - first) / max(1, count - (endpoint is None or bool(endpoint)))
        states = [_advanced(matrix, state, first)]
        while len(states) < count:
            states.append(_advanced(matrix, states[-1], step))
        found = np.stack(states)
    return found + (as_tensors(np.array(plain)) - found.detach())


def _advanced(matrix: Any, state: Any, time: Any) -> Any:
    """Return `expm(time * matrix) @ state`."""
    size, plain = matrix.shape[0], to_scipy(matrix)
    if is_operator(matrix):
        shift, norm = 0.0, scipy.sparse.linalg.onenormest(plain)
    else:
        shift = plain.trace() / size
        norm = abs(plain - shift * (scipy.sparse.eye_array(size) if is_sparse(matrix) else np.eye(size))).sum(0).max()
    length = norm * abs(float(plain_values(time)))
    steps = max(1, math.ceil(length))
    factor = time / steps
    growth = np.exp(factor * shift)
    for _ in range(steps):
        term = total = state
        for power in range(1, DEGREE + 1):
            term = (matrix @ term - shift * term) * (factor / power)
            total = total + term
        state = total * growth
    return state
