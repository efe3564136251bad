"""Elliptic integrals and functions, computed by Carlson's symmetric integrals.

Each duplication brings the arguments of a symmetric integral four times closer together, so the derivatives converge as
the values do.

Source: B. C. Carlson, "Numerical computation of real or complex elliptic integrals" (1995).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, plain_values
from ..implicit_diff import STEPS
from ..wrap import maker, numbers

MADE: dict[str, Any] = {}
made: Final = maker(scipy.special, MADE, is_compared=True)
DOUBLINGS: Final = 15


def _doubled(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """Return the square roots after one duplication, and the term added to their squares."""
    sum_of_products = x * y + x * z + y * z
    return (*(np.sqrt(root * root + sum_of_products) / 2.0 for root in (x, y, z)), sum_of_products)


def _first(x: Any, y: Any, z: Any) -> Any:
    """Return the integral of the first kind, given the square roots of its arguments."""
    for _ in range(DOUBLINGS):
        x, y, z, _ = _doubled(x, y, z)
    return 1.0 / np.sqrt((x * x + y * y + z * z) / 3.0)


def _second(x: Any, y: Any, z: Any) -> Any:
    """Return the integral of the second kind, given the square roots of its arguments."""
    total: Any = 0.0
    for step in range(DOUBLINGS):
        last = z
        x, y, z, added = _doubled(x, y, z)
        total = total + 3.0 / (4.0**step * last * (last * last + added))
    return total + ((x * x + y * y + 3.0 * z * z) / 5.0) ** -1.5 / 4.0**DOUBLINGS


def _roots(*values: Any) -> list[Any]:
    found = [numbers(value) * 1.0 for value in values]
    if any(each.dtype.kind == "c" or np.any(plain_values(each) < 0) for each in found):
        raise lost("Carlson's integral", "derivatives are supported only for nonnegative real numbers")
    return [np.sqrt(each) for each in found]


@made
def elliprf(x: Any, y: Any, z: Any) -> Any:
    """Return the symmetric elliptic integral of the first kind."""
    return _first(*_roots(x, y, z))


@made
def elliprc(x: Any, y: Any) -> Any:
    """Return the degenerate symmetric elliptic integral."""
    root, other = _roots(x, y)
    return _first(root, other, other)


@made
def elliprd(x: Any, y: Any, z: Any) -> Any:
    """Return the symmetric elliptic integral of the second kind."""
    return _second(*_roots(x, y, z))


@made
def elliprg(x: Any, y: Any, z: Any) -> Any:
    """Return the completely symmetric elliptic integral of the second kind."""
    x, y, z = _roots(x, y, z)
    # (z RF - (x - z) (y - z) RD / 3 + sqrt(x y / z)) / 2; using the largest argument as z keeps it accurate.
    a, b, c = x * x, y * y, z * z
    return (c * _first(x, y, z) - (a - c) * (b - c) * _second(x, y, z) / 3.0 + x * y / z) / 2.0


def _reduced(phi: Any, m: Any) -> tuple[Any, Any, Any, Any]:
    """Return the number of half turns in an angle, the sine and cosine without them, and sqrt(1 - m sin^2)."""
    turns = np.round(plain_values(phi) / math.pi)
    rest = phi - turns * math.pi
    sine = np.sin(rest)
    return turns, sine, np.cos(rest), np.sqrt(1.0 - m * sine * sine)


def _beyond(m: Any) -> Any:
    """Return NaN if the parameter is greater than 1, as in SciPy, and 0 otherwise."""
    return np.where(plain_values(m) > 1, np.nan, 0.0)


@made
def ellipkinc(phi: Any, m: Any) -> Any:
    """Return the incomplete elliptic integral of the first kind."""
    return _incomplete_first(numbers(phi) * 1.0, numbers(m) * 1.0)


def _incomplete_first(phi: Any, m: Any) -> Any:
    turns, sine, cosine, root = _reduced(phi, m)
    found = sine * _first(cosine, root, np.ones(())) + _beyond(m)
    return found + 2.0 * turns * scipy.special.ellipk(np.where(turns == 0, 0.0, m)) if turns.any() else found


@made
def ellipeinc(phi: Any, m: Any) -> Any:
    """Return the incomplete elliptic integral of the second kind."""
    phi, m = numbers(phi) * 1.0, numbers(m) * 1.0
    turns, sine, cosine, root = _reduced(phi, m)
    found = sine * _first(cosine, root, np.ones(())) - m * sine**3 / 3.0 * _second(cosine, root, np.ones(()))
    found = found + _beyond(m)
    return found + 2.0 * turns * scipy.special.ellipe(np.where(turns == 0, 0.0, m)) if turns.any() else found


@made
def ellipj(u: Any, m: Any) -> Any:
    """Return Jacobi's elliptic functions sn, cn and dn, and the amplitude."""
    u, m = numbers(u) * 1.0, numbers(m) * 1.0
    start = amplitude = as_tensors(np.asarray(scipy.special.ellipj(plain_values(u), plain_values(m))[3]))
    for _ in range(STEPS):
        slope = np.sqrt(1.0 - m * np.sin(amplitude) ** 2)
        amplitude = amplitude - (_incomplete_first(amplitude, m) - u) * slope
    amplitude = amplitude + plain_values(start) - plain_values(amplitude.detach())
    sine = np.sin(amplitude)
    return sine, np.cos(amplitude), np.sqrt(1.0 - m * sine * sine), amplitude
