"""The operators: a table of derivative declarations, and the generator that makes code of them."""

from . import elementwise, formulas, joining, products, reductions, selection
from .define import OPERATORS, define_op

__all__ = ["OPERATORS", "define_op", "elementwise", "formulas", "joining", "products", "reductions", "selection"]
