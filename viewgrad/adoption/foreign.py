"""Objects of NumPy, SciPy and Numba that a program has made outside: what takes their place in adopted code.

A random generator shares its state with the original; a vectorized or compiled function runs the Python function that
it was made of, adopted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .counterparts import MISSING, namespace

__all__ = ["converted"]

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


CONVERTERS: Final[dict[type, Callable[[Any, Adopt], Any]]] = {
    np.vectorize: _vectorize,
    np.random.Generator: _generator,
    np.random.RandomState: _random_state,
    np.poly1d: _poly1d,
}


def converted(value: Any, adopted: Adopt) -> Any:
    """What takes the place of an object of a library; MISSING if it stays.

    Arguments:
        value: the object.
        adopted: gives the adopted version of a function.
    """
    converter = CONVERTERS.get(type(value))
    if converter is not None:
        return converter(value, adopted)
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(value, "py_func") and isinstance(value, numba.core.dispatcher.Dispatcher):
        return adopted(value.py_func)
    if numba is not None and type(value).__module__.startswith("numba.np.ufunc"):
        python = getattr(getattr(value, "_dispatcher", None), "py_func", None)
        return MISSING if python is None else namespace("numpy").vectorize(adopted(python))
    return MISSING
