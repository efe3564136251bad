"""The incomplete gamma and beta functions, and Student's t distribution function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.define import OPERATORS
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ...tensor.trace_hooks import observed
from ..wrap import maker, numbers, with_value_of

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)


def _incomplete_gamma(name: str, upper: bool) -> None:
    """Define an incomplete gamma function of tensors, using the simpler operator if the order has no history."""
    scipys, row = getattr(scipy.special, name), OPERATORS["_incomplete_gamma"].function

    def incomplete(a: Any, x: Any, **options: Any) -> Any:
        order = numbers(a)
        if order.size == 1 and not carries_history(order):
            x = numbers(x)
            found = scipys(float(plain_values(order).reshape(())), x, **options)
            return found if not order.ndim else found.broadcast_to(np.broadcast_shapes(order.shape, x.shape))
        return _gamma_of_any_order(row, order * 1.0, numbers(x) * 1.0, upper)

    incomplete.__name__ = name
    incomplete.__doc__ = f"`scipy.special.{name}`, differentiable with respect to both arguments."
    made(incomplete)


# Derivatives with respect to parameters are integrals, computed for parameters above this one. For smaller parameters,
# almost all of the integral comes from the neighbourhood of an end.
SMALL: Final = 0.5


def _shift_of(parameter: Any) -> Any:
    """Return 1 for small parameters and 0 for others, or None if none are small."""
    small = parameter < SMALL
    return None if observed() is None and not plain_values(small).any() else np.where(small, 1.0, 0.0)


def _term(kept: Any, x: Any, logarithm: Callable[[Any], Any]) -> Any:
    """Return the exponential of a function where a mask is set, and 0 elsewhere."""
    return np.where(kept, np.exp(logarithm(np.where(kept, x, 0.5))), 0.0)


def _gamma_of_any_order(row: Callable[..., Any], a: Any, x: Any, upper: bool) -> Any:
    """Return an incomplete gamma function, using the next order if the order is small.

    Source: DLMF, 8.8.5 and 8.8.6.
    """
    shift = _shift_of(a)
    if shift is None:
        return row(a, x, 0, upper)
    term = _term((shift > 0) & (x > 0), x, lambda x: a * np.log(x) - x - scipy.special.gammaln(a + 1.0))
    found = row(a + shift, x, 0, upper) + (-term if upper else term)
    return with_value_of(found, scipy.special.gammaincc if upper else scipy.special.gammainc, a, x)


def _beta_of_any_parameters(row: Callable[..., Any], a: Any, b: Any, x: Any) -> Any:
    """Return the incomplete beta function, using larger parameters if they are small.

    Source: DLMF, 8.17.20 and 8.17.21.
    """
    gammaln, inside, total, given = scipy.special.gammaln, (x > 0) & (x < 1), 0.0 * x, (a, b, x)
    if _shift_of(a) is None and _shift_of(b) is None:
        return row(a, b, x)
    for is_first in (True, False):
        shift = _shift_of(a if is_first else b)
        if shift is not None:
            scale = gammaln(a + b) - gammaln(a + is_first) - gammaln(b + (not is_first))
            term = _term((shift > 0) & inside, x, lambda x: a * np.log(x) + b * np.log1p(-x) + scale)  # noqa: B023
            total, a, b = (total + term, a + shift, b) if is_first else (total - term, a, b + shift)
    return with_value_of(row(a, b, x) + total, scipy.special.betainc, *given)


_incomplete_gamma("gammainc", False)
_incomplete_gamma("gammaincc", True)


@made
def betainc(a: Any, b: Any, x: Any, **options: Any) -> Any:
    """Return the regularized incomplete beta function, differentiable in its parameters and the end of the integral."""
    if not carries_history((a, b)):
        return as_tensors(scipy.special.betainc(plain_values(a), plain_values(b), x, **options))
    row = OPERATORS["_incomplete_beta"].function
    return _beta_of_any_parameters(row, *(numbers(each) * 1.0 for each in (a, b, x)))


@made
def stdtr(df: Any, t: Any, **options: Any) -> Any:
    """Return Student's t distribution function, differentiable in the degrees of freedom and the value."""
    if not carries_history(df):
        return as_tensors(scipy.special.stdtr(plain_values(df), t, **options))
    df, t = numbers(df) * 1.0, numbers(t) * 1.0
    middle = plain_values(t) == 0
    apart = np.where(middle, 1.0, t)
    outer = 0.5 * betainc(df / 2, 0.5, df / (df + apart * apart))
    density = np.exp(scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)) / np.sqrt(df * math.pi)
    return np.where(middle, 0.5 + t * density, np.where(plain_values(t) > 0, 1 - outer, outer))
