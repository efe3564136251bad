"""NumPy's universal functions on tensors, with their methods and attributes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..tensor.creation import holds_tensor
from ..tensor.tensor import UFUNCS, Tensor
from ..tensor.trace_hooks import composed
from .convert import as_argument, as_tensors, carries_history, plain_values
from .functions import lost

NUMBERS: Final = frozenset({Tensor, float, int})


class UniversalFunction:
    """A universal function of NumPy, with its methods, whose results are tensors.

    Arguments:
        function: the NumPy ufunc.
        name: its name here.
        way_out: the alternative for tensors with a history.
    """

    def __init__(self, function: np.ufunc, name: str, way_out: str = "") -> None:
        self.numpy: Final = function
        self.__name__ = self.__qualname__ = name
        self.__doc__ = function.__doc__
        self._arguments = function.nin
        self._way_out = way_out

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == self._arguments:
            for arg in args:
                if type(arg) is Tensor:
                    handler = UFUNCS.get((self.numpy, "__call__"))
                    return handler(*args) if handler is not None else self._run("__call__", args, kwargs)
        return self._run("__call__", args, kwargs)

    def reduce(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function between all elements along an axis."""
        return self._run("reduce", args, kwargs)

    def accumulate(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results of `reduce` on the way."""
        return self._run("accumulate", args, kwargs)

    def reduceat(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce the slices between given indices."""
        return self._run("reduceat", args, kwargs)

    def outer(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function on every pair of elements."""
        return self._run("outer", args, kwargs)

    def at(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the ufunc in place at given indices, repeated ones included."""
        return self._run("at", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numpy, name)

    def __reduce__(self) -> Any:
        return ufunc, (self.numpy,)

    def __repr__(self) -> str:
        return repr(self.numpy)

    def _run(self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        method = self.numpy if kind == "__call__" else getattr(self.numpy, kind)
        if not holds_tensor(args) and not (kwargs and holds_tensor(tuple(kwargs.values()))):
            return as_tensors(method(*args, **kwargs), args)
        handler = UFUNCS.get((self.numpy, kind))
        if handler is not None:
            inputs = [as_argument(arg) for arg in args]
            out = kwargs.get("out")
            if isinstance(out, tuple) and len(out) == 1:
                kwargs = kwargs | {"out": out[0]}
            if kind == "__call__" and len(inputs) > self._arguments:
                outputs = inputs[self._arguments :]
                kwargs = kwargs | {"out": outputs[0] if len(outputs) == 1 else tuple(outputs)}
                del inputs[self._arguments :]
            return handler(*inputs, **kwargs)
        module = "numpy" if hasattr(np, self.__name__) else "scipy.special"
        name = f"{module}.{self.__name__}" + ("" if kind == "__call__" else f".{kind}")

        def on_values(*args: Any, **kwargs: Any) -> Any:
            if carries_history(args) or carries_history(kwargs):
                raise lost(name, self._way_out)
            return as_tensors(method(*map(plain_values, args), **plain_values(kwargs)))

        return composed(name, on_values, args, kwargs)


_made: Final[dict[np.ufunc, UniversalFunction]] = {}


def ufunc(function: np.ufunc, name: str | None = None, way_out: str = "") -> UniversalFunction:
    """Return the counterpart of a NumPy ufunc, the same one for all its names."""
    if function not in _made:
        _made[function] = UniversalFunction(function, name or function.__name__, way_out)
    return _made[function]
