"""Bessel, Airy and hypergeometric functions and integrals of one variable, with parameters that have no history."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.define import OPERATORS
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ..wrap import maker, numbers

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
# Functions whose derivatives with respect to their parameters are eighth-order differences.
ANALYTIC: Final = frozenset({
    "jv", "yv", "iv", "ive", "kv", "kve", "hankel1", "hankel2", "hankel1e", "hankel2e", "struve", "modstruve", "hyp0f1",
    "hyp1f1", "hyperu",
})  # fmt: skip
# functions whose derivatives depend on the values of the parameters
BY_NUMBERS: Final = frozenset({"expn", "lambertw"})


def family(name: str, x: Any, *parameters: Any) -> Any:
    """Return a function of one variable with a history, and of parameters without history."""
    x = numbers(x) * 1.0
    if carries_history(parameters):
        if name not in ANALYTIC:
            raise lost(f"scipy.special.{name}", "no gradient flows to its orders and parameters; pass detach() of them")
        values = [numbers(each) * 1.0 for each in parameters]
        two = values if len(values) > 1 else [*values, as_tensors(np.zeros(()))]
        return OPERATORS["_special_family_of"].function(x, *two, name, len(values))
    given = [np.asarray(plain_values(numbers(each))) for each in parameters]
    operator = OPERATORS["_special_family"].function
    if all(each.size == 1 for each in given):
        shape = np.broadcast_shapes(x.shape, *(each.shape for each in given))
        found = operator(x, name, tuple(each.reshape(()).item() for each in given))
        return found.broadcast_to(shape) if shape != x.shape else found
    if name in BY_NUMBERS:
        return _by_numbers(lambda x, *row: operator(x, name, row), x, *given)
    first, second = as_tensors([each * 1.0 for each in (*given, np.zeros(()))[:2]])
    return OPERATORS["_special_family_of"].function(x, first, second, name, len(given))


def _by_numbers(function: Callable[..., Any], x: Any, *parameters: Any) -> Any:
    """Extend a function with scalar parameters to arrays of parameters, with one call for each combination."""
    shape = np.broadcast_shapes(x.shape, *(each.shape for each in parameters))
    rows = np.stack([np.broadcast_to(each, shape).reshape(-1) for each in parameters], 1)
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    flat, order = x.broadcast_to(shape).reshape(-1), np.argsort(which.reshape(-1), kind="stable")
    parts = [function(flat[which.reshape(-1) == number], *row.tolist()) for number, row in enumerate(kinds)]
    return np.concatenate(parts)[np.argsort(order)].reshape(shape)


def _register(name: str, function: Callable[..., Any], doc: str = "") -> None:
    function.__name__ = name
    function.__doc__ = doc or f"`scipy.special.{name}`, differentiable with respect to its last argument."
    made(function)


def _register_order(name: str) -> None:
    _register(name, lambda v, z: family(name, z, v))


for _name in ("kv", "kve", "struve", "modstruve", "hyp0f1"):
    _register_order(_name)
_register("yv", lambda v, z: family("yv", z, v))


def _register_orders(name: str) -> None:
    operator = OPERATORS[name].function
    _register(name, lambda v, z: operator(v, numbers(z)) if _is_number(v) else family(name, z, v))


def _is_number(v: Any) -> bool:
    return not carries_history(v) and not np.ndim(plain_values(numbers(v)))


for _name in ("jv", "iv", "ive"):
    _register_orders(_name)


def _register_unary(name: str) -> None:
    _register(name, lambda x: family(name, x))


for _name in ("itstruve0", "itmodstruve0", "wrightomega", "spence", "ber", "bei", "ker", "kei", "berp", "beip", "kerp",
              "keip"):  # fmt: skip
    _register_unary(_name)


def _register_several(name: str, count: int) -> None:
    _register(name, lambda x: tuple(family(name, x, which) for which in range(count)))


for _name, _count in {"airy": 4, "fresnel": 2, "sici": 2, "shichi": 2, "itj0y0": 2, "iti0k0": 2}.items():
    _register_several(_name, _count)


@made
def airye(z: Any) -> Any:
    """Return the exponentially scaled Airy functions and their derivatives, for real arguments."""
    if numbers(z).dtype.kind == "c":
        raise lost("scipy.special.airye", "for complex numbers it is not holomorphic; use airy")
    return tuple(family("airye", z, which) for which in range(4))


def _register_hankel(name: str) -> None:
    def hankel(v: Any, z: Any) -> Any:
        z = numbers(z)
        return family(name, z if z.dtype.kind == "c" else z.astype(complex), v)

    _register(name, hankel)


for _name in ("hankel1", "hankel2", "hankel1e", "hankel2e"):
    _register_hankel(_name)


def _register_scaled(name: str, plain: str) -> None:
    def scaled(v: Any, z: Any) -> Any:
        if numbers(z).dtype.kind == "c":
            raise lost(f"scipy.special.{name}", f"for complex numbers it is not holomorphic; use {plain}")
        return family(plain, z, v)

    _register(name, scaled)


_register_scaled("jve", "jv")
_register_scaled("yve", "yv")


@made
def kelvin(x: Any) -> Any:
    """Return the Kelvin functions and their derivatives as complex numbers."""
    pairs = (("ber", "bei"), ("ker", "kei"), ("berp", "beip"), ("kerp", "keip"))
    return tuple(family(real, x) + 1j * family(imaginary, x) for real, imaginary in pairs)


@made
def k0e(x: Any) -> Any:
    """Return `k0` scaled by exp(x)."""
    return family("kve", x, 0)


@made
def k1e(x: Any) -> Any:
    """Return `k1` scaled by exp(x)."""
    return family("kve", x, 1)


@made
def wofz(z: Any) -> Any:
    """Return the Faddeeva function."""
    return family("wofz", numbers(z).astype(complex))


@made
def voigt_profile(x: Any, sigma: Any, gamma: Any) -> Any:
    """Return the density of the sum of a normal and a Cauchy random variable."""
    x, sigma, gamma = (numbers(each) * 1.0 for each in (x, sigma, gamma))
    if np.any(plain_values(sigma) == 0):
        raise lost("scipy.special.voigt_profile", "sigma must not be 0; use scipy.stats.cauchy.pdf for that limit")
    width = sigma * math.sqrt(2.0)
    return family("wofz", (x + 1j * gamma) / width).real / (width * math.sqrt(math.pi))


@made
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """Return the Lambert W function, which satisfies `w * exp(w) == z`."""
    return family("lambertw", numbers(z).astype(complex), k, tol)


@made
def expn(n: Any, x: Any) -> Any:
    """Return the generalized exponential integral; gradients flow to `x`."""
    orders = np.asarray(plain_values(numbers(n)))
    if np.any(orders != np.floor(orders)):
        raise lost("scipy.special.expn", "for tensors with a history the order must be an integer")

    def of_order(x: Any, n: Any) -> Any:
        return family("expn", x, int(n)) if n >= 1 else np.exp(-x) / x

    return _by_numbers(of_order, numbers(x) * 1.0, orders) if orders.ndim else of_order(x, orders.item())


@made
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Return Kummer's confluent hypergeometric function; gradients flow to `x`."""
    return family("hyp1f1", x, a, b)


@made
def hyperu(a: Any, b: Any, x: Any) -> Any:
    """Return Tricomi's confluent hypergeometric function; gradients flow to `x`."""
    return family("hyperu", x, a, b)


@made
def loggamma(z: Any) -> Any:
    """Return the logarithm of the gamma function; for complex arguments, with first derivatives only."""
    return family("loggamma", z)


@made
def ellipkm1(p: Any) -> Any:
    """Return the complete elliptic integral of the first kind near 1, by the arithmetic-geometric mean."""
    p = numbers(p) * 1.0
    return math.pi / 2 / mean_of_means(p * 0.0 + 1.0, np.sqrt(p))


@made
def agm(a: Any, b: Any) -> Any:
    """Return the arithmetic-geometric mean."""
    return mean_of_means(numbers(a) * 1.0, numbers(b) * 1.0)


def mean_of_means(a: Any, b: Any) -> Any:
    """Return the arithmetic-geometric mean; its derivatives converge as fast as the values."""
    sign = np.where((plain_values(a) < 0) & (plain_values(b) < 0), -1.0, 1.0)
    a, b = a * sign, b * sign
    for _ in range(12):
        a, b = (a + b) / 2, np.sqrt(a * b)
    return a * sign


# -- derivatives of Bessel functions, and spherical Bessel functions ---------------------------------------------------


def _derivative_of(name: str, plain: str, signs: tuple[float, float]) -> None:
    """Define the n-th derivative of a Bessel function as a sum over neighbouring orders."""

    def derivative(v: Any, z: Any, n: int = 1) -> Any:
        v, total = numbers(v), 0.0
        lower, upper = signs
        for above in range(int(n) + 1):
            weight = math.comb(int(n), above) * lower ** (n - above) * upper**above / 2.0**n
            total = total + weight * _bessel(plain, v - n + 2 * above, z)
        return total

    _register(name, derivative, f"A derivative of `{plain}`, of the order `n`.")


def _bessel(name: str, v: Any, z: Any) -> Any:
    return MADE[name](v, z) if name in MADE else family(name, z, v)


for _name, _plain, _signs in (("jvp", "jv", (1.0, -1.0)), ("yvp", "yv", (1.0, -1.0)), ("ivp", "iv", (1.0, 1.0)),
                              ("kvp", "kv", (-1.0, -1.0)), ("h1vp", "hankel1", (1.0, -1.0)),
                              ("h2vp", "hankel2", (1.0, -1.0))):  # fmt: skip
    _derivative_of(_name, _plain, _signs)


def _series(n: int, x: Any, sign: float) -> Any:
    """Return the power series of a spherical Bessel function of the first kind, which is accurate near 0."""
    square, total = x * x * (sign / 2.0), 1.0
    for k in range(12, 0, -1):
        total = 1.0 + square * total / (k * (2 * n + 2 * k + 1))
    return x**n * total / float(scipy.special.factorial2(2 * n + 1))


def _spherical(name: str, plain: str, sign: float, regular: bool) -> None:
    def alone(n: int, x: Any) -> Any:
        factor = math.pi / 2
        if not regular:
            if np.any(plain_values(x).real < 0):
                raise lost(f"scipy.special.{name}", "for tensors with a history the arguments must be greater than 0")
            return np.sqrt(factor / x) * _bessel(plain, n + 0.5, x)
        near = np.abs(plain_values(x)) < 1.0
        far = np.where(near, 1.0, x)
        negative = plain_values(far).real < 0
        far = np.where(negative, -far, far)
        found = np.sqrt(factor / far) * _bessel(plain, n + 0.5, far)
        return np.where(near, _series(n, np.where(near, x, 0.0), sign), np.where(negative, (-1.0) ** n * found, found))

    def spherical(n: Any, z: Any, derivative: bool = False) -> Any:
        z = numbers(z) * 1.0
        orders = np.trunc(plain_values(numbers(n)).real)
        if orders.ndim:
            shape = np.broadcast_shapes(orders.shape, z.shape)
            places = z.broadcast_to(shape)
            wanted = np.broadcast_to(orders, shape)
            total: Any = 0.0
            for order in np.unique(orders):
                total = np.where(wanted == order, spherical(order, places, derivative), total)
            return total
        order = int(orders)  # SciPy truncates it too
        if not derivative:
            return alone(order, z)
        if order == 0:
            return alone(1, z) * (-1.0 if name != "spherical_in" else 1.0)
        # (2 n + 1) f' = n f[n - 1] - (n + 1) f[n + 1], with the signs of the modified functions.
        lower, upper = {"spherical_in": (1.0, 1.0), "spherical_kn": (-1.0, -1.0)}.get(name, (1.0, -1.0))
        both = lower * order * alone(order - 1, z) + upper * (order + 1) * alone(order + 1, z)
        return both / (2 * order + 1)

    _register(name, spherical, f"`scipy.special.{name}`, differentiable with respect to `z`.")


_spherical("spherical_jn", "jv", -1.0, True)
_spherical("spherical_yn", "yv", -1.0, False)
_spherical("spherical_in", "iv", 1.0, True)
_spherical("spherical_kn", "kv", 1.0, False)
