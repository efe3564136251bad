"""Functions that apply functions to elements, describe values, and store them; polynomials as objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..adoption import adopted_arguments
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.tensor import Tensor
from .array_types import is_scalar
from .convert import as_argument, as_tensors, carries_history, plain_values
from .creation import array
from .functions import adapted, lost
from .testing import on_values

__all__ = ["EVALUATORS"]


class vectorize:
    """A function of numbers as one of tensors, element by element; see `numpy.vectorize`.

    Arguments:
        pyfunc: the function.
        otypes: the dtypes of its outputs; found out by calling it, where left out.
        doc: its docstring.
        excluded: the names and places of the arguments that are passed as they are.
        cache: without influence.
        signature: the core dimensions, as `numpy.vectorize` takes them.
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any] | None = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc, self.otypes, self.signature = adopted_arguments(pyfunc), otypes, signature
        self.excluded = set(excluded or ())
        self.__doc__ = doc or (pyfunc.__doc__ if pyfunc is not None else None)
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # it decorates, with options
            return vectorize(args[0], self.otypes, None, self.excluded, False, self.signature)
        if self.signature is not None:
            if holds_tensor(args):
                return self._with_core_dimensions(args, kwargs)
            return as_tensors(
                np.vectorize(self.pyfunc, self.otypes, None, self.excluded, signature=self.signature)(*args, **kwargs)
            )
        places = [place for place in range(len(args)) if place not in self.excluded]
        names = [name for name in kwargs if name not in self.excluded]
        given = [array(args[place], copy=None) for place in places] + [array(kwargs[name], copy=None) for name in names]
        shape = np.broadcast_shapes(*(np.shape(each) for each in given))
        given = [
            each.broadcast_to(shape) if isinstance(each, Tensor) else np.broadcast_to(each, shape) for each in given
        ]
        results = []
        for index in np.ndindex(shape):
            elements = [each[index] for each in given]
            now, named = list(args), dict(kwargs)
            for place, element in zip(places, elements):
                now[place] = element
            named.update(zip(names, elements[len(places) :]))
            results.append(self.pyfunc(*now, **named))
        if not results and self.otypes is None:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        several = bool(results) and isinstance(results[0], tuple)
        columns = list(zip(*results)) if several else [results]
        types = list(self.otypes) if self.otypes is not None else [None] * len(columns)
        made = tuple(_collected(list(column), shape, dtype) for column, dtype in zip(columns, types))
        return made if several else made[0]

    def _with_core_dimensions(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = str(self.signature).replace(" ", "").split("->")[0]
        cores = [len([name for name in part.split(",") if name]) for part in inputs.strip("()").split("),(")]
        given = [as_operand(arg) for arg in args]
        outer = [each.shape[: each.ndim - core] for each, core in zip(given, cores)]
        shape = np.broadcast_shapes(*outer)
        given = [each.broadcast_to(shape + each.shape[each.ndim - core :]) for each, core in zip(given, cores)]
        assert self.pyfunc is not None
        results = [self.pyfunc(*(each[index] for each in given), **kwargs) for index in np.ndindex(shape)]
        several = isinstance(results[0], tuple)
        columns = list(zip(*results)) if several else [results]
        made = tuple(_collected(list(column), shape, None) for column in columns)
        return made if several else made[0]


def _collected(values: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    if not values:
        return as_tensors(np.empty(shape, dtype))
    collected = array(values, dtype)
    return collected.reshape(shape + collected.shape[1:])


class frompyfunc:
    """A function of numbers as one of tensors, element by element.

    Arguments:
        func: the function.
        nin, nout: the numbers of its arguments and of its results.
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, **others: Any) -> None:
        self.nin, self.nout = nin, nout
        self._numpy = np.frompyfunc(func, nin, nout, **others)
        self._tensors = vectorize(func)

    def __call__(self, *args: Any) -> Any:
        return self._tensors(*args) if holds_tensor(args) else self._numpy(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copies ask for, before there is anything inside
            raise AttributeError(name)
        return getattr(self._numpy, name)


class poly1d:
    """A polynomial, whose coefficients go from the highest power down; see `numpy.poly1d`.

    Arguments:
        c_or_r: the coefficients, or the zeros.
        r: whether they are the zeros.
        variable: what the variable is called in print.
    """

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if isinstance(c_or_r, poly1d):
            c_or_r, variable = c_or_r.c, variable or c_or_r.variable  # type: ignore[has-type]
        given = array(c_or_r, copy=None, ndmin=1)
        given = np.poly(given) if r else given
        places = np.flatnonzero(plain_values(given))
        self.c = self.coef = self.coefficients = self.coeffs = (
            given[int(places[0]) :] if places.size else as_tensors(np.zeros(1, given.dtype))
        )
        self.variable = variable or "x"

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
        """The `m`-th derivative."""
        return poly1d(np.polyder(self.c, m))

    def integ(self, m: int = 1, k: Any = 0) -> poly1d:
        """The `m`-th integral."""
        return poly1d(np.polyint(self.c, m, k))

    def __getitem__(self, power: int) -> Any:
        return self.c[self.o - power] if 0 <= power <= self.o else 0

    def __len__(self) -> int:
        return self.o

    def __iter__(self) -> Any:
        return iter(self.c)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.c.__array__(dtype, copy)  # type: ignore[call-overload]

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


def isscalar(element: Any) -> bool:
    """Return whether a value is a number, or a tensor that stands for one."""
    return is_scalar(element) or np.isscalar(element)


def iterable(y: Any) -> bool:
    """Return whether a value can be iterated over."""
    return bool(y.ndim) if isinstance(y, Tensor) else np.iterable(y)


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the dimensions of a tensor, or of what nested lists are joined to."""
    return a.shape if isinstance(a, Tensor) else np.shape(plain_values(a))


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the length along an axis."""
    return np.size(np.empty(shape(a), bool), axis)


def finfo(dtype: Any) -> Any:
    """The limits of a floating-point dtype, or of that of a tensor."""
    return np.finfo(dtype.dtype if isinstance(dtype, Tensor) else dtype)


# Functions that tell about values, or store them: nothing comes out through which a gradient could flow.
TELLING: Final = (
    "array2string",
    "array_repr",
    "array_str",
    "base_repr",
    "binary_repr",
    "einsum_path",
    "format_float_positional",
    "format_float_scientific",
    "isfortran",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
    "result_type",
    "can_cast",
    "common_type",
    "min_scalar_type",
    "may_share_memory",
    "shares_memory",
    "array_equiv",
    "iscomplexobj",
    "isrealobj",
)

# Functions that make arrays of files, text and memory, or of lengths alone.
READING: Final = (
    "bartlett",
    "blackman",
    "frombuffer",
    "fromfile",
    "fromstring",
    "genfromtxt",
    "hamming",
    "hanning",
    "kaiser",
    "loadtxt",
    "tri",
)


def _reading(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    @functools.wraps(function, updated=())
    def read(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(f"numpy.{name}", "it takes numbers and memory without history; pass detach()")
        return as_tensors(function(*map(plain_values, map(as_argument, args)), **plain_values(kwargs)))

    return read


class Archive(np.lib.npyio.NpzFile):
    """The arrays of a file of `savez`, as tensors."""

    def __getitem__(self, key: str) -> Any:
        return as_tensors(super().__getitem__(key))


def load(*args: Any, **kwargs: Any) -> Any:
    """Load the contents of a file written by `save`, `savez` or pickle; arrays become tensors."""
    found = _reading("load")(*args, **kwargs)
    if type(found) is np.lib.npyio.NpzFile:
        found.__class__ = Archive
    return found


EVALUATORS: Final[dict[str, Any]] = {
    **{each.__name__: each for each in (vectorize, frompyfunc, poly1d, isscalar, iterable, finfo, shape, ndim, size)},
    **{name: on_values(getattr(np, name)) for name in TELLING},
    **{name: _reading(name) for name in READING},
    "load": load,
    "row_stack": adapted(np.vstack, "numpy.vstack"),
}
