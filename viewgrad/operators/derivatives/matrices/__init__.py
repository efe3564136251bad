"""The derivatives of linear algebra: products, inverses, decompositions and functions of matrices."""

from . import (
    contractions,
    decompositions,
    determinants,
    eigen,
    fused,
    inverses,
    least_squares,
    matrix_functions,
    products,
    singular_values,
)
