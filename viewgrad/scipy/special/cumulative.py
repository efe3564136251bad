"""Distribution functions of `scipy.special` and their inverses, by the incomplete gamma and beta functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...func.transforms import grad
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, plain_values
from ..implicit_diff import STEPS
from ..wrap import maker, numbers
from .incomplete import MADE as INCOMPLETE
from .noncentral import MADE as NONCENTRAL

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
lower, upper, beta = INCOMPLETE["gammainc"], INCOMPLETE["gammaincc"], INCOMPLETE["betainc"]


def _beta_above(a: Any, b: Any, x: Any) -> Any:
    return beta(b, a, 1.0 - numbers(x))


# For each name, the distribution function with the same arguments as SciPy's.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "betaincc": _beta_above,
    "btdtr": beta,
    "gdtr": lambda a, b, x: lower(b, a * x),
    "gdtrc": lambda a, b, x: upper(b, a * x),
    "chdtr": lambda v, x: lower(v / 2.0, x / 2.0),
    "chdtrc": lambda v, x: upper(v / 2.0, x / 2.0),
    "fdtr": lambda dfn, dfd, x: beta(dfn / 2.0, dfd / 2.0, dfn * x / (dfd + dfn * x)),
    "fdtrc": lambda dfn, dfd, x: beta(dfd / 2.0, dfn / 2.0, dfd / (dfd + dfn * x)),
    "pdtr": lambda k, m: upper(_count(k) + 1.0, m),
    "pdtrc": lambda k, m: lower(_count(k) + 1.0, m),
    "bdtr": lambda k, n, p: beta(_whole(n) - _whole(k), _whole(k) + 1.0, 1.0 - p),
    "bdtrc": lambda k, n, p: beta(_whole(k) + 1.0, _whole(n) - _whole(k), p),
    "nbdtr": lambda k, n, p: beta(_some(n), _whole(k) + 1.0, p),
    "nbdtrc": lambda k, n, p: beta(_whole(k) + 1.0, _some(n), 1.0 - p),
}


def _count(k: Any) -> Any:
    """Return a count as `_whole` does, or NaN if it is negative."""
    whole = _whole(k)
    return np.where(plain_values(numbers(k)) < 0, np.nan, whole)


def _some(k: Any) -> Any:
    """Return a count as `_whole` does, or NaN if it is less than 1."""
    whole = _whole(k)
    return np.where(whole < 1, np.nan, whole)


def _whole(k: Any) -> Any:
    """Return a count, which has no gradient."""
    return np.floor(plain_values(numbers(k)))


def _function(name: str, function: Callable[..., Any]) -> None:
    def call(*args: Any) -> Any:
        return function(*(numbers(each) * 1.0 for each in args))

    call.__name__ = name
    call.__doc__ = f"`scipy.special.{name}`, differentiable with respect to all arguments except counts."
    made(call)


for _name, _formula in FUNCTIONS.items():
    if hasattr(scipy.special, _name):
        _function(_name, _formula)

# For each name, the function that it inverts, and the position of the unknown argument.
INVERSES: Final[dict[str, tuple[Callable[..., Any], int]]] = {
    "gammaincinv": (lower, 1),
    "gammainccinv": (upper, 1),
    "betaincinv": (beta, 2),
    "betainccinv": (_beta_above, 2),
    "chdtri": (FUNCTIONS["chdtrc"], 1),
    "fdtri": (FUNCTIONS["fdtr"], 2),
    "pdtri": (FUNCTIONS["pdtr"], 1),
    "bdtri": (FUNCTIONS["bdtr"], 2),
    "nbdtri": (lambda k, n, p: beta(_some(n), _whole(k) + 1.0, p), 2),
    "gdtrix": (FUNCTIONS["gdtr"], 2),
    "gdtria": (FUNCTIONS["gdtr"], 0),
    "gdtrib": (FUNCTIONS["gdtr"], 1),
    "btdtria": (beta, 0),
    "btdtrib": (beta, 1),
    "chdtriv": (FUNCTIONS["chdtr"], 0),
    "stdtrit": (INCOMPLETE["stdtr"], 1),
    "stdtridf": (INCOMPLETE["stdtr"], 0),
    "fdtridfd": (FUNCTIONS["fdtr"], 1),
    "chndtrix": (NONCENTRAL["chndtr"], 0),
    "chndtridf": (NONCENTRAL["chndtr"], 1),
    "chndtrinc": (NONCENTRAL["chndtr"], 2),
    "ncfdtri": (NONCENTRAL["ncfdtr"], 3),
    "ncfdtridfn": (NONCENTRAL["ncfdtr"], 0),
    "ncfdtridfd": (NONCENTRAL["ncfdtr"], 1),
    "ncfdtrinc": (NONCENTRAL["ncfdtr"], 2),
    "nctdtrit": (NONCENTRAL["nctdtr"], 2),
    "nctdtridf": (NONCENTRAL["nctdtr"], 0),
    "nctdtrinc": (NONCENTRAL["nctdtr"], 1),
}


def _inverse(name: str, function: Callable[..., Any], solved: int) -> None:
    scipys = getattr(scipy.special, name)

    def call(*args: Any) -> Any:
        given = [numbers(each) for each in args]
        found = np.asarray(scipys(*plain_values(given)))  # SciPy warns about counts that are not integers
        given = [each * 1.0 for each in given]
        probability = given.pop(solved)  # at the position of the unknown
        if not np.all(np.isfinite(found)):
            raise lost(f"scipy.special.{name}", "it is not finite here, so it has no derivative")
        if solved < len(given) and np.any((found == 0) | (np.abs(found) >= 1e99)):
            raise lost(f"scipy.special.{name}", "it is at the bound of SciPy's search, so it has no derivative")
        start = value = as_tensors(np.array(found))
        with np.errstate(divide="ignore", invalid="ignore"):  # where the slope is 0; refused below
            for _ in range(STEPS):
                arguments = [*given[:solved], value, *given[solved:]]
                value = value - (function(*arguments) - probability) / _slope(function, arguments, solved)
        reached = plain_values(value.detach())
        if not np.all(np.isfinite(reached)):
            raise lost(f"scipy.special.{name}", "it has no finite derivative here")
        return value + plain_values(start) - reached

    call.__name__ = name
    call.__doc__ = f"`scipy.special.{name}`, differentiated by Newton steps from SciPy's value."
    made(call)


def _slope(function: Callable[..., Any], arguments: list[Any], place: int) -> Any:
    """Return the elementwise derivative of a function of several numbers with respect to one of them."""

    def summed(x: Any) -> Any:
        return function(*arguments[:place], x, *arguments[place + 1 :]).sum()

    return grad(summed)(arguments[place].broadcast_to(np.broadcast_shapes(*(each.shape for each in arguments))))


for _name, (_formula, _place) in INVERSES.items():
    if hasattr(scipy.special, _name):
        _inverse(_name, _formula, _place)
