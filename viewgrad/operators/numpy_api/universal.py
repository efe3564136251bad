"""NumPy's universal functions for tensors, with their methods and attributes."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...errors import UnsupportedTypeError
from ...tensor.adapters import meaning
from ...tensor.creation import holds_tensor, with_arrays
from ...tensor.tensor import UFUNCS, Tensor, has_own_rules
from ...tensor.trace_hooks import composed
from .. import OPERATORS
from ..codegen.generate import body, environment
from .adapted import lost
from .conversion import as_argument, as_tensors, carries_history, on_unsupported, on_values
from .dispatch import in_numpy_names
from .lazy_functions import lazy_function

MISSING: Final = object()
METHODS: Final = ("reduce", "accumulate", "reduceat", "outer", "at")
FACTS: Final = ("identity", "nargs", "nin", "nout", "ntypes", "signature", "types", "resolve_dtypes")


class WithUfuncs:
    """The base of classes that NumPy's ufuncs treat as Python objects, such as sparse arrays.

    For such an object, a ufunc calls Python's operator, or the method with the name of the ufunc. `__array_ufunc__` is
    None, because otherwise arrays would not defer to the operators of the class.
    """

    __array_ufunc__ = None

    def of_ufunc(self, ufunc: np.ufunc, kind: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the result of a ufunc for an object of this class and numbers, or others of the class.

        Raises:
            TypeError: for other operands and ufuncs, and with options.
        """
        apply = BY_OPERATORS.get(ufunc)
        if apply is None and len(args) == 1:
            apply = getattr(type(self), ufunc.__name__, None)
        are_operands = all(isinstance(each, WithUfuncs) or np.ndim(each) == 0 for each in args)
        if apply is None or kind != "__call__" or options or not are_operands:
            name = f"numpy.{ufunc.__name__}"
            raise TypeError(f"{name} does not support such operands, one of them of type {type(self).__name__}")
        return apply(*args)


BY_OPERATORS: Final[dict[np.ufunc, Callable[..., Any]]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.true_divide: operator.truediv,
    np.power: operator.pow, np.negative: operator.neg, np.positive: operator.pos, np.absolute: operator.abs,
    np.square: lambda x: x * x,
}  # fmt: skip


class UniversalFunction:
    """The implementation of a NumPy ufunc for tensors; `ufunc` returns its public function.

    Arguments:
        function: the NumPy ufunc.
        way_out: the alternative for tensors with a history.
    """

    def __init__(self, function: np.ufunc, way_out: str = "") -> None:
        self.numpy: Final = function
        self.__name__ = self.__qualname__ = function.__name__
        self._arguments = function.nin
        self._advice = way_out

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The function of numbers, arrays and tensors, with NumPy's options."""
        return self._run("__call__", args, kwargs)

    def reduce(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce an array along an axis by the function."""
        return self._run("reduce", args, kwargs)

    def accumulate(self, *args: Any, **kwargs: Any) -> Any:
        """Return the intermediate results of `reduce`."""
        return self._run("accumulate", args, kwargs)

    def reduceat(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce the slices between given indices."""
        return self._run("reduceat", args, kwargs)

    def outer(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to every pair of elements."""
        return self._run("outer", args, kwargs)

    def at(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the ufunc in place at given indices, including repeated ones."""
        return self._run("at", args, kwargs)

    def __reduce__(self) -> Any:
        return _holder, (self.numpy,)

    def __repr__(self) -> str:
        return repr(self.numpy)

    def _run(self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        method = self.numpy if kind == "__call__" else getattr(self.numpy, kind)
        if "dim" in kwargs or "keepdim" in kwargs:
            kwargs = in_numpy_names(kwargs)
        for each in args:
            if isinstance(each, WithUfuncs):
                return each.of_ufunc(self.numpy, kind, args, kwargs)
        args = with_arrays(args)
        if not holds_tensor(args) and not (kwargs and holds_tensor(tuple(kwargs.values()))):
            return as_tensors(method(*args, **kwargs), args)
        if kind == "__call__" and len(args) > self._arguments:
            args, outputs = args[: self._arguments], args[self._arguments :]
            kwargs = kwargs | {"out": outputs}
        out = kwargs.get("out")
        if isinstance(out, tuple) and len(out) == self.numpy.nout == 1:
            kwargs = kwargs | {"out": out[0]}
        handler = UFUNCS.get((self.numpy, kind))
        if handler is not None:
            try:
                return handler(*map(as_argument, args), **kwargs)
            except UnsupportedTypeError:
                if any(has_own_rules(type(each), "__array_ufunc__") for each in args):
                    return method(*args, **kwargs)
                return on_unsupported(method, args, kwargs)
        module = "numpy" if hasattr(np, self.__name__) else "scipy.special"
        name = f"{module}.{self.__name__}" + ("" if kind == "__call__" else f".{kind}")

        def run(*args: Any, **kwargs: Any) -> Any:
            if carries_history(args) or carries_history(kwargs):
                raise lost(name, self._advice)
            return on_values(method, args, kwargs)

        return composed(name, run, args, kwargs)

    def source(self) -> tuple[str, dict[str, Any]]:
        """Return the code of the function, and the objects it refers to."""
        handler = UFUNCS.get((self.numpy, "__call__"))
        direct = self.call if handler is None else meaning(handler)
        operator = OPERATORS.get(getattr(direct, "__name__", ""))
        names = {"MISSING": MISSING, "Tensor": Tensor, "direct": direct, "remaining": self.call_with_options}
        if self._arguments == 2:
            names["foreign_operand"] = self.call_with_foreign_operand
        if operator is not None and operator.function is direct and self._arguments < 3:
            parameters = [argument.name for argument in operator.signature.arguments]
            if len(parameters) == self._arguments:
                return self._head(parameters) + body(operator), environment(operator) | names
        return self._head(self._arrays) + f"    return direct({', '.join(self._arrays)})\n", names

    def parameters(self) -> tuple[str, dict[str, Any]]:
        """Return the code of a function with the parameters of the ufunc."""
        options = (
            "where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None"
            if self.numpy.signature is None
            else "casting='same_kind', order='K', dtype=None, subok=True, axes=None, axis=None, keepdims=False"
        )
        return f"def {self.__name__}(ufunc, {', '.join(self._arrays)}, /, out=None, *, {options}): ...\n", {}

    @property
    def _arrays(self) -> list[str]:
        """The names of the operands in NumPy."""
        return ["x"] if self._arguments == 1 else [f"x{number + 1}" for number in range(self._arguments)]

    def _head(self, parameters: list[str]) -> str:
        """Return the beginning of the code, which handles everything except tensors and numbers without options."""
        if len(parameters) == 2:
            first, second = parameters
            foreign = f"type({second}) is not Tensor and ({second} is MISSING or type({first}) is not Tensor)"
        else:
            foreign = " or ".join(f"type({each}) is not Tensor" for each in parameters)
        listed = ", ".join(f"{each}=MISSING" for each in parameters)
        return (
            f"def {self.__name__}(ufunc, {listed}, /, *more, **options):\n"
            f"    if more or options or {foreign}:\n"
            f"        return remaining(({', '.join(parameters)},), more, options)\n"
        )

    def call_with_foreign_operand(self, first: Any, second: Any) -> Any:
        """Apply the function to a tensor and an operand that cannot be converted to a tensor."""
        return self._run("__call__", (first, second), {})

    def call_with_options(self, given: tuple[Any, ...], more: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Apply the function; omitted arguments are MISSING."""
        return self._run("__call__", (*(each for each in given if each is not MISSING), *more), options)


# The counterparts created so far, by NumPy ufunc.
UNIVERSAL: Final[dict[np.ufunc, types.MethodType]] = {}


def ufunc(function: np.ufunc, way_out: str = "", doc: str | None = None) -> Any:
    """Return the counterpart of a NumPy ufunc, which is the same object for all its names.

    It is a bound method: like a NumPy ufunc and unlike a function, it does not bind to instances as a class attribute,
    and calling it is as fast as calling a function.

    Arguments:
        function: the NumPy ufunc.
        way_out: the alternative for tensors with a history.
        doc: its docstring; by default NumPy's.
    """
    made = UNIVERSAL.get(function)
    if made is None:
        holder = UniversalFunction(function, way_out)
        call: Any = lazy_function(holder.__name__, holder.source, holder.parameters)
        call.__doc__ = function.__doc__ if doc is None else doc
        call.__module__ = "numpy" if doc is None else "viewgrad"
        call.numpy = function
        call.__dict__.update({each: getattr(holder, each) for each in METHODS})
        call.__dict__.update({each: getattr(function, each) for each in FACTS if hasattr(function, each)})
        made = UNIVERSAL[function] = types.MethodType(call, holder)
        setattr(holder, holder.__name__, made)  # pickled bound methods are looked up here
    return made


def _holder(function: np.ufunc) -> Any:
    """Return the object that the counterpart of a ufunc is bound to."""
    return ufunc(function).__self__
