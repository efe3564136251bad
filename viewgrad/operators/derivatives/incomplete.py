"""The incomplete gamma and beta functions, differentiable in all arguments, if SciPy is installed.

Each derivative with respect to a parameter multiplies the integrand by a logarithm. The operators therefore compute
integrals with powers of logarithms, which are closed under differentiation. They are evaluated by the double
exponential rule, whose nodes are dense near the ends, where logarithms and fractional powers are singular.

Source: H. Takahasi, M. Mori, "Double exponential formulas for numerical integration" (1974).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from ...type_aliases import Array
from ..define import OPERATORS, row
from ..language.namespace import formula_function
from .scatter import in_precision_of
from .stable_derivatives import powers_times, special

__all__: list[str] = []

LEFT, RIGHT = -10.0, 4.5  # the range of the nodes; beyond it, the integrand is negligible
STEP: Final = 1 / 32


def _nodes(concentration: float) -> tuple[Array, Array, Array]:
    """Return log(u), log(1 - u) and the logarithms of the weights, for integrals over u from 0 to 1.

    Arguments:
        concentration: the size of the parameters; the width of the integrand's peak is proportional to its inverse
            square root.
    """
    step = min(STEP, 0.25 / math.sqrt(max(concentration, 1.0)))
    places = np.arange(LEFT, RIGHT, step)
    bent = math.pi * np.sinh(places)
    log_u, log_rest = -np.logaddexp(0.0, -bent), -np.logaddexp(0.0, bent)
    return log_u, log_rest, log_u + log_rest + np.log(math.pi * np.cosh(places) * step)


def _doubles(*values: Any) -> Any:
    """Return the values in double precision and in their common shape; SciPy's functions do not support higher
    precision.
    """
    return np.broadcast_arrays(*(np.asarray(value, np.result_type(value, np.float64)) for value in values))


def gamma_integral(a: Any, x: Any, power: int, upper: bool) -> Any:
    """Return the regularized incomplete gamma function, with a power of the centred logarithm in the lower integral."""
    if power < 0 or (power and upper):
        raise ValueError(f"power={power}: a power must be nonnegative, and 0 for the upper function")
    if power == 0:
        return (special.gammaincc if upper else special.gammainc)(a, x)
    a, x = _doubles(a, x)
    end = np.minimum(x, a + 50 * np.sqrt(np.abs(a)) + 750)[..., None]  # the rest of the integral is negligible
    log_u, _, weights = _nodes(float(np.max(np.abs(a), initial=1.0)))
    with np.errstate(all="ignore"):
        log_t, order = np.log(end) + log_u, a[..., None]
        logs = order * log_t - end * np.exp(log_u) - special.gammaln(order) + weights - log_u
        found = (np.exp(logs) * (log_t - special.digamma(order)) ** power).sum(-1)
    return np.where(x == 0, 0.0, np.where((a > 0) & (x >= 0), found, np.nan))[()]


def beta_integral(a: Any, b: Any, x: Any, power: int, other_power: int) -> Any:
    """Return the regularized incomplete beta function, with powers of both centred logarithms in the integral."""
    if power < 0 or other_power < 0:
        raise ValueError(f"powers of logarithms must be nonnegative, not {power} and {other_power}")
    if power == other_power == 0:
        return special.betainc(a, b, x)
    a, b, x = _doubles(a, b, x)
    log_u, log_rest, weights = _nodes(float(max(np.max(np.abs(a), initial=1.0), np.max(np.abs(b), initial=1.0))))
    with np.errstate(all="ignore"):
        end, first, second = x[..., None], a[..., None], b[..., None]
        log_t, log_other = np.log(end) + log_u, np.log((1 - end) + end * np.exp(log_rest))
        logs = first * log_t + (second - 1) * log_other - special.betaln(first, second) + weights - log_u
        centred = log_t - special.digamma(first) + special.digamma(first + second)
        other = log_other - special.digamma(second) + special.digamma(first + second)
        found = (np.exp(logs) * centred**power * other**other_power).sum(-1)
    return np.where(x == 0, 0.0, np.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), found, np.nan))[()]


def _called(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator for formulas on tensors, and its forward for formulas on arrays."""

    def call(*args: Any) -> Any:
        recorded = any(isinstance(arg, Tensor) for arg in args)
        return OPERATORS[name].function(*args) if recorded else plain(*args)

    return call


def _like(slope: Any, values: Any) -> Any:
    """Return a derivative in the precision of the corresponding values."""
    return slope if slope.dtype == values.dtype or values.dtype.kind != "f" else slope.astype(values.dtype)


_gamma = _called("_incomplete_gamma", gamma_integral)
_beta = _called("_incomplete_beta", beta_integral)
_trigamma = _called("polygamma", lambda order, a: special.polygamma(order, a))


@formula_function
def gamma_order_slope(a: Any, x: Any, power: int, upper: bool) -> Any:
    """Return the derivative of the incomplete gamma function with respect to its order."""
    slope = _gamma(a, x, power + 1, False)
    if power:
        slope = slope - power * _trigamma(1, a) * _gamma(a, x, power - 1, False)
    return _like(-slope if upper else slope, a * x)


@formula_function
def gamma_end_slope(a: Any, x: Any, power: int, upper: bool) -> Any:
    """Return the derivative of the incomplete gamma function with respect to the end of the integral."""
    slope = powers_times(-x - special.gammaln(a), (x, a - 1, False))
    if power:
        slope = slope * (np.log(x) - special.digamma(a)) ** power
    return _like(-slope if upper else slope, a * x)


@formula_function
def beta_slope(a: Any, b: Any, x: Any, power: int, other_power: int, second: bool) -> Any:
    """Return the derivative of the incomplete beta function with respect to one of its parameters."""
    slope = _beta(a, b, x, power + (not second), other_power + second)
    if power:
        of_first = -_trigamma(1, a + b) if second else _trigamma(1, a) - _trigamma(1, a + b)
        slope = slope - power * of_first * _beta(a, b, x, power - 1, other_power)
    if other_power:
        of_second = _trigamma(1, b) - _trigamma(1, a + b) if second else -_trigamma(1, a + b)
        slope = slope - other_power * of_second * _beta(a, b, x, power, other_power - 1)
    return _like(slope, a * b * x)


@formula_function
def beta_end_slope(a: Any, b: Any, x: Any, power: int, other_power: int) -> Any:
    """Return the derivative of the incomplete beta function with respect to the end of the integral."""
    slope = powers_times(-special.betaln(a, b), (x, a - 1, False), (x, b - 1, True))
    if power:
        slope = slope * (np.log(x) - special.digamma(a) + special.digamma(a + b)) ** power
    if other_power:
        slope = slope * (np.log1p(-x) - special.digamma(b) + special.digamma(a + b)) ** other_power
    return _like(slope, a * b * x)


row(
    "_incomplete_gamma(a, x, power=0, upper=False)",
    lambda a, x, power=0, upper=False: in_precision_of(gamma_integral(a, x, power, upper), a * x),
    {"a": "grad * gamma_order_slope(a, x, power, upper)", "x": "grad * gamma_end_slope(a, x, power, upper)"},
    forward_derivative="flowing(a_t * gamma_order_slope(a_p, x_p, power, upper), a_t) "
    "+ flowing(x_t * gamma_end_slope(a_p, x_p, power, upper), x_t)",
    elementwise=True, mask_zero_grad=True, method=False,
    doc="The regularized incomplete gamma function, lower or upper, as a function of the order and the end of the "
    "integral; the lower one also with a power of log(t) - digamma(a) in the integrand.",
)  # fmt: skip
row(
    "_incomplete_beta(a, b, x, power=0, other_power=0)",
    lambda a, b, x, power=0, other_power=0: in_precision_of(beta_integral(a, b, x, power, other_power), a * b * x),
    {
        "a": "grad * beta_slope(a, b, x, power, other_power, False)",
        "b": "grad * beta_slope(a, b, x, power, other_power, True)",
        "x": "grad * beta_end_slope(a, b, x, power, other_power)",
    },
    forward_derivative="flowing(a_t * beta_slope(a_p, b_p, x_p, power, other_power, False), a_t) "
    "+ flowing(b_t * beta_slope(a_p, b_p, x_p, power, other_power, True), b_t) "
    "+ flowing(x_t * beta_end_slope(a_p, b_p, x_p, power, other_power), x_t)",
    elementwise=True, mask_zero_grad=True, method=False,
    doc="The regularized incomplete beta function as a function of its parameters and the end of the integral, also "
    "with powers of log(t) and log(1 - t), less their means, in the integrand.",
)  # fmt: skip
