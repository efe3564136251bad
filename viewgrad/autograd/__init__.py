"""The differentiation: nodes, the engine, derivative declarations, custom functions, checks."""

from . import derivatives, indexing
from .api import backward, grad
from .derivatives.define import define_op

__all__ = ["backward", "define_op", "derivatives", "grad", "indexing"]
