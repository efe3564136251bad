"""Index expressions: polynomials in the loop variables with integer coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

Monomial = tuple[str, ...]


@attrs.frozen
class Integer:
    """A polynomial in the loop variables.

    Arguments:
        terms: the coefficient of each product of variables; () is the empty product. No coefficient is 0.
    """

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def value(self) -> int | None:
        """The value of a constant expression."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def __add__(self, other: Integer) -> Integer:
        total = dict(self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return _from_terms(total)

    def __sub__(self, other: Integer) -> Integer:
        return self + other * constant(-1)

    def __mul__(self, other: Integer) -> Integer:
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + a * b
        return _from_terms(total)

    def at(self, values: Mapping[str, int]) -> int:
        """Return the value of the expression for given values of the variables."""
        total = 0
        for monomial, coefficient in self.terms:
            for name in monomial:
                coefficient *= values[name]
            total += coefficient
        return total

    def __str__(self) -> str:
        parts = []
        for monomial, coefficient in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            sign = "-" if coefficient < 0 else "+"
            factors = list(monomial)
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            parts.append(f"{sign} {'*'.join(factors)}")
        text = " ".join(parts) or "0"
        return text.removeprefix("+ ") if not text.startswith("- ") else "-" + text[2:]


def _from_terms(terms: Mapping[Monomial, int]) -> Integer:
    return Integer(tuple(sorted((monomial, n) for monomial, n in terms.items() if n)))


def constant(value: int) -> Integer:
    """Return a constant expression."""
    return Integer((((), value),) if value else ())


def variable(name: str) -> Integer:
    """Return an expression that is a single variable."""
    return Integer((((name,), 1),))


ZERO: Final = constant(0)
ONE: Final = constant(1)


def row_strides_of(sizes: Sequence[Integer]) -> tuple[Integer, ...]:
    """Return the strides of an array in row-major order."""
    strides, step = [], ONE
    for n in reversed(sizes):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))
