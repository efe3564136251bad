"""Linear algebra: the `linalg` namespace of the array API standard, with additions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .operators import OPERATORS
from .operators.composites import COMPOSITES
from .spectral import cholesky_ex, null_projector, spectral_function, spectral_projector
from .standard import linear_algebra
from .standard.linear_algebra import *  # noqa: F403

# Names from NumPy's namespace that the standard lacks, triangular systems, and the matrix exponential.
_FURTHER = ("cond", "lstsq", "matrix_exp", "multi_dot", "norm", "solve_triangular")
if TYPE_CHECKING:  # explicit aliases, which a type checker considers public
    from .operators import typed

    cond, lstsq, matrix_exp = typed.cond, typed.lstsq, typed.matrix_exp
    multi_dot, norm, solve_triangular = typed.multi_dot, typed.norm, typed.solve_triangular
globals().update({name: COMPOSITES[name] if name in COMPOSITES else OPERATORS[name].function for name in _FURTHER})

__all__ = [
    *linear_algebra.__all__,
    *_FURTHER,
    "cholesky_ex",
    "null_projector",
    "spectral_function",
    "spectral_projector",
]


def __dir__() -> list[str]:
    return sorted(__all__)
