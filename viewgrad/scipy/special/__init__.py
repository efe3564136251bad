"""`scipy.special` for tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from ...operators.define import OPERATORS
from ...tensor.tensor import LATE
from ..making import maker, numbers
from . import cumulative, elementary, elliptic, families, incomplete, polynomials

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


for _settle in LATE:
    _settle()  # SciPy is imported: what its functions mean on tensors is to be known below

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE)


@made
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b * exp(a))), without overflow.

    Arguments:
        a: the exponents.
        axis: the dimensions to sum over; all of them where left out.
        b: factors, broadcast against `a`.
        keepdims: whether the dimensions that are summed over stay, with length 1.
        return_sign: whether to return the sign of the sum as well; then the logarithm is that of its absolute value.
    """
    exponents = numbers(a)
    axes = tuple(axis) if isinstance(axis, list) else axis
    if b is None and not return_sign:
        return exponents.logsumexp(axes, keepdims)
    factors = numbers(1.0 if b is None else b)
    shape = np.broadcast_shapes(exponents.shape, factors.shape)
    exponents, factors = exponents.broadcast_to(shape), factors.broadcast_to(shape)
    greatest: Any = exponents.detach().max(axes, keepdims=True)
    greatest = np.where(np.isfinite(greatest), greatest, 0)
    total = (factors * np.exp(exponents - greatest)).sum(axes, keepdims=True)
    found = np.log(np.abs(total) if return_sign else total) + greatest
    sign = np.sign(total)
    if not keepdims:
        dims = tuple(range(found.ndim)) if axes is None else axes
        found, sign = found.squeeze(dims), sign.squeeze(dims)
    return (found, sign) if return_sign else found


@made
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x))."""
    x = numbers(x)
    return np.exp(x - logsumexp(x, axis, keepdims=True))


@made
def log_softmax(x: Any, axis: Any = None) -> Any:
    """x - log(sum(exp(x)))."""
    x = numbers(x)
    return x - logsumexp(x, axis, keepdims=True)


@made
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function."""
    a, d = numbers(a), int(d)
    total = sum((scipy.special.gammaln(a - j / 2.0) for j in range(d)), a * 0)
    return total + d * (d - 1) * 0.25 * math.log(math.pi)


@made
def factorial(n: Any, exact: bool = False, **options: Any) -> Any:
    """The factorial, as gamma(n + 1), for tensors with its derivative."""
    n = numbers(n)
    return scipy.special.gamma(n + 1.0) if n.dtype.kind == "f" else numbers(scipy.special.factorial(n._array))


@made
def binom(n: Any, k: Any) -> Any:
    """The binomial coefficient, also of numbers that are not whole."""
    n, k = numbers(n) * 1.0, numbers(k) * 1.0
    return np.exp(scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1))


@made
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of ways to choose `k` of `N` things."""
    return binom(numbers(N) + numbers(k) - 1 if repetition else N, k)


@made
def polygamma(n: Any, x: Any) -> Any:
    """The `n`-th derivative of the digamma function."""
    return OPERATORS["polygamma"].function(int(n), numbers(x))


for _module in (cumulative, elementary, elliptic, families, incomplete, polynomials):
    MADE.update(_module.MADE)
globals().update(filled(scipy.special, MADE, frozenset(), {}))
__all__ = public_names(scipy.special)
