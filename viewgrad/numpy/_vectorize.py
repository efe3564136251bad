"""`vectorize` and `frompyfunc`: functions of numbers, applied to each element of tensors; and the type `ufunc`."""

from __future__ import annotations

import copyreg
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ..adoption import adopted_arguments
from ..operators.numpy_api.conversion import as_tensors
from ..operators.numpy_api.creation import array
from ..operators.numpy_api.universal import UniversalFunction
from ..tensor.creation import as_operand, holds_tensor
from ..tensor.tensor import Tensor
from .array_types import reduced_type
from .grids import iteration_order


class vectorize:
    """Turn a function of numbers into an elementwise function of tensors; see `numpy.vectorize`.

    Arguments:
        pyfunc: the function.
        otypes: the dtypes of its outputs; determined by calling it if omitted.
        doc: its docstring.
        excluded: the names and positions of the arguments that are passed unchanged.
        cache: whether to keep the result of the call that determines the outputs, instead of calling once more.
        signature: the core dimensions, as for `numpy.vectorize`.
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
        self.excluded, self.cache = set(excluded or ()), cache
        self.__doc__ = doc or (pyfunc.__doc__ if pyfunc is not None else None)
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # used as a decorator with options
            return vectorize(args[0], self.otypes, None, self.excluded, self.cache, self.signature)
        if self.signature is not None:
            if holds_tensor(args):
                return self._with_core_dimensions(args, kwargs)
            return as_tensors(
                np.vectorize(self.pyfunc, self.otypes, None, self.excluded, self.cache, self.signature)(*args, **kwargs)
            )
        places = [place for place in range(len(args)) if place not in self.excluded]
        names = [name for name in kwargs if name not in self.excluded]
        given = [array(args[place], copy=None) for place in places] + [array(kwargs[name], copy=None) for name in names]
        shape = np.broadcast_shapes(*(np.shape(each) for each in given))
        axes = _order_of_calls(given, shape)
        given = [
            each.broadcast_to(shape) if isinstance(each, Tensor) else np.broadcast_to(each, shape) for each in given
        ]

        def call(index: tuple[int, ...]) -> Any:
            elements = [each[index] for each in given]
            now, named = list(args), dict(kwargs)
            for place, element in zip(places, elements):
                now[place] = element
            named.update(zip(names, elements[len(places) :]))
            assert self.pyfunc is not None
            return self.pyfunc(*now, **named)

        types, first = self.otypes, []
        if types is None:
            if 0 in shape:
                raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
            found = call((0,) * len(shape))  # NumPy calls the function once more unless it caches this result
            types = [_type_of_output(each) for each in (found if isinstance(found, tuple) else (found,))]
            first = [found] if self.cache else []
        lengths, places_of = tuple(shape[axis] for axis in axes), [axes.index(axis) for axis in range(len(axes))]
        indices = [tuple(at[place] for place in places_of) for at in np.ndindex(*lengths)]
        results = first + [call(index) for index in indices[len(first) :]]
        several = bool(results) and isinstance(results[0], tuple)
        columns = list(zip(*results)) if several else [results]
        made = tuple(
            _collected(list(column), lengths, dtype).transpose(places_of) for column, dtype in zip(columns, types)
        )
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
        types = self.otypes or [_type_of_output(column[0]) for column in columns]  # as in NumPy, the first decides
        made = tuple(_collected(list(column), shape, dtype) for column, dtype in zip(columns, types))
        return made if several else made[0]


def _type_of_output(value: Any) -> Any:
    """Return the dtype of an output that is determined by the first result; strings may be of any length."""
    dtype = array(value).dtype
    return dtype.char if dtype.kind in "SU" else dtype


def _collected(values: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    if not values:
        return as_tensors(np.empty(shape, dtype))
    are_numbers = all(isinstance(each, (Tensor, numbers.Number)) for each in values)
    if not are_numbers and dtype is not None and np.dtype(dtype) == object:
        made = np.empty(len(values), object)
        for place, value in enumerate(values):
            made[place] = value
        return made.reshape(shape)
    collected = array(values, dtype)
    return collected.reshape(shape + collected.shape[1:])


def _order_of_calls(given: list[Any], shape: tuple[int, ...]) -> list[int]:
    """Return the dimensions of the results from the outermost inwards, in which NumPy walks copies of the operands."""
    copies = [np.empty_like(each._array if isinstance(each, Tensor) else each, bool) for each in given]
    return iteration_order(copies, "K", shape)[1]


def _as_objects(operand: Any) -> Any:
    """Return an array of objects, the elements of an operand."""
    given = as_operand(operand)
    made = np.empty(given.shape, object)
    for index in np.ndindex(given.shape):
        made[index] = given[index]
    return made


class frompyfunc:
    """Turn a function of numbers into an elementwise function of tensors.

    Arguments:
        func: the function.
        nin, nout: the numbers of its arguments and results.
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, **others: Any) -> None:
        self.nin, self.nout = nin, nout
        self._numpy = np.frompyfunc(func, nin, nout, **others)
        self._tensors = vectorize(func, [None] * nout)

    def __call__(self, *args: Any) -> Any:
        return self._tensors(*args) if holds_tensor(args) else self._numpy(*args)

    def reduce(self, array: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Apply the function cumulatively along an axis; see `numpy.ufunc.reduce`."""
        return self._run("reduce", (array,), args, kwargs)

    def accumulate(self, array: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the intermediate results of `reduce`."""
        return self._run("accumulate", (array,), args, kwargs)

    def reduceat(self, array: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Reduce the slices between consecutive indices; see `numpy.ufunc.reduceat`."""
        return self._run("reduceat", (array,), args, kwargs)

    def outer(self, a: Any, b: Any, /, **kwargs: Any) -> Any:
        """Apply the function to all pairs of elements."""
        return self._run("outer", (a, b), (), kwargs)

    def _run(self, name: str, operands: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of NumPy's ufunc, with the elements of tensors as objects."""
        method = getattr(self._numpy, name)
        if not holds_tensor((*operands, *args, *kwargs.values())):
            return method(*operands, *args, **kwargs)
        found = method(*map(_as_objects, operands), *args, **kwargs)
        return array(found.tolist()).reshape(found.shape) if isinstance(found, np.ndarray) else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` looks up such names before the object has contents
            raise AttributeError(name)
        return getattr(self._numpy, name)


class UfuncType(type):
    """The metaclass of `ufunc`."""

    def __instancecheck__(cls, value: Any) -> bool:
        holder = getattr(value, "__self__", None)
        return isinstance(value, (np.ufunc, frompyfunc)) or type(holder) is UniversalFunction

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, (np.ufunc, frompyfunc))

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is np.ufunc

    def __hash__(cls) -> int:
        return hash(np.ufunc)

    def __getattr__(cls, name: str) -> Any:
        """Return an attribute of NumPy's class, such as `np.ufunc.at`."""
        return getattr(np.ufunc, name)


class ufunc(metaclass=UfuncType):
    """The type of elementwise functions, such as `sin`, in `isinstance`."""


copyreg.pickle(UfuncType, reduced_type)
