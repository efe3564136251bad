"""`scipy.special` for tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names, unbound
from ...operators.define import OPERATORS
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from ...tensor.tensor import LATE
from ..wrap import maker, numbers
from . import cumulative, elementary, elliptic, families, hypergeometric, incomplete, noncentral, polynomials

if TYPE_CHECKING:
    from ..typed.special import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


for _settle in LATE:
    _settle()  # Importing SciPy registers its functions on tensors, which the code below needs.

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE)
compared: Final = maker(scipy.special, MADE, is_compared=True)


@made
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Return log(sum(b * exp(a))), without overflow.

    Arguments:
        a: the exponents.
        axis: the dimensions to sum over; all if omitted.
        b: factors, broadcast against `a`.
        keepdims: whether to keep the summed dimensions with length 1.
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


@compared
def softmax(x: Any, axis: Any = None) -> Any:
    """Return exp(x) / sum(exp(x))."""
    x = numbers(x)
    return np.exp(x - logsumexp(x, axis, keepdims=True))


@compared
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return x - log(sum(exp(x)))."""
    x = numbers(x)
    return x - logsumexp(x, axis, keepdims=True)


@compared
def multigammaln(a: Any, d: Any) -> Any:
    """Return the logarithm of the multivariate gamma function."""
    a, d = numbers(a), int(d)
    total = sum((scipy.special.gammaln(a - j / 2.0) for j in range(d)), a * 0)
    return total + d * (d - 1) * 0.25 * math.log(math.pi)


@compared
def factorial(n: Any, exact: bool = False, **options: Any) -> Any:
    """Return the factorial gamma(n + 1), which is differentiable for tensors."""
    n = numbers(n)
    if n.dtype.kind != "f":
        return numbers(scipy.special.factorial(n._array))
    below = plain_values(n.detach()) < 0
    return np.where(below, 0.0, scipy.special.gamma(np.where(below, 0.0, n) + 1.0))


@compared
def polygamma(n: Any, x: Any) -> Any:
    """Return the `n`-th derivative of the digamma function."""
    order, x, row = numbers(n), numbers(x), OPERATORS["polygamma"].function
    orders = plain_values(order)
    if carries_history(order) or np.any(orders != np.round(orders)):
        raise lost("scipy.special.polygamma", "for tensors with a history the order must be a constant integer")
    if not orders.ndim:
        return row(int(orders), x)
    total: Any = np.zeros(np.broadcast_shapes(orders.shape, x.shape))
    for each in np.unique(orders):
        total = np.where(orders == each, row(int(each), x), total)
    return total


for _module in (cumulative, elementary, elliptic, families, hypergeometric, incomplete, noncentral, polynomials):
    MADE.update(_module.MADE)
# Aliases of the same functions: jn is jv.
_OF_OBJECTS: Final = {id(getattr(scipy.special, name)): made for name, made in MADE.items()}
MADE |= {
    name: _OF_OBJECTS[id(getattr(scipy.special, name))]
    for name in public_names(scipy.special)
    if name not in MADE and id(getattr(scipy.special, name)) in _OF_OBJECTS
}
globals().update(filled(scipy.special, MADE, frozenset(), {}))
unbound(scipy.special, globals(), __name__)
__all__ = public_names(scipy.special)
