"""Special functions of one variable whose derivatives belong to the same family, by a single operator.

These are Bessel functions of neighbouring orders, Airy functions, hypergeometric functions, and functions defined as
integrals. Parameters, such as orders, are plain numbers.

Source: F. Olver et al., "NIST Handbook of Mathematical Functions" (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from ..define import OPERATORS, row
from ..language.namespace import formula_function
from .scatter import in_precision_of
from .stable_derivatives import special

HALF_PI: Final = math.pi / 2
ROOT_PI: Final = math.sqrt(math.pi)
Slope = Callable[..., Any]
# For each name, the derivative as a function of the argument, the value and the parameters. For several results, the
# first parameter is the index of the result.
FAMILIES: Final[dict[str, Slope]] = {}
SEVERAL: Final = frozenset({"airy", "airye", "fresnel", "sici", "shichi", "itj0y0", "iti0k0"})


def family_value(x: Any, name: str, parameters: tuple[Any, ...]) -> Any:
    """Return the value of a function of a family, for arrays."""
    function = getattr(special, name)
    if name in SEVERAL:
        return function(x)[parameters[0]]
    return function(x, *parameters) if name in ("lambertw",) else function(*parameters, x)


def _of(name: str, x: Any, *parameters: Any) -> Any:
    """Return a function of a family, for arrays or tensors."""
    if isinstance(x, Tensor):
        if any(np.ndim(each) or isinstance(each, Tensor) for each in parameters):
            return OPERATORS["_special_family_of"].function(x, *_two(parameters), name, len(parameters))
        return OPERATORS["_special_family"].function(x, name, parameters)
    return family_value(x, name, parameters)


def _two(parameters: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return one or two parameters in the form that the operator accepts, in which the second may be unused."""
    return parameters if len(parameters) == 2 else (parameters[0], np.zeros(()))


@formula_function
def family_slope(x: Any, value: Any, name: str, parameters: tuple[Any, ...]) -> Any:
    """Return the derivative of a function of a family."""
    slope = FAMILIES[name](x, value, *parameters)
    return slope if slope.dtype == value.dtype else slope.astype(value.dtype)


@formula_function
def family_slopes(x: Any, value: Any, first: Any, second: Any, name: str, count: int) -> Any:
    """Return the derivative of a function of a family for parameters that are arrays."""
    return family_slope(x, value, name, (first, second)[:count])


# The coefficients of eighth-order central differences for the first derivative.
STENCIL: Final = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
# at nonpositive integers, by the position of the parameter
WITH_POLES: Final = frozenset({("hyp0f1", 0), ("hyp1f1", 1)})


@formula_function
def parameter_slope(x: Any, first: Any, second: Any, name: str, count: int, place: int) -> Any:
    """Return the derivative of a function of a family with respect to a parameter.

    The function is analytic in its parameters. Eighth-order differences, with steps of a tenth of the scale on which it
    varies, have a relative error of about 1e-10.
    """
    given = [first, second][:count]
    value, size = _without_history(given[place]), np.abs(_without_history(x))
    step = 0.1 / (1.0 + np.abs(np.log(np.where(size == 0, 2.0, size) / 2.0)) + np.log1p(np.abs(value)))
    if (name, place) in WITH_POLES:
        step = np.minimum(step, 0.02 * np.where(value < 0.5, np.abs(value - np.minimum(np.rint(value), 0.0)), value))
    total: Any = 0.0
    for number, weight in enumerate(STENCIL, 1):
        ends = [[*given[:place], given[place] + sign * number * step, *given[place + 1 :]] for sign in (1, -1)]
        total = total + weight * (_of(name, x, *ends[0]) - _of(name, x, *ends[1]))
    return total / step


def _without_history(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


row(
    "_special_family(self, name, parameters=())",
    lambda x, name, parameters=(): in_precision_of(family_value(x, name, parameters), x),
    {"self": "grad * conj(family_slope(self, result, name, parameters))"},
    forward_derivative="flowing(self_t * family_slope(self_p, result, name, parameters), self_t)",
    elementwise=True, mask_zero_grad=True, method=False, dtype_kinds="fc",
    doc="A special function of one variable, by its name in `scipy.special`, with plain parameters.",
)  # fmt: skip
row(
    "_special_family_of(self, first, second, name, count)",
    lambda x, first, second, name, count: family_value(
        x, name, (first, second) if count > 1 else (first + np.zeros(np.shape(second)) if np.ndim(second) else first,)
    ),
    {
        "self": "grad * conj(family_slopes(self, result, first, second, name, count))",
        "first": "grad * conj(parameter_slope(self, first, second, name, count, 0))",
        "second": "grad * conj(parameter_slope(self, first, second, name, count, 1)) if count > 1 "
        "else zeros_like(grad)",
    },
    forward_derivative="flowing(self_t * family_slopes(self_p, result, first_p, second_p, name, count), self_t) "
    "+ flowing(first_t * parameter_slope(self_p, first_p, second_p, name, count, 0), first_t) "
    "+ (flowing(second_t * parameter_slope(self_p, first_p, second_p, name, count, 1), second_t) if count > 1 "
    "else zeros_like(result))",
    elementwise=True, mask_zero_grad=True, method=False, dtype_kinds={"self": "fc", "first": "f", "second": "f"},
    doc="A special function of one variable, by its name in `scipy.special`, with one or two parameters. Derivatives "
    "with respect to these are differences of the eighth order, with a relative error of about 1e-10.",
)  # fmt: skip


def _neighbours(name: str, of_lower: float, of_higher: float, of_itself: complex = 0) -> None:
    """Declare a Bessel function, whose derivative involves the neighbouring orders."""

    def slope(x: Any, value: Any, v: Any) -> Any:
        beside = of_lower * _of(name, x, v - 1) + of_higher * _of(name, x, v + 1)
        return beside + of_itself * value if of_itself else beside

    FAMILIES[name] = slope


_neighbours("jv", 0.5, -0.5)
_neighbours("yv", 0.5, -0.5)
_neighbours("iv", 0.5, 0.5)
_neighbours("kv", -0.5, -0.5)
_neighbours("kve", -0.5, -0.5, 1.0)
FAMILIES["ive"] = lambda x, value, v: (_of("ive", x, v - 1) + _of("ive", x, v + 1)) / 2 - np.sign(x) * value
_neighbours("hankel1", 0.5, -0.5)
_neighbours("hankel2", 0.5, -0.5)
_neighbours("hankel1e", 0.5, -0.5, -1j)
_neighbours("hankel2e", 0.5, -0.5, 1j)


def _struve_rest(x: Any, v: Any) -> Any:
    factor = special.rgamma(v + 1.5) / ROOT_PI  # 0 where the gamma function has a pole
    return (x / 2.0) ** v * (factor if np.ndim(v) else float(factor))


def _log_ratio(z: Any) -> Any:
    """Return log(z) / (1 - z), and -1 at 1."""
    u = z - 1.0
    near = np.abs(u) < 0.05
    small, large = np.where(near, u, 0.0), np.where(near, 1.0, u)
    series: Any = 0.0
    for power in range(14, -1, -1):
        series = series * small + (-1.0) ** (power + 1) / (power + 1)
    return np.where(near, series, -np.log(1.0 + large) / large)


def _airy(x: Any, value: Any, which: int) -> Any:
    return _of("airy", x, which + 1) if which in (0, 2) else x * _of("airy", x, which - 1)


def _scaled_airy(x: Any, value: Any, which: int) -> Any:
    root = np.sqrt(x * (x > 0))
    plain = _of("airye", x, which + 1) if which in (0, 2) else x * _of("airye", x, which - 1)
    return plain + root * value if which < 2 else plain - root * value


FAMILIES.update(
    airy=_airy,
    airye=_scaled_airy,
    struve=lambda x, value, v: (_of("struve", x, v - 1) - _of("struve", x, v + 1) + _struve_rest(x, v)) / 2,
    modstruve=lambda x, value, v: (_of("modstruve", x, v - 1) + _of("modstruve", x, v + 1) + _struve_rest(x, v)) / 2,
    itstruve0=lambda x, value: _of("struve", x, 0),
    itmodstruve0=lambda x, value: _of("modstruve", x, 0),
    itj0y0=lambda x, value, which: _of("yv" if which else "jv", x, 0),
    iti0k0=lambda x, value, which: _of("kv" if which else "iv", x, 0),
    wofz=lambda z, value: -2.0 * z * value + 2j / ROOT_PI,
    fresnel=lambda x, value, which: np.cos(HALF_PI * x * x) if which else np.sin(HALF_PI * x * x),
    sici=lambda x, value, which: np.cos(x) / x if which else _sine_ratio(x),
    shichi=lambda x, value, which: np.cosh(x) / x if which else _sinhc(x),
    expn=lambda x, value, n: -_of("expn", x, n - 1) if n > 1 else -np.exp(-x) / x,
    lambertw=lambda z, value, k, tol: 1.0 / (z + np.exp(value)),
    wrightomega=lambda z, value: value / (1.0 + value),
    loggamma=lambda z, value: special.psi(z),
    spence=lambda z, value: _log_ratio(z),
    hyp0f1=lambda x, value, v: _of("hyp0f1", x, v + 1) / v,
    hyp1f1=lambda x, value, a, b: a / b * _of("hyp1f1", x, a + 1, b + 1),
    hyperu=lambda x, value, a, b: -a * _of("hyperu", x, a + 1, b + 1),
    ber=lambda x, value: _of("berp", x),
    bei=lambda x, value: _of("beip", x),
    ker=lambda x, value: _of("kerp", x),
    kei=lambda x, value: _of("keip", x),
    berp=lambda x, value: -_of("bei", x) - np.where(x == 0, 0.0, value / np.where(x == 0, 1.0, x)),
    beip=lambda x, value: _of("ber", x) - np.where(x == 0, 0.5, value / np.where(x == 0, 1.0, x)),
    kerp=lambda x, value: -_of("kei", x) - value / x,
    keip=lambda x, value: _of("ker", x) - value / x,
    kolmogorov=lambda x, value: _kolmogorov_slope(x),
)


def _sine_ratio(x: Any) -> Any:
    """Return sin(x) / x, and 1 at 0."""
    return np.sinc(x / math.pi)


def _sinhc(x: Any) -> Any:
    """Return sinh(x) / x, and 1 at 0."""
    if x.dtype.kind == "c":
        return _sine_ratio(1j * x)
    near = np.abs(x) < 0.5
    small, large = np.where(near, x, 0.0), np.where(near, 1.0, x)
    series: Any = 1.0
    for divisor in range(18, 0, -2):
        series = 1.0 + small * small * series / (divisor * (divisor + 1))
    return np.where(near, series, np.sinh(large) / large)


def _kolmogorov_slope(x: Any) -> Any:
    """Return the derivative of the Kolmogorov distribution as a sum that converges fast above 1/2."""
    orders = np.arange(1.0, 33.0)
    terms = (-1.0) ** orders * orders**2
    return (8.0 * x[..., None] * terms * np.exp(-2.0 * (orders * x[..., None]) ** 2)).sum(-1)
