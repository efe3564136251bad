"""`scipy.special` for tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from ...numpy.values import as_tensors
from ...operators.define import OPERATORS
from ...tensor.creation import as_operand, holds_tensor
from ...tensor.tensor import LATE
from . import cumulative, elementary, elliptic, families, incomplete, polynomials

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


for _settle in LATE:
    _settle()  # SciPy is imported: what its functions mean on tensors is to be known below

MADE: dict[str, Any] = {}


def made(function: Any) -> Any:
    """Make a function the counterpart of SciPy's of the same name."""
    MADE[function.__name__] = function
    return function


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
    if not holds_tensor((a, b)):
        return as_tensors(scipy.special.logsumexp(a, axis, b, keepdims, return_sign))
    exponents = as_operand(a)
    axes = tuple(axis) if isinstance(axis, list) else axis
    if b is None and not return_sign:
        return exponents.logsumexp(axes, keepdims)
    factors = as_operand(1.0 if b is None else b)
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
    x = as_operand(x)
    return np.exp(x - logsumexp(x, axis, keepdims=True))


@made
def log_softmax(x: Any, axis: Any = None) -> Any:
    """x - log(sum(exp(x)))."""
    x = as_operand(x)
    return x - logsumexp(x, axis, keepdims=True)


@made
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function."""
    if not holds_tensor(a):
        return as_tensors(scipy.special.multigammaln(a, d))
    a, d = as_operand(a), int(d)
    total = sum((scipy.special.gammaln(a - j / 2.0) for j in range(d)), a * 0)
    return total + d * (d - 1) * 0.25 * math.log(math.pi)


@made
def factorial(n: Any, exact: bool = False, **options: Any) -> Any:
    """The factorial, as gamma(n + 1), for tensors with its derivative."""
    if not holds_tensor(n):
        return as_tensors(scipy.special.factorial(n, exact, **options))
    n = as_operand(n)
    return scipy.special.gamma(n + 1.0) if n.dtype.kind == "f" else as_operand(scipy.special.factorial(n._array))


@made
def binom(n: Any, k: Any) -> Any:
    """The binomial coefficient, also of numbers that are not whole."""
    if not holds_tensor((n, k)):
        return as_tensors(scipy.special.binom(n, k))
    n, k = as_operand(n) * 1.0, as_operand(k) * 1.0
    return np.exp(scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1))


@made
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of ways to choose `k` of `N` things."""
    if not holds_tensor((N, k)):
        return as_tensors(scipy.special.comb(N, k, exact=exact, repetition=repetition))
    return binom(as_operand(N) + as_operand(k) - 1 if repetition else N, k)


@made
def polygamma(n: Any, x: Any) -> Any:
    """The `n`-th derivative of the digamma function."""
    return OPERATORS["polygamma"].function(int(n), x) if holds_tensor(x) else as_tensors(scipy.special.polygamma(n, x))


for _module in (cumulative, elementary, elliptic, families, incomplete, polynomials):
    MADE.update(_module.MADE)
globals().update(filled(scipy.special, MADE, frozenset(), {}))
__all__ = public_names(scipy.special)
