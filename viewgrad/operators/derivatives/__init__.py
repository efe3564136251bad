"""The tables of derivatives: one row for each operator, and the functions that their formulas call."""

from . import (
    elementwise,
    formulas,
    fourier,
    incomplete,
    integer_valued,
    joining,
    matrices,
    missing_values,
    networks,
    number_theory,
    ordering,
    reductions,
    sampled_functions,
    scattering,
    scipy_functions,
    selection,
    sets,
    special_functions,
    special_slopes,
    statistics,
)
