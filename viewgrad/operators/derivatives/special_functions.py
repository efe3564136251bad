"""The derivatives of special functions: those of `scipy.special` if it is installed, and a few that do not need SciPy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..define import row
from ..language.namespace import formula_function
from ..lazy_imports import LazyFunction
from . import elementwise
from .elementwise import binary
from .scatter import in_precision_of
from .stable_derivatives import powers_times, special

__all__: list[str] = []


AUTO: Final = "auto_element_wise"


# Only some of these functions are defined for complex numbers, as their declarations state.
unary: Final = functools.partial(elementwise.unary, dtype_kinds="f")

# -- without SciPy -----------------------------------------------------------------------------------------------------

_erfc: Final[Callable[..., Any]] = np.frompyfunc(math.erfc, 1, 1)


def ndtr_plainly(a: Any) -> Any:
    """Return the normal distribution function, computed with Python's `math`."""
    return in_precision_of(np.asarray(_erfc(a * -math.sqrt(0.5))).astype(float) * 0.5, a)


ndtr_forward: Final[Callable[..., Any]] = LazyFunction(special, "ndtr") if special.is_installed() else ndtr_plainly

unary(
    "ndtr",
    ndtr_forward,
    "grad * conj(exp(square(self) * -0.5) * 0.3989422804014327)",
    "The standard normal cumulative distribution function.",
    dtype_kinds="fc" if special.is_installed() else "f",
    zero_in_masked_runs=True,
    kernel="0.5 * erfc(self * -0.7071067811865476)",
)


def sinc_derivative_forward(a: Any, order: int) -> Any:
    if order < 0:
        raise ValueError(f"the order of a derivative must be nonnegative, not {order}")
    y = np.pi * a.astype(np.result_type(a.dtype, np.float64))
    near = np.abs(y) < order + 1
    small, large = np.where(near, y, 0), np.where(near, 1, y)
    series = np.zeros_like(y)
    for k in range((order + 1) // 2, (order + 1) // 2 + 20):
        power = 2 * k - order
        series = series + (-1) ** k * small**power / float(math.factorial(power) * (2 * k + 1))
    closed = np.sin(large) / large
    for n in range(1, order + 1):
        closed = (np.sin(large + n * (math.pi / 2)) - n * closed) / large
    return in_precision_of(np.where(near, series, closed) * math.pi**order, a)


unary(
    "sinc",
    np.sinc,
    "grad * conj(_sinc_derivative(self, 1))",
    "sin(pi * value) / (pi * value), and 1 at 0.",
    numpy=[np.sinc],
    dtype_kinds="fc",
    zero_in_masked_runs=True,
)
unary(
    "_sinc_derivative(self, order)",
    sinc_derivative_forward,
    "grad * conj(_sinc_derivative(self, order + 1))",
    "A derivative of `sinc`, exact also near 0.",
    dtype_kinds="fc",
    zero_in_masked_runs=True,
    method=False,
)
binary(
    "heaviside",
    np.heaviside,
    ("zeros_like(grad)", "masked_fill(grad, self != 0, 0)"),
    "masked_fill(other_t, self_p != 0, 0)",
    "The step function: 0 for negative values, 1 for positive ones, the second argument at 0. Gradient 0 for the "
    "first.",
)
row(
    "angle(self)",
    lambda a: np.angle(a),
    {"self": "angle_gradient(grad, self)"},
    forward_derivative="angle_tangent(self_t, self_p)",
    dtype_kinds="fc",
    numpy=[np.angle],
    zero_in_masked_runs=True,
    doc="The arguments of complex numbers; 0 or pi for real ones. Gradient 0 at 0.",
)
row(
    "nan_to_num(self, nan=0.0, posinf=None, neginf=None)",
    lambda a, nan=0.0, posinf=None, neginf=None: np.nan_to_num(a, True, nan, posinf, neginf),
    {"self": "of_finite_parts(grad, self)"},
    forward_derivative="of_finite_parts(self_t, self_p)",
    elementwise=True,
    inplace=True,
    dtype_kinds="fc",
    numpy=[np.nan_to_num],
    masks_gradient=True,
    doc="The values with NaN and infinities replaced; the gradient of these is 0.",
)


@formula_function
def of_finite_parts(grad: Any, value: Any) -> Any:
    """Return a gradient where the value is finite and 0 elsewhere; for complex numbers, separately for each part."""
    if value.dtype.kind != "c":
        return np.where(np.isfinite(value), grad, 0)
    return np.where(np.isfinite(value.real), grad.real, 0) + np.where(np.isfinite(value.imag), grad.imag, 0) * 1j


@formula_function
def angle_gradient(grad: Any, value: Any) -> Any:
    """Return the gradient of an angle: orthogonal to the number, divided by its magnitude."""
    if value.dtype.kind != "c":
        return np.zeros_like(grad)
    return np.where(value == 0, 0, grad) * 1j / np.where(value == 0, 1, value).conj()


@formula_function
def angle_tangent(tangent: Any, value: Any) -> Any:
    """Return the tangent of an angle."""
    if value.dtype.kind != "c":
        return np.zeros_like(tangent)
    return (np.where(value == 0, 0, tangent) / np.where(value == 0, 1, value)).imag


# -- with SciPy --------------------------------------------------------------------------------------------------------

SQRT_PI: Final = math.sqrt(math.pi)


def scipy_unary(name: str, gradient: str, doc: str, **options: Any) -> None:
    """Declare a SciPy function of one argument."""
    unary(name, LazyFunction(special, name), gradient, doc, mask_zero_grad=True, **options)


def scipy_binary(name: str, gradients: tuple[str, str], tangent: str, doc: str, **options: Any) -> None:
    """Declare a SciPy function of two arguments."""
    binary(name, LazyFunction(special, name), gradients, tangent, doc, mask_zero_grad=True, **options)


def scipy_rows() -> None:
    """Declare the operators that need SciPy."""
    scipy_unary("erf", f"grad * conj(exp(-square(self)) * {2 / SQRT_PI})", "The error function.", dtype_kinds="fc",
                kernel="erf(self)")
    scipy_unary("erfc", f"grad * conj(exp(-square(self)) * {-2 / SQRT_PI})", "1 - erf(value).", dtype_kinds="fc",
                kernel="erfc(self)")
    scipy_unary("erfcx", "grad * conj(erfcx_slope(self))", "exp(value**2) * erfc(value).", dtype_kinds="fc")
    scipy_unary("erfinv", f"grad * exp(square(result)) * {SQRT_PI / 2}", "The inverse of `erf`.")
    scipy_unary(
        "ndtri", f"grad * exp(square(result) * 0.5) * {math.sqrt(2 * math.pi)}", "The inverse of `ndtr`.",
    )  # fmt: skip
    scipy_unary(
        "log_ndtr", "grad * conj(log_ndtr_slope(self))",
        "The logarithm of `ndtr`, accurate also for small values.", dtype_kinds="fc",
    )  # fmt: skip
    scipy_unary("dawsn", "grad * conj(dawsn_slope(self))", "Dawson's integral.", dtype_kinds="fc")
    scipy_unary("expit", "grad * result * (1 - result)", "1 / (1 + exp(-value)).", kernel="sigmoid(self)")
    scipy_unary("log_expit", "grad * expit(-self)", "The logarithm of `expit`.",
                kernel="minimum(self, 0.0) - log1p(exp(-abs(self)))")
    scipy_unary("exp1", "-grad * conj(exp(-self) / self)", "The exponential integral E1.", dtype_kinds="fc")
    scipy_unary("expi", "grad * conj(exp(self) / self)", "The exponential integral Ei.", dtype_kinds="fc")
    scipy_unary("logit", "grad * logit_slope(self)", "The inverse of `expit`.")
    scipy_unary("entr", "-grad * (1 + log(self))", "-value * log(value), and 0 at 0; infinite gradient at 0.")

    scipy_unary("gamma", "grad * result * digamma(self)", "The gamma function.")
    scipy_unary("rgamma", "grad * rgamma_slope(self)", "1 / gamma(value).")
    scipy_unary("gammaln", "grad * digamma(self)", "The logarithm of the absolute value of `gamma`.",
                kernel="lgamma(self)")
    psi = LazyFunction(special, "psi")
    scipy_unary("digamma", "grad * polygamma(1, self)", "The derivative of `gammaln`.", numpy=[psi])
    of_order("polygamma", "grad * polygamma(v + 1, self)", "The polygamma function: the derivative of order `v` of "
                                                           "`digamma`.")
    of_order("gammainc", "grad * gamma_density(v, self)", "The regularized lower incomplete gamma function.")
    of_order(
        "gammaincc", "-grad * gamma_density(v, self)", "The regularized upper incomplete gamma function."
    )
    scipy_binary(
        "betaln", ("grad * (digamma(self) - digamma(self + other))", "grad * (digamma(other) - digamma(self + other))"),
        "flowing(self_t * (digamma(self_p) - digamma(self_p + other_p)), self_t) "
        "+ flowing(other_t * (digamma(other_p) - digamma(self_p + other_p)), other_t)",
        "The logarithm of the absolute value of the beta function.",
    )  # fmt: skip
    scipy_binary(
        "xlogy", ("grad * conj(log_beside(other, self))", "grad * conj(ratio_beside(self, other))"),
        "flowing(self_t * log_beside(other_p, self_p), self_t) "
        "+ flowing(other_t * ratio_beside(self_p, other_p), other_t)",
        "self * log(other), and 0 if `self` is 0, with gradient 0 for `other`.", dtype_kinds="fc",
    )  # fmt: skip
    scipy_binary(
        "xlog1py", ("grad * conj(log_beside(other + 1, self))", "grad * conj(ratio_beside(self, other + 1))"),
        "flowing(self_t * log_beside(other_p + 1, self_p), self_t) "
        "+ flowing(other_t * ratio_beside(self_p, other_p + 1), other_t)",
        "self * log1p(other), and 0 if `self` is 0, with gradient 0 for `other`.", dtype_kinds="fc",
    )  # fmt: skip
    scipy_binary(
        "rel_entr", ("grad * rel_entr_slope(self, other)", "-grad * ratio_beside(self, other)"),
        "flowing(self_t * rel_entr_slope(self_p, other_p), self_t) "
        "- flowing(other_t * ratio_beside(self_p, other_p), other_t)",
        "self * log(self / other), the terms of the relative entropy; 0 with gradient 0 if both are 0.",
    )  # fmt: skip
    for name, order in (("j0", 0), ("j1", 1)):
        scipy_unary(
            name, f"grad * (jv({order - 1}, self) - jv({order + 1}, self)) / 2",
            f"The Bessel function of the first kind of order {order}.",
        )  # fmt: skip
    for name, order, scaled in (("i0", 0, "i1e(self)"), ("i1", 1, "(i0e(self) + ive_of_two(self)) / 2")):
        scipy_unary(
            name, f"grad * (iv({order - 1}, self) + iv({order + 1}, self)) / 2",
            f"The modified Bessel function of the first kind of order {order}.",
        )  # fmt: skip
        scipy_unary(
            f"{name}e", f"grad * ({scaled} - sign(self) * result)",
            f"exp(-abs(value)) * {name}(value); at 0 the mean of the one-sided gradients.",
        )  # fmt: skip
    of_order(
        "jv", "grad * conj(jv(v - 1, self) - jv(v + 1, self)) / 2", "The Bessel function of the first kind.",
        dtype_kinds="fc"
    )
    of_order(
        "iv", "grad * conj(iv(v - 1, self) + iv(v + 1, self)) / 2",
        "The modified Bessel function of the first kind.", dtype_kinds="fc",
    )  # fmt: skip
    of_order(
        "ive", "grad * ((ive(v - 1, self) + ive(v + 1, self)) / 2 - sign(self) * result)",
        "exp(-abs(value)) * iv(v, value); at 0 the mean of the one-sided gradients.",
    )  # fmt: skip


def of_order(name: str, gradient: str, doc: str, dtype_kinds: str = "f") -> None:
    """Declare a family of functions of one argument, indexed by an order that is not differentiated."""
    function = LazyFunction(special, name)
    row(
        f"{name}(v, self)",
        lambda v, x: in_precision_of(function(order_of(v, name), x), x),
        {"self": gradient},
        forward_derivative=AUTO,
        method=False,
        numpy=[function],
        elementwise=True,
        mask_zero_grad=True,
        dtype_kinds=dtype_kinds,
        doc=doc,
    )


def order_of(v: Any, name: str) -> Any:
    """Return a plain number."""
    if np.ndim(v):
        raise ValueError(
            f"{name} of a tensor requires a number as its first argument, not an array of shape {np.shape(v)}"
        )
    return v


@formula_function
def gamma_density(v: Any, x: Any) -> Any:
    """Return the derivative of the regularized incomplete gamma function."""
    density = powers_times(-x - float(special.gammaln(order_of(v, "gammainc"))), (x, v - 1, False))
    return density if density.dtype == x.dtype else density.astype(x.dtype)


@formula_function
def log_beside(value: Any, factor: Any) -> Any:
    """Return the logarithm of a value, or 0 if the value is not positive and its factor is 0."""
    return np.log(np.where((factor == 0) & (value == 0 if value.dtype.kind == "c" else value <= 0), 1, value))


@formula_function
def rel_entr_slope(value: Any, other: Any) -> Any:
    """Return log(value / other) + 1, or 0 if both are 0, where neither direction has a limit."""
    absent = (value == 0) & (other == 0)
    return np.where(absent, 0, np.log(np.where(absent, 1, value) / np.where(absent, 1, other)) + 1)


@formula_function
def ratio_beside(factor: Any, value: Any) -> Any:
    """Return the quotient, with 0 for 0 / 0."""
    return factor / np.where((factor == 0) & (value == 0), 1, value)


scipy_rows()
