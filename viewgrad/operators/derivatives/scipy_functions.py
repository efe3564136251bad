"""The derivatives of additional functions of `scipy.special`, if SciPy is installed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import UFUNCS, Tensor
from ..define import OPERATORS, row
from ..language.namespace import formula_function
from ..lazy_imports import LazyFunction, LazyModule
from ..operands import plain_option
from .scatter import in_precision_of
from .stable_derivatives import powers_times, rgamma_slope, special

__all__: list[str] = []

AUTO: Final = "auto_element_wise"
TWO_OVER_ROOT_PI: Final = "1.1283791670955126"


def _unary(name: str, gradient: str, doc: str, **options: Any) -> None:
    function = LazyFunction(special, name)
    row(
        f"{name}(self)", lambda x: in_precision_of(function(x), x), {"self": gradient}, forward_derivative=AUTO,
        elementwise=True, inplace=True, mask_zero_grad=True, numpy=[function], doc=doc, **options,
    )  # fmt: skip


def _of_order(name: str, gradient: str, doc: str) -> None:
    function = LazyFunction(special, name)
    row(
        f"{name}(v, self)",
        lambda v, x: in_precision_of(function(v, x), x),
        {"self": gradient},
        forward_derivative=AUTO,
        elementwise=True,
        mask_zero_grad=True,
        method=False,
        numpy=[function],
        doc=doc,
    )


@formula_function
def beta_density(a: Any, b: Any, x: Any) -> Any:
    """Return the density of the beta distribution."""
    density = powers_times(-_weak(special.betaln(a, b)), (x, a - 1, False), (x, b - 1, True))
    return density if density.dtype == x.dtype else density.astype(x.dtype)


@formula_function
def student_density(df: Any, t: Any) -> Any:
    """Return the density of Student's t distribution."""
    scale = np.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2)) / np.sqrt(df * np.pi)
    return _weak(scale) * np.exp(np.log1p(t * t / df) * (-(df + 1) / 2))


def _weak(value: Any) -> Any:
    """Return a number that adopts the precision of the other operand."""
    return value if np.ndim(value) else float(value)


def _broadcast(name: str) -> None:
    """Reshape the parameters of a distribution function so that the value broadcasts against them."""
    operator = OPERATORS[name].function

    def of_arrays(*args: Any, out: Any = None) -> Any:
        *parameters, x = args
        x = as_operand(x)
        options = [plain_option(name, "a parameter", each) if isinstance(each, Tensor) else each for each in parameters]
        shape = np.broadcast_shapes(x.shape, *(np.shape(option) for option in options))
        result = operator(*options, x if x.shape == shape else x.broadcast_to(shape))
        return result if out is None else out.copy_(result)

    special.when_loaded(lambda: UFUNCS.update({(getattr(special, name), "__call__"): of_arrays}))


_unary("erfcinv", "grad * exp(square(result)) * -0.8862269254527579", "The inverse of erfc.")
_unary("erfi", f"grad * exp(square(self)) * {TWO_OVER_ROOT_PI}", "The imaginary error function.")
_unary("gammasgn", "zeros_like(grad)", "The sign of the gamma function.")
_unary("y0", "-grad * y1(self)", "The Bessel function of the second kind of order 0.")
_unary("y1", "grad * (y0(self) - y1(self) / self)", "The Bessel function of the second kind of order 1.")
_unary("k0", "-grad * k1(self)", "The modified Bessel function of the second kind of order 0.")
_unary("k1", "-grad * (k0(self) + k1(self) / self)", "The modified Bessel function of the second kind of order 1.")
_unary("ellipk", "grad * ellipk_slope(self)", "The complete elliptic integral of the first kind.")
_unary("ellipe", "grad * ellipe_slope(self)", "The complete elliptic integral of the second kind.")


@formula_function
def unless_zero(factor: Any, value: Any) -> Any:
    """Return the product, or 0 where the factor is 0 even if the value is infinite or NaN."""
    factor = np.asarray(factor, value.dtype)
    return factor * np.where(factor == 0, 0, value)


row(
    "hyp2f1(a, b, c, self)", lambda a, b, c, x: in_precision_of(special.hyp2f1(a, b, c, x), x),
    {"self": "grad * unless_zero(a * b / c, hyp2f1(a + 1, b + 1, c + 1, self))"},
    forward_derivative=AUTO, elementwise=True, mask_zero_grad=True, method=False, numpy=[LazyFunction(special,
    "hyp2f1")],
    doc="Gauss's hypergeometric function; no gradient flows to the parameters.",
)  # fmt: skip
_of_order("yn", "grad * (yn(trunc(v) - 1, self) - yn(trunc(v) + 1, self)) / 2",
          "The Bessel function of the second kind.")  # fmt: skip
_of_order("kn", "grad * (kn(trunc(v) - 1, self) + kn(trunc(v) + 1, self)) / -2",
          "The modified Bessel function of the second kind of integer order.")  # fmt: skip


@formula_function
def slope_of_beta(result: Any, a: Any, b: Any) -> Any:
    """Return the derivative of the beta function, which is nonzero where gamma(a + b) has a pole although the value is
    0.
    """
    total = a + b
    pole = (total <= 0) & (total == np.floor(total))
    usual = result * (special.digamma(a) - special.digamma(np.where(pole, 0.5, total)))
    gammas = special.gamma(np.where(pole, a, 1.0)) * special.gamma(np.where(pole, b, 1.0))
    slope = np.where(pole, gammas * rgamma_slope(np.where(pole, total, 0.5)), usual)
    return slope if slope.dtype == result.dtype else slope.astype(result.dtype)


row(
    "beta(self, other)", lambda a, b: in_precision_of(special.beta(a, b), a * b),
    {
        "self": "grad * slope_of_beta(result, self, other)",
        "other": "grad * slope_of_beta(result, other, self)",
    },
    forward_derivative=(
        "flowing(self_t * slope_of_beta(result, self_p, other_p), self_t) "
        "+ flowing(other_t * slope_of_beta(result, other_p, self_p), other_t)"
    ),
    elementwise=True, mask_zero_grad=True, numpy=[LazyFunction(special, "beta")], doc="The beta function.",
)  # fmt: skip
row(
    "betainc(a, b, self)", lambda a, b, x: in_precision_of(special.betainc(a, b, x), x),
    {"self": "grad * beta_density(a, b, self)"},
    forward_derivative=AUTO, elementwise=True, mask_zero_grad=True, method=False, numpy=[LazyFunction(special,
    "betainc")],
    doc="The regularized incomplete beta function; no gradient flows to the parameters.",
)  # fmt: skip
row(
    "stdtr(df, self)", lambda df, t: in_precision_of(special.stdtr(df, t), t),
    {"self": "grad * student_density(df, self)"},
    forward_derivative=AUTO, elementwise=True, mask_zero_grad=True, method=False, numpy=[LazyFunction(special,
    "stdtr")],
    doc="The cumulative distribution function of Student's t; no gradient flows to the degrees of freedom.",
)  # fmt: skip
_broadcast("betainc")
_broadcast("hyp2f1")
_broadcast("stdtr")


# -- filters -----------------------------------------------------------------------------------------------------------

signal: Any = LazyModule("scipy.signal")


@formula_function
def reversed_in_time(x: Any) -> Any:
    """Return the samples in reverse order."""
    return x[..., ::-1]


@formula_function
def lagged_products(x: Any, y: Any, lags: int) -> Any:
    """Return, for each lag, the sum of the products of `x` with the conjugate of `y` shifted by the lag."""
    count = x.shape[-1]
    sums = [(x[..., lag:] * np.conjugate(y[..., : count - lag])).sum() if lag < count else x.sum() * 0
            for lag in range(lags)]  # fmt: skip
    return np.stack(sums)


@formula_function
def all_pole_response(coefficients: Any, y: Any) -> Any:
    """Return the samples filtered by an all-pole filter."""
    count = y.shape[-1]
    total = y * coefficients[0]
    for lag in range(1, min(coefficients.shape[0], count)):
        late = y[..., : count - lag] * coefficients[lag]
        total = total + np.concatenate([np.zeros_like(y[..., :lag]), late], axis=-1)
    return total


row(
    "_all_pole(self, a)",
    lambda x, a: signal.lfilter(np.ones(1, a.dtype), a, x, axis=-1),
    {
        "self": "reversed_in_time(_all_pole(reversed_in_time(grad), conj(a)))",
        "a": "-lagged_products(reversed_in_time(_all_pole(reversed_in_time(grad), conj(a))), result, a.shape[0])",
    },
    forward_derivative="_all_pole(self_t - all_pole_response(a_t, result), a_p)",
    dtype_kinds="fc",
    doc="The samples y with `sum(a[k] * y[n - k]) = self[n]`: a recursive filter along the last dimension.",
)
