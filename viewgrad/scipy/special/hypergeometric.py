"""The hypergeometric function as a function of its parameters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.define import OPERATORS
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from ...tensor.tensor import from_new_array
from ..wrap import maker, numbers

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
TERMS: Final = 20_000
AGREEMENT: Final = 1e-8  # the relative accuracy to which the series must agree with SciPy


@made
def hyp2f1(a: Any, b: Any, c: Any, z: Any) -> Any:
    """Return the hypergeometric function; gradients also flow to the parameters where its series converges (z < 1).

    Derivatives with respect to the parameters are those of the power series, after Pfaff's transformation if z < 0. It
    is an error if the series does not agree with SciPy's value to a relative accuracy of 1e-8.

    Source: DLMF, 15.2.1 and 15.8.1.
    """
    if not carries_history((a, b, c)):
        return OPERATORS["hyp2f1"].function(*(plain_values(each) for each in (a, b, c)), numbers(z) * 1.0)
    a, b, c, z = np.broadcast_arrays(*(numbers(each) * 1.0 for each in (a, b, c, z)))
    plain_z = plain_values(z)
    if np.iscomplexobj(plain_z) or not (plain_z < 1).all():
        raise lost("scipy.special.hyp2f1", "derivatives with respect to the parameters require real arguments below 1")
    value = np.asarray(scipy.special.hyp2f1(*(plain_values(each) for each in (a, b, c, z))))
    is_negative = plain_z < 0
    argument = np.where(is_negative, z / (z - 1), z)
    factor = np.where(is_negative, (1 - np.where(is_negative, z, 0.0)) ** -a, 1.0)
    found = factor * _series(a, np.where(is_negative, c - b, b), c, argument)
    difference = np.abs(plain_values(found) - value)
    if not (difference <= AGREEMENT * np.maximum(np.abs(value), np.finfo(float).tiny)).all():
        raise lost("scipy.special.hyp2f1", "its series loses too many digits for these parameters")
    return found + from_new_array(np.array(value - plain_values(found)))


def _series(a: Any, b: Any, c: Any, z: Any) -> Any:
    """Return 1 + sum of (a)_n (b)_n / ((c)_n n!) z^n, with as many terms as the values need."""
    n = np.arange(_count(*(plain_values(each) for each in (a, b, c, z))))
    parts = [each[..., None] for each in (a, b, c, z)]
    ratios = (parts[0] + n) * (parts[1] + n) / ((parts[2] + n) * (1 + n)) * parts[3]
    return 1 + np.cumprod(ratios, -1).sum(-1)


def _count(a: Any, b: Any, c: Any, z: Any) -> int:
    """Return the number of terms needed for the values and their derivatives.

    If a factor a + n is 0, or nearly, all further terms vanish, but their derivatives, which lack the factor, do not.
    The factor counts as 1 in the bound on both.
    """
    bound, peak = np.ones(z.shape), np.ones(z.shape)
    for n in range(TERMS):
        upper = np.maximum(np.abs(a + n), 1.0) * np.maximum(np.abs(b + n), 1.0)
        bound = bound * np.abs(upper / ((c + n) * (1 + n)) * z)
        peak = np.maximum(peak, bound)
        # The derivative of a term exceeds it by a factor that grows like the logarithm of n.
        if n > 8 and (bound * (1 + np.log1p(n)) ** 2 <= 1e-18 * peak * (1 - np.abs(z))).all():
            return n + 8
    raise lost("scipy.special.hyp2f1", f"its series has not converged after {TERMS} terms")
