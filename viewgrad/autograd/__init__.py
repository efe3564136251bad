"""The differentiation: nodes, the engine, derivative declarations, custom functions, checks."""

from . import derivatives, indexing, numpy_functions, python_operators
from .api import backward, grad
from .derivatives.define import define_op
from .gradcheck import gradcheck, gradgradcheck

__all__ = [
    "backward",
    "define_op",
    "derivatives",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "indexing",
    "numpy_functions",
    "python_operators",
]
