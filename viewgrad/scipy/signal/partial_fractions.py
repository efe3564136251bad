"""Partial fractions of rational functions, in powers of s or z^-1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.signal  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from ..wrap import Accepted, floating, maker, numbers
from .filtering import MADE as FILTERING

MADE: dict[str, Any] = {}
made: Final = maker(scipy.signal, MADE, is_checked=True, accepted=Accepted())


def _trimmed(coefficients: Any, end: str) -> Any:
    """Return coefficients without the zeros at the front ("f") or the back ("b")."""
    known = np.flatnonzero(plain_values(coefficients.detach()))
    if not known.size:
        return coefficients[:0]
    return coefficients[known[0] :] if end == "f" else coefficients[: known[-1] + 1]


def _ordered(poles: Any, wanted: Any, name: str) -> Any:
    """Return poles in SciPy's order."""
    if len(np.unique(wanted)) < len(wanted):
        raise lost(f"scipy.signal.{name}", "repeated poles have no derivative")
    distances, places = np.abs(plain_values(poles.detach()) - wanted[:, None]), []
    for row in distances:
        places.append(int(np.argmin(row)))
        distances[:, places[-1]] = np.inf
    return poles[np.array(places, int)]


def _residues(top: Any, poles: Any) -> Any:
    """Return the values of a polynomial at poles, divided by the products of the distances from the other poles."""
    count = poles.shape[0]
    away = poles[:, None] - poles[None, :] + np.eye(count)
    return np.polyval(top, poles) / np.prod(away, axis=1)


@made
def residue(b: Any, a: Any, tol: float = 1e-3, rtype: str = "avg") -> Any:
    """Return the residues, poles and direct polynomial of a ratio of polynomials, highest power first.

    Gradients require distinct poles.
    """
    b, a = (_trimmed(np.atleast_1d(floating(each)), "f") for each in (b, a))
    _, wanted, _ = scipy.signal.residue(plain_values(b.detach()), plain_values(a.detach()), tol, rtype)
    poles = _ordered(np.roots(a), wanted, "residue")
    if b.shape[0] < a.shape[0]:
        quotient = numbers(np.zeros(0))
    else:
        quotient, b = FILTERING["deconvolve"](b, a)
    return _residues(b, poles) / a[0], poles, quotient


@made
def residuez(b: Any, a: Any, tol: float = 1e-3, rtype: str = "avg") -> Any:
    """Return the residues, poles and direct polynomial of a ratio of polynomials in z^-1.

    Gradients require distinct poles.
    """
    b, a = (_trimmed(np.atleast_1d(floating(each)), "b") for each in (b, a))
    _, wanted, _ = scipy.signal.residuez(plain_values(b.detach()), plain_values(a.detach()), tol, rtype)
    poles, top = _ordered(np.roots(a), wanted, "residuez"), b[::-1]
    if b.shape[0] < a.shape[0]:
        quotient = numbers(np.zeros(0))
    else:
        quotient, top = FILTERING["deconvolve"](top, a[::-1])
    return _residues(top, 1.0 / poles) * -poles / a[-1], poles, quotient[::-1]


@made
def unique_roots(p: Any, tol: float = 1e-3, rtype: str = "min") -> Any:
    """Return one root for each group of nearly equal roots, and the multiplicities.

    The gradient flows to the selected root, or for "avg" to all roots of the group.
    """
    if rtype not in ("max", "maximum", "min", "minimum", "avg", "mean"):
        raise ValueError("`rtype` must be one of {'max', 'maximum', 'min', 'minimum', 'avg', 'mean'}")
    p = floating(p)
    plain = plain_values(p)
    left, roots, counts = np.ones(len(plain), bool), [], []
    for place, root in enumerate(plain):
        if not left[place]:
            continue
        group = np.flatnonzero((np.abs(plain - root) <= tol) & left)
        left[group] = False
        ordered = group[np.argsort(plain[group], kind="stable")]
        chosen = {"m": group, "i": ordered[:1], "a": ordered[-1:]}["m" if rtype in ("avg", "mean") else rtype[1]]
        roots.append(p[chosen].mean())
        counts.append(len(group))
    return np.stack(roots) if roots else p, np.array(counts)


def _joined(r: Any, p: Any, tol: float, rtype: str) -> tuple[Any, list[Any]]:
    """Return the denominator of partial fractions, and the factor of the numerator of each residue."""
    if rtype not in ("max", "maximum", "min", "minimum", "avg", "mean"):
        raise ValueError("`rtype` must be one of {'max', 'maximum', 'min', 'minimum', 'avg', 'mean'}")
    plain = plain_values(p.detach())
    first = [0]  # of equal poles
    for place in range(1, len(plain)):
        first.append(first[-1] if abs(plain[place] - plain[first[-1]]) <= tol else place)

    def product(places: list[int]) -> Any:
        found: Any = numbers(np.ones(1))
        for place in places:
            moved = found * p[first[place]]
            found = np.concatenate([found, np.zeros(1)]) - np.concatenate([np.zeros(1), moved])
        return found

    # The fraction with a power of a pole lacks as many of its factors.
    factors = [
        product([other for other in range(len(first)) if not first[place] <= other <= place])
        for place in range(min(len(first), r.shape[0]))
    ]
    return product(list(range(len(first)))), factors


def _sum(terms: list[Any]) -> Any:
    """Return the sum of polynomials, highest power first."""
    size = max(each.shape[0] for each in terms)
    total: Any = 0.0
    for each in terms:
        total = total + np.concatenate([np.zeros(size - each.shape[0]), each])
    return total


@made
def invres(r: Any, p: Any, k: Any, tol: float = 1e-3, rtype: str = "avg") -> Any:
    """Return the numerator and denominator of a sum of partial fractions, highest power first."""
    r, p = (np.atleast_1d(floating(each)) for each in (r, p))
    rest = _trimmed(np.atleast_1d(floating(k)), "f")
    bottom, factors = _joined(r, p, tol, rtype)
    terms = [np.convolve(rest, bottom)] if rest.shape[0] else []
    return _sum([*terms, *(r[place] * factor for place, factor in enumerate(factors))]), bottom


@made
def invresz(r: Any, p: Any, k: Any, tol: float = 1e-3, rtype: str = "avg") -> Any:
    """Return the numerator and denominator of a sum of partial fractions in powers of z^-1."""
    r, p = (np.atleast_1d(floating(each)) for each in (r, p))
    rest = _trimmed(np.atleast_1d(floating(k)), "b")
    bottom, factors = _joined(r, p, tol, rtype)
    terms = [np.convolve(rest, bottom)[::-1]] if rest.shape[0] else []
    return _sum([*terms, *(r[place] * factor[::-1] for place, factor in enumerate(factors))])[::-1], bottom
