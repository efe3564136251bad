"""Further functions of `scipy.special` for tensors: Bessel and elliptic functions, polynomials, integrals, inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special as theirs  # type: ignore[import-untyped]

from ..numpy.values import as_argument, as_tensors
from ..tensor.creation import as_operand, holds_tensor
from .sloped import by_slopes

__all__ = ["FURTHER"]

FURTHER: Final[dict[str, Any]] = {}
ROOT_PI: Final = math.sqrt(math.pi)
DEGREE: Final = math.pi / 180


def _add(name: str, *slopes: Any, way_out: str = "") -> Any:
    FURTHER[name] = by_slopes(name, getattr(theirs, name), *slopes, way_out=way_out)
    return FURTHER[name]


def _made(function: Callable[..., Any]) -> Any:
    FURTHER[function.__name__] = function
    return function


def _operands(*args: Any) -> list[Any]:
    return [as_operand(as_argument(arg)) * 1.0 for arg in args]


def _of_numpy(name: str) -> None:
    """A function that NumPy has as well."""
    function = getattr(np, name)

    def call(x: Any) -> Any:
        return function(as_operand(as_argument(x))) if holds_tensor(x) else as_tensors(getattr(theirs, name)(x))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`."
    FURTHER[name] = call


for _name in ("expm1", "log1p", "exp2", "cbrt"):
    _of_numpy(_name)
_add("exp10", lambda x: exp10(x) * math.log(10.0))
exp10: Any = FURTHER["exp10"]
_add("cosm1", lambda x: -np.sin(x))
_add("sindg", lambda x: FURTHER["cosdg"](x) * DEGREE)
_add("cosdg", lambda x: FURTHER["sindg"](x) * -DEGREE)
_add("tandg", lambda x: (1 + FURTHER["tandg"](x) ** 2) * DEGREE)
_add("cotdg", lambda x: (1 + FURTHER["cotdg"](x) ** 2) * -DEGREE)

# -- Bessel functions --------------------------------------------------------------------------------------------------

ORDER: Final = "no gradient flows to the order; pass its detach()"


def _bessel(name: str, first: float, second: float) -> None:
    """A function whose slope is half of that of order v - 1 and that of order v + 1, each with a sign."""

    def slope(v: Any, x: Any) -> Any:
        own = FURTHER[name]
        return (first * own(v - 1, x) + second * own(v + 1, x)) / 2

    _add(name, None, slope, way_out=ORDER)


for _name in ("yv", "hankel1", "hankel2"):
    _bessel(_name, 1.0, -1.0)
_bessel("kv", -1.0, -1.0)
kve: Any = _add("kve", None, lambda v, x: kve(v, x) - (kve(v - 1, x) + kve(v + 1, x)) / 2, way_out=ORDER)
k0e: Any = _add("k0e", lambda x: k0e(x) - k1e(x))
k1e: Any = _add("k1e", lambda x: k1e(x) * (1 - 1 / x) - k0e(x))


def _derivative_of_order(name: str) -> None:
    scipys = getattr(theirs, name)

    def call(v: Any, z: Any, n: int = 1) -> Any:
        function = by_slopes(name, lambda v, z: scipys(v, z, n), None, lambda v, z: call(v, z, n + 1), way_out=ORDER)
        return function(v, z)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`, the derivative of a Bessel function of order `n`."
    FURTHER[name] = call


for _name in ("jvp", "yvp", "kvp", "ivp", "h1vp", "h2vp"):
    _derivative_of_order(_name)


def _spherical(name: str, first: float, second: float) -> None:
    scipys = getattr(theirs, name)

    def slope(n: Any, z: Any) -> Any:
        lower = value(np.maximum(n - 1, 0), z)
        return (first * n * lower + second * (n + 1) * value(n + 1, z)) / (2 * n + 1)

    value = by_slopes(name, scipys, None, slope, way_out=ORDER)

    def call(n: Any, z: Any, derivative: bool = False) -> Any:
        if not derivative:
            return value(n, z)
        return slope(*map(as_operand, (n, z))) if holds_tensor((n, z)) else as_tensors(scipys(n, z, True))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`."
    FURTHER[name] = call


_spherical("spherical_jn", 1.0, -1.0)
_spherical("spherical_yn", 1.0, -1.0)
_spherical("spherical_in", 1.0, 1.0)
_spherical("spherical_kn", -1.0, -1.0)
struve: Any = _add(
    "struve",
    None,
    lambda v, x: (struve(v - 1, x) - struve(v + 1, x) + (x / 2) ** v / (ROOT_PI * theirs.gamma(v + 1.5))) / 2,
    way_out=ORDER,
)

# -- hypergeometric functions, and others of their kind ----------------------------------------------------------------

hyp1f1: Any = _add("hyp1f1", None, None, lambda a, b, x: a / b * hyp1f1(a + 1, b + 1, x))
hyp0f1: Any = _add("hyp0f1", None, lambda v, x: hyp0f1(v + 1, x) / v)
hyperu: Any = _add("hyperu", None, None, lambda a, b, x: -a * hyperu(a + 1, b + 1, x))
loggamma: Any = _add("loggamma", lambda z: theirs.digamma(z))
_zeta: Any = by_slopes("zeta", theirs.zeta, None, lambda x, q: -x * _zeta(x + 1, q))
wofz: Any = _add("wofz", lambda z: 2j / ROOT_PI - 2 * z * wofz(z))
_lambertw: dict[int, Any] = {}


@_made
def lambertw(z: Any, k: int = 0, tol: float = 1e-8) -> Any:
    """Lambert's function: w such that w * exp(w) = z."""
    if k not in _lambertw:
        _lambertw[k] = by_slopes(
            "lambertw", lambda z: theirs.lambertw(z, k), lambda z: 1 / (np.exp(lambertw(z, k)) * (1 + lambertw(z, k)))
        )
    return _lambertw[k](z)


@_made
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Riemann's zeta function, or Hurwitz's; gradients flow to `q`."""
    return _zeta(x, 1.0 if q is None else q)


@_made
def poch(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z)."""
    return _poch(z, m)


_poch: Any = by_slopes(
    "poch",
    theirs.poch,
    lambda z, m: _poch(z, m) * (theirs.digamma(z + m) - theirs.digamma(z)),
    lambda z, m: _poch(z, m) * theirs.digamma(z + m),
)


@_made
def voigt_profile(x: Any, sigma: Any, gamma: Any) -> Any:
    """The profile of a line that is both normal and Lorentzian."""
    if not holds_tensor((x, sigma, gamma)):
        return as_tensors(theirs.voigt_profile(x, sigma, gamma))
    x, sigma, gamma = _operands(x, sigma, gamma)
    return wofz((x + 1j * gamma) / (sigma * math.sqrt(2))).real / (sigma * math.sqrt(2 * math.pi))


# -- integrals ---------------------------------------------------------------------------------------------------------


def _several(name: str, *slopes: Any) -> None:
    """A function that gives several values."""
    scipys = getattr(theirs, name)
    parts = [by_slopes(name, lambda x, place=place: scipys(x)[place], slope) for place, slope in enumerate(slopes)]

    def call(x: Any) -> Any:
        return tuple(part(x) for part in parts) if holds_tensor(x) else as_tensors(scipys(x))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`."
    FURTHER[name] = call


_several("sici", lambda x: np.sinc(x / math.pi), lambda x: np.cos(x) / x)
_several("shichi", lambda x: np.sinh(x) / x, lambda x: np.cosh(x) / x)
_several("fresnel", lambda x: np.sin(x * x * (math.pi / 2)), lambda x: np.cos(x * x * (math.pi / 2)))
_several(
    "airy",
    lambda x: FURTHER["airy"](x)[1],
    lambda x: x * FURTHER["airy"](x)[0],
    lambda x: FURTHER["airy"](x)[3],
    lambda x: x * FURTHER["airy"](x)[2],
)
_add("spence", lambda x: -theirs.xlog1py(1.0, x - 1) / np.where(x == 1, 1.0, x - 1) - np.where(x == 1, 1.0, 0.0))
_add(
    "owens_t",
    lambda h, a: -np.exp(h * h / -2) * theirs.erf(a * h / math.sqrt(2)) / (2 * math.sqrt(2 * math.pi)),
    lambda h, a: np.exp(h * h * (1 + a * a) / -2) / (2 * math.pi * (1 + a * a)),
)


def _legendres_third(phi: Any, m: Any) -> Any:
    """(F - E) / m of Legendre's incomplete integrals, by Carlson's, which have no difference of equals."""
    turns = np.round(phi / math.pi)
    rest = phi - turns * math.pi
    sine, cosine = np.sin(rest), np.cos(rest)
    with np.errstate(invalid="ignore"):
        whole = np.where(turns == 0, 0.0, 2 * turns * theirs.elliprd(0.0, 1 - m, 1.0) / 3)
    return whole + sine**3 / 3 * theirs.elliprd(cosine**2, 1 - m * sine**2, 1.0)


def _root(phi: Any, m: Any) -> Any:
    return np.sqrt(1 - m * np.sin(phi) ** 2)


def _ellipkinc_by_m(phi: Any, m: Any) -> Any:
    return (ellipkinc(phi, m) - third(phi, m) - np.sin(phi) * np.cos(phi) / _root(phi, m)) / (2 * (1 - m))


third: Any = by_slopes(
    "ellipkinc",
    _legendres_third,
    lambda phi, m: np.sin(phi) ** 2 / _root(phi, m),
    lambda phi, m: (_ellipkinc_by_m(phi, m) - third(phi, m) / 2) / m,
)
ellipkinc: Any = _add("ellipkinc", lambda phi, m: 1 / _root(phi, m), _ellipkinc_by_m)
ellipeinc: Any = _add("ellipeinc", _root, lambda phi, m: third(phi, m) / -2)


@_made
def ellipkm1(p: Any) -> Any:
    """The complete elliptic integral of the first kind of 1 - p."""
    return by_slopes("ellipkm1", theirs.ellipkm1, lambda p: (ellipkm1(p) - theirs.ellipe(1 - p) / p) / (2 * (1 - p)))(p)


# -- polynomials -------------------------------------------------------------------------------------------------------


def _polynomial(name: str, slope: Callable[..., Any], parameters: int = 1) -> None:
    """A polynomial of a whole degree; its slope is a polynomial of one degree less, and 0 for degree 0."""

    def safe(*args: Any) -> Any:
        n, *rest = args
        return np.where(n >= 1, slope(np.maximum(n, 1), *rest), 0.0)

    _add(name, *(None,) * parameters, safe, way_out="no gradient flows to the degree and the parameters")


_polynomial("eval_jacobi", lambda n, a, b, x: (n + a + b + 1) / 2 * FURTHER["eval_jacobi"](n - 1, a + 1, b + 1, x), 3)
_polynomial("eval_legendre", lambda n, x: (n + 1) / 2 * FURTHER["eval_jacobi"](n - 1, 1.0, 1.0, x))
_polynomial("eval_gegenbauer", lambda n, a, x: 2 * a * FURTHER["eval_gegenbauer"](n - 1, a + 1, x), 2)
_polynomial("eval_chebyt", lambda n, x: n * FURTHER["eval_chebyu"](n - 1, x))
_polynomial("eval_chebyu", lambda n, x: 2 * FURTHER["eval_gegenbauer"](n - 1, 2.0, x))
_polynomial("eval_hermite", lambda n, x: 2 * n * FURTHER["eval_hermite"](n - 1, x))
_polynomial("eval_hermitenorm", lambda n, x: n * FURTHER["eval_hermitenorm"](n - 1, x))
_polynomial("eval_genlaguerre", lambda n, a, x: -FURTHER["eval_genlaguerre"](n - 1, a + 1, x), 2)
_polynomial("eval_laguerre", lambda n, x: -FURTHER["eval_genlaguerre"](n - 1, 1.0, x))
lpmv: Any = _add(
    "lpmv", None, None, lambda m, v, x: (v * x * lpmv(m, v, x) - (v + m) * lpmv(m, v - 1, x)) / (x * x - 1)
)
