"""The derivatives of elementwise operators.

Formulas follow PyTorch's conventions: the gradient of a complex number is the conjugate Wirtinger derivative, so a step
in the opposite direction decreases a real result. If a function has a kink, the row states the subgradient.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...type_aliases import Array
from ..define import row
from ..language.namespace import compiled_as, formula_function, made_of_operators, set_meaning
from ..language.spec import InPlace, Kernel, Operator
from ..lazy_imports import LazyFunction
from .helpers import conjugated, filled, flowing, nonzero_or_one

__all__: list[str] = []

NOT: Final = "not_differentiable"
AUTO: Final = "auto_element_wise"
LINEAR: Final = "auto_linear"
STEP: Final = "zeros_like(grad)"  # the derivative of step functions


def unary(name: str, forward: Any, gradient: str, doc: str, *, tangent: str = AUTO, **options: Any) -> Operator:
    """Declare an operator on one tensor, with an in-place form."""
    numpy = [forward] if isinstance(forward, np.ufunc | LazyFunction) else ()
    options = {"dtype_kinds": "fc", "numpy": numpy, "inplace": True} | options
    return row(
        name if "(" in name else f"{name}(self)", forward, {"self": gradient}, forward_derivative=tangent,
        elementwise=True, doc=doc, **options,
    )


def binary(name: str, forward: Any, gradients: tuple[str, str], tangent: str, doc: str, **options: Any) -> Operator:
    """Declare an operator on two tensors that are broadcast against each other, with an in-place form."""
    options = {"numpy": [forward] if isinstance(forward, np.ufunc | LazyFunction) else ()} | options
    return row(
        name if "(" in name else f"{name}(self, other)", forward, dict(zip(("self", "other"), gradients)),
        forward_derivative=tangent, elementwise=True, inplace=True, doc=doc, **options,
    )


# -- arithmetic --------------------------------------------------------------------------------------------------------


def expm1_forward(a: Array) -> Any:
    """Return `expm1`; for complex infinities, which NumPy's formula multiplies by 0, return `exp` minus 1."""
    found = np.expm1(a)
    if found.dtype.kind != "c":
        return found
    special = ~np.isfinite(a) | (a == 0)
    return np.where(special, np.exp(np.where(special, a, 0)) - 1, found) if special.any() else found


def logaddexp_forward(a: Array, b: Array) -> Any:
    """Return `logaddexp`; for complex numbers, the operand with the larger real part plus the logarithm of the
    remainder.
    """
    if np.result_type(a, b).kind != "c":
        return np.logaddexp(a, b)
    a, b = np.broadcast_arrays(a, b)
    first = a.real >= b.real
    greater, less = np.where(first, a, b), np.where(first, b, a)
    finite = np.isfinite(greater.real)
    return np.where(finite, greater + np.log1p(np.exp(np.where(finite, less - greater, 0))), greater)


unary("positive",   np.positive,   "grad",                         "A copy of the value.", tangent=LINEAR,
      kernel=Kernel("self", integers="self", is_exact=True))
# The output must not overlap the value: some builds of NumPy then read from wrong addresses if the stride is eight
# elements.
unary("neg",        np.negative,   "-grad",                        "The negative value.", tangent=LINEAR,
      inplace=InPlace(forward=lambda a: np.negative(a)),
      kernel=Kernel("-self", integers="wrapped(-self)", is_exact=True))
unary("square",     np.square,     "grad * conj(2 * self)",        "The square of the value.",
      zero_in_masked_runs=True, kernel=Kernel("self * self", integers="wrapped(self * self)"))
unary("reciprocal", np.reciprocal, "-grad * conj(square(result))", "1 / value.", mask_zero_grad=True,
      kernel="1.0 / self")
unary("sqrt",       np.sqrt,       "grad / conj(2 * result)",      "The square root; infinite gradient at 0.",
      mask_zero_grad=True, kernel="sqrt(self)")
unary("cbrt",       np.cbrt,       "grad / (3 * square(result))",  "The cube root; infinite gradient at 0.",
      dtype_kinds="f", mask_zero_grad=True)
unary("fabs",       np.fabs,       "grad * sign(self)",            "The absolute value of real numbers; gradient 0 at"
                                                                   " 0.",
      dtype_kinds="f", zero_in_masked_runs=True, kernel=Kernel("abs(self)", is_exact=True))
unary("abs",        np.abs,        "grad * sign(self)",            "The absolute value; gradient 0 at 0.",
      tangent="(conj(sign(self_p)) * self_t).real", zero_in_masked_runs=True,
      kernel=Kernel("abs(self)", integers="wrapped(abs(self))", is_exact=True))
unary("sign",       np.sign,       "sign_gradient(grad, self, result)",
      "The sign: -1, 0 or 1; z / abs(z) for complex numbers; "
      "gradient 0 at 0.", tangent="sign_gradient(self_t, self_p, result)", kernel=Kernel("sign(self)", is_exact=True))
conj = unary("conj", np.conjugate, "conj(grad)",                   "The complex conjugate.",
             tangent=LINEAR, kernel=Kernel("self", integers="self", is_exact=True))
set_meaning("conj", None, conjugated)  # its meaning in formulas; for real values, nothing is recorded

binary("add", np.add,      ("grad", "grad"),  LINEAR, "The sum.", dtype_kinds="fc",
       kernel=Kernel("self + other", integers="wrapped(self + other)", bools="logical_or"))
binary("sub", np.subtract, ("grad", "-grad"), LINEAR, "The difference.", dtype_kinds="fc",
       kernel=Kernel("self - other", integers="wrapped(self - other)"))
binary("mul", np.multiply, ("grad * conj(other)", "grad * conj(self)"),
       "self_t * other_p + self_p * other_t", "The product.", dtype_kinds="fc", zero_in_masked_runs=True,
       kernel=Kernel("self * other", integers="wrapped(self * other)", bools="logical_and"))
binary("div", np.true_divide, ("grad / conj(other)", "-grad * conj(result / other)"),
       "flowing(self_t / other_p, self_t) - flowing(other_t * (result / other_p), other_t)", "The quotient.",
       dtype_kinds="fc", mask_zero_grad=True, kernel="self / other")
binary("floor_divide", np.floor_divide, (STEP, STEP),
       "zeros_like(result)", "The floor of the quotient; gradient 0.",
       kernel=Kernel("floor_divide(self, other)", integers="quotient(self, other)"))
binary("remainder", np.remainder, ("grad", "-grad * floor_divide(self, other)"),
       "self_t - flowing(other_t * floor_divide(self_p, other_p), other_t)",
       "The remainder of division with the sign of the divisor; at jumps a one-sided gradient.", mask_zero_grad=True,
       kernel=Kernel("remainder(self, other)", integers="modulo(self, other)"))
binary("fmod", np.fmod, ("grad", "-grad * rint((self - result) / other)"),
       "self_t - flowing(other_t * rint((self_p - result) / other_p), other_t)",
       "The remainder of division with the sign of the dividend; at jumps a one-sided gradient.", mask_zero_grad=True)
row(
    "pow(self, exponent)", np.power,
    {"self": "grad * conj(power_slope(self, exponent))", "exponent": "grad * conj(result * power_log(self, exponent))"},
    forward_derivative="power_tangent(self_p, exponent_p, result, self_t, exponent_t)",
    elementwise=True, inplace=True, dtype_kinds="fc", numpy=[np.power], mask_zero_grad=True,
    doc="The power; at base 0 the gradient of a non-negative exponent is 0.",
    kernel="power(self, exponent)",
)
row(
    "lerp(self, end, weight)", lambda self, end, weight: self + weight * (end - self),
    {"self": "grad * conj(1 - weight)", "end": "grad * conj(weight)", "weight": "grad * conj(end - self)"},
    forward_derivative="self_t + weight_p * (end_t - self_t) + weight_t * (end_p - self_p)",
    elementwise=True, inplace=True, dtype_kinds="fc", doc="The linear interpolation self + weight * (end - self).",
    zero_in_masked_runs=True,
    kernel="self + weight * (end - self)",
)

# -- exponentials and logarithms ---------------------------------------------------------------------------------------

unary("exp",   np.exp,   "grad * conj(result)",                      "The exponential.", mask_zero_grad=True,
      kernel="exp(self)")
unary("exp2",  np.exp2,  "grad * conj(result * 0.6931471805599453)", "Two to the power of the value.",
      mask_zero_grad=True, kernel="exp2(self)")
unary("expm1", expm1_forward, "grad * conj(result + 1)",             "exp(self) - 1, accurate also near 0.",
      mask_zero_grad=True, kernel="expm1(self)", numpy=[np.expm1])
unary("log",   np.log,   "grad / conj(self)",                        "The natural logarithm.", mask_zero_grad=True,
      kernel="log(self)")
unary("log2",  np.log2,  "grad / conj(self * 0.6931471805599453)",   "The logarithm to base 2.", mask_zero_grad=True,
      kernel="log2(self)")
unary("log10", np.log10, "grad / conj(self * 2.302585092994046)",    "The logarithm to base 10.", mask_zero_grad=True,
      kernel="log10(self)")
unary("log1p", np.log1p, "grad / conj(self + 1)",                    "log(1 + self), accurate also near 0.",
      mask_zero_grad=True, kernel="log1p(self)")
binary("logaddexp", logaddexp_forward,
       ("grad * conj(sigmoid(less_exponent(self, other)))", "grad * conj(sigmoid(less_exponent(other, self)))"),
       "flowing(self_t * sigmoid(less_exponent(self_p, other_p)), self_t) "
       "+ flowing(other_t * sigmoid(less_exponent(other_p, self_p)), other_t)",
       "log(exp(self) + exp(other)).", mask_zero_grad=True, dtype_kinds="fc", numpy=[np.logaddexp],
       kernel="logaddexp(self, other)")
binary("logaddexp2", np.logaddexp2,
       ("grad * sigmoid(less_exponent(self, other) * 0.6931471805599453)",
        "grad * sigmoid(less_exponent(other, self) * 0.6931471805599453)"),
       "flowing(self_t * sigmoid(less_exponent(self_p, other_p) * 0.6931471805599453), self_t) "
       "+ flowing(other_t * sigmoid(less_exponent(other_p, self_p) * 0.6931471805599453), other_t)",
       "log2(2**self + 2**other).", mask_zero_grad=True)

# -- trigonometric and hyperbolic functions ----------------------------------------------------------------------------

unary("sin",     np.sin,     "grad * conj(cos(self))",               "The sine of an angle in radians.",
      zero_in_masked_runs=True, kernel="sin(self)")
unary("cos",     np.cos,     "-grad * conj(sin(self))",              "The cosine of an angle in radians.",
      zero_in_masked_runs=True, kernel="cos(self)")
unary("tan",     np.tan,     "grad * conj(1 + square(result))",      "The tangent of an angle in radians.",
      zero_in_masked_runs=True, kernel="tan(self)")
unary("arcsin",  np.arcsin,  "grad / conj(root_of_difference(self))", "The inverse of the sine.", mask_zero_grad=True,
      kernel="asin(self)")
unary("arccos",  np.arccos,  "-grad / conj(root_of_difference(self))", "The inverse of the cosine.",
      mask_zero_grad=True, kernel="acos(self)")
unary("arctan",  np.arctan,  "grad / conj(1 + square(self))",        "The inverse of the tangent.", mask_zero_grad=True,
      kernel="atan(self)")
unary("sinh",    np.sinh,    "grad * conj(cosh(self))",              "The hyperbolic sine.", mask_zero_grad=True,
      kernel="sinh(self)")
unary("cosh",    np.cosh,    "grad * conj(sinh(self))",              "The hyperbolic cosine.", mask_zero_grad=True,
      kernel="cosh(self)")
unary("tanh",    np.tanh,    "grad * conj(1 - square(result))",      "The hyperbolic tangent.",
      zero_in_masked_runs=True, kernel="tanh(self)")
unary("arcsinh", np.arcsinh, "grad / conj(sqrt(-(-square(self) - 1)))", "The inverse of sinh.", mask_zero_grad=True,
      kernel="asinh(self)")
unary("arccosh", np.arccosh, "grad / conj(sqrt(self - 1) * sqrt(-(-self - 1)))", "The inverse of cosh.",
      mask_zero_grad=True, kernel="acosh(self)")
unary("arctanh", np.arctanh, "grad / conj(1 - square(self))",        "The inverse of tanh.", mask_zero_grad=True,
      kernel="atanh(self)")
unary("deg2rad", np.deg2rad, "grad * 0.017453292519943295",          "Degrees converted to radians.",
      tangent=LINEAR, dtype_kinds="f", numpy=[np.deg2rad, np.radians], kernel="self * 0.017453292519943295")
unary("rad2deg", np.rad2deg, "grad * 57.29577951308232",             "Radians converted to degrees.",
      tangent=LINEAR, dtype_kinds="f", numpy=[np.rad2deg, np.degrees], kernel="self * 57.29577951308232")
binary("arctan2", np.arctan2, ("grad * over_square(other, self)", "-grad * over_square(self, other)"),
       "flowing(self_t * over_square(other_p, self_p), self_t) "
       "- flowing(other_t * over_square(self_p, other_p), other_t)",
       "The angle of the point (other, self); gradient 0 at the origin.", mask_zero_grad=True,
       kernel="atan2(self, other)")
binary("hypot", np.hypot, ("grad * (self / nonzero_or_one(result))", "grad * (other / nonzero_or_one(result))"),
       "flowing(self_t * (self_p / nonzero_or_one(result)), self_t) "
       "+ flowing(other_t * (other_p / nonzero_or_one(result)), other_t)",
       "The hypotenuse sqrt(self**2 + other**2); gradient 0 at the origin.", mask_zero_grad=True,
       kernel="hypot(self, other)")

# -- activation functions ----------------------------------------------------------------------------------------------


def sigmoid_forward(a: Array) -> Any:
    if a.dtype.kind == "c":  # if an exponential overflows, its phase is NaN
        right = a.real >= 0
        exponential = np.exp(np.where(right, -a, a))
        return np.where(right, 1, exponential) / (1 + exponential)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-a))


unary("sigmoid", sigmoid_forward, "grad * conj(result * (1 - result))", "1 / (1 + exp(-self)).",
      zero_in_masked_runs=True, kernel="sigmoid(self)")
unary("relu", lambda a: np.maximum(a, 0), "of_positive(grad, result)",
      "max(value, 0); gradient 0 at 0.", dtype_kinds="f", kernel=Kernel("maximum(self, 0.0)", is_exact=True))
unary("softplus(self, beta=1.0)", lambda a, beta=1.0: np.logaddexp(a * beta, 0) / beta, "grad * sigmoid(self * beta)",
      "log(1 + exp(beta * self)) / beta.", dtype_kinds="f", zero_in_masked_runs=True)

# -- rounding: piecewise constant, so the gradient is 0 ----------------------------------------------------------------

unary("floor", np.floor, STEP, "The floor: the largest integer not greater than the value; gradient "
                               "0.", dtype_kinds="f", kernel=Kernel("floor(self)", is_exact=True))
unary("ceil",  np.ceil,  STEP, "The ceiling: the smallest integer not less than the value; gradient "
                               "0.", dtype_kinds="f", kernel=Kernel("ceil(self)", is_exact=True))
unary("trunc", np.trunc, STEP, "The integer part; gradient 0.", dtype_kinds="f",
      kernel=Kernel("trunc(self)", is_exact=True))
unary("rint",  np.rint,  STEP, "The nearest integer, ties to even; gradient 0.",
      kernel=Kernel("rint(self)", is_exact=True))
unary("round(self, decimals=0)", np.round, STEP, "The value rounded to the given number of decimals; gradient 0.",
      numpy=[np.round])

unary("spacing", np.spacing, STEP, "The distance to the nearest adjacent number; gradient 0.",
      dtype_kinds="f")

# -- choosing between values -------------------------------------------------------------------------------------------

binary("maximum", np.maximum,
       ("masked_fill(where(self == other, grad / 2, grad), self < other, 0)",
        "masked_fill(where(self == other, grad / 2, grad), other < self, 0)"),
       "where(self_p == other_p, (self_t + other_t) / 2, "
       "masked_fill(self_t, self_p < other_p, 0) + masked_fill(other_t, other_p < self_p, 0))",
       "The element-wise maximum; if the values are equal, each gets half of the gradient.", dtype_kinds="fc",
       kernel=Kernel("maximum(self, other)", integers="self if self >= other else other", bools="logical_or",
                     is_exact=True))
binary("minimum", np.minimum,
       ("masked_fill(where(self == other, grad / 2, grad), self > other, 0)",
        "masked_fill(where(self == other, grad / 2, grad), other > self, 0)"),
       "where(self_p == other_p, (self_t + other_t) / 2, "
       "masked_fill(self_t, self_p > other_p, 0) + masked_fill(other_t, other_p > self_p, 0))",
       "The element-wise minimum; if the values are equal, each gets half of the gradient.", dtype_kinds="fc",
       kernel=Kernel("minimum(self, other)", integers="self if self <= other else other", bools="logical_and",
                     is_exact=True))
binary("fmax", np.fmax,
       ("masked_fill(grad, logical_not(first_chosen(self >= other, other)), 0)",
        "masked_fill(grad, first_chosen(self >= other, other), 0)"),
       "where(first_chosen(self_p >= other_p, other_p), self_t, other_t)",
       "The element-wise maximum, ignoring NaN; the gradient flows to the first of equal values.", dtype_kinds="fc",
       masks_gradient=True,
       kernel=Kernel("fmax(self, other)", integers="self if self >= other else other", is_exact=True))
binary("fmin", np.fmin,
       ("masked_fill(grad, logical_not(first_chosen(self <= other, other)), 0)",
        "masked_fill(grad, first_chosen(self <= other, other), 0)"),
       "where(first_chosen(self_p <= other_p, other_p), self_t, other_t)",
       "The element-wise minimum, ignoring NaN; the gradient flows to the first of equal values.", dtype_kinds="fc",
       masks_gradient=True,
       kernel=Kernel("fmin(self, other)", integers="self if self <= other else other", is_exact=True))
binary("nextafter", np.nextafter, ("grad", STEP), "self_t",
       "The next floating-point number after the first argument towards the second; differentiated as the identity.")
binary("copysign", np.copysign, ("grad * sign(self) * copysign(sign(self), other)", STEP),
       "self_t * sign(self_p) * copysign(sign(self_p), other_p)",
       "The magnitude of the first argument with the sign of the second; gradient 0 at 0.",
       zero_in_masked_runs=True, kernel=Kernel("copysign(self, other)", is_exact=True))
row(
    "where(condition, self, other)", np.where,
    {"condition": NOT, "self": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"},
    forward_derivative=LINEAR, elementwise=True, method=False, dtype_kinds="fc", returns_0d_arrays=True,
    masks_gradient=True, doc="The first value if the condition is true, otherwise the second.",
    kernel=Kernel("self if condition else other", integers="self if condition else other", is_exact=True),
)
row(
    "masked_fill(self, mask, value)", filled,
    {"self": "masked_fill(grad, mask, 0)", "mask": NOT, "value": "where(mask, grad, 0)"},
    forward_derivative=LINEAR, elementwise=True, inplace=True, dtype_kinds="fc", masks_gradient=True,
    doc="The tensor with `value` where the mask is true.",
    kernel=Kernel("value if mask else self", integers="value if mask else self", is_exact=True),
)
row(
    "_where_flowing(self, other)", lambda product, grad: np.array(flowing(*np.broadcast_arrays(product, grad))),
    {"self": "masked_fill(grad, isnan(self) & (other == 0), 0)", "other": NOT},
    forward_derivative="masked_fill(self_t, isnan(self_p) & (other_p == 0), 0)", elementwise=True, method=False,
    dtype_kinds="fc",
    doc="The product of the first argument with the second; 0 where the second is 0 and the product is NaN.",
)
row(
    "clip(self, min=None, max=None)", lambda self, min=None, max=None: np.clip(self, min, max),
    {
        "self": "masked_fill(grad, outside(self, min, max), 0)",
        "min": "masked_fill(grad, not_below(self, min, max), 0)",
        "max": "masked_fill(grad, not_above(self, min, max), 0)",
    },
    forward_derivative="clip_tangent(self_p, min_p, max_p, self_t, min_t, max_t)",
    elementwise=True, inplace=True, dtype_kinds="fc", numpy=[np.clip],
    doc="The values limited to the interval from `min` to `max`; at a bound the gradient is that of the value.",
    kernel={
        "clip_low_high": Kernel("minimum(maximum(self, min), max)", is_exact=True),
        "clip_low": Kernel("maximum(self, min)", is_exact=True),
        "clip_high": Kernel("minimum(self, max)", is_exact=True),
    },
)

# -- comparisons and logic: no gradient --------------------------------------------------------------------------------


def predicate(name: str, forward: Any, doc: str, kernel: str | Kernel = "", **options: Any) -> Operator:
    """Declare an operator whose result has no derivative; a kernel that is an expression of floats returns a bool."""
    tensors = {"self": NOT, "other": NOT} if forward.nin == 2 else {"self": NOT}
    if kernel and isinstance(kernel, str):
        kernel = Kernel(kernel, gives_bool=True, takes_bools=name.startswith("logical_"))
    options["kernel"] = kernel
    return row(f"{name}({', '.join(tensors)})", forward, tensors, elementwise=True, numpy=[forward], doc=doc, **options)


predicate("equal",         np.equal,         "Test whether the values are equal.", kernel="self == other")
predicate("not_equal",     np.not_equal,     "Test whether the values differ.", kernel="self != other")
predicate("less",          np.less,          "Test whether the first value is less than the second.",
          kernel="self < other")
predicate("less_equal",    np.less_equal,    "Test whether the first value is less than or equal to the second.",
          kernel="self <= other")
predicate("greater",       np.greater,       "Test whether the first value is greater than the second.",
          kernel="self > other")
predicate("greater_equal", np.greater_equal, "Test whether the first value is greater than or equal to the second.",
          kernel="self >= other")
predicate("logical_and",   np.logical_and,   "Logical AND.", kernel="self and other")
predicate("logical_or",    np.logical_or,    "Logical OR.", kernel="self or other")
predicate("logical_xor",   np.logical_xor,   "Logical exclusive OR.", kernel="bool(self) != bool(other)")
predicate("logical_not",   np.logical_not,   "Logical NOT.", kernel="not self")
predicate("isnan",         np.isnan,         "Test whether the value is NaN.", kernel="self != self")
predicate("isinf",         np.isinf,         "Test whether the value is infinite.")
predicate("isfinite",      np.isfinite,      "Test whether the value is finite.", kernel="isfinite(self)")
predicate("signbit",       np.signbit,       "Test whether the sign bit is set.")

predicate("bitwise_and",   np.bitwise_and,   "Bitwise AND of integers or bools.", inplace=True,
          kernel=Kernel(integers="self & other", bools="logical_and"))
predicate("bitwise_or",    np.bitwise_or,    "Bitwise OR of integers or bools.", inplace=True,
          kernel=Kernel(integers="self | other", bools="logical_or"))
predicate("bitwise_xor",   np.bitwise_xor,   "Bitwise XOR of integers or bools.", inplace=True,
          kernel=Kernel(integers="self ^ other", bools="logical_xor"))
predicate("left_shift",    np.left_shift,    "Integers shifted to the left.", inplace=True)
predicate("right_shift",   np.right_shift,   "Integers shifted to the right.", inplace=True)
predicate("invert",        np.invert,        "Bitwise NOT of integers or bools.", inplace=True,
          kernel=Kernel(integers="~self", bools="logical_not"))

# -- functions of formulas ---------------------------------------------------------------------------------------------


@formula_function
@compiled_as("0")
def sign_gradient(grad: Any, value: Any, sign: Any) -> Any:
    """Return the gradient of z / |z|: the part of `grad` orthogonal to z, divided by |z|; 0 for real numbers."""
    if value.dtype.kind != "c":
        return np.zeros_like(grad)
    scaled = grad / nonzero_or_one(np.abs(value))
    return (scaled - sign * (np.conjugate(sign) * scaled).real) * (value != 0)


@formula_function
@made_of_operators("exponent * (0 if exponent == 0 and base == 0 else base ** (exponent - 1))")
def power_slope(base: Any, exponent: Any) -> Any:
    """Return the derivative of `base ** exponent` with respect to the base; 0 everywhere for exponent 0."""
    if exponent.dtype.kind == "b":
        exponent = exponent.astype(base.dtype)
    if exponent.size == 1 and (exponent != 0).all():
        return exponent * base ** (exponent - 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        power = base ** (exponent - 1.0)
    return exponent * np.where((exponent == 0) & np.logical_not(np.isfinite(power)), 0, power)


@formula_function
@made_of_operators("log(1 if base == 0 and exponent >= 0 else base)")
def power_log(base: Any, exponent: Any) -> Any:
    """Return the logarithm of the base of a power, with 0 instead of minus infinity where 0 ** exponent is finite."""
    if exponent.dtype.kind == "c" != base.dtype.kind:
        base = base.astype(exponent.dtype)
    return np.log(np.where((base == 0) & (exponent.real >= 0), 1, base))


@formula_function
def power_tangent(base: Any, exponent: Any, result: Any, base_tangent: Any, exponent_tangent: Any) -> Any:
    """Return the tangent of a power.

    An input with a zero tangent contributes nothing, even if the derivative is infinite or NaN. The base is replaced
    only there, since elsewhere the tangent must depend on the tangents of the inputs, which may be differentiated.
    """
    real = base.dtype.kind != "c"
    steep = (base_tangent == 0) & (base == 0) & (exponent.real < 1) & (exponent != 0)
    undefined = (exponent_tangent == 0) & ((base <= 0) if real else (base == 0))
    log = power_log(np.where(undefined, 1, base), exponent)
    of_base = flowing(base_tangent * power_slope(np.where(steep, 1, base), exponent), base_tangent)
    return of_base + flowing(exponent_tangent * result * log, exponent_tangent)


@formula_function
@made_of_operators("value / nonzero_or_one(hypot(value, other)) / nonzero_or_one(hypot(value, other))")
def over_square(value: Any, other: Any) -> Any:
    """Return `value / (value**2 + other**2)` without computing squares, which could overflow; 0 at the origin and at
    infinity.
    """
    length = nonzero_or_one(np.hypot(value, other))
    return np.where(np.isinf(length), 0, value) / length / length


@formula_function
@compiled_as("sqrt((1 - value) * (1 + value))")
def root_of_difference(value: Any) -> Any:
    """Return `sqrt(1 - value**2)`, with the correct sign on both sides of the branch cuts.

    Zeros keep their signs: `value + 1` would add 0 to an imaginary part of -0.
    """
    if value.dtype.kind != "c":
        return np.sqrt((1 - value) * (1 + value))  # with +0 at 1, not -0
    return np.sqrt(-(value - 1)) * np.sqrt(-(-value - 1))


@formula_function
@compiled_as("better or second != second")
def first_chosen(better: Any, second: Any) -> Any:
    """Return the mask where the first of two values is selected: it is better, or the second is NaN."""
    return better | np.isnan(second)


@formula_function
@compiled_as("value > high if low is None else value < low if high is None else value < low or value > high")
def outside(value: Any, low: Any, high: Any) -> Any:
    """Return the mask of values that are clipped."""
    if low is None or high is None:
        return False if high is low else value > high if low is None else value < low
    return (value < low) | (value > high)


@formula_function
@compiled_as("value >= low if high is None else value >= low or low > high")
def not_below(value: Any, low: Any, high: Any) -> Any:
    """Return the mask of clipped values, excluding the lower bound."""
    return value >= low if high is None else (value >= low) | (low > high)


@formula_function
@compiled_as("value <= high if low is None else value <= high and low <= high")
def not_above(value: Any, low: Any, high: Any) -> Any:
    """Return the mask of clipped values, excluding the upper bound."""
    return value <= high if low is None else (value <= high) & (low <= high)


@formula_function
def clip_tangent(value: Any, low: Any, high: Any, tangent: Any, low_tangent: Any, high_tangent: Any) -> Any:
    """Return the tangent of a clipped value: the tangent of the value or of the bound."""
    result = np.where(outside(value, low, high), 0, tangent)
    if low is not None:
        result = result + np.where(not_below(value, low, high), 0, low_tangent)
    if high is not None:
        result = result + np.where(not_above(value, low, high), 0, high_tangent)
    return result
