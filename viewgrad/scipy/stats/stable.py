"""Lévy stable distributions, by Gauss-Legendre quadrature of Fourier integrals of the characteristic function.

Source: J. P. Nolan, "Univariate Stable Distributions" (2020), chapters 1 and 3; for the distribution function
J. Gil-Pelaez, "Note on the inversion theorem", Biometrika 38 (1951).
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from .distribution import Distribution, everywhere

NODES: Final = 1200
DECAYED: Final = 40.0  # the exponent at which the characteristic function is below its rounding error
TURNS: Final = 1200.0  # the angle that the quadrature resolves
SMALLEST: Final = 0.5  # the index below which the integrals extend too far
CANCELLED: Final = 1e-9  # the relative density below which fewer than half of the digits are correct
POWER: Final = 4  # the power of the substitution that makes the integrand smooth at 0


@functools.cache
def _rule() -> tuple[Any, Any]:
    """Return the nodes and weights of an integral from 0 to 1 after the substitution."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    u, w = (x + 1) / 2, w / 2
    return u**POWER, w * POWER * u ** (POWER - 1)


def _integrand(z: Any, alpha: Any, beta: Any) -> tuple[Any, Any, Any, Any]:
    """Return the nodes and weights of the quadrature, and the modulus and argument of the integrand.

    Raises:
        UnsupportedFunctionError: if the integrand oscillates too fast: far in the tails, or for a skewed distribution
            with an index near 1.
    """
    if scipy.stats.levy_stable.parameterization != "S1":
        raise lost("scipy.stats.levy_stable", "only SciPy's default parameterization, S1, has a derivative here")
    values = [np.asarray(plain_values(each), float) for each in (z, alpha, beta)]
    _, index, skew = values
    if not ((index >= SMALLEST) & (index <= 2) & (np.abs(skew) <= 1)).all():
        raise lost("scipy.stats.levy_stable", f"alpha must be between {SMALLEST} and 2, and beta between -1 and 1")
    with np.errstate(all="ignore"):
        reach = DECAYED ** (1 / index)
        turns = np.abs(values[0]) * reach + np.abs(skew * np.tan(np.pi * index / 2)) * DECAYED
    if not (turns <= TURNS).all() or (index == 1).any():
        raise lost(
            "scipy.stats.levy_stable",
            "the integral is not accurate for a value this far from the centre or alpha this close to 1",
        )
    nodes, weights = _rule()
    t = reach[..., None] * nodes
    power = np.exp(alpha[..., None] * np.log(t))
    angle = z[..., None] * t - beta[..., None] * np.tan(math.pi / 2 * alpha[..., None]) * power
    return t, reach[..., None] * weights, np.exp(-power), angle


def _log_density(z: Any, alpha: Any, beta: Any) -> Any:
    _, weights, size, angle = _integrand(z, alpha, beta)
    density = (weights * size * np.cos(angle)).sum(-1) / math.pi
    if not (np.asarray(plain_values(density)) > CANCELLED).all():
        raise lost("scipy.stats.levy_stable", "the density is so small that the terms of its integral cancel")
    return np.log(density)


def _half(z: Any, alpha: Any, beta: Any) -> Any:
    t, weights, size, angle = _integrand(z, alpha, beta)
    return (weights / t * size * np.sin(angle)).sum(-1) / math.pi


STABLE: Final = (
    Distribution(
        "levy_stable", ("alpha", "beta"), _log_density, everywhere,
        cdf=lambda z, alpha, beta: 0.5 + _half(z, alpha, beta), sf=lambda z, alpha, beta: 0.5 - _half(z, alpha, beta),
    ),
)  # fmt: skip
