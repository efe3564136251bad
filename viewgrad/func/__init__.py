"""Functional transforms: derivatives of functions, as functions."""

from .functionalize import functionalize
from .implicit import implicit
from .transforms import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, value_and_grad, vhp, vjp
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
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]
