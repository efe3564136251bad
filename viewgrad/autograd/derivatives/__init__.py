"""The operators: a table of derivative declarations, and the generator that makes code of them."""

from . import (
    decompositions,
    elementwise,
    formulas,
    fourier,
    joining,
    linear_algebra,
    products,
    reductions,
    scattering,
    selection,
)
from .define import OPERATORS, define_op

__all__ = [
    "OPERATORS",
    "define_op",
    "decompositions",
    "elementwise",
    "formulas",
    "fourier",
    "joining",
    "linear_algebra",
    "products",
    "reductions",
    "scattering",
    "selection",
]
