"""NumPy's namespace for tensors: with `import viewgrad.numpy as np`, NumPy programs become differentiable.

It has every public name of the installed NumPy. Functions that create arrays create tensors, functions of arrays are
the operators of the library, and functions without gradients are NumPy's own. A function that would lose the history
of a tensor raises an `UnsupportedFunctionError` that suggests an alternative.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy

from ..operators.numpy_api.adapted import adapted
from ..operators.numpy_api.creation import CREATORS
from . import ctypeslib, emath, fft, lib, linalg, ma, matrices, polynomial, random, testing
from ._io import IO_FUNCTIONS
from ._poly import poly1d as poly1d
from ._vectorize import frompyfunc as frompyfunc
from ._vectorize import ufunc as ufunc
from ._vectorize import vectorize as vectorize
from .array_types import SCALAR_TYPES
from .array_types import ndarray as ndarray  # `x as x` tells a type checker that x is public
from .grids import broadcast as broadcast
from .grids import c_ as c_
from .grids import mgrid as mgrid
from .grids import ndenumerate as ndenumerate
from .grids import nditer as nditer
from .grids import ogrid as ogrid
from .grids import r_ as r_
from .namespace import filled, unbound
from .passthrough import ALTERNATIVES, FROM_NUMPY

if TYPE_CHECKING:
    from .typed import *  # noqa: F403


MADE: dict[str, Any] = {
    **CREATORS,
    **SCALAR_TYPES,
    **IO_FUNCTIONS,
    "broadcast": broadcast,
    "c_": c_,
    "asmatrix": matrices.asmatrix,
    "bmat": matrices.bmat,
    "matrix": matrices.matrix,
    "mgrid": mgrid,
    "ndarray": ndarray,
    "ndenumerate": ndenumerate,
    "nditer": nditer,
    "frompyfunc": frompyfunc,
    "ogrid": ogrid,
    "poly1d": poly1d,
    "r_": r_,
    "ufunc": ufunc,
    "row_stack": adapted(numpy.vstack, "numpy.vstack"),
    "vectorize": vectorize,
    "ctypeslib": ctypeslib,
    "emath": emath,
    "fft": fft,
    "lib": lib,
    "linalg": linalg,
    "ma": ma,
    "polynomial": polynomial,
    "random": random,
    "testing": testing,
}

globals().update(filled(numpy, MADE, FROM_NUMPY, ALTERNATIVES))
unbound(numpy, globals(), __name__)
__version__ = numpy.__version__
__array_namespace_info__ = getattr(numpy, "__array_namespace_info__", None)
__all__ = [name for name in numpy.__all__ if not isinstance(getattr(numpy, name), types.ModuleType)]
polynomial.fill(sys.modules[__name__])
# Modules that remain NumPy's can be imported from here as well: `from viewgrad.numpy.typing import NDArray`.
for _name in ("char", "dtypes", "exceptions", "rec", "strings", "typing"):
    _module = importlib.import_module(f"numpy.{_name}")
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _module
