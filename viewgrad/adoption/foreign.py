"""Objects of NumPy, SciPy and Numba created outside adopted code, and their replacements in adopted code.

A random generator shares its state with the original. A vectorized or compiled function is replaced by the adopted
Python function from which it was created. SciPy objects are replaced by others with the same content, which is compared
with the original's when a call from outside begins.
"""

from __future__ import annotations

import contextvars
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..tensor.equality import is_same_array
from .compiled_functions import is_compiled, of_compiled
from .counterparts import MISSING, counterpart, namespace
from .generalized_ufuncs import GeneralizedUfunc
from .scipy_objects import of_scipy

Adopt = Callable[[Any], Any]


def _vectorize(value: Any, adopted: Adopt) -> Any:
    made = namespace("numpy").vectorize(
        adopted(value.pyfunc), value.otypes, value.__doc__, value.excluded, value.cache, value.signature
    )
    made.__name__ = getattr(value.pyfunc, "__name__", "vectorize")
    return made


def _generator(value: Any, adopted: Adopt) -> Any:
    return namespace("numpy").random.Generator(value.bit_generator)


def _random_state(value: Any, adopted: Adopt) -> Any:
    return namespace("numpy").random.RandomState(value._bit_generator)


def _poly1d(value: Any, adopted: Adopt) -> Any:
    return namespace("numpy").poly1d(value.coeffs, variable=value.variable)


def _matrix(value: Any, adopted: Adopt) -> Any:
    return namespace("numpy").matrix(np.asarray(value), copy=False)


def _masked_array(value: Any, adopted: Adopt) -> Any:
    return namespace("numpy.masked_arrays").captured(value)


CONVERTERS: Final[dict[type, Callable[[Any, Adopt], Any]]] = {
    np.vectorize: _vectorize,
    np.random.Generator: _generator,
    np.random.RandomState: _random_state,
    np.poly1d: _poly1d,
    np.matrix: _matrix,
    np.ma.MaskedArray: _masked_array,
}


# The names of attributes that form the state of objects, which may change after conversion.
_STATES: Final[dict[str, str]] = {
    "numpy": "pyfunc otypes excluded cache signature coeffs variable",
    "scipy.interpolate": "c x t k extrapolate axis y _kind bounds_error fill_value values method _eval_args ext xi yi "
    "nodes",
    "scipy.stats": "dist args kwds dataset factor mean",
    "scipy.sparse": "data indices indptr row col shape",
}


class Conversion:
    """A replacement of a library's object, with the state of the object from which it was created.

    Arguments:
        original: the library's object.
        made: its replacement, stored as a weak reference.
        gone: a function called when the replacement is deleted.
    """

    __slots__ = ("made", "original", "state")

    def __init__(self, original: Any, made: Any, gone: Callable[[Any], Any]) -> None:
        self.original: Final = original
        self.made: Final = weakref.ref(made, gone)
        self.state: list[Any] = _state_of(original)

    def refresh(self, adopted: Adopt) -> None:
        """Apply changes of the original since the last call."""
        made = self.made()
        now = [getattr(self.original, name, None) for name in _names_of(self.original)]
        if made is None or (len(now) == len(self.state) and all(map(_is_same, self.state, now))):
            return
        self.state = _state_of(self.original)
        fresh = converted(self.original, adopted)
        if fresh is not MISSING:
            vars(made).clear()
            vars(made).update(vars(fresh))


def may_change(value: Any) -> bool:
    """Return whether the replacement of an object does not share its state."""
    return bool(_names_of(value))


def _names_of(value: Any) -> list[str]:
    module = type(value).__module__
    names = next((names for name, names in _STATES.items() if module == name or module.startswith(name + ".")), "")
    is_generator = isinstance(value, (np.random.Generator, np.random.RandomState))
    return [] if is_generator else names.split()


def _state_of(value: Any) -> list[Any]:
    return [_copied(getattr(value, name, None)) for name in _names_of(value)]


def _copied(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.copy()
    if isinstance(part, (tuple, list)):
        return tuple(map(_copied, part))
    return {key: _copied(each) for key, each in part.items()} if isinstance(part, dict) else part


def _is_same(kept: Any, part: Any) -> bool:
    if isinstance(part, np.ndarray):
        return is_same_array(kept, part)
    if isinstance(part, (tuple, list)):
        return isinstance(kept, tuple) and len(kept) == len(part) and all(map(_is_same, kept, part))
    if isinstance(part, dict):
        return isinstance(kept, dict) and kept.keys() == part.keys() and all(_is_same(kept[n], part[n]) for n in part)
    comparable = (int, float, str, types.MethodType)  # reading an attribute that is a method returns a new object
    return kept is part or (type(kept) is type(part) and isinstance(part, comparable) and bool(kept == part))


def converted(value: Any, adopted: Adopt) -> Any:
    """Return the replacement of a library's object, or MISSING if it is not replaced.

    It is created outside all modes and traces, since other calls use it too.

    Arguments:
        value: the object.
        adopted: a function that returns the adopted version of a function.
    """
    return contextvars.Context().run(_converted, value, adopted)


def _converted(value: Any, adopted: Adopt) -> Any:
    converter = CONVERTERS.get(type(value))
    if converter is not None:
        return converter(value, adopted)
    if is_compiled(value):
        return of_compiled(value)
    if type(value).__module__.startswith("scipy.") or type(value).__name__ == "SuperLU":
        return of_scipy(value)
    if type(value).__module__ == "statistics" and type(value).__name__ == "NormalDist":
        return counterpart(type(value))(value.mean, value.stdev)
    numba = sys.modules.get("numba")
    return MISSING if numba is None else _of_numba(numba, value, adopted)


def _of_numba(numba: Any, value: Any, adopted: Adopt) -> Any:
    """Return the Python function of a compiled function or ufunc, or MISSING for other objects."""
    if hasattr(value, "py_func") and isinstance(value, numba.core.dispatcher.Dispatcher):
        return adopted(value.py_func)
    if not type(value).__module__.startswith("numba.np.ufunc"):
        return MISSING
    builder = getattr(value, "gufunc_builder", None)
    if builder is not None:
        return GeneralizedUfunc(adopted(builder.py_func), builder._sigs, value.signature)
    python = getattr(getattr(value, "_dispatcher", None), "py_func", None)
    return MISSING if python is None else namespace("numpy").vectorize(adopted(python))
