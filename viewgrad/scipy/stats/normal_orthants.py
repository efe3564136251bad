"""The probability that all components of a normal vector are below given limits, with its derivatives.

The derivative with respect to a limit is the density at the limit times the conditional probability for the other
components. The derivative with respect to a correlation is the density of two components times the conditional
probability for the others.

Source: R. L. Plackett, "A reduction formula for normal multivariate integrals" (1954).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...autograd.function import Function
from ...operators.numpy_api.conversion import carries_history, plain_values
from ...tensor.creation import as_operand
from .. import special


def probability_below(limits: Any, cov: Any, **options: Any) -> Any:
    """Return the probability that all components of a normal vector with mean 0 are below given limits.

    Arguments:
        limits: the limits, of shape (n,).
        cov: the covariances, of shape (n, n).
        options: the options of SciPy's quadrature, for more than two components.
    """
    finite = np.flatnonzero(plain_values(limits) != math.inf)
    limits, cov = limits[finite], cov[finite][:, finite]
    if not len(finite):
        return as_operand(1.0)
    spread = np.sqrt(np.diagonal(cov))
    if len(finite) == 1:
        return special.ndtr(limits[0] / spread[0])
    given = limits / spread, cov / (spread[:, None] * spread)
    if carries_history(given):
        return _Orthant.apply(*given, options)
    return as_operand(_plain(plain_values(given[0]), plain_values(given[1]), options))


def _plain(limits: Any, correlations: Any, options: Any) -> Any:
    return np.array(scipy.stats.multivariate_normal.cdf(limits, None, correlations, **options))


class _Orthant(Function):
    """The probability for standard normal components; its derivatives are probabilities for fewer components."""

    @staticmethod
    def forward(ctx: Any, limits: Any, correlations: Any, options: Any) -> Any:
        ctx.save_for_backward(limits, correlations)
        return as_operand(_plain(limits._array, correlations._array, options))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        by_limits, by_pairs = _slopes(*ctx.saved_tensors)
        return grad * by_limits, grad * by_pairs, None

    @staticmethod
    def jvp(ctx: Any, of_limits: Any, of_correlations: Any, _: Any) -> Any:
        by_limits, by_pairs = _slopes(*ctx.saved_tensors)
        total: Any = 0.0
        for slope, tangent in ((by_limits, of_limits), (by_pairs, of_correlations)):
            total = total if tangent is None else total + (slope * tangent).sum()
        return total


def _slopes(limits: Any, correlations: Any) -> tuple[Any, Any]:
    """Return the derivatives with respect to the limits and the correlations, split evenly over symmetric entries."""
    count = len(limits)
    by_limits = np.stack([_given(limits, correlations, [each]) for each in range(count)])
    rows: list[list[Any]] = [[0.0] * count for _ in range(count)]
    for i, j in itertools.combinations(range(count), 2):
        rows[i][j] = rows[j][i] = _given(limits, correlations, [i, j]) / 2
    return by_limits, np.stack([np.stack([as_operand(each) for each in row]) for row in rows])


def _given(limits: Any, correlations: Any, known: list[int]) -> Any:
    """Return the density of some components at their limits times the conditional probability for the others."""
    rest = [each for each in range(len(limits)) if each not in known]
    at, own = limits[known], correlations[known][:, known]
    weights = np.linalg.solve(own, correlations[known])
    squared = (at * np.linalg.solve(own, at)).sum()
    density = np.exp(squared / -2) / np.sqrt((2 * math.pi) ** len(known) * np.linalg.det(own))
    if not rest:
        return density
    between = correlations[rest][:, known] @ weights[:, rest]
    return density * probability_below(limits[rest] - at @ weights[:, rest], correlations[rest][:, rest] - between)
