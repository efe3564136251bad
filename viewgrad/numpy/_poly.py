"""`poly1d`: polynomials as objects."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..operators.numpy_api.creation import array

# functions that return polynomials
CLOSED: Final = frozenset({"polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub"})


class poly1d:
    """A polynomial with coefficients from the highest power down; see `numpy.poly1d`.

    Arguments:
        c_or_r: the coefficients, or the roots.
        r: whether `c_or_r` are the roots.
        variable: the name of the variable in printed form.
    """

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if isinstance(c_or_r, poly1d):
            c_or_r, variable = c_or_r.c, variable or c_or_r.variable
        given = array(c_or_r, copy=None, ndmin=1)
        given = np.poly(given) if r else given
        places = np.flatnonzero(plain_values(given))
        self._coefficients = given[int(places[0]) :] if places.size else as_tensors(np.zeros(1, given.dtype))
        self.variable = variable or "x"

    @property
    def c(self) -> Any:
        """The coefficients, which can be changed in place."""
        return self._coefficients

    @c.setter
    def c(self, value: Any) -> None:
        if value is not self._coefficients:  # `p.c *= 2` assigns the same tensor
            raise AttributeError("Cannot set attribute")

    coef = coefficients = coeffs = c

    @property
    def o(self) -> int:
        """The degree."""
        return len(self.c) - 1

    order = o

    @property
    def r(self) -> Any:
        """The zeros."""
        return np.roots(self.c)

    roots = r

    def __call__(self, val: Any) -> Any:
        if isinstance(val, poly1d):
            result = poly1d([0.0])
            for coefficient in self.c:
                result = result * val + coefficient
            return result
        return np.polyval(self.c, as_argument(val))

    def deriv(self, m: int = 1) -> poly1d:
        """Return the `m`-th derivative."""
        return poly1d(np.polyder(self.c, m))

    def integ(self, m: int = 1, k: Any = 0) -> poly1d:
        """Return the `m`-th integral."""
        return poly1d(np.polyint(self.c, m, k))

    def __getitem__(self, power: int) -> Any:
        return self.c[self.o - power] if 0 <= power <= self.o else 0

    def __setitem__(self, power: int, value: Any) -> None:
        if power < 0:
            raise ValueError("Does not support negative powers.")
        if power > self.o:
            self._coefficients = np.concatenate((np.zeros(power - self.o, self.c.dtype), self.c))
        self.c[self.o - power] = value

    def __len__(self) -> int:
        return self.o

    def __iter__(self) -> Any:
        return iter(self.c)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return the coefficients as an array or, if they have a history, as a tensor, which only operators accept."""
        return self.c if carries_history(self.c) else self.c.__array__(dtype, copy)

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        if function is np.polyval and isinstance(args[1], poly1d):
            return poly1d(args[0])(args[1])
        values = [each.c if isinstance(each, poly1d) else each for each in args]
        found = function(*map(as_argument, values), **kwargs)
        if function.__name__ not in CLOSED:
            return found
        return tuple(map(poly1d, found)) if isinstance(found, tuple) else poly1d(found)

    def __neg__(self) -> poly1d:
        return poly1d(-self.c)

    def __add__(self, other: Any) -> poly1d:
        return poly1d(np.polyadd(self.c, poly1d(other).c))

    __radd__ = __add__

    def __sub__(self, other: Any) -> poly1d:
        return poly1d(np.polysub(self.c, poly1d(other).c))

    def __rsub__(self, other: Any) -> poly1d:
        return poly1d(np.polysub(poly1d(other).c, self.c))

    def __mul__(self, other: Any) -> poly1d:
        return poly1d(np.polymul(self.c, poly1d(other).c))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if np.ndim(plain_values(other)) == 0 and not isinstance(other, poly1d):
            return poly1d(self.c / other)
        quotient, rest = np.polydiv(self.c, poly1d(other).c)
        return poly1d(quotient), poly1d(rest)

    def __pow__(self, power: int) -> poly1d:
        result = poly1d([1.0])
        for _ in range(int(power)):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, poly1d) and np.array_equal(plain_values(self.c), plain_values(other.c))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(np.poly1d(plain_values(self.c), variable=self.variable))

    def __str__(self) -> str:
        return str(np.poly1d(plain_values(self.c), variable=self.variable))
