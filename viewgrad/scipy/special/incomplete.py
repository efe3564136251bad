"""The incomplete gamma and beta functions, and Student's distribution function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.define import OPERATORS
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..wrap import maker, numbers

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE)


def _incomplete_gamma(name: str, upper: bool) -> None:
    """Define an incomplete gamma function of tensors, by the simpler row if its order has no history."""
    scipys, row = getattr(scipy.special, name), OPERATORS["_incomplete_gamma"].function

    def incomplete(a: Any, x: Any, **options: Any) -> Any:
        order = numbers(a)
        if order.size == 1 and not carries_history(order):
            x = numbers(x)
            found = scipys(float(plain_values(order).reshape(())), x, **options)
            return found if not order.ndim else found.broadcast_to(np.broadcast_shapes(order.shape, x.shape))
        return row(order * 1.0, numbers(x) * 1.0, 0, upper)

    incomplete.__name__ = name
    incomplete.__doc__ = f"`scipy.special.{name}`, differentiable with respect to both arguments."
    made(incomplete)


_incomplete_gamma("gammainc", False)
_incomplete_gamma("gammaincc", True)


@made
def betainc(a: Any, b: Any, x: Any, **options: Any) -> Any:
    """Return the regularised incomplete beta function, differentiable by its parameters and the end of the integral."""
    if not carries_history((a, b)):
        return as_tensors(scipy.special.betainc(plain_values(a), plain_values(b), x, **options))
    return OPERATORS["_incomplete_beta"].function(*(numbers(each) * 1.0 for each in (a, b, x)))


@made
def stdtr(df: Any, t: Any, **options: Any) -> Any:
    """Return Student's distribution function, differentiable with respect to the degrees of freedom and the value."""
    if not carries_history(df):
        return as_tensors(scipy.special.stdtr(plain_values(df), t, **options))
    df, t = numbers(df) * 1.0, numbers(t) * 1.0
    middle = plain_values(t) == 0
    apart = np.where(middle, 1.0, t)
    outer = 0.5 * betainc(df / 2, 0.5, df / (df + apart * apart))
    density = np.exp(scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)) / np.sqrt(df * math.pi)
    return np.where(middle, 0.5 + t * density, np.where(plain_values(t) > 0, 1 - outer, outer))
