"""The operators: a table of derivative declarations, and the generator that makes code of them."""

from . import (
    activations,
    convolution,
    decompositions,
    elementwise,
    formulas,
    forward_mode,
    fourier,
    inference,
    integer_valued,
    joining,
    linear_algebra,
    ordering,
    products,
    reductions,
    sampled_functions,
    scattering,
    selection,
    special_functions,
    statistics,
)
from .define import OPERATORS, define_op, finish

__all__ = [
    "OPERATORS",
    "define_op",
    "activations",
    "convolution",
    "decompositions",
    "elementwise",
    "formulas",
    "forward_mode",
    "fourier",
    "inference",
    "integer_valued",
    "joining",
    "linear_algebra",
    "ordering",
    "products",
    "reductions",
    "sampled_functions",
    "scattering",
    "selection",
    "special_functions",
    "statistics",
]

finish()
