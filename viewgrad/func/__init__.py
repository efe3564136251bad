"""Function transforms: gradients, Jacobians, Hessians, and their products with vectors."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from .api import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, value_and_grad, vhp, vjp
from .functionalize import functionalize
from .implicit import implicit
from .vmap import vmap

__all__ = [
    "functionalize",
    "grad",
    "hessian",
    "hvp",
    "implicit",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "sparse_jacobian",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]

if TYPE_CHECKING:
    from ..scipy.sparse.jacobian import sparse_jacobian


def __getattr__(name: str) -> Any:
    if name == "sparse_jacobian":  # requires SciPy
        return importlib.import_module("viewgrad.scipy.sparse.jacobian").sparse_jacobian
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted(__all__)
