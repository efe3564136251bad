"""`scipy.special` for tensors."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ..numpy.namespace import filled, public_names
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..operators.define import OPERATORS
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.tensor import LATE
from .further_special import FURTHER
from .implicit import root_by_elements

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


for _settle in LATE:
    _settle()  # SciPy is imported: what its functions mean on tensors is to be known below

MADE: dict[str, Any] = dict(FURTHER)


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
def expn(n: Any, x: Any) -> Any:
    """The generalized exponential integral; gradients flow to `x`, for orders from 2."""
    if not holds_tensor(x):
        return as_tensors(scipy.special.expn(n, x))
    if int(n) < 1:
        return np.exp(-x) / x
    found = scipy.special.exp1(x)
    for order in range(2, int(n) + 1):
        found = (np.exp(-x) - x * found) / (order - 1)
    return found


@made
def boxcox(x: Any, lmbda: Any) -> Any:
    """The Box-Cox transform."""
    if not holds_tensor((x, lmbda)):
        return as_tensors(scipy.special.boxcox(x, lmbda))
    x, power = as_operand(x), as_operand(lmbda)
    near = power == 0  # type: ignore[comparison-overlap]
    return np.where(near, np.log(x), np.expm1(np.where(near, 1.0, power) * np.log(x)) / np.where(near, 1.0, power))


@made
def exprel(x: Any) -> Any:
    """(exp(x) - 1) / x, and 1 at 0."""
    if not holds_tensor(x):
        return as_tensors(scipy.special.exprel(x))
    x = as_operand(x)
    small = np.abs(x) < 0.5
    near, safe = np.where(small, x, 0.0), np.where(small, 1.0, x)
    series: Any = 1.0
    for divisor in range(18, 1, -1):  # x / 2 (1 + x / 3 (1 + ...)), whose derivatives are as exact as it is
        series = 1 + near * series / divisor
    return np.where(small, series, np.expm1(safe) / safe)


@made
def polygamma(n: Any, x: Any) -> Any:
    """The `n`-th derivative of the digamma function."""
    return OPERATORS["polygamma"].function(int(n), x) if holds_tensor(x) else as_tensors(scipy.special.polygamma(n, x))


def _incomplete_gamma(name: str, upper: bool) -> Any:
    """An incomplete gamma function of tensors; where its order is one number without history, by the simpler row."""
    scipys, row = getattr(scipy.special, name), OPERATORS["incomplete_gamma"].function

    def incomplete(a: Any, x: Any, **options: Any) -> Any:
        if not holds_tensor((a, x)):
            return as_tensors(scipys(a, x, **options))
        order = as_operand(a)
        if order.size == 1 and not carries_history(order):
            x = as_operand(x)
            found = scipys(float(plain_values(order).reshape(())), x, **options)
            return found if not order.ndim else found.broadcast_to(np.broadcast_shapes(order.shape, x.shape))
        return row(order * 1.0, as_operand(x) * 1.0, 0, upper)

    incomplete.__name__ = incomplete.__qualname__ = name
    incomplete.__doc__ = f"`scipy.special.{name}`, differentiable by the order and the end of the integral."
    return incomplete


MADE["gammainc"], MADE["gammaincc"] = _incomplete_gamma("gammainc", False), _incomplete_gamma("gammaincc", True)


@made
def betainc(a: Any, b: Any, x: Any, **options: Any) -> Any:
    """The regularised incomplete beta function, differentiable by its parameters and the end of the integral."""
    if not carries_history((a, b)):
        return as_tensors(scipy.special.betainc(plain_values(a), plain_values(b), x, **options))
    return OPERATORS["incomplete_beta"].function(*(as_operand(each) * 1.0 for each in (a, b, x)))


@made
def stdtr(df: Any, t: Any, **options: Any) -> Any:
    """Student's distribution function, differentiable by the degrees of freedom and the value."""
    if not carries_history(df):
        return as_tensors(scipy.special.stdtr(plain_values(df), t, **options))
    df, t = as_operand(df) * 1.0, as_operand(t) * 1.0
    middle = plain_values(t) == 0
    apart = np.where(middle, 1.0, t)
    outer = 0.5 * betainc(df / 2, 0.5, df / (df + apart * apart))
    density = np.exp(scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)) / np.sqrt(df * math.pi)
    return np.where(middle, 0.5 + t * density, np.where(plain_values(t) > 0, 1 - outer, outer))


# -- written by those above --------------------------------------------------------------------------------------------


def _written(function: Any) -> Any:
    """A function of tensors written by others here; without tensors, and by its other arguments, it is SciPy's."""
    scipys = getattr(scipy.special, function.__name__)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if options or not holds_tensor(args):
            return as_tensors(scipys(*map(plain_values, args), **options))
        return function(*(as_operand(as_argument(arg)) * 1.0 for arg in args))

    return made(call)


@_written
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """The Box-Cox transform of 1 + x."""
    near = lmbda == 0
    power = np.where(near, 1.0, lmbda)
    return np.where(near, np.log1p(x), np.expm1(power * np.log1p(x)) / power)


@_written
def inv_boxcox(y: Any, lmbda: Any) -> Any:
    """The inverse of the Box-Cox transform."""
    near = lmbda == 0
    power = np.where(near, 1.0, lmbda)
    return np.where(near, np.exp(y), np.exp(np.log1p(power * np.where(near, 0.0, y)) / power))


@_written
def inv_boxcox1p(y: Any, lmbda: Any) -> Any:
    """The inverse of the Box-Cox transform of 1 + x."""
    near = lmbda == 0
    power = np.where(near, 1.0, lmbda)
    return np.where(near, np.expm1(y), np.expm1(np.log1p(power * np.where(near, 0.0, y)) / power))


@_written
def huber(delta: Any, r: Any) -> Any:
    """Huber's loss."""
    return np.where(delta < 0, np.inf, np.where(np.abs(r) <= delta, r * r / 2, delta * (np.abs(r) - delta / 2)))


@_written
def pseudo_huber(delta: Any, r: Any) -> Any:
    """Huber's loss, smoothed."""
    return delta * delta * (np.sqrt(1 + (r / delta) ** 2) - 1)


@_written
def kl_div(x: Any, y: Any) -> Any:
    """x * log(x / y) - x + y."""
    return scipy.special.rel_entr(x, y) - x + y


@_written
def perm(N: Any, k: Any) -> Any:
    """The number of ordered choices of `k` of `N` things."""
    return FURTHER["poch"](N - k + 1, k)


@_written
def betaincc(a: Any, b: Any, x: Any) -> Any:
    """The rest of the regularised incomplete beta function."""
    return betainc(b, a, 1 - x)


@_written
def chdtr(v: Any, x: Any) -> Any:
    """The distribution function of chi-squared."""
    return MADE["gammainc"](v / 2, x / 2)


@_written
def chdtrc(v: Any, x: Any) -> Any:
    """The survival function of chi-squared."""
    return MADE["gammaincc"](v / 2, x / 2)


@_written
def fdtr(dfn: Any, dfd: Any, x: Any) -> Any:
    """The distribution function of F."""
    return betainc(dfn / 2, dfd / 2, dfn * x / (dfd + dfn * x))


@_written
def fdtrc(dfn: Any, dfd: Any, x: Any) -> Any:
    """The survival function of F."""
    return betainc(dfd / 2, dfn / 2, dfd / (dfd + dfn * x))


@_written
def gdtr(a: Any, b: Any, x: Any) -> Any:
    """The distribution function of gamma."""
    return MADE["gammainc"](b, a * x)


@_written
def pdtr(k: Any, m: Any) -> Any:
    """The distribution function of Poisson."""
    return MADE["gammaincc"](np.floor(k) + 1, m)


@_written
def pdtrc(k: Any, m: Any) -> Any:
    """The survival function of Poisson."""
    return MADE["gammainc"](np.floor(k) + 1, m)


@_written
def bdtr(k: Any, n: Any, p: Any) -> Any:
    """The distribution function of the binomial."""
    return betainc(n - np.floor(k), np.floor(k) + 1, 1 - p)


@_written
def bdtrc(k: Any, n: Any, p: Any) -> Any:
    """The survival function of the binomial."""
    return betainc(np.floor(k) + 1, n - np.floor(k), p)


def _inverse(name: str, forward: Any) -> None:
    """The inverse, by its last argument, of a function that has gradients to all of its arguments."""
    scipys = getattr(scipy.special, name)

    def call(*args: Any) -> Any:
        if not holds_tensor(args):
            return as_tensors(scipys(*args))
        *parameters, value = (as_operand(as_argument(arg)) * 1.0 for arg in args)
        found = as_tensors(np.array(scipys(*map(plain_values, (*parameters, value)))))
        parameters, value = [each.broadcast_to(found.shape) for each in parameters], value.broadcast_to(found.shape)
        return root_by_elements(lambda x: forward(*parameters, x) - value, found)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`, differentiable by all of its arguments."
    MADE[name] = call


_inverse("gammaincinv", MADE["gammainc"])
_inverse("gammainccinv", MADE["gammaincc"])
_inverse("betaincinv", MADE["betainc"])
_inverse("chdtri", MADE["chdtrc"])
_inverse("fdtri", MADE["fdtr"])
_inverse("stdtrit", MADE["stdtr"])
globals().update(filled(scipy.special, MADE, frozenset(), {}))
__all__ = public_names(scipy.special)
