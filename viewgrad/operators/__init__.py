"""What can be differentiated: the tables of derivatives, the language of their formulas, and the code of both."""

from . import derivatives
from .define import OPERATORS, define_op

__all__ = ["OPERATORS", "define_op", "derivatives"]
