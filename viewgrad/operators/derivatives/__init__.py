"""The tables of derivatives: one row for each operator, and the functions that their formulas call."""

from . import (
    calculus,
    concatenate,
    elementwise,
    fourier,
    helpers,
    incomplete,
    indexing,
    integer_valued,
    matrices,
    nan_reductions,
    networks,
    one_argument_families,
    reductions,
    scatter,
    scipy_functions,
    sorting,
    special_functions,
    stable_derivatives,
    statistics,
    unique,
)
