"""Automatic differentiation of programs that modify arrays through views."""

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as _numpy

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "viewgrad needs Python's global interpreter lock, which this free-threaded build runs without; start Python "
        "with PYTHON_GIL=1 in the environment or with -X gil=1, or use a build with the lock. See "
        "Note [Reference counts] in docs/notes/reference_counts.md for what relies on it"
    )

from . import autograd, errors, fft, func, linalg, operators, views
from . import trace as _trace  # imported before the operator `trace` takes this name
from .adoption import adopt
from .func.api import grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp
from .func.checkpoint import checkpoint
from .func.vmap import vmap
from .hints import MODULE_HINTS, add_hints
from .naming import document, name_functions
from .operators.composites import COMPOSITES
from .operators.define import OPERATORS
from .operators.numpy_api.reductions import REDUCTIONS
from .saving import load, save
from .standard.functions import FUNCTIONS
from .standard.inspection import install
from .standard.public import common_function, declare_common
from .tensor.creation import (
    arange,
    array,
    as_tensor,
    asarray,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .tensor.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .tensor.tensor import Tensor
from .views.construct import view_replay
from .views.view_ops import (
    as_strided,
    broadcast_to,
    chunk,
    diagonal,
    expand,
    flatten,
    imag,
    moveaxis,
    narrow,
    permute,
    ravel,
    real,
    reshape,
    squeeze,
    swapaxes,
    transpose,
    unbind,
    unfold,
    unsqueeze,
    view_as_complex,
    view_as_real,
)

__version__ = "0.1.0"

# The operators of the table under their names: `viewgrad.exp`, `viewgrad.concatenate`, ...; then the array API's names.
# `viewgrad.fft` is a namespace that can be called like the operator.
_operators = {name: operator.function for name, operator in OPERATORS.items() if name != "fft"}
globals().update(_operators | COMPOSITES | FUNCTIONS)
install(sys.modules[__name__])
document(OPERATORS, REDUCTIONS)
# NumPy's functions, as in `viewgrad.numpy`; each is created on first use.
_common: Final = declare_common(globals())
for _name in _common:
    del globals()[_name]
name_functions(__name__, globals())
name_functions(linalg.__name__, vars(linalg))
name_functions(fft.__name__, vars(fft))
name_functions(__name__, vars(Tensor), "Tensor.")
add_hints(Tensor)


# The names that dir() lists: NumPy's. All others are in namespaces of their own: linalg, fft, scipy.special and
# torch_names.
_numpy_names: Final = frozenset(dir(_numpy))

# Imported on first use: together they take longer to import than the rest of the library.
_LAZY_MODULES: Final = ("drawing", "interop", "math", "numpy", "scipy", "symbolic", "testing", "torch_names")
# For each name, the module that defines the object, and its name there.
_LAZY: Final = {"compile": ("compiler", "compile"), "jit": ("compiler", "compile"), "random": ("numpy", "random")}


if not TYPE_CHECKING:  # a type checker accepts any name of a module that defines __getattr__

    def __getattr__(name: str) -> Any:
        if name in _LAZY_MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _common:
            found = globals()[name] = common_function(getattr(_numpy, name))
            return found
        if name in _LAZY:
            module, attribute = _LAZY[name]
            found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
            return found
        if name == "lib":  # rolling windows of xarray look up its stride_tricks in the namespace of an array
            return importlib.import_module(f"{__name__}.numpy.lib")
        hint = f": {MODULE_HINTS[name]}" if name in MODULE_HINTS else ""
        message = f"module {__name__!r} has no attribute {name!r}{hint}"
        # used by Python for suggestions of similar names
        raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY_MODULES, *_LAZY})


if TYPE_CHECKING:
    from . import drawing, interop, math, numpy, scipy, symbolic, testing, torch_names
    from .compiler import compile
    from .compiler import compile as jit
    from .numpy import random

    # stub files: a type checker cannot compute `__all__`
    from .operators.typed import *  # type: ignore[no-redef]  # noqa: F403
    from . import fft  # isort: skip  # not the operator of that name
    from .standard.typed import *  # type: ignore[assignment]  # noqa: F403

__all__ = [
    "Tensor",
    "adopt",
    "arange",
    "array",
    "as_tensor",
    "asarray",
    "autograd",
    "broadcast_to",
    "checkpoint",
    "compile",
    "diagonal",
    "drawing",
    "empty",
    "empty_like",
    "enable_grad",
    "errors",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "grad",
    "hessian",
    "func",
    "imag",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "jacfwd",
    "jacrev",
    "hvp",
    "jvp",
    "linspace",
    "load",
    "moveaxis",
    "no_grad",
    "ones",
    "ones_like",
    "operators",
    "ravel",
    "real",
    "reshape",
    "save",
    "set_grad_enabled",
    "squeeze",
    "swapaxes",
    "symbolic",
    "transpose",
    "value_and_grad",
    "view_replay",
    "vjp",
    "vmap",
    "views",
    "zeros",
    "zeros_like",
    *(name for name in {**OPERATORS, **COMPOSITES, **FUNCTIONS} if name in _numpy_names),
    "linalg",
]
