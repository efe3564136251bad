"""Orthogonal polynomials and Legendre functions, by recurrences or, for real degrees, by hypergeometric series."""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from ..wrap import maker, numbers
from .elementary import binom
from .hypergeometric import MADE as HYPERGEOMETRIC_MADE

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
# For each name, the polynomial of degree 1, and the recurrence from the degree n, the point, the last two and
# parameters.
Step = Callable[..., Any]


def _jacobi(n: int, x: Any, last: Any, before: Any, a: Any, b: Any) -> Any:
    total = 2 * n + a + b
    slope = total * (total - 1.0) * x + (total - 1.0) * (a * a - b * b) / np.where(total == 2, 1.0, total - 2.0)
    scale = 2.0 * n * (n + a + b)
    factor = 2.0 * (n + a - 1) * (n + b - 1) * total / np.where(total == 2, 1.0, total - 2.0)
    return (slope * last - factor * before) / scale


FAMILIES: Final[dict[str, tuple[Step, Step]]] = {
    "legendre": (lambda x: x, lambda n, x, p, q: ((2 * n - 1) * x * p - (n - 1) * q) / n),
    "chebyt": (lambda x: x, lambda n, x, p, q: 2 * x * p - q),
    "chebyu": (lambda x: 2 * x, lambda n, x, p, q: 2 * x * p - q),
    "hermite": (lambda x: 2 * x, lambda n, x, p, q: 2 * x * p - 2 * (n - 1) * q),
    "hermitenorm": (lambda x: x, lambda n, x, p, q: x * p - (n - 1) * q),
    "laguerre": (lambda x: 1 - x, lambda n, x, p, q: ((2 * n - 1 - x) * p - (n - 1) * q) / n),
    "genlaguerre": (lambda x, a: 1 + a - x, lambda n, x, p, q, a: ((2 * n - 1 + a - x) * p - (n - 1 + a) * q) / n),
    "gegenbauer": (
        lambda x, a: 2 * a * x,
        lambda n, x, p, q, a: (2 * (n + a - 1) * x * p - (n + 2 * a - 2) * q) / n,
    ),
    "jacobi": (lambda x, a, b: (a + 1) + (a + b + 2) * (x - 1) / 2, _jacobi),
}  # fmt: skip
_hyp2f1: Final = HYPERGEOMETRIC_MADE["hyp2f1"]
# For each name, the function of any real degree n at (1 - x) / 2, with parameters. Source: DLMF, 18.5.7 to 18.5.11.
HYPERGEOMETRIC: Final[dict[str, Step]] = {
    "legendre": lambda n, z: _hyp2f1(-n, n + 1.0, 1.0, z),
    "chebyt": lambda n, z: _hyp2f1(-n, n, 0.5, z),
    "chebyu": lambda n, z: (n + 1.0) * _hyp2f1(-n, n + 2.0, 1.5, z),
    "gegenbauer": lambda n, z, a: (
        scipy.special.gamma(n + 2.0 * a) * scipy.special.rgamma(n + 1.0) * scipy.special.rgamma(2.0 * a)
        * _hyp2f1(-n, n + 2.0 * a, a + 0.5, z)
    ),
    "jacobi": lambda n, z, a, b: (
        scipy.special.gamma(n + a + 1.0) * scipy.special.rgamma(n + 1.0) * scipy.special.rgamma(a + 1.0)
        * _hyp2f1(-n, n + a + b + 1.0, a + 1.0, z)
    ),
}  # fmt: skip
# For each name, the polynomial to use, and the point at which to evaluate it.
MOVED: Final[dict[str, tuple[str, Step]]] = {
    "sh_legendre": ("legendre", lambda x: 2 * x - 1),
    "sh_chebyt": ("chebyt", lambda x: 2 * x - 1),
    "sh_chebyu": ("chebyu", lambda x: 2 * x - 1),
    "chebyc": ("chebyt", lambda x: x / 2),
    "chebys": ("chebyu", lambda x: x / 2),
}


def polynomial(name: str, degree: int, x: Any, *parameters: Any) -> Any:
    """Return a polynomial of a family, by its recurrence."""
    first, step = FAMILIES[name]
    if degree < -1 and name == "chebyu":
        return -polynomial(name, -degree - 2, x)
    if degree < 0:
        degree = {"chebyt": -degree, "legendre": -degree - 1}.get(name, degree)
    before, last = x * 0.0 + 1.0, first(x, *parameters)
    if degree <= 0:
        return before if degree == 0 else before * (math.nan if name.startswith("hermite") else 0.0)
    for n in range(2, degree + 1):
        before, last = last, step(n, x, last, before, *parameters)
    return last


def _at(name: str, n: Any, x: Any, parameters: list[Any]) -> Any:
    """Return functions of given degrees, which may be an array; integer degrees yield polynomials."""
    depends = carries_history(n)
    degrees = np.asarray(plain_values(numbers(n)))
    if depends or np.any(degrees != np.round(degrees)):
        if name not in HYPERGEOMETRIC:
            why = "no gradient flows to the degree; pass its detach()" if depends else "the degrees must be integers"
            raise lost(f"scipy.special.eval_{name}", f"for tensors with a history {why}")
        return HYPERGEOMETRIC[name](numbers(n) * 1.0, (1.0 - x) / 2.0, *parameters)
    if not degrees.ndim:
        return polynomial(name, int(degrees), x, *parameters)
    total: Any = 0.0
    for degree in np.unique(degrees):
        total = np.where(degrees == degree, polynomial(name, int(degree), x, *parameters), total)
    return total


def _evaluated(name: str) -> None:
    base, move = MOVED.get(name, (name, lambda x: x))
    factor = 2.0 if name == "chebyc" else 1.0

    def call(n: Any, *args: Any) -> Any:
        *parameters, x = (numbers(each) * 1.0 for each in args)
        return _at(base, n, move(x), parameters) * factor

    call.__name__ = f"eval_{name}"
    call.__doc__ = f"The polynomial `scipy.special.{name}`, differentiable with respect to its argument and parameters."
    made(call)


for _name in (*FAMILIES, *MOVED):
    _evaluated(_name)


@made
def eval_sh_jacobi(n: Any, p: Any, q: Any, x: Any) -> Any:
    """Return the shifted Jacobi polynomial, on the interval from 0 to 1."""
    p, q, x = (numbers(each) * 1.0 for each in (p, q, x))
    return _at("jacobi", n, 2.0 * x - 1.0, [p - q, q - 1.0]) / binom(2.0 * numbers(n) + p - 1.0, n)


# -- Legendre functions ------------------------------------------------------------------------------------------------


def associated(degree: int, order: int, x: Any, rooted: Callable[[int], Any]) -> Any:
    """Return an associated Legendre function with the sign (-1)^order.

    Arguments:
        degree, order: integers.
        x: the evaluation points.
        rooted: a function that returns a power of sqrt(1 - x^2).
    """
    size = abs(order)
    if size > degree:
        return x * 0.0
    last = x * 0.0 + float(scipy.special.factorial2(2 * size - 1) if size else 1.0) * (-1.0) ** size
    last = last * rooted(size) if size else last
    before = last * 0.0
    for n in range(size + 1, degree + 1):
        before, last = last, ((2 * n - 1) * x * last - (n + size - 1) * before) / (n - size)
    if order < 0:
        last = last * ((-1.0) ** size * math.factorial(degree - size) / math.factorial(degree + size))
    return last


def _rooted(x: Any) -> Callable[[int], Any]:
    """Return a function for powers of sqrt(1 - x^2), whose derivatives are finite at the ends if those of the power
    are.
    """
    square = 1.0 - x * x
    return lambda power: square ** (power // 2) if power % 2 == 0 else square ** (power / 2)


def _one(name: str, value: Any) -> int:
    if carries_history(value) or np.ndim(plain_values(value)):
        raise lost(f"scipy.special.{name}", "for tensors with a history degrees and orders must be integers")
    return int(plain_values(value))


@made
def lpmv(m: Any, v: Any, x: Any) -> Any:
    """Return the associated Legendre function of integer order and degree."""
    x = numbers(x) * 1.0
    degree = _one("lpmv", v)
    if degree != float(plain_values(v)) or degree < 0:
        raise lost("scipy.special.lpmv", "for tensors with a history the degrees must be integers")
    return associated(degree, _one("lpmv", m), x, _rooted(x))


@made
def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    """Return the Legendre polynomial."""
    if diff_n:
        raise lost("scipy.special.legendre_p", "differentiate with viewgrad instead of diff_n")
    return polynomial("legendre", _one("legendre_p", n), numbers(z) * 1.0)[None]


@made
def legendre_p_all(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    """Return the Legendre polynomials of all degrees up to `n`."""
    return np.stack([legendre_p(degree, z, diff_n=diff_n) for degree in range(_one("legendre_p_all", n) + 1)], 1)


@made
def assoc_legendre_p_all(
    n: Any, m: Any, z: Any, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0
) -> Any:
    """Return the associated Legendre functions at real points, for all degrees and orders up to `n` and `m`."""
    if norm or diff_n or np.any(plain_values(branch_cut) != 2):
        raise lost("scipy.special.assoc_legendre_p_all", "omit norm, diff_n and branch_cut for tensors with a history")
    degree, order, x = _one("assoc_legendre_p_all", n), abs(_one("assoc_legendre_p_all", m)), numbers(z) * 1.0
    rooted = _rooted(x)
    orders = [*range(order + 1), *range(-order, 0)]
    return np.stack([np.stack([associated(k, each, x, rooted) for each in orders]) for k in range(degree + 1)])[None]


@made
def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """Return the spherical harmonic as a function of the polar angle and the azimuth."""
    if diff_n:
        raise lost("scipy.special.sph_harm_y", "differentiate with viewgrad instead of diff_n")
    degree, order = _one("sph_harm_y", n), _one("sph_harm_y", m)
    theta, phi = numbers(theta) * 1.0, numbers(phi) * 1.0
    lower, upper = (math.factorial(max(each, 0)) for each in (degree - order, degree + order))
    scale = math.sqrt((2 * degree + 1) / (4 * math.pi) * lower / upper)
    sine = np.sin(theta)
    return scale * associated(degree, order, np.cos(theta), lambda power: sine**power) * np.exp(1j * order * phi)


def sph_harm(m: Any, n: Any, theta: Any, phi: Any) -> Any:
    """Return the spherical harmonic as a function of the azimuth and the polar angle; a legacy name."""
    return MADE["sph_harm_y"](n, m, phi, theta)


if hasattr(scipy.special, "sph_harm"):
    MADE["sph_harm"] = sph_harm


# -- polynomials as objects --------------------------------------------------------------------------------------------


def _as_object(name: str) -> None:
    """Define the counterpart of a function that returns a polynomial as an object."""
    scipys, evaluate = getattr(scipy.special, name), MADE[f"eval_{name}"]

    @functools.wraps(scipys, updated=())
    def of_degree(n: Any, *parameters: Any, **options: Any) -> Any:
        if carries_history((n, parameters)):
            raise lost(f"scipy.special.{name}", f"call viewgrad.scipy.special.eval_{name}")
        n, *parameters = plain_values((n, *parameters))
        found, count = scipys(n, *parameters, **options), len(inspect.signature(scipys).parameters) - 2
        leading = scipys(n, *parameters[:count]).coeffs[0]
        found.__dict__["_eval_func"] = lambda x: evaluate(n, *parameters[:count], x) * (found.coeffs[0] / leading)
        return found

    MADE[name] = of_degree


for _name in (*FAMILIES, *MOVED):
    _as_object(_name)


class orthopoly1d(scipy.special._orthogonal.orthopoly1d):  # type: ignore[misc]
    """An orthogonal polynomial as an object, which SciPy's functions return."""

    @classmethod
    def from_scipy(cls, plain: Any) -> Any:
        """Return a polynomial of SciPy that is evaluated by the functions of this module."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(plain))
        made.__dict__["_eval_func"] = _rebound(plain._eval_func)
        return made


def _rebound(function: Any) -> Any:
    """Return a function of SciPy that evaluates a polynomial, with the counterparts of the functions that it calls."""
    if not isinstance(function, types.FunctionType):
        return function
    names = {"_ufuncs": types.SimpleNamespace(**MADE), **MADE}
    cells = tuple([types.CellType(_rebound(cell.cell_contents)) for cell in function.__closure__ or ()])
    scope = {**function.__globals__, **names}
    return types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
